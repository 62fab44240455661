"""Find the requirements that follow the number of neighbours, and the process grids on which they do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from ranksight.comm.costs.collective import operation_name
from ranksight.comm.costs.pointtopoint import SENDS
from ranksight.comm.patterns.find_grids import cartesian_grids
from ranksight.comm.patterns.grid import MOST_DIMENSIONS, Cartesian
from ranksight.core.arrays import Array, Mask
from ranksight.core.dims import grids_in
from ranksight.core.experiment import ALL_RANKS, Experiment, Run
from ranksight.core.metrics import metric
from ranksight.model import priors
from ranksight.model.structure.coefficients import Coefficients
from ranksight.model.structure.gridlaw import EXACT, SENT, Group, Law, solve
from ranksight.model.structure.levels import COUNTS
from ranksight.model.structure.neighbours import NO_NEIGHBOURS, TERMS, Neighbours

if TYPE_CHECKING:
    import pandas as pd

LEADING = frozenset({"visits", "instructions", "messages", "bytes_sent"})
"""Metrics that say how often a kernel works; its others follow the grid if one of these does."""


def grids_of(experiment: Experiment) -> tuple[dict[Cartesian, float], tuple[int, ...]]:
    """The process grids that fit who sends to whom in all runs, by their table ``peers``, with their weights by
    :func:`ranksight.comm.patterns.find_grids.cartesian_grids`, and the ranks of these runs.

    Its columns are ``rank``, ``operation`` and ``peer``, ranks of the whole program, and ``kernel``, ``bytes`` and
    ``count`` where they are known. One operation, of all kernels or of one, whose pairs are those of a grid is enough,
    or all that send together: a program may send other messages besides. Of several the grids are those that fit most
    of them.
    """
    ids = tuple(run.id for run in experiment.runs)
    if experiment not in _FOUND or _FOUND[experiment][0] != ids:
        _FOUND[experiment] = ids, _search(experiment)
    grids: tuple[dict[Cartesian, float], tuple[int, ...]] = _FOUND[experiment][1]
    return grids


_FOUND: WeakKeyDictionary[Experiment, tuple[tuple[str, ...], Any]] = WeakKeyDictionary()
"""Identifiers of the runs of experiments, and the grids found for them, which several parts of a fit ask for."""


def _search(experiment: Experiment) -> tuple[dict[Cartesian, float], tuple[int, ...]]:
    talks: dict[int, dict[tuple[str, ...], dict[tuple[int, int], float]]] = {}
    for run, table in experiment.tables(
        "peers", runs=(run for run in experiment.runs if int(run.configuration["ranks"]) not in talks)
    ):
        ranks = int(run.configuration["ranks"])
        of_ranks: dict[tuple[str, ...], dict[tuple[int, int], float]] = {}
        talks[ranks] = of_ranks
        table = table.assign(**{name: 0 for name in ("bytes", "count") if name not in table})
        for columns in (["operation"], ["kernel", "operation"]):
            if set(columns) <= set(table.columns):
                sums = table.groupby([*columns, "rank", "peer"], observed=True)[["bytes", "count"]].sum()
                sizes = (sums["bytes"] / sums["count"].clip(lower=1)).tolist()
                for (*name, rank, peer), size in zip(sums.index.tolist(), sizes, strict=True):
                    of_ranks.setdefault(tuple(map(str, name)), {})[rank, peer] = size
        # Directions that are exchanged by operations of their own make the grid together.
        sends = table[np.array([operation_name(str(name)) in SENDS for name in table["operation"]], dtype=bool)]
        sums = sends.groupby(["rank", "peer"], observed=True)[["bytes", "count"]].sum()
        sizes = (sums["bytes"] / sums["count"].clip(lower=1)).tolist()
        of_ranks[()] = dict(zip(((int(rank), int(peer)) for rank, peer in sums.index), sizes, strict=True))
    # An operation that a run lacks was not used there: one rank has nobody to send to.
    names = sorted(set().union(*talks.values()))
    # Of those that go between the same ranks the one that sends most has the faces of the domain.
    names.sort(key=lambda name: sum(sum(talk.get(name, {}).values()) for talk in talks.values()))
    every = [[talk.get(name, {}) for talk in talks.values()] for name in names]
    distinct = {tuple(map(frozenset, each)): each for each in every}
    each = [cartesian_grids(list(zip(talks, pairs, strict=True))) for pairs in distinct.values()]
    fitting = Counter(grid for grids in each for grid in grids)
    most = max(fitting.values(), default=0)
    fitting_best = sorted((grid for grid, count in fitting.items() if count == most), key=_order)
    weights = {grid: max(grids.get(grid, 0.0) for grids in each) for grid in fitting_best}
    return weights, tuple(sorted(talks))


def dimensions_of(experiment: Experiment) -> dict[int, float]:
    """Weights of the numbers of dimensions of the program's process grid; empty where nothing is known of it.

    A command that gives the program its sides states it; elsewhere they are those of the grids that fit who sends to
    whom.
    """
    if "ranks" not in experiment.parameters:
        return {}
    stated = {d for run in experiment.runs for d in grids_in(run.environment.get("template", ""))}
    if len(stated) == 1:
        return dict.fromkeys(stated, 1.0)
    grids, _ = grids_of(experiment)
    weights: dict[int, float] = {}
    for grid, weight in zip(grids, _priors(grids).tolist(), strict=True):
        weights[grid.dimensions] = weights.get(grid.dimensions, 0.0) + weight
    return weights


def _order(grid: Cartesian) -> tuple[int, tuple[bool, ...], bool, str, tuple[float, ...]]:
    return grid.dimensions, grid.periodic, grid.rising, grid.ring, grid.domain


def _priors(grids: Mapping[Cartesian, float]) -> Array:
    """Weights of grids before their counts are looked at; domains are periodic in all dimensions or none, mostly."""
    mixed = np.array([len(set(grid.periodic)) > 1 for grid in grids])
    size = np.where(mixed, priors.NEIGHBOURS["mixed"] / np.maximum([2**grid.dimensions - 2 for grid in grids], 1), 1.0)
    edges = np.array([len(set(grid.domain)) for grid in grids])
    more = edges > edges.min(initial=MOST_DIMENSIONS)
    if (edges == 0).any():  # next to other grids domains have weights of their own
        more[:] = False
    size = size * list(grids.values()) * np.where(more, priors.NEIGHBOURS["edges"] / max(int(more.sum()), 1), 1.0)
    once = np.where([grid.ring == "peers" for grid in grids], priors.NEIGHBOURS["once"], 1.0)
    return np.asarray(size * once, dtype=np.float64)


Tables = Callable[[], Iterator[tuple[Run, "pd.DataFrame"]]]


def fit_neighbours(
    experiment: Experiment,
    names: Collection[tuple[str, str]],
    tables: Tables,
    everywhere: bool = False,
    **settings: Any,
) -> Neighbours:
    """Find the requirements that follow the number of neighbours, where the program has a grid.

    `names` (collection of (kernel, metric)): series to look at; requirements only. `tables` (callable): gives each
    run's table ``kernel``, ``rank`` and one column a metric, or None. `everywhere`: whether means are over the ranks
    that have a kernel (counters) and not over all (messages); the law, which knows all ranks, then says nothing of what
    some ranks of a run lack. `**settings`: of :func:`ranksight.model.fitting.fit_series.fit_series`, for the
    coefficients.
    """
    if "ranks" not in experiment.parameters:
        return NO_NEIGHBOURS
    grids, measured = grids_of(experiment)
    wanted = {key for key in names if metric(key[1]).kind == "requirement" and metric(key[1]).over_ranks in _ADDED}
    if not grids or not wanted:
        return NO_NEIGHBOURS
    others = tuple(name for name in experiment.parameters if name != "ranks")
    groups = _gather(experiment, wanted, tables, others, everywhere)
    shared = sorted(set.intersection(*(set(group.names) for group in groups.values()))) if groups else []
    if not shared:
        return NO_NEIGHBOURS
    for place, group in groups.items():
        at = {name: row for row, name in enumerate(group.names)}
        groups[place] = Group(group.ranks, shared, group.values[[at[name] for name in shared]])
    laws = [[solve(groups.values(), grid, faced) for faced in (False, True)] for grid in grids]
    fits, faced, residual, same = _followed(laws, shared)
    either = _undecided(laws, fits & faced)
    rows = np.flatnonzero(fits.any(axis=1))
    if not len(rows):
        return NO_NEIGHBOURS
    by_length, by_faces = (np.stack([each[at].solved for each in laws], axis=1) for at in (0, 1))
    solved = np.where(faced[..., None, None], by_faces, by_length)
    solved = np.where(fits[..., None, None], solved, 0.0)[rows]
    # A grid is twice among the hypotheses where it is open whether messages go by faces.
    columns, twice = np.flatnonzero(fits.any(axis=0)), np.flatnonzero(either.any(axis=0))
    likely = {grid: weight for g, (grid, weight) in enumerate(grids.items()) if g in columns}
    prior = np.zeros(len(laws))
    prior[columns] = _priors(likely)
    weight = fits * np.where(same, 1.0, priors.NEIGHBOURS["unequal"]) * prior
    constant = either * weight * priors.NEIGHBOURS["constant"]
    plain = np.where(either[..., None, None], by_length, 0.0)[rows]
    solved = np.concatenate([solved[:, columns], plain[:, twice]], axis=1)
    points = np.array(list(groups), dtype=np.float64).reshape(len(groups), len(others))
    owners = [shared[i] for i in rows for _ in range(solved.shape[1] * TERMS)]
    coefficients, index = Coefficients.distinct(others, points, solved.reshape(-1, len(groups)), owners, **settings)
    return Neighbours(
        parameters=experiment.parameters,
        grids=tuple(list(grids)[g] for g in (*columns, *twice)),
        measured=measured,
        kernels=tuple(shared[i][0] for i in rows),
        metrics=tuple(shared[i][1] for i in rows),
        over_ranks=tuple(metric(shared[i][1]).over_ranks for i in rows),
        coefficients=coefficients,
        index=index.reshape(len(rows), -1, TERMS),
        weight=np.concatenate([weight[:, columns], constant[:, twice]], axis=1)[rows],
        residual=np.concatenate([residual[:, columns], np.zeros((len(residual), len(twice)))], axis=1)[rows],
        faces=np.concatenate([faced[:, columns], np.zeros((len(faced), len(twice)), dtype=bool)], axis=1)[rows],
        parts=_parts(experiment),
    )


def _parts(experiment: Experiment) -> Array:
    """Slabs for each unit of the parameters (m,), a half or one, that no run has more ranks than; 0 where one has."""
    points = np.array([run.point(experiment.parameters) for run in experiment.runs])
    with np.errstate(divide="ignore"):
        most = (points[:, [experiment.parameters.index("ranks")]] / points).max(axis=0)
    parts = np.select([most <= 0.5, most <= 1], [0.5, 1.0], 0.0)
    parts[experiment.parameters.index("ranks")] = 0.0
    return parts


def _followed(laws: Sequence[Sequence[Law]], names: Sequence[tuple[str, str]]) -> tuple[Mask, Mask, Array, Mask]:
    """Which series (s, g) follow a law on each of g grids, given without faces and with them; whether the one with
    faces, its residual, and whether all directions cost the same."""
    metrics = np.array([name for _, name in names], dtype=object)
    plain, faced = (np.stack([each[at].follows for each in laws], axis=1) for at in (0, 1))
    # Where how often a kernel works does not follow the grid, a likeness in its loads or cache misses is chance.
    leading = plain & np.isin(metrics, list(LEADING))[:, None]
    leading |= faced & (metrics == "bytes_sent")[:, None]
    lawful: dict[str, Mask] = {}
    for (kernel, _), on in zip(names, leading, strict=True):
        lawful[kernel] = lawful.get(kernel, np.zeros(len(laws), dtype=bool)) | on
    allowed = np.stack([lawful[kernel] for kernel, _ in names])
    error, equal = (
        [np.stack([getattr(each[at], name) for each in laws], axis=1) for at in (0, 1)]
        for name in ("residual", "equal")
    )
    counts = (np.isin(metrics, list(COUNTS)) & (metrics != "messages"))[:, None]
    exact = (np.maximum(*error) == 0) & (metrics == "bytes_sent")[:, None]
    faced &= counts & (~plain | (error[1] < error[0]) | exact)
    fits = (plain | faced) & allowed
    residual, same = (np.where(faced, *each[::-1]) for each in (error, equal))
    # A grid whose law is exact makes those unlikely that only come near.
    exact = fits & (residual == 0)
    return fits & (exact | ~exact.any(axis=1, keepdims=True)), faced, residual, same


def _undecided(laws: Sequence[Sequence[Law]], faced: Mask) -> Mask:
    """Which of the series (s, g) that follow a law with faces follow that without to rounding as well, and differ
    beyond the runs: as where one number of ranks alone has neighbours on some side of the grid."""
    plain, by_faces = (np.stack([each[at].solved[:, 1:] for each in laws], axis=1) for at in (0, 1))
    exact = np.stack([each[0].follows & (each[0].residual == 0) for each in laws], axis=1)
    unlike = np.abs(plain - by_faces).max(axis=(2, 3)) > EXACT * np.abs(plain).max(axis=(2, 3))
    return np.asarray(faced & exact & unlike)


_ADDED = ("mean", "max", "sum", "min")


def _gather(
    experiment: Experiment,
    wanted: Collection[tuple[str, str]],
    tables: Tables,
    others: tuple[str, ...],
    everywhere: bool,
) -> dict[tuple[float, ...], Group]:
    """The runs at each combination of the other parameters.

    Only the first run of a configuration and metric is taken, since counts repeat.
    """
    columns = {name for _, name in wanted}
    partial: set[tuple[str, str]] = set()
    parts: dict[tuple[float, ...], dict[int, dict[tuple[str, str], Array]]] = {}
    for run, table in tables():
        ranks = int(run.configuration["ranks"])
        if (table["rank"] == ALL_RANKS).any():
            continue
        place = run.point(others)
        of_place = parts.setdefault(place, {}).setdefault(ranks, {})
        listed = table["kernel"].astype("category").cat
        kernels, code = listed.categories.astype(str).tolist(), listed.codes.to_numpy()
        rank = table["rank"].to_numpy()
        inside = rank < ranks
        for name in columns.intersection(table.columns):
            if run.sampled(name):
                continue  # of some ranks and not of others by chance
            wide = np.full((len(kernels), ranks), np.nan)
            wide[code[inside], rank[inside]] = table[name].to_numpy(dtype=np.float64)[inside]
            known = ~np.isnan(wide)
            if everywhere and metric(name).over_ranks in ("mean", "min") and name not in SENT:
                partial |= {(kernels[at], name) for at in np.flatnonzero(known.any(axis=1) & ~known.all(axis=1))}
            for at in np.flatnonzero(known.any(axis=1)).tolist():
                if (kernels[at], name) in wanted:
                    of_place.setdefault((kernels[at], name), np.where(known[at], wide[at], 0.0))
    groups: dict[tuple[float, ...], Group] = {}
    for place, runs in sorted(parts.items()):
        names = sorted(set().union(*runs.values()) - partial)
        # A kernel that a run does not have did nothing there: pack is not called where nobody is near.
        values = [np.stack([row.get(name, np.zeros(ranks)) for name in names]) for ranks, row in runs.items() if names]
        if values:
            groups[place] = Group(tuple(runs), names, np.concatenate(values, axis=1))
    return groups
