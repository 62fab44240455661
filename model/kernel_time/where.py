"""Where kernels are asked: coordinates of work, ranks and memory domains, and the capacity of caches there."""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.core.records import dataclass
from ranksight.model.kernel_time.work_per_rank import WorkPerRank, work_per_rank
from ranksight.model.plaindata import Stored
from ranksight.model.series.computation import WORK_PER_RANK, cores
from ranksight.model.series.domains import NOT_DESCRIBED, Domains
from ranksight.model.series.reducing import Series

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
