"""Times of kernels from their instructions alone: how fast these go, where nothing more was counted.

    T_k(x) = i_k(x) CPI_k(x) / f

The instructions are a requirement and known nearly exactly at other configurations; their pace changes slowly, as
working sets outgrow caches (:mod:`ranksight.model.uncertainty.departure`). Where time alone is fitted, the search has
to find both in one function. Far from all measurements a kernel keeps the pace that it had where it did most work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ranksight.errors import InputError
from ranksight.experiment import WHOLE
from ranksight.metrics import metric
from ranksight.model.plaindata import reading
from ranksight.model.series.noise import JOBS
from ranksight.model.series.reduction import reduce
from ranksight.model.series.series import Series
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.departure import Departure, learn_departure
from ranksight.model.uncertainty.drift import expected_drift
from ranksight.model.uncertainty.forecast import Forecast

Array = NDArray[np.float64]

TIMED = ("time", "cycles")
FEWEST = 3
"""Configurations that tell how a pace changes."""


@dataclass(frozen=True)
class Pace:
    """The pace of K kernels in one metric of :data:`TIMED`.

    Attributes
    ----------
    metric : str
    parameters : tuple of str
        Of the model.
    varied : tuple of int
        Columns of those that took several values, all above zero.
    kernels : tuple of str
    rate : (K,)
        Value per instruction at the configuration with most work.
    departure : Departure
        Of the logarithm of the rate from there.
    count : (K,)
        Configurations.
    """

    metric: str
    parameters: tuple[str, ...]
    varied: tuple[int, ...]
    kernels: tuple[str, ...]
    rate: Array
    departure: Departure
    count: NDArray[np.intp]

    def forecast(self, points: Array, instructions: Forecast, level: float) -> Forecast:
        """Values of every kernel at `points` (k, m), from the forecast of its instructions (a row a kernel)."""
        x = np.log(np.maximum(points[:, list(self.varied)], 1e-300))
        mean, spread = self.departure.at(x)
        value = instructions.value * self.rate[:, None] * np.exp(mean)
        inputs = self.departure.inputs
        out = np.maximum(np.maximum(x - inputs.max(axis=0), inputs.min(axis=0) - x), 0.0)
        drift = expected_drift(metric(self.metric).kind) * np.sqrt((out**2).sum(axis=1))
        own = (float(ndtri((1 + level) / 2))) ** 2 * (spread**2 + JOBS**2 + drift**2)
        with np.errstate(invalid="ignore", divide="ignore"):
            down = np.log(instructions.value / np.where(instructions.lower > 0, instructions.lower, np.nan))
            up = np.log(instructions.upper / instructions.value)
            lower = value * np.exp(-np.sqrt(own + np.nan_to_num(down, nan=50.0) ** 2))
            upper = value * np.exp(np.minimum(np.sqrt(own + np.nan_to_num(up, nan=50.0) ** 2), 50.0))
            ratio = upper / lower
        # An interval that is too wide is judged anew, as other parts of it count here.
        again = np.isin(
            instructions.status, (forecast.OK, forecast.WIDE, forecast.DISAGREE, forecast.TURN, forecast.NOISE)
        )
        status, reason = forecast.judged_by_width(
            ratio, np.where(again, forecast.OK, instructions.status), np.where(again, "", instructions.reason)
        )
        return replace(instructions, value=value, lower=lower, upper=upper, status=status, reason=reason)

    def rows(self, functions_rows: Mapping[tuple[str, str], int]) -> NDArray[np.intp]:
        """Rows of the kernels' instructions.

        Raises
        ------
        InputError
            When the functions have none of a kernel.
        """
        try:
            return np.array([functions_rows[kernel, "instructions"] for kernel in self.kernels], dtype=np.intp)
        except KeyError as error:
            raise InputError(f"a pace does not fit the functions: {error}", "fit the model again") from error

    @property
    def evidence(self) -> tuple[str, ...]:
        """What carries each kernel."""
        what = "cycles" if self.metric == "cycles" else "time"
        return tuple(
            f"instructions x pace: instructions and {what} of {n} configurations, no stalls or levels counted"
            for n in self.count.tolist()
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {
            "metric": self.metric,
            "parameters": list(self.parameters),
            "varied": list(self.varied),
            "kernels": list(self.kernels),
            "rate": self.rate.tolist(),
            "departure": self.departure.to_dict(),
            "count": self.count.tolist(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Pace:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        with reading("'pace'"):
            kernels, parameters = tuple(map(str, content["kernels"])), tuple(map(str, content["parameters"]))
            varied = tuple(int(x) for x in content["varied"])
            rate, count = np.array(content["rate"], dtype=np.float64), np.array(content["count"], dtype=np.intp)
            departure, name = Departure.from_dict(content["departure"]), str(content["metric"])
        if (
            rate.shape != (len(kernels),)
            or count.shape != rate.shape
            or not np.isfinite(rate).all()
            or departure.inputs.shape[1] != len(varied)
            or len(departure.values) != len(kernels)
            or not all(0 <= x < len(parameters) for x in varied)
            or name not in TIMED
        ):
            raise InputError("'pace' does not fit together", "fit the model again")
        return cls(name, parameters, varied, kernels, rate, departure, count)


def fit_paces(
    series: Series, over_repetitions: str = "auto", uneven: Array | None = None, fullest: tuple[str, ...] = ()
) -> tuple[Pace, ...]:
    """The paces of all kernels that have instructions and a time at :data:`FEWEST` configurations or more.

    Parameters
    ----------
    series : Series
    over_repetitions : str
        How repetitions become one value.
    uneven : (n,), optional
        Work of the fullest rank over the mean, where it comes in whole units.
    fullest : tuple of str
        Metrics that the fullest rank carries.
    """
    rows = {key: i for i, key in enumerate(zip(series.kernels, series.metrics, strict=True))}
    values = reduce(series.values, "median" if over_repetitions == "auto" else over_repetitions, axis=2)
    varied = tuple(
        at
        for at in range(len(series.parameters))
        if len(np.unique(series.points[:, at])) > 1 and (series.points[:, at] > 0).all()
    )
    found = []
    for name in TIMED if varied else ():
        kernels = [k for k, own in rows if own == name and k != WHOLE and (k, "instructions") in rows]
        if not kernels:
            continue
        own = np.array([rows[k, name] for k in kernels])
        work = np.array([rows[k, "instructions"] for k in kernels])
        with np.errstate(invalid="ignore", divide="ignore"):
            logs = np.log(values[own] / values[work])
        if uneven is not None and name in fullest:
            logs = logs - np.log(uneven)
        logs = np.where(np.isfinite(logs), logs, np.nan)
        count = np.isfinite(logs).sum(axis=1)
        most = np.where(np.isfinite(logs), values[work], -np.inf).argmax(axis=1)
        reference = logs[np.arange(len(logs)), most]
        good = (count >= FEWEST) & np.isfinite(reference)
        if not good.any():
            continue
        inputs = np.log(series.points[:, list(varied)])
        departure = learn_departure(inputs, (logs - reference[:, None])[good])
        found.append(
            Pace(
                name,
                series.parameters,
                varied,
                tuple(kernel for kernel, yes in zip(kernels, good.tolist(), strict=True) if yes),
                np.exp(reference[good]),
                departure,
                count[good].astype(np.intp),
            )
        )
    return tuple(found)


def narrower(given: Forecast, other: Forecast) -> NDArray[np.bool_]:
    """Where the first of two forecasts of the same is sure of itself and, if both are, more so."""
    with np.errstate(invalid="ignore", divide="ignore"):
        first, second = given.upper / given.lower, other.upper / other.lower
    sure = given.status == forecast.OK
    return np.asarray(sure & ((other.status != forecast.OK) | ~(second <= first)))
