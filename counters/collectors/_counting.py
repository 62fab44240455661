"""Runs under callgrind with two sizes of the last level, of which three cache levels are made; whole runs or a part.

A library that is preloaded limits the simulation to what lies between MPI_Init and MPI_Finalize.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from itertools import chain
from pathlib import Path
from platform import libc_ver
from typing import Self

import numpy as np
import pandas as pd

from ranksight.campaign.collecting import Availability, Step
from ranksight.campaign.launching import Launch
from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.core.linking import linked_libraries
from ranksight.counters.collectors import cache_sizes
from ranksight.counters.collectors._compiled import compiler, made_once
from ranksight.counters.collectors._ranks import before_program, rank_files
from ranksight.counters.installing import how_to_install
from ranksight.platforms import Platform, SimulatedCache, load, simulated_caches

_LIBRARY = "between_init_and_finalize.so"
_MPI = re.compile(r"^[ \t]*lib(?:mpi|fmpich)[\w-]*\.so", re.MULTILINE)
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_PLAIN = re.compile(r"[\w.+-]+")
_INSTRUCTIONS = "32768,8,64"
"""First-level cache of instructions; platforms describe what serves data, and every core since has had about this."""


@dataclass
class Simulation:
    """What collectors that run callgrind have in common.

    `platform`: whose caches are simulated; None for the generic platform's.
    """

    platform: Platform | None = None

    def on(self, platform: Platform) -> Self:
        """The same with the caches of another platform."""
        return replace(self, platform=platform)

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
        if shutil.which("valgrind") is None:
            return Availability(False, "valgrind is not installed", how_to_install("valgrind"))
        return Availability(True)

    def two_runs(
        self, launch: Launch, folder: Path, options: str, library: Path | None, variables: str, last: str = ""
    ) -> list[Step]:
        """One run with the second-level cache as last level, one with the third, with `library` preloaded.

        `options`: of callgrind; `last`: further ones of the second run. `variables`: ``NAME=value`` set before them.
        """
        preload = f'env {variables} LD_PRELOAD="$0/{library.name}${{LD_PRELOAD:+:$LD_PRELOAD}}" ' if library else ""
        first, *others = self.caches()
        steps = []
        for level, cache, more in zip(("l2", "l3"), others, ("", last), strict=True):
            # a child that the program forks writes a file of its own, recognised by its %p
            names = f'--callgrind-out-file="$place/{level}.$rank.$$.%p" --log-file="$place/{level}-log.$rank.$$.%p"'
            sizes = f"--I1={_INSTRUCTIONS} --D1={first.option} --LL={cache.option}"
            command = f"{preload}valgrind -q --tool=callgrind --cache-sim=yes {options}{more} {sizes} {names}"
            steps.append(Step(before_program(launch, folder, command)))
        return steps

    def one_run(
        self,
        launch: Launch,
        folder: Path,
        library: Path | None,
        variables: str,
        enough: tuple[Path, ...] = (),
        ranks: Sequence[int] | None = None,
        only_instructions: bool = False,
        own: Iterable[str] = (),
    ) -> Step:
        """One run for all sizes of the last level; see :mod:`ranksight.counters.collectors.cache_sizes`.

        `enough`: files that end it. `ranks`: those that are simulated, all by default. `only_instructions`: whether
        nothing but the number of instructions is counted, and no file written. `own`: names of the program's object
        files, by which occurrences are seen to differ.
        """
        preload = f'LD_PRELOAD="$0/{library.name}${{LD_PRELOAD:+:$LD_PRELOAD}}"' if library else ""
        names = '--out-file="$place/sizes.$rank.$$.%p" --log-file="$place/sizes-log.$rank.$$.%p"'
        start = "--instr-atstart=no " if library else ""
        start += "--only-instructions=yes " if only_instructions else ""
        program = ":".join(sorted(name for name in own if _PLAIN.fullmatch(name)))
        start += f"--program={program} " if program else ""
        options = f"{start}--caches={':'.join(cache_sizes.sizes(self.caches()))}"
        tool = f'env VALGRIND_LIB="$0/valgrind" {variables} {preload} valgrind -q --tool={cache_sizes.TOOL}'
        return Step(before_program(launch, folder, f"{tool} {options} {names}", ranks), enough=enough)


def files_of(folder: Path, launch: Launch, level: str, ranks: Sequence[int] | None = None) -> dict[int, Path]:
    """The files of all ranks, or of `ranks`, from one run: ``l2``, ``l3``, or ``sizes``."""
    return rank_files(folder, rf"{level}\.(?P<rank>\d+)\.(\d+)\.\2", launch, "callgrind", rf"{level}-log\..*", ranks)


def files_of_both(folder: Path, launch: Launch) -> list[dict[int, Path]]:
    """The files of all ranks from the run with the smaller and with the larger last level."""
    return [files_of(folder, launch, level) for level in ("l2", "l3")]


def by_level(small: pd.DataFrame, large: pd.DataFrame) -> dict[str, Array]:
    """Instructions, loads and stores, and the loads that each level served, from the events of the two runs.

    A library's loads and its misses are shared out among callers each by themselves, and the larger cache may lose a
    line that the smaller kept (sets and ways differ): levels never turn negative.
    """
    missed_l1 = np.minimum(large["D1mr"].to_numpy(), large["Dr"].to_numpy())
    missed_l2 = np.minimum(small["DLmr"].to_numpy(), missed_l1)
    memory = np.minimum(large["DLmr"].to_numpy(), missed_l2)
    return {
        "instructions": large["Ir"].to_numpy(),
        "loads": large["Dr"].to_numpy(),
        "stores": large["Dw"].to_numpy(),
        "loads_l1": large["Dr"].to_numpy() - missed_l1,
        "loads_l2": missed_l1 - missed_l2,
        "loads_l3": missed_l2 - memory,
        "loads_mem": memory,
    }


def uses_shared_mpi(program: str) -> bool:
    """Whether `program` is linked, itself or through its libraries, to a shared MPI library, or is an interpreter of
    Python, whose modules load one."""
    return _MPI.search(linked_libraries(program)) is not None or is_python(program)


def is_python(program: str) -> bool:
    """Whether `program` is an interpreter of Python, by the name of its file."""
    found = shutil.which(program)
    return found is not None and _PYTHON.fullmatch(Path(found).resolve().name) is not None


def build(folder: Path, *more: str) -> Path | None:
    """The library in `folder`, compiled once; None where it cannot be built, or preloaded for blanks in its path.

    Without it the whole process is simulated: the kernels' counts are the same, it takes two to three times as long.
    `folder`: searched for headers too. `*more`: names of further sources of this package that go into the same library.
    """
    using, valgrind = compiler(), shutil.which("valgrind")
    if using is None or valgrind is None or re.search(r"[\s:;]", str(folder.resolve())):
        return None
    include = Path(valgrind).resolve().parent.parent / "include"
    library = folder.resolve() / _LIBRARY
    with as_file(files("ranksight.counters.collectors")) as sources:
        given = [str(sources / name) for name in ("between_init_and_finalize.c", *more)]
        options = ["-O2", "-shared", "-fPIC", f"-I{include}", f"-I{folder.resolve()}"]
        command = [using, *options, *given, "-o", str(library), "-ldl", "-lrt"]
        headers = (sorted(place.glob("*.h")) for place in (sources, folder, include / "valgrind"))
        depends = [path.read_bytes() for path in (*map(Path, given), *chain(*headers))]

    def make() -> bytes | None:
        done = subprocess.run(command, capture_output=True, check=False, timeout=60)
        return library.read_bytes() if done.returncode == 0 else None

    made = made_once(_LIBRARY, [*depends, repr((using, libc_ver())).encode()], make)
    if made is None:
        return None
    library.write_bytes(made)
    return library
