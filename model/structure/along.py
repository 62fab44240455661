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
from ranksight.comm.patterns.recognition import Explanation, explain
from ranksight.comm.patterns.rule import EdgeSet
from ranksight.core.experiment import Experiment, Run
from ranksight.model.structure.rankterm import side_name
from ranksight.model.structure.rankterms import turned_sides
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
    sent: dict[str, set[tuple[int, int]]] = {}
    for _, table in experiment.tables("peers", runs=[run] if "ranks" in run.configuration else ()):
        if "kernel" not in table.columns:
            continue
        listed = table[["kernel", "operation", "rank", "peer"]].drop_duplicates()
        sends = np.array([operation_name(str(name)) in SENDS for name in listed["operation"]], dtype=bool)
        listed = listed[sends & (listed["rank"] != listed["peer"]).to_numpy()]
        for (kernel, operation), part in listed.groupby(["kernel", "operation"], observed=True):
            pairs = set(zip(part["rank"].tolist(), part["peer"].tolist(), strict=True))
            for key in (str(kernel), f"{kernel}{BETWEEN}{operation}"):
                sent.setdefault(key, set()).update(pairs)
    return {key: frozenset(pairs) for key, pairs in sent.items()}


def explained(experiment: Experiment) -> dict[str, tuple[Explanation, ...]]:
    """The rules of the ranks that may be behind the partners of kernels, and of operations of kernels; none where these
    differ at one number of ranks, or nothing known explains all runs."""
    ruled: dict[str, dict[int, Pairs]] = {}
    scattered: set[str] = set()
    for run in experiment.runs:
        for key, pairs in pairs_of_run(experiment, run).items():
            if ruled.setdefault(key, {}).setdefault(int(run.configuration["ranks"]), pairs) != pairs:
                scattered.add(key)
    rules: dict[str, tuple[Explanation, ...]] = dict.fromkeys(scattered, ())
    for key, runs in ruled.items():
        sets = [EdgeSet.of(ranks, *np.array(sorted(pairs)).T) for ranks, pairs in runs.items() if pairs]
        if key not in scattered and sets:
            rules[key] = explain(sets)
    return rules


def sides_along(experiment: Experiment, grids: Collection[Cartesian]) -> dict[str, frozenset[str]]:
    """Of kernels, and operations of kernels, that send along some sides of a process grid and not along others, these
    sides, such as ``x of 3``; keys that send along all sides that are cut, or elsewhere, are not in it."""
    grids = [grid for grid in grids if grid.dimensions > 1 and not grid.domain]
    pairs = pairs_of(experiment) if grids else {}
    by_lines = [_along(grids, pairs, turned) for turned in (False, True)]
    # Lines are turned where kernels then go along a side each that do not otherwise.
    return max(by_lines, key=len)


def one_sided(experiment: Experiment, grids: Collection[Cartesian]) -> set[str]:
    """Kernels that the ranks with a neighbour on one side of the grid have, at every number of ranks, and no others:
    what such a kernel counts goes by the face towards that side."""
    present: dict[str, dict[int, frozenset[int]]] = {}
    measured: set[int] = set()
    runs = (run for run in experiment.runs if run.configuration.get("ranks", 1) > 1)
    for run, table in experiment.tables("counters", runs=runs):
        ranks = int(run.configuration["ranks"])
        if not set(range(ranks)) <= set(table["rank"].unique().tolist()):
            continue
        measured.add(ranks)
        for kernel, part in table.groupby("kernel", observed=True)["rank"]:
            present.setdefault(str(kernel), {})[ranks] = frozenset(part.tolist())
    sides: dict[int, set[tuple[int, frozenset[int]]]] = {}
    ways = [(grid, turned) for grid in grids for turned in (False, True) if grid.dimensions == 2 or not turned]
    for ranks in measured:
        # The same side of the same grid is meant at all numbers of ranks.
        every = [_with_neighbours(grid, ranks, turned) for grid, turned in ways if not any(grid.periodic)]
        sides[ranks] = set(enumerate(side for of_grid in every for side in of_grid))
    facing: set[str] = set()
    for kernel, of_runs in present.items():
        matching = [{at for at, side in sides[ranks] if side == of_runs.get(ranks, frozenset())} for ranks in measured]
        if matching and len(of_runs) > 1 and set.intersection(*matching):
            facing.add(kernel)
    return facing


def _with_neighbours(grid: Cartesian, ranks: int, turned: bool) -> list[frozenset[int]]:
    """Ranks with a lower, and with an upper neighbour along each side of more than one dimension."""
    extents = grid.extents(ranks)
    extents = turned_sides(extents) if turned else extents
    place = np.unravel_index(np.arange(ranks), extents)
    sides: list[frozenset[int]] = []
    for at, extent in zip(place, extents, strict=True) if grid.dimensions > 1 else ():
        sides += [frozenset(np.flatnonzero(at > 0).tolist()), frozenset(np.flatnonzero(at < extent - 1).tolist())]
    return sides


def _along(grids: Collection[Cartesian], pairs: dict[str, dict[int, Pairs]], turned: bool) -> dict[str, frozenset[str]]:
    sides: dict[str, frozenset[str]] = {}
    for key, runs in pairs.items():
        labels = [_sides(grid, runs, turned) for grid in grids if grid.dimensions == 2 or not turned]
        if labels and all(labels):
            sides[key] = frozenset().union(*labels)
    return sides


def _sides(grid: Cartesian, runs: dict[int, Pairs], turned: bool) -> frozenset[str]:
    """Sides of one grid along which the pairs of the runs lie; none where these are all that are cut, or not enough."""
    used, cut = np.zeros((2, grid.dimensions), dtype=bool)
    for ranks, pairs in runs.items():
        extents = grid.extents(ranks)
        along = pairs_along(turned_sides(extents) if turned else extents, grid.periodic)
        used |= [bool(pairs & each) for each in along]
        cut |= [bool(each) for each in along]
        if not pairs <= frozenset().union(*along):
            return frozenset()
    if (used == cut).all():
        return frozenset()
    names = "xyz"[: grid.dimensions]
    names = names[::-1] if grid.rising else names  # x is the longest side
    along_which = [name for name, yes in zip(names, used.tolist(), strict=True) if yes]
    return frozenset(side_name(name, grid.dimensions, turned) for name in along_which)
