"""LIKWID's likwid-perfctr in front of every rank: marker regions where the program has them, else each rank as a whole.

One run a performance group. A rank is measured on the processors that the launcher bound it to. Groups that count
traffic of the whole socket (MEM, MEM_DP ...) are right for one rank a socket only: several would each report all of it.

Source: likwid-perfctr(1), options ``-c``, ``-g``, ``-m``, ``-o``.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ranksight.campaign.collecting import COLLECTORS, Availability, Step
from ranksight.campaign.launching import Launch
from ranksight.core.errors import InputError, ToolError
from ranksight.core.linking import linked_libraries
from ranksight.core.reading import Reading
from ranksight.counters.collectors._perf import has_hardware
from ranksight.counters.collectors._ranks import before_program, joined, rank_files, refuse_script
from ranksight.counters.installing import how_to_install
from ranksight.counters.readers.likwid_output import READER

_SOCKET = re.compile(r"^(?:MEM|UPI|QPI|HBM|ENERGY)")
_PROCESSORS = r"$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)"


@dataclass
class Likwid:
    """Performance groups per region and rank; see the module.

    `groups`: as ``likwid-perfctr -a`` lists them; one run each.
    """

    groups: tuple[str, ...] = ("FLOPS_DP", "L2", "L3")
    text: str = "LIKWID's performance groups, per marker region or per rank"
    deterministic: bool = False
    default: bool = False

    def available(self) -> Availability:
        """Whether likwid-perfctr is here and has a way to the counters."""
        if shutil.which("likwid-perfctr") is None:
            return Availability(False, "likwid is not installed", how_to_install("likwid-perfctr"))
        registers = os.access("/dev/cpu/0/msr", os.R_OK | os.W_OK)
        if not registers and shutil.which("likwid-accessD") is None and not has_hardware().ok:
            return Availability(
                False,
                "likwid has no access to the processor's registers",
                "sudo modprobe msr, and its access daemon set up, or a LIKWID built for perf_event",
            )
        return Availability(True)

    def steps(self, launch: Launch, folder: Path) -> Sequence[Step]:
        """One run a group; marker regions are measured where the program is linked to LIKWID's library."""
        refuse_script(launch)
        marker = " -m" if "liblikwid" in linked_libraries(launch.program) else ""
        return [
            Step(
                before_program(
                    launch,
                    folder,
                    f'likwid-perfctr -c "{_PROCESSORS}" -g {group}{marker} -o "$0/{group}.rank$rank.csv"',
                )
            )
            for group in self.groups
        ]

    def collect(self, launch: Launch, folder: Path) -> Reading:
        """Read every group of every rank; what several groups count (cycles, instructions) is taken from the first."""
        found = joined((self._read(group, launch, folder) for group in self.groups), launch)
        if found is None:
            raise InputError("no performance group is named", "'likwid-perfctr -a' lists them")
        return found

    def _read(self, group: str, launch: Launch, folder: Path) -> Reading:
        """One group of all ranks."""
        files = rank_files(folder, rf"{group}\.rank(?P<rank>\d+)\.csv", launch, "likwid-perfctr")
        tables = []
        provenance: dict[str, str] = {}
        notes: dict[str, None] = {}
        for rank, file in files.items():
            for reading in READER.read(file):
                if reading.counters is None:
                    raise ToolError(f"{file.name} holds no counters", "measure this run again")
                tables.append(reading.counters.assign(rank=rank))
                provenance = {**{name: f"{how} ({group})" for name, how in reading.provenance.items()}, **provenance}
                notes.update(dict.fromkeys(reading.notes))
        if _SOCKET.match(group) and launch.ranks > 1:
            notes[f"{group} counts the whole socket: every rank on it reports the same traffic"] = None
        return Reading(
            configuration=dict(launch.configuration),
            counters=pd.concat(tables, ignore_index=True),
            provenance=provenance,
            notes=tuple(notes),
            source=tuple(file.name for file in files.values()),
        )


COLLECTORS.register("likwid")(Likwid())
