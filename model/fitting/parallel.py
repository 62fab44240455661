"""Fits of very many series, in shares that several processes take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ranksight.core.arrays import Index
from ranksight.core.executing import executor, in_order
from ranksight.core.log import progress
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.joining import join
from ranksight.model.series.reducing import Series

SHARE = 10_000
"""Series a share."""


def fit_shares(series: Series, jobs: int = 1, dask: str | None = None, **settings: Any) -> Fitted:
    """Fit very many series share by share; see :func:`ranksight.model.fitting.fit_series.fit_series`.

    The shares follow from the series alone, with all series of a kernel in one, and each learns what is common to the
    metrics for itself: the answer is the same whatever works on it. `jobs`: processes. `dask`: address of a Dask
    scheduler, in place of processes.
    """
    shares = share(series)
    tasks = ((series.select(rows), settings) for rows in shares)
    if jobs <= 1 and not dask:
        return join(list(_counted(map(_fit, tasks), shares)), shares)
    with executor(jobs, dask) as (pool, width):
        return join(list(_counted(in_order(pool, width, _fit, tasks), shares)), shares)


def _counted(fitted: Iterable[Fitted], shares: list[Index]) -> Iterator[Fitted]:
    """The shares as they come, each reported as progress."""
    done = 0
    for rows, each in zip(shares, fitted, strict=True):
        done += len(rows)
        progress("functions", done, sum(map(len, shares)))
        yield each


def share(series: Series, size: int = SHARE) -> list[Index]:
    """Rows of each share: about `size` series, all of a kernel together."""
    count = max(1, len(series) // size)
    numbers = {kernel: at % count for at, kernel in enumerate(dict.fromkeys(series.kernels))}
    belongs = np.array([numbers[kernel] for kernel in series.kernels], dtype=np.intp)
    return [rows for at in range(count) if len(rows := np.flatnonzero(belongs == at))]


def _fit(task: tuple[Series, dict[str, Any]]) -> Fitted:
    series, settings = task
    return fit_series(series, **settings)
