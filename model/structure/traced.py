"""What traces show of the messages of kernels: partners, operations, communicators, and sides of the process grid.

Programs that exchange halos side by side have a kernel for each: left and right, bottom and top. The ranks that all of
them send to make the grid, and those of one kernel lie along some of its sides alone. What it sends goes by these:
where each side has two ranks or none, as up to eight ranks, its messages are the same at every number of ranks, and no
constant for that. Partners that no rule of the ranks explains are decided by data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from ranksight.comm.costs.collective import OPERATIONS, operation_name
from ranksight.comm.costs.pointtopoint import SENDS
from ranksight.comm.patterns.grid import Cartesian, pairs_along
from ranksight.comm.patterns.recognition import Explanation, explain
from ranksight.comm.patterns.rule import EdgeSet
from ranksight.core.dims import dims_create
from ranksight.core.experiment import Experiment, Run
from ranksight.model.structure.called import Called
from ranksight.model.structure.gridlaw import EXACT, SENT
from ranksight.model.structure.improving import Key
from ranksight.model.structure.local_blocks import DIMENSIONS
from ranksight.model.structure.neighbourfit import grids_of
from ranksight.model.structure.rankterm import side_name
from ranksight.model.structure.rankterms import GROUPS, turned_sides
from ranksight.model.structure.stated import BETWEEN

if TYPE_CHECKING:
    import pandas as pd

Pairs = frozenset[tuple[int, int]]
TRANSPOSES = frozenset({"alltoall", "alltoallv", "alltoallw"})
"""Operations that cut slabs of a domain along another side."""
MANY_RUNS = 2
"""Numbers of ranks above which communicators show the side of a grid that they lie along."""
MANY = 6
"""Pairs of ranks that show whether their messages have few lengths."""
UNLIKE = 0.75
"""Share of pairs with a length of message of their own from which on data decide them: faces, edges and corners of
blocks have few lengths, also where sides do not divide evenly."""


def read_called(experiment: Experiment) -> Called:
    """What the traces of an experiment show; nothing where ranks are no parameter."""
    if "ranks" not in experiment.parameters:
        return Called()
    whole, varied, sizes = dict[str, bool](), dict[Key, bool](), dict[str, dict[int, set[int]]]()
    sending, transposing = set[str](), set[str]()
    for ranks, key, part in _messages(experiment):
        sizes.setdefault(key, {}).setdefault(ranks, set()).update(part["comm_size"].astype(int))
        collective, sends = (part["name"].isin(names) for names in (OPERATIONS, SENDS))
        sending |= {key} if sends.any() else set()
        transposing |= {key} if part["name"].isin(TRANSPOSES).any() else set()
        if collective.any():
            whole[key] = whole.get(key, True) and bool(part["comm_size"][collective].min() == ranks)
        of_ranks = part[collective | sends].groupby("rank")[["count", "bytes"]].sum()
        for column, name in (("count", "messages"), ("bytes", "bytes_sent")) if ranks > 1 and len(of_ranks) else ():
            least, most = of_ranks[column].min(), of_ranks[column].max()
            differs = len(of_ranks) < ranks or bool(most > (1 + EXACT) * least)
            varied[key, name] = varied.get((key, name), False) or differs
    sizes = {key: of_runs for key, of_runs in sizes.items() if any(max(each) < p for p, each in of_runs.items())}
    even = frozenset(key for key, yes in varied.items() if not yes)
    ranks, partners, irregular, uneven = _partners(experiment)
    drawn = frozenset(kernel for kernel in irregular if all((kernel, name) in even for name in SENT))
    collectives = frozenset(whole) - sending
    together = frozenset(key for key in collectives if whole[key])
    return Called(
        together,
        ranks,
        partners,
        sides_along(experiment, grids_of(experiment)[0]),
        groups_of(sizes),
        lines_of(sizes),
        even,
        explained(experiment),
        collectives,
        together & transposing,
        irregular - drawn,
        uneven - drawn,
        drawn,
    )


def _messages(experiment: Experiment) -> Iterator[tuple[int, str, pd.DataFrame]]:
    """Ranks and messages, with the plain ``name`` of the operation, of each run and kernel, and of each run, kernel and
    operation (``kernel: operation``)."""
    for run, table in experiment.tables("messages", runs=_with_ranks(experiment)):
        kernels, operations = table["kernel"].astype(str), table["operation"].astype(str)
        named = table.assign(name=operations.map({each: operation_name(each) for each in operations.unique()}))
        for keys in (kernels, kernels + BETWEEN + operations):
            for key, part in named.groupby(keys.rename("key")):
                yield int(run.configuration["ranks"]), str(key), part


def _with_ranks(experiment: Experiment) -> list[Run]:
    """The runs of an experiment whose ranks are known."""
    return [run for run in experiment.runs if "ranks" in run.configuration]


def groups_of(sizes: Mapping[str, Mapping[int, set[int]]]) -> dict[str, int]:
    """Ranks of the groups in which, or between the first of which, kernels and operations of kernels communicate: their
    communicators had min(ranks, group) or ceil(ranks / group) ranks in all runs."""
    groups: dict[str, int] = {}
    for key, of_runs in sizes.items():
        for group in GROUPS:
            within = all(each <= {min(p, group), p % group or group} for p, each in of_runs.items())
            between = all(each == {-(-p // group)} for p, each in of_runs.items())
            if within or between:
                groups[key] = group
    return groups


def lines_of(sizes: Mapping[str, Mapping[int, set[int]]]) -> dict[str, frozenset[str]]:
    """Sides of a process grid that the communicators of kernels and operations of kernels have
    as many ranks as, in all runs: those of rows, or of columns."""
    lines: dict[str, frozenset[str]] = {}
    for key, of_runs in sizes.items():
        sides = [
            side_name("xyz"[at], d, False)
            for d in DIMENSIONS
            for at in range(d)
            if all(each == {dims_create(p, d)[at]} for p, each in of_runs.items())
        ]
        if sides and len(of_runs) > MANY_RUNS:
            lines[key] = frozenset(sides)
    return lines


def _partners(experiment: Experiment) -> tuple[int, dict[str, float], frozenset[str], frozenset[str]]:
    """The most ranks of a run whose partners are known, how many a rank sends to there on average, by kernels and their
    operations, which of these have partners that data decide, and which of those also how often to send to each."""
    most, partner_counts, irregular, uneven = 1, dict[str, float](), set[str](), set[str]()
    runs = sorted(_with_ranks(experiment), key=lambda run: -run.configuration["ranks"])
    for run, table in experiment.tables("peers", runs=(run for run in runs if run.configuration["ranks"] >= most)):
        ranks = int(run.configuration["ranks"])
        if not {"kernel", "bytes"} <= set(table.columns):
            continue
        most = ranks
        names, kernels = table["operation"].astype(str), table["kernel"].astype(str)
        sends = np.array([operation_name(name) in SENDS for name in names], dtype=bool)
        sends &= (table["rank"] != table["peer"]).to_numpy()
        for keys in (kernels, kernels + BETWEEN + names):
            counted = table if "count" in table else table.assign(count=1)
            links = counted.assign(key=keys)[sends].groupby(["key", "rank", "peer"])[["bytes", "count"]].sum()
            links = links.reset_index()
            for key, pairs in links.groupby("key"):
                partner_counts[str(key)] = len(pairs) / ranks
                lengths = pairs.loc[pairs["rank"] < pairs["peer"], "bytes"]
                if len(lengths) >= MANY and lengths.nunique() > UNLIKE * len(lengths):
                    irregular.add(str(key))
                    uneven |= {str(key)} if pairs["count"].nunique() > 1 else set()
    return most, partner_counts, frozenset(irregular), frozenset(uneven)


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
