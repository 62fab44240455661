"""Learn the imbalance of kernels whose ranks were counted one by one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.experiment import ALL_RANKS, WHOLE, Experiment, Run
from ranksight.core.idle import working
from ranksight.core.metrics import metric
from ranksight.core.mpi import communicates
from ranksight.model.application.imbalances import Imbalances
from ranksight.model.application.rankclasses import CLASSES, WORKS, by_rank, fit_classes, works
from ranksight.model.application.unwaited import Unwaited, beyond_slowest, fit_unwaited, in_phases
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce

if TYPE_CHECKING:
    import pandas as pd

Tables = Mapping[str, "list[tuple[Run, pd.DataFrame]]"]
UNEVEN = 1.05
"""Largest over mean from which a kernel is uneven by its times."""
UNEVEN_COUNTS = 1.005
"""The same by its instructions, which do not scatter: a part that one rank does alone is small where it is found."""
FEWEST = 3
"""Configurations of two ranks or more needed to extrapolate an imbalance."""
COVERED = 0.9
"""Part of the program's time that kernels counted rank by rank must have for their imbalance to be the program's."""
HEAVY = 0.01
"""Part of the program's time from which on :data:`UNEVEN_COUNTS` holds for a kernel."""
SLIGHT = 0.005
"""Part of the program's time by which a slowest rank has to exceed the mean to be followed."""
MEASURES = ("instructions", "cycles", "time")
"""Metrics that measure a rank's work in a kernel, the steadiest first."""


def fit_imbalances(
    experiment: Experiment, held: bool, averaged: bool, times: Series, every: bool = False, **settings: Any
) -> Imbalances | None:
    """Learn the imbalance of each uneven kernel; None where ranks were not measured one by one.

    `held`: whether the kernels' times are those of their slowest ranks: these give the imbalance then, as it is a part
    of them, where they are known by rank; otherwise the steadiest of :data:`MEASURES` does. `averaged`: whether cycles
    are means over ranks. `times`: with the kernels'
    times, by which their imbalances weigh. `every`: whether means are over all ranks, and not over those that have a
    kernel. `**settings`: of :func:`ranksight.model.fitting.fit_series.fit_series`.
    """
    if "ranks" not in experiment.parameters:
        return None
    at = experiment.parameters.index("ranks")
    timed = _by_rank(experiment, "time")
    tables = {"time": timed} if held and timed else {name: _by_rank(experiment, name) for name in MEASURES}
    tables = {name: [(run, _computing(table)) for run, table in several] for name, several in tables.items()}
    weights = _weights(times)
    cells_of: dict[tuple[str, str], dict[tuple[float, ...], list[Array]]] = {}
    shares = []
    for name, several in tables.items():
        for run, table in several:
            point, ranks = run.point(experiment.parameters), int(run.configuration["ranks"])
            kernels = tuple(map(str, table.columns))
            weight = np.array([weights.get(point, {}).get(kernel, 0.0) for kernel in kernels])
            work = by_rank(table, ranks)
            having = np.asarray(len(work) if every or held else table.count(), dtype=np.float64)
            each = works(work, weight, having)
            if ranks > 1:
                shares.append(_together(each, weight, held))
            for kernel, cells in zip(kernels, each.T, strict=True):
                if cells[0] > 0:
                    cells_of.setdefault((kernel, name), {}).setdefault(point, []).append(cells)
    measured: dict[tuple[str, str], dict[tuple[float, ...], Array]] = {}
    for name in MEASURES:
        for kernel, points in ((kernel, points) for (kernel, other), points in cells_of.items() if other == name):
            several_ranks = sum(point[at] > 1 for point in points)
            if several_ranks >= FEWEST and kernel not in {key for key, _ in measured}:
                measured[kernel, name] = {point: np.median(several, axis=0) for point, several in points.items()}
    if not measured:
        return None
    computing = [kernel for kernel in _names(weights) if not communicates(kernel)]
    mean = {kernel: sum(each.get(kernel, 0.0) for each in weights.values()) for kernel in computing}
    if not held and sum(mean.get(kernel, 0.0) for kernel, _ in measured) < COVERED * sum(mean.values()):
        return None
    lines = {} if every else _having(tables)
    chosen = _uneven_ones(measured, weights, lines, held)
    places = sorted({point for key in chosen for point in measured[key]})
    none = np.full(len(WORKS), np.nan)
    values = np.array([[measured[key].get(point, none) for point in places] for key in chosen])
    values = np.moveaxis(values, 2, 0)
    classes = fit_classes(experiment.parameters, np.array(places), values, tuple(chosen), **settings)
    known = [share for share in shares if share == share]
    unwaited = _unwaited(experiment.parameters, timed, **settings)
    whole = not known or (unwaited is not None and unwaited.phased)
    together = 1.0 if whole else float(np.clip(np.median(known), 0.0, 1.0))
    return Imbalances(classes, held, averaged, together, lines, unwaited)


