"""The fit of many series: reduce repetitions, screen, learn the noise and the habits of a metric, weigh, look ahead."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ranksight.errors import InputError
from ranksight.metrics import Kind, metric
from ranksight.model import discrepancy, drift, forecast, noise, prevalence
from ranksight.model.fitted import Fitted, is_positive
from ranksight.model.noise import Location, locate
from ranksight.model.offer import Offer
from ranksight.model.search import Found, Problem, Screened, evidence, keep
from ranksight.model.series import Series
from ranksight.model.spaces import SPACES

Array = NDArray[np.float64]

BATCH = 250_000
"""Hypotheses x series in memory at once."""


@dataclass(frozen=True)
class _Habits:
    """What all series of a metric teach each of them."""

    factor: float
    freedom: float
    shift: Array
    drift: dict[int, Array]


def fit_series(
    series: Series,
    *,
    space: str | Offer = "default",
    over_repetitions: str = "auto",
    guide: bool = True,
    intervals: bool = True,
    jobs: int = 1,
) -> Fitted:
    """Fit every series.

    Parameters
    ----------
    series : Series
    space : str, Hypotheses or Crossed
        Name of a search space (:data:`ranksight.model.spaces.SPACES`), or hypotheses of one's own.
    over_repetitions : str
        How repetitions become one value (:func:`ranksight.model.noise.locate`).
    guide : bool
        Let the forms of a kernel's requirements guide its times.
    intervals : bool
        Learn how far series drift from their functions beyond the range measured; without it intervals hold within.
    jobs : int
        Processes.

    Raises
    ------
    InputError
        When the space or the reduction is unknown.
    """
    offered = SPACES[space](len(series.parameters)) if isinstance(space, str) else space
    if offered.parameters != len(series.parameters):
        raise InputError(f"the space has {offered.parameters} parameters, the series {len(series.parameters)}")
    positive = is_positive(series.metrics, series.values)
    names = np.array(series.metrics, dtype=object)
    founds: list[Found] = []
    strays: list[Array] = []
    locations: list[Location] = []
    orders: list[NDArray[np.intp]] = []
    for name in dict.fromkeys(series.metrics):
        rows = np.flatnonzero(names == name)
        location = locate(series.values[rows], over_repetitions)
        locations.append(location)
        orders.append(rows)
        for found, stray in _fit_metric(offered, series.points, location, positive[rows], metric(name).kind, intervals):
            founds.append(found)
            strays.append(stray)
    if not founds:
        raise InputError("there is no series to fit", "choose metrics that the experiment holds")
    back = np.argsort(np.concatenate(orders))
    found = _join(founds, back)
    stray = np.concatenate(strays)[back]
    label = space if isinstance(space, str) else "own"
    return _assemble(series, label, noise.join(locations, orders), positive, found, stray)


def _fit_metric(
    space: Offer, points: Array, location: Location, positive: NDArray[np.bool_], kind: Kind, intervals: bool
) -> list[tuple[Found, Array]]:
    """Fit all series of one metric, batch by batch; the first batch teaches the habits."""
    base = discrepancy.configuration_variance(location, kind)
    step = max(1, BATCH // max(1, space.load))
    # A shuffled order, so that the first batch speaks for all; seeded, so that results repeat.
    order = np.random.default_rng(0).permutation(len(base)) if len(base) > step else np.arange(len(base))
    habits: _Habits | None = None
    parts = []
    for start in range(0, len(base), step):
        part = order[start : start + step]
        mine = location.part(part)
        problem, screened = space.screen(points, mine, positive[part], kind)
        if habits is None:
            habits = _learn(base[part], problem, screened)
        v0, d0 = base[part] * habits.factor, np.full(len(part), habits.freedom)
        found = keep(problem, screened, evidence(screened, problem.count, v0, d0) + habits.shift, v0, d0)
        stray = np.zeros((len(part), points.shape[1]))
        for axis in range(points.shape[1] if intervals else 0):
            density = drift.densities(space, points, mine, positive[part], kind, v0, d0, habits.shift, axis)
            law = habits.drift.setdefault(axis, drift.learn(density, kind))
            stray[:, axis] = drift.posterior(density, law)
        parts.append((found, stray))
    back = np.argsort(order)
    joined = _join([found for found, _ in parts], back)
    return [(joined, np.concatenate([stray for _, stray in parts])[back])]


def _join(founds: list[Found], order: NDArray[np.intp]) -> Found:
    """Put parts over the same table together, padded to the same numbers of hypotheses and terms."""
    kept = max(part.members.shape[1] for part in founds)
    width = max(part.members.shape[2] for part in founds)
    arrays = {}
    for name in Found.__dataclass_fields__:
        if name == "basis":
            continue
        fill = -1 if name == "members" else np.inf if name == "variance" else 1.0 if name == "freedom" else 0.0
        grown = []
        for part in founds:
            array = getattr(part, name)
            extra = [(0, 0), (0, kept - array.shape[1]), *((0, width - size) for size in array.shape[2:])]
            grown.append(np.pad(array, extra, constant_values=fill))
        arrays[name] = np.concatenate(grown)[order]
    return Found(basis=founds[0].basis, **arrays)


def _learn(base: Array, problem: Problem, screened: Screened) -> _Habits:
    """Discrepancy, then common forms with it; drift follows from the first batch."""
    factor, freedom = discrepancy.learn(problem, screened, base)
    v0, d0 = base * factor, np.full(len(base), freedom)
    shift = prevalence.shift(problem, screened, evidence(screened, problem.count, v0, d0))
    return _Habits(factor, freedom, shift, {})


def _assemble(
    series: Series,
    label: str,
    location: Location,
    positive: NDArray[np.bool_],
    found: Found,
    stray: Array,
) -> Fitted:
    occurring = np.unique(found.members[found.members >= 0])
    members = np.where(found.members >= 0, np.searchsorted(occurring, found.members), -1)
    present = location.repeats > 0
    count = present.sum(axis=1)
    varied = int((np.ptp(series.points, axis=0) > 0).sum()) if len(series.points) else 0
    status = np.full(len(series), forecast.OK)
    status[count < 3 + max(varied - 1, 0)] = forecast.FEW_POINTS
    status[count == 0] = forecast.NO_DATA
    size = (members[:, 0] >= 0).sum(axis=1)
    y = np.where(present, location.values, np.nan)
    relative = np.where(present, 1 / location.scale**2, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.nansum(relative * y, axis=1) / relative.sum(axis=1)
        total = np.nansum(relative * (y - mean[:, None]) ** 2, axis=1)
        adjusted = 1 - (found.residual[:, 0] / (count - size)) / (total / (count - 1))
        adjusted = np.where((size > 1) & (count > size) & (total > 0), adjusted, np.nan)
    seen = np.where(present[:, :, None], series.points[None], np.nan)
    none = ~present.any(axis=1)
    low = np.where(none[:, None], 0.0, np.fmin.reduce(seen, axis=1, initial=np.inf))
    high = np.where(none[:, None], 0.0, np.fmax.reduce(seen, axis=1, initial=-np.inf))
    return Fitted(
        series.parameters,
        series.kernels,
        series.metrics,
        label,
        found.basis.decode(occurring),
        members,
        found.weight,
        found.coefficients,
        found.root,
        found.variance,
        found.freedom,
        np.sqrt(found.press[:, 0]),
        adjusted,
        count,
        status,
        positive,
        np.stack([low, high], axis=2),
        stray,
    )
