"""Some of fitted functions, and several of them as one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.core.arrays import Index
from ranksight.core.errors import InputError
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.printed import Below
from ranksight.model.process.posterior import Process

PADDING = {"members": -1, "variance": np.inf, "freedom": 1.0}
"""Fillers where a series has fewer hypotheses or terms than others; 0 in other arrays."""


def stacked(arrays: Iterable[NDArray[Any]], name: str) -> NDArray[Any]:
    """Arrays by series and hypothesis one below the other, with what keeps fewer hypotheses or terms padded as `name`
    needs it (:data:`PADDING`)."""
    every = list(arrays)
    most = np.max([array.shape[1:] for array in every], axis=0)
    wide = [[(0, 0), *((0, to - now) for to, now in zip(most, array.shape[1:], strict=True))] for array in every]
    padding = PADDING.get(name, 0.0)
    return np.concatenate([np.pad(a, extra, constant_values=padding) for a, extra in zip(every, wide, strict=True)])


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
            yield Below(broken, part.axis[some], part.at[some], part.between[some], pick(part.fitted, some))


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
