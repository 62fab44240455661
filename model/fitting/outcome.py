"""From the hypotheses that a search found, or a process, to fitted functions: what is kept of them, how well they fit.

Functions of times whose answers come from the process (:mod:`ranksight.model.process`) are what is printed: the closed
form nearest to the predicted medians.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.experiment import WHOLE
from ranksight.core.metrics import Kind
from ranksight.core.records import dataclass
from ranksight.model.fitting.changes import FEWEST, changepoints, constant, node_break, trained_range
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.joining import stacked
from ranksight.model.fitting.printed import Below
from ranksight.model.process.fit_process import fit_process, unsmoothed
from ranksight.model.process.posterior import Process
from ranksight.model.process.prevalence import learned
from ranksight.model.process.products import CHOSEN
from ranksight.model.process.shown import BEYOND, points_shown, shown
from ranksight.model.search.screening import Found
from ranksight.model.search.terms import of_inverses
from ranksight.model.series.domains import NOT_DESCRIBED, Domains
from ranksight.model.series.noise import Location, behaviours, judge
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.mixture import Components, quantile

LIGHTEST = 1e-3
"""Forms lighter than this move no interval's end visibly and are not kept."""
MISSED = 3.0
"""Standard deviations that runs are off their law by, as root mean square, from which on it has not met them."""


@dataclass(frozen=True)
class Searched:
    """What the search says of s series."""

    found: Found
    drift: Array  # (s, m, 2): how far series may leave their functions along each parameter, downwards and upwards
    pace: Array  # (s,)
    """How much faster than usual series leave their functions (:func:`ranksight.model.uncertainty.drift.pace`)."""


def joined(parts: list[Searched], order: Index) -> Searched:
    """Parts of the search, over the same terms, together."""
    drift, pace = (np.concatenate([getattr(part, name) for part in parts])[order] for name in ("drift", "pace"))
    names = [name for name in Found.__dataclass_fields__ if name != "basis"]
    arrays = {name: stacked((getattr(part.found, name) for part in parts), name)[order] for name in names}
    return Searched(Found(basis=parts[0].found.basis, **arrays), drift, pace)


def fitted_from(series: Series, label: str, location: Location, positive: Mask, searched: Searched) -> Fitted:
    """Fitted functions from the hypotheses found, without the lightest, and with those terms alone that occur.

    `label`: name of the search space. `location`: values that repetitions became. `positive` (s,): which series must
    stay above zero.
    """
    forms = searched.found
    weight = np.where(forms.weight >= LIGHTEST, forms.weight, 0.0)
    weight[:, 0] = forms.weight[:, 0]
    total_weight = weight.sum(axis=1, keepdims=True)
    weight /= np.where(total_weight > 0, total_weight, 1.0)
    members = np.where((weight > 0)[..., None], forms.members, -1)
    occurring = np.unique(members[members >= 0])
    members = np.where(members >= 0, np.searchsorted(occurring, members), -1)
    present = location.repeats > 0
    count = present.sum(axis=1)
    varied = int((np.ptp(series.points, axis=0) > 0).sum()) if len(series.points) else 0
    status = np.full(len(series), forecast.OK)
    status[count < 3 + max(varied - 1, 0)] = forecast.FEW_POINTS
    status[count == 0] = forecast.NO_DATA
    return Fitted(
        **_shared(series, label, location),
        terms=forms.basis.decode(occurring),
        members=members,
        weight=weight,
        coefficient=forms.coefficients,
        root=forms.root,
        variance=forms.variance,
        freedom=forms.freedom,
        press=np.sqrt(forms.press[:, 0]),
        adjusted_r2=_adjusted_r2(location, forms.residual[:, 0], (members[:, 0] >= 0).sum(axis=1)),
        count=count,
        status=status,
        positive=positive,
        drift=searched.drift,
        pace=searched.pace,
    )


def of_measured(fitted: Fitted, divided: Mask) -> Fitted:
    """Functions of the parameters from those of their divisions along the axes that are `divided` (m,)
    (:func:`ranksight.model.process.solve.divisions`): a power is another one, and a logarithm has the other sign."""
    odd = (fitted.terms[..., 1] * divided).sum(axis=1) % 2 == 1
    sign = np.where((fitted.members >= 0) & np.append(odd, False)[fitted.members], -1.0, 1.0)
    terms, root = of_inverses(fitted.terms, divided), fitted.root * sign[..., None]
    return replace(fitted, terms=terms, coefficient=fitted.coefficient * sign, root=root)


