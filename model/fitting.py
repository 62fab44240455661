"""The fit of a batch of series: reduce repetitions, search, weigh."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from ranksight.errors import InputError
from ranksight.model import forecast
from ranksight.model.fitted import Fitted, is_positive
from ranksight.model.noise import Location, locate
from ranksight.model.search import Found, search
from ranksight.model.series import Series
from ranksight.model.spaces import SPACES
from ranksight.model.terms import Hypotheses

Array = NDArray[np.float64]

BATCH = 1_000_000
"""Hypotheses x series in memory at once."""


def fit_series(
    series: Series,
    *,
    space: str | Hypotheses = "default",
    over_repetitions: str = "median",
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
        How repetitions become one value (:func:`ranksight.model.reduction.reduce`).
    guide : bool
        Let the forms of a kernel's requirements guide its times.

    Raises
    ------
    InputError
        When the space or the reduction is unknown.
    """
    offered = SPACES[space](len(series.parameters)) if isinstance(space, str) else space
    if offered.terms.shape[1] != len(series.parameters):
        raise InputError(f"the space has {offered.terms.shape[1]} parameters, the series {len(series.parameters)}")
    location = locate(series.values, over_repetitions)
    positive = is_positive(series.metrics, series.values)
    parts = [
        search(offered, series.points, _part(location, part), positive=positive[part])
        for part in _batches(len(series), len(offered.members))
    ]
    return _assemble(series, offered, space if isinstance(space, str) else "own", location, positive, parts)


def _batches(count: int, hypotheses: int) -> Iterator[slice]:
    step = max(1, BATCH // max(1, hypotheses))
    return (slice(start, start + step) for start in range(0, max(count, 1), step))


def _part(location: Location, part: slice) -> Location:
    return Location(
        location.values[part],
        location.scale[part],
        location.repeats[part],
        location.variance[part],
        location.freedom[part],
    )


def _assemble(
    series: Series, space: Hypotheses, name: str, location: Location, positive: NDArray[np.bool_], parts: list[Found]
) -> Fitted:
    def join(field: str) -> NDArray[np.generic]:
        return np.concatenate([getattr(part, field) for part in parts])

    chosen = join("chosen")
    members = np.where(chosen[..., None] >= 0, space.members[chosen], -1)
    occurring = np.unique(members[members >= 0])
    back = np.zeros(len(space.terms), dtype=np.intp)
    back[occurring] = np.arange(len(occurring))
    members = np.where(members >= 0, back[members], -1)
    present = location.repeats > 0
    count = present.sum(axis=1)
    status = np.full(len(series), forecast.OK)
    varied = (np.ptp(series.points, axis=0) > 0).sum() if len(series.points) else 0
    status[count < 3 + max(varied - 1, 0)] = forecast.FEW_POINTS
    status[count == 0] = forecast.NO_DATA
    press = join("press")[:, 0] if len(series) else np.empty(0)
    size = (members[:, 0] >= 0).sum(axis=1)
    y = np.where(present, location.values, np.nan)
    relative = np.where(present, 1 / location.scale**2, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.nansum(relative * y, axis=1) / relative.sum(axis=1)
        total = np.nansum(relative * (y - mean[:, None]) ** 2, axis=1)
        adjusted = 1 - (join("residual")[:, 0] / (count - size)) / (total / (count - 1))
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
        join("weight"),
        join("coefficients"),
        join("root"),
        join("variance"),
        join("freedom"),
        np.sqrt(press),
        adjusted,
        count,
        status,
        positive,
        trained,
    )
