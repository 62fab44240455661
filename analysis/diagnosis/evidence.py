"""What a model knows of its kernels at some configurations, as a diagnosis needs it: one array a quantity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ranksight.analysis.diagnosis import counted, few, outside, topdown
from ranksight.analysis.diagnosis.ceilings import Ceilings
from ranksight.core.arrays import Array, Index, Mask, ratio
from ranksight.core.experiment import WHOLE
from ranksight.core.mpi import communicates, handles_files
from ranksight.core.records import dataclass
from ranksight.model.application.breakdown import Breakdown
from ranksight.model.application.bulk_synchronous import Application
from ranksight.model.laws.together import OCCUPIED
from ranksight.model.resource.equation import LEVELS
from ranksight.model.series.computation import cores
from ranksight.model.sharing.demand import loads_of
from ranksight.model.uncertainty.forecast import IMPUTED, INSUFFICIENT, OK, Forecast

if TYPE_CHECKING:
    from ranksight.model.fitted_model import Model

FARTHEST = 100.0
"""Ratio of the ends of an interval up to which it can still be compared with another."""
MEMORY = ("memory_pss", "memory_peak")
"""Metrics of how much memory a rank holds, the one that counts shared pages once first."""
_WAITED = ("imbalance", "communication")
"""Parts of a kernel's time in which a rank waits or communicates."""


