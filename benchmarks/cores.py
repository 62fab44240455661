"""What the issue width says of cycles: loops in llvm-mca's scheduling models of cores, from each core to the others.

Compilers describe cores by their issue width, units and latencies, and llvm-mca schedules a loop on them with all data
near (its caches are perfect). The cycles of each loop of ``cores.c`` on one core predict those on another by the law of
:func:`ranksight.model.application.assumed.cycles_there`, which knows the two widths alone.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.settings import Settings, Skipped
from benchmarks.table import markdown
from ranksight.model.application.assumed import cycles_there
from ranksight.platforms.assumptions import spread
from ranksight.platforms.cores import Factor

TITLE = "Issue width and cycles"
SOURCE = Path(__file__).with_name("cores.c")
SERVERS = ("haswell", "skylake-avx512", "icelake-server", "znver1", "znver2", "znver3")
CORES = (*SERVERS, "sandybridge", "btver2", "silvermont")
WITHOUT_AVX2 = ("sandybridge", "btver2", "silvermont")
BUILDS = {
    "scalar": ("-O2", "-fno-tree-vectorize"),
    "SSE": ("-O3", "-ffast-math"),
    "AVX2": ("-O3", "-ffast-math", "-march=x86-64-v3"),
}
NORMAL = 0.6745
"""Standard deviations that half of all values lie within."""

Numbers = NDArray[np.float64]
Law = Callable[[Numbers, int, int], Numbers]
LAWS: dict[str, Law] = {
    "the same cycles": lambda cpi, here, there: np.zeros(cpi.shape),
    "no less than 1 / width": lambda cpi, here, there: np.log(np.maximum(cpi, 1 / there) / cpi),
    "cycles over the width": lambda cpi, here, there: np.full(cpi.shape, np.log(here / there)),
    "the law": lambda cpi, here, there: cycles_there(cpi, Factor(1.0, 1.0, "", (here, there), published=False))[0],
}


def run(settings: Settings) -> str:
    """Errors of each law between cores of different widths."""
    if missing := [tool for tool in ("gcc", "llvm-mca") if shutil.which(tool) is None]:
        raise Skipped(f"{missing[0]} is not installed")
    loops = {(build, name): body for build in BUILDS for name, body in _loops(BUILDS[build]).items()}
    cpi = np.full((len(CORES), len(loops)), np.nan)
    widths = np.zeros(len(CORES), dtype=np.intp)
    for at, core in enumerate(CORES):
        for place, ((build, _), body) in enumerate(loops.items()):
            if not (build == "AVX2" and core in WITHOUT_AVX2):
                cpi[at, place], widths[at] = _scheduled(core, body)
    rows: list[list[object]] = []
    for cores, of in ((SERVERS, "servers"), (CORES, "all")):
        at = [CORES.index(core) for core in cores]
        pairs = [(a, b) for a in at for b in at if widths[a] != widths[b]]
        for name, law in LAWS.items():
            gaps = np.concatenate([law(cpi[a], widths[a], widths[b]) - np.log(cpi[b] / cpi[a]) for a, b in pairs])
            size = np.abs(gaps[np.isfinite(gaps)])
            each = 100 * np.mean(size <= 1.645 * spread("width"))
            rows.append([f"{of}, {name}", len(size), np.median(size) / NORMAL, np.quantile(size, 0.9) / 1.645, each])
    described = ", ".join(f"{core} {width}" for core, width in zip(CORES, widths.tolist(), strict=True))
    heads = ["cores and law", "changes", "spread by half of them", "by nine of ten", "inside 90 % of the assumed, %"]
    return (
        f"{len(loops)} loops without a miss ({', '.join(BUILDS)}) in the scheduling models of cores, by their issue "
        f"width: {described}. Standard deviations of the logarithm of cycles there, by the half and by "
        f"nine of ten of all changes between cores of different widths; {spread('width'):g} is assumed.\n\n"
        + markdown(heads, rows)
    )


def _loops(options: tuple[str, ...]) -> dict[str, str]:
    """The innermost loop of each function, as assembly."""
    command = ["gcc", *options, "-S", "-fno-asynchronous-unwind-tables", "-o", "-", str(SOURCE)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found: dict[str, str] = {}
    function, labels = "", dict[str, int]()
    for at, line in enumerate(lines):
        if named := re.match(r"(\w+):", line):
            function, labels = named[1], {}
        elif label := re.match(r"(\.L\w+):", line):
            labels[label[1]] = at
        elif (jump := re.match(r"\s+j\w+\s+(\.L\w+)", line)) and jump[1] in labels:
            body = lines[labels[jump[1]] + 1 : at + 1]
            if not any(each.startswith(".L") for each in body):
                found.setdefault(function, "\n".join(body))
    return found


def _scheduled(core: str, body: str) -> tuple[float, int]:
    """Cycles an instruction of a loop on a core, and the issue width that its model has."""
    command = ["llvm-mca", f"-mcpu={core}", "-iterations=200", "-noalias"]
    answer = subprocess.run(command, input=body + "\n", capture_output=True, text=True, check=True).stdout
    values = (re.search(rf"{name}:\s+(\d+)", answer) for name in ("Instructions", "Total Cycles", "Dispatch Width"))
    instructions, cycles, width = (int(value[1]) if value else 0 for value in values)
    return cycles / instructions, width
