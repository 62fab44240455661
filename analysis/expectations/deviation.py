"""The cost of a deviation, and the scale at which it appears.

The model G with its coefficients is compared with the expectation fitted to the same measurements, E'(x) = c0 + c E(x).
A falling expectation has no constant, as a constant would keep it from falling. Both functions pass through the
measurements, so their ratio at larger scales is the cost of the deviation, in units of time or bytes. The divergence
delta = G/E gives the trend only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ranksight.analysis.expectations.models import Key, Model, one
from ranksight.core.arrays import Array
from ranksight.core.records import dataclass
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.search.growth import NONE, Growth
from ranksight.model.series.reducing import Series
from ranksight.model.spaces.rulers import stated
from ranksight.model.uncertainty.forecast import Forecast

TWICE = 2.0
FARTHEST = 20
"""Doublings of a parameter beyond what was measured within which the doubled cost is looked for."""
AHEAD = (8.0, 64.0)
"""Multiples of the largest value of a parameter at which costs are computed when none are named."""
AHEAD_RATE = 1.5
"""The same for parameters of exponential growth, where nobody goes that far."""


@dataclass(frozen=True, slots=True)
class Cost:
    """A function at one configuration."""

    configuration: Mapping[str, float]
    value: float  # of the model, with its 90 % interval
    lower: float
    upper: float
    expected: float  # what the expectation, fitted to the same measurements, says there
    answer: str = ""  # why the data are insufficient for the value; empty where they suffice

    @property
    def ratio(self) -> float:
        """Value over expected."""
        return self.value / self.expected if self.expected else float("nan")


def fit_expected(series: Series, growths: Mapping[Key, Growth], over_repetitions: str) -> dict[Key, Fitted]:
    """Expectations with coefficients, ``c0 + c E`` or ``c E``, fitted to what was measured.

    Functions that share E are fitted together.
    """
    rows = series.rows
    groups: dict[Growth, list[Key]] = {}
    for key, growth in growths.items():
        groups.setdefault(growth, []).append(key)
    fits: dict[Key, Fitted] = {}
    for growth, keys in groups.items():
        fitted = fit_series(
            series.select(np.array([rows[key] for key in keys])),
            space=stated(growth, series.parameters),
            over_repetitions=over_repetitions,
            intervals=False,
        )
        fits |= {key: one(fitted, at) for at, key in enumerate(keys)}
    return fits


def forecasts(models: Iterable[Model], targets: Array) -> dict[int, Forecast]:
    """What every fit behind some models says at targets (k, m), by the fit's identity."""
    fits = {id(model.fitted): model.fitted for model in models}
    return {name: fitted.predict(targets) for name, fitted in fits.items()}


def costs(model: Model, expected: Fitted, targets: Array, answer: Forecast) -> tuple[Cost, ...]:
    """The function at targets (k, m), with what was expected; `answer` is that of the fit behind the model."""
    values = expected.at_training(targets)[0]
    row = model.row
    return tuple(
        Cost(
            dict(zip(model.fitted.parameters, map(float, point), strict=True)),
            float(answer.value[row, at]),
            float(answer.lower[row, at]),
            float(answer.upper[row, at]),
            float(values[at]),
            str(answer.reason[row, at]),
        )
        for at, point in enumerate(targets)
    )


def doubled(model: Model, expected: Fitted, delta: Growth) -> Cost | None:
    """The first configuration, from the largest measured one on, where the function is twice of what was expected.

    `expected`: from :func:`fit_expected`. `delta`: divergence; the parameter along which it grows fastest is followed,
    the others stay at their largest.
    """
    rising = [(order, name) for name, order in delta.orders if order > NONE]
    if not rising:
        return None
    axis = model.fitted.parameters.index(max(rising)[1])
    most = model.present.max(axis=0)
    steps = np.arange(FARTHEST * 8 + 1)
    line = np.repeat(most[None, :], len(steps), axis=0)
    exponential = max(rising)[0].rate > 0
    line[:, axis] = most[axis] + steps if exponential else np.ceil(most[axis] * 2.0 ** (steps / 8))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        ratio = model.at(line) / expected.at_training(line)[0]
    hit = np.flatnonzero(np.isfinite(ratio) & (ratio >= TWICE))
    if not len(hit):
        return None
    low, high = line[max(hit[0] - 1, 0), axis], line[hit[0], axis]
    while high - low > 1:
        middle = np.floor((low + high) / 2)
        point = np.array([[middle if at == axis else value for at, value in enumerate(most)]])
        above = model.at(point)[0] / expected.at_training(point)[0][0] >= TWICE
        low, high = (low, middle) if above else (middle, high)
    point = np.array([[high if at == axis else value for at, value in enumerate(most)]])
    return costs(model, expected, point, model.fitted.predict(point))[0]


def usual_targets(points: Array, growths: Sequence[Growth], parameters: Sequence[str]) -> Array:
    """Configurations for costs when none are named: the first parameter of a growth is extended, the others held."""
    most = points.max(axis=0)
    named = [name for name in parameters if any(growth[name] != NONE for growth in growths)]
    axis = list(parameters).index("ranks" if "ranks" in named else (named or list(parameters))[0])
    rate = any(growth[parameters[axis]].rate for growth in growths)
    targets = np.repeat(most[None, :], 1 if rate else len(AHEAD), axis=0)
    targets[:, axis] *= AHEAD_RATE if rate else np.array(AHEAD)
    return np.asarray(targets)