def _weights(series: Series) -> dict[tuple[float, ...], dict[str, float]]:
    """Time of each kernel at each configuration."""
    timed = [at for at, (kernel, name) in enumerate(series.keys) if name == "time" and kernel != WHOLE]
    values = np.nan_to_num(reduce(series.values[timed], "median", axis=2))
    names = [series.kernels[at] for at in timed]
    return {
        tuple(point): dict(zip(names, map(float, times), strict=True))
        for point, times in zip(series.points.tolist(), values.T, strict=True)
    }


def _names(weights: Mapping[tuple[float, ...], Mapping[str, float]]) -> list[str]:
    return list(dict.fromkeys(kernel for each in weights.values() for kernel in each))


def _uneven_ones(
    measured: Mapping[tuple[str, str], Mapping[tuple[float, ...], Array]],
    weights: Mapping[tuple[float, ...], Mapping[str, float]],
    having: Collection[str],
    slowest: bool,
) -> list[tuple[str, str]]:
    """Kernels, each with its metric, that are uneven, or that not all ranks have; the most uneven one at least.

    Of kernels that take :data:`HEAVY` of the time counts are followed that differ by less than times have to. Where
    times are those of slowest ranks they are a program's time only less what they are apart, so that those count too
    which are less uneven and take much.
    """
    ratios: dict[tuple[str, str], float] = {}
    followed: set[tuple[str, str]] = set()
    for key, cells in measured.items():
        counted = metric(key[1]).kind == "requirement"
        for point, each in cells.items():
            ratio = max(float(np.nanmax(each[1:]) / each[0]), 1.0)
            ratios[key] = max(ratio, ratios.get(key, 1.0))
            times = weights.get(point, {})
            share = times.get(key[0], 0.0) / (sum(times.values()) or 1.0)
            if (slowest and share * (1 - 1 / ratio) > SLIGHT) or (
                counted and ratio >= UNEVEN_COUNTS and share >= HEAVY
            ):
                followed.add(key)
    least = min(UNEVEN, max(ratios.values()))
    return [key for key, ratio in ratios.items() if ratio >= least or key in followed or key[0] in having]


def _together(works_of: Array, weights: Array, slowest: bool) -> float:
    """The part of the kernels' imbalances that falls on one rank in a run; NaN where there is none.

    `works_of` (5, K): :data:`ranksight.model.application.rankclasses.WORKS`. `weights` (K,): the kernels' times.
    """
    most = np.fmax.reduce(works_of[1:], axis=0)
    scale = np.divide(weights, most if slowest else works_of[0], out=np.zeros_like(most), where=works_of[0] > 0)
    total = float((np.maximum(most - works_of[0], 0.0) * scale).sum())
    if not total > 0:
        return float("nan")
    beyond = np.nansum((works_of[1 : 1 + len(CLASSES)] - works_of[0]) * scale, axis=1)
    return float(beyond.max()) / total


def _computing(table: pd.DataFrame) -> pd.DataFrame:
    """The kernels of a table that are no communication: what a rank waits there another one computes."""
    return table.loc[:, [not communicates(str(kernel)) for kernel in table.columns]]


def _unwaited(
    parameters: Sequence[str], tables: Sequence[tuple[Run, pd.DataFrame]], **settings: Any
) -> Unwaited | None:
    """The law of communication without waiting; None where not both it and computation were timed by rank."""
    rests = _rests(parameters, tables)
    if len({point for point, *_ in rests}) < FEWEST:
        return None
    phased = in_phases(*np.array([[rest, more] for _, rest, more, _ in rests]).T)
    names = dict.fromkeys(name for *_, of_calls in rests for name in of_calls)
    each: dict[str, dict[tuple[float, ...], list[float]]] = {name: {} for name in names}
    for point, rest, more, of_calls in rests:
        took = sum(of_calls.values())
        for name in names:
            part = of_calls.get(name, 0.0) / took if took > 0 else 0.0
            each[name].setdefault(point, []).append(_unwaited_of(rest, more, phased) * part)
    return fit_unwaited(parameters, _seconds(rests, phased), phased, each, **settings)


