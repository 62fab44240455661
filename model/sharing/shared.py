"""Times of kernels whose traffic to memory or a shared cache was counted, at other numbers of ranks on a node.

    T(ranks, size, ...) = contended(core, memory, ranks in the fullest domain, penalty)

with work and bytes per rank as functions of the parameters (:mod:`ranksight.model.sharing.needs` for the symbols),
and what the law leaves unexplained carried on smoothly (:mod:`ranksight.model.uncertainty.departure`).
Ranks that fill a second domain find a second memory interface: the time of one more full domain is that of the first
with less work a rank, which no function of the number of ranks can say that saw one domain alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.experiment import WHOLE
from ranksight.model import priors
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.plaindata import Stored
from ranksight.model.priors import GROWTH_KEPT
from ranksight.model.resource.equation import LEVELS
from ranksight.model.series.computation import in_cores
from ranksight.model.sharing.beyond import UNDETERMINED, Beyond
from ranksight.model.sharing.demand import MEMORY, loads_of
from ranksight.model.sharing.domains import Domains, needs
from ranksight.model.sharing.needs import times
from ranksight.model.sharing.seen import Seen
from ranksight.model.sharing.traffic import factor
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.departure import Departure
from ranksight.model.uncertainty.forecast import Forecast

WORK, READ, WRITTEN, READ_BY_RANKS = "work", "bytes_mem_read", "bytes_mem_written", "bytes_mem_read by ranks"
"""Series of :attr:`Sharing.counts`: the work, the bytes read (or all, where they were not separated) without what the
occupancy of a domain does to them, the bytes written, and the bytes read as if it did nothing."""
NEVER_LEFT = "all runs fit on one node, and what messages between nodes cost was not seen: measure {ranks} ranks"


@dataclass(frozen=True)
class Sharing(Stored):
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

    def forecast(self, points: Array, level: float = 0.9, share: Array | None = None) -> Shared:
        """Time of every kernel at `points` (k, m) and what it is made of.

        `share` (k, m): where counts are asked, if not at `points`: with the ranks that would all have as much as the
        fullest.
        """
        points = in_cores(np.atleast_2d(np.asarray(points, dtype=np.float64)), self.counts.parameters)
        share = None if share is None else in_cores(share, self.counts.parameters)
        ranks = points[:, self.counts.parameters.index("ranks")]
        active = self.domains.active(ranks)
        counted = points if share is None else share
        said = self.counts.predict(counted, level)
        z = float(special.ndtri((1 + level) / 2))
        given, left = self._shrunk(self._given(said, counted, active, level), points, counted, level)
        if self.seen is not None:
            given = self.seen.take(given, active, ~self.inside(points), z)
        given = [*given, left]
        inputs = tuple(middle for middle, _, _ in given)
        gone, spread = self.departure.at(self._inputs(points, active))
        time, core, busy = self._times(self.mode, inputs, active, gone)
        with np.errstate(invalid="ignore", divide="ignore"):
            moved = [self.mode + STEP * axis for axis in np.eye(4)]
            slope = np.stack([np.log(self._times(mode, inputs, active, gone)[0] / time) / STEP for mode in moved])
            variance = np.einsum("isk,sij,jsk->sk", slope, self.covariance, slope)
            off = np.zeros((2, len(given), *time.shape))
            for at, (middle, below, above) in enumerate(given):
                nudged = tuple(values * (1 + STEP) if i == at else values for i, values in enumerate(inputs))
                gain = np.log(self._times(self.mode, nudged, active, gone)[0] / time) / STEP
                off[:, at] = np.where(middle > 0, gain * np.stack([below, above]), 0.0)
            # At sizes that were not measured, bytes read and written are off together: the same caches hold both.
            both = np.where(self._elsewhere(points), off[:, 1] + off[:, 2], np.hypot(off[:, 1], off[:, 2]))
            down, up = off[:, 0] ** 2 + both**2 + off[:, 3] ** 2
        # What the memory interface alone decides has no other way to go than its traffic, whose own drift is in it.
        drift = priors.DRIFT * self._out(points)[None, :] * (1 - busy)
        reach = special.stdtrit(np.maximum(self.count - 3.0, 2.0)[:, None], (1 + level) / 2)
        scattered = np.fmax(reach * spread, self._farthest(level)[:, None])
        drift += self._crowded(active)[None, :] * busy
        own = reach**2 * variance + scattered**2 + z**2 * (drift**2 + priors.BETWEEN_JOBS**2)
        lower, upper = time * np.exp(-np.sqrt(own + down)), time * np.exp(np.minimum(np.sqrt(own + up), 50.0))
        status, reason = self._judge(said, points, time, lower, upper)
        # Of the counts their own; where and how far the law was not tried is a matter of form, what scattered is not.
        shares = [*(self._of(said, name, "form") for name in (WORK, READ, WRITTEN)), np.ones_like(time)]
        guessed = (z * drift) ** 2
        known = zip((off**2).sum(axis=0) / 2, shares, strict=True)
        form = forecast.form_of(*known, (guessed, np.ones_like(time)), (own - guessed, np.zeros_like(time)))
        answer = Forecast(time, lower, upper, status, reason, form, level)
        if self.beyond is not None:
            answer = self.beyond.take(answer, ranks, self.domains.nodes(ranks), active)
        transfer = np.minimum(self.alone[:, None] * needs(self.domains, inputs[1], inputs[2])[0], core)
        with np.errstate(invalid="ignore", divide="ignore"):
            part = np.nan_to_num(np.minimum(answer.value / time, 1.0), nan=1.0)
        other = np.maximum(np.nan_to_num(answer.value - time), 0.0)
        held = part * (core - transfer), part * transfer, part * (time - core), other
        return Shared(answer, *held, busy, np.where(self._counted, inputs[1], np.nan))

    def _given(self, said: Forecast, at: Array, active: Index, level: float) -> list[tuple[Array, Array, Array]]:
        """Work, bytes read and written, each with the logarithmic distances to its ends, as `said` `at` (k, m)."""
        z = float(special.ndtri((1 + level) / 2))
        given = [self._row(said, WORK), self._reads(said, active, z), self._row(said, WRITTEN)]
        return self._kept(at, given, active, level)

    def _shrunk(
        self, given: list[tuple[Array, Array, Array]], points: Array, at: Array, level: float
    ) -> tuple[list[tuple[Array, Array, Array]], tuple[Array, Array, Array]]:
        """The same with part of what bytes per unit of work grow by beyond the domain that was measured, and the part
        of the time that does not shrink which is left there.

        Runs that fill one domain do not separate the effect of the number of ranks from that of sharing the domain; the
        second is done where the domain is full (:data:`ranksight.model.priors.GROWTH_KEPT`).
        """
        one = np.ones_like(given[0][0])
        column = self.counts.parameters.index("ranks")
        full = self.domains.filling
        out = (points[:, column] > full) & bool(self.trained[column, 1] == full)
        if not out.any():
            return given, (one, 0 * one, 0 * one)
        near, there = points.copy(), at.copy()
        near[:, column], there[:, column] = (np.minimum(each[:, column], full) for each in (points, at))
        active = self.domains.active(near[:, column])
        before = self._given(self.counts.predict(there, level), there, active, level)
        z, found = float(special.ndtri((1 + level) / 2)), [given[0]]
        with np.errstate(invalid="ignore", divide="ignore"):
            less = np.log(given[0][0] / before[0][0])
            less = np.where(out & np.isfinite(less), less, 0.0)
            for (middle, below, above), (then, _, _) in zip(given[1:], before[1:], strict=True):
                grown = np.log(middle / then) - less
                grown = np.where(out & np.isfinite(grown), grown, 0.0)
                between = z * np.sqrt(GROWTH_KEPT * (1 - GROWTH_KEPT)) * np.abs(grown)
                middle = middle * np.exp((GROWTH_KEPT - 1) * grown)
                found.append((middle, np.hypot(below, between), np.hypot(above, between)))
        # What is most of the time was seen not to shrink from one rank on, however full the domain is.
        alone = np.exp(np.clip(self.mode[:, 3:4], -700, 700)) * self.floor[:, None]
        time = self._times(self.mode, (*(each[0] for each in before), one), active, 0 * one)[0]
        share = np.clip(np.divide(alone, time, out=0 * one, where=time > 0), 0.0, 1.0)
        part = (1 - GROWTH_KEPT) * (1 - share)
        between = z * np.sqrt(part * (1 - part)) * np.abs(less)
        return found, (np.exp(part * less), between, between)

    def _times(self, mode: Array, inputs: tuple[Array, ...], active: Index, gone: Array) -> tuple[Array, Array, Array]:
        """Time, time alone, and how busy the interface is, for work, reads, writes and what of the time that does not
        shrink is left, and departures from the law."""
        work, reads, writes, left = inputs
        floor = self.floor[:, None] * left
        transfer, domain = needs(self.domains, reads, writes)
        transfer, off = self.alone[:, None] * transfer, np.exp(np.clip(gone, -20, 20))
        before, after = (off, 1.0) if self.same_active else (1.0, off)
        time, busy = times(mode, work * before, transfer, domain, floor, active)
        core, _ = times(mode, work * before, transfer, domain, floor, np.ones_like(active))
        return time * after, core * after, busy

    def _of(self, said: Forecast, name: str, which: str) -> Array:
        """An array of the forecast of one count of all kernels (K, k), zero where a kernel has none."""
        rows = self.counts.rows
        index = np.array([rows.get((kernel, name), -1) for kernel in self.kernels])
        return np.where(index[:, None] >= 0, getattr(said, which)[index], 0.0)

    def _row(self, said: Forecast, name: str) -> tuple[Array, Array, Array]:
        """One count of all kernels, zero where a kernel has none, and the logarithmic distances to its ends."""
        middle, low, high = (self._of(said, name, end) for end in ("value", "lower", "upper"))
        with np.errstate(invalid="ignore", divide="ignore"):
            below = np.log(middle / np.where(low > 0, low, np.nan))
            above = np.log(np.where(high > 0, high, np.nan) / middle)
        known = middle > 0
        below, above = (np.where(known, np.nan_to_num(x, nan=50.0, posinf=50.0), 0.0) for x in (below, above))
        return np.asarray(middle), np.asarray(below), np.asarray(above)

    def _reads(self, said: Forecast, active: Index, z: float) -> tuple[Array, Array, Array]:
        """Bytes read, between what the domain and what the ranks explain, by how sure the first is."""
        domain, ranks = self._row(said, READ), self._row(said, READ_BY_RANKS)
        first = domain[0] * factor(self.effect, active, self.domains.cores)
        belief = self.belief[:, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            apart = np.where((first > 0) & (ranks[0] > 0), np.log(ranks[0] / first), 0.0)
        middle = first * np.exp((1 - belief) * apart)
        between = belief * (1 - belief) * (z * apart) ** 2
        below, above = (
            np.sqrt(belief * domain[side] ** 2 + (1 - belief) * ranks[side] ** 2 + between) for side in (1, 2)
        )
        return middle, below, above

    def _kept(
        self, points: Array, given: list[tuple[Array, Array, Array]], active: Index, level: float
    ) -> list[tuple[Array, Array, Array]]:
        """Bytes at other sizes than were measured may also be as many per unit of work as at the nearest measured one.

        Traffic that grows faster than the work does so as caches are outgrown, and no longer when they are.
        """
        if not self._elsewhere(points).any():
            return given
        near = np.where(self._others, np.clip(points, *self.trained.T), points)
        said = self.counts.predict(near, level)
        before = [self._row(said, WORK), self._reads(said, active, 0.0), self._row(said, WRITTEN)]
        found = [given[0]]
        for (middle, below, above), (there, _, _) in zip(given[1:], before[1:], strict=True):
            with np.errstate(invalid="ignore", divide="ignore"):
                apart = np.log(there * given[0][0] / before[0][0] / middle)
            apart = np.where(np.isfinite(apart), apart, 0.0)
            found.append((middle, np.hypot(below, np.minimum(apart, 0.0)), np.hypot(above, np.maximum(apart, 0.0))))
        return found

    @property
    def _counted(self) -> Mask:
        """Of which kernels the traffic was counted, (K, 1)."""
        if self.beyond is None:
            return np.ones((len(self.kernels), 1), dtype=bool)
        return np.asarray(~self.beyond.guessed[:, None])

    @property
    def _others(self) -> Mask:
        """Which parameters are not the ranks, (m,)."""
        return np.array([name != "ranks" for name in self.counts.parameters])

    def _elsewhere(self, points: Array) -> Mask:
        """Which points (k, m) lie outside of what was measured of the other parameters, (k,)."""
        out = (points < self.trained[:, 0]) | (points > self.trained[:, 1])
        return np.asarray((out & self._others).any(axis=1))

    def _farthest(self, level: float) -> Array:
        """The half-width that covers the share `level` of the leave-one-out residuals of times (conformal).

        Zero where there are too few to say.
        """
        size = np.sort(np.abs(self.residual), axis=1)
        at = np.ceil((self.count + 1) * level).astype(np.intp)
        found = size[np.arange(len(size)), np.minimum(at, self.count) - 1]
        return np.asarray(np.where(at <= self.count, found, 0.0))

    def applies(self, points: Array) -> Mask:
        """Of which kernels at which points (K, k) the domains have something to say: of all everywhere, or where more
        or fewer ranks share them, but not within one domain of kernels whose work is guessed."""
        points = in_cores(points, self.counts.parameters)
        column = self.counts.parameters.index("ranks")
        active = self.domains.active(points[:, column])
        if self.beyond is not None:
            return ~self.beyond.silent(points[:, column], active)
        other = active != self.measured.active(self.trained[[column], 1])[0]
        return np.asarray(np.broadcast_to(other, (len(self.kernels), len(points))))

    def refused(self, time: Forecast) -> Mask:
        """Where `time` (K, k), of this law, was not predicted: runs inside one domain do not determine others."""
        return np.asarray(time.reason == UNDETERMINED, dtype=bool)

    def crowded(self, points: Array) -> Mask:
        """Where more ranks share a domain than were measured, (k,)."""
        points = in_cores(points, self.counts.parameters)
        column = self.counts.parameters.index("ranks")
        most = self.measured.active(self.trained[[column], 1])[0]
        return np.asarray(self.domains.active(points[:, column]) > most)

    def _inputs(self, points: Array, active: Index) -> Array:
        """What departures depend on."""
        found = [np.log(np.maximum(points[:, at], 1e-300)) for at in self.varied]
        return np.stack(found if self.same_active else [np.log(active), *found], axis=1)

    def _out(self, points: Array) -> Array:
        """How far out of the measured range each point is, in e-folds."""
        low, high = self.trained.T
        with np.errstate(divide="ignore", invalid="ignore"):
            out = np.fmax(np.log(points / high), np.log(low / points))
        return np.asarray(np.sqrt((np.maximum(np.nan_to_num(out, posinf=0.0, neginf=0.0), 0.0) ** 2).sum(axis=1)))

    def _crowded(self, active: Index) -> Array:
        """How uncertain the bandwidth of more ranks in a domain is than were measured, (k,), relative.

        An interface gives a little more to further cores even when it is nearly full, and how much differs by machine.
        """
        most = self.measured.active(self.trained[[self.counts.parameters.index("ranks")], 1])[0]
        more = np.log(np.minimum(np.maximum(active / most, 1.0), max(self.domains.cores / most, 1.0)))
        return np.asarray(priors.BANDWIDTH_BEYOND[self.measured.domain is None] * more)

    def inside(self, points: Array) -> Mask:
        """Which points lie in the measured range."""
        return np.asarray(((points >= self.trained[:, 0]) & (points <= self.trained[:, 1])).all(axis=1))

    def without_far(self, points: Array, status: Index, reason: NDArray[Any]) -> tuple[Index, NDArray[Any]]:
        """Status and reason (..., k) of times with messages, insufficient on several nodes where runs left none."""
        return self._without_far(in_cores(points, self.counts.parameters), status, reason)

    def _without_far(self, points: Array, status: Index, reason: NDArray[Any]) -> tuple[Index, NDArray[Any]]:
        """:meth:`without_far` at points whose ranks are cores."""
        column = self.counts.parameters.index("ranks")
        far = self.domains.nodes(points[:, column]) > 1
        far = far & (self.measured.nodes(self.trained[[column], 1]) <= 1) & (status == forecast.OK)
        never = NEVER_LEFT.format(ranks=2 * self.domains.ranks_per_node)
        return np.where(far, forecast.WIDE, status).astype(np.intp), np.where(far, never, reason)

    def _judge(
        self, said: Forecast, points: Array, time: Array, lower: Array, upper: Array
    ) -> tuple[Index, NDArray[Any]]:
        status = np.full(time.shape, forecast.OK, dtype=np.intp)
        reason = np.full(time.shape, "", dtype=object)
        unknown = np.isin(said.status, forecast.INSUFFICIENT)
        for row in np.flatnonzero(unknown.any(axis=1)):
            at, name = self.kernels.index(self.counts.kernels[row]), self.counts.metrics[row]
            bad = unknown[row] & (status[at] == forecast.OK)
            status[at] = np.where(bad, said.status[row], status[at])
            reason[at] = np.where(bad, [f"{name}: {text}" for text in said.reason[row]], reason[at])
        if WHOLE in self.kernels:
            at = self.kernels.index(WHOLE)
            status[at], reason[at] = self._without_far(points, status[at], reason[at])
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = upper / lower
        return forecast.judged_by_width(ratio, status, reason)

    def placed(self, placement: str | None, ranks_per_node: int | None) -> Sharing:
        """The same kernels with ranks placed in another way."""
        return replace(self, domains=self.domains.placed(placement, ranks_per_node))

    def _fits(self) -> bool:
        k, parameters = len(self.kernels), self.counts.parameters
        shapes = {
            "mode": (k, 4), "covariance": (k, 4, 4), "count": (k,), "floor": (k,), "alone": (k,),
            "effect": (k, 2), "belief": (k,), "trained": (len(parameters), 2),
        }  # fmt: skip
        arrays = {name: getattr(self, name) for name in shapes}
        return (
            all(arrays[name].shape == shape and np.isfinite(arrays[name]).all() for name, shape in shapes.items())
            and self.clock.shape == (k,)
            and self.residual.ndim == 2
            and bool((np.isfinite(self.residual).sum(axis=1) == self.count).all() and (self.count >= 1).all())
            and len(self.evidence) == k
            and "ranks" in parameters
            and all(0 <= at < len(parameters) for at in self.varied)
            and self.departure.inputs.shape[1] == len(self.varied) + (not self.same_active)
            and len(self.departure.values) == k
            and set(self.counts.kernels) <= set(self.kernels)
            and loads_of(self.resource) in LEVELS
            and (self.beyond is None or len(self.beyond.scatter) == k)
            and (self.seen is None or len(self.seen.belief) == k)
        )


STEP = 1e-4
"""Step of the derivatives, relative."""


@dataclass(frozen=True)
class Shared:
    """Times of K kernels at k configurations, in seconds."""

    time: Forecast
    execution: Array  # (K, k)
    transfer: Array  # (K, k)
    contention: Array  # (K, k)
    """Time in the core, time that its memory traffic adds, and what the other ranks of its domain add to it."""
    other: Array  # (K, k): what else grows with the ranks (:mod:`ranksight.model.sharing.beyond`)
    busy: Array  # (K, k): share of the time that the memory interface of the fullest domain is busy
    reads: Array  # (K, k)
    """Bytes that a rank reads from memory, or from the cache; NaN where the traffic was not counted."""
