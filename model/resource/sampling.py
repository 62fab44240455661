"""Sampled times and exact totals: what samples say of shares, the tracer says of the sum.

Samples tell how a program's time divides among its kernels, with an error of one over the root of their number. What
the ranks compute in all between MPI_Init and MPI_Finalize the tracer reads from the processor's clock, without
sampling. Kernels' times are therefore scaled to that sum at each configuration, which takes the sampler's overhead and
its luck out of the total; and kernels that were sampled but never counted between MPI_Init and MPI_Finalize are
start-up and are left out.

A rank on which no sample fell on a kernel spent next to nothing there, and so did a repetition: a kernel's time is that
of all samples over all ranks that have the kernel, with or without samples. Leaving the others out would give a kernel
of one sample in twenty ranks twenty times its time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ranksight.experiment import ALL_RANKS, WHOLE, Experiment, Run
from ranksight.model.series.reduction import reduce
from ranksight.model.series.series import Series

Array = NDArray[np.float64]
SLOWEST = 10e-9
"""Seconds an instruction of a library function takes at most: tens of cycles, a miss of all caches every few."""


@dataclass(frozen=True)
class Sampled:
    """Series whose sampled times add up, and how many samples each of these times has.

    Attributes
    ----------
    series : Series
    samples : mapping of kernel to (n,)
        Samples over all ranks and repetitions at each configuration; empty where nothing was sampled.
    """

    series: Series
    samples: dict[str, Array]


def settle(experiment: Experiment, series: Series) -> Sampled:
    """Leave start-up out of sampled times and scale the rest to the processor time that the tracer read.

    Parameters
    ----------
    experiment : Experiment
        Its runs with a table ``sampling`` (``kernel``, ``rank``, ``samples``) are those of a sampler.
    series : Series
        Means over ranks.
    """
    samples = _samples(experiment, series)
    if not samples:
        return Sampled(series, {})
    series, part = _over_all(experiment, series, samples)
    kernels, names = np.array(series.kernels, dtype=object), np.array(series.metrics, dtype=object)
    counted = set(kernels[names == "instructions"])
    keep = (names != "time") | np.array([kernel in counted or not counted for kernel in series.kernels])
    series, part = series.select(keep), part[keep]
    keep = ~_start_up(series)
    series, part = series.select(keep), part[keep]
    kernels, names = np.array(series.kernels, dtype=object), np.array(series.metrics, dtype=object)
    times = np.flatnonzero((names == "time") & (kernels != WHOLE))
    total = np.flatnonzero((names == "compute_cpu_time") & (kernels == WHOLE))
    if len(times) and len(total):
        sampled = np.nansum(part[times] * reduce(series.values[times], "mean", axis=2), axis=0)
        exact = reduce(series.values[total[:1]], "median", axis=2)[0]
        with np.errstate(invalid="ignore", divide="ignore"):
            factor = np.where((sampled > 0) & (exact > 0), exact / sampled, 1.0)
        values = series.values.copy()
        values[times] *= factor[None, :, None]
        series = replace(series, values=values)
    return Sampled(series, samples)


def _over_all(experiment: Experiment, series: Series, samples: Mapping[str, Array]) -> tuple[Series, Array]:
    """Sampled times as means over all ranks that have a kernel, where `series` has means over those with samples.

    Also the part of all ranks that have each kernel, (s, n). Ranks have a kernel where its instructions were counted on
    them; where nothing was counted, all have it. A kernel that no sample fell on in some repetition keeps one value for
    the configuration, that of all repetitions.
    """
    rows = {
        kernel: at
        for at, (kernel, name) in enumerate(zip(series.kernels, series.metrics, strict=True))
        if name == "time" and kernel in samples
    }
    places = {tuple(point): at for at, point in enumerate(series.points.tolist())}
    slots: dict[int, list[int]] = {}  # of the repetitions of a configuration, as a series has them
    for run in experiment.runs:
        if run.state == "complete" and (place := _place(run, series, places)) is not None:
            slots[place] = sorted({*slots.get(place, ()), run.repetition})
    shape = series.values.shape
    total, taken, having = np.zeros(shape), np.zeros(shape[1:], dtype=bool), np.zeros(shape[:2])
    counted, every = np.zeros(shape[:2]), np.zeros(shape[1])
    for run in experiment.runs:
        place, table = _place(run, series, places), experiment.table(run, "counters")
        if place is None or table is None or run.state != "complete" or (table["rank"] == ALL_RANKS).any():
            continue
        table = table[table["kernel"].isin(list(rows))]
        index = table["kernel"].map(rows).to_numpy(dtype=np.intp)
        if "time" in table.columns and experiment.table(run, "sampling") is not None:
            slot = slots[place].index(run.repetition)
            np.add.at(total[:, place, slot], index, np.nan_to_num(table["time"].to_numpy(dtype=np.float64)))
            taken[place, slot] = True
            every[place] = float(run.configuration.get("ranks", table["rank"].nunique()))
            having[index, place] = every[place]
        elif "instructions" in table.columns:
            each = np.bincount(index, table["instructions"].notna().to_numpy(dtype=np.float64), minlength=shape[0])
            counted[:, place] = np.maximum(counted[:, place], each)
    having = np.where(counted > 0, counted, having)
    part = np.where(having > 0, having / np.maximum(every, 1.0), 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        each_run = np.where(total > 0, total / having[:, :, None], np.nan)
        together = np.where(total.any(axis=2), total.sum(axis=2) / (having * taken.sum(axis=1)), np.nan)
    full = np.all((total > 0) | ~taken, axis=2)[:, :, None]
    pooled = np.full(shape, np.nan)
    pooled[:, :, 0] = together
    mine = np.array(sorted(rows.values()), dtype=np.intp)
    values = series.values.copy()
    told = np.isfinite(together)[mine, :, None]
    values[mine] = np.where(told, np.where(full, each_run, pooled)[mine], values[mine])
    return replace(series, values=values), part


def _place(run: Run, series: Series, places: Mapping[tuple[float, ...], int]) -> int | None:
    """Which configuration of `series` a run is of."""
    return places.get(tuple(float(run.configuration[name]) for name in series.parameters))


def _start_up(series: Series) -> NDArray[np.bool_]:
    """The sampled times of library functions that their instructions between MPI_Init and MPI_Finalize cannot explain.

    Such a function works when the program is loaded and unloaded, where nothing was counted.
    """
    values = reduce(series.values, "median", axis=2)
    rows = {key: i for i, key in enumerate(zip(series.kernels, series.metrics, strict=True))}
    found = np.zeros(len(series), dtype=bool)
    for (kernel, name), at in rows.items():
        count = rows.get((kernel, "instructions"))
        if name == "time" and kernel.endswith("]") and count is not None:
            with np.errstate(invalid="ignore", divide="ignore"):
                each = np.nansum(values[at]) / np.nansum(np.where(np.isfinite(values[at]), values[count], np.nan))
            found[at] = bool(each > SLOWEST)
    return found


def _samples(experiment: Experiment, series: Series) -> dict[str, Array]:
    places = {tuple(point): i for i, point in enumerate(series.points.tolist())}
    found: dict[str, Array] = {}
    for run in experiment.runs:
        table, place = experiment.table(run, "sampling"), _place(run, series, places)
        if table is None or place is None:
            continue
        for kernel, count in table.groupby("kernel", observed=True)["samples"].sum().items():
            found.setdefault(str(kernel), np.zeros(len(series.points)))[place] += float(count)
    return found
