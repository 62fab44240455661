"""Valgrind's callgrind as a simulated processor with three cache levels: counts that repeat to the digit.

Callgrind simulates two levels. Two runs with the same first level give three: with the last level the size of the
second-level cache, then the size of the third. With Dr data reads, D1mr those that miss the first level and
DLmr those that miss the last,

    loads_l1 = Dr - D1mr              loads_l3 = DLmr(run 1) - DLmr(run 2)
    loads_l2 = D1mr - DLmr(run 1)     loads_mem = DLmr(run 2)

Dirty lines thrown out of the last level are simulated too (``--simulate-wb``), for the traffic to memory.
It counts and does not time. Every rank has the caches for itself: a last level that cores share is not divided.

The MPI library is left out: what it executes while it waits repeats in no two runs; the run's notes tell its
instructions. Where the program uses a shared MPI library, only what lies between MPI_Init and MPI_Finalize is
simulated, which halves the time that short runs take.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ranksight.collecting import COLLECTORS, Availability, Step
from ranksight.counters.attribution import Attributed, attribute
from ranksight.counters.callgrind import read
from ranksight.counters.collectors._counting import build, uses_shared_mpi
from ranksight.counters.collectors._ranks import before_program, rank_files, refuse_script
from ranksight.counters.geometry import Geometry
from ranksight.counters.installing import how_to_install
from ranksight.errors import ToolError
from ranksight.launching import Launch
from ranksight.reading import Reading

_DIFFERENT = 1e-3


@dataclass
class Callgrind:
    """Simulated counters per kernel and rank; see the module.

    Parameters
    ----------
    geometry : Geometry
        Caches to simulate; :meth:`on` takes those of a platform.
    """

    geometry: Geometry = field(default_factory=Geometry)
    text: str = "instructions, loads, stores, cache levels per function, simulated by valgrind (some 90 times slower)"
    deterministic: bool = True
    default: bool = True

    def on(self, caches: Any) -> Callgrind:
        """The same with a platform's caches; see :meth:`Geometry.of`."""
        return replace(self, geometry=Geometry.of(caches))

    def available(self) -> Availability:
        """Whether valgrind is here."""
        from shutil import which

        if which("valgrind") is None:
            return Availability(False, "valgrind is not installed", how_to_install("valgrind"))
        return Availability(True)

    def steps(self, launch: Launch, folder: Path) -> Sequence[Step]:
        """One run with the second-level cache as last level, one with the third."""
        refuse_script(launch)
        library = build(folder) if uses_shared_mpi(launch.program) else None
        start = " --instr-atstart=no" if library else ""
        preload = f'env LD_PRELOAD="$0/{library.name}${{LD_PRELOAD:+:$LD_PRELOAD}}" ' if library else ""
        caches = self.geometry
        steps = []
        for level, cache, more in (("l2", caches.l2, ""), ("l3", caches.l3, " --simulate-wb=yes")):
            options = f"--cache-sim=yes{more}{start}"
            options += f" --I1={caches.i1.fitted()} --D1={caches.d1.fitted()} --LL={cache.fitted()}"
            # a child that the program forks writes a file of its own, told by its %p
            options += f' --callgrind-out-file="$place/{level}.$rank.$$.%p" --log-file="$place/{level}-log.$rank.$$.%p"'
            command = f"{preload}valgrind -q --tool=callgrind {options}"
            steps.append(Step(before_program(launch, folder, command)))
        return steps

    def collect(self, launch: Launch, folder: Path) -> Reading:
        """Read both runs of every rank; see the module for the metrics."""
        first, second = (
            rank_files(folder, rf"{level}\.(?P<rank>\d+)\.(\d+)\.\2", launch, "callgrind", rf"{level}-log\..*")
            for level in ("l2", "l3")
        )
        tables, libraries, unlike = [], [], 0.0
        for rank in range(launch.ranks):
            small, large = (attribute(read(found[rank])) for found in (first, second))
            table, difference = _join(small, large, self.geometry.l3.line)
            unlike = max(unlike, difference)
            tables.append(table.reset_index(names="kernel").assign(rank=rank))
            out = {"mpi_instructions": large.mpi["Ir"], "other_instructions": large.other["Ir"]}
            libraries.append({"rank": rank, **out})
        counters = pd.concat(tables, ignore_index=True)
        if counters.empty:
            raise ToolError(f"callgrind saw no function of {launch.program}", "build it with symbols (no -s, no strip)")
        left_out = pd.DataFrame(libraries)
        notes = [
            f"left out: {left_out['mpi_instructions'].mean():.4g} instructions per rank in MPI libraries and "
            f"{left_out['other_instructions'].mean():.4g} in start-up and the system"
        ]
        if unlike > _DIFFERENT:
            notes.append(
                f"the two runs differ by up to {unlike:.2g} in a kernel's instructions: the program does not repeat"
            )
        caches = self.geometry
        how = (
            f"simulated (callgrind, D1 {caches.d1.fitted()}, L2 {caches.l2.fitted()}, LL {caches.l3.fitted()}: "
            "bytes, ways, bytes a line)"
        )
        metrics = [name for name in counters.columns if name not in ("kernel", "rank")]
        return Reading(
            configuration=dict(launch.configuration),
            counters=counters[["kernel", "rank", *metrics]],
            tables={"left_out": left_out},
            provenance=dict.fromkeys(metrics, how),
            notes=tuple(notes),
            source=tuple(file.name for found in (first, second) for file in found.values()),
        )


def _join(small: Attributed, large: Attributed, line: int) -> tuple[pd.DataFrame, float]:
    """One rank's metrics from its two runs; and by how much the runs differ."""
    names = small.kernels.index.union(large.kernels.index)
    a = small.kernels.reindex(names, fill_value=0.0)
    b = large.kernels.reindex(names, fill_value=0.0)
    one, other = a["Ir"].to_numpy(), b["Ir"].to_numpy()
    top = np.maximum(one, other)
    heavy = top > _DIFFERENT * max(float(top.sum()), 1.0)
    difference = float((np.abs(one - other)[heavy] / top[heavy]).max(initial=0.0))
    # the larger cache may lose a line that the smaller kept (sets and ways differ): levels never turn negative
    missed_l2 = np.minimum(a["DLmr"], b["D1mr"])
    memory = np.minimum(b["DLmr"], missed_l2)
    stores_l2 = np.minimum(a["DLmw"], b["D1mw"])
    stores_l3 = np.minimum(b["DLmw"], stores_l2)
    read_bytes = line * (b["DLmr"] + b["DLmw"])
    written_bytes = line * (b["DLdmr"] + b["DLdmw"] + b["ILdmr"])
    table = pd.DataFrame(
        {
            "visits": b["visits"],
            "instructions": b["Ir"],
            "loads": b["Dr"],
            "stores": b["Dw"],
            "loads_l1": b["Dr"] - b["D1mr"],
            "loads_l2": b["D1mr"] - missed_l2,
            "loads_l3": missed_l2 - memory,
            "loads_mem": memory,
            "store_misses_l1": b["D1mw"],
            "store_misses_l2": stores_l2,
            "store_misses_l3": stores_l3,
            "bytes_mem_read": read_bytes,
            "bytes_mem_written": written_bytes,
            "bytes_mem": read_bytes + written_bytes,
        },
        index=names,
    )
    return table, difference


COLLECTORS.register("callgrind")(Callgrind())
