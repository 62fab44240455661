"""Kernels that run from some number of ranks on, or up to one: elsewhere they took no time, and counted nothing.

A kernel without a row in runs in which others have one did not run there; one that has a row without a value was not
measured. That it did not run is known where it has no row on up to some number of ranks, and one on all larger ones, as
a part that exchanges data begins with the second rank. Where it has none from some number on, it may have become too
short to be listed, so that absence alone says nothing. It is known not to run where kernels are listed that take less
time than it would, and where another has one from there on, which has none before, as where a program takes another
algorithm or name. A gap elsewhere may be a lost row, or a sample that fell on others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ranksight.core.arrays import Array, Mask
from ranksight.core.columns import Columns
from ranksight.core.experiment import WHOLE, Run
from ranksight.core.metrics import metric
from ranksight.core.records import dataclass
from ranksight.model.series.computation import RANKS
from ranksight.model.series.reducing import Series


def with_absences(series: Series, runs: Iterable[tuple[Run, Columns]] = ()) -> Series:
    """The series with 0 of additive metrics on the numbers of ranks that a kernel is known not to run on, in the
    repetitions that measured the metric of another kernel.

    `runs`: those that the values are of, each with its counters, which say what has a row without a value.
    """
    if RANKS not in series.parameters:
        return series
    kernels, of = np.unique(np.array(series.kernels, dtype=np.str_), return_inverse=True)
    names, which = np.unique(np.array(series.metrics, dtype=np.str_), return_inverse=True)
    values = np.full((len(kernels), len(names), *series.values.shape[1:]), np.nan)
    values[of, which] = series.values
    drawn = np.zeros(len(kernels), dtype=bool)
    np.logical_or.at(drawn, of, series.sampled)
    listed = _Listed(values, list(names), series.points, series.points[:, series.parameters.index(RANKS)])
    absent = _absent(listed, ~drawn & (kernels != WHOLE))
    if absent.any():
        absent &= ~_with_a_row(series, kernels, runs)
    absent = absent[of]
    absent &= np.array([metric(name).additive for name in series.metrics])[:, None]
    if not absent.any():
        return series
    measured = np.isfinite(values[kernels != WHOLE]).any(axis=0)
    return replace(series, values=np.where(absent[..., None] & measured[which], 0.0, series.values))


def _with_a_row(series: Series, kernels: NDArray[np.str_], runs: Iterable[tuple[Run, Columns]]) -> Mask:
    """Which of the `kernels` (k,) have a row, with a value or without, at which configurations (k, n)."""
    rows = np.zeros((len(kernels), len(series.points)), dtype=bool)
    for run, columns in runs:
        point = [run.configuration[name] for name in series.parameters]
        listed = np.array(columns.kernels, dtype=np.str_)[np.unique(columns.code)]
        rows |= np.isin(kernels, listed)[:, None] & (series.points == point).all(axis=1)
    return rows


@dataclass(frozen=True)
class _Listed:
    """What the runs list of each kernel."""

    values: Array  # (k, q, n, r): of k kernels and q metrics, at n configurations
    metrics: list[str]
    points: Array  # (n, m)
    ranks: Array  # (n,)

    @cached_property
    def known(self) -> Mask:
        """Which metrics of a kernel were measured at a configuration (k, q, n)."""
        return np.asarray(np.isfinite(self.values).any(axis=3))

    @cached_property
    def times(self) -> Array:
        """Times (k, n, r)."""
        if "time" in self.metrics:
            return self.values[:, self.metrics.index("time")]
        return np.full((len(self.values), *self.values.shape[2:]), np.nan)


def _absent(listed: _Listed, part: Mask) -> Mask:
    """Where (k, n) kernels are known not to run, of those that are a `part` (k,) of the program."""
    runs, ranks = listed.known.any(axis=1), listed.ranks
    first, last = np.where(runs, ranks, np.inf).min(axis=1), np.where(runs, ranks, -np.inf).max(axis=1)
    before, after = np.where(runs, -np.inf, ranks).max(axis=1), np.where(runs, np.inf, ranks).min(axis=1)
    begins = part & np.isfinite(before) & (before < first)
    ends = part & np.isfinite(after) & (last < after)
    followed = ((last[:, None] == before) & (after[:, None] == first) & begins).any(axis=1)
    for kernel in np.flatnonzero(ends & ~followed).tolist():
        ends[kernel] = _outlasted(listed, kernel, ranks == last[kernel], ranks == after[kernel])
    return np.asarray((begins | ends)[:, None] & ~runs)


def _outlasted(listed: _Listed, kernel: int, last: Mask, beyond: Mask) -> bool:
    """Whether kernels are listed in all runs at the configurations `beyond` (n,) that take less time than `kernel`
    would, which ran at `last` (n,) and lacks more than one row from there on.

    The least that it would take is its time divided by the ratio of each parameter. Only kernels of which all was
    measured that was measured of it say so: another tool may have measured them.
    """
    measured = np.asarray(np.isfinite(listed.times).any(axis=0))  # (n, r)
    if measured[listed.ranks >= listed.ranks[beyond].min()].sum() < 2:
        return False
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(listed.points)
        distances = np.abs(logs[beyond][:, None] - logs[last][None]).sum(axis=2)
    least = np.fmin.reduce(np.fmin.reduce(listed.times[kernel, last], axis=1) * np.exp(-distances), axis=1)
    of_it = np.asarray(listed.known[kernel].any(axis=1))
    alike = np.asarray(listed.known[:, of_it].all(axis=1))[:, beyond, None]
    shorter = (alike & (listed.times[:, beyond] < least[:, None])).any(axis=0)
    return bool((shorter | ~measured[beyond]).all())
