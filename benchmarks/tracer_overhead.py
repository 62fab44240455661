"""What the tracer adds: to single MPI calls, to LAMMPS and the bundled program; how fast 1,024 traces are read.

Nanoseconds are the least of many rounds and runs. With them are callgrind's instructions, which no neighbour on the
machine disturbs: those that a call takes with the tracer beyond those without, and of whole programs the tracer's share
of all instructions, a lower bound where ranks wait, since MPI libraries poll.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.settings import ROOT, Settings, Skipped
from benchmarks.table import markdown

TITLE = "Overhead of the tracer"
HERE = Path(__file__).resolve().parent
MODES = ("off", "adaptive", "exact")
WARM = 100
"""Repetitions that ``tracer_overhead.c`` makes in addition to those asked for."""
MELT = """
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 $(20*v_x) 0 20 0 20
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 0 every 20 check no
fix 1 all nve
run ${steps}
"""
"""The melt of LAMMPS' own benchmarks (``bench/in.lj``)."""
_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


def run(settings: Settings) -> str:
    """The tables."""
    if shutil.which("mpicc") is None or shutil.which("mpirun") is None:
        raise Skipped("no MPI")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts = [_calls(folder, 2 if settings.quick else 4), _programs(folder, 2 if settings.quick else 5)]
        return "\n\n".join([*parts, _reading(folder, 64 if settings.quick else 1024)])


def _execute(command: Sequence[str | Path], **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **_ENVIRONMENT, **variables}
    return subprocess.run(
        [str(word) for word in command], env=environment, capture_output=True, text=True, errors="replace", check=True
    )


def _traced(library: Path, folder: Path) -> dict[str, str]:
    """Environment of a traced run that leaves its files in a new folder."""
    return {"LD_PRELOAD": str(library), "RANKSIGHT_TRACE_DIR": tempfile.mkdtemp(dir=folder)}


def _calls(folder: Path, repetitions: int) -> str:
    """Single calls on one rank: with and without, in turns."""
    from ranksight.comm.tracer.building import build, compiler

    using = compiler()
    library, program = build(using), folder / "calls"
    _execute([using.path, "-O2", "-o", program, HERE / "tracer_overhead.c"])
    cases = {"": {}, **{mode: {"RANKSIGHT_CPU_TIME": mode} for mode in MODES}}
    least: dict[str, dict[str, float]] = {}
    calls: dict[str, int] = {}
    for _ in range(repetitions):
        for case, variables in cases.items():
            more = {**variables, **_traced(library, folder)} if case else {}
            for line in _execute(["mpirun", "-n", "1", program], **more).stdout.splitlines():
                name, count, value = line.split()
                calls[name] = int(count)
                least.setdefault(name, {}).setdefault(case, float("inf"))
                least[name][case] = min(least[name][case], float(value))
    clock = least.pop("Clock")[""]
    rows: list[list[object]] = []
    for name, found in least.items():
        added = [found[mode] - found[""] for mode in MODES]
        plain, traced = (_instructions(program, name, more) / calls[name] for more in ({}, _traced(library, folder)))
        rows.append(
            [
                name.replace("_", "+") if calls[name] > 1 else name,
                found[""],
                *added,
                added[1] - 2 * clock,
                plain,
                traced - plain,
            ]
        )
    header = ["calls", "plain, ns", *(f"{mode}, ns" for mode in MODES), "beyond two clock reads, ns"]
    return (
        f"Added to a call, by how often the processor's clock is read (adaptive is the default): {using.family} "
        f"{using.release}, one rank, least of {repetitions} runs. A call is timed by two reads of the time stamp "
        f"counter, which take {2 * clock:.1f} ns on this machine, whatever else the tracer does.\n\n"
        + markdown([*header, "plain, instructions", "added, instructions"], rows)
    )


def _instructions(program: Path, kind: str, more: dict[str, str], times: int = 20_000) -> float:
    """Instructions of one repetition of a kind of calls; NaN without valgrind."""
    if shutil.which("valgrind") is None:
        return float("nan")
    tool = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"--toggle-collect={kind}", program, kind)
    match = re.search(r"Collected : (\d+)", _execute([*tool, str(times)], **more, RANKSIGHT_CPU_TIME="off").stderr)
    return float(match[1]) / (times + WARM) if match else float("nan")


