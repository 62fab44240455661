"""The fit of many series: reduce repetitions, screen, learn the noise, weigh."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.errors import InputError
from ranksight.metrics import metric
from ranksight.model import discrepancy, forecast, noise
from ranksight.model.fitted import Fitted, is_positive
from ranksight.model.noise import Location, locate
from ranksight.model.search import Found, evidence, keep, pose, screen
from ranksight.model.series import Series
from ranksight.model.spaces import SPACES
from ranksight.model.terms import Hypotheses

Array = NDArray[np.float64]

BATCH = 1_000_000
"""Hypotheses x series in memory at once."""
SAMPLE = 1000
"""Series from which the discrepancy of a metric is learned."""


def fit_series(
    series: Series,
    *,
    space: str | Hypotheses = "default",
    over_repetitions: str = "auto",
    guide: bool = True,
    jobs: int = 1,
) -> Fitted:
    """Fit every series.

    Parameters
    ----------
    series : Series
    space : str or Hypotheses
        Name of a search space (:data:`ranksight.model.spaces.SPACES`), or hypotheses of one's own.
    over_repetitions : str
        How repetitions become one value (:func:`ranksight.model.noise.locate`).
    guide : bool
        Let the forms of a kernel's requirements guide its times.
    jobs : int
        Processes.

    Raises
    ------
    InputError
        When the space or the reduction is unknown.
    """
    offered = SPACES[space](len(series.parameters)) if isinstance(space, str) else space
    if offered.terms.shape[1] != len(series.parameters):
        raise InputError(f"the space has {offered.terms.shape[1]} parameters, the series {len(series.parameters)}")
    positive = is_positive(series.metrics, series.values)
    names = np.array(series.metrics, dtype=object)
    founds: list[Found] = []
    locations: list[Location] = []
    orders: list[NDArray[np.intp]] = []
    for name in dict.fromkeys(series.metrics):
        rows = np.flatnonzero(names == name)
        location = locate(series.values[rows], over_repetitions)
        locations.append(location)
        orders.append(rows)
        founds += _fit_metric(offered, series.points, location, positive[rows], name)
    order = np.argsort(np.concatenate(orders)) if orders else np.empty(0, dtype=np.intp)
    found = {
        field: np.concatenate([getattr(part, field) for part in founds])[order]
        for field in Found.__dataclass_fields__
        if founds
    }
    location = noise.join(locations, orders) if orders else locate(series.values)
    return _assemble(series, offered, space if isinstance(space, str) else "own", location, positive, found)


def _fit_metric(
    space: Hypotheses, points: Array, location: Location, positive: NDArray[np.bool_], name: str
) -> Iterator[Found]:
    """Fit all series of one metric, batch by batch; the first batch teaches the discrepancy."""
    kind = metric(name).kind
    base = discrepancy.configuration_variance(location, kind)
    step = max(1, BATCH // max(1, len(space.members)))
    learned: tuple[float, float] | None = None
    for start in range(0, len(base), step):
        part = slice(start, start + step)
        problem = pose(space, points, location.part(part), positive[part], kind)
        screened = screen(space, problem)
        if learned is None:
            learned = discrepancy.learn(space, problem, screened, base[part])
        v0 = base[part] * learned[0]
        d0 = np.full(len(v0), learned[1])
        yield keep(space, problem, evidence(space, screened, problem.count, v0, d0), v0, d0)


def _assemble(
    series: Series, space: Hypotheses, name: str, location: Location, positive: NDArray[np.bool_], found: dict[str, Any]
) -> Fitted:
    chosen: NDArray[np.intp] = found["chosen"]
    members = np.where(chosen[..., None] >= 0, space.members[chosen], -1)
    occurring = np.unique(members[members >= 0])
    back = np.zeros(len(space.terms), dtype=np.intp)
    back[occurring] = np.arange(len(occurring))
    members = np.where(members >= 0, back[members], -1)
    present = location.repeats > 0
    count = present.sum(axis=1)
    status = np.full(len(series), forecast.OK)
    varied = int((np.ptp(series.points, axis=0) > 0).sum()) if len(series.points) else 0
    status[count < 3 + max(varied - 1, 0)] = forecast.FEW_POINTS
    status[count == 0] = forecast.NO_DATA
    size = (members[:, 0] >= 0).sum(axis=1)
    y = np.where(present, location.values, np.nan)
    relative = np.where(present, 1 / location.scale**2, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.nansum(relative * y, axis=1) / relative.sum(axis=1)
        total = np.nansum(relative * (y - mean[:, None]) ** 2, axis=1)
        adjusted = 1 - (found["residual"][:, 0] / (count - size)) / (total / (count - 1))
        adjusted = np.where((size > 1) & (count > size) & (total > 0), adjusted, np.nan)
    trained = (
        np.stack([series.points.min(axis=0), series.points.max(axis=0)], axis=1)
        if len(series.points)
        else np.zeros((len(series.parameters), 2))
    )
    return Fitted(
        series.parameters,
        series.kernels,
        series.metrics,
        name,
        space.terms[occurring],
        members.astype(np.intp),
        found["weight"],
        found["coefficients"],
        found["root"],
        found["variance"],
        found["freedom"],
        np.sqrt(found["press"][:, 0]),
        adjusted,
        count,
        status,
        positive,
        trained,
    )
