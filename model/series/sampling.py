"""Series of values that are made of samples: over all ranks and repetitions, with what a sample is worth in each.

Where no sample fell on a kernel, on a rank or in a repetition, it may have done a little: a mean is that of all samples
over all ranks that have the kernel, with or without samples. Leaving the others out would give a kernel of one sample
in twenty ranks twenty times its value. Repetitions with few samples make one value together, since none of them
determines more than that. Counts that are exact at some configurations, and have an error at others, are of very many
samples where they are exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.arrays import Array, Mask, ratio
from ranksight.core.experiment import ALL_RANKS
from ranksight.core.metrics import Reduction, metric
from ranksight.core.sampled import sampled_runs

if TYPE_CHECKING:
    from ranksight.core.experiment import Experiment, Run
    from ranksight.model.series.reducing import Series


EXACT = 1e-12
"""Worth of a sample of a count that is exact, relative to the count."""
FEW = 10
"""Samples of a kernel in a repetition below which repetitions are taken together."""


def means_of_samples(
    experiment: Experiment, over_ranks: Reduction | Mapping[str, Reduction] | None = None
) -> Reduction | Mapping[str, Reduction] | None:
    """Sampled times are averaged over ranks: the largest of many sampled values is largest by chance."""
    if over_ranks is not None:
        return over_ranks
    sampled = {name for run in experiment.runs for name in run.provenance if run.sampled(name)}
    return dict.fromkeys(sorted(sampled), "mean") or None


def with_sampling(experiment: Experiment, series: Series, averaged: Mapping[str, bool]) -> Series:
    """The series with :attr:`~ranksight.model.series.reducing.Series.worth`, and means over all ranks and repetitions.

    `experiment`: its runs with a table of samples (:mod:`ranksight.core.sampled`) are those of a sampler. `averaged`
    (mapping of metric to bool): whether its values are means over ranks. Others stay as they are, at what a sample is
    worth on one rank.
    """
    places = {tuple(point): at for at, point in enumerate(series.points.tolist())}
    slots: dict[int, list[int]] = {}  # of the repetitions of a configuration, as a series has them
    complete = [run for run in experiment.runs if run.state == "complete"]
    for run in complete:
        place = _place(run, series, places)
        slots[place] = sorted({*slots.get(place, ()), run.repetition})
    rows = series.rows
    shape = series.values.shape
    total, square, one, number = (np.zeros(shape) for _ in range(4))
    sampled, having = np.zeros(shape, dtype=bool), np.zeros(shape[:2])
    names = np.array(series.metrics, dtype=object)
    any_sampled = False
    for run, table in sampled_runs(experiment, complete):
        if table.empty:
            continue
        any_sampled, place = True, _place(run, series, places)
        slot = slots[place].index(run.repetition)
        keys = zip(table["kernel"].astype(str), table["metric"].astype(str), strict=True)
        index = np.array([rows.get(key, -1) for key in keys], dtype=np.intp)
        samples, worth = (table[name].to_numpy(dtype=np.float64)[index >= 0] for name in ("samples", "worth"))
        ranks, index = table["rank"].to_numpy()[index >= 0], index[index >= 0]
        np.add.at(total[:, place, slot], index, samples * worth)
        np.add.at(square[:, place, slot], index, samples * worth**2)
        np.maximum.at(one[:, place, slot], index, worth)
        sampled[np.isin(names, table["metric"].astype(str).unique()), place, slot] = True
        np.maximum.at(number[:, place, slot], index[ranks == ALL_RANKS], 1.0)
        having[:, place] = np.maximum(having[:, place], float(run.configuration.get("ranks", len(np.unique(ranks)))))
    if not any_sampled:
        return series
    counted = counted_ranks(experiment, series)
    having = np.where((counted > 0) & ~number.any(axis=2), counted, np.where(number.any(axis=2), 1.0, having))
    rows_sampled = np.asarray((one > 0).any(axis=(1, 2)))[:, None]
    # Another collector may have measured the same in full.
    sampled &= rows_sampled[:, :, None]
    having = np.where(rows_sampled & np.array([averaged.get(name, True) for name in names])[:, None], having, 1.0)
    return _with_values(series, total, square, one, sampled, np.maximum(having, 1.0), averaged)


def _with_values(
    series: Series, total: Array, square: Array, one: Array, sampled: Mask, having: Array, averaged: Mapping[str, bool]
) -> Series:
    """Means over `having` (s, n) ranks of sums `total` (s, n, r) over ranks, whose squared errors are `square`."""
    # Where no sample fell, the value of a sample elsewhere is used.
    usual = np.where(one > 0, one, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        each = ratio(square, total)
        place = np.fmax.reduce(usual, axis=2)[:, :, None]
        usual = np.where(np.isfinite(place), place, np.fmax.reduce(usual, axis=(1, 2))[:, None, None])
        worth = np.where(np.isfinite(each), each, usual) / having[:, :, None]
        few = np.asarray((sampled & (total < FEW * np.where(np.isfinite(each), each, usual))).any(axis=2))
        number = np.maximum(sampled.sum(axis=2), 1)
        together, squares = total.sum(axis=2), square.sum(axis=2)
        pooled = ratio(squares, together, usual[:, :, 0])
        pooled = pooled / having / number
    means = total / having[:, :, None]
    rows = np.array([averaged.get(name, True) for name in series.metrics])[:, None]
    few = few & rows
    first = np.zeros(sampled.shape, dtype=bool)
    first[:, :, 0] = True
    shown = np.where(few[:, :, None], first & sampled.any(axis=2, keepdims=True), sampled)
    values = np.where(few[:, :, None], (together / having / number)[:, :, None], means)
    values = np.where(rows[:, :, None], values, np.nan_to_num(series.values))
    worth = np.where(few[:, :, None], pooled[:, :, None], worth)
    left = np.where(sampled, np.nan, series.values)
    values = np.where(shown, values, np.where(few[:, :, None], np.nan, left))
    worth = np.where(shown, worth, np.nan)
    counts = np.array([metric(name).kind == "requirement" for name in series.metrics], dtype=bool)[:, None, None]
    exact = counts & shown.any(axis=(1, 2), keepdims=True) & ~shown & np.isfinite(values)
    least = np.fmin.reduce(worth, axis=(1, 2))[:, None, None]
    worth = np.where(exact, np.where(values > 0, EXACT * values, least), worth)
    return replace(series, values=values, worth=worth)


def counted_ranks(experiment: Experiment, series: Series) -> Array:
    """On how many ranks (s, n) each series' kernel was counted to execute instructions, where that was not sampled."""
    rows: dict[str, list[int]] = {}
    for at, kernel in enumerate(series.kernels):
        rows.setdefault(kernel, []).append(at)
    places = {tuple(point): at for at, point in enumerate(series.points.tolist())}
    counts = np.zeros(series.values.shape[:2])
    runs = (run for run in experiment.runs if run.state == "complete")
    with_instructions = (run for run in runs if "instructions" in experiment.columns(run, "counters"))
    for run, table in experiment.tables("counters", ["kernel", "rank", "instructions"], runs=with_instructions):
        if (table["rank"] == ALL_RANKS).any() or run.sampled("instructions"):
            continue
        place = _place(run, series, places)
        each = table[table["instructions"].notna()].groupby("kernel", observed=True)["rank"].nunique()
        for name, ranks in each.items():
            of_metric = rows.get(str(name), [])
            counts[of_metric, place] = np.maximum(counts[of_metric, place], float(ranks))
    return counts


def _place(run: Run, series: Series, places: Mapping[tuple[float, ...], int]) -> int:
    """Which configuration of `series` a run is of."""
    return places[run.point(series.parameters)]
