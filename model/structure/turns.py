"""How often the loop of a program turns, as a series of its own: iterations that convergence decides.

A solver turns until it has converged, 29 times here and 31 there, and what it calls and sends in a turn follows the
ranks and sizes exactly. So a count y of a kernel in the loop is

    y(x) = c(x) g(x),    c = a + b n

with the turns n, which no short function meets, the kernel's calls c, and g, what one call does. n is the count of
calls that most others are exact affine functions of, such as the all-reduces of a scalar product, twice a turn and once
before. Messages between pairs of ranks are known by their sums, so that there c is n less a constant where the ratio of
messages to it is the same at all sizes. A series is taken this way where g is met better than y.

How n goes on depends on what converges. Beyond the values measured of a parameter it may follow the slope that it had
between them, none, or twice that.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from math import gcd
from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.core.metrics import metric
from ranksight.model.plaindata import Stored
from ranksight.model.quantity import TAIL
from ranksight.model.series.keyed import Keyed
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.structure.neighbourfit import Tables
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast

if TYPE_CHECKING:
    import pandas as pd

    from ranksight.core.experiment import Run

CALLS = ("visits", "messages")
"""Metrics that say how often something is called, the better evidence first."""
EXACT = 1e-9
"""Largest relative error of what is counted."""
FEWEST = 4
"""Different numbers of turns that show what follows them: two decide a line, two agree with it."""


@dataclass(frozen=True)
class Turns(Stored, Keyed):
    """The calls of s series in terms of how often a loop turns."""

    parameters: tuple[str, ...]  # of the model, and of its configurations the largest measured, (m,)
    largest: Array
    kernels: tuple[str, ...]
    metrics: tuple[str, ...]
    counted: tuple[str, str]  # kernel and metric of the series that counts the turns
    line: Array  # (s, 2): a and b
    slopes: Array  # (m,): of the turns over each parameter, in logarithms
    scatter: float  # relative, of the turns around their function

    def count(self, answer: Forecast, row: int, points: Array) -> Forecast:
        """The forecast of the turns (1, k) at `points` (k, m): row `row` of `answer`, open beyond the runs."""
        with np.errstate(divide="ignore", invalid="ignore"):
            beyond = np.fmax(np.log(points / self.largest), 0.0) @ np.abs(self.slopes)
        reach = np.exp(np.hypot(beyond, TAIL * self.scatter))[None]
        one = {name: getattr(answer, name)[[row]] for name in ("value", "lower", "upper", "status", "reason", "form")}
        lower, upper = np.fmin(one["lower"], one["value"] / reach), np.fmax(one["upper"], one["value"] * reach)
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(upper > lower, upper / lower, 1.0)
        status, reason = forecast.judged_by_width(factor, one["status"], one["reason"])
        return Forecast(one["value"], lower, upper, status, reason, one["form"])

    def times(self, each: Forecast, count: Forecast) -> Forecast:
        """The forecast of the s series, `each` of one call (s, k), by the forecast of the turns (1, k)."""
        a, b = self.line[:, :1], self.line[:, 1:]
        low, calls, high = (np.fmax(a + b * end, 0.0) for end in (count.lower, count.value, count.upper))
        value = calls * each.value
        with np.errstate(divide="ignore", invalid="ignore"):
            down = np.hypot(np.log(calls / low), np.log(each.value / each.lower))
            up = np.hypot(np.log(high / calls), np.log(each.upper / each.value))
            lower = np.where(np.isfinite(down), value * np.exp(-down), low * each.lower)
            upper = np.where(np.isfinite(up), value * np.exp(up), high * each.upper)
            factor = np.where(upper > lower, upper / lower, 1.0)
        counted = np.broadcast_to(count.status, each.status.shape), np.broadcast_to(count.reason, each.reason.shape)
        sound = each.status == forecast.OK
        status, reason = np.where(sound, counted[0], each.status), np.where(sound, counted[1], each.reason)
        status, reason = forecast.judged_by_width(factor, status, reason)
        return Forecast(value, lower, upper, status, reason, each.form)

    def formula(self, i: int, each: str) -> str:
        """Series `i` as people read it; `each` is what one call counts."""
        a, b = self.line[i].tolist()
        turns = "turns" if b == 1 else f"{b:.4g} * turns"
        calls = f"({turns} {'+' if a > 0 else '-'} {abs(a):.4g})" if a else turns
        return f"{calls}{'' if each == '1' else f' * ({each})'}; turns: {self.counted[1]} of {self.counted[0]}"

    def only(self, rows: Mask) -> Turns | None:
        """The same of some series (s,); None where there is none."""
        kernels, metrics = (
            tuple(one for one, yes in zip(names, rows.tolist(), strict=True) if yes)
            for names in (self.kernels, self.metrics)
        )
        return replace(self, kernels=kernels, metrics=metrics, line=self.line[rows]) if rows.any() else None

    def per_call(self, series: Series) -> Series:
        """What the series do in one call."""
        rows = np.array([series.rows[key] for key in self.keys], dtype=np.intp)
        count = reduce(series.values[[series.rows[self.counted]]], "median", axis=2)
        calls = self.line[:, :1] + self.line[:, 1:] * count
        part = series.select(rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.where(calls[:, :, None] > 0, part.values / calls[:, :, None], np.nan)
        return replace(part, values=values)

    def tables(self, tables: Tables, series: Series) -> Tables:
        """The tables of runs with what kernels did in one call."""
        count = reduce(series.values[[series.rows[self.counted]]], "median", axis=2)[0]
        turns = {tuple(point): value for point, value in zip(series.points.tolist(), count.tolist(), strict=True)}
        lines = {key: self.line[row] for key, row in self.rows.items()}

        def of(run: Run) -> pd.DataFrame | None:
            table = tables(run)
            if table is None or (n := turns.get(run.point(self.parameters))) is None or not np.isfinite(n):
                return table
            names = table["kernel"].astype(str)
            share = {
                name: names.map({kernel: a + b * n for (kernel, each), (a, b) in lines.items() if each == name})
                for name in {name for _, name in lines} & set(table.columns)
            }
            return table.assign(
                **{name: table[name] / calls.where(calls > 0, 1.0).fillna(1.0) for name, calls in share.items()}
            )

        return of

    def _fits(self) -> bool:
        m, s = len(self.parameters), len(self.kernels)
        shapes = self.largest.shape == self.slopes.shape == (m,) and self.line.shape == (s, 2)
        return shapes and len(self.metrics) == s and np.isfinite(self.line).all() and bool(self.scatter >= 0)


def find_turns(series: Series, known: Collection[tuple[str, str]], scatter: Array) -> Turns | None:
    """The turns that most kernels of `series` follow; None where no count of calls is one.

    `known` (collection of (kernel, metric)): series that functions meet exactly. `scatter` (s,): relative errors of the
    functions.
    """
    values = reduce(series.values, "median", axis=2)
    rows = [row for row, name in enumerate(series.metrics) if name in CALLS and not series.sampled[row]]
    whole = [row for row in rows if np.isfinite(values[row]).all() and (values[row] == np.round(values[row])).all()]
    best: dict[str, tuple[float, float]] = {}
    turns = -1
    for row in whole:
        count = values[row]
        if count.min() <= 0 or len(np.unique(count)) < FEWEST or series.keys[row] in known:
            continue
        lines = {series.kernels[other]: _line(series, count, values[other], series.metrics[other]) for other in rows}
        follow = {kernel: line for kernel, line in lines.items() if line is not None}
        if len(follow) > max(len(best), 1):
            best, turns = follow, row
    if turns < 0:
        return None
    members = [
        row
        for row, key in enumerate(series.keys)
        if key[0] in best and metric(key[1]).kind == "requirement" and row != turns and not series.sampled[row]
    ]
    kernels, metrics = (tuple(names[row] for row in members) for names in (series.kernels, series.metrics))
    line = np.array([best[kernel] for kernel in kernels]).reshape(len(members), 2)
    positive = (series.points > 0).all(axis=0) & (np.ptp(series.points, axis=0) > 0)
    basis = np.column_stack([np.ones(len(series.points)), np.log(series.points[:, positive])])
    slopes = np.zeros(series.points.shape[1])
    slopes[positive] = np.linalg.lstsq(basis, np.log(values[turns]), rcond=None)[0][1:]
    error = float(scatter[turns]) if np.isfinite(scatter[turns]) else 0.0
    largest = series.points.max(axis=0)
    return Turns(series.parameters, largest, kernels, metrics, series.keys[turns], line, slopes, error)


def _line(series: Series, count: Array, calls: Array, name: str) -> tuple[float, float] | None:
    """a and b of the calls (n,) of a kernel in terms of a `count` of turns (n,); None where they do not follow it."""
    known = np.isfinite(calls)
    if len(np.unique(count[known])) < FEWEST:
        return None
    basis = np.column_stack([np.ones(int(known.sum())), count[known]])
    a, b = np.linalg.lstsq(basis, calls[known], rcond=None)[0].tolist()
    most = float(calls[known].max())
    if b * np.ptp(count[known]) > EXACT * most and np.abs(basis @ (a, b) - calls[known]).max() <= EXACT * most:
        return (0.0 if abs(a) <= EXACT * most else a), b
    if name != "messages" or "ranks" not in series.parameters:
        return None
    return _proportional(series.points[:, series.parameters.index("ranks")], count, calls)


def _proportional(ranks: Array, count: Array, calls: Array) -> tuple[float, float] | None:
    """a and b of which messages are a multiple at every number of ranks, at all sizes; None where there are none."""
    offsets, groups = [], []
    for p in np.unique(ranks):
        at = (ranks == p) & (calls > 0)
        if len(np.unique(count[at])) > 1:
            low, high = np.flatnonzero(at)[[count[at].argmin(), count[at].argmax()]]
            rise = (calls[high] - calls[low]) / (count[high] - count[low])
            if rise <= 0:
                return None
            offsets.append(count[low] - calls[low] / rise)
            groups.append(at)
    off = np.array(offsets)
    if len(off) < 2 or np.abs(off - np.round(off[0])).max() > EXACT * count.max():
        return None
    less = count - np.round(off[0])
    if less.min() <= 0 or sum(int(at.sum()) - 1 for at in groups) < FEWEST:
        return None
    ratio = calls / less
    if any(np.ptp(ratio[at]) > EXACT * ratio[at].max() for at in groups):
        return None
    unit = gcd(*(int(each) for each in less))
    return -float(np.round(off[0])) / unit, 1 / unit
