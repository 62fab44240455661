"""Time of every function by sampling the processor clock in software: works in virtual machines and without a PMU.

Each rank's threads are interrupted 997 times per second of processor time (a prime, so as to fall into step with no
loop) and the function hit is charged with the interval (:mod:`ranksight.core.sampled`). The call chain's first
user frame, exact even for code without frame pointers, names the function that the operating system worked for; time
of MPI libraries goes to no kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ranksight.campaign.collecting import COLLECTORS, Availability, Step
from ranksight.campaign.launching import Launch
from ranksight.core import leftout
from ranksight.core.reading import Reading
from ranksight.core.sampled import TABLE
from ranksight.counters.collectors._perf import buffer_pages, gather, may_sample, record
from ranksight.counters.collectors._perf_lines import Refinable, in_parts
from ranksight.counters.collectors._ranks import before_program, rank_files, refuse_script

NANOSECOND = 1e-9


@dataclass
class PerfClock(Refinable):
    """Sampled time per kernel and rank; see the module.

    `frequency`: samples per second of processor time.
    """

    frequency: int = 997
    text: str = "time per function, sampled by perf with a software clock (about 2 % slower)"
    deterministic: bool = False
    default: bool = True

    def available(self) -> Availability:
        """Whether perf is here and may sample."""
        return may_sample()

    def steps(self, launch: Launch, folder: Path) -> Sequence[Step]:
        """One run under ``perf record``."""
        refuse_script(launch)
        pages = buffer_pages(launch.ranks)
        command = f'{record()} -g -m {pages} -F {self.frequency} -e cpu-clock -o "$0/clock.$rank.$$" --'
        return [Step(before_program(launch, folder, command), {"PERF_CONFIG": "/dev/null"})]

    def collect(self, launch: Launch, folder: Path) -> Reading:
        """Read the samples of every rank."""
        files = rank_files(folder, r"clock\.(?P<rank>\d+)\.\d+", launch, "perf")
        sampled = gather(files, launch)
        table = sampled.periods
        parents: pd.DataFrame | None = None
        lost: tuple[str, ...] = ()
        if self.refine:
            table, parents, lost = in_parts(table, files, self.refine, self.spans)
        table = table.assign(time=table["period"] * NANOSECOND)
        left_out = sampled.by_object("time", NANOSECOND)
        mpi = left_out["mpi"].sum() / launch.ranks
        other = left_out[["system", "other"]].to_numpy().sum() / launch.ranks
        notes = [f"left out: {mpi:.3g} s per rank in MPI libraries, {other:.3g} s in start-up and the system"]
        if sampled.by_name:
            notes.append(
                f"{int(sampled.by_name)} samples in libc's memory and string functions are kernels of their own; "
                "some may be calls by MPI"
            )
        if lost:
            notes.append(f"no sample hit {', '.join(lost)}, which was to be split")
        count = int(table["samples"].sum())
        how = f"sampled, n = {count} (cpu-clock, {self.frequency} Hz; a kernel hit n times: error 1/sqrt(n))"
        return Reading(
            configuration=dict(launch.configuration),
            counters=table[["kernel", "rank", "time"]].reset_index(drop=True),
            tables={
                TABLE: table[["kernel", "rank", "samples"]]
                .assign(metric="time", worth=table["time"] / table["samples"])
                .reset_index(drop=True),
                leftout.TABLE: left_out,
                **({} if parents is None else {"refined": parents}),
            },
            provenance={"time": how},
            notes=tuple(notes),
            source=tuple(file.name for file in files.values()),
        )


COLLECTORS.register("perf-clock")(PerfClock())
