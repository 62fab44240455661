"""Where kernels are asked: coordinates of work, ranks and memory domains, and the capacity of caches there.

Work per rank: the coordinate that cycles per instruction, blocking factors and cache levels depend on.

    x = prod_j p_j^e_j,   e = -1 or 0 for ranks and threads, one of :data:`POWERS` for any other parameter

so that x is the problem size over the ranks in strong scaling (D / P in Ding et al. 2018, section 2) and constant in
weak scaling. The powers are those that fit the counted work of the program best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.core.experiment import WHOLE
from ranksight.core.records import dataclass
from ranksight.model.plaindata import Stored
from ranksight.model.priors import DIVIDED_SLOPE
from ranksight.model.series.computation import DIVIDERS, WORK_PER_RANK, cores
from ranksight.model.series.domains import NOT_DESCRIBED, Domains
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce

POWERS = (0.0, 0.5, 1.0, 2.0, 3.0)
"""Powers of any other parameter: unknowns of one line, face or volume; half for a parameter that counts cells of a
face."""
COUNTED = ("flops_dp", "flops_sp", "instructions", "bytes_mem_read", "time", "cycles")
"""Metrics that say how much work there is, the one first that waiting cannot change."""
DIVIDES: Mapping[bool | None, tuple[float, ...]] = {None: (-1.0, 0.0), True: (-1.0,), False: (0.0,)}
"""Powers of ranks and threads that are tried, by whether times fall with them."""
MOST = 4
"""Parameters that are searched at most; further ones have the power 0."""


@dataclass(frozen=True)
class WorkPerRank(Stored):
    """How work per rank follows from the parameters."""

    parameters: tuple[str, ...]
    powers: Array  # (m,)

    def logarithm(self, points: Array) -> Array:
        """ln x at `points` (k, m), up to a constant, (k,)."""
        return np.asarray(np.log(np.maximum(points, 1e-300)) @ self.powers)

    def _fits(self) -> bool:
        return self.powers.shape == (len(self.parameters),) and bool(np.isfinite(self.powers).all())


def work_per_rank(series: Series) -> WorkPerRank:
    """The powers that fit the program's counted work, summed over kernels, best in logarithms.

    A parameter of a single value has the power -1 where it divides work, and 0 otherwise. Work per rank that is stated
    (:mod:`ranksight.model.series.computation`) is divided already.
    """
    stated = WORK_PER_RANK in series.parameters
    powers = np.array([-1.0 if name in DIVIDERS and not stated else 0.0 for name in series.parameters])
    known = (WORK_PER_RANK, *DIVIDERS) if stated else ()
    powers[[name == WORK_PER_RANK for name in series.parameters]] = 1.0
    total, timed = _total(series)
    free = [at for at, name in enumerate(series.parameters) if name not in known]
    varied = [at for at in free if len(np.unique(series.points[:, at])) > 1][:MOST]
    usable = np.isfinite(total) & (total > 0) & (series.points[:, varied] > 0).all(axis=1)
    if not varied or usable.sum() < 2:
        return WorkPerRank(series.parameters, powers)
    logs = np.log(series.points[usable])
    goal = np.log(total[usable]) - (logs[:, series.parameters.index(WORK_PER_RANK)] if stated else 0.0)
    offered: list[Sequence[float]] = [
        DIVIDES[_falls(logs, at, goal) if timed else None] if series.parameters[at] in DIVIDERS else POWERS
        for at in varied
    ]
    trials = np.array(list(product(*offered)))
    residual = goal - trials @ logs[:, varied].T
    powers[varied] = trials[int(np.argmin(residual.var(axis=1)))]
    return WorkPerRank(series.parameters, powers)


def _falls(logs: Array, at: int, goal: Array) -> bool | None:
    """Whether the times `goal` (n,) fall along one coordinate of `logs` (n, m), the others being equal; None where the
    others always differ.

    Sharing and waiting only lengthen times, so that a time that falls with the ranks is one of divided work, however
    little it falls.
    """
    constant = np.zeros((len(goal), 1))
    group = np.unique(np.hstack([constant, np.delete(logs, at, axis=1)]), axis=0, return_inverse=True)[1].reshape(-1)
    order = np.lexsort((logs[:, at], group))
    first = np.unique(group[order], return_index=True)[1]
    least = np.minimum.reduceat(goal[order], first)
    width = np.maximum.reduceat(logs[order, at], first) - logs[order, at][first]
    falls = ((goal[order][first] - least) > DIVIDED_SLOPE * width)[width > 0]
    return bool(np.median(falls) > 0.5) if falls.size else None


def _total(series: Series) -> tuple[Array, bool]:
    """Sum over kernels (n,) of the first of :data:`COUNTED` that was measured everywhere, and whether it is a time."""
    names = np.array(series.metrics, dtype=object)
    parts = np.array([kernel != WHOLE for kernel in series.kernels], dtype=bool)
    for name in COUNTED:
        for rows in (parts & (names == name), ~parts & (names == name)):
            if rows.any():
                total = np.nansum(reduce(series.values[rows], "median", axis=2), axis=0)
                if (total > 0).all():
                    return np.asarray(total), name in ("time", "cycles")
    return np.full(len(series.points), np.nan), False


WORK, ACTIVE, RANKS = range(3)
"""Columns of ln work per rank, ln ranks in a domain and ln ranks among the coordinates."""


@dataclass(frozen=True)
class Where(Stored):
    """Coordinates of configurations."""

    parameters: tuple[str, ...]
    work: WorkPerRank
    domains: Domains
    columns: tuple[int, ...]
    """Of (ln work per rank, ln ranks in a domain, ln ranks) those that act, and ln ranks where the work per rank is
    stated: it acts on nothing, and few ranks show little of many."""
    alone: bool = False  # whether all runs were on one memory domain, with another number of ranks each
    one_node: bool = False  # whether all runs were on one node
    either: bool = False  # whether work per rank and ranks in a domain varied as one in it

    def _fits(self) -> bool:
        return set() < set(self.columns) <= {0, 1, 2}

    def ranks(self, points: Array) -> Array:
        """Ranks (k,) at `points` (k, m), times their threads, which occupy cores as ranks do."""
        return cores(points, self.parameters)

    def active(self, points: Array) -> Array:
        """Ranks (k,) that share a memory domain; 1 where no machine gives its cores."""
        return np.asarray(self.domains.active(self.ranks(points)), dtype=np.float64)

    def spreads(self, points: Array) -> Mask:
        """Where ranks share several domains (k,), after runs on one alone."""
        return np.asarray((self.ranks(points) > self.active(points)) & self.alone)

    def leaves(self, points: Array) -> Mask:
        """Where ranks are on several nodes (k,), after runs on one alone."""
        return np.asarray((self.domains.nodes(self.ranks(points)) > 1) & self.one_node)

    def every(self, points: Array, work_points: Array) -> Array:
        """All coordinates, (k, 3)."""
        ranks = np.log(np.maximum(self.ranks(points), 1.0))
        return np.stack([self.work.logarithm(work_points), np.log(self.active(points)), ranks], axis=1)

    def inputs(self, points: Array, work_points: Array) -> Array:
        """Coordinates (k, d) of :attr:`columns`, with the work per rank of `work_points`."""
        return self.every(points, work_points)[:, list(self.columns)]

    @property
    def variants(self) -> tuple[tuple[bool, ...], ...]:
        """Sets of coordinates that may act: the first alone, with any other, and all; or either, where runs in one
        memory domain do not say whether a rate follows the work of a rank or the ranks that share the domain."""
        if self.either:
            return (True, False), (False, True)
        inert = WORK_PER_RANK in self.parameters
        free = [not (inert and column == RANKS) for column in self.columns]
        sets = {tuple(yes and at in (0, other) for at, yes in enumerate(free)) for other in range(len(free))}
        return tuple(sorted(sets | {tuple(free)}))

    @classmethod
    def of(cls, series: Series, domains: Domains) -> Where:
        """The coordinates that varied in `series`, none of which repeats another."""
        where = cls(series.parameters, work_per_rank(series), domains, (0, 1, 2))
        every = where.every(series.points, series.points)
        every = every - every.mean(axis=0)
        columns_used: list[int] = []
        stated = WORK_PER_RANK in series.parameters
        for column in range(every.shape[1] - stated):
            trial = every[:, [*columns_used, column]]
            if np.linalg.matrix_rank(trial, tol=1e-6) == len(columns_used) + 1:
                columns_used.append(column)
        columns_used += [RANKS] if stated else []
        columns = tuple(columns_used) or (0,)
        ranks, active = where.ranks(series.points), where.active(series.points)
        one_domain = bool((ranks == active).all()) and len(np.unique(active)) > 1
        one_node = bool((domains.nodes(ranks) <= 1).all())
        either = one_domain and columns == (WORK,)
        columns = (WORK, ACTIVE) if either else columns
        return cls(series.parameters, where.work, domains, columns, one_domain, one_node, either)


NOWHERE = Where((), WorkPerRank((), np.zeros(0)), NOT_DESCRIBED, (0,))


def occupancy(where: Where, points: Array) -> Array:
    """Share of a node's cores that work, (k, 1): the clock falls as they wake (turbo)."""
    ranks = where.ranks(points)
    if not where.domains:
        return np.log(np.maximum(ranks, 1.0))[:, None]
    return np.asarray(np.minimum(ranks, where.domains.ranks_per_node) / where.domains.ranks_per_node)[:, None]
