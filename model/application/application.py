"""The application's time: the bulk-synchronous sum of its kernels, its communication and its imbalance.

    T_app = sum_k T_k + T_imbalance + BF_comm T_comm + T_others

(Ding et al. 2018, equation 1). T_k are means per rank; T_imbalance is what the fullest rank computes beyond the mean,
as the slowest rank ends a superstep; T_comm is the messages' time on the described network. BF_comm is 1 unless it was
measured. T_others, the start and end of MPI, lies outside the time from MPI_Init to MPI_Finalize and is not predicted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ranksight.errors import InputError
from ranksight.experiment import WHOLE
from ranksight.model.application import whole
from ranksight.model.application.balance import Balance
from ranksight.model.application.breakdown import PARTS, Breakdown
from ranksight.model.application.communication import Communication
from ranksight.model.application.imbalances import Imbalances
from ranksight.model.application.network import Network
from ranksight.model.application.refined import Better, Refined, Refining
from ranksight.model.application.whole import Correlation
from ranksight.model.plaindata import reading
from ranksight.model.resource.pace import Pace, narrower
from ranksight.model.resource.resource import COUNTED, LEVELS, Parts, Resources
from ranksight.model.sharing.caches import SharedCache
from ranksight.model.sharing.demand import loads_of
from ranksight.model.sharing.shared import Shared, Sharing
from ranksight.model.structure.functions import Functions, rows_of
from ranksight.model.structure.staircase import Share
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Application:
    """The parts of an application's time that its evidence carries.

    Attributes
    ----------
    resources : Resources or None
        Kernels whose counters carry the equation.
    communication : Communication or None
        Messages, where they were traced.
    network : Network or None
        What they go over, where it is described.
    imbalance : float
        Largest over mean compute time of a rank, at the measured configuration with most ranks; 1 where times are those
        of the slowest rank already.
    sharing : Sharing or None
        Kernels whose memory traffic was counted, where the domains of the machine are known.
    paces : tuple of Pace
        Kernels whose instructions foretell their time better than time alone does.
    balance : Balance or None
        The imbalance as a function, where ranks were counted one by one and times are means over them.
    imbalances : Imbalances or None
        That of each uneven kernel: which of the kernels it belongs to.
    cached : Sharing or None
        Kernels that a cache serves whose bandwidth cores share; they go by it, not by memory's law.
    cache : SharedCache or None
        What a cache was seen to hold of what the ranks that share it work on.
    """

    resources: Resources | None = None
    communication: Communication | None = None
    network: Network | None = None
    imbalance: float = 1.0
    sharing: Sharing | None = None
    paces: tuple[Pace, ...] = ()
    balance: Balance | None = None
    imbalances: Imbalances | None = None
    cached: Sharing | None = None
    cache: SharedCache | None = None

    @property
    def laws(self) -> tuple[Sharing, ...]:
        """What tells kernels by the bandwidth that ranks share."""
        return tuple(law for law in (self.sharing, self.cached) if law is not None)

    def parts(
        self, points: Array, requirements: Forecast, rows: Mapping[tuple[str, str], int], level: float
    ) -> Parts | None:
        """Times of the kernels that the resource equation tells, of slowest ranks where times are those; see
        :meth:`ranksight.model.resource.resource.Resources.parts`."""
        if self.resources is None:
            return None
        found = self.resources.parts(points, requirements, rows, level)
        if self.imbalances is None or not self.imbalances.held or not self.resources.averaged.any():
            return found
        averaged = self.resources.averaged[:, None]
        ratio, reach = self.imbalances.reaching(self.resources.kernels, points, level)
        return found.times(np.where(averaged, ratio, 1.0), np.where(averaged, reach, 0.0))

    def refine(
        self, said: Forecast, functions: Functions, points: Array, level: float, share: Share | None = None
    ) -> Refined:
        """The forecast of all series with the kernels' times by the equations where their counters carry them.

        Parameters
        ----------
        said : Forecast
            Of the functions.
        points : (k, m)
        share : Share, optional
            What the fullest rank works on, where work comes in whole units.
        """
        rows, told = functions.rows, Refining(said, functions.rows)

        def asked(name: str) -> tuple[Array, Forecast]:
            """Configurations and counts that an equation of a metric is asked with."""
            return (share.points, share.said) if share is not None and name in share.fullest else (points, told.said)

        at, counts = asked("time")
        for pace in self.paces:
            where, work = asked(pace.metric)
            given = pace.forecast(where, rows_of(work, pace.rows(rows)), level)
            told.take(
                given,
                pace.kernels,
                pace.metric,
                pace.evidence,
                lambda given, index, _: narrower(given, rows_of(told.said, index)),
            )
        parts = self.parts(at, counts, rows, level)
        if self.resources is not None and parts is not None:
            borrowed = self.resources.borrowed
            # Where the equation lacks a part, what the times alone say is still an answer, if they were measured.
            told.take(
                parts.forecast(),
                self.resources.kernels,
                "time",
                self.resources.evidence,
                lambda given, index, mine: (
                    (given.status == forecast.OK) | (told.said.status[index] != forecast.OK) | borrowed[mine][:, None]
                ),
            )
        shared = tuple((law, law.forecast(points, level, at)) for law in self.laws)
        for law, found in shared:
            better = self._where_shared(law, told, functions, points)
            told.take(found.time, law.kernels, "time", law.evidence, better)
            told.take(law.cycles(found.time), law.kernels, "cycles", law.evidence, better)
        said = told.said
        if self.cache is not None and self.resources is not None:
            said = self._opened(said, functions, points, counts)
        uneven = np.ones(len(points)) if share is None or "time" in share.fullest else share.unevenness
        return Refined(said, parts, shared, tuple(told.carried), uneven)

    def _where_shared(self, law: Sharing, told: Refining, functions: Functions, points: Array) -> Better:
        """Where a law of shared bandwidth tells more than what is told so far."""

        def better(given: Forecast, index: NDArray[np.intp], mine: NDArray[np.intp]) -> NDArray[np.bool_]:
            # Between measured values a function may follow them more closely than the law does.
            closer = (functions.fitted.press[index] < law.scatter[mine]) & (law.domains == law.measured)
            known = law.inside(points)[None, :] & closer[:, None] & (told.said.status[index] == forecast.OK)
            known |= self.by_cache(law.kernels)[mine, None] & (law is self.sharing)
            # Of two that do not answer, the one that comes nearer.
            now = rows_of(told.said, index)
            with np.errstate(invalid="ignore", divide="ignore"):
                nearer = now.upper / now.lower < given.upper / given.lower
            known |= nearer & (given.status != forecast.OK) & (now.status != forecast.OK)
            answers = np.isfinite(given.value) & ~np.isnan(given.lower) & ~np.isnan(given.upper)
            return np.asarray(answers & ~known & law.tells(points)[mine])

        return better

    def _opened(self, said: Forecast, functions: Functions, points: Array, counts: Forecast) -> Forecast:
        """Times that may rise by what memory takes in the place of a cache that more ranks share than ever did.

        Where stalls were counted these loads wait as the others do; else nothing tells that they do not wait alone.
        """
        assert self.cache is not None
        assert self.resources is not None
        ranks = points[:, functions.fitted.parameters.index("ranks")]
        more, _ = self.cache.spilled(counts, functions.rows, ranks)
        if not more.any():
            return said
        machine, kernels = self.resources.machine, self.resources.kernels
        mine = [at for at, kernel in enumerate(self.cache.kernels) if kernel in kernels]
        index = np.array([functions.rows[self.cache.kernels[at], "time"] for at in mine], dtype=np.intp)
        theirs = np.array([kernels.index(self.cache.kernels[at]) for at in mine], dtype=np.intp)
        told = np.array([self.resources.evidence[at].startswith(COUNTED) for at in theirs], dtype=bool)
        blocked = np.where(told[:, None], self.resources.blocking(points, said.level).upper[theirs], 1.0)
        apart = machine.latencies[-1] - machine.latencies[LEVELS.index(loads_of(self.cache.name))]
        upper, status, reason = said.upper.copy(), said.status.copy(), said.reason.astype(object)
        upper[index] += more[mine] * blocked * apart / machine.frequency
        with np.errstate(invalid="ignore", divide="ignore"):
            factor = np.where(more[mine] > 0, upper[index] / said.lower[index], 1.0)
        status[index], reason[index] = forecast.judged_by_width(factor, status[index], reason[index])
        return replace(said, upper=upper, status=status, reason=reason)

    def by_cache(self, kernels: tuple[str, ...]) -> NDArray[np.bool_]:
        """Which of `kernels` go by a shared cache."""
        return np.isin(np.array(kernels, dtype=object), () if self.cached is None else self.cached.kernels)

    def breakdown(
        self, refined: Refined, functions: Functions, points: Array, shares: Array, rho: Correlation
    ) -> Breakdown:
        """Sum everything up at `points` (k, m).

        Parameters
        ----------
        refined : Refined
            Of the same points, from :meth:`refine`.
        shares : (s,)
            Share of each series in the measured total of its metric.
        rho : Correlation
            Of the kernels' errors.
        """
        said, rows = refined.said, functions.rows
        timed = {kernel: row for (kernel, name), row in rows.items() if name == "time"}
        if len(timed) > 1:  # kernels beside the whole are its parts
            timed.pop(WHOLE, None)
        times = np.array(list(timed.values()), dtype=np.intp)
        summed = whole.add(said, times, shares[times], rho)
        (total,), (low,), (high,), (form,) = summed.value, summed.lower, summed.upper, summed.form
        if self.resources is not None:  # the pace of a run is that of all of its kernels
            factor = np.exp(float(ndtri((1 + said.level) / 2)) * self.resources.unrest)
            own = (high - low) ** 2
            low, high = np.minimum(low, total / factor), np.maximum(high, total * factor)
            form = forecast.form_of((own, form), ((high - low) ** 2 - own, 0.0 * own))
        messages = None
        if self.communication is not None and self.network is not None:
            messages = self.communication.times(points, self.network.fabric(), said.level, self.network.choice)
        callers = () if messages is None or self.communication is None else self.communication.callers
        kernels = tuple(dict.fromkeys((*timed, *callers)))
        place = {kernel: at for at, kernel in enumerate(kernels)}
        names = functions.fitted.parameters
        ranks = points[:, names.index("ranks")] if "ranks" in names else np.full(len(points), np.inf)
        fullest, least, most = self._fullest(refined, timed, points, np.maximum(ranks, 1.0))
        each = self._each(refined, timed, place, points, fullest)
        with np.errstate(invalid="ignore", divide="ignore"):
            down, up = (np.log(total / low), np.log(fullest / least)), (np.log(high / total), np.log(most / fullest))
            total = total * fullest
            low, high = total * np.exp(-np.hypot(*down)), total * np.exp(np.hypot(*up))
        if messages is not None and self.communication is not None:
            np.add.at(each["communication"], [place[name] for name in callers], messages.value)
            sent = messages.value.sum(axis=0)
            down = (messages.value - messages.lower).sum(axis=0)
            up = (messages.upper - messages.value).sum(axis=0)
            theirs = forecast.form_of(*zip((messages.upper - messages.lower) ** 2, messages.form, strict=True))
            form = forecast.form_of(((high - low) ** 2, form), ((down + up) ** 2, theirs))
            low, high = total + sent - np.hypot(total - low, down), total + sent + np.hypot(high - total, up)
            total = total + sent
            self.communication.judge(messages, total, summed.status[0], summed.reason[0])
        ends = {"value": total[None], "lower": low[None], "upper": high[None]}
        summed = whole.judged(replace(summed, form=form[None], noise=1 - form[None], **ends))
        if self.sharing is not None and (messages is None or self.network is None or "inter" not in self.network.table):
            codes, reasons = self.sharing.without_far(points, summed.status[0], summed.reason[0])
            summed = replace(summed, status=codes[None], reason=reasons[None])
        return Breakdown(summed, kernels, each, None if refined.parts is None else refined.parts.blocking)

    def _fullest(
        self, refined: Refined, timed: Mapping[str, int], points: Array, most: Array
    ) -> tuple[Array, Array, Array]:
        """What the fullest rank has over the mean, at `most` (k,), with the ends of its interval, each (k,)."""
        uneven = np.ones(len(points)) if refined.uneven is None else refined.uneven
        if self.imbalances is not None:
            # What kernels were counted to do rank by rank tells more than the sum of a rank's scattering times.
            own = np.nan_to_num(refined.said.value[np.array(list(timed.values()), dtype=np.intp)])
            return (self.imbalances.program(tuple(timed), own, points) * uneven,) * 3
        ends = (self.imbalance,) * 3 if self.balance is None else self.balance.imbalance(points, refined.said.level)
        # No rank does more than all together.
        value, low, high = (np.minimum(end, most) * uneven for end in ends)
        return value, low, high

    def _each(
        self, refined: Refined, timed: Mapping[str, int], place: Mapping[str, int], points: Array, fullest: Array
    ) -> dict[str, Array]:
        """The parts of every kernel at `points`, without messages."""
        each = {name: np.zeros((len(place), len(points))) for name in PARTS}
        times = np.array(list(timed.values()), dtype=np.intp)
        own = np.nan_to_num(refined.said.value[times])
        each["direct"][: len(timed)] = own
        each["imbalance"][: len(timed)] = own * (fullest - 1.0)

        def split(kernels: tuple[str, ...], value: Array, parts: Mapping[str, Array]) -> None:
            """Put the parts of those kernels whose time is the equation's in the place of what stood there."""
            used = np.array([kernel in timed for kernel in kernels])
            index = np.array([timed.get(kernel, -1) for kernel in kernels])
            where = np.array([place.get(kernel, 0) for kernel in kernels])
            here = used[:, None] & np.isclose(value, refined.said.value[index])
            for name in ("direct", *parts):
                part = parts.get(name, 0.0)
                each[name][where] = np.where(here, part, each[name][where])

        if self.resources is not None and refined.parts is not None:
            given = refined.parts
            levels = dict(zip(LEVELS, np.moveaxis(given.memory, 2, 0), strict=True))
            split(self.resources.kernels, given.value, {"execution": given.execution, **levels})
        for law, shared in refined.shared:
            split(law.kernels, shared.time.value, self._shared(law, shared, refined.parts))
        if self.imbalances is not None:
            self._attribute(each, own, tuple(timed), points)
        return each

    def _attribute(self, each: dict[str, Array], own: Array, kernels: tuple[str, ...], points: Array) -> None:
        """Give the imbalance to the kernels that are uneven, or that few ranks have.

        Times of slowest ranks hold it, as do times of the ranks that have a kernel; they give it up.
        """
        assert self.imbalances is not None
        waiting = self.imbalances.parts(kernels, own, points)
        part = self.imbalances.part(kernels, points)
        held = waiting + self.imbalances.left(kernels, own, points)
        left = 1 - held / np.where(own > 0, own, 1.0) if self.imbalances.held else part
        for name in PARTS:
            each[name][: len(kernels)] *= left
        each["imbalance"][: len(kernels)] = waiting + (1 - part) * own

    def _shared(self, law: Sharing, shared: Shared, parts: Parts | None) -> dict[str, Array]:
        """Execution, levels and contention of the kernels that share bandwidth; levels where loads by level tell."""
        found = {name: np.zeros_like(shared.execution) for name in LEVELS}
        found |= {"execution": shared.execution.copy(), loads_of(law.resource): shared.transfer.copy()}
        if self.resources is not None and parts is not None:
            core = shared.execution + shared.transfer
            for at, kernel in enumerate(law.kernels):
                if kernel in self.resources.kernels:
                    row = self.resources.kernels.index(kernel)
                    with np.errstate(invalid="ignore", divide="ignore"):
                        scale = np.nan_to_num(core[at] / parts.value[row])
                    found["execution"][at] = parts.execution[row] * scale
                    for level, name in enumerate(LEVELS):
                        found[name][at] = parts.memory[row, :, level] * scale
        return {**found, "contention": shared.contention, "direct": shared.other}

    def placed(self, placement: str | None, ranks_per_node: int | None, distribution: str | None = None) -> Application:
        """The same application with ranks placed in another way."""
        if distribution is not None and (self.network is None or "inter" not in self.network.table):
            raise InputError(
                "the model knows no network between nodes: how ranks are dealt out to them changes nothing",
                "fit it with --platform NAME from runs that traced messages",
            )
        alone = not self.laws and self.cache is None
        if alone and (placement is not None or (ranks_per_node is not None and self.network is None)):
            raise InputError(
                "the model does not tell what ranks on a node share",
                "fit it with --platform NAME from runs that counted memory traffic",
            )
        sharing, cached = (
            None if law is None else law.placed(placement, ranks_per_node) for law in (self.sharing, self.cached)
        )
        network = None if self.network is None else self.network.placed(ranks_per_node, distribution)
        cache = None if self.cache is None else self.cache.placed(placement, ranks_per_node)
        return replace(self, sharing=sharing, cached=cached, cache=cache, network=network)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        given = ((name, getattr(self, name)) for name in _READ)
        content = {name: part.to_dict() for name, part in given if part is not None}
        paces = {"paces": [pace.to_dict() for pace in self.paces]} if self.paces else {}
        return {"imbalance": self.imbalance, **content, **paces}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Application:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        with reading("'application'"):
            parts = {name: read(content[name]) for name, read in _READ.items() if name in content}
            paces = tuple(Pace.from_dict(given) for given in content.get("paces", ()))
            imbalance = float(content["imbalance"])
        if not 1.0 <= imbalance < np.inf:
            raise InputError(f"'application' is damaged: imbalance {imbalance}", "fit the model again")
        return cls(imbalance=imbalance, paces=paces, **parts)


_READ: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "resources": Resources.from_dict,
    "communication": Communication.from_dict,
    "network": Network.from_dict,
    "sharing": Sharing.from_dict,
    "cached": Sharing.from_dict,
    "cache": SharedCache.from_dict,
    "balance": Balance.from_dict,
    "imbalances": Imbalances.from_dict,
}
"""How each part is read that is there or not."""
