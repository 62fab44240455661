"""Why a kernel's time changed: the terms of its resource equation, each with its part of the change.

A time is a sum of products, T = i CPI_exec / f + sum_l n_l w_l with w_l the seconds that a load served by level l holds
the kernel up (:mod:`ranksight.model.resource.equation`). The change of a product is divided among its factors by the
logarithmic mean, L(a, b) = (a - b) / ln(a / b):

    T' - T = L(E', E) [ln(i'/i) + ln(c'/c)] + sum_l L(M'_l, M_l) [ln(n'_l/n_l) + ln(w'_l/w_l)]

which is exact, leaves no rest, and is the same both ways (Ang 2004, *Energy Policy* 32, 1131: the LMDI). Where loads
per level are missing, T = i (T/i); where instructions are missing, messages x bytes per message x seconds per byte.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranksight.analysis.comparison.sides import Side
from ranksight.core.records import dataclass
from ranksight.model.application.breakdown import Terms
from ranksight.model.resource.equation import LEVELS

PLACES = dict(zip(LEVELS, ("L1", "L2", "L3", "memory"), strict=True))
CPI = "cycles per instruction"
SMALL = 0.01
"""Part of the time before, below which a cause is not named."""
REACH = 2.0
"""Standard errors of a cause's part within which it may be noise."""


@dataclass(frozen=True)
class Cause:
    """One reason."""

    name: str  # such as ``instructions`` or ``loads from L2``
    part: float  # part of the change, in units of the time before; the parts add up to ``T'/T - 1``
    ratio: float  # how the quantity itself changed, after over before
    error: float = 0.0
    """Standard error of the part: what is left of a time when counts are taken out of it scatters as the time does."""

    @property
    def sure(self) -> bool:
        """Whether the part is more than noise."""
        return abs(self.part) > REACH * self.error


def explain(
    kernel: str, timer: str, before: Side, after: Side, at: int, terms: tuple[Terms | None, Terms | None]
) -> list[Cause]:
    """Causes of the change of a kernel's time at configuration `at`, the largest first.

    `timer`: the metric that is its time. `terms`: of the equations of both sides, where there are some.
    """
    sides = (before, after)
    time = [float(side.of(kernel, timer)[at]) for side in sides]
    if not all(np.isfinite(t) and t > 0 for t in time):
        return []
    split = [_levels(kernel, timer, side, at, part) for side, part in zip(sides, terms, strict=True)]
    weight = log_mean(time[1], time[0]) / time[0]
    if split[0] is not None and split[1] is not None:
        causes = _by_levels(split[0], split[1], time[0])
    else:
        factors = _factors(kernel, timer, sides, at, time)
        causes = [_cause(name, weight, *values) for name, values in factors.items()]
    causes = [
        replace(cause, error=_relative(kernel, _MADE_OF.get(cause.name, (timer,)), sides, at) * _share(cause, weight))
        for cause in causes
    ]
    return sorted(causes, key=lambda cause: -abs(cause.part))


def _share(cause: Cause, whole: float) -> float:
    """What one e-fold of the quantity changes, in units of the time before; the `whole` time where it did not change
    by itself."""
    step = float(np.log(cause.ratio)) if 0 < cause.ratio < np.inf else 0.0
    return cause.part / step if cause.name in _MADE_OF and abs(step) > 1e-9 else whole


def _relative(kernel: str, metrics: tuple[str, ...], sides: tuple[Side, Side], at: int) -> float:
    """Standard error of the logarithm of a ratio of what is made of `metrics`."""
    errors = [
        float(side.error[side.rows[kernel, name], at])
        for side in sides
        for name in metrics
        if (kernel, name) in side.rows
    ]
    return float(np.sqrt(np.sum(np.square(errors))))


def log_mean(a: float, b: float) -> float:
    """(a - b) / ln(a / b), and a where both are the same."""
    if a <= 0 or b <= 0:
        return 0.0
    step = np.log(a / b)
    return float((a - b) / step) if abs(step) > 1e-9 else float((a + b) / 2)


