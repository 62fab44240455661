"""Sampled times and exact totals: what samples say of shares, the tracer says of the sum.

Samples tell how a program's time divides among its kernels, with an error of one over the root of their number. What
the ranks compute in all between MPI_Init and MPI_Finalize the tracer reads from the processor's clock, without
sampling. Kernels' times are therefore scaled to that sum at each configuration, which takes the sampler's overhead and
its luck out of the total; and kernels that were sampled but never counted between MPI_Init and MPI_Finalize are
start-up and are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ranksight.experiment import WHOLE, Experiment
from ranksight.model.reduction import reduce
from ranksight.model.series import Series

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
    kernels, names = np.array(series.kernels, dtype=object), np.array(series.metrics, dtype=object)
    counted = set(kernels[names == "instructions"])
    keep = (names != "time") | np.array([kernel in counted or not counted for kernel in series.kernels])
    series = series.select(keep)
    kernels, names = kernels[keep], names[keep]
    series = series.select(~_start_up(series))
    kernels, names = np.array(series.kernels, dtype=object), np.array(series.metrics, dtype=object)
    times = np.flatnonzero((names == "time") & (kernels != WHOLE))
    total = np.flatnonzero((names == "compute_cpu_time") & (kernels == WHOLE))
    if len(times) and len(total):
        sampled = np.nansum(reduce(series.values[times], "mean", axis=2), axis=0)
        exact = reduce(series.values[total[:1]], "median", axis=2)[0]
        with np.errstate(invalid="ignore", divide="ignore"):
            factor = np.where((sampled > 0) & (exact > 0), exact / sampled, 1.0)
        values = series.values.copy()
        values[times] *= factor[None, :, None]
        series = replace(series, values=values)
    return Sampled(series, samples)


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
        table = experiment.table(run, "sampling")
        place = places.get(tuple(float(run.configuration[name]) for name in series.parameters))
        if table is None or place is None:
            continue
        for kernel, count in table.groupby("kernel", observed=True)["samples"].sum().items():
            found.setdefault(str(kernel), np.zeros(len(series.points)))[place] += float(count)
    return found