@dataclass(frozen=True)
class Evidence:
    """K kernels at k configurations; NaN where something is not known."""

    kernels: tuple[str, ...]
    parameters: tuple[str, ...]
    points: Array  # (k, m)
    broken: Breakdown  # its parts as those of the ranks that have a kernel
    computing: Array  # (K, k)
    imbalance: Array  # (K, k)
    communication: Array  # (K, k)
    """Seconds a rank; `computing` is the mean of the ranks that have the kernel, as are counts."""
    having: Array  # (K, k): part of all ranks that have the kernel
    shared: Array  # (3, K, k)
    """Seconds of `computing` that a rank's counted bytes take at the bandwidth of a cache (L2, L3) or memory that cores
    were measured to share; 0 where that is unknown (:mod:`ranksight.model.sharing`)."""
    low: Array  # (K, k)
    high: Array  # (K, k)
    """90 % interval of `computing`; of kernels of MPI, what their time may be less or more."""
    ok: Mask  # (K, k): whether the data are sufficient to predict the kernel's time
    reason: NDArray[np.object_]  # (K, k)
    sufficient: Mask  # (K, k)
    """Whether the interval of the kernel's time is usable: there are enough runs, of the parameters asked for, or runs
    of the very configuration."""
    counted_ok: Mask  # (K, k): whether the data suffice for the kernel's count of instructions
    instructions: Array  # (K, k): a rank
    flops: Array  # (K, k)
    fetched: Array  # (3, K, k): bytes that a rank reads from L2, L3 and memory, at least, by counters of their traffic
    loads: Array  # (4, K, k): served by the first, second and third cache level and memory
    stores: Array  # (3, K, k): stores that the second, the third level and memory served; 0 where they were not counted
    stalled: Array  # (K, k): part of the slots bound by memory, by the top-down method
    cpi: Array  # (K, k): CPI without the stalls of the equation, at each configuration
    minimum_wait: Array  # (K,): cycles that loads may wait, per instruction, where memory asked least
    factor: Array  # (K, k): BF_mem
    factor_error: Array  # (K, k): its standard error
    counted: Mask  # (K,): whether stalls were counted
    source: tuple[str, ...]  # what each kernel's parts were inferred from
    ceilings: Ceilings | None
    memory: Array | None = None  # (3, k)
    """Bytes that a rank holds, and the ends of their interval; None where it was not measured."""
    together: float = 1.0
    """Part of what slowest ranks take beyond the mean that is in `imbalance`; the rest others wait inside of
    kernels."""
    ratio: Array | None = None  # (K, k): work of the busiest rank of a kernel over the mean of all; NaN of even kernels
    slowest: tuple[str, ...] = ()  # the class of ranks that the program waits for, (k,); empty where it is not known
    imputed: Mask | None = None  # (K, k): whether no sample fell on a kernel, so that its time is assumed
    samples: Array | None = None  # (K, k)
    """The fewest samples behind the kernel's time and counts, those of the level that it waits for most among them;
    infinite where nothing of it was sampled, None where nothing of any kernel was."""
    message_ends: Array | None = None  # (2, K, k)
    """How much less and more than `communication` messages may take, seconds, the first not positive; None where it is
    not known."""
    running: Array | None = None
    """Part of its time (K, k) that each kernel has cycles, see :func:`ranksight.analysis.diagnosis.outside.running`."""
    least_instructions: Array | None = None  # (K, k)
    """Lower end of the interval of `instructions`; None where it is not known."""
    drawn: tuple[Evidence, ...] = ()
    """The same, drawn again and again as samples may have fallen; none where nothing was sampled."""

    @property
    def ranks(self) -> Array:
        """Number of ranks at each configuration, (k,); 1 where the model has no such parameter."""
        if "ranks" not in self.parameters:
            return np.ones(len(self.points))
        return np.asarray(self.points[:, self.parameters.index("ranks")], dtype=np.float64)

    @property
    def cores(self) -> Array:
        """Cores at work at each configuration, (k,): ranks times threads."""
        return cores(self.points, self.parameters)

    @property
    def frequency(self) -> float:
        """Clock in Hz; NaN where no machine is known."""
        return float("nan") if self.ceilings is None else self.ceilings.frequency

    @property
    def blocking(self) -> Array:
        """BF_mem as people read it, (K, k): what brings the equation to a shorter time is no share of latencies."""
        return np.maximum(self.factor, 0.0)

    @property
    def mean(self) -> Array:
        """Seconds of computing of the mean of all ranks, (K, k)."""
        return self.computing * self.having

    @property
    def lost(self) -> Array:
        """Seconds that the busiest rank computes beyond the mean of all ranks, (K, k)."""
        return self.imbalance + self.computing * (1 - self.having)

    @property
    def whole(self) -> Array:
        """Seconds of each kernel on the wall with all its parts, (K, k)."""
        return self.computing + self.imbalance + self.communication

    @property
    def whole_ends(self) -> tuple[Array, Array]:
        """90 % interval of :attr:`whole`, (K, k) each."""
        waited, ends = self.imbalance + self.communication, self.message_ends
        less, more = (0.0, 0.0) if ends is None else ends
        return self.low + waited + less, self.high + waited + more

    @property
    def separate(self) -> Mask:
        """The kernels that are not the whole program's, unless that is the only one, (K,)."""
        return np.array([kernel != WHOLE or len(self.kernels) == 1 for kernel in self.kernels])

    @property
    def others(self) -> Array:
        """Seconds of the program outside of its kernels and messages, (k,); 0 where they are unknown."""
        return np.asarray(np.zeros(len(self.points)) + np.nan_to_num(self.broken.others.value).sum(axis=0))

    @property
    def total(self) -> Array:
        """Seconds of the program: of all kernels and of what is outside of them, (k,)."""
        return np.asarray(self.whole.sum(axis=0) + self.others)

    @property
    def bounded(self) -> Mask:
        """Whether a kernel's time is predicted, or lies between two ends that can be compared, (K, k)."""
        low, high = (end + np.where(self.calls, self.communication, 0.0) for end in (self.low, self.high))
        return np.asarray(self.ok | ((low > 0) & (high <= FARTHEST * low)))

    @property
    def calls(self) -> Mask:
        """Kernels that only communicate, whose measured time is that of messages, (K, k)."""
        return (self.computing <= 0) & (self.communication > 0)

    @property
    def files(self) -> Mask:
        """Kernels that are MPI's functions of files, (K, 1)."""
        return np.array([[handles_files(kernel)] for kernel in self.kernels], dtype=bool)

    @property
    def halted(self) -> Mask:
        """Kernels whose time is neither computing nor memory, as cores were halted, (K, k)."""
        if self.running is None:
            return np.zeros(self.computing.shape, dtype=bool)
        return np.asarray(outside.CLOCKS * self.running < 1) & ~self.calls

    @property
    def waiting(self) -> Array:
        """Seconds that what L2, L3 and memory serve would wait one after another, (3, K, k)."""
        if self.ceilings is None:
            return np.full((3, *self.computing.shape), np.nan)
        return (self.loads[1:] + self.stores) * self.ceilings.latency[1:, None, None] / self.frequency

    @property
    def longest(self) -> Array:
        """The most that a kernel may wait for its loads and stores, seconds (K, k); infinite where none were counted.

        Idle latencies are exceeded where translations miss too and where others use the level
        (:attr:`ranksight.analysis.diagnosis.ceilings.Ceilings.longest`).
        """
        waiting = self.waiting
        if self.ceilings is None:
            return np.full(self.computing.shape, np.inf)
        most = np.nansum(waiting * self.ceilings.longest[:, None, None], axis=0)
        return np.where(np.isfinite(waiting).any(axis=0), most, np.inf)

    @property
    def traffic(self) -> Array:
        """Bytes that each rank reads from L2, L3 and memory, (3, K, k): lines that a level or one behind it serves."""
        line = 64.0 if self.ceilings is None else float(self.ceilings.line)
        # Stores read their line first, unless a processor sees that all of it is overwritten. Where it is not known
        # what a level behind serves, the bytes are at least those of the levels that are.
        served = self.loads[1:] + self.stores
        behind = np.cumsum(np.nan_to_num(served)[::-1], axis=0)[::-1] * line
        behind = np.where(np.isfinite(served), behind, np.nan)
        return np.asarray(np.fmax(behind, self.fetched))


