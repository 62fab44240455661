"""The law of a count on one process grid: a + sum_d n_d b_d, or n_d f_d b_d with faces f_d, by least squares."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ranksight.comm.patterns.grid import MOST_DIMENSIONS, Cartesian
from ranksight.core.arrays import Array, Mask
from ranksight.core.records import dataclass
from ranksight.model.structure.levels import COUNTS

CLOSE = 5e-3
"""Largest error of the law, relative to the kernel's mean: that of counts, with what alignment changes in them."""
NEAR = 0.15
"""The same for the root mean square error of what varies over ranks: loads by cache level, which depend on addresses as
well, and bytes, where neighbours have unlike parts of the domain."""
EXACT = 1e-6
"""Largest relative error of rounding."""
SENT = frozenset({"messages", "bytes_sent"})
"""Metrics of which no neighbour gets less than nothing."""
EQUAL = 1.3
"""Largest ratio of the costs of two directions where nothing else separates the law from growth with the ranks."""


@dataclass(frozen=True)
class Group:
    """All runs at one combination of the other parameters."""

    ranks: tuple[int, ...]  # of each run
    names: list[tuple[str, str]]  # list of (kernel, metric)
    values: Array  # (series, all ranks of all runs)


@dataclass(frozen=True)
class Law:
    """One law of all series on one grid."""

    solved: Array  # (s, 1 + MOST_DIMENSIONS, groups): coefficients
    residual: Array  # (s,): relative error; 0 where the law is exact
    follows: Mask  # (s,): whether the law holds
    equal: Mask  # (s,): whether all directions cost the same, or about the same where the law is not exact


def solve(groups: Collection[Group], grid: Cartesian, faced: bool) -> Law:
    """The law with or without faces: with one cost for all directions where that is exact, else one for each.

    A constant that the values of some groups have and those of others do not is part of the law's error, not a function
    of the other parameters: all groups then go without.
    """
    size = len(next(iter(groups)).names)
    fits = [_Fit.of(group, grid, faced) for group in groups]
    has = np.stack([one.solution[:, 0] != 0 for one in fits])
    some = has.any(axis=0) & ~has.all(axis=0) & np.any([one.error > 0 for one in fits], axis=0)
    if some.any():
        bare = [_Fit.of(group, grid, faced, (False,)) for group in groups]
        some &= np.all([one.holds for one in bare], axis=0)
        fits = [one.replaced(other, some) for one, other in zip(fits, bare, strict=True)]
    solved = np.zeros((size, 1 + MOST_DIMENSIONS, len(groups)))
    residual, follows, equal = np.zeros(size), *np.ones((2, size), dtype=bool)
    for at, one in enumerate(fits):
        solved[:, : 1 + grid.dimensions, at] = one.solution
        residual, follows = np.maximum(residual, one.error), follows & one.holds
        costs = one.solution[:, 1:]
        same = np.ptp(costs, axis=1) <= EXACT * np.abs(costs).max(axis=1)
        equal &= np.where(one.error > 0, _equal(costs), same)
    return Law(solved, residual, follows, equal)


