"""Coefficients of a law of the ranks: functions of the other parameters, or plain values where none of these varied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ranksight.core.arrays import Array, Index
from ranksight.core.records import dataclass
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.plaindata import reading, rounded
from ranksight.model.series.reducing import Series
from ranksight.model.structure.levels import Levels, fit_levels
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast

ROUNDING = 1e-6
"""Share of a weight that is rounding."""


def certain(value: Array) -> Forecast:
    """The forecast of values (s, k) that are known exactly."""
    return Forecast.settled(value, value, value)


def weighted_quantile(values: Array, weight: Array, at: float) -> Array:
    """Weighted quantile of values (s, h, k) over the second axis; NaN where nothing has a weight."""
    order = np.argsort(np.where(weight > 0, values, np.inf), axis=1)
    sorted_weight = np.take_along_axis(weight, order, axis=1)
    total = sorted_weight.sum(axis=1, keepdims=True)
    reached = np.cumsum(sorted_weight, axis=1) >= (at - ROUNDING) * total
    chosen = np.take_along_axis(order, reached.argmax(axis=1)[:, None], axis=1)
    quantile = np.take_along_axis(values, chosen, axis=1)[:, 0]
    return np.where(total[:, 0] > 0, quantile, np.nan)


@dataclass(frozen=True)
class Coefficients:
    """c coefficients.

    `held` (Fitted, Levels or (c,) values): values where the measurements have one combination of the other parameters
    only.
    """

    held: Fitted | Levels | Array

    @classmethod
    def fit(
        cls, others: tuple[str, ...], places: Array, values: Array, names: Sequence[tuple[str, str]], **settings: Any
    ) -> Coefficients:
        """Fit the values (c, g) at g combinations `places` (g, m) of the `others`, parameters other than the ranks.

        `names` (sequence of (kernel, metric)): what each coefficient belongs to. `**settings`: of
        :func:`ranksight.model.fitting.fit_series.fit_series`.
        """
        if len(places) == 1 or not len(values):
            return cls(values[:, 0])
        kernels, metrics = zip(*names, strict=True)
        series = Series(others, places, values[:, :, None], kernels, metrics)
        return cls(fit_levels(series, **settings) or fit_series(series, **settings))

    @classmethod
    def distinct(
        cls, others: tuple[str, ...], places: Array, values: Array, names: Sequence[tuple[str, str]], **settings: Any
    ) -> tuple[Coefficients, Index]:
        """The distinct ones of values (n, g), and which of them each is, (n,); see :meth:`fit`."""
        rows, first, index = np.unique(rounded(values, 12), axis=0, return_index=True, return_inverse=True)
        return cls.fit(others, places, rows, [names[at] for at in first], **settings), index.reshape(-1)

    def __len__(self) -> int:
        return len(self.held) if isinstance(self.held, np.ndarray) else len(self.held.kernels)

    def predict(self, points: Array, parameters: Sequence[str]) -> Forecast:
        """Forecast the coefficients (c, k) at `points` (k, m) of the model's `parameters`."""
        if isinstance(self.held, np.ndarray):
            return certain(np.broadcast_to(self.held[:, None], (len(self.held), len(points))))
        predicted = self.held.predict(points[:, [list(parameters).index(name) for name in self.held.parameters]])
        # What is none at every measured configuration is none, whatever the search says of a series of zeros.
        zero = (predicted.value == 0) & (predicted.upper == 0)
        return replace(predicted, status=np.where(zero, forecast.OK, predicted.status))

    def formula(self, i: int, digits: int = 6) -> str:
        """Coefficient `i` as people read it, a plain value to so many significant digits."""
        return f"{self.held[i]:.{digits}g}" if isinstance(self.held, np.ndarray) else self.held.formula(i)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        if isinstance(self.held, np.ndarray):
            return {"kind": "values", "content": self.held.tolist()}
        return {"kind": "levels" if isinstance(self.held, Levels) else "fitted", "content": self.held.to_dict()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Coefficients:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        with reading("a coefficient"):
            kind, stored = content["kind"], content["content"]
            if kind != "values":
                return cls((Levels if kind == "levels" else Fitted).from_dict(stored))
            values = np.array(stored, dtype=np.float64)
            if values.ndim != 1 or not np.isfinite(values).all():
                raise ValueError("a coefficient is not a finite number")
            return cls(values)
