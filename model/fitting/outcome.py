"""From the hypotheses that a search found to fitted functions: what is kept of them, and how well it fits."""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.searched import Searched
from ranksight.model.series.noise import Location, judge
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty import forecast

LIGHTEST = 1e-3
"""Forms lighter than this move no interval's end visibly and are not kept."""


def fitted_from(series: Series, label: str, location: Location, positive: Mask, searched: Searched) -> Fitted:
    """Fitted functions from the hypotheses found, without the lightest, and with those terms alone that occur.

    `label`: name of the search space. `location`: values that repetitions became. `positive` (s,): which series must
    stay above zero.
    """
    found = searched.found
    weight = np.where(found.weight >= LIGHTEST, found.weight, 0.0)
    weight[:, 0] = found.weight[:, 0]
    total_weight = weight.sum(axis=1, keepdims=True)
    weight /= np.where(total_weight > 0, total_weight, 1.0)
    members = np.where((weight > 0)[..., None], found.members, -1)
    occurring = np.unique(members[members >= 0])
    members = np.where(members >= 0, np.searchsorted(occurring, members), -1)
    present = location.repeats > 0
    count = present.sum(axis=1)
    varied = int((np.ptp(series.points, axis=0) > 0).sum()) if len(series.points) else 0
    status = np.full(len(series), forecast.OK)
    status[count < 3 + max(varied - 1, 0)] = forecast.FEW_POINTS
    status[count == 0] = forecast.NO_DATA
    quality = judge(location)
    hidden = series.hidden
    return Fitted(
        parameters=series.parameters,
        kernels=series.kernels,
        metrics=series.metrics,
        space=label,
        terms=found.basis.decode(occurring),
        members=members,
        weight=weight,
        coefficient=found.coefficients,
        root=found.root,
        variance=found.variance,
        freedom=found.freedom,
        press=np.sqrt(found.press[:, 0]),
        adjusted_r2=_adjusted_r2(location, found.residual[:, 0], (members[:, 0] >= 0).sum(axis=1)),
        count=count,
        status=status,
        positive=positive,
        trained=_trained(series.points, present),
        drift=searched.drift,
        pace=searched.pace,
        seen=_seen(location),
        turned=searched.turned,
        within=quality.within,
        repetitions=quality.repetitions,
        noisy=quality.noisy,
        samples=location.samples,
        hidden=None if hidden is None else np.stack([hidden.min(axis=0), hidden.max(axis=0)], axis=1),
        lasting=searched.lasting,
    )


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


def _seen(location: Location) -> Array:
    """Smallest and largest value (s, 2); zero where there is none."""
    values = np.where(location.repeats > 0, location.values, np.nan)
    found = np.stack([np.fmin.reduce(values, axis=1), np.fmax.reduce(values, axis=1)], axis=1)
    return np.where(np.isfinite(found), found, 0.0)


def _trained(points: Array, present: Mask) -> Array:
    """Smallest and largest value (s, m, 2) of each parameter where a series is `present` (s, n); zero where nowhere."""
    seen = np.where(present[:, :, None], points[None], np.nan)
    none = np.asarray(~present.any(axis=1))[:, None]
    low = np.where(none, 0.0, np.fmin.reduce(seen, axis=1, initial=np.inf))
    high = np.where(none, 0.0, np.fmax.reduce(seen, axis=1, initial=-np.inf))
    return np.stack([low, high], axis=2)
