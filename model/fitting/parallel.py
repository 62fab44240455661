"""Fits of very many series, in shares that several processes take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.core.arrays import Index
from ranksight.core.errors import InputError
from ranksight.core.executing import executor, in_order
from ranksight.core.log import progress
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.outcome import stacked
from ranksight.model.fitting.printed import Below
from ranksight.model.process.posterior import Process
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
    if jobs <= 1 and dask is None:
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


def pick(fitted: Fitted, rows: Index) -> Fitted:
    """The functions of the series `rows`, in their order."""
    columns: dict[str, Any] = {name: getattr(fitted, name)[rows] for name in (*_MIXED, *_PLAIN)}
    columns["kernels"] = tuple(fitted.kernels[row] for row in rows)
    columns["metrics"] = tuple(fitted.metrics[row] for row in rows)
    columns["below"] = tuple(_below_of_rows(fitted.below, rows))
    columns["processes"] = tuple(_of_rows(fitted.processes, rows))
    return replace(fitted, **columns)


def _below_of_rows(below: Iterable[Below[Fitted]], rows: Index) -> Iterator[Below[Fitted]]:
    """What holds below breaks of the series `rows`, which become the first, second, ... series."""
    for part in below:
        place = np.full(max(rows.max(initial=0), part.rows.max(initial=0)) + 1, -1)
        place[part.rows] = np.arange(len(part.rows))
        broken = np.flatnonzero(place[rows] >= 0)
        if len(broken):
            some = place[rows][broken]
            yield Below(broken, part.axis[some], part.at[some], pick(part.fitted, some))


def _of_rows(processes: Iterable[Process], rows: Index) -> Iterator[Process]:
    """The processes of the series `rows`, which become the first, second, ... series."""
    for process in processes:
        place = {row: at for at, row in enumerate(process.rows.tolist())}
        pairs = [(place[row], at) for at, row in enumerate(rows.tolist()) if row in place]
        if pairs:
            places, to = np.array(pairs, dtype=np.intp).T
            yield process.select(places, to)


_MIXED = ("members", "weight", "coefficient", "root", "variance", "freedom")
"""Arrays by series and hypothesis."""
_PLAIN = ("press", "adjusted_r2", "count", "status", "positive", "trained", "drift", "pace",
          "within", "repetitions", "noisy", "samples", "unaffected")  # fmt: skip


def join(parts: list[Fitted], rows: list[Index]) -> Fitted:
    """One :class:`Fitted` of several over the same parameters; `rows` says which series each part holds.

    Raises InputError when the parts have other parameters or search spaces.
    """
    first = parts[0]
    if any(part.parameters != first.parameters or part.space != first.space for part in parts):
        raise InputError("functions of different parameters or spaces cannot be joined")
    back = np.argsort(np.concatenate(rows))
    offsets = np.cumsum([0, *(len(part.terms) for part in parts[:-1])])
    members = [np.where(p.members >= 0, p.members + offset, -1) for p, offset in zip(parts, offsets, strict=True)]

    def plain(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in parts])[back]

    names = np.array([(k, m) for part in parts for k, m in part.keys], dtype=object)
    names = names.reshape(-1, 2)[back]
    columns: dict[str, Any] = {"members": stacked(members, "members")[back]}
    columns |= {name: stacked((getattr(part, name) for part in parts), name)[back] for name in _MIXED[1:]}
    columns |= {name: plain(name) for name in _PLAIN}
    return replace(
        first,
        kernels=tuple(names[:, 0]),
        metrics=tuple(names[:, 1]),
        terms=np.concatenate([part.terms for part in parts]),
        **columns,
        below=tuple(
            replace(below, rows=row[below.rows]) for part, row in zip(parts, rows, strict=True) for below in part.below
        ),
        processes=tuple(
            replace(process, rows=row[process.rows])
            for part, row in zip(parts, rows, strict=True)
            for process in part.processes
        ),
    )


def _fit(task: tuple[Series, dict[str, Any]]) -> Fitted:
    series, settings = task
    return fit_series(series, **settings)
