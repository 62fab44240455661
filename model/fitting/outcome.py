"""From the hypotheses that a search found to fitted functions: what is kept of them, and how well it fits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.core.arrays import Array, Index, Mask
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.search.gridterms import primes_of
from ranksight.model.search.screening import Found
from ranksight.model.series.noise import Location, judge
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty import forecast

LIGHTEST = 1e-3
"""Forms lighter than this move no interval's end visibly and are not kept."""
PADDING = {"members": -1, "variance": np.inf, "freedom": 1.0}
"""Fillers where a series has fewer hypotheses or terms than others; 0 in other arrays."""


@dataclass(frozen=True)
class Searched:
    """What the search says of s series."""

    found: Found
    drift: Array  # (s, m, 2): how far series may leave their functions along each parameter, downwards and upwards
    breaks: Array  # (s,): changepoints within the range; NaN without one
    pace: Array  # (s,)
    """How much faster than usual series leave their functions (:func:`ranksight.model.uncertainty.drift.pace`)."""


def stacked(arrays: Iterable[NDArray[Any]], name: str) -> NDArray[Any]:
    """Arrays by series and hypothesis one below the other, with what keeps fewer hypotheses or terms padded as `name`
    needs it (:data:`PADDING`)."""
    every = list(arrays)
    most = np.max([array.shape[1:] for array in every], axis=0)
    wide = [[(0, 0), *((0, to - now) for to, now in zip(most, array.shape[1:], strict=True))] for array in every]
    padding = PADDING.get(name, 0.0)
    return np.concatenate([np.pad(a, extra, constant_values=padding) for a, extra in zip(every, wide, strict=True)])


def joined(parts: list[Searched], order: Index) -> Searched:
    """Parts of the search, over the same terms, together."""
    rest = (np.concatenate([getattr(part, name) for part in parts])[order] for name in ("drift", "breaks", "pace"))
    drift, broken, pace = rest
    names = [name for name in Found.__dataclass_fields__ if name != "basis"]
    arrays = {name: stacked((getattr(part.found, name) for part in parts), name)[order] for name in names}
    return Searched(Found(basis=parts[0].found.basis, **arrays), drift, broken, pace)


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
    quality = judge(location)
    return Fitted(
        parameters=series.parameters,
        kernels=series.kernels,
        metrics=series.metrics,
        space=label,
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
        trained=trained_range(series.points, present),
        drift=searched.drift,
        pace=searched.pace,
        within=quality.within,
        repetitions=quality.repetitions,
        noisy=quality.noisy,
        samples=location.samples,
        primes=primes_of(series.points, series.parameters).max(axis=0, initial=1),
        hidden=np.stack([series.hidden.min(axis=0), series.hidden.max(axis=0)], axis=1),
        ties=np.empty((0, 1 + len(series.parameters))),
        unaffected=np.zeros((len(series), len(series.parameters)), dtype=bool),
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


def trained_range(points: Array, present: Mask) -> Array:
    """Smallest and largest value (s, m, 2) of each parameter where a series is `present` (s, n); zero where nowhere."""
    seen = np.where(present[:, :, None], points[None], np.nan)
    none = np.asarray(~present.any(axis=1))[:, None]
    low = np.where(none, 0.0, np.fmin.reduce(seen, axis=1, initial=np.inf))
    high = np.where(none, 0.0, np.fmax.reduce(seen, axis=1, initial=-np.inf))
    return np.stack([low, high], axis=2)