def gather(
    model: Model, points: Array, level: float = 0.9, asked: tuple[Forecast, Breakdown] | None = None
) -> Evidence:
    """What `model` knows at `points` (k, m); `asked` is the answer of ``Model.ask`` where it is at hand."""
    points = np.atleast_2d(np.asarray(points, dtype=np.float64))
    equation = model.equation
    forecast, broken = model.ask(points, level) if asked is None else asked
    kernels, shape = broken.kernels, (len(broken.kernels), len(points))
    extras = observed(model)
    counts = counted.Counted.from_dict(extras["counted"]) if "counted" in extras else None
    answers = _Answers(forecast, model.functions.rows, kernels, points, counts, broken.taken)

    imbalances = equation.imbalances
    having = np.ones(shape) if imbalances is None else imbalances.part(kernels, points)
    # Computing is the mean of those that have a kernel, of all where times hold the imbalance; so are counts.
    each_of = np.ones(shape) if imbalances is None or not imbalances.held else imbalances.among(kernels, points)

    def count(name: str) -> Array:
        return answers.of(name) * each_of

    each = {name: value if name in _WAITED else value / having for name, value in broken.each.items()}
    sending = outside.exchanging(model, kernels)[:, None]
    total = np.sum(list(broken.each.values()), axis=0)
    each = {name: np.where(sending, total if name == "communication" else 0.0, value) for name, value in each.items()}
    computing = _computing(each)
    calls = (sending | np.array([[communicates(kernel)] for kernel in kernels])) & (computing <= 0)
    time = answers.of("time")
    down, up = (np.nan_to_num(ratio(answers.end("time", end), time), nan=1.0) for end in ("lower", "upper"))
    status = answers.end("time", "status")
    measured = (points[:, None] == model.training[None]).all(axis=2).any(axis=1)
    ceilings = None if extras.get("ceilings") is None else Ceilings.from_dict(extras["ceilings"])
    instructions = count("instructions")
    terms = _equation(model, broken, extras.get("minimum_wait", {}))
    if ceilings is not None:
        cycles = each["execution"] * ceilings.frequency
        measured_cpi = ratio(cycles, instructions, where=(cycles > 0) & (instructions > 0))
        terms["cpi"] = _first(terms["cpi"], measured_cpi)
    evidence = Evidence(
        kernels=kernels,
        parameters=model.parameters,
        points=points,
        broken=replace(broken, each=each),
        computing=computing,
        imbalance=each["imbalance"] - computing * (1 - having),
        communication=each["communication"],
        having=having,
        shared=_shared(equation, kernels, broken.taken, computing),
        low=np.where(calls, each["communication"] * (np.minimum(down, 1.0) - 1.0), computing * np.minimum(down, 1.0)),
        high=np.where(calls, each["communication"] * (np.maximum(up, 1.0) - 1.0), computing * np.maximum(up, 1.0)),
        imputed=status == IMPUTED,
        ok=np.isin(status, (OK, IMPUTED)),  # what is known within its interval alone still ranks among the others
        reason=np.where(status == OK, "", answers.end("time", "reason")).astype(object),
        sufficient=~np.isin(status, INSUFFICIENT) | measured[None],
        counted_ok=answers.has("instructions") & (answers.end("instructions", "status") == OK),
        instructions=instructions,
        flops=_first(count("flops"), _sum(count("flops_dp"), count("flops_sp"))),
        # Lines that go back to a cache came from it: what passes both ways is read for a half at least.
        fetched=np.stack(
            [count("bytes_l2") / 2, count("bytes_l3") / 2, _first(count("bytes_mem_read"), count("bytes_mem"))]
        ),
        loads=np.stack([count(name) for name in LEVELS]),
        stores=served(*(np.nan_to_num(count(f"store_misses_l{level}")) for level in (1, 2, 3))),
        stalled=topdown.bound({name: answers.of(name).reshape(-1) for name in topdown.LEVELS}).reshape(shape),
        ceilings=ceilings,
        memory=_memory(forecast, model.functions.rows),
        together=imbalances.together if imbalances is not None and imbalances.held else 1.0,
        slowest=() if imbalances is None else imbalances.slowest_class(kernels, np.nan_to_num(time), points),
        ratio=np.full(shape, np.nan) if imbalances is None else imbalances.over_mean(kernels, points),
        message_ends=_message_ends(broken, ~(calls & answers.has("time"))),
        running=outside.running(count("cycles"), computing),
        least_instructions=answers.end("instructions", "lower") * each_of,
        **terms,
    )
    return evidence if counts is None or not counts.worth else few.with_samples(evidence, counts, model.fitted)


