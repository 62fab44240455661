"""Where functions give no answer: intervals too wide, forms that disagree, places where nothing was varied."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ranksight.core.arrays import Array, Index
from ranksight.model.fitting.ties import off_ties
from ranksight.model.uncertainty import forecast

if TYPE_CHECKING:
    from ranksight.model.fitting.fitted import Fitted


FEW = 100.0
"""Samples below which the width of an interval is attributed to them: with as many, a value is known to 10 %."""


def abstain(
    fitted: Fitted, points: Array, ends: tuple[Array, Array, Array], form: Array, within_form: Array
) -> tuple[Index, NDArray[np.object_]]:
    """Status and reason (s, k) of the answers of fitted functions at `points` (k, m).

    `points` (k, m). `ends` (three of (s, k)): value and ends of the interval. `form`, `within_form` (s, k): from
    :func:`ranksight.model.uncertainty.forecast.mixture_forecast`.
    """
    value, low, high = ends
    status = np.where(np.isnan(value), forecast.NOT_POSITIVE, forecast.OK)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        factor = np.where(fitted.positive[:, None], high / low, 1 + (high - low) / np.abs(value))
    factor = np.where((high == low) & np.isfinite(value), 1.0, factor)
    wide = ~(factor <= forecast.WIDEST) & (status == forecast.OK)
    status = np.where(wide, np.where(form > 0.5, forecast.DISAGREE, forecast.WIDE), status)
    with np.errstate(over="ignore"):
        span_within = np.exp(2 * forecast.TAIL * within_form)
    status = np.where(wide & fitted.positive[:, None] & (span_within <= forecast.WIDEST), forecast.TURN, status)
    status = np.where(wide & fitted.noisy[:, None], forecast.NOISE, status)
    status = np.where(wide & (fitted.samples < FEW)[:, None], forecast.FEW_SAMPLES, status)
    reason = np.full(status.shape, "", dtype=object)
    more = np.array([f"; {n:.0f} repetitions would suffice" if np.isfinite(n) else "" for n in fitted.repetitions])
    for code in (forecast.DISAGREE, forecast.WIDE, forecast.TURN, forecast.NOISE, forecast.FEW_SAMPLES):
        rows, columns = np.nonzero(status == code)
        spans, texts, numbers = factor[rows, columns].tolist(), more[rows].tolist(), fitted.samples[rows].tolist()
        alones = span_within[rows, columns].tolist()
        reason[rows, columns] = [
            forecast.REASONS[code].format(
                factor=forecast.spanned(span),
                bound=forecast.WIDEST,
                repetitions=text,
                samples=f"{number:.2g}",
                alone=forecast.spanned(each),
            )
            for span, text, number, each in zip(spans, texts, numbers, alones, strict=True)
        ]
    reason[status == forecast.NOT_POSITIVE] = forecast.REASONS[forecast.NOT_POSITIVE]
    low_end, high_end = fitted.trained[:, None, :, 0], fitted.trained[:, None, :, 1]
    domain = (points[None] <= 0) & (low_end > 0)
    for axis, name in enumerate(fitted.parameters):
        rows, columns = np.nonzero(domain[:, :, axis])
        status[rows, columns] = forecast.DOMAIN
        reason[rows, columns] = [
            f"{name} is {x:g}, and was above zero in all runs" for x in points[columns, axis].tolist()
        ]
    fixed = (low_end == high_end) & (points[None] != low_end) & ~fitted.unaffected[:, None]
    for axis, name in enumerate(fitted.parameters):
        status[fixed[:, :, axis]] = forecast.UNVARIED
        reason[fixed[:, :, axis]] = forecast.REASONS[forecast.UNVARIED].format(parameter=name)
    for used, off, text in off_ties(points, fitted.parameters, fitted.ties):
        tied = np.ix_(~(fitted.unaffected & used).any(axis=1), off)
        status[tied], reason[tied] = forecast.UNVARIED, text
    for s in np.flatnonzero(fitted.status != forecast.OK):
        status[s] = fitted.status[s]
        reason[s] = forecast.REASONS[fitted.status[s]].format(points=fitted.count[s], parameters=len(fitted.parameters))
    return status, reason
