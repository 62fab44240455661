"""What a plan is for: the answer asked for, and the series that its uncertainty comes from.

The time of a program is a sum; how much a narrower series narrows it is the series' share. Where a kernel's time
follows the resource equation, its instructions and loads stand for it, each with its part of the time; messages stand
for the communication. Series whose answers are exact already contribute nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ranksight.errors import InputError
from ranksight.experiment import WHOLE
from ranksight.metrics import metric
from ranksight.model.application.whole import Correlation
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.model import Model
from ranksight.model.resource.resource import LEVELS
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import WIDEST, Forecast

Array = NDArray[np.float64]
Index = NDArray[np.intp]

COVERED = 0.995
"""Share of the goal's uncertainty whose series are followed; the rest is a crowd that no run is made for."""
MOST_SERIES = 64
REACH = float(np.log(WIDEST))
"""Half-width, in logarithms, of an answer that the evidence does not carry, and the most that any is taken for."""


@dataclass(frozen=True)
class Source:
    """Series of one set of functions that the goal rests on.

    Attributes
    ----------
    fitted : Fitted
    rows : (g,) intp
    half : (g, t)
        What each adds to the half-width of the goal's interval at the targets, in logarithms.
    """

    fitted: Fitted
    rows: Index
    half: Array


@dataclass(frozen=True)
class Goal:
    """The answer asked for at t targets.

    Attributes
    ----------
    what : str
        Such as ``time of the whole program``.
    metric : str
    targets : (t, m)
    training : (n, m)
        Configurations measured.
    now : Forecast
        One row.
    sources : tuple of Source
    rho : float
        Common correlation of the series' errors.
    """

    what: str
    metric: str
    targets: Array
    training: Array
    now: Forecast
    sources: tuple[Source, ...]
    rho: float

    def width(self, half: Array) -> Array:
        """Half-width (..., t) of the goal's interval from those of its series (..., g, t), as correlated errors add."""
        squares, sums = (half**2).sum(axis=-2), half.sum(axis=-2)
        return np.asarray(np.sqrt((1 - self.rho) * squares + self.rho * sums**2))


def goal(
    model: Model, targets: Array, metric_name: str | None = None, kernel: str | None = None, level: float = 0.9
) -> Goal:
    """The goal of narrowing one metric, of the whole program or of one kernel.

    Parameters
    ----------
    model : Model
    targets : (t, m)
    metric_name : str, optional
        The time when not given, or the model's first metric where it has none.
    kernel : str, optional
        The whole program when not given.
    level : float
        Probability of the intervals.

    Raises
    ------
    InputError
        When the model has no such metric or kernel, or the metric has no total over kernels.
    """
    held = tuple(dict.fromkeys(model.fitted.metrics))
    name = metric_name or next((each for each in ("time", "wall_time") if each in held), held[0])
    rows = model.functions.rows
    said = model.forecast(targets, level)
    asked = kernel or WHOLE
    answer = model.predict_at(targets, level=level, metrics=[name], kernels=[asked]).answers
    mine = [each for each in answer if (each.kernel or WHOLE) == asked]
    if not mine:
        what = f"{name} has no value for the whole program" if kernel is None else f"{kernel!r} has no {name}"
        raise InputError(what, "name a kernel that has it with --kernel, or another metric with --metric")
    status = np.array([[each.status for each in mine]], dtype=np.intp)
    value, low, high = (np.array([[getattr(each, end) for each in mine]]) for end in ("value", "lower", "upper"))
    # A sum whose parts have no answer is no zero.
    empty = (value == 0) & (status != forecast.OK)
    value, low, high = (np.where(empty, np.nan, end) for end in (value, low, high))
    reason = np.array([[each.reason for each in mine]], dtype=object)
    half = np.full(status.shape, 0.5)
    now = Forecast(value, low, high, status, reason, half, half, level)
    if kernel is not None:
        chosen = [(kernel, name)]
    elif (WHOLE, name) in rows:
        chosen = [(WHOLE, name)]
    else:
        chosen = [key for key in rows if key[1] == name and key[0] != WHOLE]
    parts = {rows[key]: np.ones(len(targets)) for key in chosen}
    size = np.where(np.isfinite(value[0]) & (value[0] != 0), np.abs(value[0]), np.nan)
    found = _own(said, parts, size)
    if name == "time":
        found = _by_equation(model, said, targets, level, found, size)
    sources = [Source(model.fitted, *_heaviest(found))]
    if name == "time" and kernel is None and model.equation.communication is not None:
        sources += _messages(model, targets, level, size)
    what = f"{name} of {'the whole program' if kernel is None else kernel}"
    rho = model.correlation.get(name, Correlation()).noise
    return Goal(what, name, targets, model.training, now, tuple(sources), rho)