def _shared(series: Series, label: str, location: Location) -> dict[str, Any]:
    """Fields of :class:`Fitted` that follow from the series, however their functions were found."""
    quality = judge(location)
    return {
        "parameters": series.parameters,
        "kernels": series.kernels,
        "metrics": series.metrics,
        "space": label,
        "trained": trained_range(series.points, location.repeats > 0),
        "within": quality.within,
        "repetitions": quality.repetitions,
        "noisy": quality.noisy,
        "samples": location.samples,
        "hidden": np.stack([series.hidden.min(axis=0), series.hidden.max(axis=0)], axis=1),
        "ties": np.empty((0, 1 + len(series.parameters))),
        "unaffected": np.zeros((len(series), len(series.parameters)), dtype=bool),
    }


def _adjusted_r2(location: Location, residual: Array, size: Index) -> Array:
    """Adjusted coefficient of determination (s,) of functions of `size` terms; NaN where that is a constant's or all of
    the freedom is used."""
    present = location.repeats > 0
    count = present.sum(axis=1)
    unit = np.where(present, location.scale, 0.0).max(axis=1, keepdims=True, initial=0.0)
    unit = np.where(unit > 0, unit, 1.0)
    y = np.where(present, location.values, np.nan) / unit
    relative = np.where(present, (unit / location.scale) ** 2, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.nansum(relative * y, axis=1) / relative.sum(axis=1)
        total = np.nansum(relative * (y - mean[:, None]) ** 2, axis=1)
        adjusted = 1 - (residual / (count - size)) / (total / (count - 1))
    return np.where((size > 1) & (count > size) & (total > 0), adjusted, np.nan)


def by_process(
    series: Series, location: Location, space: object, intervals: bool, line: int | None, kind: Kind = "time"
) -> Mask:
    """Which series (s,) of a `kind` the process can answer: all of their values are positive."""
    none = np.zeros(len(series), dtype=bool)
    points = series.points
    if space != "default" or not intervals or line is not None or not (points > 0).all():
        return none
    if points.shape[1] > max(CHOSEN) or len(points) == 1:  # of one run nothing says how far the next lies
        return none
    present = location.repeats > 0
    positive = (np.where(present, location.values, 1.0) > 0).all(axis=1) & present.any(axis=1)
    return np.asarray(positive & (behaviours(series.metrics, location.samples) == kind))


def fitted_by_process(series: Series, label: str, location: Location, domains: Domains) -> Fitted:
    """The fitted functions of series all of which the process answers; `label`: name of the search space;
    `domains`: memory domains that ranks share, which act where ranks are what varies.

    Where a series becomes another within the range, what is beyond follows from the values from there on alone.
    """
    x = series.points[:, 0]
    domains = domains if series.parameters == ("ranks",) else NOT_DESCRIBED
    if series.points.shape[1] > 1:
        return _fitted(series, label, location, domains)
    order = np.argsort(x)
    data, messages = unsmoothed(series.points, location).ordered(order), series.of_messages
    breaks = changepoints(x[order], data, learned(), messages, domains or None)
    rows = np.flatnonzero(~np.isnan(breaks))
    if not len(rows):
        return _fitted(series, label, location, domains)
    left = x[None] < breaks[:, None]
    above = _fitted(series, label, replace(location, repeats=np.where(left, 0.0, location.repeats)), domains)
    above.trained[rows] = trained_range(series.points, location.repeats > 0)[rows]
    above.count[rows] = (location.repeats > 0).sum(axis=1)[rows]
    single = (left.sum(axis=1) == 1)[rows]
    groups = filter(len, (rows[single], rows[~single]))
    return replace(above, below=tuple(_below(series, label, location, domains, breaks, some) for some in groups))


def _below(
    series: Series, label: str, location: Location, domains: Domains, breaks: Array, rows: Index
) -> Below[Fitted]:
    """The functions of some series below where they change, at `breaks` (s,), of one value or all of more."""
    x, at, part = series.points[:, 0], breaks[rows], location.part(rows)
    left = x[None] < at[:, None]
    number = left.sum(axis=1)
    # Too few values have no function, as all have one that meets them; one value is what it is.
    few = (number > 1) & (number < FEWEST)
    used = replace(part, repeats=np.where(left | few[:, None], part.repeats, 0.0))
    fitted = _fitted(series.select(rows), label, used, domains)
    if number.max() == 1:
        fitted = constant(fitted, np.arange(len(rows)), np.where(left, part.values, 0.0).max(axis=1))
        fitted = replace(fitted, status=np.full(len(rows), forecast.OK))
    ends = np.where(left, x, -np.inf).max(axis=1), np.where(left, np.inf, x).min(axis=1)
    known = series.of_messages[rows] & (at == node_break(domains))
    between = np.where(known[:, None], at[:, None], np.stack(ends, axis=1))
    return Below(rows, np.zeros(len(rows), dtype=np.intp), at, between, fitted)


def _fitted(series: Series, label: str, location: Location, domains: Domains) -> Fitted:
    count = len(series)
    process = fit_process(series.points, location, np.arange(count), domains=domains or None)
    points = points_shown(process)
    # Hypotheses are solved once for what is printed and for the runs.
    latent = process.straight(np.concatenate([points, series.points]), latent=True)
    medians = quantile(0.5, *latent)
    printed = shown(process, points, medians[:, : len(points)])
    present = location.repeats > 0
    missed = _missed(process, Components(*(part[..., len(points) :] for part in latent)), medians[:, len(points) :])
    process = replace(
        process,
        difference=printed.difference,
        turn=_turns(series, process, domains),
        scatter=process.scatter + missed,
    )
    measured = present.sum(axis=1)
    few = FEWEST + series.points.shape[1] - 1
    status = np.where(measured < few, forecast.FEW_POINTS, forecast.OK)
    held_out = process.held_out()
    many = printed.members.shape[1]
    slope = _departure(Components(*(part[..., len(points) - 1] for part in latent)))
    return Fitted(
        **_shared(series, label, location),
        terms=printed.terms,
        members=printed.members[:, None],
        weight=np.ones((count, 1)),
        coefficient=printed.coefficients[:, None],
        root=np.zeros((count, 1, many, many)),
        variance=np.maximum(held_out**2, forecast.ROUNDING)[:, None],
        freedom=np.maximum(measured - 2.0, 1.0)[:, None],
        press=held_out,
        adjusted_r2=_explained(process.logs, medians[:, len(points) :], present),
        count=measured,
        status=status,
        positive=np.ones(count, dtype=bool),
        drift=np.broadcast_to(slope[:, None, None], (count, series.points.shape[1], 2)).copy(),
        pace=np.ones(count),
        processes=(process,),
    )


def _turns(series: Series, process: Process, domains: Domains) -> Array:
    """How often each law turns, (p, 4): whole programs that were run on several nodes are as published ones."""
    if not domains or not (domains.nodes(series.points[:, 0]) > 1).any():
        return process.turn
    whole = np.array(series.kernels, dtype=object) == WHOLE
    return np.where(whole[:, None], learned().whole_turn, process.turn)


def _missed(process: Process, runs: Components, medians: Array) -> Array:
    """Mean square (p,) of what ln y of the runs is off their `medians` (p, n) by, where that is many times what the
    latent distribution there, `runs` (c, p, n), and the scatter around it allow; else 0. One more run is off by as
    much, whatever kept the process from meeting those that were made. What is taken for an odd run is not met."""
    places = np.arange(process.logs.shape[1])
    odd = (process.weight * (process.kind > 0))[..., None] * (process.place[..., None] == places)
    present = np.isfinite(process.noise) & (odd.sum(axis=1) < 0.5)
    count = np.maximum(present.sum(axis=1), 1)
    square = np.where(present, process.logs - medians, 0.0) ** 2
    expected = np.where(present, (runs.weight * runs.spread**2).sum(axis=0), 0.0).sum(axis=1) / count
    off = square.sum(axis=1) / count
    return np.where(off > MISSED**2 * (expected + process.scattered() ** 2), off, 0.0)


def _departure(end: Components) -> Array:
    """Standard deviation (p,) of ln y per e-fold beyond the range, as it is at the `end` (c, p) of what is printed."""
    return np.asarray(np.sqrt((end.weight * end.spread**2).sum(axis=0)) / np.log(BEYOND))


def _explained(logs: Array, medians: Array, present: Mask) -> Array:
    """Part (p,) of the variance of ln y, `logs` (p, n), that the latent medians (p, n) explain, adjusted for two
    coefficients; NaN where all of the freedom is used or nothing varies."""
    count = present.sum(axis=1)
    logs = np.where(present, logs, np.nan)
    total = np.nansum((logs - np.nanmean(logs, axis=1, keepdims=True)) ** 2, axis=1)
    rest = np.nansum((logs - medians) ** 2, axis=1)
    known = (count > 2) & (total > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(known, 1 - (rest / (count - 2)) / (total / (count - 1)), np.nan)
