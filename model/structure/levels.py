"""A parameter that took two values: what two points can say, and how far.

No search can choose a hypothesis from two points; :mod:`ranksight.model.structure.bridge` derives what they determine.
Where the functions at both values are sums of the same terms, and exact, each coefficient is extrapolated separately,
as the other parameters separate what grows with the extent from what does not. Which cache level serves a load changes
where the working set outgrows a cache, and two sizes cannot locate that: beyond them nothing is predicted.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.core.arrays import Array, Index, Mask, log_ratio, ratio
from ranksight.core.records import dataclass
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.fitting.fitted import Fitted, between_jobs
from ranksight.model.quantity import TAIL
from ranksight.model.search.terms import DIVIDING, values
from ranksight.model.series.poisson import HALF
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.structure.bridge import bridge, slopes
from ranksight.model.structure.improving import Key, Structure
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.model.uncertainty.rows import choose

COUNTS = frozenset(
    {"visits", "instructions", "loads", "stores", "branches", "flops", "flops_dp", "flops_sp", "loads_l1"}
    | {"messages", "bytes_sent", "peers"}
)
"""Metrics that loops count; loads that a cache serves follow its size as well, all but those of the first level."""
SERVED = frozenset(
    {"loads_l2", "loads_l3", "loads_mem", "bytes_mem", "bytes_mem_read", "bytes_mem_written"}
    | {"store_misses_l2", "store_misses_l3"}
)
"""Metrics that change where a working set outgrows a cache."""
FEW = 4
"""Hypotheses of a level, the most probable first, among which the one that the other level has too is looked for."""
EXACT = 1e-6
"""Relative scatter of values around a function that is exact."""


def whole_of(name: str) -> str:
    """Loads or stores: what a cache level serves a part of."""
    return "stores" if name.startswith("store") else "loads"


@dataclass(frozen=True)
class Levels(Structure):
    """Functions of the other parameters at two levels of one, and the bridge between and beyond."""

    parameters: tuple[str, ...]  # of the model
    parameter: str  # the one that took two values
    levels: tuple[float, float]
    others: tuple[str, ...]  # the parameters that the functions at each level have; none where nothing else varied
    fitted: tuple[Fitted, ...]  # at each level; empty where nothing else varied
    constants: Array  # (s, 2): values at the two levels where nothing else varied
    kernels: tuple[str, ...]
    metrics: tuple[str, ...]
    steepest: Array  # (s,)
    """Steepest slope (:func:`slopes`) between the levels at any configuration; 0 where there is none."""
    errors: Array  # (s, 2): relative standard errors of those `constants` that are made of samples; 0 for the others
    _sizes = "kernels:s metrics:s constants:s2 errors:s2>=0 steepest:s!"

    def predict(self, points: Array) -> Forecast:
        """Forecast every series at `points` (k, m); see :meth:`ranksight.model.fitting.fitted.Fitted.predict`."""
        points = np.atleast_2d(np.asarray(points, dtype=np.float64))
        asked = points[:, self.parameters.index(self.parameter)]
        at = np.where(asked > 0, asked, self.levels[0])
        parts, (middle, lower, upper) = self._at_levels(points)
        counted = np.array([name in COUNTS for name in self.metrics], dtype=bool)
        bridged = bridge(self.levels, middle, at, counted, self.steepest[:, None])
        value, low, high = self._by_terms(points, middle, bridged)
        served = np.array([name in SERVED for name in self.metrics], dtype=bool)
        beyond = served[:, None] & (at > self.levels[1])[None, :]
        steady = self._held(value, middle[..., 1])
        value = np.where(beyond & np.isfinite(steady), steady, value)
        low, high = self._scattered(value, (low, high), (middle, lower, upper), at)
        jobs = np.exp(TAIL * between_jobs(self.metrics))[:, None]
        low, high = np.fmin(low, value / jobs), np.fmax(high, value * jobs)

        below = [f"{self.parameter} is {x:g}, and was above zero in all runs" for x in asked.tolist()]
        zero = f"{self.parameter} took two values, and this metric was zero at one of them"
        outgrown = f"the working set may outgrow a cache beyond {self.parameter} {self.levels[1]:g}"
        form = f"{self.parameter} took two values only; measure a third to know its form"
        more = " and ".join(f"{self.levels[1] * factor:g}" for factor in (2, 4))
        few = f"{self.parameter} took two values, which show no growth law here; measure {self.parameter} {more}"
        outside = (at < self.levels[0]) | (at > self.levels[1])
        # Times along what divides work and adds neighbours turn either way beyond two values. Counts follow loops, but
        # what a rank does more of than there are ranks more begins between the two.
        begins = self.steepest > 1 if self.fitted else ~counted | (self.steepest > 1)
        alone = (self.parameter in DIVIDING) & outside[None, :] & begins[:, None]
        nowhere, missing = np.broadcast_to(asked <= 0, value.shape), ~np.isfinite(value)
        low, high = np.where(beyond, np.minimum(low, value), low), np.where(beyond, np.maximum(high, value), high)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            wide = ~(np.where(high == low, 1.0, high / low) <= forecast.WIDEST)
        status, reason = _first(
            (nowhere, forecast.DOMAIN, below),
            (alone, forecast.FEW_POINTS, few),
            *((part.status != forecast.OK, part.status, part.reason) for part in parts),
            (missing, forecast.WIDE, zero),
            (beyond, forecast.WIDE, outgrown),
            (wide, forecast.WIDE, form),
        )
        value, low, high = (np.where(nowhere, np.nan, end) for end in (value, low, high))
        return Forecast(value, low, high, status, reason, np.ones(value.shape))

    def improved(self, answer: Forecast, fitted: Fitted, points: Array, exact: Collection[Key]) -> Forecast:
        """Beyond its two values the search has chosen among hypotheses that it could not distinguish."""
        by_levels = self.predict(points)
        at = points[:, self.parameters.index(self.parameter)]
        beyond = (at < self.levels[0]) | (at > self.levels[1])
        # At them it has where it is farther from the function at that value alone, which is what is printed, than an
        # answer's interval may reach.
        far = np.abs(log_ratio(answer.value, by_levels.value)) > np.log(forecast.WIDEST) / 2
        better = (beyond | (far & np.isin(at, self.levels))) & (by_levels.status != forecast.NO_DATA)
        better |= (answer.status != forecast.OK) & (by_levels.status == forecast.OK)
        # Two levels say nothing of a parameter that took one value.
        ends = fitted.trained[:, None, :, :]
        better &= ~((ends[..., 0] == ends[..., 1]) & (points[None] != ends[..., 0])).any(axis=2)
        better &= ~np.asarray(fitted.unaffected.any(axis=1))[:, None]
        return choose(answer, by_levels, np.arange(len(fitted)), better)

    def describes(self, fitted: Fitted) -> bool:
        """Whether it is of all series that are fitted."""
        return (self.parameters, self.keys) == (fitted.parameters, fitted.keys)

    def _at_levels(self, points: Array) -> tuple[list[Forecast], tuple[Array, Array, Array]]:
        """Forecasts of the functions at both levels; median and ends at them, (s, k, 2)."""
        if not self.fitted:
            ends = np.broadcast_to(self.constants[:, None, :], (len(self.kernels), len(points), 2))
            reach = np.exp(TAIL * self.errors)[:, None, :]
            return [], (ends, ends / reach, ends * reach)
        columns = [self.parameters.index(name) for name in self.others]
        parts = [fitted.predict(points[:, columns]) for fitted in self.fitted]
        middle, lower, upper = (
            np.stack([getattr(part, name) for part in parts], axis=2) for name in ("value", "lower", "upper")
        )
        return parts, (middle, lower, upper)

    def _scattered(
        self, value: Array, ends: tuple[Array, Array], seen: tuple[Array, Array, Array], at: Array
    ) -> tuple[Array, Array]:
        """The `ends` of values (s, k) moved by the scatter of the two `seen`, the further out the more.

        Both ends move outwards, as errors of one machine move together.
        """
        middle, lower, upper = seen
        with np.errstate(invalid="ignore", divide="ignore"):
            down = np.where((middle > 0) & (lower > 0), middle / np.where(lower > 0, lower, 1.0), 1.0).max(axis=2)
            down = np.where(((middle > 0) & (lower <= 0)).any(axis=2), np.inf, down)
            up = ratio(upper, middle, 1.0).max(axis=2)
        reach = 1 + 2 * np.abs(np.log(at / np.clip(at, *self.levels))) / np.log(self.levels[1] / self.levels[0])
        # Of what does not scatter, not knowing the form of the others is the same at both levels.
        reach = np.where(self._exact[:, None], 1.0, reach)
        with np.errstate(invalid="ignore", over="ignore"):
            low, high = ends[0] / down**reach, ends[1] * up**reach
        # Nothing over nothing, and nothing times no bound.
        low = np.where(np.isnan(low) & np.isfinite(value), 0.0, low)
        high = np.where(np.isnan(high) & np.isfinite(value), np.inf, high)
        return low, high

    @cached_property
    def _exact(self) -> Mask:
        """Series (s,) of counts whose leading functions are exact at both levels."""
        exact = np.array([name in COUNTS for name in self.metrics])
        for fitted in self.fitted:
            exact &= (fitted.weight[:, 0] > 0) & (fitted.variance[:, 0] < EXACT**2)
        return exact

    def _by_terms(
        self, points: Array, middle: Array, bridged: tuple[Array, Array, Array]
    ) -> tuple[Array, Array, Array]:
        """The values and intervals with those of exact sums of the same terms extrapolated term by term.

        Of hypotheses that the values do not distinguish, the most probable that both levels have is taken. The values
        are in proportion to those (s, k, 2) at the nearer level, which all but the best hypothesis move.
        """
        if not self.fitted:
            return bridged
        table = np.concatenate([fitted.terms for fitted in self.fitted])
        terms, number = np.unique(table, axis=0, return_inverse=True)
        number = np.append(number.ravel(), -1)
        width = max(fitted.members.shape[2] for fitted in self.fitted)
        sides, coefficients, odds = [], [], []
        for fitted, start in zip(self.fitted, (0, len(self.fitted[0].terms)), strict=True):
            wider = ((0, 0), (0, 0), (0, width - fitted.members.shape[2]))
            members = np.pad(fitted.members[:, :FEW], wider, constant_values=-1)
            numbered = np.where(members >= 0, number[np.where(members >= 0, members + start, -1)], len(terms))
            order = np.argsort(numbered, axis=2, kind="stable")
            sides.append(np.take_along_axis(numbered, order, axis=2))
            padded = np.pad(fitted.coefficient[:, :FEW], wider)
            coefficients.append(np.take_along_axis(padded, order, axis=2))
            odds.append(np.where(fitted.variance[:, :FEW] < EXACT**2, fitted.weight[:, :FEW], 0.0))
        shared = (sides[0][:, :, None] == sides[1][:, None]).all(axis=3)
        shared &= (coefficients[0][:, :, None] * coefficients[1][:, None] >= 0).all(axis=3)
        chance = (odds[0][:, :, None] * odds[1][:, None] * shared).reshape(len(shared), -1)
        rows = np.flatnonzero((chance.max(axis=1) > 0) & self._exact)
        if not rows.size:
            return bridged
        low, high = np.unravel_index(chance[rows].argmax(axis=1), shared.shape[1:])
        first, second = coefficients[0][rows, low], coefficients[1][rows, high]
        lower_side = sides[0][rows, low]
        used = lower_side < len(terms)
        columns = [self.parameters.index(name) for name in self.others]
        basis = values(terms, points[:, columns])[np.where(used, lower_side, 0)]
        at = points[:, self.parameters.index(self.parameter)]
        ends = np.stack([first, second], axis=2).reshape(-1, 1, 2)
        parts = bridge(self.levels, np.broadcast_to(ends, (len(ends), len(at), 2)), at, np.ones(len(ends), dtype=bool))
        upper = at**2 >= self.levels[0] * self.levels[1]
        padded = np.where(upper[None, None], second[..., None], first[..., None]) * basis
        nearer = np.where(upper[None], middle[rows, :, 1], middle[rows, :, 0])
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = nearer / np.where(used[..., None], padded, 0.0).sum(axis=1)
        each = [np.where(used[..., None], part.reshape(basis.shape) * basis, 0.0) for part in parts]
        carried = each[0], np.minimum(each[1], each[2]), np.maximum(each[1], each[2])
        result = []
        for old, new in zip(bridged, carried, strict=True):
            total = np.where(np.isfinite(moved), new.sum(axis=1) * np.nan_to_num(moved), np.nan)
            whole = old.copy()
            whole[rows] = np.where(np.isfinite(total) & (total >= 0), total, old[rows])
            result.append(whole)
        return result[0], result[1], result[2]

    def _held(self, value: Array, last: Array) -> Array:
        """What a cache level serves if it serves the share of the loads (or stores) that it served at the upper level.

        `value` and `last` (s, k): of all series, asked and at the upper level.
        """
        whole = np.array([self.rows.get((kernel, whole_of(name)), -1) for kernel, name in self.keys])
        with np.errstate(invalid="ignore", divide="ignore"):
            growth = np.where((whole >= 0)[:, None], value[whole] / last[whole], np.nan)
            return np.asarray(last * growth, dtype=np.float64)

    def _ends(self, i: int) -> list[str]:
        if not self.fitted:
            return [f"{value:.4g}" for value in self.constants[i]]
        return [fitted.formula(i) for fitted in self.fitted]

    def differs(self, i: int) -> bool:
        """Whether series `i` has another function at each of the two levels."""
        return len(set(self._ends(i))) > 1

    def formula(self, i: int) -> str:
        """The functions at the two levels, as people read them."""
        low, high = self.levels
        ends = self._ends(i)
        if ends[0] == ends[1]:
            return ends[0]
        low_end, high_end = (f"({end})" if end.endswith(" below") else end for end in ends)
        return f"{low_end} at {self.parameter} = {low:g}, {high_end} at {self.parameter} = {high:g}"

    def _fits(self) -> bool:
        low, high = self.levels
        return (
            0 < low < high < np.inf
            and self.parameter in self.parameters
            and set(self.others) <= set(self.parameters) - {self.parameter}
            and bool((self.errors < 10).all())
            and all((part.kernels, part.parameters) == (self.kernels, self.others) for part in self.fitted)
        )


def _first(*refusals: tuple[Mask, Any, Any]) -> tuple[Index, NDArray[np.object_]]:
    """Status and reason (s, k) of the first refusal, a (where, status, reason) each, that says no."""
    shape = refusals[0][0].shape
    status, reason = np.full(shape, forecast.OK, dtype=np.intp), np.full(shape, "", dtype=object)
    for where, code, why in refusals:
        new = where & (status == forecast.OK)
        status, reason = np.where(new, code, status).astype(np.intp), np.where(new, why, reason)
    return status, reason


def two_valued(series: Series, iterations: str | None = None) -> str:
    """The parameter that took exactly two values, both above zero; empty where none or several did.

    Along iterations everything is a line, which two values determine.
    """
    pairs = [
        name
        for at, name in enumerate(series.parameters)
        if name != iterations and len(levels := np.unique(series.points[:, at])) == 2 and levels[0] > 0
    ]
    return pairs[0] if len(pairs) == 1 else ""


NO_LEVELS = Levels((), "", (1.0, 1.0), (), (), np.empty((0, 2)), (), (), np.empty(0), np.empty((0, 2)))


def fit_levels(series: Series, **settings: Any) -> Levels:
    """Fit the series at each of the two levels of their two-valued parameter, where there is one.

    `**settings`: of :func:`ranksight.model.fitting.fit_series.fit_series`.
    """
    name = two_valued(series, settings.get("iterations"))
    if not name:
        return NO_LEVELS
    at = series.parameters.index(name)
    low, high = (float(x) for x in np.unique(series.points[:, at]))
    others = tuple(
        other for i, other in enumerate(series.parameters) if i != at and len(np.unique(series.points[:, i])) > 1
    )
    constants = np.full((len(series), 2), np.nan)
    errors = np.zeros((len(series), 2))
    halves = []
    for end, level in enumerate((low, high)):
        part = series.at(series.points[:, at] == level)
        if others:
            columns = [series.parameters.index(other) for other in others]
            halves.append(
                fit_series(
                    replace(part, parameters=others, points=part.points[:, columns], hidden=np.empty(0)), **settings
                )
            )
        else:
            constants[:, end] = np.nanmedian(part.values.reshape(len(series), -1), axis=1)
            few = part.sampled
            number, worth = part.samples[few].sum(axis=1), np.nanmax(part.worth[few], axis=(1, 2))
            # What no sample fell on had half of one.
            constants[few, end] = np.where(number > 0, constants[few, end], HALF * worth)
            errors[few, end] = 1 / np.sqrt(np.maximum(number, HALF))
    steepest = _steepest(series, at, (low, high))
    names = series.kernels, series.metrics
    return Levels(series.parameters, name, (low, high), others, tuple(halves), constants, *names, steepest, errors)


def _steepest(series: Series, at: int, levels: tuple[float, float]) -> Array:
    """Steepest slope (s,) between the two levels at any combination of the others that has both; 0 without one."""
    _, group = np.unique(np.delete(series.points, at, axis=1), axis=0, return_inverse=True)
    ends = np.full((len(series), group.max(initial=-1) + 1, 2), np.nan)
    values = reduce(series.values, "median", axis=2)
    for end, level in enumerate(levels):
        at_level = series.points[:, at] == level
        ends[:, group.ravel()[at_level], end] = values[:, at_level]
    steepness = slopes(levels, ends)
    return np.asarray(np.where(np.isfinite(steepness), steepness, 0.0).max(axis=1, initial=0.0))