def _message_ends(broken: Breakdown, sent: Mask) -> Array | None:
    """How much less and more than their value messages may take, (2, K, k), by the interval of BF_comm; nothing where a
    kernel's messages are not `sent` on the network but have measured times of their own."""
    if not broken.exchanged:
        return None
    factor, seconds = broken.exchanged.factor, np.where(sent, broken.each["communication"], 0.0)
    ends = np.stack([ratio(end[0], factor.value[0], 1.0) - 1.0 for end in (factor.lower, factor.upper)])
    return np.asarray(np.nan_to_num(ends)[:, None] * seconds)


def _computing(each: Mapping[str, Array]) -> Array:
    """Seconds (K, k) of all parts in which a rank does not wait.

    The equation's parts may be negative where a fitted blocking factor is; their sum is the kernel's time.
    """
    parts = [value for name, value in each.items() if name not in _WAITED]
    return np.asarray(np.maximum(sum(parts, np.zeros(each["imbalance"].shape)), 0.0))


@dataclass(frozen=True)
class _Answers:
    """What is known of the metrics of K kernels at k points: as measured there where that was kept, as the law takes it
    that predicts the kernel's time, or as learned."""

    forecast: Forecast
    rows: Mapping[tuple[str, str], int]
    kernels: tuple[str, ...]
    points: Array
    counts: counted.Counted | None
    by_law: Mapping[str, Mapping[str, Array]]

    def of(self, name: str) -> Array:
        """A metric (K, k); NaN where it is not known."""
        values = self.end(name, "value")
        if name in self.by_law:
            none = np.full(len(self.points), np.nan)
            answers = np.stack([self.by_law[name].get(kernel, none) for kernel in self.kernels])
            values = np.where(self.has(name) & np.isfinite(answers), answers, values)
        if self.counts is None or name not in counted.METRICS:
            return values
        return _first(self.counts.at(self.kernels, name, self.points), values)

    def end(self, name: str, which: str) -> NDArray[Any]:
        """The value that was learned, an end of its interval, its status or the reason for it (K, k); NaN and OK where
        a kernel has no such metric."""
        known = getattr(self.forecast, which)
        absent = np.full((1, len(self.points)), OK if which == "status" else np.nan, dtype=known.dtype)
        return np.asarray(np.concatenate([known, absent])[self._index(name)])

    def has(self, name: str) -> Mask:
        """Whether a kernel has such a metric (K, 1)."""
        return np.asarray(self._index(name) >= 0)[:, None]

    def _index(self, name: str) -> Index:
        """Row of each kernel's metric, -1 where it has none."""
        return np.array([self.rows.get((kernel, name), -1) for kernel in self.kernels], dtype=np.intp)


