"""What messages and programs take on two nodes beyond what their time on one node and on four lets expect.

On one node messages go through memory, on two through the network. Of a timer over nodes the step is

    ln t(2) - ln t(1) - (ln t(4) - ln t(2)),

how much more it takes over the first doubling than over the second one. Messages: parts of LAMMPS and subroutines of
ARCHER's campaigns that are named after them, of one percent of the largest timer on one node and more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.settings import Settings, Skipped
from benchmarks.table import markdown
from ranksight.core.arrays import Array
from ranksight.model.priors import NODE_REGIMES, NODE_STEP, PROGRAM_STEP

TITLE = "From one node to two"
MESSAGES = re.compile(r"\bmp_|mpi|comm\b|\bwait|alltoall|halo", re.IGNORECASE)
"""What timers of messages are named after."""
SHARE = 0.01
"""Of the largest timer on one node that a timer has at least."""
NODES = (1.0, 2.0, 4.0)
KEYS = ["katoms", "threads", "tasks_per_node"]
"""What differs between series of a program."""


def step(times: pd.DataFrame) -> Array:
    """Steps (s,) of series of `times` (s, nodes)."""
    if not set(NODES) <= set(times.columns):
        return np.empty(0)
    one, two, four = (np.log(times[nodes]) for nodes in NODES)
    return np.asarray((2 * two - one - four).dropna())


def timers(data: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    """Programs, and the times (s, nodes) of a campaign's timers of messages."""
    parts = pd.read_csv(data / "scaling" / "md_archer2_lammps_parts.csv")
    parts = parts.assign(kernel=parts["part"], time=parts["tmax"])
    campaigns = [("LAMMPS", each) for _, each in parts.groupby(["katoms", "threads"])]
    paths = sorted((data / "scaling" / "archer").glob("*.csv"))
    campaigns += [(path.name.split("_")[0], pd.read_csv(path)) for path in paths]
    for program, table in campaigns:
        times = table[table["time"] > 0].groupby(["kernel", "nodes"])["time"].median().unstack()
        if NODES[0] in times.columns:
            large = times[NODES[0]] >= SHARE * times[NODES[0]].max()
            yield program, times[large & times.index.to_series().str.contains(MESSAGES)]


def programs(data: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    """Programs, and their whole times (s, nodes)."""
    for file in ("md_archer2_gromacs_lammps.csv", "md_archer2_namd.csv"):
        table = pd.read_csv(data / "scaling" / file)
        for code, some in table.groupby("code"):
            yield str(code).upper(), some.groupby([*KEYS, "nodes"])["s_per_step"].median().unstack()
    for path in sorted((data / "scaling" / "archer").glob("*.csv")):
        table = pd.read_csv(path)
        times = table[table["time"] > 0].groupby(["kernel", "nodes"])["time"].median().unstack()
        # Timers of CP2K are nested, so that the largest is that of all; those of the others exclude each other.
        program = path.name.split("_")[0]
        whole = times.max() if program == "CP2K" else times.sum()
        yield f"{program}, ARCHER", whole.to_frame().T


def joined(series: Iterable[tuple[str, pd.DataFrame]]) -> dict[str, Array]:
    """Steps by program."""
    found: dict[str, list[Array]] = {}
    for program, times in series:
        found.setdefault(program, []).append(step(times))
    return {program: every for program, each in found.items() if len(every := np.concatenate(each))}


def size(found: Mapping[str, Array], names: Iterable[str]) -> float:
    """Root mean square of the steps of some programs, each of which counts the same."""
    return float(np.sqrt(np.mean([(found[name] ** 2).mean() for name in names])))


def table(found: Mapping[str, Array]) -> str:
    """A row a program."""
    rows = []
    for program, each in found.items():
        others = [name for name in found if name != program]
        quantiles = np.exp(np.quantile(each, (0.05, 0.5, 0.95)))
        rows.append([program, len(each), *quantiles, size(found, [program]), size(found, others)])
    head = ("program", "series", "5 % below", "median", "5 % above", "root mean square of ln", "that of the others")
    return markdown(head, rows)


def run(settings: Settings) -> str:
    """The tables."""
    if not settings.data.is_dir():
        raise Skipped("the folder of real measurements, ../shared/data, is not next to this repository")
    messages, whole = joined(timers(settings.data)), joined(programs(settings.data))
    every, stepping = size(messages, messages), 1 - NODE_REGIMES["one"]
    return (
        "Time on two nodes over what it would be if it changed from one node to two as it does from two to four.\n\n"
        f"### Timers of messages\n\n{table(messages)}\n\n"
        f"All programs, each counted the same, have {every:.3g}. Where {stepping:g} of all have a step, its deviation "
        f"is {every / np.sqrt(stepping):.3g}; {NODE_STEP:g} is used.\n\n"
        f"### Whole programs\n\n{table(whole)}\n\n"
        f"All programs, each counted the same, have {size(whole, whole):.3g}; {PROGRAM_STEP:g} is used."
    )
