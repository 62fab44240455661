"""Rows of forecasts: some of them, several forecasts below each other, and one taken in the place of another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ranksight.core.arrays import Index, Mask, ratio
from ranksight.model.uncertainty.forecast import Forecast, judged_by_width

ARRAYS = ("value", "lower", "upper", "status", "reason", "form", "freedom", "inner", "outer")
"""The arrays of a forecast, one row a series."""


def choose(base: Forecast, other: Forecast, index: Index, where: Mask) -> Forecast:
    """`base` with its rows `index` taken from `other` (one row for each) at the configurations `where` holds."""
    arrays: dict[str, Any] = {}
    for name in ARRAYS:
        array = np.array(getattr(base, name), dtype=object if name == "reason" else None)
        array[index] = np.where(where, getattr(other, name), array[index])
        arrays[name] = array
    return Forecast(**arrays)


def rows_of(forecast: Forecast, index: Index) -> Forecast:
    """Some rows of a forecast."""
    return replace(forecast, **{name: getattr(forecast, name)[index] for name in ARRAYS})


def open_to(one: Forecast, other: Forecast, where: Mask) -> Forecast:
    """`one` with intervals (s, k) that hold those of `other` as well, `where` either may be true."""
    lower = np.where(where, np.fmin(one.lower, other.lower), one.lower)
    upper = np.where(where, np.fmax(one.upper, other.upper), one.upper)
    status, reason = judged_by_width(np.where(where, ratio(upper, lower, np.inf), 1.0), one.status, one.reason)
    return replace(one, lower=lower, upper=upper, status=status, reason=reason)


def join(forecasts: Sequence[Forecast]) -> Forecast:
    """Forecasts of the same configurations, one below the other."""
    arrays: dict[str, Any] = {name: np.concatenate([getattr(each, name) for each in forecasts]) for name in ARRAYS}
    return Forecast(**arrays)
