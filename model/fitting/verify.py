"""Verification at the largest configuration: hold it out, fit the rest, report the error there.

Five process counts train and the sixth verifies the regression (Ding et al. 2018, section 2).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.series.noise import locate
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty.forecast import Forecast


@dataclass(frozen=True)
class Verification:
    """What functions of the smaller configurations say at the largest."""

    parameter: str  # the parameter whose largest value was kept back
    points: Array  # (k, m): configurations kept back
    measured: Array  # (s, k): NaN where missing
    forecast: Forecast  # of s series at the k points

    @property
    def error(self) -> Array:
        """``100 |measured - predicted| / measured`` (s, k), 0 where both are nothing, NaN where either is not known."""
        with np.errstate(invalid="ignore", divide="ignore"):
            error = 100 * np.abs(self.forecast.value / self.measured - 1)
        error = np.where(self.forecast.value == self.measured, 0.0, error)
        return np.where(np.isfinite(error), error, np.nan)

    @property
    def covered(self) -> Mask:
        """Whether the interval holds the measured value (s, k)."""
        with np.errstate(invalid="ignore"):
            return np.asarray((self.measured >= self.forecast.lower) & (self.measured <= self.forecast.upper))


def verify_largest(series: Series, **settings: Any) -> Verification:
    """Keep the largest value of the first parameter that varies back and predict it.

    `ranks` is taken before other parameters. Settings are those of :func:`.fit_series.fit_series`. Raises InputError
    when fewer than four values of the parameter were measured.
    """
    spread = np.ptp(series.points, axis=0) if len(series.points) else np.zeros(len(series.parameters))
    varied = [name for name, width in zip(series.parameters, spread, strict=True) if width > 0]
    if not varied:
        raise InputError("only one configuration was measured", "measure at least four values of a parameter to verify")
    name = "ranks" if "ranks" in varied else varied[0]
    x = series.points[:, series.parameters.index(name)]
    if len(np.unique(x)) < 4:
        raise InputError(
            f"{name} took {len(np.unique(x))} values", "measure at least four values to keep the largest back"
        )
    largest = x == x.max()
    fitted = fit_series(series.at(~largest), **settings)
    measured = locate(series.values[:, largest], settings.get("over_repetitions", "auto")).values
    return Verification(name, series.points[largest], measured, fitted.predict(series.points[largest]))