Rest = tuple[tuple[float, ...], float, float, dict[str, float]]
"""Of a run its configuration, the two seconds of :func:`ranksight.model.application.unwaited.beyond_slowest`, and those
of each function of MPI on the rank that decides them."""


def _rests(parameters: Sequence[str], tables: Sequence[tuple[Run, pd.DataFrame]]) -> list[Rest]:
    """Time in communication beyond the slowest rank, of each run that timed it and computation on all ranks."""
    rests: list[Rest] = []
    for run, table in tables:
        calls = np.array([communicates(str(kernel)) for kernel in table.columns], dtype=bool)
        ranks = int(run.configuration["ranks"])
        if 1 < ranks <= len(table) and calls.any() and not calls.all():
            work = by_rank(table, ranks)
            rest, more, at = beyond_slowest(work[:, ~calls], work[:, calls].sum(axis=1))
            of_calls = dict(zip(map(str, table.columns[calls]), work[at, calls].tolist(), strict=True))
            rests.append((run.point(tuple(parameters)), rest, more, of_calls))
    return rests


def _unwaited_of(rest: float, more: float, phased: bool) -> float:
    return max(rest - more, 0.0) if phased else rest


def _seconds(rests: Sequence[Rest], phased: bool) -> dict[tuple[float, ...], list[float]]:
    seconds: dict[tuple[float, ...], list[float]] = {}
    for point, rest, more, _ in rests:
        seconds.setdefault(point, []).append(_unwaited_of(rest, more, phased))
    return seconds


def unwaited_in(experiment: Experiment, phased: bool) -> dict[tuple[float, ...], list[float]]:
    """Seconds of communication without waiting in the runs of each configuration, where ranks were timed one by one;
    `phased`: :func:`ranksight.model.application.unwaited.in_phases`."""
    return _seconds(_rests(experiment.parameters, _by_rank(experiment, "time")), phased)


def _having(tables: Tables) -> dict[str, tuple[float, float]]:
    """Lines over the ranks of how many have each kernel, of those that not all have."""
    counted: dict[str, tuple[list[float], list[int]]] = {}
    seen: set[str] = set()
    for several in tables.values():
        kernels_of: set[str] = set()
        for run, table in several:
            for kernel, count in table.count().items() if run.configuration["ranks"] > 1 else ():
                if count and kernel not in seen:
                    ranks, counts = counted.setdefault(str(kernel), ([], []))
                    ranks.append(float(run.configuration["ranks"]))
                    counts.append(int(count))
                    kernels_of.add(str(kernel))
        seen |= kernels_of
    lines = {}
    for kernel, (ranks, counts) in counted.items():
        if ranks == counts:
            continue
        if len(set(ranks)) > 1:
            slope, first = np.polyfit(ranks, counts, 1)
        else:
            first, slope = 0.0, float(np.mean(counts)) / ranks[0]
        lines[kernel] = (float(first), float(slope))
    return lines


def _by_rank(experiment: Experiment, name: str) -> list[tuple[Run, pd.DataFrame]]:
    """A metric by rank (rows) and kernel (columns) of each run whose ranks were measured one by one; not of sampled
    values. Runs of one rank are among them where others have several."""
    tables = []
    for run, arrays in experiment.counted(run for run in experiment.runs if not run.sampled(name)):
        if name not in arrays.values:
            continue
        chosen = np.array([kernel != WHOLE for kernel in arrays.kernels], dtype=bool)[arrays.code]
        chosen &= (arrays.rank != ALL_RANKS) & ~np.isnan(arrays.values[name])
        chosen &= working(run, arrays)
        if len(np.unique(arrays.rank[chosen])) < min(2, run.configuration["ranks"]):
            continue
        import pandas as pd

        kernels = pd.Categorical.from_codes(arrays.code[chosen], dtype=pd.CategoricalDtype(list(arrays.kernels)))
        table = pd.DataFrame({"kernel": kernels, "rank": arrays.rank[chosen], name: arrays.values[name][chosen]})
        pivot = table.pivot_table(index="rank", columns="kernel", values=name, aggfunc="sum", observed=True)
        tables.append((run, pivot))
    return tables if any(len(table) > 1 for _, table in tables) else []