def _programs(folder: Path, repetitions: int) -> str:
    """LAMMPS and the bundled program on two ranks: the time that they print, in turns with and without."""
    from ranksight.comm.tracer.building import build, compiler

    quiet = os.getloadavg()[2] < 1  # ranks that wait for a core while another polls measure nothing
    heat = folder / "heat"
    _execute(["mpicc", "-O2", "-g", "-o", heat, ROOT / "examples" / "heat.c", "-lm"])
    melt = folder / "in.melt"
    melt.write_text(MELT)
    cases = [
        ("bundled program", "mpicc", ["mpirun", "-n", "2"], [str(heat), "--n", "48", "--iterations", "40"],
         ["--steps", "4"], ["--steps", "1"], r"solve time: ([0-9.e+-]+)"),
    ]  # fmt: skip
    if all(shutil.which(tool) for tool in ("lmp", "mpicc.openmpi", "mpirun.openmpi")):
        words = ["lmp", "-in", str(melt), "-log", "none"]
        cases.append(("LAMMPS, melt", "mpicc.openmpi", ["mpirun.openmpi", "-n", "2"], words,
                      ["-var", "x", "2", "-var", "steps", "100"], ["-var", "x", "1", "-var", "steps", "20"],
                      r"Loop time of ([0-9.e+-]+)"))  # fmt: skip
    rows: list[list[object]] = []
    for title, wrapper, launcher, words, long, short, pattern in cases:
        library = build(compiler(wrapper))
        least = {False: float("inf"), True: float("inf")} if quiet else {}
        for _ in range(repetitions):
            for traced in least:
                more = _traced(library, folder) if traced else {}
                match = re.search(pattern, _execute([*launcher, *words, *long], **more).stdout)
                if match is None:
                    raise Skipped(f"{title} printed no time")
                least[traced] = min(least[traced], float(match[1]))
        share = _share(folder, library, [*launcher], [*words, *short])
        without, with_tracer = least.get(False, float("nan")), least.get(True, float("nan"))
        rows.append([title, without, with_tracer, (with_tracer / without - 1) * 100, share * 100])
    timed = f"least of {repetitions} in turns" if quiet else "not measured: other work kept the cores busy"
    return (
        f"Whole programs on two ranks, the time that they print themselves, {timed}; and the tracer's share of all "
        "instructions of a shorter run, from callgrind, start-up and end of MPI included.\n\n"
        + markdown(["program", "without, s", "with, s", "added, %", "share of instructions, %"], rows)
    )


def _share(folder: Path, library: Path, launcher: list[str], words: Sequence[str | Path]) -> float:
    """Instructions inside the tracer over all of the process between MPI_Init and MPI_Finalize's return, all ranks."""
    if shutil.which("valgrind") is None:
        return float("nan")
    place = Path(tempfile.mkdtemp(dir=folder))
    tool = ["valgrind", "--tool=callgrind", "--compress-strings=no", f"--callgrind-out-file={place}/%p.out"]
    _execute([*launcher, *tool, *words], **_traced(library, folder))
    mine = total = 0
    for file in place.glob("*.out"):
        inside = called = False
        for line in file.read_text(errors="replace").splitlines():
            if line.startswith("ob="):
                inside = line.endswith(library.name)
            elif line.startswith("calls="):
                called = True
            elif line[:1] in "0123456789+-*" and line:
                if not called:
                    cost = int(line.split()[-1])
                    total += cost
                    mine += cost if inside else 0
                called = False
    return mine / total if total else float("nan")


def _reading(folder: Path, ranks: int) -> str:
    """Copies of one real trace under other ranks' numbers: reading does not depend on what they hold."""
    from ranksight.comm.tracer.building import build, compiler
    from ranksight.comm.tracer.gathering import read_folder
    from ranksight.comm.tracer.tables import tabulate

    one = _traced(build(compiler()), folder)
    _execute(["mpirun", "-n", "1", folder / "calls"], **one)
    content = bytearray((Path(one["RANKSIGHT_TRACE_DIR"]) / "rank-000000.trace").read_bytes())
    many = Path(tempfile.mkdtemp(dir=folder))
    for first in range(0, ranks, 256):  # a file holds 256 ranks
        with (many / f"rank-{first:06d}.trace").open("wb") as file:
            for rank in range(first, min(first + 256, ranks)):  # HEAD begins at byte 16 + 16: rank, size
                content[32:48] = rank.to_bytes(8, sys.byteorder) + ranks.to_bytes(8, sys.byteorder)
                file.write(content)
    begin = time.process_time()
    traces, _ = read_folder(many, ranks)
    middle = time.process_time()
    tables = tabulate(traces)
    end = time.process_time()
    return (
        f"Traces of {ranks:,} ranks, {len(content) / 1e3:.1f} kB each in files of 256, {len(tables.messages):,} rows "
        f"of messages: read in {middle - begin:.2f} s and tabulated in {end - middle:.2f} s of processor time."
    )
