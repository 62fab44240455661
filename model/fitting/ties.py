"""Parameters that varied together only, as sizes that follow the ranks in weak scaling.

The logarithm of one is then a sum of those of others at every configuration measured,

    ln x_j = c + sum_i b_i ln x_i,

and the effect of either alone cannot be determined. Functions are of the others, and hold where the tie does. A tie is
a row ``(c, e_1, ..., e_m)``: ``sum_j e_j ln x_j = c``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.model.search.terms import write_term

EXACT = 1e-6
"""Part of its range to which a logarithm follows others where it is tied to them; values that were rounded are not."""
TOLERANCE = 0.05
"""Relative distance from a tie up to which the functions still hold: that of sizes rounded to whole numbers."""
WHOLE = 1 / TOLERANCE
"""From here on rounding to a whole number leaves less than that."""


def independent(points: Array, parameters: tuple[str, ...]) -> tuple[list[int], Array]:
    """The columns of `points` (n, m) that varied by themselves, and the ties (q, 1 + m) of others to them. Of the
    `parameters`, ``ranks`` are kept before others."""
    order = sorted(range(points.shape[1]), key=lambda at: parameters[at] != "ranks")
    varied: list[int] = []
    ties = []
    for at in order:
        column = points[:, at]
        if len(np.unique(column)) < 2:
            continue
        logs = np.log(points[:, [*varied, at]]) if (points[:, [*varied, at]] > 0).all() else None
        if varied and logs is not None:
            design = np.column_stack([np.ones(len(points)), logs[:, :-1]])
            solution, _, rank, _ = np.linalg.lstsq(design, logs[:, -1], rcond=None)
            off = np.abs(logs[:, -1] - design @ solution).max()
            if rank == design.shape[1] < len(points) and off <= EXACT * np.ptp(logs[:, -1]):
                tie = np.zeros(1 + points.shape[1])
                # Powers are those of a law: what a solver leaves in the last digits is not printed.
                tie[0], tie[1 + at], tie[[1 + k for k in varied]] = solution[0], 1.0, -np.round(solution[1:], 9)
                ties.append(tie)
                continue
        varied.append(at)
    return sorted(varied), np.array(ties).reshape(-1, 1 + points.shape[1])


def along_ties(points: Array, parameters: tuple[str, ...], ties: Array) -> Array:
    """The points (k, m) with every tied parameter where its tie has it, rounded where it is a whole number nearly.

    The parameter that follows the others is the last of its tie that is not ``ranks``.
    """
    moved = np.array(points, dtype=np.float64)
    for tie in ties:
        used = np.flatnonzero(tie[1:])
        last = [at for at in used if parameters[at] != "ranks"][-1]
        others = [at for at in used if at != last]
        value = np.exp((tie[0] - np.log(moved[:, others]) @ tie[1:][others]) / tie[1 + last])
        moved[:, last] = np.where(value >= WHOLE, np.round(value), value)
    return moved


def off_ties(points: Array, parameters: tuple[str, ...], ties: Array) -> Iterator[tuple[Mask, Mask, str]]:
    """For each tie the parameters (m,) in it, the points (k,) away from it by more than :data:`TOLERANCE`, and the
    reason."""
    for tie in ties:
        used = tie[1:] != 0
        with np.errstate(divide="ignore", invalid="ignore"):
            side = np.log(points[:, used]) @ tie[1:][used] - tie[0]
        names = [name for name, yes in zip(parameters, used, strict=True) if yes]
        term = np.zeros((len(parameters), 3))
        term[:, 0] = tie[1:]
        yield (
            used,
            ~(np.abs(side) <= np.log1p(TOLERANCE)),
            f"{', '.join(names[:-1])} and {names[-1]} varied together only, at {write_term(term, parameters)} = "
            f"{np.exp(tie[0]):.4g}: measure a configuration where one varies alone",
        )