@dataclass(frozen=True)
class _Fit:
    """The law of all series at one combination of the other parameters."""

    solution: Array  # (s, 1 + d)
    error: Array  # (s,): relative; 0 where the law is exact
    holds: Mask  # (s,)

    @classmethod
    def of(cls, group: Group, grid: Cartesian, faced: bool, constants: tuple[bool, ...] = (True, False)) -> _Fit:
        """Solve by least squares, with a constant or without as `constants` has it, the first that holds.

        The law is not claimed where it has as many coefficients as there are different ranks in the runs, unless all
        directions cost about the same: it then fits whatever depends on the number of ranks. A halo's faces cost about
        the same in every direction, while work that grows with the ranks would have to double its cost from one
        direction to the next. How much the costs differ is then the law's error.
        """
        d = grid.dimensions
        values, names = group.values, np.array([name for _, name in group.names], dtype=object)
        loose = ~np.isin(names, list(COUNTS)) | (names == "bytes_sent")
        scale = np.abs(values).mean(axis=1)
        placed = grid.surface if faced else grid
        sides = [placed.sides(p) * np.tile(grid.faces(p) if faced else np.ones(d), 2) for p in group.ranks]
        near = np.concatenate([each[:, :d] + each[:, d:] for each in sides])
        rows = [np.unique(each[:, :d] + each[:, d:], axis=0) for each in sides]
        solution, error = np.zeros((len(values), 1 + d)), np.full(len(values), np.inf)
        holds = np.zeros(len(values), dtype=bool)

        def take(which: Mask, coefficients: Array, missed: Array) -> None:
            """Take what is found where nobody gets less than nothing, and each neighbour a whole number of messages."""
            coefficients = np.where(np.abs(coefficients) < EXACT * scale[:, None], 0.0, coefficients)
            which = which & ~(np.isin(names, list(SENT)) & (coefficients < 0).any(axis=1))
            whole = np.abs(coefficients - np.round(coefficients)).max(axis=1) <= EXACT * np.maximum(scale, 1.0)
            which &= (names != "messages") | (missed > 0) | whole
            solution[which], error[which], holds[which] = coefficients[which], missed[which], True

        for constant in constants:
            # Without a constant a rank that has no neighbour says nothing.
            seen = sum(len(each) if constant else int(each.any(axis=1).sum()) for each in rows)
            full, missed, scatter = _each_direction(np.concatenate(sides), near, values, constant)
            if full is None:
                continue
            # Steps up or down by less than the error are none.
            steps = np.abs(full[:, 1:]) * np.ptp(near, axis=0)
            clear = (steps > (np.maximum(CLOSE, 2 * scatter) * scale)[:, None]).any(axis=1)
            close = np.where(loose, scatter <= NEAR, missed <= CLOSE * scale) & clear & ~holds
            size = np.where(scatter > EXACT, scatter, 0.0)
            if seen > constant + d:
                take(close, full, size)
            else:
                mean = full[:, 1:].mean(axis=1, keepdims=True)
                unlike = np.abs(full[:, 1:] / np.where(mean > 0, mean, 1.0) - 1).max(axis=1)
                take(close & _equal(full[:, 1:]), full, np.hypot(size, unlike))
        total = near.sum(axis=1)
        for constant in constants:
            basis = np.stack([np.ones(len(total)), total], axis=1)[:, not constant :]
            if np.ptp(total) == 0 or sum(map(len, rows)) <= basis.shape[1]:
                continue
            found = np.linalg.lstsq(basis, values.T, rcond=None)[0].T
            difference = found @ basis.T - values
            clear = (np.abs(found[:, -1]) * np.ptp(total) > CLOSE * scale) & (scale > 0)
            exact = (np.abs(difference).max(axis=1) <= EXACT * scale) & clear
            size = np.sqrt((difference**2).mean(axis=1)) / np.where(scale > 0, scale, 1.0)
            costs = np.repeat(found[:, -1:], d, axis=1)
            base = found[:, :1] if constant else np.zeros((len(found), 1))
            near_by = loose & clear & ~holds & (size <= NEAR)
            take(exact | near_by, np.concatenate([base, costs], axis=1), np.where(exact, 0.0, size))
        return cls(solution, np.where(holds, error, 0.0), holds)

    def replaced(self, other: _Fit, rows: Mask) -> _Fit:
        """This one with the law of some `rows` (s,) from another."""
        return _Fit(
            np.where(rows[:, None], other.solution, self.solution),
            np.where(rows, other.error, self.error),
            np.where(rows, other.holds, self.holds),
        )


def _each_direction(sides: Array, near: Array, values: Array, constant: bool) -> tuple[Array | None, Array, Array]:
    """A constant, if there is one, and a cost for each direction (s, 1 + d), None where the runs do not separate the
    directions; largest and relative root mean square error (s,)."""
    d = near.shape[1]
    columns, means = [np.ones(len(near))] * constant, np.zeros((1 + d, int(constant)))
    means[0] = 1.0
    for at in range(d):
        # Lower and upper faces differ a little (alignment); a direction has as many of the one as of the other.
        lower, upper = sides[:, at], sides[:, d + at]
        parts = [lower + upper] if (lower == upper).all() else [lower, upper]
        columns += parts
        share = np.zeros((1 + d, len(parts)))
        share[1 + at] = 1 / len(parts)
        means = np.concatenate([means, share], axis=1)
    basis = np.stack(columns, axis=1)
    solution = np.linalg.lstsq(basis, values.T, rcond=None)[0].T
    difference = solution @ basis.T - values
    scale = np.abs(values).mean(axis=1)
    scatter = np.sqrt((difference**2).mean(axis=1)) / np.where(scale > 0, scale, 1.0)
    known = np.linalg.matrix_rank(basis) == basis.shape[1]
    costs: Array = (solution @ means.T).astype(np.float64)
    return costs if known else None, np.abs(difference).max(axis=1), scatter


def _equal(costs: Array) -> Mask:
    """Whether the directions of each row cost about the same."""
    return np.asarray((costs.min(axis=1) > 0) & (costs.max(axis=1) <= EQUAL * costs.min(axis=1)))
