"""What a sampled event is worth: seconds of a software clock, or counts of a hardware event."""

from __future__ import annotations

from ranksight.counters.names import fold

_CLOCKS = frozenset({"cpu_clock", "task_clock", "cpu_clock_ppp"})


def meaning(event: str) -> tuple[str, float]:
    """The name that an event's periods are kept under, and their factor to SI: software clocks count nanoseconds."""
    return ("time", 1e-9) if fold(event) in _CLOCKS else (event, 1.0)


def provenance(event: str, samples: float) -> str:
    """Where sampled numbers come from: the sampling error of a kernel hit n times is 1/sqrt(n)."""
    return f"sampled, n = {int(samples)} ({event}; a kernel hit n times: error 1/sqrt(n))"
