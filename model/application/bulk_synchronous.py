"""The application's time: the bulk-synchronous sum of its kernels, its communication and its imbalance.

    T_app = sum_k T_k + T_imbalance + BF_comm T_comm + T_others

(Ding et al. 2018, equation 1). T_k are means per rank; T_imbalance is what the busiest rank computes beyond the mean,
as the slowest rank ends a superstep; T_comm is the messages' time on the described network. T_others is what the
program takes outside of all that (:mod:`ranksight.model.application.others`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE
from ranksight.core.leftout import MPI
from ranksight.core.mpi import communicates, handles_files
from ranksight.core.records import dataclass
from ranksight.model.application.balance import Balance
from ranksight.model.application.breakdown import Refined, Terms, terms_of
from ranksight.model.application.communication import NO_COMMUNICATION, Communication
from ranksight.model.application.exchanged import farther, first_step_note
from ranksight.model.application.imbalances import Imbalances
from ranksight.model.application.moved import UNMOVED, Moved
from ranksight.model.application.network import NO_NETWORK, Network
from ranksight.model.application.node import NO_NODE, Node
from ranksight.model.application.others import Others
from ranksight.model.application.runs import NO_RUNS, Runs
from ranksight.model.kernel_time.counted import NO_KERNELS, Counted, timed_alone
from ranksight.model.laws.law import BANDWIDTH, CACHE, CONSTANT_CPI, COUNTED, FUNCTION, MESSAGES
from ranksight.model.laws.stacking import PRIOR, Weights
from ranksight.model.laws.together import Laws, methods
from ranksight.model.laws.view import Asked, Fits
from ranksight.model.plaindata import Part, Stored
from ranksight.model.resource.equation import LEVELS, NO_RESOURCES, Resources
from ranksight.model.series.computation import PROGRAM, cores
from ranksight.model.sharing.caches import NO_CACHE, SharedCache
from ranksight.model.sharing.demand import loads_of
from ranksight.model.sharing.shared import Sharing
from ranksight.model.structure.functions import Functions
from ranksight.model.structure.wholeunits import Share
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.model.uncertainty.rows import choose, rows_of

if TYPE_CHECKING:
    from ranksight.comm.topology.shape import Topology
    from ranksight.model.application.exchanged import Replay
    from ranksight.model.messages.message_model import Messages

ENDS = ("value", "lower", "upper")


@dataclass(frozen=True)
class Application(Stored):
    """The parts of an application's time that its evidence carries."""

    laws: Fits = field(default_factory=Fits)  # what laws of kernels' times learned
    communication: Communication = NO_COMMUNICATION  # messages, where they were traced
    network: Network = NO_NETWORK  # what they go over
    imbalance: float = 1.0
    """Largest over mean compute time of a rank, at the measured configuration with most ranks; 1 where times are those
    of the slowest rank already."""
    weights: Weights = PRIOR  # of the laws of each kernel's time beyond the runs
    inside: Weights = PRIOR  # the same between them
    others: Others | None = None
    """What the program takes outside of its kernels and messages; None where its time was not measured as theirs
    were."""
    balance: Balance | None = None
    """The imbalance as a function, where ranks were counted one by one and times are means over them."""
    imbalances: Imbalances | None = None  # that of each uneven kernel: which of the kernels it belongs to
    cache: SharedCache = NO_CACHE  # what a cache was seen to hold of what the ranks that share it work on
    nested: bool = False
    """Whether the kernels' times contain each other, so that the program is its own time and no sum of them."""
    node: Node = NO_NODE  # cores of a node and ranks on them
    runs: Runs = NO_RUNS  # kernels' times as measured, placed as they were
    clock_spread: float = 0.0
    """Standard deviation of the logarithm of the clock, where times were made of cycles with one that no run shows."""
    machine: Moved = UNMOVED  # how times differ on the machine asked for

    @property
    def resources(self) -> Resources:
        """The equation of kernels whose stalls were not counted."""
        return self.laws.by(CONSTANT_CPI) or NO_RESOURCES

    @property
    def counted(self) -> Counted:
        """The counted equation and the cost per unit of work of every kernel."""
        return self.laws.by(COUNTED) or NO_KERNELS

    @property
    def sharing(self) -> Sharing | None:
        """Kernels whose memory traffic was counted, where the domains of the machine are known."""
        sharing: Sharing | None = self.laws.by(BANDWIDTH)
        return sharing

    @property
    def cached(self) -> Sharing | None:
        """Kernels that a cache serves whose bandwidth cores share; they go by it, not by memory's law."""
        cached: Sharing | None = self.laws.by(CACHE)
        return cached

    def with_laws(self, **learned: Any) -> Application:
        """The same where laws learned something else, by the parts they keep it under; None drops a part."""
        return replace(self, laws=self.laws.having(**learned))

    @property
    def replay(self) -> tuple[Replay, Messages] | None:
        """The replay that counts in the communication time, and the messages it is of; None where none does."""
        return self.communication.replay if self.network else None

    @property
    def pace(self) -> float:
        """Standard deviation of the logarithm of what all times of a run have in common."""
        return float(np.hypot(self.clock_spread, self.resources.run_to_run))

    @property
    def known(self) -> bool:
        """Whether anything but functions is known of the application's time."""
        plain = ("laws", "weights", "inside", "imbalance", "nested", "node", "runs", "clock_spread")
        parts = (getattr(self, each.name) is not each.default for each in fields(self) if each.name not in plain)
        return self.imbalance > 1 or self.nested or bool(self.laws) or any(parts)

    @property
    def parts(self) -> dict[str, Part]:
        """The parts that are there, by name."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: part for name, part in values.items() if isinstance(part, Part) and part}

    def remarks(self, points: Array) -> list[str]:
        """What the parts say of answers at `points` (k, m)."""
        # Where the imbalance is that of each kernel, the times have that one.
        parts = [part for part in self.parts.values() if part is not self.balance or self.imbalances is None]
        texts = [text for part in parts for text in part.remarks(points)]
        if not self.counted or not (where := self.counted.where).leaves(points).any():
            return texts
        return [*texts, first_step_note(2 * where.domains.ranks_per_node)]

    @property
    def shared(self) -> tuple[Sharing, ...]:
        """The laws that predict kernels by the bandwidth that ranks share."""
        return tuple(law for law in (self.sharing, self.cached) if law is not None)

    def refine(self, predicted: Forecast, functions: Functions, points: Array, share: Share) -> Refined:
        """The forecast of all series with the kernels' times by the equations where their counters carry them.

        `predicted`: of the functions. `points` (k, m). `share`: what the busiest rank works on.
        """
        rows = functions.rows
        timed = {kernel: row for (kernel, name), row in rows.items() if name == "time"}
        if timed and self.machine:
            predicted = self.machine.of_functions(predicted, timed, points, functions.fitted.parameters)
        asked = self.asked(predicted, functions, points, share)
        laws = Laws.of(asked, self.pace)
        if self.machine:
            self.machine.laws(laws, points, functions.fitted.parameters)
        uneven = np.ones(len(points)) if "time" in share.busiest else share.unevenness
        if not timed:
            return Refined(predicted, uneven)
        self._leave(laws, points, functions)
        laws.leave_vague(self.weights)
        index = np.array(list(timed.values()), dtype=np.intp)
        near = functions.fitted.inside(points)[index]
        mixed, names, weights = laws.mixed(predicted, timed, self.weights, self.inside, near)
        if not (self.communication and "inter" in self.network.table):
            of_messages = np.array([self.sends(each) for each in timed])
            of_all = np.array([not self.communication and each in PROGRAM for each in timed])
            mixed = self.first_step(mixed, of_messages, of_all, points)
        if self.node:
            mixed = self.node.longer(mixed, points, functions.fitted.parameters)
        if self.machine:
            mixed = self.machine.near(mixed, tuple(timed), points)
        everywhere = np.ones(mixed.value.shape, dtype=bool)
        predicted = choose(predicted, mixed, index, everywhere)
        predicted = self._no_longer_than_others(predicted, timed, points, functions.fitted.parameters)
        predicted = self.runs.met(predicted, points, timed, self.pace)
        mixed = rows_of(predicted, index)
        predicted = self._cycles(predicted, mixed, timed, asked)
        terms = terms_of(self.counted, self.resources, asked, mixed, timed)
        if self.cache.kernels and terms.kernels:
            predicted = self._opened(predicted, functions, points, share.said, terms)
        texts = methods(names, weights, laws.details(tuple(timed)))
        first = np.array([name == FUNCTION for name in names], dtype=bool)[weights.argmax(axis=0)]
        by_law = ((index, laws.weight(FUNCTION, weights) < 1, texts, first),)
        times_of_kernels = rows_of(predicted, index).value
        seconds = laws.split(tuple(timed), times_of_kernels, names, weights)
        split = {name: dict(zip(timed, part, strict=True)) for name, part in seconds.items()}
        quantities = {
            name: dict(zip(timed, values, strict=True))
            for name, values in laws.taken(tuple(timed), names, weights).items()
        }
        return Refined(predicted, uneven, by_law, terms, split, quantities)

    def _leave(self, laws: Laws, points: Array, functions: Functions) -> None:
        """Leave configurations of other memory domains, or with more ranks in one, to laws that know of bandwidth.

        Runs that filled one domain show the ranks' share of it and of the work at once, which part further on. Times
        alone do not say which of them it is: a function of time that knows of domains has both, and stays.
        """
        if not self.counted and not self.shared:
            return
        alone, shared = timed_alone(functions), laws.having("shares")
        for law in self.shared:
            laws.leave(shared, law.crowded(points), alone)
        if self.counted:
            laws.leave(laws.having("counts"), self.counted.where.spreads(points), alone)

    def sends(self, kernel: str) -> bool:
        """Whether the time of a kernel is known to be that of messages."""
        return not handles_files(kernel) and (communicates(kernel) or kernel in self.laws.kernels(MESSAGES))

    def first_step(self, times: Forecast, messages: Mask, programs: Mask, points: Array) -> Forecast:
        """Times (s, k) of `messages` (s,), and of `programs` (s,) that send some, as uncertain where they go between
        nodes for the first time as such a step is."""
        if not self.counted or not (far := self.counted.where.leaves(points)).any():
            return times
        ranks = 2 * self.counted.where.domains.ranks_per_node
        return farther(times, (messages | programs)[:, None] & far, messages, ranks)

    def unwaited(self, points: Array, parameters: tuple[str, ...]) -> Forecast | None:
        """Seconds of communication that are no waiting, one row; None where that is not known."""
        law = None if self.imbalances is None else self.imbalances.unwaited
        if law is None:
            return None
        rest = law.at(points)
        if self.machine:
            rest = self.machine.of_functions(rest, {MPI: 0}, points, parameters)
        every = np.ones(1, dtype=bool)
        return rest if self.communication else self.first_step(rest, every, ~every, points)

    def _no_longer_than_others(
        self, predicted: Forecast, timed: Mapping[str, int], points: Array, parameters: tuple[str, ...]
    ) -> Forecast:
        """Times of communication, in which no rank waits longer than others compute."""
        rest = self.unwaited(points, parameters)
        calls = np.array([row for kernel, row in timed.items() if communicates(kernel)], dtype=np.intp)
        computing = [row for kernel, row in timed.items() if kernel != WHOLE and not communicates(kernel)]
        if rest is None or not len(calls) or not computing:
            return predicted
        waiting = rows_of(predicted, calls)
        most = {name: getattr(predicted, name)[computing].sum(axis=0) + getattr(rest, name) for name in ENDS}
        ends = {name: np.fmin(getattr(waiting, name), most[name]) for name in ENDS}
        shorter = waiting.upper > ends["upper"]
        status = np.where(shorter & (waiting.status == forecast.WIDE), forecast.OK, waiting.status)
        reason = np.where(status == waiting.status, waiting.reason, "")
        bounded = replace(waiting, **ends, status=status, reason=reason).judged()
        return choose(predicted, bounded, calls, shorter | (waiting.value > ends["value"]))

    def asked(self, predicted: Forecast, functions: Functions, points: Array, share: Share) -> Asked:
        """What laws are asked for the kernels' times; parameters as of :meth:`refine`."""
        at, counts = (share.points, share.said) if "time" in share.busiest else (points, predicted)
        uneven, slowest = self.imbalances, None
        if uneven is not None and uneven.held and uneven.averaged:
            slowest = partial(uneven.reaching, points=at)
        return Asked(functions.fitted.parameters, points, functions.rows, predicted, counts, at, self.laws, slowest)

    def _cycles(self, predicted: Forecast, mixed: Forecast, timed: Mapping[str, int], asked: Asked) -> Forecast:
        """Cycles of kernels whose time a counted equation or shared bandwidth predicts: that time at its clock."""
        clock = np.full(mixed.value.shape, np.nan)
        place = {kernel: at for at, kernel in enumerate(timed)}
        for law in self.shared:
            clock[[place[kernel] for kernel in law.kernels]] = law.clock[:, None]
        if self.counted:
            known = np.flatnonzero(np.isfinite(self.counted.offset))
            chosen = [place[self.counted.kernels[at]] for at in known]
            clock[chosen] = np.exp(asked.counted.clock.centre - self.counted.offset[known][:, None])
            if asked.slowest is not None:  # whose cycles are more, at the same clock
                clock[chosen] /= asked.slowest(self.counted.kernels)[0][known]
        chosen = [
            at for kernel, at in place.items() if (kernel, "cycles") in asked.rows and np.isfinite(clock[at]).all()
        ]
        kernels = list(timed)
        index = np.array([asked.rows[kernels[at], "cycles"] for at in chosen], dtype=np.intp)
        of_times = rows_of(mixed, np.array(chosen, dtype=np.intp))
        ends = {name: getattr(of_times, name) * clock[chosen] for name in ("value", "lower", "upper")}
        return choose(predicted, replace(of_times, **ends), index, of_times.status == forecast.OK)

    def _opened(
        self, predicted: Forecast, functions: Functions, points: Array, counts: Forecast, terms: Terms
    ) -> Forecast:
        """Times that may rise by what memory takes in the place of a cache that more ranks share than ever did.

        Where stalls were counted these loads wait as the others do; otherwise each may wait alone.
        """
        at_work = cores(points, functions.fitted.parameters)
        more, _ = self.cache.spilled(counts, functions.rows, at_work)
        if not more.any():
            return predicted
        chosen = [at for at, kernel in enumerate(self.cache.kernels) if kernel in terms.kernels]
        index = np.array([functions.rows[self.cache.kernels[at], "time"] for at in chosen], dtype=np.intp)
        theirs = np.array([terms.kernels.index(self.cache.kernels[at]) for at in chosen], dtype=np.intp)
        blocked = np.where(terms.counted[theirs][:, None], np.fmin(terms.blocking.upper[theirs], 1.0), 1.0)
        longer = terms.latencies[-1] - terms.latencies[LEVELS.index(loads_of(self.cache.name))]
        upper, status, reason = predicted.upper.copy(), predicted.status.copy(), predicted.reason.astype(object)
        upper[index] += more[chosen] * blocked * longer / terms.clock.value[theirs]
        with np.errstate(invalid="ignore", divide="ignore"):
            factor = np.where(more[chosen] > 0, upper[index] / predicted.lower[index], 1.0)
        status[index], reason[index] = forecast.judged_by_width(factor, status[index], reason[index])
        return replace(predicted, upper=upper, status=status, reason=reason)

    def placed(
        self,
        placement: str | None,
        ranks_per_node: int | None,
        distribution: str | None = None,
        topology: Topology | None = None,
    ) -> Application:
        """The same application with ranks placed in another way, or on a network of another shape."""
        if topology is not None:
            if not self.communication or "inter" not in self.network.table:
                raise InputError(
                    "the model knows no network between nodes: its topology changes nothing",
                    "fit it with --platform FILE whose [network.inter] is described, from runs that traced messages",
                )
            other = self.network.shaped(topology)
            shaped = replace(self, network=other, communication=self.communication.on(other))
            return shaped.placed(placement, ranks_per_node, distribution)
        if distribution is not None and "inter" not in self.network.table:
            raise InputError(
                "the model knows no network between nodes: the distribution of ranks over nodes changes nothing",
                "fit it with --platform NAME from runs that traced messages",
            )
        known = self.shared or self.cache.kernels or self.counted.where.domains or self.machine
        if not known and (placement is not None or (ranks_per_node is not None and not self.network)):
            raise InputError(
                "the model does not know what ranks on a node share",
                "fit it with --platform NAME from runs that counted memory traffic",
            )
        network = self.network.placed(ranks_per_node, distribution)
        moved: dict[str, Any] = {name: part.placed(placement, ranks_per_node) for name, part in self.parts.items()}
        return replace(self, network=network, **moved)

    def with_algorithms(self, algorithms: Mapping[str, str]) -> Application:
        """The same where collectives are done by these algorithms; InputError where there is no network."""
        if not self.communication or not self.network:
            raise InputError(
                "the model has no network: algorithms of collectives change nothing",
                "fit it with --platform NAME from runs that traced messages",
            )
        network = self.network.stating(algorithms)
        return replace(self, network=network, communication=self.communication.on(network))

    def _fits(self) -> bool:
        return 1.0 <= self.imbalance < np.inf
