"""Time of every function by sampling the processor clock in software: works in virtual machines and without a PMU.

Each rank's threads are interrupted 997 times per second of processor time (a prime, so as to fall into step with no
loop) and the function hit is charged with the interval. A kernel hit n times of N has the relative standard error
sqrt((1 - n/N) / n) (binomial). The call chain's first user frame, exact even for code without frame pointers, tells
for whom the operating system worked; time of MPI libraries goes to no kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ranksight.collecting import COLLECTORS, Availability, Step
from ranksight.counters.collectors._perf import buffer_pages, gather, may_sample
from ranksight.counters.collectors._perf_lines import by_line
from ranksight.counters.collectors._ranks import before_program, rank_files, refuse_script
from ranksight.errors import InputError
from ranksight.launching import Launch
from ranksight.reading import Reading

NANOSECOND = 1e-9


@dataclass
class PerfClock:
    """Sampled time per kernel and rank; see the module.

    Parameters
    ----------
    frequency : int
        Samples per second of processor time.
    refine : tuple of str
        Kernels to be split into source lines.
    spans : tuple of str
        Loops to gather lines into, as callgrind's refinement names them.
    """

    frequency: int = 997
    text: str = "time per function, sampled by perf with a software clock (about 2 % slower)"
    deterministic: bool = False
    default: bool = True
    refine: tuple[str, ...] = ()
    spans: tuple[str, ...] = ()

    def refined(self, kernels: Sequence[str], spans: Sequence[str] = ()) -> PerfClock:
        """The same with some kernels split into their lines, or into loops that callgrind found."""
        return replace(self, refine=tuple(kernels), spans=tuple(spans))

    def available(self) -> Availability:
        """Whether perf is here and may sample."""
        return may_sample()

    def steps(self, launch: Launch, folder: Path) -> Sequence[Step]:
        """One run under ``perf record``."""
        refuse_script(launch)
        pages = buffer_pages(launch.ranks)
        # build ids are of no use here, and their cache would fill the user's home
        command = f'perf record -q -B -N -g -m {pages} -F {self.frequency} -e cpu-clock -o "$0/clock.$rank.$$" --'
        return [Step(before_program(launch, folder, command), {"PERF_CONFIG": "/dev/null"})]

    def collect(self, launch: Launch, folder: Path) -> Reading:
        """Read the samples of every rank."""
        files = rank_files(folder, r"clock\.(?P<rank>\d+)\.\d+", launch, "perf")
        sampled = gather(files, launch)
        table = sampled.periods
        parents = None
        if self.refine:
            table, parents = _split(table, files, self.refine, self.spans)
        total = table.groupby("rank")["samples"].transform("sum") + _others(sampled.left_out, table["rank"])
        table = table.assign(
            time=table["period"] * NANOSECOND,
            relative_error=np.sqrt(np.maximum(1.0 - table["samples"] / total, 0.0) / table["samples"]),
        )
        left_out = sampled.left_out.assign(seconds=sampled.left_out["period"] * NANOSECOND)
        mpi = left_out.loc[left_out["group"] == "mpi", "seconds"].sum() / launch.ranks
        other = left_out.loc[left_out["group"] != "mpi", "seconds"].sum() / launch.ranks
        notes = [f"left out: {mpi:.3g} s per rank in MPI libraries, {other:.3g} s in start-up and the system"]
        if sampled.by_name:
            notes.append(
                f"{int(sampled.by_name)} samples in libc's memory and string functions are kernels of their own; "
                "some may be calls by MPI"
            )
        count = int(table["samples"].sum())
        how = f"sampled, n = {count} (cpu-clock, {self.frequency} Hz; a kernel with n of N: error sqrt((1 - n/N)/n))"
        return Reading(
            configuration=dict(launch.configuration),
            counters=table[["kernel", "rank", "time"]].reset_index(drop=True),
            tables={
                "sampling": table[["kernel", "rank", "samples", "relative_error"]].reset_index(drop=True),
                "left_out": left_out[["group", "rank", "samples", "seconds"]],
                **({} if parents is None else {"refined": parents}),
            },
            provenance={"time": how},
            notes=tuple(notes),
            source=tuple(file.name for file in files.values()),
        )


def _split(
    table: pd.DataFrame, files: Mapping[int, Path], kernels: Sequence[str], spans: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Put the parts of `kernels` in their place, with what no line was found for as rest; and tell who is whose."""
    parts = pd.concat([by_line(file, kernels, spans).assign(rank=rank) for rank, file in files.items()])
    lost = sorted(set(kernels) - set(table["kernel"]))
    if lost:
        raise InputError(f"{', '.join(lost)} cannot be refined: no sample hit it", "name kernels as tables show them")
    whole = table[table["kernel"].isin(kernels)].set_index(["kernel", "rank"])[["samples", "period"]]
    told = parts.groupby(["parent", "rank"])[["samples", "period"]].sum()
    told.index.names = ["kernel", "rank"]
    rest = whole.sub(told, fill_value=0.0).clip(lower=0.0).reset_index()
    rest = rest[rest["samples"] > 0]
    files_of = {kernel: _home(parts[parts["parent"] == kernel]) for kernel in kernels}
    names = [f"{kernel}@{files_of[kernel]}" for kernel in rest["kernel"]]
    pieces = pd.concat([parts, rest.assign(parent=rest["kernel"], kernel=names)], ignore_index=True)
    pieces = pieces.groupby(["kernel", "parent", "rank"], as_index=False)[["samples", "period"]].sum()
    event = table["event"].iloc[0]
    kept = pd.concat([table[~table["kernel"].isin(kernels)], pieces.drop(columns="parent").assign(event=event)])
    return kept.sort_values(["kernel", "rank"], ignore_index=True), pieces[["kernel", "parent"]].drop_duplicates()


def _home(parts: pd.DataFrame) -> str:
    """The source file that most samples of a kernel's parts hit; empty where none did."""
    if parts.empty:
        return ""
    files = parts["kernel"].str.rpartition("@")[2].str.partition(":")[0]
    return str(parts.groupby(files)["samples"].sum().idxmax())


def _others(left_out: pd.DataFrame, ranks: pd.Series) -> pd.Series:
    """Samples that hit no kernel, for the rank of each row."""
    return ranks.map(left_out.groupby("rank")["samples"].sum()).fillna(0.0)


COLLECTORS.register("perf-clock")(PerfClock())
