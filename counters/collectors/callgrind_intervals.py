"""Callgrind's counters from one MPI call to the next, for each rank: what the application does, exactly, call by call.

The counters are dumped before every MPI call that communicates or waits, and stand still inside MPI: what is counted
are the application's own instructions and those of the libraries that it calls itself (libm, libc), not MPI's. Two runs
with different last levels give three cache levels, as in :mod:`ranksight.counters.collectors.callgrind`.
Functions that the MPI library calls back (user-defined reductions) run inside MPI and are not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from ranksight.campaign.collecting import COLLECTORS, Step
from ranksight.campaign.launching import Launch
from ranksight.core.errors import ToolError
from ranksight.core.reading import Reading
from ranksight.counters.callgrind_parts import read_parts
from ranksight.counters.collectors._counting import Simulation, build, by_level, files_of_both, uses_shared_mpi
from ranksight.counters.collectors._ranks import refuse_script
from ranksight.counters.mpi_calls import CALLS

INTERVALS = "intervals"
"""Table of a run: ``rank``, ``number`` (of the call, from 0), ``operation`` (the call that ends the stretch) and the
metrics of what lies between the call before, or MPI_Init, and this one."""


@dataclass
class CallgrindIntervals(Simulation):
    """Simulated counters between MPI calls; see the module."""

    text: str = "instructions and cache levels from one MPI call to the next, simulated by valgrind (as callgrind)"
    deterministic: bool = True
    default: bool = False

    def steps(self, launch: Launch, folder: Path) -> Sequence[Step]:
        """One run with the second-level cache as last level, one with the third.

        Raises ToolError when the program has no shared MPI library to count around, or the library for that cannot be
        built.
        """
        refuse_script(launch)
        if not uses_shared_mpi(launch.program):
            raise ToolError(
                f"{launch.program} is linked to no shared MPI library: MPI calls look like its own functions",
                "link it with the shared library of MPI",
            )
        listed = " ".join(f"X({name}, {name.lower()})" for name in CALLS)
        (folder / "calls.h").write_text(f"#define CALLS(X) {listed}\n", encoding="ascii")
        library = build(folder, "stretches.c")
        if library is None:
            raise ToolError(
                "the library that marks MPI calls cannot be built",
                "a C compiler and valgrind's headers are needed, and an experiment's path without blanks",
            )
        marks = "--toggle-collect='PMPI_*' --collect-atstart=yes --dump-before='MPI_*' --dump-before='mpi_*'"
        options = f"--instr-atstart=no --combine-dumps=yes --dump-line=no {marks}"
        # All symbols are bound at the start: binding at the first call would count as the application's work.
        return self.two_runs(launch, folder, options, library, "LD_BIND_NOW=1")

    def collect(self, launch: Launch, folder: Path) -> Reading:
        """Read both runs of every rank.

        Raises ToolError when a rank left nothing; InputError when a file is damaged.
        """
        first, second = files_of_both(folder, launch)
        tables, unlike = [], []
        for rank in range(launch.ranks):
            small, large = read_parts(first[rank]), read_parts(second[rank])
            if small["operation"].tolist() != large["operation"].tolist():
                unlike.append(rank)
            tables.append(_levels(small, large, rank))
        notes = ["functions that MPI calls back are not counted"]
        if unlike:
            notes.append(
                f"the calls of rank {unlike[0]} ({len(unlike)} ranks in all) do not repeat: "
                "loads past the second level are not known there"
            )
        table = pd.concat(tables, ignore_index=True)
        table["operation"] = table["operation"].astype("category")
        metrics = [name for name in table.columns if name not in ("rank", "number", "operation")]
        return Reading(
            configuration=dict(launch.configuration),
            tables={INTERVALS: table},
            provenance=dict.fromkeys(metrics, self.simulated),
            notes=tuple(notes),
            source=tuple(file.name for found in (first, second) for file in found.values()),
        )


def _levels(small: pd.DataFrame, large: pd.DataFrame, rank: int) -> pd.DataFrame:
    """One rank's metrics from its two runs."""
    if small["operation"].tolist() != large["operation"].tolist():
        small = large.assign(DLmr=np.nan)
    operation = large["operation"].to_numpy()
    return pd.DataFrame(
        {"rank": np.int32(rank), "number": np.arange(len(large)), "operation": operation, **by_level(small, large)}
    )


COLLECTORS.register("callgrind-intervals")(CallgrindIntervals())
