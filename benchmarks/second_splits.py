"""Second splits of the measured series: other points, parts and metrics of the same sources, for choosing constants.

They ask nothing that the frozen splits ask, so that what is chosen on them is not chosen on what is reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pandas as pd

from benchmarks.sources.homme import LEAST
from benchmarks.tasks import Task, make
from ranksight.core.errors import InputError
from ranksight.core.reading import READERS

Series = Mapping[float, list[float]]
Window = tuple[str, Callable[[float], bool], Callable[[float], bool]]
NODES: tuple[Window, ...] = (
    ("1, 2, 4, 8", lambda x: x in (1, 2, 4, 8), lambda x: x > 8),
    ("2-6", lambda x: 2 <= x <= 6, lambda x: x > 6),
    ("1-8", lambda x: x <= 8, lambda x: x > 8),
    ("1-4", lambda x: x <= 4, lambda x: 4 < x <= 10),
)
LULESH = ("bytes_mem", "bytes_mem_read", "bytes_mem_written", "flops_dp", "time")
POINTS, LONG = 4, 10


def load(data: Path) -> list[Task]:
    """All second splits."""
    parts = (_homme, _codes, _parts, _collectives, _nodes_of_one_domain, _edges)
    return [task for part in parts for task in part(data)]


def _windows(
    source: str, name: str, values: Series, windows: tuple[Window, ...], metric: str = "time"
) -> Iterator[Task]:
    for label, use, ask in windows:
        train = [((x,), values[x]) for x in sorted(values) if use(x)]
        held = [((x,), values[x]) for x in sorted(values) if ask(x)]
        if len(train) >= POINTS and held:
            yield make(f"{source} {label}", f"{name}, {label}", source, ("x",), train, held, metric)


def _by(table: pd.DataFrame, parameter: str, value: str) -> dict[float, list[float]]:
    return {float(str(x)): list(group[value]) for x, group in table.groupby(parameter)}


def _homme(data: Path) -> Iterator[Task]:
    """Strong scaling of every timer at every grid: four rank counts train, the fifth is asked for."""
    table = pd.read_csv(data / "scaling" / "homme_summit_qsize10.csv")
    table = table[table["ranks"] > 0]
    of_run = table.groupby(["ne", "nnode", "job", "block"])["kernel"]
    scheme = of_run.transform(lambda names: names.str.contains("compose", case=False).any())
    for key, series in table.groupby([scheme, "kernel", "ne"]):
        values = _by(series, "ranks", "wallmax")
        if len(values) <= POINTS or min(sum(v) / len(v) for v in values.values()) < LEAST:
            continue
        last = sorted(values)[POINTS - 1]
        window = (("4 -> 5 rank counts", lambda x, b=last: x <= b, lambda x, b=last: x > b),)
        yield from _windows("homme strong", str(key), values, window)  # type: ignore[arg-type]


def _codes(data: Path) -> Iterator[Task]:
    """GROMACS and LAMMPS, other node counts than 1 to 5."""
    table = pd.read_csv(data / "scaling" / "md_archer2_gromacs_lammps.csv")
    for key, series in table.groupby(["code", "katoms", "threads", "tasks_per_node"]):
        values = _by(series, "nodes", "s_per_step")
        if len(values) >= LONG:
            yield from _windows(str(key[0]), str(key[1:]), values, NODES)


def _parts(data: Path) -> Iterator[Task]:
    """Sections of LAMMPS."""
    table = pd.read_csv(data / "scaling" / "md_archer2_lammps_parts.csv")
    windows = (NODES[0], ("1-5", lambda x: x <= 5, lambda x: x > 5))
    for key, series in table.groupby(["katoms", "threads", "part"]):
        values = _by(series, "nodes", "tavg")
        if len(values) >= LONG and min(map(min, values.values())) > 0.5:
            yield from _windows("lammps parts", str(key), values, windows)


def _collectives(data: Path) -> Iterator[Task]:
    """Means and minima of collectives."""
    table = pd.read_csv(data / "scaling" / "extrap_mpi_collectives.csv")
    window = (("32..256 -> 512", lambda x: x < 512, lambda x: x >= 512),)
    for key, series in table.groupby(["mpi", "variable"]):
        for column in ("mean", "min"):
            yield from _windows("collectives", f"{key}, {column}", _by(series, "Ranks", column), window)


def _nodes_of_one_domain(data: Path) -> Iterator[Task]:
    """SPEChpc within one memory domain, and over whole domains."""
    windows = (
        ("1-9", lambda x: x <= 9, lambda x: 9 < x <= 18),
        ("18-36", lambda x: 18 <= x <= 36, lambda x: x > 36),
    )
    values: dict[str, dict[float, list[float]]] = {}
    for file in sorted((data / "counters" / "spechpc_likwid_icelake" / "MEM_DP").iterdir()):
        program, ranks = re.findall(r"^(\w+)-\w+Rank(\d+)-", file.name)[0]
        try:
            for reading in READERS["likwid"].read(file):
                if reading.counters is not None and "cycles" in reading.counters:
                    values.setdefault(program, {}).setdefault(float(ranks), []).append(
                        float(reading.counters["cycles"].max())
                    )
        except InputError:
            continue
    for program, series in sorted(values.items()):
        yield from _windows("spechpc", program, series, windows, "cycles")


def _edges(data: Path) -> Iterator[Task]:
    """Traffic, operations and times of LULESH's kernels."""
    values: dict[tuple[str, str], dict[float, list[float]]] = {}
    for file in sorted((data / "counters" / "lulesh_likwid_icelake" / "sizes").iterdir()):
        edge = float(re.findall(r"_(\d+)\.csv", file.name)[0])
        for reading in READERS["likwid"].read(file):
            assert reading.counters is not None
            for row in reading.counters.to_dict("records"):
                for metric in LULESH:
                    values.setdefault((metric, str(row["kernel"])), {})[edge] = [float(row[metric])]
    window = (("edge 30..120 -> 150", lambda x: x < 150, lambda x: x >= 150),)
    for (metric, kernel), series in sorted(values.items()):
        if min(map(min, series.values())) > 0:
            yield from _windows("lulesh edges", f"{kernel}, {metric}", series, window, metric)
