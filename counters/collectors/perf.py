"""The processor's own counters, sampled by perf on every rank: counts per function.

Every so many occurrences of an event the function then running is charged with as many; precise events name the very
instruction. Events are taken in passes, each no more than the processor counts at once, so that none is shared out in
time (multiplexed) and none has to be scaled. An event that the kernel serves as a software clock, as it does without
a word where there is no PMU, is refused.

Source: Ding et al. 2018, section 2 (sampling, 2,000k cycles); perf-record(1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ranksight.campaign.collecting import COLLECTORS, Step
from ranksight.campaign.launching import Launch
from ranksight.core import leftout
from ranksight.core.reading import Reading
from ranksight.core.sampled import TABLE, sampling
from ranksight.counters import merging
from ranksight.counters.collectors._events import Chosen, HardwareEvents
from ranksight.counters.collectors._perf import buffer_pages, gather, record, refuse_software
from ranksight.counters.collectors._perf_lines import Refinable, in_parts
from ranksight.counters.collectors._ranks import before_program, rank_files, refuse_script
from ranksight.counters.derive import derive
from ranksight.counters.names import fold
from ranksight.platforms.events import Event

FEW = 100
"""Samples for which the standard error of a count is a tenth."""


@dataclass
class Perf(Refinable, HardwareEvents):
    """Sampled hardware events per kernel and rank; see the module.

    `period`, `rare_period`: occurrences between samples of common events (cycles, instructions, loads ...) and of rare
    ones (misses): primes, the first near the papers' 2,000k cycles.
    """

    period: int = 2_000_003
    rare_period: int = 100_003
    text: str = "hardware events per function, sampled by perf"
    deterministic: bool = False
    default: bool = True

    def _period(self, chosen: Chosen, event: Event) -> int:
        return self.rare_period if chosen.rare(event) else self.period

    def steps(self, launch: Launch, folder: Path) -> Sequence[Step]:
        """One run under ``perf record`` a pass."""
        refuse_script(launch)
        chosen = self.chosen()
        pages = buffer_pages(launch.ranks)
        steps = []
        for number, events in enumerate(chosen.passes):
            listed = " ".join(f"-e '{event.perf(chosen.device, 'u', self._period(chosen, event))}'" for event in events)
            command = f'{record()} -m {pages} {listed} -o "$0/pass{number}.$rank.$$" --'
            steps.append(Step(before_program(launch, folder, command), {"PERF_CONFIG": "/dev/null"}))
        return steps

    def collect(self, launch: Launch, folder: Path) -> Reading:
        """Read all passes of all ranks; see :mod:`ranksight.counters.derive` for the metrics."""
        chosen = self.chosen()
        counted: dict[str, pd.DataFrame] = {}
        periods: dict[str, float] = {}
        sources: list[str] = []
        parents: list[pd.DataFrame] = []
        left_out: list[pd.DataFrame] = []
        passes: list[pd.DataFrame] = []
        for number, events in enumerate(chosen.passes):
            files = rank_files(folder, rf"pass{number}\.(?P<rank>\d+)\.\d+", launch, "perf")
            for file in files.values():
                refuse_software(file, {event.name: event.name for event in events})
            sampled = gather(files, launch)
            table = sampled.periods
            left_out.append(sampled.by_object())
            if self.refine:
                table, one, _ = in_parts(table, files, self.refine, self.spans)
                parents.append(one)
            names = table["event"].map(_written)
            sums = table["period"].groupby([table["kernel"].astype(str), names]).sum().unstack(fill_value=0)
            written = {fold(event.alias or event.name): event.name for event in events}
            passes.append(sums.rename(columns=written))
            for event in events:
                if event.name not in counted:
                    rows = table[names == fold(event.alias or event.name)]
                    counted[event.name] = rows.set_index(["kernel", "rank"])[["period", "samples"]]
                    periods[event.name] = float(self._period(chosen, event))
            sources.extend(file.name for file in files.values())
        # a kernel that no sample of an event hit has none, within the sampling error
        counts = pd.DataFrame({name: rows["period"] for name, rows in counted.items()}).fillna(0.0)
        hits = pd.DataFrame({name: rows["samples"] for name, rows in counted.items()}).reindex(counts.index)
        each = (counts / hits).where(lambda period: period > 0).fillna(periods)
        given, worth = (
            {str(name): column.to_numpy(np.float64) for name, column in of.items()} for of in (counts, each)
        )
        origin = {name: f"sampled, n = {int(rows['samples'].sum())}" for name, rows in counted.items()}
        found = derive(given, chosen.table, origin, worth)
        counters = pd.DataFrame({**found.columns}, index=counts.index).reset_index()
        notes = ["user code only; time of MPI libraries belongs to no kernel; a kernel hit n times: error 1/sqrt(n)"]
        if few := _few(table := sampling(counters, found.worth)):
            notes.append(few)
        between, more = merging.merged(passes)
        notes.extend(more)
        if chosen.unsupported:
            notes.append(f"this machine does not count {', '.join(chosen.unsupported)}")
        return Reading(
            configuration=dict(launch.configuration),
            counters=counters,
            tables={
                TABLE: table,
                leftout.TABLE: pd.concat(left_out).drop_duplicates(["object", "rank", "metric"], ignore_index=True),
                **({} if between is None else {merging.TABLE: between}),
                **({"refined": pd.concat(parents).drop_duplicates(ignore_index=True)} if parents else {}),
            },
            provenance=found.provenance,
            notes=tuple(notes),
            source=tuple(sources),
        )


def _few(table: pd.DataFrame) -> str:
    """How many kernels' counts rest on few samples; nothing where none does."""
    number = table.groupby(["kernel", "metric"])["samples"].sum()
    few = int((number < FEW).sum())
    if not few:
        return ""
    return f"{few} of {len(number)} counts of kernels rest on fewer than {FEW} samples: longer runs measure them better"


def _written(event: str) -> str:
    """Folded name of an event as perf writes it back: with or without its terms and modifiers."""
    return fold(event.split("/")[0] if "/period=" in event else event)


COLLECTORS.register("perf")(Perf())
