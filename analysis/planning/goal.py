"""What a plan is for: the answer asked for, and the series that its uncertainty comes from.

The time of a program is a sum; how much a narrower series narrows it is the series' share. Where a kernel's time
follows the resource equation, its instructions and loads stand for it, each with its part of the time; messages stand
for the communication. Series whose answers are exact already contribute nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranksight.core.arrays import Array, Index
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE
from ranksight.core.metrics import metric
from ranksight.core.records import dataclass
from ranksight.model.application import whole
from ranksight.model.fitted_model import Model
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.resource.equation import LEVELS
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import WIDEST, Forecast

Found = dict[int, tuple[Array, Array]]
"""Share of the goal (t,) and distances to the ends (2, t) of series, by row."""

COVERED = 0.995
"""Share of the goal's uncertainty whose series are followed; the rest is a crowd that no run is made for."""
MOST_SERIES = 64
MOST_LOST = 1 - 1e-9
"""Largest part of a sum that errors take away."""
REACH = float(np.log(WIDEST))
"""Half-width, in logarithms, of an answer with insufficient data, and the most that any is taken for."""


@dataclass(frozen=True)
class Source:
    """Series of one set of functions that the goal rests on."""

    fitted: Fitted
    rows: Index  # (g,)
    share: Array  # (g, t): part of the goal at the targets that each stands for
    ends: Array  # (2, g, t)
    """Distances from each one's own value to the lower and the upper end of its interval, in logarithms."""
    form: Array  # (g, t): share of its variance that is of the form


@dataclass(frozen=True)
class Goal:
    """The answer asked for at t targets."""

    what: str  # such as ``time of the whole program``
    metric: str
    targets: Array  # (t, m)
    training: Array  # (n, m): configurations measured
    now: Forecast  # one row
    sources: tuple[Source, ...]
    rho: float  # common correlation of the series' noise
    rest: Array  # (t,)
    """Half-width that the goal's interval has in addition to its series, in logarithms: CPI and imbalance of a run."""

    def width(self, ratio: Array | float = 1.0, form: Array | None = None) -> Array:
        """Half-width (..., t) of the goal's interval, in logarithms, once those of its series are narrower.

        Distances to the ends add as the engine adds them (:func:`ranksight.model.application.whole.together`). `ratio`
        (..., g, t): width of each series' interval in the present one. `form` (..., g, t): share of its variance that
        is of the form then; as at present when not given.
        """
        share, present = (np.concatenate([getattr(each, name) for each in self.sources]) for name in ("share", "form"))
        form = present if form is None else form
        down, up = np.concatenate([source.ends for source in self.sources], axis=1)
        down, up = down * ratio, up * ratio
        rise = whole.together(share * np.expm1(up), form, self.rho)
        fall = whole.together(-share * np.expm1(-down), form, self.rho)
        half = (np.log1p(rise) - np.log1p(-np.minimum(fall, MOST_LOST))) / 2
        return np.asarray(np.hypot(half, self.rest))


def goal(
    model: Model, targets: Array, metric_name: str | None = None, kernel: str | None = None, level: float = 0.9
) -> Goal:
    """The goal of narrowing one metric, of the whole program or of one kernel.

    Raises InputError when the model has no such metric or kernel, or the metric has no total over kernels.

    `targets` (t, m). `metric_name`: the time when not given, or the model's first metric where it has none. `kernel`:
    the whole program when not given. `level`: probability of the intervals.
    """
    metrics = tuple(dict.fromkeys(model.fitted.metrics))
    name = metric_name or next((each for each in ("time", "wall_time") if each in metrics), metrics[0])
    rows = model.functions.rows
    counted = model.forecast(targets, level)
    asked = kernel or WHOLE
    answer = model.predict_at(targets, level=level, metrics=[name], kernels=[asked]).answers
    answers = [each for each in answer if (each.kernel or WHOLE) == asked]
    if not answers:
        what = f"{name} has no value for the whole program" if kernel is None else f"{kernel!r} has no {name}"
        raise InputError(what, "name a kernel that has it with --kernel, or another metric with --metric")
    status = np.array([[each.status for each in answers]], dtype=np.intp)
    value, low, high = (np.array([[getattr(each, end) for each in answers]]) for end in ("value", "lower", "upper"))
    # A sum whose parts have no answer is no zero.
    empty = (value == 0) & (status != forecast.OK)
    value, low, high = (np.where(empty, np.nan, end) for end in (value, low, high))
    reason = np.array([[each.reason for each in answers]], dtype=object)
    form = np.array([[each.form for each in answers]])
    now = Forecast(value, low, high, status, reason, form, level=level)
    if kernel is not None:
        chosen = [(kernel, name)]
    elif (WHOLE, name) in rows:
        chosen = [(WHOLE, name)]
    else:
        chosen = [key for key in rows if key[1] == name and key[0] != WHOLE]
    size = np.where(np.isfinite(value[0]) & (value[0] != 0), np.abs(value[0]), np.nan)
    shares = _shares(counted, [rows[key] for key in chosen], size)
    if name == "time" and kernel is None:
        shares = _with_imbalance(model, targets, level, shares, size)
    if name == "time":
        shares = _by_equation(model, counted, targets, level, shares, size)
    sources = [_heaviest(model.fitted, counted, shares)]
    if name == "time" and kernel is None and model.equation.communication:
        sources += _messages(model, targets, level, size)
    what = f"{name} of {'the whole program' if kernel is None else kernel}"
    rho = model.correlation.get(name, whole.NOISE)
    plain = Goal(what, name, targets, model.training, now, tuple(sources), rho, np.zeros(len(targets)))
    return replace(plain, rest=_rest(plain))


