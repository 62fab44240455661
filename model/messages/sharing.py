"""What each link of a rule, or each kind of rank, carries in one run: the volumes behind a table of messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ranksight.comm.patterns.grid import Cartesian
from ranksight.comm.patterns.recognition import Explanation
from ranksight.core.arrays import Array, Ints
from ranksight.model.messages.volumes import EXACT

if TYPE_CHECKING:
    import pandas as pd


Shares = list[Array]
"""Messages and bytes of each link of a rule, or of each kind of rank, in one run: (2, rounds) for each rule or kind."""


def incidence(explanation: Explanation, ranks: int, once: bool) -> tuple[Ints, Array, list[int]]:
    """Distinct links of the rules, a column for each rule and round with its share of a link, and rounds of each rule,
    0 where it has no link.

    Two rules may hold the same link; with `once` they carry one message together, each its part, otherwise one each.
    """
    each = explanation.links(ranks)
    rounds = [int(links.round.max(initial=-1)) + 1 for links in each]
    codes = np.unique(np.concatenate([links.codes(ranks) for links in each]))
    matrix = np.zeros((len(codes), sum(rounds)))
    for links, start in zip(each, np.cumsum([0, *rounds]).tolist(), strict=False):
        matrix[np.searchsorted(codes, links.codes(ranks)), start + links.round] = 1.0
    if once:
        matrix /= matrix.sum(axis=1, keepdims=True)
    return codes, matrix, rounds


def share_links(peers: pd.DataFrame, explanation: Explanation, ranks: int, once: bool) -> tuple[Shares, float]:
    """Messages and bytes of each link, per rule, by least squares over all links, and the spread.

    Where rules share all their links the volume is shared evenly, the solution of least norm. Links of no rule, such as
    those of a rank to itself, are left out.
    """
    codes, matrix, rounds = incidence(explanation, ranks, once)
    if not len(codes):
        return [np.zeros((2, n)) for n in rounds], 0.0
    values = np.zeros((len(codes), 2))
    rank, peer = (peers[name].to_numpy(dtype=np.int64) for name in ("rank", "peer"))
    links = rank * ranks + peer
    known = np.isin(links, codes)
    np.add.at(values, np.searchsorted(codes, links[known]), _volumes(peers)[known])
    solution, spread = _solve(matrix, values)
    return np.split(solution, np.cumsum(rounds)[:-1], axis=1), spread


def share_ranks(values: Array, columns: Array) -> tuple[Shares, float]:
    """Volumes of each kind of rank, and the spread.

    `values` (ranks, 2): count and bytes. `columns` (ranks, w): the kinds, of :func:`basis`.
    """
    solution, spread = _solve(columns, values)
    return np.split(solution, solution.shape[1], axis=1), spread


def _solve(columns: Array, values: Array) -> tuple[Array, float]:
    """Volumes (2, w) of columns by least squares, and their largest difference from `values` (n, 2), relative to the
    mean; 0 where it is rounding."""
    solution: Array = np.linalg.lstsq(columns, values, rcond=None)[0].astype(np.float64)
    solution[np.abs(solution) < 1e-9 * np.abs(values).max(axis=0)] = 0.0
    scale = np.maximum(values.mean(axis=0), 1e-300)
    spread = float((np.abs(columns @ solution - values).max(axis=0) / scale).max())
    return solution.T, spread if spread > EXACT else 0.0


def profile(values: Sequence[Array]) -> tuple[str, list[float]]:
    """How a volume goes with the round, in all runs, and its factor in each; the mean where it goes by no profile."""
    for name, base in (("even", 1.0), ("doubling", 2.0), ("halving", 0.5)):
        scaled = [row / base ** np.arange(len(row)) for row in values]
        if all(np.ptp(row) <= EXACT * np.abs(row).max(initial=0.0) for row in scaled):
            return name, [float(row[0]) for row in scaled]
    return "even", [float(row.mean()) for row in values]


def per_rank(rows: pd.DataFrame, ranks: int) -> Array:
    """Count and bytes of every rank, (ranks, 2); zeros where a rank has none."""
    values = np.zeros((ranks, 2))
    np.add.at(values, rows["rank"].to_numpy(dtype=np.int64), _volumes(rows))
    return values


def _volumes(table: pd.DataFrame) -> Array:
    """Count and bytes of every row, (n, 2); column by column, as choosing several of a small table takes longer."""
    return np.stack([table[name].to_numpy(dtype=np.float64) for name in ("count", "bytes")], axis=1)


def basis(kind: str, ranks: int, grid: tuple[int, ...] = (), follows: Explanation | None = None) -> Array:
    """Kinds of ranks as columns, (ranks, w); see :class:`ranksight.model.messages.entry.Part`."""
    if kind in ("root", "last"):
        root = np.zeros(ranks)
        root[0 if kind == "root" else -1] = 1.0
        return np.stack([root, 1.0 - root], axis=1)
    if kind == "degree" and follows is not None:
        return np.bincount(follows.codes(ranks) // ranks, minlength=ranks).astype(float)[:, None]
    if kind == "grid":
        return np.concatenate([np.ones((ranks, 1)), grid_neighbours(ranks, grid)], axis=1)
    return np.ones((ranks, 1))


def grid_neighbours(ranks: int, grid: tuple[int, ...]) -> Array:
    """Number of neighbours of every rank in every dimension of a grid that is not periodic: (ranks, dimensions)."""
    dimensions, rising = grid
    return Cartesian(dimensions, (False,) * dimensions, bool(rising)).neighbours(ranks).astype(float)
