"""Counts that follow the local block of a rank, size/x by size/y by size/z, whatever ranks and size it comes from.

Where a rank sends to itself what nobody else is there for, its block alone decides what it does: on 8 ranks at twice
the size it sends to the byte what one rank sends, though no short function of the two meets the counts, such as those
of atoms in whole cells of a cut-off. A series follows its block where all configurations of equal blocks have equal
values, some do, and neither the ranks nor the size alone say what the values are. At a configuration whose block was
measured with other ranks it has the value measured there, and between blocks what its functions say.

That blocks decide elsewhere, too, after n values were the same as another of their block, has the probability
(n + 1) / (n + 2) (rule of succession of a uniform prior); in the other cases the functions answer. With one such value
an interval has as much of theirs as is likely in a third of the cases, and nothing of it from eight on.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.dims import MOST_RANKS, dims_create
from ranksight.core.records import dataclass
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.plaindata import part_of
from ranksight.model.quantity import CENTRAL, EACH_END, TAIL
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.structure.gridlaw import CLOSE, EXACT, SENT
from ranksight.model.structure.improving import Key, Structure
from ranksight.model.structure.levels import COUNTS
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.model.uncertainty.rows import choose, open_to, rows_of

DIMENSIONS = (3, 2)
"""Those of the process grid that are looked at: in one, sizes are powers of an edge that nobody states."""
ENOUGH = round(1 / (1 - CENTRAL)) - 2
"""Values that were the same as another of their block from which on an interval has nothing of the other cases."""


@dataclass(frozen=True)
class Blocks(Structure):
    """s series that follow the block of a process grid, and their values at b blocks."""

    parameters: tuple[str, ...]  # of the model
    kernels: tuple[str, ...]
    metrics: tuple[str, ...]
    dimensions: int
    size: str  # the parameter that is the edge of the domain
    edges: Array  # (b, d + m - 2): of the blocks, longest side of the grid first, and all other parameters
    values: Array  # (s, b): NaN where nothing was measured
    scatter: Array  # (s,): largest relative difference of equal blocks
    agreed: Array  # (s,): values that were the same as another of their block
    _sizes = "kernels:s metrics:s edges:be values:sb scatter:s agreed:s"

    def predict(self, points: Array) -> tuple[Forecast, Mask]:
        """Forecast the s series at `points` (k, m), and where (s, k) their block was measured."""
        asked = block_edges(points, self.parameters, self.size, self.dimensions)
        same = (asked[:, None] == self.edges[None]).all(axis=2)
        value = np.where(same.any(axis=1), self.values[:, same.argmax(axis=1)], np.nan)
        reach = self.scatter[:, None] * value
        equal = Forecast.settled(value, value - reach, value + reach, form=1.0)
        return equal, np.isfinite(value)

    def improved(self, answer: Forecast, fitted: Fitted, points: Array, exact: Collection[Key]) -> Forecast:
        """Equal blocks, where they were measured and say more, within what functions say in the other cases."""
        index, (equal, measured) = fitted.indices(self.keys), self.predict(points)
        by_functions = rows_of(answer, index)
        with np.errstate(invalid="ignore"):
            wider = ~(by_functions.upper - by_functions.lower <= equal.upper - equal.lower)
        chosen = measured & (wider | (by_functions.status != forecast.OK))
        return choose(answer, open_to(equal, self._otherwise(by_functions), chosen), index, chosen)

    def _otherwise(self, by_functions: Forecast) -> Forecast:
        """What functions say of the s series as far as a 90 % interval has it, if they are right where blocks decide
        nothing; no interval where that is too rare."""
        rest = 1 / (np.fmin(self.agreed, ENOUGH) + 2)[:, None]
        share = -special.ndtri(EACH_END / rest) / TAIL
        value, lower, upper = by_functions.value, by_functions.lower, by_functions.upper
        positive = lower > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            low = np.where(positive, value * (lower / value) ** share, value - share * (value - lower))
            high = np.where(positive, value * (upper / value) ** share, value + share * (upper - value))
        seldom = np.broadcast_to((self.agreed >= ENOUGH)[:, None], value.shape)
        low, high = (np.where(seldom | ~np.isfinite(end), np.nan, end) for end in (low, high))
        return Forecast.settled(value, low, high)

    def without(self, keys: Collection[tuple[str, str]]) -> Blocks:
        """The same without some series."""
        return part_of(self, "s", [row for row, key in enumerate(self.keys) if key not in keys]) or NO_BLOCKS

    def _fits(self) -> bool:
        named = {"ranks", self.size} <= set(self.parameters) and self.dimensions in DIMENSIONS
        return named and self.edges.shape[1] == self.dimensions + len(self.parameters) - 2


NO_BLOCKS = Blocks((), (), (), 0, "", np.empty((0, 0)), np.empty((0, 0)), np.empty(0), np.empty(0))


def block_edges(points: Array, parameters: tuple[str, ...], size: str, dimensions: int) -> Array:
    """Edges of the blocks at `points` (k, m), then all other parameters, (k, d + m - 2); NaN where an edge is not whole
    and blocks differ."""
    ranks, edge = points[:, parameters.index("ranks")], points[:, parameters.index(size)]
    whole = (ranks >= 1) & (ranks == np.floor(ranks)) & (ranks <= MOST_RANKS)
    sides = np.array(
        [
            dims_create(int(p), dimensions) if yes else (np.nan,) * dimensions
            for p, yes in zip(ranks, whole, strict=True)
        ]
    )
    edges = edge[:, None] / sides.reshape(len(points), dimensions)
    edges = np.where(edges == np.round(edges), edges, np.nan)
    others = [at for at, name in enumerate(parameters) if name not in ("ranks", size)]
    return np.concatenate([edges, points[:, others]], axis=1)


def find_blocks(series: Series, names: Collection[tuple[str, str]], dimensions: Collection[int]) -> Blocks:
    """The series that follow their block.

    `names` (collection of (kernel, metric)): series to look at. `dimensions`: those that the process grid may have.
    """
    parameters = series.parameters
    sampled = series.sampled
    rows = np.array(
        [
            row
            for row, key in enumerate(series.keys)
            if key in names and (key[1] in COUNTS or key[1] in SENT) and not sampled[row]
        ],
        dtype=np.intp,
    )
    if "ranks" not in parameters or not len(rows):
        return NO_BLOCKS
    measured = reduce(series.values[rows], "median", axis=2)
    close = np.array([EXACT if series.metrics[row] in SENT else CLOSE for row in rows])
    candidates: list[Blocks] = []
    for d in (d for d in DIMENSIONS if d in dimensions):
        for size in (name for name in parameters if name != "ranks"):
            edges = block_edges(series.points, parameters, size, d)
            where = np.flatnonzero(np.isfinite(edges).all(axis=1))
            blocks, which = np.unique(edges[where], axis=0, return_inverse=True)
            which = which.reshape(-1)
            if len(blocks) == len(where) or not len(where):
                continue
            values, scatter, agreed = _at_blocks(measured[:, where], which, len(blocks))
            at = parameters.index("ranks"), parameters.index(size)
            decided = [_decides(measured, np.delete(series.points, column, axis=1)) for column in at]
            follows = (agreed > 0) & (scatter <= close) & ~decided[0] & ~decided[1]
            if follows.any():
                kernels, metrics = zip(*(series.keys[row] for row in rows[follows]), strict=True)
                arrays = (blocks, *(each[follows] for each in (values, scatter, agreed)))
                candidates.append(Blocks(parameters, kernels, metrics, d, size, *arrays))
    if not candidates:
        return NO_BLOCKS
    best = max(candidates, key=lambda each: len(each.kernels))
    # What follows the blocks of two grids is the same along a side that both have, and says nothing of the others.
    twofold = {key for each in candidates if each.dimensions != best.dimensions for key in each.keys}
    return best.without(twofold)


def _at_blocks(values: Array, which: Index, number: int) -> tuple[Array, Array, Array]:
    """Means (s, b) of values (s, n) at the blocks `which` (n,), the largest relative difference (s,) from these, and
    how many values have another of their block before them."""
    known = np.isfinite(values)
    member = np.equal.outer(which, np.arange(number)).astype(np.float64)
    count = known @ member
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(count > 0, np.where(known, values, 0.0) @ member / count, np.nan)
        scatter = np.where(known, np.abs(values / mean[:, which] - 1), 0.0).max(axis=1)
    return mean, np.asarray(np.nan_to_num(scatter)), np.maximum(count - 1, 0).sum(axis=1)


def _decides(values: Array, points: Array) -> Mask:
    """Whether the values (s, n) are the same wherever points (n, m) are."""
    _, which = np.unique(points, axis=0, return_inverse=True)
    which = which.reshape(-1)
    _, scatter, _ = _at_blocks(values, which, int(which.max(initial=-1)) + 1)
    return np.asarray(scatter <= EXACT)
