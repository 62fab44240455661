"""Kernels that run from some number of ranks on: below it they took no time, and counted nothing.

A kernel without a value in runs in which others have one did not run there. That is known where it has none on up to
some number of ranks, and one on all larger ones, as a part that exchanges data begins with the second rank. A gap
elsewhere may be a lost row, a report that leaves out what is small, or a sample that fell on others.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranksight.core.experiment import WHOLE
from ranksight.core.metrics import metric
from ranksight.model.series.computation import RANKS
from ranksight.model.series.reducing import Series


def with_beginnings(series: Series) -> Series:
    """The series with 0 of additive metrics on the numbers of ranks below those that a kernel runs on, in the
    repetitions that measured the metric of another kernel."""
    if RANKS not in series.parameters:
        return series
    ranks = series.points[:, series.parameters.index(RANKS)]
    known = np.isfinite(series.values)  # (s, n, r)
    kernels, of = np.unique(np.array(series.kernels, dtype=np.str_), return_inverse=True)
    runs, drawn = np.zeros((len(kernels), len(ranks)), dtype=bool), np.zeros(len(kernels), dtype=bool)
    np.logical_or.at(runs, of, known.any(axis=2))
    np.logical_or.at(drawn, of, series.sampled)
    last = np.where(runs, -np.inf, ranks).max(axis=1)
    first = np.where(runs, ranks, np.inf).min(axis=1)
    begins = (np.isfinite(last) & (last < first) & ~drawn & (kernels != WHOLE))[of]
    begins &= [metric(name).additive for name in series.metrics]
    if not begins.any():
        return series
    parts = np.array([kernel != WHOLE for kernel in series.kernels], dtype=bool)
    names, which = np.unique(np.array(series.metrics, dtype=np.str_), return_inverse=True)
    measured = np.zeros((len(names), *known.shape[1:]), dtype=bool)
    np.logical_or.at(measured, which[parts], known[parts])
    absent = begins[:, None, None] & ~runs[of][..., None] & measured[which]
    return replace(series, values=np.where(absent, 0.0, series.values))
