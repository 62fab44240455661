"""The computational regression model: a power of the number of ranks.

    T(p) = a p^b

fitted by least squares in the logarithms, as a spreadsheet's trend line is.

Source: Panadero et al. 2015, section 3, table 3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ranksight.analysis.phases.weights import line
from ranksight.core import special
from ranksight.core.arrays import Array
from ranksight.core.errors import InsufficientError
from ranksight.core.records import dataclass
from ranksight.model.plaindata import Stored


@dataclass(frozen=True)
class Power(Stored):
    """``a p^b``."""

    factor: float
    exponent: float
    r2: float = 1.0  # in the logarithms
    scatter: float = 0.0  # standard deviation of the logarithms about the line; NaN where two points define it
    centre: float = 0.0  # mean of ``log p``
    width: float = 1.0  # sum of squares about it
    count: int = 0  # points

    def at(self, ranks: ArrayLike) -> Array:
        """Value at each rank count."""
        return np.asarray(self.factor * np.asarray(ranks, dtype=np.float64) ** self.exponent)

    def interval(self, ranks: ArrayLike, level: float = 0.9) -> tuple[Array, Array]:
        """Prediction interval of the line in the logarithms; NaN where two points define it."""
        value, p = self.at(ranks), np.asarray(ranks, dtype=np.float64)
        if self.factor == 0:
            return value, value
        if self.count < 3:
            return np.full(value.shape, np.nan), np.full(value.shape, np.nan)
        far = np.sqrt(1 + 1 / self.count + (np.log(p) - self.centre) ** 2 / self.width)
        factor = np.exp(float(special.stdtrit(self.count - 2, 0.5 + level / 2)) * self.scatter * far)
        return value / factor, value * factor


def fit_power(ranks: ArrayLike, values: ArrayLike) -> Power:
    """Fit ``a p^b`` to positive values; zeros only give zero.

    Raises InsufficientError with fewer than two rank counts of positive values.
    """
    p, y = np.asarray(ranks, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if len(y) and (y == 0).all():
        return Power(0.0, 0.0)
    used = np.isfinite(y) & (y > 0) & (p > 0)
    x, z = np.log(p[used]), np.log(y[used])
    if len(np.unique(x)) < 2:
        raise InsufficientError("a phase was timed at one number of ranks only", "trace at two or more, better four")
    level, exponent, r2 = line(x, z)
    rest = float(((z - level - exponent * x) ** 2).sum())
    scatter = float(np.sqrt(rest / (len(x) - 2))) if len(x) > 2 else float("nan")
    return Power(
        float(np.exp(level)), exponent, r2, scatter, float(x.mean()), float(((x - x.mean()) ** 2).sum()), len(x)
    )
