"""Valgrind's callgrind as a simulated processor with three cache levels: counts that repeat to the digit.

Callgrind simulates two levels. Two runs with the same first level give three: with the last level the size of the
second-level cache, then the size of the third. With Dr data reads, D1mr those that miss the first level and
DLmr those that miss the last,

    loads_l1 = Dr - D1mr              loads_l3 = DLmr(run 1) - DLmr(run 2)
    loads_l2 = D1mr - DLmr(run 1)     loads_mem = DLmr(run 2)

Dirty lines thrown out of the last level are simulated too (``--simulate-wb``), for the traffic to memory.
It counts and does not time. Every rank has the caches for itself: a last level that cores share is not divided.

The MPI library is left out, as the instructions of its waiting differ from run to run; the run's notes hold their
number. With a shared MPI library, and in programs of Python, only the code between MPI_Init and MPI_Finalize is
simulated, which halves the time of short runs. A program without a launcher may never initialise MPI, and is simulated
from when the library was loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from ranksight.campaign.collecting import COLLECTORS, Availability, Step
from ranksight.campaign.launching import Launch
from ranksight.core import leftout, places
from ranksight.core.errors import InputError, ToolError
from ranksight.core.reading import Reading
from ranksight.counters.attribution import Attributed, attribute
from ranksight.counters.callgrind_profile import read
from ranksight.counters.collectors._counting import build, uses_shared_mpi
from ranksight.counters.collectors._ranks import before_program, rank_files, refuse_script
from ranksight.counters.installing import how_to_install
from ranksight.counters.refine import split, wanted
from ranksight.platforms import Platform, SimulatedCache, load, simulated_caches

INSTRUCTIONS = "32768,8,64"
"""First-level cache of instructions; platforms describe what serves data, and every core since has had about this."""
_DIFFERENT = 1e-3


@dataclass
class Callgrind:
    """Simulated counters per kernel and rank; see the module.

    Parameters
    ----------
    platform : Platform or None
        Whose caches are simulated; None for the generic platform's.
    refine : tuple of str
        Kernels to be split into loops; see :mod:`ranksight.counters.refine`.
    """

    platform: Platform | None = None
    refine: tuple[str, ...] = ()
    text: str = "instructions, loads, stores, cache levels per function, simulated by valgrind (40 to 90 times slower)"
    deterministic: bool = True
    default: bool = True

    def on(self, platform: Platform) -> Callgrind:
        """The same with the caches of another platform."""
        return replace(self, platform=platform)

    def refined(self, kernels: Sequence[str]) -> Callgrind:
        """The same with some kernels split into their loops."""
        return replace(self, refine=tuple(kernels))

    def caches(self) -> tuple[SimulatedCache, SimulatedCache, SimulatedCache]:
        """First, second and last level as simulated. Raises InputError when the platform has no two levels of cache."""
        platform = self.platform or load("generic")
        levels = simulated_caches(platform)
        if len(levels) < 2:
            raise InputError(f"platform {platform.name} has one level of cache", "describe two or three in its file")
        return levels[0], levels[1], levels[-1]

    @property
    def simulated(self) -> str:
        """Where its numbers come from, with the caches, as the provenance of its metrics states it."""
        levels = zip(("D1", "L2", "LL"), self.caches(), strict=True)
        shown = ", ".join(f"{name} {level.option}" for name, level in levels)
        return f"simulated (callgrind, {shown}: bytes, ways, bytes a line)"

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
        alone = "" if launch.launcher else "RANKSIGHT_FROM_START=1 "
        start = " --instr-atstart=no" if library else ""
        preload = f'env {alone}LD_PRELOAD="$0/{library.name}${{LD_PRELOAD:+:$LD_PRELOAD}}" ' if library else ""
        first, second, last = self.caches()
        steps = []
        for level, cache, more in (("l2", second, ""), ("l3", last, " --simulate-wb=yes")):
            options = f"--cache-sim=yes{more}{start}"
            options += " --dump-instr=yes --collect-jumps=yes" if self.refine else ""
            options += f" --I1={INSTRUCTIONS} --D1={first.option} --LL={cache.option}"
            # a child that the program forks writes a file of its own, recognised by its %p
            options += f' --callgrind-out-file="$place/{level}.$rank.$$.%p" --log-file="$place/{level}-log.$rank.$$.%p"'
            command = f"{preload}valgrind -q --tool=callgrind {options}"
            steps.append(Step(before_program(launch, folder, command)))
        return steps

    def _attributed(self, path: Path) -> Attributed:
        if not self.refine:
            return attribute(read(path))
        profile = read(path, lambda function, place: wanted(self.refine, function, place))
        whole = attribute(profile)
        ran = [kernel for kernel in self.refine if kernel in whole.kernels.index]
        if not ran:
            return whole
        parts = split(profile, ran).drop(columns="parent").set_index("kernel")
        return replace(whole, kernels=pd.concat([whole.kernels.drop(ran), parts]))

    def collect(self, launch: Launch, folder: Path) -> Reading:
        """Read both runs of every rank; see the module for the metrics."""
        first, second = (
            rank_files(folder, rf"{level}\.(?P<rank>\d+)\.(\d+)\.\2", launch, "callgrind", rf"{level}-log\..*")
            for level in ("l2", "l3")
        )
        levels = self.caches()
        line = levels[-1].line
        tables, libraries, unlike = [], [], ("", 0.0)
        begun: list[tuple[str, str, int]] = []
        for rank in range(launch.ranks):
            small, large = (self._attributed(found[rank]) for found in (first, second))
            table, difference = _join(small, large, line)
            unlike = max(unlike, difference, key=lambda pair: pair[1])
            tables.append(table.reset_index(names="kernel").assign(rank=rank))
            libraries.append(large.rows("Ir", "instructions", rank))
            begun += large.places
        counters = pd.concat(tables, ignore_index=True)
        if counters.empty:
            remedy = "check that it calls MPI_Init, and build it with symbols (no -s, no strip)"
            raise ToolError(f"callgrind saw no function of {launch.program}", remedy)
        parents = _parents(self.refine, counters["kernel"].tolist())
        lost = sorted(set(self.refine) - set(parents["parent"]))
        if lost:
            raise InputError(
                f"{', '.join(lost)} cannot be refined: it ran on no rank", "name kernels as tables show them"
            )
        left_out = pd.concat(libraries, ignore_index=True)
        mpi, other = (left_out[names].to_numpy().sum() / launch.ranks for names in (["mpi"], ["system", "other"]))
        notes = [
            f"left out: {mpi:.4g} instructions per rank in MPI libraries and {other:.4g} in start-up and the system"
        ]
        if unlike[1] > _DIFFERENT:
            notes.append(f"{unlike[0]} does not repeat: the two runs differ by {unlike[1]:.2g} in its instructions")
        notes.extend(level.note for level in levels if level.note)
        metrics = [name for name in counters.columns if name not in ("kernel", "rank")]
        return Reading(
            configuration=dict(launch.configuration),
            counters=counters[["kernel", "rank", *metrics]],
            tables={leftout.TABLE: left_out} | places.tables_of(begun) | ({"refined": parents} if self.refine else {}),
            provenance=dict.fromkeys(metrics, self.simulated),
            notes=tuple(notes),
            source=tuple(file.name for found in (first, second) for file in found.values()),
        )


def _parents(kernels: Sequence[str], names: Sequence[str]) -> pd.DataFrame:
    """Which of `names` is a part of which refined kernel."""
    rows = [(name, kernel) for name in dict.fromkeys(names) for kernel in kernels if name.startswith(f"{kernel}@")]
    return pd.DataFrame(rows, columns=["kernel", "parent"])


def _join(small: Attributed, large: Attributed, line: int) -> tuple[pd.DataFrame, tuple[str, float]]:
    """One rank's metrics from its two runs; and the kernel of weight in which the runs differ most."""
    names = small.kernels.index.union(large.kernels.index)
    a = small.kernels.reindex(names, fill_value=0.0)
    b = large.kernels.reindex(names, fill_value=0.0)
    one, other = a["Ir"].to_numpy(), b["Ir"].to_numpy()
    top = np.maximum(one, other)
    heavy = top > _DIFFERENT * max(float(top.sum()), 1.0)
    change = np.where(heavy, np.abs(one - other) / np.maximum(top, 1.0), 0.0)
    difference = (str(names[int(change.argmax())]), float(change.max())) if len(names) else ("", 0.0)
    # A library's loads and its misses are shared out among callers each by themselves, and the larger cache may lose a
    # line that the smaller kept (sets and ways differ): levels never turn negative.
    missed_l1 = np.minimum(b["D1mr"], b["Dr"])
    missed_l2 = np.minimum(a["DLmr"], missed_l1)
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
            "loads_l1": b["Dr"] - missed_l1,
            "loads_l2": missed_l1 - missed_l2,
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
