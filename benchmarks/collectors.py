"""What collectors add to a program's processor time: on a loop that computes, and on the bundled program on one rank.

One rank, since ranks that wait for each other burn processor time at will. User and system time of the program with all
its children, the least of the repetitions; on a loaded machine differences of a few percent drown. callgrind's is that
of its first pass of two.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.settings import ROOT, Settings, Skipped
from benchmarks.table import markdown

TITLE = "Overhead of collectors"
LOOP = """
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
static double a[1 << 14];
int main(int argc, char **argv) {
    double s = 0;
    for (int r = 0; r < atoi(argv[1]); r++)
        for (int i = 0; i < 1 << 14; i++) { a[i] = 0.5 * a[i] + i; s += sqrt(a[i]); }
    printf("%g\\n", s);
    return 0;
}
"""
_ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def cpu(command: Sequence[str], environment: Mapping[str, str], repetitions: int) -> list[float]:
    """CPU seconds of each repetition."""
    found = []
    for _ in range(repetitions):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, env={**os.environ, **_ENVIRONMENT, **environment}, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return found


def run(settings: Settings) -> str:
    """Table of programs and collectors."""
    from ranksight.campaign.collecting import COLLECTORS
    from ranksight.campaign.launching import Template

    repetitions = 3 if settings.quick else 9
    rows: list[list[object]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for title, command, sizes in _programs(folder):
            cases = {size: Template((*command, str(size))).fill({"ranks": 1}) for size in sizes}
            tiny, small, large = sizes
            plain = {size: cpu(launch.command, {}, repetitions) for size, launch in cases.items()}
            scatter = statistics.stdev(plain[large]) / min(plain[large]) * 100
            rows.append([title, min(plain[large]), float("nan"), float("nan"), scatter])
            for collector_name in ("perf-clock", "perf", "perf-stat", "pmpi", "callgrind"):
                collector = COLLECTORS[collector_name]
                if not collector.available().ok or (collector_name == "pmpi" and len(command) == 1):
                    continue
                heavy = collector_name == "callgrind"
                long, count = (small, 1) if heavy else (large, repetitions)
                found = {}
                for size in (tiny, long):
                    place = Path(tempfile.mkdtemp(dir=folder))
                    step = collector.steps(cases[size], place)[0]
                    found[size] = min(cpu(step.command, step.environment, count))
                start = found[tiny] - min(plain[tiny])
                factor = (found[long] - found[tiny]) / (min(plain[long]) - min(plain[tiny]))
                rows.append([f"{title}, {collector_name}", found[long], start, (factor - 1) * 100, float("nan")])
    return (
        f"CPU seconds of one rank, least of {repetitions}; callgrind once, on a smaller case. What start-up adds "
        "is seen on a case that does next to nothing; the rest is taken from the difference to it.\n\n"
        + markdown(["program, collector", "CPU s", "added at the start, s", "added, %", "scatter without, %"], rows)
    )


def _programs(folder: Path) -> Iterator[tuple[str, tuple[str, ...], tuple[int, int, int]]]:
    """Title, command and three sizes of each program: next to nothing, short, long."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise Skipped("no C compiler")
    (folder / "loop.c").write_text(LOOP)
    subprocess.run([compiler, "-O2", "-o", "loop", "loop.c", "-lm"], cwd=folder, check=True)
    yield "compute loop", (str(folder / "loop"),), (1, 1000, 120_000)
    if shutil.which("mpicc") and shutil.which("mpirun"):
        source = str(ROOT / "examples" / "heat.c")
        subprocess.run(["mpicc", "-O2", "-g", "-o", str(folder / "heat"), source, "-lm"], check=True)
        launcher = ("mpirun", "-n", "{ranks}", str(folder / "heat"), "--steps", "40", "--n")
        yield "heat on one rank", launcher, (3, 12, 80)
