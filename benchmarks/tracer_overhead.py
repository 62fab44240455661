"""What the tracer adds to an MPI call, and how fast traces of 1,024 ranks are read.

Run ``python benchmarks/tracer_overhead.py``; needs mpicc and mpirun. Nanoseconds a call are the least of 60 rounds, of
which the median over repetitions is printed; on a loaded machine repeat it. Clock: the cost of one read bounds what is
possible.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ranksight.comm.tracer.building import build, compiler
from ranksight.comm.tracer.gathering import read_folder
from ranksight.comm.tracer.tables import tabulate

os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
HERE = Path(__file__).resolve().parent
REPETITIONS = 5


def measure(program: Path, environment: dict[str, str]) -> dict[str, float]:
    """Nanoseconds a call, median of the repetitions."""
    found: dict[str, list[float]] = {}
    for _ in range(REPETITIONS):
        done = subprocess.run(
            ["mpirun", "-n", "1", str(program)],
            env={**os.environ, **environment},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        for line in done.stdout.splitlines():
            name, value = line.rsplit(" ", 1)
            found.setdefault(name, []).append(float(value))
    return {name: statistics.median(values) for name, values in found.items()}


def overhead(folder: Path) -> None:
    using = compiler()
    library, program = build(using), folder / "calls"
    subprocess.run([using.path, "-O2", "-o", program, HERE / "tracer_overhead.c"], check=True)
    plain = measure(program, {})
    modes = {}
    for mode in ("off", "adaptive", "exact"):
        place = folder / mode
        place.mkdir()
        modes[mode] = measure(
            program, {"LD_PRELOAD": str(library), "RANKSIGHT_TRACE_DIR": str(place), "RANKSIGHT_CPU_TIME": mode}
        )
    print(f"{using.family} {using.release}, {using.version}: ns a call, and what the tracer adds by mode of its clock")
    print(f"{'':22}{'plain':>9}" + "".join(f"{mode:>12}" for mode in modes))
    for name, value in plain.items():
        print(f"{name:22}{value:9.1f}" + "".join(f"{found[name] - value:+12.1f}" for found in modes.values()))


def reading(folder: Path, ranks: int = 1024) -> None:
    """Copies of one real trace under other ranks' numbers: reading does not depend on what they hold."""
    program = folder / "calls"
    place = folder / "one"
    place.mkdir()
    measure_once = {"LD_PRELOAD": str(build(compiler())), "RANKSIGHT_TRACE_DIR": str(place)}
    subprocess.run(
        ["mpirun", "-n", "1", str(program)], env={**os.environ, **measure_once}, capture_output=True, check=True
    )
    content = bytearray((place / "rank-000000.trace").read_bytes())
    many = folder / "many"
    many.mkdir()
    for rank in range(ranks):  # HEAD begins at byte 16 + 16: rank, size
        content[32:48] = rank.to_bytes(8, sys.byteorder) + ranks.to_bytes(8, sys.byteorder)
        (many / f"rank-{rank:06d}.trace").write_bytes(bytes(content))
    begin = time.perf_counter()
    traces, _ = read_folder(many, ranks)
    middle = time.perf_counter()
    tables = tabulate(traces)
    end = time.perf_counter()
    print(
        f"{ranks} ranks, {len(tables.messages)} message rows: read {middle - begin:.2f} s, "
        f"tabulated {end - middle:.2f} s, "
        f"{len(content) / 1e3:.1f} kB a rank"
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        overhead(Path(name))
        reading(Path(name))
