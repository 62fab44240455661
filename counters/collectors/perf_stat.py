"""Hardware events of each rank as a whole, counted by ``perf stat``: no functions, and no scatter of sampling.

Events are counted in passes that fit the processor's counters. Where perf still had to multiplex, it has scaled the
counts, and the part of the time in which an event was counted is kept with them. The counts include time that a rank
waits in MPI: a busy-waiting library adds instructions that do no work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ranksight.campaign.collecting import COLLECTORS, Step
from ranksight.campaign.launching import Launch
from ranksight.core import limits
from ranksight.core.arrays import Array
from ranksight.core.errors import ToolError
from ranksight.core.experiment import WHOLE
from ranksight.core.reading import Reading
from ranksight.counters import merging
from ranksight.counters.collectors._events import HardwareEvents
from ranksight.counters.collectors._ranks import before_program, rank_files, refuse_script
from ranksight.counters.derive import derive
from ranksight.counters.names import fold
from ranksight.counters.readers._perf_stat_rows import decimal_of, separated_rows, share_of, value_of

_SHARED_OUT = 99.0


@dataclass
class PerfStat(HardwareEvents):
    """Counted hardware events per rank; see the module."""

    text: str = "hardware events of each rank as a whole, counted by perf"
    deterministic: bool = False
    default: bool = False

    def steps(self, launch: Launch, folder: Path) -> Sequence[Step]:
        """One run under ``perf stat`` a pass."""
        refuse_script(launch)
        chosen = self.chosen()
        steps = []
        for number, events in enumerate(chosen.passes):
            listed = ",".join(["task-clock", *(event.perf(chosen.device, "u") for event in events)])
            command = f"""perf stat -x';' -e '{listed}' -o "$0/stat{number}.$rank.$$" --"""
            steps.append(Step(before_program(launch, folder, command), {"PERF_CONFIG": "/dev/null"}))
        return steps

    def collect(self, launch: Launch, folder: Path) -> Reading:
        """Read all passes of all ranks; see :mod:`ranksight.counters.derive` for the metrics."""
        chosen = self.chosen()
        rows: list[tuple[str, int, int, float, float | None]] = []
        sources: list[str] = []
        lost: list[str] = []
        cpu_time = np.full(launch.ranks, np.nan)
        for number, events in enumerate(chosen.passes):
            files = rank_files(folder, rf"stat{number}\.(?P<rank>\d+)\.\d+", launch, "perf stat")
            for rank, file in files.items():
                read = list(separated_rows(file, file.read_text("utf-8", "replace").splitlines(), ";", []))
                decimal = decimal_of(file, read, ())
                if len(read) != len(events) + 1:
                    what = f"{file.name} holds {len(read)} of {len(events) + 1} events"
                    raise ToolError(what, "measure this run again")
                clock, *rest = read
                if number == 0 and not clock.status:
                    cpu_time[rank] = value_of(file, clock, decimal) * (1e-3 if clock.unit == "msec" else 1e-9)
                for event, row in zip(events, rest, strict=True):
                    if fold(row.event) != fold(event.alias or event.name):
                        what = f"{file.name}: {row.event} where {event.name} was asked for"
                        raise ToolError(what, "is perf too old?")
                    value = None if row.status else value_of(file, row, decimal)
                    if value is not None and not 0 <= value < limits.VALUE:
                        lost.append(
                            f"{event.name} is {value:g} on rank {rank}, which no counter holds, and is left out"
                        )
                        value = None
                    rows.append((event.name, rank, number, share_of(file, row, decimal) / 100, value))
            sources.extend(file.name for file in files.values())
        table = pd.DataFrame(rows, columns=["event", "rank", "sampling_pass", "share", "value"])
        counts: dict[str, Array] = {}
        origin: dict[str, str] = {}
        for name, mine in table.groupby("event", sort=False):
            first = mine.drop_duplicates("rank").set_index("rank")["value"]  # of the first pass that counts it
            counts[str(name)] = first.reindex(range(launch.ranks)).to_numpy(np.float64)
            least = mine["share"].min() * 100
            scaled = f", scaled: counted for {least:.0f} % of the time at least" if least < _SHARED_OUT else ""
            origin[str(name)] = f"measured{scaled}"
        found = derive(counts, chosen.table, origin)
        counters = pd.DataFrame(
            {"kernel": WHOLE, "rank": np.arange(launch.ranks), "cpu_time": cpu_time, **found.columns}
        )
        sums = table.groupby(["sampling_pass", "event"])["value"].sum(min_count=launch.ranks)
        by_pass = [pd.DataFrame([one.droplevel(0).dropna()], index=[WHOLE]) for _, one in sums.groupby("sampling_pass")]
        between, more = merging.merged(by_pass)
        notes = ["the whole program in user code, what MPI executed while it waited included", *lost, *more]
        if chosen.unsupported:
            notes.append(f"this machine does not count {', '.join(chosen.unsupported)}")
        return Reading(
            configuration=dict(launch.configuration),
            counters=counters,
            tables={
                "multiplexing": table.drop(columns="value"),
                **({} if between is None else {merging.TABLE: between}),
            },
            provenance={"cpu_time": "measured (task-clock)", **found.provenance},
            notes=tuple(notes),
            source=tuple(sources),
        )


COLLECTORS.register("perf-stat")(PerfStat())
