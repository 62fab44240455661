"""Evidence of a model: what it knows of its kernels, gathered at some configurations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ranksight.analysis.diagnosis import counted, few, outside, topdown
from ranksight.analysis.diagnosis.ceilings import Ceilings
from ranksight.analysis.diagnosis.evidence import Evidence
from ranksight.core.arrays import Array, Index, Mask, ratio
from ranksight.core.experiment import WHOLE
from ranksight.core.mpi import communicates
from ranksight.core.records import dataclass
from ranksight.model.application.breakdown import Breakdown
from ranksight.model.application.bulk_synchronous import Application
from ranksight.model.laws.law import CACHE
from ranksight.model.laws.together import OCCUPIED
from ranksight.model.resource.equation import LEVELS
from ranksight.model.sharing.demand import loads_of
from ranksight.model.uncertainty.forecast import IMPUTED, INSUFFICIENT, OK, Forecast

if TYPE_CHECKING:
    from ranksight.model.fitted_model import Model

MEMORY = ("memory_pss", "memory_peak")
"""Metrics of how much memory a rank holds, the one that counts shared pages once first."""
_WAITED = ("imbalance", "communication")
"""Parts of a kernel's time in which a rank waits or communicates."""


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
        balanced=None if imbalances is None else imbalances.known(kernels, points),
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
    equation: Application, kernels: tuple[str, ...], parts: Mapping[str, Mapping[str, Array]], computing: Array
) -> Array:
    """Seconds of `computing` (K, k) that bytes take on L2, L3 or memory in the kernels that a law of its shared
    bandwidth predicts, (3, K, k)."""
    shares = np.zeros((3, *computing.shape))
    occupied = parts.get(OCCUPIED, {})
    none = np.zeros(computing.shape[1])
    part = np.nan_to_num(np.stack([occupied.get(kernel, none) for kernel in kernels]))
    cached = np.isin(np.array(kernels, dtype=object), equation.laws.kernels(CACHE))
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