def _factors(kernel: str, timer: str, sides: tuple[Side, Side], at: int, time: list[float]) -> dict[str, list[float]]:
    """Factors of the time, on both sides; their product is the time."""
    factors, last, before = {}, "", [1.0, 1.0]
    for chain in _CHAINS:
        for name in chain:
            count = [float(side.of(kernel, name)[at]) for side in sides]
            if name != timer and all(np.isfinite(x) and x > 0 for x in count):
                factors[_FACTORS[last, name]] = [c / b for c, b in zip(count, before, strict=True)]
                last, before = name, count
            elif not factors:
                break  # what follows is of this count
        if factors:
            break
    name = CPI if (last, timer) == ("instructions", "cycles") else _FACTORS[last, "time"]
    return {**factors, name: [t / b for t, b in zip(time, before, strict=True)]}


_CHAINS = (("instructions", "cycles"), ("messages", "bytes_sent"), ("visits",))
"""Counts that a time is divided by, one after another, the most telling first."""
_FACTORS = {
    ("", "instructions"): "instructions",
    ("instructions", "cycles"): CPI,
    ("instructions", "time"): "time per instruction",
    ("cycles", "time"): "time per cycle",
    ("", "messages"): "messages",
    ("messages", "bytes_sent"): "bytes per message",
    ("messages", "time"): "time per message",
    ("bytes_sent", "time"): "time per byte",
    ("", "visits"): "calls",
    ("visits", "time"): "time per call",
    ("", "time"): "time",
}
"""What a quantity over the one before it is called."""
_MADE_OF = {
    "instructions": ("instructions",),
    "messages": ("messages",),
    "bytes per message": ("bytes_sent", "messages"),
    "calls": ("visits",),
    **{f"loads from {place}": (name,) for name, place in PLACES.items()},
}
"""Counts behind the causes that no time goes into."""


def _cause(name: str, weight: float, before: float, after: float) -> Cause:
    """The part of one factor of a product; `weight`: logarithmic mean of the product, in units of the time before."""
    return Cause(name, weight * float(np.log(after / before)), after / before)


@dataclass(frozen=True)
class _Split:
    """A time as execution and the stalls by the loads of each level."""

    instructions: float
    execution: float
    loads: dict[str, float]
    waiting: dict[str, float]


def _levels(kernel: str, timer: str, side: Side, at: int, terms: Terms | None) -> _Split | None:
    """The terms at one configuration; None where counters are missing or execution alone exceeds the time."""
    if terms is None or kernel not in terms.kernels:
        return None
    at_kernel = terms.kernels.index(kernel)
    clock = float(terms.clock.value[at_kernel, at]) if timer != "cycles" else 1.0
    time, count = float(side.of(kernel, timer)[at]), float(side.of(kernel, "instructions")[at])
    if not (np.isfinite(count) and count > 0):
        return None
    execution = count * float(terms.cpi.value[at_kernel, at]) / clock
    loads = {name: float(side.of(kernel, name)[at]) for name in LEVELS}
    loads = {name: n for name, n in loads.items() if np.isfinite(n) and n > 0}
    latency = dict(zip(LEVELS, terms.latencies.tolist(), strict=True))
    cycles = sum(n * latency[name] for name, n in loads.items())
    if not loads or execution <= 0 or execution > time:
        return None
    stalled = time - execution
    return _Split(count, execution, loads, {name: stalled * n * latency[name] / cycles for name, n in loads.items()})


def _by_levels(before: _Split, after: _Split, time: float) -> list[Cause]:
    weight = log_mean(after.execution, before.execution) / time
    cpi = [side.execution / side.instructions for side in (before, after)]
    causes = [
        _cause("instructions", weight, before.instructions, after.instructions),
        _cause("cycles per instruction without waiting", weight, *cpi),
    ]
    slower, ratio = 0.0, []
    for name in LEVELS:
        old, new = before.waiting.get(name, 0.0), after.waiting.get(name, 0.0)
        place = PLACES[name]
        if old > 0 and new > 0:
            share = log_mean(new, old) / time
            causes.append(_cause(f"loads from {place}", share, before.loads[name], after.loads[name]))
            each = _cause("waiting per load", share, old / before.loads[name], new / after.loads[name])
            slower += each.part
            ratio.append(each.ratio)
        elif old > 0 or new > 0:
            causes.append(Cause(f"loads from {place}", (new - old) / time, np.inf if new > 0 else 0.0))
    if ratio:
        causes.append(Cause("waiting per load", slower, float(np.exp(np.mean(np.log(ratio))))))
    return causes
