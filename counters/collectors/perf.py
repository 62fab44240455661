"""The processor's own counters, sampled by perf on every rank: counts per function at next to no cost.

Every `period` occurrences of an event the function then running is charged with `period` of them; precise events name
the very instruction. Events are taken in passes, each no more than the processor counts at once, so that none is
shared out in time (multiplexed) and none has to be scaled. An event that the kernel serves as a software clock, as it
does without a word where there is no PMU, is refused.

Source: Ding 2018, section 3.1 (sampling, 2,000k cycles); perf-record(1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from ranksight.collecting import COLLECTORS, Availability, Step
from ranksight.counters.collectors._perf import buffer_pages, gather, has_hardware, may_sample, refuse_software
from ranksight.counters.collectors._ranks import before_program, rank_files, refuse_script
from ranksight.launching import Launch
from ranksight.reading import Reading

GENERIC: Mapping[str, str] = {
    "cycles": "cycles",
    "instructions": "instructions",
    "loads": "L1-dcache-loads",
    "l1_load_misses": "L1-dcache-load-misses",
    "stores": "L1-dcache-stores",
    "llc_loads": "LLC-loads",
    "llc_load_misses": "LLC-load-misses",
}
"""Events by the names that perf gives every processor, where the processor is not in the event tables."""


@dataclass
class Perf:
    """Sampled hardware events per kernel and rank; see the module.

    Parameters
    ----------
    events : mapping of str to str
        Metric, and the event as perf takes it; ``cycles`` and ``instructions`` are counted in every pass.
    counters : int
        General counters of a core that can be in use at once, the fixed ones for cycles and instructions aside.
    period : int
        Occurrences between samples: a prime near the papers' 2,000k cycles.
    precise : int
        Level of precision asked for (``p`` modifiers), lowered by perf where the processor cannot.
    """

    events: Mapping[str, str] = field(default_factory=lambda: GENERIC)
    counters: int = 4
    period: int = 2_000_003
    precise: int = 1
    text: str = "hardware events per function, sampled by perf (below 3 % slower)"
    deterministic: bool = False
    default: bool = True

    def using(self, events: Mapping[str, str], counters: int) -> Perf:
        """The same with a processor's own events."""
        return replace(self, events=dict(events), counters=counters)

    def available(self) -> Availability:
        """Whether perf is here, may sample, and finds counters to sample."""
        first = may_sample()
        return first if not first.ok else has_hardware()

    def passes(self) -> list[dict[str, str]]:
        """Events of each pass; metrics that two passes share are taken from the first."""
        fixed = {name: self.events[name] for name in ("cycles", "instructions") if name in self.events}
        others = [(name, event) for name, event in self.events.items() if name not in fixed]
        groups = [dict(others[i : i + self.counters]) for i in range(0, len(others), self.counters)] or [{}]
        return [{**fixed, **group} for group in groups]

    def steps(self, launch: Launch, folder: Path) -> Sequence[Step]:
        """One run under ``perf record`` a pass."""
        refuse_script(launch)
        pages = buffer_pages(launch.ranks)
        steps = []
        for number, events in enumerate(self.passes()):
            chosen = " ".join(f"-e '{self._modified(event)}'" for event in events.values())
            options = f"-q -B -N -m {pages} -c {self.period} {chosen}"
            command = f'perf record {options} -o "$0/pass{number}.$rank.$$" --'
            steps.append(Step(before_program(launch, folder, command), {"PERF_CONFIG": "/dev/null"}))
        return steps

    def _modified(self, event: str) -> str:
        """The event for user code, as precise as asked for where it has no modifiers of its own."""
        if event.endswith("/"):
            return f"{event}u{'p' * self.precise}"
        return event if ":" in event else f"{event}:u{'p' * self.precise}"

    def collect(self, launch: Launch, folder: Path) -> Reading:
        """Read all passes of all ranks."""
        columns: dict[str, pd.Series] = {}
        provenance: dict[str, str] = {}
        sources: list[str] = []
        kept: list[pd.DataFrame] = []
        for number, events in enumerate(self.passes()):
            files = rank_files(folder, rf"pass{number}\.(?P<rank>\d+)\.\d+", launch, "perf")
            wanted = {self._modified(event): name for name, event in events.items()}
            for file in files.values():
                refuse_software(file, wanted)
            sampled = gather(files, launch)
            table = sampled.periods.assign(metric=sampled.periods["event"].map(_matcher(wanted)))
            for name in events:
                rows = table[table["metric"] == name]
                if name in columns or rows.empty:
                    continue
                columns[name] = rows.set_index(["kernel", "rank"])["period"]
                count = int(rows["samples"].sum())
                how = f"{events[name]}, every {self.period}; a kernel hit n times: error 1/sqrt(n)"
                provenance[name] = f"sampled, n = {count} ({how})"
            kept.append(table[["metric", "kernel", "rank", "samples"]].assign(sampling_pass=number))
            sources.extend(file.name for file in files.values())
        counters = pd.DataFrame(columns).reset_index()
        return Reading(
            configuration=dict(launch.configuration),
            counters=counters,
            tables={"sampling": pd.concat(kept, ignore_index=True)},
            provenance=provenance,
            notes=("user code only; time of MPI libraries belongs to no kernel",),
            source=tuple(sources),
        )


def _matcher(wanted: Mapping[str, str]) -> dict[str, str]:
    """Names under which perf may write an event back: as given, without modifiers, with fewer of them."""
    names: dict[str, str] = {}
    for event, metric in wanted.items():
        base = event.rsplit("/", 1)[0] + "/" if event.count("/") >= 2 else event.split(":")[0]
        for form in (event, base, f"{base}u", f"{base}:u", *(f"{base}:u{'p' * k}" for k in range(1, 4))):
            names.setdefault(form, metric)
        for k in range(1, 4):
            names.setdefault(f"{base}u{'p' * k}", metric)
    return names


COLLECTORS.register("perf")(Perf())