def _half(said: Forecast, row: int) -> Array:
    """Half-width (t,) of a series' interval in logarithms; :data:`REACH` where there is no answer."""
    value, low, high = said.value[row], said.lower[row], said.upper[row]
    with np.errstate(all="ignore"):
        half = np.where(low > 0, np.log(high / low) / 2, (high - low) / 2 / np.abs(value))
    missing = ~np.isfinite(half) | np.isin(
        said.status[row], (forecast.FEW_POINTS, forecast.NO_DATA, forecast.UNVARIED, forecast.NOT_POSITIVE)
    )
    return np.asarray(np.clip(np.where(missing, REACH, half), 0.0, REACH))


def _own(said: Forecast, parts: dict[int, Array], value: Array) -> dict[int, Array]:
    """Half-width that each series adds: its share of the goal times its own."""
    found = {}
    for row in parts:
        with np.errstate(all="ignore"):
            share = np.abs(said.value[row]) / value
        alone = 1.0 if len(parts) == 1 else 1.0 / len(parts)
        found[row] = np.where(np.isfinite(share), share, alone) * _half(said, row)
    return found


def _by_equation(
    model: Model, said: Forecast, targets: Array, level: float, found: dict[int, Array], value: Array
) -> dict[int, Array]:
    """The kernels' times that follow the resource equation, replaced by the counters they are made of."""
    resources = model.equation.resources
    if resources is None:
        return found
    rows = model.functions.rows
    parts = resources.parts(targets, said, rows, level)
    for i, kernel in enumerate(resources.kernels):
        row = rows.get((kernel, "time"))
        if row is None or row not in found or not np.isclose(parts.value[i], said.value[row]).any():
            continue
        pieces = {"instructions": parts.execution[i]} | {name: parts.memory[i, :, at] for at, name in enumerate(LEVELS)}
        explained = np.zeros(len(targets))
        for name, seconds in pieces.items():
            counted = rows.get((kernel, name))
            if counted is None:
                continue
            with np.errstate(all="ignore"):
                half = np.nan_to_num(np.abs(seconds) / value) * _half(said, counted)
            explained += half**2
            found[counted] = found.get(counted, 0.0) + half
        # What the counters leave is how far memory blocks, which more times tell.
        found[row] = np.sqrt(np.maximum(found[row] ** 2 - explained, 0.0))
    return found


def _messages(model: Model, targets: Array, level: float, value: Array) -> list[Source]:
    """The series of messages and bytes behind the communication time."""
    communication, network = model.equation.communication, model.equation.network
    if communication is None or network is None:
        return []
    times = communication.times(targets, network.fabric(), level)
    rows, said = communication.functions.rows, communication.functions.predict(targets, level)
    found: dict[int, Array] = {}
    for at, name in enumerate(communication.names):
        with np.errstate(all="ignore"):
            share = np.nan_to_num(times.value[at] / value)
        for which in ("messages", "bytes_sent"):
            row = rows[name, which]
            found[row] = share * _half(said, row) / np.sqrt(2)
    return [Source(communication.functions.fitted, *_heaviest(found))] if found else []


def _heaviest(found: dict[int, Array]) -> tuple[Index, Array]:
    """The series that hold nearly all of the uncertainty, and what each adds."""
    rows = np.array(list(found), dtype=np.intp)
    half = np.array([found[row] for row in found]).reshape(len(rows), -1)
    weight = half.sum(axis=1)
    order = np.argsort(-weight, kind="stable")
    total = np.cumsum(weight[order])
    enough = int(np.searchsorted(total, COVERED * total[-1])) + 1 if len(total) and total[-1] > 0 else 1
    keep = order[: min(enough, MOST_SERIES)]
    return rows[keep], half[keep]


def total_of(model: Model, name: str) -> bool:
    """Whether the model can tell a metric of the whole program."""
    return (WHOLE, name) in model.functions.rows or (name in model.fitted.metrics and metric(name).additive)
