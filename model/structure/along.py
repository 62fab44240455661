"""Sides of the process grid along which the messages of a kernel go.

Programs that exchange halos side by side have a kernel for each: left and right, bottom and top. The ranks that all of
them send to make the grid, and those of one kernel lie along some of its sides alone. What it sends goes by these:
where each side has two ranks or none, as up to eight ranks, its messages are the same at every number of ranks, and no
constant for that. Partners that no rule of the ranks explains are decided by data.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ranksight.comm.costs.collective import operation_name
from ranksight.comm.costs.pointtopoint import SENDS
from ranksight.comm.patterns.grid import Cartesian, pairs_along
from ranksight.comm.patterns.recognition import explain
from ranksight.comm.patterns.rule import EdgeSet
from ranksight.core.experiment import Experiment, Run
from ranksight.model.structure.stated import BETWEEN

Pairs = frozenset[tuple[int, int]]


def pairs_of(experiment: Experiment) -> dict[str, dict[int, Pairs]]:
    """Ordered pairs of distinct ranks between which kernels, and operations of kernels (``kernel: operation``), send,
    by the number of ranks of a run; keys with other operations than sends have none."""
    sent: dict[str, dict[int, Pairs]] = {}
    for run in experiment.runs:
        for key, pairs in pairs_of_run(experiment, run).items():
            ranks, here = int(run.configuration["ranks"]), sent.setdefault(key, {})
            here[ranks] = here.get(ranks, frozenset()) | pairs
    return sent


def pairs_of_run(experiment: Experiment, run: Run) -> dict[str, Pairs]:
    """The same of one run; empty where its partners are not known."""
    table = experiment.table(run, "peers") if "ranks" in run.configuration else None
    if table is None or "kernel" not in table.columns:
        return {}
    sent: dict[str, set[tuple[int, int]]] = {}
    listed = table[["kernel", "operation", "rank", "peer"]].drop_duplicates()
    sends = np.array([operation_name(str(name)) in SENDS for name in listed["operation"]], dtype=bool)
    listed = listed[sends & (listed["rank"] != listed["peer"]).to_numpy()]
    for (kernel, operation), part in listed.groupby(["kernel", "operation"], observed=True):
        pairs = set(zip(part["rank"].tolist(), part["peer"].tolist(), strict=True))
        for key in (str(kernel), f"{kernel}{BETWEEN}{operation}"):
            sent.setdefault(key, set()).update(pairs)
    return {key: frozenset(pairs) for key, pairs in sent.items()}


def unruled(experiment: Experiment) -> set[str]:
    """Kernels, and operations of kernels, whose partners follow no rule of the ranks: they differ at one number of
    ranks, or nothing known explains all runs."""
    ruled: dict[str, dict[int, Pairs]] = {}
    scattered: set[str] = set()
    for run in experiment.runs:
        for key, pairs in pairs_of_run(experiment, run).items():
            if ruled.setdefault(key, {}).setdefault(int(run.configuration["ranks"]), pairs) != pairs:
                scattered.add(key)
    for key, runs in ruled.items():
        sets = [EdgeSet.of(ranks, *np.array(sorted(pairs)).T) for ranks, pairs in runs.items() if pairs]
        if key not in scattered and sets and not explain(sets):
            scattered.add(key)
    return scattered


def sides_along(experiment: Experiment, grids: Collection[Cartesian]) -> dict[str, frozenset[str]]:
    """Of kernels, and operations of kernels, that send along some sides of a process grid and not along others, these
    sides, such as ``x of 3``; keys that send along all sides that are cut, or elsewhere, are not in it."""
    grids = [grid for grid in grids if grid.dimensions > 1 and not grid.domain]
    sides: dict[str, frozenset[str]] = {}
    for key, runs in pairs_of(experiment).items() if grids else ():
        labels = [_sides(grid, runs) for grid in grids]
        if all(labels):
            sides[key] = frozenset().union(*labels)
    return sides


def _sides(grid: Cartesian, runs: dict[int, Pairs]) -> frozenset[str]:
    """Sides of one grid along which the pairs of the runs lie; none where these are all that are cut, or not enough."""
    used, cut = np.zeros((2, grid.dimensions), dtype=bool)
    for ranks, pairs in runs.items():
        along = pairs_along(grid.extents(ranks), grid.periodic)
        used |= [bool(pairs & each) for each in along]
        cut |= [bool(each) for each in along]
        if not pairs <= frozenset().union(*along):
            return frozenset()
    if (used == cut).all():
        return frozenset()
    names = "xyz"[: grid.dimensions]
    names = names[::-1] if grid.rising else names  # x is the longest side
    return frozenset(f"{name} of {grid.dimensions}" for name, yes in zip(names, used.tolist(), strict=True) if yes)