def _memory(forecast: Forecast, rows: Mapping[tuple[str, str], int]) -> Array | None:
    """Memory of a rank with its interval, (3, k), by the first of :data:`MEMORY` that was measured."""
    row = next((rows[WHOLE, name] for name in MEMORY if (WHOLE, name) in rows), None)
    return None if row is None else np.stack([forecast.value[row], forecast.lower[row], forecast.upper[row]])


def served(first: Array, second: Array, third: Array) -> Array:
    """Stores that L2, L3 and memory served (3, ...), from those that missed L1, L2 and L3; 0 where not counted."""
    return np.stack([np.maximum(first - second, 0.0), np.maximum(second - third, 0.0), third])


def observed(model: Model) -> Mapping[str, Any]:
    """What a model keeps of the measurements for its diagnosis, empty where nothing was."""
    stored = model.observed.get("diagnosis")
    return stored if isinstance(stored, Mapping) else {}


def _shared(
    equation: Application, kernels: tuple[str, ...], taken: Mapping[str, Mapping[str, Array]], computing: Array
) -> Array:
    """Seconds of `computing` (K, k) that bytes take on L2, L3 or memory in the kernels that a law of its shared
    bandwidth predicts, (3, K, k)."""
    shares = np.zeros((3, *computing.shape))
    occupied = taken.get(OCCUPIED, {})
    none = np.zeros(computing.shape[1])
    part = np.nan_to_num(np.stack([occupied.get(kernel, none) for kernel in kernels]))
    cached = equation.by_cache(kernels)
    for law in equation.shared:
        of_law = np.isin(np.array(kernels, dtype=object), law.kernels)
        of_law &= cached if law is equation.cached else ~cached
        level = loads_of(law.resource)
        shares[LEVELS.index(level) - 1, of_law] = (part * computing)[of_law]
    return shares


def _first(one: Array, other: Array) -> Array:
    return np.where(np.isfinite(one), one, other)


def _sum(one: Array, other: Array) -> Array:
    """The sum of what is known of two parts."""
    return np.where(np.isfinite(one) | np.isfinite(other), np.nan_to_num(one) + np.nan_to_num(other), np.nan)


def _equation(model: Model, broken: Breakdown, smallest: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of :class:`Evidence` that are terms of the resource equation; NaN, False or empty without terms.

    `smallest`: waiting where memory asked least, by kernel.
    """
    kernels, terms = broken.kernels, broken.terms
    shape = len(kernels), broken.total.value.shape[1]
    cpi, factor, error = np.full((3, *shape), np.nan)
    minimum_wait, counted = np.full(shape[0], np.nan), np.zeros(shape[0], dtype=bool)
    source = ["time alone" if (kernel, "time") in model.functions.rows else "" for kernel in kernels]
    place = {kernel: at for at, kernel in enumerate(kernels) if kernel != WHOLE}
    for at, kernel in enumerate(terms.kernels):
        if kernel not in place:
            continue
        to = place[kernel]
        factor[to], cpi[to], counted[to] = terms.blocking.value[at], terms.cpi.value[at], terms.counted[at]
        error[to] = (terms.blocking.upper - terms.blocking.lower)[at] / 3.29
        value = smallest.get(kernel)
        minimum_wait[to] = float(value) if isinstance(value, (int, float)) else np.nan
        source[to] = terms.method[at]
    return {
        "cpi": cpi,
        "minimum_wait": minimum_wait,
        "factor": factor,
        "factor_error": error,
        "counted": counted,
        "source": tuple(source),
    }
