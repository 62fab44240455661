"""Which hardware events are counted here, in which passes; shared by sampling and counting with perf."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from typing import Self

from ranksight.campaign.collecting import Availability
from ranksight.core.errors import ToolError
from ranksight.core.records import dataclass
from ranksight.counters.collectors._perf import core_pmu, has_hardware, may_sample
from ranksight.platforms.events import Event, EventTable, load, recognise, this_processor

ALWAYS = ("cycles", "instructions")
RARE = frozenset({"loads_fill_buffer", "loads_l2", "loads_l3", "loads_mem", "loads_other_cache", "branch_misses"})
"""Metrics whose events occur ten to a thousand times more rarely than cycles."""


@dataclass(frozen=True)
class Chosen:
    """Events of a processor, in passes."""

    table: EventTable
    device: str  # the processor's counter unit as the kernel lists it
    passes: tuple[tuple[Event, ...], ...]
    """Each holds the events of cycles and instructions and no more others than are counted at once."""
    unsupported: tuple[str, ...] = ()  # events of the table that this machine does not count

    def rare(self, event: Event) -> bool:
        """Whether `event` is one that a rare metric is formed from."""
        metrics = self.table.metrics
        return any(event.name in metrics[name].formula.names for name in RARE & set(metrics))


def choose(table: EventTable | None, metrics: Sequence[str], unsupported: Sequence[str] = ()) -> Chosen:
    """Events for `metrics` (all of the table where empty), of this processor's table where none is given."""
    table = table or recognise(this_processor()) or load("generic")
    wanted = [name for name in (metrics or table.metrics) if name in table.metrics]
    always = table.needed(name for name in ALWAYS if name in table.metrics)
    out = frozenset(unsupported)
    others = [name for name in table.needed(wanted) if name not in always and name not in out]
    size = table.counters
    groups = [others[start : start + size] for start in range(0, len(others), size)] or [[]]
    passes = tuple(tuple(table.events[name] for name in (*always, *group)) for group in groups)
    return Chosen(table, core_pmu() or "cpu", passes, tuple(out))


def probe(chosen: Chosen) -> tuple[str, ...]:
    """Events that this machine does not count, found by ``perf stat`` on a program that does nothing.

    Raises ToolError when cycles and instructions are among them, or perf refuses an event's code.
    """
    refused: list[str] = []
    for events in chosen.passes:
        listed = ",".join(event.perf(chosen.device, "u") for event in events)
        done = subprocess.run(
            ["perf", "stat", "-x;", "-e", listed, "true"], capture_output=True, text=True, errors="replace", check=False
        )
        lines = [line for line in done.stderr.splitlines() if line.count(";") >= 4]
        if len(lines) != len(events):
            said = (done.stderr.strip() or "it gave no reason").splitlines()[0]
            what = f"perf does not take the events of {chosen.table.title}: {said}"
            raise ToolError(what, "is perf as new as the kernel?")
        refused += [event.name for event, line in zip(events, lines, strict=True) if line.startswith("<not supported>")]
    needed = set(chosen.table.needed(name for name in ALWAYS if name in chosen.table.metrics))
    if needed & set(refused):
        raise ToolError(
            f"this machine does not count {', '.join(sorted(needed & set(refused)))}",
            "'ranksight doctor' says why; callgrind counts and perf-clock times here",
        )
    return tuple(dict.fromkeys(refused))


@dataclass
class HardwareEvents:
    """What collectors of hardware events have in common.

    Parameters
    ----------
    table : EventTable or None
        The processor's events; recognised when None.
    metrics : tuple of str
        Metrics to collect; all that the table forms when empty.
    unsupported : tuple of str or None
        Events that this machine does not count; found out when None.
    """

    table: EventTable | None = None
    metrics: tuple[str, ...] = ()
    unsupported: tuple[str, ...] | None = None

    def using(self, table: EventTable, metrics: Sequence[str] = ()) -> Self:
        """The same with the events of a platform's table."""
        return replace(self, table=table, metrics=tuple(metrics), unsupported=None)

    def available(self) -> Availability:
        """Whether perf is here, may look, and finds counters."""
        first = may_sample()
        return first if not first.ok else has_hardware()

    def chosen(self) -> Chosen:
        """The events that this machine counts, in passes."""
        if self.unsupported is None:
            self.unsupported = probe(choose(self.table, self.metrics))
        return choose(self.table, self.metrics, self.unsupported)
