"""Kernels that run from some number of ranks on, or until another takes their place: elsewhere they took no time, and
counted nothing.

A kernel without a value in runs in which others have one did not run there. That is known where it has none on up to
some number of ranks, and one on all larger ones, as a part that exchanges data begins with the second rank; and where
it has none from the number on from which another has one, which has none before, as where a program takes another
algorithm or name. A gap elsewhere may be a lost row, a report that leaves out what is small, or a sample that fell on
others.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.core.experiment import WHOLE
from ranksight.core.metrics import metric
from ranksight.model.series.computation import RANKS
from ranksight.model.series.reducing import Series


def with_absences(series: Series) -> Series:
    """The series with 0 of additive metrics on the numbers of ranks below those that a kernel runs on, and above where
    another took its place, in the repetitions that measured the metric of another kernel."""
    if RANKS not in series.parameters:
        return series
    ranks = series.points[:, series.parameters.index(RANKS)]
    known = np.isfinite(series.values)  # (s, n, r)
    kernels, of = np.unique(np.array(series.kernels, dtype=np.str_), return_inverse=True)
    runs, drawn = np.zeros((len(kernels), len(ranks)), dtype=bool), np.zeros(len(kernels), dtype=bool)
    np.logical_or.at(runs, of, known.any(axis=2))
    np.logical_or.at(drawn, of, series.sampled)
    absent = _absent(runs, ranks, ~drawn & (kernels != WHOLE))[of]
    absent &= np.array([metric(name).additive for name in series.metrics])[:, None]
    if not absent.any():
        return series
    parts = np.array([kernel != WHOLE for kernel in series.kernels], dtype=bool)
    names, which = np.unique(np.array(series.metrics, dtype=np.str_), return_inverse=True)
    measured = np.zeros((len(names), *known.shape[1:]), dtype=bool)
    np.logical_or.at(measured, which[parts], known[parts])
    return replace(series, values=np.where(absent[..., None] & measured[which], 0.0, series.values))


def _absent(runs: Mask, ranks: Array, part: Mask) -> Mask:
    """Where (k, n) kernels are known not to run, by where each `runs` (k, n), of those that are a `part` (k,)."""
    first, last = np.where(runs, ranks, np.inf).min(axis=1), np.where(runs, ranks, -np.inf).max(axis=1)
    before, after = np.where(runs, -np.inf, ranks).max(axis=1), np.where(runs, np.inf, ranks).min(axis=1)
    begins = part & np.isfinite(before) & (before < first)
    followed = (last[:, None] == before) & (after[:, None] == first) & begins
    ends = part & (last < after) & followed.any(axis=1)
    return np.asarray((begins | ends)[:, None] & ~runs)
