"""How kernels' times differ on another machine than the one that the runs were on.

A law that says what its seconds are made of is asked with the other machine's resources, and what is assumed of them
widens it by the part that they have in the time:

    sd^2 = sum over parts of (seconds of the part / T  x  sd of its factor)^2

A law that does not (a function of time, a cost per unit of work) says nothing of a verdict. Its time is then somewhere
between that of a kernel that computes and that of one that waits for memory,

    ln T_there / T_here = (1 - m) c + m b,    m uniform on [0, 1]

with c the ratio of core seconds for the same work and b that of the bandwidth a rank has where it sits. Over nodes a
part d of the time is divided work, W / (n T) with W that of the fewest nodes, and the rest messages and what does not
divide, which other machines change by less: with z the logarithm above,

    T_there / T_here = d exp(z) + (1 - d) exp(u z)

where the second part is as uncertain as another network, unless a run there has it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace

import numpy as np
from numpy.typing import NDArray

from ranksight.core.arrays import Array, Index
from ranksight.core.metrics import metric
from ranksight.core.records import dataclass
from ranksight.model.application.assumed import Assumed
from ranksight.model.application.node import NODES
from ranksight.model.application.runs import NO_RUNS, Runs
from ranksight.model.laws.law import COST, FUNCTION, MESSAGES
from ranksight.model.laws.stacking import places
from ranksight.model.laws.together import Laws
from ranksight.model.plaindata import Part, Some
from ranksight.model.priors import BETWEEN_JOBS, RATE_LENGTHS, UNDIVIDED
from ranksight.model.quantity import Quantity
from ranksight.model.series.computation import cores
from ranksight.model.series.domains import NOT_DESCRIBED, Domains
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.model.uncertainty.rows import choose, rows_of
from ranksight.platforms.assumptions import spread

CORE, MEMORY, RATIO, BOUND = range(4)
"""Columns of :attr:`Moved.shift`: seconds of a core, of a memory domain, of laws that do not know which, and the part m
of those that waits for memory."""
NEAR = RATE_LENGTHS[1][1]
"""E-folds over which what the laws leave of a run there is the same, as rates change."""
MIXED = 1 / np.sqrt(12)
"""Standard deviation of a uniform part."""
ELSEWHERE = "{metric} was measured on another machine than {machine}: measure it there"


@dataclass(frozen=True)
class Moved(Some, Part):
    """K kernels on another machine; false for :data:`UNMOVED`."""

    name: str  # of the platform
    kernels: tuple[str, ...]
    core: float  # logarithm of core seconds of the same work, there over here
    ratio_spread: float  # standard deviation of the logarithm of a ratio of machines, without a run there
    shift: Array  # (K, 4): difference of runs there from the assumptions, logarithms but for the last
    spread: Array  # (K, 4): standard deviations of the assumptions, or those that remain after runs there
    nodes: tuple[int, int]  # cores of a node here and there
    origin: Domains  # ranks on the domains of both, whose bandwidths are described
    target: Domains
    assumed: tuple[Assumed, ...]
    messages: tuple[float, float] = (0.0, 0.0)
    """Standard deviations of the logarithm of messages' times inside of a node and between nodes, where the network
    there is not described."""
    seen: Array = field(default_factory=lambda: np.zeros((0, 0)))  # (n, m): configurations that were measured there
    left: Array = field(default_factory=lambda: np.zeros((0, 0)))
    """(K, n): logarithms of those times over what the laws give, NaN where none is known."""
    runs: Runs = NO_RUNS  # times as measured here
    doubts: tuple[str, ...] = ()  # of the runs there
    _sizes = "kernels:k shift:k4 spread:k4"

    def of_functions(
        self, forecast_here: Forecast, timed: Mapping[str, int], points: Array, names: Sequence[str]
    ) -> Forecast:
        """The forecast `forecast_here` with the functions of time, which `timed` names, on the other machine."""
        index = np.array(list(timed.values()), dtype=np.intp)
        rows = places(self.kernels, tuple(timed))
        forecast_here = self.runs.met(forecast_here, points, timed)
        times = rows_of(forecast_here, index)
        centre, deviation = self.ratio(rows, points, names, np.log(times.value))
        quantity = Quantity.of_ends(times.value, times.lower, times.upper)
        moved = times.having(quantity.moved(centre).wider(deviation)).judged()
        return choose(forecast_here, moved, index, np.ones(moved.status.shape, dtype=bool))

    def ratio(self, rows: Index, points: Array, names: Sequence[str], logs: Array) -> tuple[Array, Array]:
        """Logarithm (K, k) of times there over here where nothing says what they are made of, and its standard
        deviation, of the kernels `rows` at `points` (k, m), whose times here have the logarithms `logs` (K, k)."""
        core, memory = self._ratios(points, names)
        waits = np.clip(0.5 + self.shift[rows, BOUND, None], 0.0, 1.0)
        squares = np.square(self.spread[rows][..., None])
        # Away from a run there no more is known than without one, and no less.
        variance = np.minimum(squares[:, RATIO] + (spread("scale") * self._far(points)) ** 2, self.ratio_spread**2)
        variance = variance + squares[:, BOUND] * (memory - core) ** 2
        centre = core + waits * (memory - core) + self.shift[rows, RATIO, None]
        # A run there has the network of that machine in it.
        network = 0.0 if len(self.seen) else spread("network")
        return of_parts(centre, variance, self._divided(rows, points, names, logs), network=network)

    def _divided(self, rows: Index, points: Array, names: Sequence[str], logs: Array) -> Array:
        """Part (K, k) of the times here that is work of the fewest nodes, divided: 1 inside of a node, and where no
        such run has the other parameters."""
        along = next((name for name in ("ranks", NODES) if name in names), "")
        if not along or not self.runs.kernels:
            return np.ones(logs.shape)
        column, least = list(names).index(along), 1.0 if along == NODES else float(self.nodes[0])
        order = np.argsort(self.runs.points[:, column])
        measured = self.runs.points[order]
        at = places(self.runs.kernels, tuple(self.kernels[row] for row in rows.tolist()))
        table = np.where(at[:, None] >= 0, self.runs.logs[at], np.nan)[:, order]
        work = table + np.log(measured[:, column])  # of all ranks
        same = np.delete(points[:, None] == measured, column, axis=2).all(axis=2)
        fewer = (measured[:, column] >= least) & (measured[:, column] < points[:, column, None])
        usable = (same & fewer) & np.isfinite(work)[:, None]
        first = np.take_along_axis(work, usable.argmax(axis=2), axis=1) - np.log(points[:, column])
        return np.where(usable.any(axis=2), np.exp(np.minimum(first - logs, 0.0)), 1.0)

    def _far(self, points: Array) -> Array:
        """E-folds (k,) from the nearest configuration that was measured there."""
        if not len(self.seen):
            return np.zeros(len(points))
        return np.asarray(_distance(points, self.seen).min(axis=1))

    def _ratios(self, points: Array, names: Sequence[str]) -> tuple[Array, Array]:
        """Logarithms (k,) of seconds there over here of a kernel that computes, and of one that waits for memory."""
        by_node = NODES in names and "ranks" not in names
        origin, target = self.origin, self.target
        core = np.full(len(points), self.core)
        if by_node:
            core = core - np.log(self.nodes[1] / self.nodes[0])
        if by_node:
            ratio = origin.domain[0] * origin.count / (target.domain[0] * target.count)
            return core, np.full(len(points), np.log(ratio))
        ranks = cores(points, names)
        each = [_rate(domains, ranks) for domains in (origin, target)]
        return core, np.log(each[0] / each[1])

    def undecided(self, points: Array, names: Sequence[str]) -> Assumed:
        """What the ratio of machines is taken to be at one of `points` (1, m), and how uncertain it is as nothing says
        what kernels do."""
        core, memory = (float(each[0]) for each in self._ratios(points, names))
        source = f"{np.exp(core):.3g} where a kernel computes, {np.exp(memory):.3g} where it waits for memory"
        return Assumed(
            "seconds against the machine of the runs", float(np.exp((core + memory) / 2)),
            float(np.hypot(self.ratio_spread, MIXED * (memory - core))),
            f"{source}: nothing counted says which, memory traffic, loads or stalls would", True,
        )  # fmt: skip

    def laws(self, laws: Laws, points: Array, names: Sequence[str]) -> None:
        """Widen what laws predict by what is assumed of the other machine, and move those that do not count."""
        for name, law in laws.laws.items():
            rows = places(self.kernels, law.kernels)
            if law.parts:
                laws.laws[name] = replace(law, time=law.time.wider(np.nan_to_num(self._by_parts(law.parts, rows))))
            elif name == COST:
                centre, deviation = self.ratio(rows, points, names, law.time.centre)
                laws.laws[name] = replace(law, time=law.time.moved(centre).wider(deviation))
            elif name == MESSAGES:
                laws.laws[name] = replace(law, time=law.time.wider(spread("network")))
        counting = tuple(name for name, law in laws.laws.items() if law.parts and name != FUNCTION)
        laws.leave(counting, np.ones(len(points), dtype=bool))

    def near(self, times: Forecast, timed: Sequence[str], points: Array) -> Forecast:
        """The times (K, k) of kernels with what the laws leave of runs there, the less the farther from these.

        What is left is a process along the logarithms of the coordinates, correlated as exp(-distance / NEAR); its
        variance is the mean square of what is left beyond two numbers a kernel.
        """
        if not len(self.seen):
            return times
        rows = places(self.kernels, timed)
        left = np.where(rows[:, None] >= 0, self.left[rows], np.nan)
        known = np.isfinite(left)
        freedom = known.sum(axis=1) - 2
        variance = np.where(freedom > 0, np.nansum(left**2, axis=1) / np.maximum(freedom, 1), 0.0)[:, None]
        between, within = (np.exp(-_distance(each, self.seen) / NEAR) for each in (points, self.seen))
        pairs = known[:, :, None] & known[:, None]
        noise = BETWEEN_JOBS**2 / np.maximum(variance, BETWEEN_JOBS**2)
        matrix = np.where(pairs, within, 0.0) + np.eye(len(self.seen)) * np.where(known, noise, 1.0)[:, None]
        covariance = between[None] * known[:, None]
        weights = np.linalg.solve(matrix, covariance.transpose(0, 2, 1)).transpose(0, 2, 1)
        centre = (weights * np.nan_to_num(left)[:, None]).sum(axis=2)
        explained = (weights * covariance).sum(axis=2)
        quantity = Quantity.of_ends(times.value, times.lower, times.upper)
        return times.having(quantity.moved(centre).wider(np.sqrt(variance * np.clip(1 - explained, 0.0, 1.0))))

    def _by_parts(self, parts: Mapping[str, Array], rows: Index) -> Array:
        """Standard deviation (K, k) of ln T by the factors of its parts."""
        by_part = {name: np.nan_to_num(seconds) for name, seconds in parts.items()}
        total = np.maximum(np.sum(list(by_part.values()), axis=0), np.finfo(float).tiny)
        core, memory = (self.spread[rows, at, None] for at in (CORE, MEMORY))
        work = sum((by_part.get(name, 0.0) for name in ("execution", "direct")), np.zeros(total.shape))
        traffic = by_part.get("contention", np.zeros(total.shape))
        waits = total - work - traffic
        squares = (work * core) ** 2 + (traffic * memory) ** 2 + waits**2 * (memory**2 + spread("latency") ** 2)
        return np.asarray(np.sqrt(squares) / total)

    def wider(self, times: Forecast, deviation: float | Array) -> Forecast:
        """Seconds that no law here counts, whose logarithm is off by `deviation` on another machine."""
        return times.having(Quantity.of_ends(times.value, times.lower, times.upper).wider(deviation))

    def answers(self, name: str, known: Collection[tuple[str, str]]) -> bool:
        """Whether a metric of some kernel is predicted there: times, counts that follow from the program, and what is
        `known` of the machine, by kernel and metric."""
        about = metric(name)
        steady = about.kind == "requirement" and about.steady
        return name == "time" or steady or any(name == each for _, each in known)

    def exchanged(self, times: Forecast, points: Array, names: Sequence[str]) -> Forecast:
        """Times of messages (o, k) on a network that may not be that of this machine."""
        nodes = points[:, list(names).index(NODES)] if NODES in names else self.target.nodes(cores(points, names))
        return self.wider(times, np.where(nodes > 1, self.messages[1], self.messages[0]))

    def refuse(
        self,
        status: Index,
        reason: NDArray[np.object_],
        rows: Mapping[tuple[str, str], int],
        known: Collection[tuple[str, str]],
    ) -> None:
        """Mark what the machine decides and no law moves: all but what it :meth:`answers`."""
        for (kernel, name), row in rows.items():
            if not self.answers(name, [key for key in known if key[0] == kernel]):
                status[row], reason[row] = forecast.NO_DATA, ELSEWHERE.format(metric=name, machine=self.name)

    def placed(self, placement: str | None, ranks_per_node: int | None) -> Moved:
        """The same machine with its ranks placed in another way."""
        return replace(self, target=self.target.placed(placement, ranks_per_node))

    def remarks(self, points: Array) -> list[str]:
        """What is assumed of the other machine, and what is doubtful of runs there."""
        return [*self.doubts, *map(str, self.assumed)]

    def _fits(self) -> bool:
        return min(self.nodes) > 0 and self.origin.limited and self.target.limited


_NONE = np.empty((0, 4))
UNMOVED = Moved("", (), 0.0, 0.0, _NONE, _NONE, (1, 1), NOT_DESCRIBED, NOT_DESCRIBED, ())
"""Where the machine asked for is that of the runs."""


def _distance(points: Array, others: Array) -> Array:
    """E-folds (k, n) between configurations."""
    each = np.log(np.maximum(points, 1e-300))[:, None] - np.log(np.maximum(others, 1e-300))[None]
    return np.asarray(np.sqrt((each**2).sum(axis=2)))


def of_parts(
    centre: Array, variance: Array, divided: Array, power: float = UNDIVIDED, network: float = 0.0
) -> tuple[Array, Array]:
    """Logarithm of a ratio of machines, and its standard deviation, of times of which a part `divided` is divided work.

    `centre`, `variance`: of the logarithm of the ratio of that work; all of one shape. `network`: standard deviation of
    that of the rest, as messages go over another network.
    """
    rest = (1 - divided) * np.exp(power * centre)
    whole = divided * np.exp(centre) + rest
    share = rest / whole
    slope = 1 - share * (1 - power)
    of_rest = share * np.hypot(spread("undivided") * centre, network)
    return np.log(whole), np.hypot(slope * np.sqrt(variance), of_rest)


def _rate(domains: Domains, ranks: Array) -> Array:
    """Bandwidth (k,) in B/s that a rank of the fullest domain has, for reads."""
    active = np.maximum(domains.active(ranks), 1)
    return np.asarray(np.minimum(domains.core[0], domains.domain[0] / active))
