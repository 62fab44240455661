"""What a sampled event is worth: seconds of a software clock, or counts of a hardware event."""

from __future__ import annotations

from dataclasses import dataclass

from ranksight.counters.names import fold

_CLOCKS = frozenset({"cpu_clock", "task_clock", "cpu_clock_ppp"})
NANOSECOND = 1e-9


@dataclass(frozen=True, slots=True)
class Meaning:
    """Name under which an event's periods are kept, and the factor to SI."""

    name: str
    scale: float


def meaning(event: str) -> Meaning:
    """What the periods of `event` add up to: the software clocks count nanoseconds, other events themselves."""
    return Meaning("time", NANOSECOND) if fold(event) in _CLOCKS else Meaning(event, 1.0)


def provenance(event: str, samples: float) -> str:
    """Where sampled numbers come from: the sampling error of a kernel hit n times is 1/sqrt(n)."""
    return f"sampled, n = {int(samples)} ({event}; a kernel hit n times: error 1/sqrt(n))"
