"""Fit over the parameters that varied independently: a search over the others would have no data to decide it.

A parameter of a single value is one, and one that moved with others only (:mod:`ranksight.model.fitting.abstaining`).
To a series, so is one that changes nothing in it: messages that do not depend on the size were measured once at every
number of ranks, not once for every size, and a function with as many coefficients as numbers of ranks meets them all.

A change of behaviour of times along one parameter, as where a cache no longer holds the data, is found where the series
are fitted over it alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.model.fitting.abstaining import independent
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.joining import join, pick
from ranksight.model.series.computation import apart_from_ranks
from ranksight.model.series.reducing import NO_SAMPLES, Series


def fit_varied(series: Series, **settings: Any) -> Fitted:
    """Fit every series as :func:`~ranksight.model.fitting.fit_series.fit_series` does, over the parameters that varied
    by themselves.

    The functions have all parameters; asked for another value of one that did not vary, or away from the tie of one
    that did with others only, they say so. Computation whose work per rank is stated is a function of that
    (:mod:`ranksight.model.series.computation`): its values at other ranks count as repetitions.
    """
    aside = apart_from_ranks(series)
    rows = np.flatnonzero(aside.any(axis=1))
    columns = np.flatnonzero(~aside.any(axis=0)).tolist()
    if not len(rows) or len(np.unique(series.points[:, columns], axis=0)) < FEWEST:
        return _fit_every(series, **settings)
    rest = np.flatnonzero(~aside.any(axis=1))
    part = _fit_every(_grouped(series.select(rows), columns)[0], **settings)
    freed = _freed(_widened(part, series, columns), columns, np.empty((0, 1 + aside.shape[1])))
    if not len(rest):
        return freed
    other = _fit_every(series.select(rest), **settings)
    return join([other, replace(freed, ties=other.ties)], [rest, rows])


def _freed(part: Fitted, columns: list[int], ties: Array) -> Fitted:
    """The same functions of series in which parameters other than `columns` change nothing."""
    aside = np.setdiff1d(np.arange(len(part.parameters)), columns)
    unmoved = np.zeros((len(part), len(part.parameters)), dtype=bool)
    unmoved[:, aside] = True
    part.drift[:, aside] = 0.0
    below = tuple(replace(each, fitted=_freed(each.fitted, columns, ties)) for each in part.below)
    return replace(part, ties=ties, unaffected=unmoved, below=below)


def _fit_every(series: Series, **settings: Any) -> Fitted:
    """Fit every series over the parameters that varied by themselves."""
    excluded = settings.get("iterations") is not None or not isinstance(settings.get("space", ""), str)
    flat = {} if excluded or series.hidden.size or series.points.shape[1] < 2 else _indifferent(series)
    fitted = _fit(series, **settings)
    if not flat:
        return fitted
    rest = np.setdiff1d(np.arange(len(series)), [row for indifferent in flat.values() for row in indifferent])
    parts, rows = [pick(fitted, rest)], [rest]
    for columns, indifferent in flat.items():
        part = _widened(_fit(_once(series.select(indifferent), [*columns]), **settings), series, [*columns])
        aside = [at for at in range(len(series.parameters)) if at not in columns]
        part.drift[:, aside] = fitted.drift[indifferent][:, aside]
        parts.append(replace(part, ties=fitted.ties))
        rows.append(indifferent)
    return join(parts, rows)


def _grouped(series: Series, columns: list[int]) -> tuple[Series, Array]:
    """The series over the parameters `columns` alone, all values at one of their configurations as repetitions; these
    values (s, n, g, r) by what the other parameters were, of which there are g at the most."""
    points, place = np.unique(series.points[:, columns], axis=0, return_inverse=True)
    place = place.ravel()
    order = np.argsort(place, kind="stable")
    number = np.arange(len(order)) - np.searchsorted(place[order], place[order])
    shape = len(series), len(points), int(number.max()) + 1, series.values.shape[2]

    def put(array: Array) -> Array:
        placed = np.full(shape, np.nan)
        placed[:, place[order], number] = array[:, order]
        return placed

    values = put(series.values)
    measured = np.isfinite(values).any(axis=(0, 2, 3))
    points, values = points[measured], values[:, measured]
    flat, names = values.reshape(*values.shape[:2], -1), tuple(series.parameters[at] for at in columns)
    worth, hidden = put(series.worth)[:, measured].reshape(flat.shape), np.empty((len(points), 0))
    return replace(series, parameters=names, points=points, values=flat, hidden=hidden, worth=worth), values


def _once(series: Series, columns: list[int]) -> Series:
    """The series over the parameters `columns` alone, each of their configurations once: others change nothing."""
    grouped, values = _grouped(series, columns)
    first = np.isfinite(values).argmax(axis=2)[:, :, None]
    return replace(grouped, values=np.take_along_axis(values, first, axis=2)[:, :, 0], worth=NO_SAMPLES)


SAME = 1e-9
"""Relative difference up to which two values are one."""
FEWEST = 3
"""Configurations needed to determine a function."""


def _indifferent(series: Series) -> dict[tuple[int, ...], Index]:
    """Series in which some parameters change nothing and others do, by the columns of these others."""
    columns = range(series.points.shape[1])
    flat = np.stack([_flat(series, at) for at in columns], axis=1) & ~series.sampled[:, None]
    patterns = {}
    for pattern in np.unique(flat[flat.any(axis=1) & ~flat.all(axis=1)], axis=0):
        moving, rows = tuple(np.flatnonzero(~pattern).tolist()), np.flatnonzero((flat == pattern).all(axis=1))
        places, group = np.unique(series.points[:, moving], axis=0, return_inverse=True)
        known = np.isfinite(series.values[rows]).any(axis=2)
        measured = np.zeros((len(places), len(rows)), dtype=np.intp)
        np.add.at(measured, group.ravel(), known.T)
        if len(rows := rows[(measured > 0).sum(axis=0) >= FEWEST]):
            patterns[moving] = rows
    return patterns


def _flat(series: Series, at: int) -> Mask:
    """Whether parameter `at` changes nothing in each series: nowhere measured at one value of it alone, and the same
    at all."""
    group = np.unique(np.delete(series.points, at, axis=1), axis=0, return_inverse=True)[1].ravel()
    order = np.argsort(group, kind="stable")
    starts = np.flatnonzero(np.diff(group[order], prepend=-1))
    values = series.values[:, order]
    high = np.fmax.reduceat(np.fmax.reduce(values, axis=2), starts, axis=1)
    low = np.fmin.reduceat(np.fmin.reduce(values, axis=2), starts, axis=1)
    known = np.add.reduceat(np.isfinite(values).any(axis=2).astype(np.intp), starts, axis=1)
    same = (known == 0) | ((known > 1) & (high - low <= SAME * np.abs(high)))
    return np.asarray(same.all(axis=1) & known.any(axis=1))


def _fit(series: Series, **settings: Any) -> Fitted:
    points = series.points
    varied, ties = independent(points, series.parameters)
    if len(varied) in (0, points.shape[1]) or not isinstance(settings.get("space", ""), str):
        return fit_series(series, **settings)
    names = tuple(series.parameters[at] for at in varied)
    fitted = fit_series(replace(series, parameters=names, points=points[:, varied]), **settings)
    return replace(_widened(fitted, series, varied), ties=ties)


def _widened(fitted: Fitted, series: Series, varied: list[int]) -> Fitted:
    """The same functions over all parameters of the series, constant in the others."""
    count = series.points.shape[1]
    terms = np.zeros((len(fitted.terms), count, 3))
    terms[:, varied] = fitted.terms
    drift = np.zeros((len(fitted), count, 2))
    drift[:, varied] = fitted.drift
    trained = np.empty((len(fitted), count, 2))
    trained[:] = np.stack([series.points.min(axis=0), series.points.max(axis=0)], axis=1)
    trained[:, varied] = fitted.trained
    unaffected = np.zeros((len(fitted), count), dtype=bool)
    unaffected[:, varied] = fitted.unaffected
    columns = np.array(varied)
    below = (replace(x, axis=columns[x.axis], fitted=_widened(x.fitted, series, varied)) for x in fitted.below)
    return replace(
        fitted,
        parameters=series.parameters,
        terms=terms,
        drift=drift,
        trained=trained,
        ties=np.empty((0, 1 + count)),
        unaffected=unaffected,
        below=tuple(below),
        processes=tuple(replace(process, axes=columns[process.axes]) for process in fitted.processes),
    )
