"""What messages take on two nodes beyond what their time on one node and on four lets expect.

On one node messages go through memory, on two through the network. Of a timer over nodes the step is

    ln t(2) - ln t(1) - (ln t(4) - ln t(2)),

how much more it takes over the first doubling than over the second one. Parts of LAMMPS and subroutines of the programs
of ARCHER's campaigns that are named after messages, of one percent of the largest timer on one node and more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.settings import Settings, Skipped
from benchmarks.table import markdown
from ranksight.core.arrays import Array
from ranksight.model.priors import NODE_REGIMES, NODE_STEP

TITLE = "Messages from one node to two"
MESSAGES = re.compile(r"\bmp_|mpi|comm\b|\bwait|alltoall|halo", re.IGNORECASE)
"""What timers of messages are named after."""
SHARE = 0.01
"""Of the largest timer on one node that a timer has at least."""
NODES = (1.0, 2.0, 4.0)


def step(table: pd.DataFrame) -> Array:
    """Steps (s,) of the timers of a `table` (columns nodes, kernel, time) of positive times."""
    times = table[table["time"] > 0].groupby(["kernel", "nodes"])["time"].median().unstack()
    if not set(NODES) <= set(times.columns):
        return np.empty(0)
    one, two, four = (times[nodes] for nodes in NODES)
    of_messages = times.index.to_series().str.contains(MESSAGES)
    found = (2 * np.log(two) - np.log(one) - np.log(four))[of_messages & (one >= SHARE * one.max())]
    return found.dropna().to_numpy()


def steps(data: Path) -> dict[str, Array]:
    """Steps of all timers of a program's campaigns, by program."""
    campaigns: dict[str, list[pd.DataFrame]] = {}
    parts = pd.read_csv(data / "scaling" / "md_archer2_lammps_parts.csv")
    parts = parts.assign(kernel=parts["part"], time=parts["tmax"])
    campaigns["LAMMPS"] = [one for _, one in parts.groupby(["katoms", "threads"])]
    for path in sorted((data / "scaling" / "archer").glob("*.csv")):
        campaigns.setdefault(path.name.split("_")[0], []).append(pd.read_csv(path))
    found = {program: np.concatenate([step(each) for each in tables]) for program, tables in campaigns.items()}
    return {program: each for program, each in found.items() if len(each)}


def size(found: Mapping[str, Array], programs: Sequence[str]) -> float:
    """Root mean square of the steps of some programs, each of which counts the same."""
    return float(np.sqrt(np.mean([(found[program] ** 2).mean() for program in programs])))


def run(settings: Settings) -> str:
    """The table."""
    if not settings.data.is_dir():
        raise Skipped("the folder of real measurements, ../shared/data, is not next to this repository")
    found = steps(settings.data)
    rows = []
    for program, each in found.items():
        others = [name for name in found if name != program]
        quantiles = np.exp(np.quantile(each, (0.05, 0.5, 0.95)))
        rows.append([program, len(each), *quantiles, size(found, [program]), size(found, others)])
    head = ("program", "timers", "5 % below", "median", "5 % above", "root mean square of ln", "that of the others")
    every, stepping = size(found, list(found)), 1 - NODE_REGIMES["one"]
    return (
        "Time of messages on two nodes over what it would be if it changed from one node to two as it does from two to "
        f"four.\n\n{markdown(head, rows)}\n\n"
        f"All programs, each counted the same, have {every:.3g}. Where {stepping:g} of all have a step, its deviation "
        f"is {every / np.sqrt(stepping):.3g}; {NODE_STEP:g} is used."
    )
