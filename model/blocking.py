"""The terms of the resource equation from what was counted: CPI without stalls, and the memory blocking factor.

Where no stalls were counted, a kernel's CPI without stalls is its CPI where memory asks least of it (Panadero et al.,
minimum CPI); where no cycles were, cycles are time x clock. The model says which it used.

A factor from sampled times scatters as the samples do. Where all configurations agree with one factor within that
(chi-squared test), it is that one, with its standard error; only where they do not is it a function of the parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from ranksight.model.fitting import fit_series
from ranksight.model.functions import Functions
from ranksight.model.levels import fit_levels
from ranksight.model.reduction import reduce
from ranksight.model.resource import LEVELS, Machine, Resources
from ranksight.model.series import Series

Array = NDArray[np.float64]

CALM = 0.25
"""Share of the configurations, those where memory asks least per instruction, that tell the CPI without stalls."""
RATIO = "bf_mem"
ENOUGH = 400
"""Samples that tell a sampled CPI to a twentieth."""
DOUBT = 0.01
"""Probability of samples scattering so much by chance, below which one factor for all configurations is given up."""


def fit_resources(
    series: Series,
    machine: Machine,
    samples: Mapping[str, Array] | None = None,
    over_repetitions: str = "median",
    **settings: Any,
) -> Resources | None:
    """Set the equation up for every kernel that has instructions, loads per level, and time or cycles.

    Parameters
    ----------
    series : Series
        Means over ranks.
    machine : Machine
    samples : mapping of kernel to (n,), optional
        Samples behind each time, for kernels whose time was sampled.
    over_repetitions : str
        How repetitions become one value.
    **settings
        Of :func:`ranksight.model.fitting.fit_series`.

    Returns
    -------
    Resources or None
        None where no kernel has the counters.
    """
    rows = {key: i for i, key in enumerate(zip(series.kernels, series.metrics, strict=True))}
    values = reduce(series.values, over_repetitions, axis=2)
    parts = []
    for kernel in dict.fromkeys(series.kernels):
        counted = {name: values[rows[kernel, name]] for name in _NEEDED if (kernel, name) in rows}
        part = _kernel(kernel, counted, machine, (samples or {}).get(kernel))
        if part is not None:
            parts.append(part)
    if not parts:
        return None
    trending = [part for part in parts if not part.steady]
    trend = None
    if trending:
        ratios = Series(
            series.parameters,
            series.points,
            np.array([part.factors for part in trending])[:, :, None],
            tuple(part.name for part in trending),
            (RATIO,) * len(trending),
        )
        trend = Functions(fit_series(ratios, **settings), fit_levels(ratios, **settings))
    return Resources(
        machine,
        tuple(part.name for part in parts),
        np.array([part.cpi for part in parts]),
        np.array([part.factor for part in parts]),
        np.array([part.error for part in parts]),
        np.array([[np.nanmin(part.factors), np.nanmax(part.factors)] for part in parts]),
        trend,
        tuple(part.evidence for part in parts),
        max(part.closure for part in parts),
    )


_NEEDED = ("instructions", "cycles", "time", "stall_cycles", *LEVELS)


@dataclass(frozen=True)
class _Kernel:
    """One kernel's equation: BF_mem at every configuration, and as one number."""

    name: str
    cpi: float
    factors: Array
    factor: float
    error: float
    steady: bool
    evidence: str
    closure: float


def _kernel(name: str, counted: Mapping[str, Array], machine: Machine, samples: Array | None) -> _Kernel | None:
    source = "cycles" if "cycles" in counted else "time"
    served = [level for level in LEVELS if level in counted]
    if "instructions" not in counted or source not in counted or not served:
        return None
    instructions = counted["instructions"]
    cycles = counted[source] * (machine.frequency if source == "time" else 1.0)
    latency = dict(zip(LEVELS, machine.latencies, strict=True))
    waiting = np.sum([np.nan_to_num(counted[level]) * latency[level] for level in served], axis=0)
    stalls = counted.get("stall_cycles")
    known = (cycles > 0) & (instructions > 0) & (waiting > 0)
    if stalls is not None:
        known &= np.isfinite(stalls)
    if not known.any():
        return None
    weight = np.where(known, 1.0, 0.0)
    if samples is not None:
        # A time of n samples has the variance time^2 / n, so a sum over configurations weighs by samples alone.
        weight = np.where(known, np.maximum(samples, 0.5) / np.maximum(np.where(known, cycles, 1.0), 1e-300), 0.0)
    if stalls is not None:
        cpi = float((cycles - stalls)[known].sum() / instructions[known].sum())
        how = "stalls counted"
    else:
        enough = None if samples is None else samples[known]
        cpi = _calm_cpi(cycles[known], instructions[known], waiting[known], enough)
        how = "stalls from the CPI where memory asks least"
    factors = np.where(known, (cycles - instructions * cpi) / np.where(known, waiting, 1.0), np.nan)
    closure = float(np.abs((instructions * cpi + factors * waiting) / cycles - 1)[known].max())
    factor = float((weight * (cycles - instructions * cpi))[known].sum() / (weight * waiting)[known].sum())
    steady = bool(known.sum() < 3)
    share = (weight * waiting)[known] / (weight * waiting)[known].sum()
    error = float(np.sqrt((share * (factors[known] - factor) ** 2).sum()))
    if samples is not None:
        if factor < 0:  # the calm configurations were unlucky: all of the time is execution, as far as samples tell
            cpi, factor = float((weight * cycles)[known].sum() / (weight * instructions)[known].sum()), 0.0
        said = instructions * cpi + factor * waiting
        count = np.maximum(samples, 0.5)[known]
        chi = float((count * (cycles[known] / said[known] - 1) ** 2).sum())
        steady = bool(chdtrc(max(int(known.sum()) - 1, 1), chi) > DOUBT)
        if steady:
            error = float(said[known].sum() / np.sqrt(count.sum()) / waiting[known].sum())
        how += ", one blocking factor within the sampling error" if steady else ""
    return _Kernel(name, cpi, factors, factor, error, steady, f"{how}, cycles from {source}", closure)


def _calm_cpi(cycles: Array, instructions: Array, waiting: Array, samples: Array | None) -> float:
    """CPI over the configurations with the fewest memory cycles per instruction, weighed by their cycles.

    Sampled ones are taken on until they have :data:`ENOUGH` samples together.
    """
    order = np.argsort(waiting / instructions, kind="stable")
    count = max(1, int(np.ceil(CALM * len(order))))
    if samples is not None:
        count = max(count, int(np.searchsorted(np.cumsum(samples[order]), ENOUGH)) + 1)
    calm = order[:count]
    return float(cycles[calm].sum() / instructions[calm].sum())
