"""GROMACS, LAMMPS and NAMD on ARCHER2: strong scaling over nodes, many sizes and mixes of ranks and threads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from benchmarks.tasks import Task, make

TRAIN_TO = 5
"""Nodes up to which series are trained; the others are held out."""
LEAST_POINTS = 10
"""Node counts that a series must have to count."""


def load(data: Path) -> Iterator[Task]:
    """Time per step; series that lack one of 1..5 nodes, or have fewer than ten node counts, are left out."""
    files = ("md_archer2_gromacs_lammps.csv", "md_archer2_namd.csv")
    table = pd.concat([pd.read_csv(data / "scaling" / file) for file in files if (data / "scaling" / file).is_file()])
    keys = ["code", "katoms", "threads", "tasks_per_node"]
    for (code, katoms, threads, tasks), series in table.groupby(keys):
        by_nodes = {int(nodes): list(group["s_per_step"]) for nodes, group in series.groupby("nodes")}
        train = [((nodes,), by_nodes[nodes]) for nodes in sorted(by_nodes) if nodes <= TRAIN_TO]
        held = [((nodes,), by_nodes[nodes]) for nodes in sorted(by_nodes) if nodes > TRAIN_TO]
        if len(train) == TRAIN_TO and len(by_nodes) >= LEAST_POINTS:
            name = f"{katoms}k atoms, {tasks} ranks x {threads} threads a node"
            yield make(f"{code} nodes 1-5", name, str(code), ("nodes",), train, held)