def _rest(goal: Goal) -> Array:
    """Half-width (t,) of what the goal's interval holds in addition to its series; 0 where it is not known."""
    with np.errstate(all="ignore"):
        width = np.log(goal.now.upper[0] / goal.now.lower[0]) / 2
        rest = np.sqrt(width**2 - goal.width() ** 2)
    return np.where((width <= REACH) & np.isfinite(rest), rest, 0.0)


def _ends(counted: Forecast, row: int) -> Array:
    """Distances (2, t) from a series' value to the ends of its interval in logarithms; :data:`REACH` where there is no
    answer, which is the most that half of an interval is taken for."""
    value, low, high = counted.value[row], counted.lower[row], counted.upper[row]
    with np.errstate(all="ignore"):
        logs = np.stack([np.log(value / low), np.log(high / value)])
        ends = np.where(low > 0, logs, np.stack([value - low, high - value]) / np.abs(value))
    half = ends.mean(axis=0)
    missing = ~np.isfinite(half) | np.isin(
        counted.status[row], (forecast.FEW_POINTS, forecast.NO_DATA, forecast.UNVARIED, forecast.NOT_POSITIVE)
    )
    with np.errstate(all="ignore"):
        return np.asarray(np.where(missing, REACH, np.maximum(ends, 0.0) * np.minimum(1.0, REACH / half)))


def _shares(counted: Forecast, rows: list[int], value: Array) -> Found:
    """Share of the goal and distances to the ends of each series."""
    shares = {}
    for row in rows:
        with np.errstate(all="ignore"):
            share = np.abs(counted.value[row]) / value
        shares[row] = np.where(np.isfinite(share), share, 1.0 / len(rows)), _ends(counted, row)
    return shares


def _with_imbalance(model: Model, targets: Array, level: float, shares: Found, value: Array) -> Found:
    """Kernels' times with what waiting for their busiest rank adds: it is in proportion to them."""
    if model.equation.imbalances is None:
        return shares
    broken = model.breakdown(targets, level)
    seconds = dict(zip(broken.kernels, broken.by_kernel - broken.each["communication"], strict=True))
    kernels = model.fitted.kernels
    with np.errstate(all="ignore"):
        return {
            row: (np.nan_to_num(np.abs(seconds[kernels[row]]) / value) if kernels[row] in seconds else share, ends)
            for row, (share, ends) in shares.items()
        }


def _by_equation(model: Model, forecast: Forecast, targets: Array, level: float, shares: Found, value: Array) -> Found:
    """The kernels' times that follow the resource equation, replaced by the counters they are made of."""
    broken = model.breakdown(targets, level)
    rows = model.functions.rows
    for kernel in broken.terms.kernels:
        row = rows.get((kernel, "time"))
        if row is None or row not in shares:
            continue
        at = broken.kernels.index(kernel)
        pieces = {"instructions": broken.each["execution"][at]} | {name: broken.each[name][at] for name in LEVELS}
        explained = np.zeros(len(targets))
        for name, seconds in pieces.items():
            counted = rows.get((kernel, name))
            if counted is None:
                continue
            with np.errstate(all="ignore"):
                share, ends = np.nan_to_num(np.abs(seconds) / value), _ends(forecast, counted)
            explained += (share * ends.mean(axis=0)) ** 2
            shares[counted] = share, ends
        # Counters leave the memory blocking factor open; more times determine it.
        share, ends = shares[row]
        unexplained = (share * ends.mean(axis=0)) ** 2
        shares[row] = (
            share,
            ends
            * np.sqrt(np.maximum(1 - np.divide(explained, unexplained, out=explained, where=unexplained > 0), 0.0)),
        )
    return shares


def _messages(model: Model, targets: Array, level: float, value: Array) -> list[Source]:
    """The series of messages and bytes behind the communication time."""
    communication, network = model.equation.communication, model.equation.network
    if not communication or not network:
        return []
    times = communication.exchanged(targets, network).at(level).times
    rows, sent = communication.functions.rows, communication.functions.predict(targets).at(level)
    shares: Found = {}
    for at, name in enumerate(communication.names):
        with np.errstate(all="ignore"):
            share = np.nan_to_num(times.value[at] / value)
        for which in ("messages", "bytes_sent"):
            row = rows[name, which]
            shares[row] = share / np.sqrt(2), _ends(sent, row)
    return [_heaviest(communication.functions.fitted, sent, shares)] if shares else []


def _heaviest(fitted: Fitted, counted: Forecast, shares: Found) -> Source:
    """The series that hold nearly all of the uncertainty."""
    rows = np.array(list(shares), dtype=np.intp)
    share = np.array([each[0] for each in shares.values()])
    ends = np.array([each[1] for each in shares.values()]).swapaxes(0, 1)
    weight = (share * np.expm1(ends[1])).sum(axis=1)
    order = np.argsort(-weight, kind="stable")
    total = np.cumsum(weight[order])
    enough = int(np.searchsorted(total, COVERED * total[-1])) + 1 if len(total) and total[-1] > 0 else 1
    keep = order[: min(enough, MOST_SERIES)]
    return Source(fitted, rows[keep], share[keep], ends[:, keep], whole.share_of_form(counted.form[rows[keep]]))


def total_of(model: Model, name: str) -> bool:
    """Whether the model predicts a metric of the whole program."""
    return (WHOLE, name) in model.functions.rows or (name in model.fitted.metrics and metric(name).additive)
