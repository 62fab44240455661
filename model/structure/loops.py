"""How often the loop of a program iterates, as a series of its own: iterations that convergence decides.

A solver iterates until it has converged, 29 times here and 31 there, and what it calls and sends in an iteration
follows the ranks and sizes exactly. So a count y of a kernel in the loop is

    y(x) = c(x) g(x),    c = a + b n

with the iterations n, which no short function meets, the kernel's calls c, and g, what one call does. n is the count of
calls that most others are exact affine functions of, such as the all-reduces of a scalar product, two an iteration and
one before. Messages between pairs of ranks are known by their sums, so that there c is n less a constant where the
ratio of messages to it is the same at all sizes. Any other kernel may be called as often as no function meets exactly,
such as every tenth iteration; its own calls are then c. A series is taken this way where g is met better than y.

How n goes on depends on what converges. Beyond the values measured of a parameter it may follow the slope that it had
between them, none, or twice that. Where it changes with the ranks, each of them works on its own block between
iterations: what crosses one block in an iteration has to cross as many as lie in a row, and n may grow as fast as their
square root (one-level domain decomposition: Toselli and Widlund 2005, chapter 2). Messages whose partners the data
decide have no function of one call that would show whether they are sent in the loop, and are as open as n is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from math import gcd
from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.arrays import Array, Index, Ints, Mask
from ranksight.core.metrics import metric
from ranksight.core.records import dataclass
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.plaindata import Stored, part_of
from ranksight.model.quantity import TAIL
from ranksight.model.series.reducing import Keyed, Series
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
ROOT = 0.5
"""Fastest growth with the ranks, in logarithms, of iterations that change with them."""
FEWEST = 4
"""Different numbers of iterations that show what follows them: two decide a line, two agree with it."""


@dataclass(frozen=True)
class Iterations(Stored, Keyed):
    """The calls of s series in terms of how often a loop iterates."""

    parameters: tuple[str, ...]  # of the model, and of its configurations the largest measured, (m,)
    largest: Array
    kernels: tuple[str, ...]
    metrics: tuple[str, ...]
    counted: tuple[tuple[str, str], ...]  # kernels and metrics of the c series that count iterations
    which: Ints  # (s,): which of them a series goes by
    line: Array  # (s, 2): a and b
    slopes: Array  # (c, m): of the iterations over each parameter, in logarithms; 0 where functions meet them
    scatter: Array  # (c,): relative, of the iterations around their function
    _sizes = "parameters:m largest:m kernels:s metrics:s counted:c which:s>=0 line:s2! slopes:cm scatter:c>=0"

    def count(self, answer: Forecast, rows: Index, points: Array) -> Forecast:
        """The forecast of the iterations (c, k) at `points` (k, m): `rows` (c,) of `answer`, open beyond the runs."""
        reach, rise = (np.exp(np.hypot(each, TAIL * self.scatter[:, None])) for each in self._drift(points))
        one = {name: getattr(answer, name)[rows] for name in ("value", "lower", "upper", "status", "reason", "form")}
        lower, upper = np.fmin(one["lower"], one["value"] / reach), np.fmax(one["upper"], one["value"] * rise)
        return Forecast(one["value"], lower, upper, one["status"], one["reason"], one["form"]).judged()

    def _drift(self, points: Array) -> tuple[Array, Array]:
        """Logarithms of how many times fewer, and more, iterations (c, k) there may be at `points` (k, m) beyond the
        runs than their functions have."""
        steep = np.abs(self.slopes)
        if "ranks" in self.parameters:
            at = self.parameters.index("ranks")
            steep[:, at] = np.where(steep[:, at] > EXACT, np.fmax(steep[:, at], ROOT), 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            more = np.fmax(np.log(points / self.largest), 0.0).T
            return np.abs(self.slopes) @ more, steep @ more

    def opened(self, answer: Forecast, points: Array) -> Forecast:
        """The `answer` (r, k) of what is sent in the loop as often as nobody counted: as open as the iterations are."""
        reach, rise = (np.exp(each.max(axis=0)) for each in self._drift(points))
        return replace(answer, lower=answer.lower / reach, upper=answer.upper * rise).judged()

    def times(self, each: Forecast, count: Forecast) -> Forecast:
        """The forecast of the s series, `each` of one call (s, k), by the forecast of the iterations (c, k)."""
        a, b = self.line[:, :1], self.line[:, 1:]
        ends = (end[self.which] for end in (count.lower, count.value, count.upper))
        low, calls, high = (np.maximum(a + b * end, 0.0) for end in ends)
        value = calls * each.value
        with np.errstate(divide="ignore", invalid="ignore"):
            down = np.hypot(np.log(calls / low), np.log(each.value / each.lower))
            up = np.hypot(np.log(high / calls), np.log(each.upper / each.value))
            lower = np.where(np.isfinite(down), value * np.exp(-down), low * each.lower)
            upper = np.where(np.isfinite(up), value * np.exp(up), high * each.upper)
        sound = each.status == forecast.OK
        status = np.where(sound, count.status[self.which], each.status)
        reason = np.where(sound, count.reason[self.which], each.reason)
        return Forecast(value, lower, upper, status, reason, each.form).judged()

    def formula(self, i: int, each: str) -> str:
        """Series `i` as people read it; `each` is what one call counts."""
        a, b = self.line[i].tolist()
        iterations = "iterations" if b == 1 else f"{b:.4g} * iterations"
        calls = f"({iterations} {'+' if a > 0 else '-'} {abs(a):.4g})" if a else iterations
        kernel, name = self.counted[self.which[i]]
        return f"{calls}{'' if each == '1' else f' * ({each})'}; iterations: {name} of {kernel}"

    def only(self, rows: Mask) -> Iterations | None:
        """The same of some series (s,); None where there is none."""
        if not rows.any():
            return None
        used, which = np.unique(self.which[rows], return_inverse=True)
        part = part_of(part_of(self, "s", np.flatnonzero(rows)), "c", used)
        return replace(part, which=which.reshape(-1))

    def _calls(self, series: Series) -> Array:
        """Calls (s, n) at the configurations of `series`."""
        rows = np.array([series.rows[key] for key in self.counted], dtype=np.intp)
        count = reduce(series.values[rows], "median", axis=2)[self.which]
        return np.asarray(self.line[:, :1] + self.line[:, 1:] * count)

    def per_call(self, series: Series) -> Series:
        """What the series do in one call."""
        rows = np.array([series.rows[key] for key in self.keys], dtype=np.intp)
        calls, part = self._calls(series), series.select(rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.where(calls[:, :, None] > 0, part.values / calls[:, :, None], np.nan)
        return replace(part, values=values)

    def tables(self, tables: Tables, series: Series) -> Tables:
        """The tables of runs with what kernels did in one call."""
        at = {tuple(point): n for n, point in enumerate(series.points.tolist())}
        calls = self._calls(series)

        def divided() -> Iterator[tuple[Run, pd.DataFrame]]:
            for run, table in tables():
                of_point = calls[:, [n for point, n in at.items() if point == run.point(self.parameters)]]
                names = table["kernel"].astype(str)
                each_call: dict[str, pd.Series] = {}
                for name in {name for _, name in self.keys} & set(table.columns):
                    rows = {kernel: row for row, (kernel, each) in enumerate(self.keys) if each == name}
                    # Of a table without any of the kernels the shares would be texts.
                    share = names.map({kernel: n for kernel, row in rows.items() for n in of_point[row]}).astype(float)
                    each_call[name] = table[name] / share.where(share > 0, 1.0).fillna(1.0)
                yield run, table.assign(**each_call)

        return divided

    def fits(self, fitted: Fitted, per_call: Collection[tuple[str, str]]) -> bool:
        """Whether it is of series that are fitted, and of those that are known `per_call`."""
        known = {*self.keys, *self.counted} <= fitted.rows.keys() and set(self.keys) <= set(per_call)
        return known and self.parameters == fitted.parameters

    def _fits(self) -> bool:
        return bool((self.which < len(self.counted)).all())


def find_iterations(series: Series, known: Collection[tuple[str, str]], scatter: Array) -> Iterations | None:
    """The iterations that most kernels of `series` follow; None where no count of calls is one.

    `known` (collection of (kernel, metric)): series that functions meet exactly. `scatter` (s,): relative errors of the
    functions.
    """
    values = reduce(series.values, "median", axis=2)
    rows = [row for row, name in enumerate(series.metrics) if name in CALLS and not series.sampled[row]]
    shared, lines = _shared(series, values, [row for row in rows if series.keys[row] not in known])
    goes_by = dict.fromkeys(lines, shared)
    for row in rows:
        (kernel, name), counted = series.keys[row], values[row][np.isfinite(values[row])]
        # Messages that a function meets have laws of their own.
        calls = name == CALLS[0] or ((kernel, name) not in known and (kernel, CALLS[0]) not in series.rows)
        if calls and kernel not in lines and len(np.unique(counted)) > 1 and (counted > 0).any():
            goes_by[kernel], lines[kernel] = row, (0.0, 1.0)
    members = [
        row
        for row, (kernel, name) in enumerate(series.keys)
        if kernel in lines and metric(name).kind == "requirement" and goes_by[kernel] != row and not series.sampled[row]
    ]
    if not members:
        return None
    used, which = np.unique([goes_by[series.kernels[row]] for row in members], return_inverse=True)
    kernels, metrics = (tuple(names[row] for row in members) for names in (series.kernels, series.metrics))
    exact = np.array([series.keys[row] in known for row in used])
    return Iterations(
        series.parameters,
        series.points.max(axis=0),
        kernels,
        metrics,
        tuple(series.keys[row] for row in used),
        which.reshape(-1),
        np.array([lines[kernel] for kernel in kernels]),
        np.where(exact[:, None], 0.0, [_slopes(series.points, values[row]) for row in used]),
        np.where(exact | ~np.isfinite(scatter[used]), 0.0, scatter[used]),
    )


def _shared(series: Series, values: Array, rows: Sequence[int]) -> tuple[int, dict[str, tuple[float, float]]]:
    """The row of calls (s, n) of which those of most kernels are functions, and these by kernel; -1 where none is."""
    best: dict[str, tuple[float, float]] = {}
    iterations = -1
    every = [row for row, name in enumerate(series.metrics) if name in CALLS and not series.sampled[row]]
    for row in rows:
        count = values[row]
        whole = np.isfinite(count).all() and (count == np.round(count)).all() and count.min() > 0
        if not whole or len(np.unique(count)) < FEWEST:
            continue
        lines = {series.kernels[other]: _line(series, count, values[other], series.metrics[other]) for other in every}
        follow = {kernel: line for kernel, line in lines.items() if line is not None}
        if len(follow) > max(len(best), 1):
            best, iterations = follow, row
    return iterations, best


def _slopes(points: Array, values: Array) -> Array:
    """Slopes (m,) of values (n,) over each parameter, in logarithms."""
    known = np.isfinite(values) & (values > 0)
    varied = (points > 0).all(axis=0) & (np.ptp(points[known], axis=0) > 0)
    basis = np.column_stack([np.ones(int(known.sum())), np.log(points[known][:, varied])])
    slopes = np.zeros(points.shape[1])
    slopes[varied] = np.linalg.lstsq(basis, np.log(values[known]), rcond=None)[0][1:]
    return slopes


def _line(series: Series, count: Array, calls: Array, name: str) -> tuple[float, float] | None:
    """a and b of the calls (n,) of a kernel in terms of a `count` (n,) of iterations; None where they do not follow."""
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
