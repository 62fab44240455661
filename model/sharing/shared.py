"""Times of kernels whose traffic to memory or a shared cache was counted, at other numbers of ranks on a node.

    T(ranks, size, ...) = contended(core, memory, ranks in the fullest domain, penalty)

with work and bytes per rank as functions of the parameters (:mod:`ranksight.model.sharing.needs` for the symbols),
and what the law leaves unexplained carried on smoothly (:mod:`ranksight.model.uncertainty.departure`).
Ranks that fill a second domain find a second memory interface: the time of one more full domain is that of the first
with less work a rank, which no function of the number of ranks can say that saw one domain alone.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask, log, log_ratio, ratio
from ranksight.core.records import dataclass
from ranksight.model import priors
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.plaindata import Part
from ranksight.model.priors import GROWTH_KEPT
from ranksight.model.quantity import TAIL, UNKNOWN, Quantity, mix
from ranksight.model.resource.equation import LEVELS
from ranksight.model.series.computation import in_cores
from ranksight.model.series.domains import Domains, needs
from ranksight.model.sharing.beyond import Beyond
from ranksight.model.sharing.demand import MEMORY, loads_of
from ranksight.model.sharing.needs import FOLLOW, times
from ranksight.model.sharing.seen import Seen
from ranksight.model.sharing.traffic import factor
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.departure import Departure

WORK, READ, WRITTEN, READ_BY_RANKS = "work", "bytes_mem_read", "bytes_mem_written", "bytes_mem_read by ranks"
"""Series of :attr:`Sharing.counts`: the work, the bytes read (or all, where they were not separated) without what the
occupancy of a domain does to them, the bytes written, and the bytes read as if it did nothing."""
STEP = 1e-4
"""Step of the derivatives, relative."""


@dataclass(frozen=True)
class Sharing(Part):
    """What K kernels need of a core and of the memory that they share."""

    measured: Domains  # the node with ranks placed as they were measured
    domains: Domains  # the same with ranks placed as they are asked for
    kernels: tuple[str, ...]
    counts: Fitted
    """Work and bytes per rank of each kernel, the bytes without what the occupancy of a domain does to them."""
    mode: Array  # see :class:`ranksight.model.sharing.needs.Learned`
    covariance: Array  # see :class:`ranksight.model.sharing.needs.Learned`
    residual: Array  # (K, n)
    """Logarithm of measured over predicted time of configurations that were left out, NaN where missing."""
    count: Index  # see :class:`ranksight.model.sharing.needs.Learned`
    floor: Array  # (K,): shortest measured time
    alone: Array  # (K,)
    """What part of a core's transfer time by the platform's bandwidth the measured times leave room for."""
    effect: Array  # (K, 2)
    belief: Array  # (K,)
    """How reads follow the occupancy, and how sure that is (:mod:`ranksight.model.sharing.traffic`)."""
    clock: Array  # (K,): cycles a second, NaN where they were not counted
    trained: Array  # (m, 2): range of each parameter
    departure: Departure
    """Over the logarithms of the ranks in a domain, where these varied, and of the other parameters."""
    varied: tuple[int, ...]  # columns of the parameters among these
    same_active: bool
    """Whether all runs had the same number of ranks in a domain: departures are then of the time alone, before others
    add to it."""
    evidence: tuple[str, ...]  # what carries each kernel
    beyond: Beyond | None = None
    """What else grows with the ranks; None where all runs had the same number of ranks in a domain."""
    resource: str = MEMORY
    """What they share: :data:`ranksight.model.sharing.demand.MEMORY`, or the name of a cache, whose instances stand for
    domains then."""
    seen: Seen | None = None  # the traffic that was counted; None where none was
    _sizes = (
        "kernels:k mode:k4! covariance:k44! residual:kn count:k>=1 floor:k! alone:k! effect:k2! belief:k! "
        "clock:k trained:m2! evidence:k"
    )

    def forecast(self, points: Array, share: Array) -> Shared:
        """Time of every kernel at `points` (k, m) and what it is made of.

        `share` (k, m): where counts are asked: with the ranks that would all have as much as the fullest.
        """
        points, counted = (in_cores(np.atleast_2d(each), self._parameters) for each in (points, share))
        ranks = points[:, self._column]
        active = self.domains.active(ranks)
        counts, known = self._counts(counted, active)
        inputs = [*self._grown(self._kept(counts, counted, active), points, counted)]
        if self.seen is not None:
            inputs[:3] = self.seen.take(inputs[:3], active, ~self.inside(points))
        logs = np.stack([np.where(np.isnan(each.centre), -np.inf, each.centre) for each in inputs])
        departures, spread = self.departure.at(self._inputs(points, active))
        law = partial(self._times, active=active, gone=departures)
        time, core, busy = law(self.mode, logs)
        axes = STEP * np.eye(4)
        by_mode = np.stack([log_ratio(law(self.mode + axis, logs)[0], time) for axis in axes]) / STEP
        by_count = np.stack([log_ratio(law(self.mode, logs + axis[:, None, None])[0], time) for axis in axes]) / STEP
        variance = np.einsum("isk,sij,jsk->sk", by_mode, self.covariance, by_mode)
        off = np.stack([[each.down, each.up] for each in inputs], axis=1)
        off = np.where(np.isfinite(logs), by_count * off, 0.0)
        # At sizes that were not measured, bytes read and written are off together: the same caches hold both.
        of_bytes = np.where(self._elsewhere(points), off[:, 1] + off[:, 2], np.hypot(off[:, 1], off[:, 2]))
        # What the memory interface alone decides has no other way to go than its traffic, whose own drift is in it.
        drift = priors.DRIFT * self._out(points)[None, :] * (1 - busy) + self._crowded(active)[None, :] * busy
        reach = special.stdtrit(np.maximum(self.count - 3.0, 2.0)[:, None], 0.95) / TAIL
        scattered = np.fmax(reach * spread, self._farthest[:, None] / TAIL)
        variance_of = reach**2 * variance + scattered**2 + drift**2 + priors.BETWEEN_JOBS**2
        down, up = np.minimum(np.sqrt(variance_of + off[:, 0] ** 2 + of_bytes**2 + off[:, 3] ** 2), UNKNOWN)
        answer = Quantity(log(time), down, up)
        undetermined = np.zeros(time.shape, dtype=bool)
        if self.beyond is not None:
            undetermined = self.beyond.guessed[:, None] & (ranks > active)
            answer = self.beyond.take(answer, ranks, self.domains.nodes(ranks), active)
        read, written = np.exp(logs[1:3])
        transfer = np.minimum(self.alone[:, None] * needs(self.domains, read, written)[0], core)
        # What waits for others beyond the time that the interface is busy waits for no bytes.
        moving = np.minimum(np.maximum(busy * time, transfer), transfer + time - core)
        length = np.exp(answer.centre)
        part = np.nan_to_num(np.minimum(ratio(length, time), 1.0), nan=1.0)
        other = np.maximum(np.nan_to_num(length - time), 0.0)
        return Shared(
            time=answer,
            answers=known & np.isfinite(answer.centre) & ~undetermined & self._applies(points),
            undetermined=undetermined,
            execution=part * (core - transfer),
            transfer=part * transfer,
            contention=part * (time - core),
            other=other,
            busy=busy,
            occupied=ratio(part * moving, length) if self.seen else np.full(time.shape, np.nan),
            reads=np.where(self._counted, read, np.nan),
        )

    def _counts(self, points: Array, active: Index) -> tuple[list[Quantity], Mask]:
        """Work, bytes read and bytes written at `points` (k, m), and where they are known (K, k)."""
        predicted = self.counts.predict(points)
        rows = self.counts.rows
        work, by_domain, by_ranks, written = (
            predicted.quantity(np.array([rows.get((kernel, name), -1) for kernel in self.kernels]))
            for name in (WORK, READ, READ_BY_RANKS, WRITTEN)
        )
        by_domain = by_domain.moved(log(factor(self.effect, active, self.domains.cores)))
        read = mix([by_domain, by_ranks], np.stack([self.belief, 1 - self.belief])[..., None])
        unknown = np.zeros(work.centre.shape, dtype=bool)
        owner = np.array([self.kernels.index(kernel) for kernel in self.counts.kernels])
        np.logical_or.at(unknown, owner, np.isin(predicted.status, forecast.INSUFFICIENT))
        return [work, read, written], ~unknown

    def _kept(self, counts: list[Quantity], points: Array, active: Index) -> list[Quantity]:
        """Bytes at other sizes than were measured may also be as many per unit of work as at the nearest measured one.

        Traffic that grows faster than the work does so as caches are outgrown, and no longer when they are.
        """
        if not self._elsewhere(points).any():
            return counts
        near = np.where(self._others, np.clip(points, *self.trained.T), points)
        result, growth = counts[:1], _growth(counts, self._counts(near, active)[0])
        for now, more in zip(counts[1:], growth, strict=True):
            result.append(now.wider(np.maximum(more, 0.0) / TAIL, np.minimum(more, 0.0) / TAIL))
        return result

    def _grown(self, counts: list[Quantity], points: Array, at: Array) -> list[Quantity]:
        """The same with part of what bytes per unit of work grow by beyond the domain that was measured, and the part
        of the time that does not shrink which is left there.

        Runs that fill one domain do not separate the effect of the number of ranks from that of sharing the domain; the
        second is done where the domain is full (:data:`ranksight.model.priors.GROWTH_KEPT`).
        """
        still = Quantity.exact(np.zeros(counts[0].centre.shape))
        full = self.domains.filling
        out = (points[:, self._column] > full) & bool(self.trained[self._column, 1] == full)
        if not out.any():
            return [*counts, still]
        nearest = at.copy()
        nearest[:, self._column] = np.minimum(at[:, self._column], full)
        active = self.domains.active(np.minimum(points[:, self._column], full))
        before = self._kept(self._counts(nearest, active)[0], nearest, active)
        less = _finite(np.where(out, counts[0].centre - before[0].centre, 0.0))
        grown = np.where(out, _growth(counts, before), 0.0)
        keep = np.array([GROWTH_KEPT, 1 - GROWTH_KEPT])[:, None, None]
        result = [mix([now, now.moved(-more)], keep) for now, more in zip(counts[1:], grown, strict=True)]
        # What is most of the time was seen not to shrink from one rank on, however full the domain is.
        steady = np.exp(np.clip(self.mode[:, 3:4], -700, 700)) * self.floor[:, None]
        logs = np.stack([np.where(np.isnan(each.centre), -np.inf, each.centre) for each in (*before, still)])
        time = self._times(self.mode, logs, active, 0 * less)[0]
        part = (1 - GROWTH_KEPT) * (1 - np.clip(ratio(steady, time, 0.0), 0.0, 1.0))
        return [counts[0], *result, mix([still, still.moved(less)], np.stack([1 - part, part]))]

    def _times(self, mode: Array, logs: Array, active: Index, gone: Array) -> tuple[Array, Array, Array]:
        """Time, time alone, and how busy the interface is, for logarithms (4, K, k) of work, reads, writes and what of
        the time that does not shrink is left, and departures from the law."""
        work, reads, writes, left = np.exp(logs)
        floor = self.floor[:, None] * left
        transfer, domain = needs(self.domains, reads, writes)
        transfer, off = self.alone[:, None] * transfer, np.exp(np.clip(gone, -20, 20))
        before, after = (off, 1.0) if self.same_active else (1.0, off)
        time, busy = times(mode, work * before, transfer, domain, floor, active)
        core, _ = times(mode, work * before, transfer, domain, floor, np.ones_like(active))
        return time * after, core * after, busy

    @property
    def misfit(self) -> Array:
        """Standard deviation (K,) of what the law alone leaves of the logarithms of times, by :attr:`freedom`; infinite
        where there is none."""
        return np.sqrt(ratio((np.nan_to_num(self.departure.values) ** 2).sum(axis=1), self.freedom, np.inf))

    @property
    def freedom(self) -> Array:
        """Values (K,) beyond the numbers that follow them."""
        return np.maximum(self.count - FOLLOW, 0.0)

    @property
    def _counted(self) -> Mask:
        """Of which kernels the traffic was counted, (K, 1)."""
        if self.beyond is None:
            return np.ones((len(self.kernels), 1), dtype=bool)
        return np.asarray(~self.beyond.guessed[:, None])

    @property
    def _parameters(self) -> tuple[str, ...]:
        return self.counts.parameters

    @property
    def _column(self) -> int:
        """The ranks among the parameters."""
        return self._parameters.index("ranks")

    @property
    def _others(self) -> Mask:
        """Which parameters are not the ranks, (m,)."""
        return np.array([name != "ranks" for name in self._parameters])

    @property
    def _most(self) -> int:
        """Most ranks that were measured in a domain."""
        return int(self.measured.active(self.trained[[self._column], 1])[0])

    def _elsewhere(self, points: Array) -> Mask:
        """Which points (k, m) lie outside of what was measured of the other parameters, (k,)."""
        out = (points < self.trained[:, 0]) | (points > self.trained[:, 1])
        return np.asarray((out & self._others).any(axis=1))

    @property
    def _farthest(self) -> Array:
        """The half-width that covers 90 % of the leave-one-out residuals of times (conformal).

        Zero where there are too few to say.
        """
        size = np.sort(np.abs(self.residual), axis=1)
        at = np.ceil((self.count + 1) * 0.9).astype(np.intp)
        half_width = size[np.arange(len(size)), np.minimum(at, self.count) - 1]
        return np.asarray(np.where(at <= self.count, half_width, 0.0))

    def _applies(self, points: Array) -> Mask:
        """Of which kernels at which points (K, k) the domains have something to say: of all everywhere, or where more
        or fewer ranks share them, but not within one domain of kernels whose work is guessed."""
        ranks = points[:, self._column]
        active = self.domains.active(ranks)
        if self.beyond is not None:
            return np.asarray(~(self.beyond.guessed[:, None] & (ranks <= active)))
        return np.asarray(np.broadcast_to(active != self._most, (len(self.kernels), len(points))))

    def crowded(self, points: Array) -> Mask:
        """Where more ranks share a domain than were measured, (k,)."""
        return np.asarray(self.domains.active(in_cores(points, self._parameters)[:, self._column]) > self._most)

    def _inputs(self, points: Array, active: Index) -> Array:
        """What departures depend on."""
        logs = [np.log(np.maximum(points[:, at], 1e-300)) for at in self.varied]
        return np.stack(logs if self.same_active else [np.log(active), *logs], axis=1)

    def _out(self, points: Array) -> Array:
        """How far out of the measured range each point is, in e-folds."""
        low, high = self.trained.T
        out = np.fmax(log_ratio(points, high), log_ratio(low, points))
        return np.asarray(np.sqrt((np.maximum(np.nan_to_num(out, posinf=0.0, neginf=0.0), 0.0) ** 2).sum(axis=1)))

    def _crowded(self, active: Index) -> Array:
        """How uncertain the bandwidth of more ranks in a domain is than were measured, (k,), relative.

        An interface gives a little more to further cores even when it is nearly full, and how much differs by machine.
        """
        most = self._most
        more = np.log(np.minimum(np.maximum(active / most, 1.0), max(self.domains.cores / most, 1.0)))
        return np.asarray(priors.BANDWIDTH_BEYOND[not self.measured.limited] * more)

    def inside(self, points: Array) -> Mask:
        """Which points lie in the measured range."""
        return np.asarray(((points >= self.trained[:, 0]) & (points <= self.trained[:, 1])).all(axis=1))

    def _fits(self) -> bool:
        k, parameters = len(self.kernels), self.counts.parameters
        return (
            len(self.trained) == len(parameters)
            and bool((np.isfinite(self.residual).sum(axis=1) == self.count).all())
            and "ranks" in parameters
            and all(0 <= at < len(parameters) for at in self.varied)
            and self.departure.inputs.shape[1] == len(self.varied) + (not self.same_active)
            and len(self.departure.values) == k
            and set(self.counts.kernels) <= set(self.kernels)
            and loads_of(self.resource) in LEVELS
            and (self.beyond is None or len(self.beyond.scatter) == k)
            and (self.seen is None or len(self.seen.belief) == k)
        )


@dataclass(frozen=True)
class Shared:
    """Times of K kernels at k configurations, (K, k) each, in seconds."""

    time: Quantity
    answers: Mask  # where the law says something
    undetermined: Mask  # where runs inside one domain do not determine others, whatever law is asked
    execution: Array
    transfer: Array
    contention: Array
    """Time in the core, time that its memory traffic adds, and what the other ranks of its domain add to it."""
    other: Array  # what else grows with the ranks (:mod:`ranksight.model.sharing.beyond`)
    busy: Array  # share of the time that the memory interface of the fullest domain is busy
    occupied: Array
    """Share of the time that a rank's bytes take: alone at the bandwidth of a core, and what the others of its domain
    add, no more than the interface is busy; NaN where the traffic was not counted."""
    reads: Array
    """Bytes that a rank reads from memory, or from the cache; NaN where the traffic was not counted."""


def _growth(counts: list[Quantity], before: list[Quantity]) -> list[Array]:
    """By what the logarithms of bytes read and written per unit of work exceed those `before`."""
    work = counts[0].centre - before[0].centre
    return [_finite(now.centre - then.centre - work) for now, then in zip(counts[1:], before[1:], strict=True)]


def _finite(values: Array) -> Array:
    return np.where(np.isfinite(values), values, 0.0)
