"""Functions of the parameters with all that is known of their structure: what a model asks for a metric's value.

The search chooses hypotheses. Two further sources are parameters with two levels
(:mod:`ranksight.model.structure.levels`) and metrics that follow the process grid
(:mod:`ranksight.model.structure.neighbours`). Each is used where it is the better predictor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.errors import InputError
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.plaindata import Stored, plain
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.structure.late import Late
from ranksight.model.structure.levels import Levels
from ranksight.model.structure.local_blocks import Blocks
from ranksight.model.structure.loops import Iterations
from ranksight.model.structure.neighbours import Neighbours
from ranksight.model.structure.ranklaws import RankLaws
from ranksight.model.structure.stated import BYTES, MESSAGES, Stated
from ranksight.model.structure.unserved import Unserved
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast

ARRAYS = ("value", "lower", "upper", "status", "reason", "form", "freedom", "inner", "outer")
"""The arrays of a forecast, one row a series."""
WHOLES = dict.fromkeys(("loads_l1", "loads_l2", "loads_l3", "loads_mem"), "loads")
WHOLES |= dict.fromkeys(("store_misses_l1", "store_misses_l2", "store_misses_l3"), "stores")
WHOLES |= {"branch_misses": "branches"}
"""Metrics that count a part of another."""
MINOR = 0.005
"""Share of its whole below which a part is minor."""
UNSEEN = 3.0
"""Samples of which none fell, once in twenty times."""


@dataclass(frozen=True)
class Functions(Stored):
    """Functions of s series."""

    fitted: Fitted  # found by the search, for all series
    levels: Levels | None = None  # of all series, where one parameter took two values
    neighbours: Neighbours | None = None  # of the series that follow the process grid
    minor: tuple[tuple[str, str], ...] = ()
    """tuple of (kernel, metric): parts that were less than :data:`MINOR` of their whole at every configuration: a few
    events that scatter."""
    stated: Stated | None = None  # how volumes of messages go on beyond what was measured, as the user knows it
    unserved: Unserved | None = None  # levels that served nothing, which larger working sets may outgrow others into
    laws: RankLaws | None = None  # of the volumes of messages that are sums of terms of the ranks
    irregular: tuple[tuple[str, str], ...] = ()
    """tuple of (kernel, metric): messages and bytes of kernels whose partners the data decide, as those of a matrix."""
    unruled: tuple[tuple[str, str], ...] = ()
    """tuple of (kernel, metric): messages and bytes that no law of the ranks meets, of kernels whose partners no rule
    explains, or lie along sides of the grid that few runs cut."""
    traced: int = 1  # the most ranks of a run whose partners are known
    late: Late | None = None  # of the times that are zero up to a boundary
    blocks: Blocks | None = None  # of the counts that follow the local block
    iterations: Iterations | None = None  # how often what some series count is called, as iterations decide
    per_call: Functions | None = None  # of these series what they count in one call
    sided: tuple[tuple[str, str], ...] = ()
    """tuple of (kernel, metric): counts that go by the face of a block towards one side of the grid."""

    @property
    def rows(self) -> Mapping[tuple[str, str], int]:
        """Index of each series by kernel and metric."""
        return self.fitted.rows

    def predict(self, points: Array) -> Forecast:
        """Forecast every series at `points` (k, m); see :meth:`ranksight.model.fitting.fitted.Fitted.predict`."""
        points = np.atleast_2d(np.asarray(points, dtype=np.float64))
        volumes = np.array([name == BYTES for name in self.fitted.metrics])
        # Whatever is no message has no stated kernel.
        names = [kernel if name in (BYTES, MESSAGES) else "" for kernel, name in self.rows]
        return extended(self.stated, self._learned, points, names, volumes)

    def _learned(self, points: Array) -> Forecast:
        """What the measurements say."""
        answer = self._within(self._structural(points), points)
        answer = self._limited(self._varied(answer, points), points)
        if self.unserved is None:
            return answer
        fitted = self.fitted
        return self.unserved.opened(answer, self.rows, points, fitted.parameters, fitted.trained, fitted.iterations)

    def _within(self, answer: Forecast, points: Array) -> Forecast:
        """The answers of one side's faces between those at as many ranks as were traced, where more ranks cut other
        sides, and these divided by how many times more ranks there are, where they cut this one alone."""
        if not self.sided:
            return answer
        axis = self.fitted.parameters.index("ranks")
        nearest = points.copy()
        nearest[:, axis] = np.fmin(points[:, axis], self.traced)
        more = (points[:, axis] / nearest[:, axis])[None]
        index = self._index(self.sided)
        now, most = rows_of(answer, index), rows_of(self._structural(nearest), index)
        lower, upper = most.lower / more, most.upper
        value = np.clip(now.value, most.value / more, most.value)
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(upper > lower, upper / lower, 1.0)
        status, reason = forecast.judged_by_width(factor, most.status, most.reason)
        opened = replace(now, value=value, lower=lower, upper=upper, status=status, reason=reason)
        return choose(answer, opened, index, np.broadcast_to(more > 1, value.shape))

    def _structural(self, points: Array) -> Forecast:
        """What functions and laws say."""
        answer = self.fitted.predict(points)
        if self.levels is not None:
            by_levels = self.levels.predict(points)
            low, high = self.levels.levels
            at = points[:, self.levels.parameters.index(self.levels.parameter)]
            # Beyond its two values the search has chosen among hypotheses that it could not distinguish.
            beyond = ((at < low) | (at > high))[None, :] & (by_levels.status != forecast.NO_DATA)
            better = beyond | ((answer.status != forecast.OK) & (by_levels.status == forecast.OK))
            # Two levels say nothing of a parameter that took one value.
            ends = self.fitted.trained[:, None, :, :]
            better &= ~((ends[..., 0] == ends[..., 1]) & (points[None] != ends[..., 0])).any(axis=2)
            better &= ~np.asarray(self.fitted.unaffected.any(axis=1))[:, None]
            answer = choose(answer, by_levels, np.arange(len(self.fitted)), better)
        # Where a law of neighbours has no value, would have some rank count less than nothing, or a sum over ranks is
        # not defined, functions know better.
        if self.neighbours is not None:
            by_levels, index = self.neighbours.predict(points), self._index(self.neighbours.keys)
            lawful = (by_levels.status != forecast.NOT_POSITIVE) & np.isfinite(by_levels.value)
            answer = choose(answer, by_levels, index, lawful | ~np.isfinite(answer.value[index]))
        if self.laws is not None:
            index = self._index(self.laws.keys)
            known = set() if self.neighbours is None else self.neighbours.exact
            near = np.array([key in known for key in self.laws.keys], dtype=bool)
            by_levels = self.laws.among(rows_of(answer, index), points, near)
            answer = choose(answer, by_levels, index, by_levels.status != forecast.DOMAIN)
        if self.blocks is not None:
            index = self._index(self.blocks.keys)
            equal, measured = self.blocks.predict(points)
            with np.errstate(invalid="ignore"):
                wider = ~(answer.upper[index] - answer.lower[index] <= equal.upper - equal.lower)
            answer = choose(answer, equal, index, measured & (wider | (answer.status[index] != forecast.OK)))
        if self.late is not None:
            rows = np.array([self.rows[key] for key in self.late.keys])
            by_levels = self.late.predict(points)
            answer = choose(answer, by_levels, rows, np.ones(by_levels.value.shape, dtype=bool))
        answer = self._scattered(answer, points)
        if self.iterations is not None and self.per_call is not None:
            answer = self._iterated(answer, self.iterations, self.per_call, points)
        return answer

    def _iterated(self, answer: Forecast, iterations: Iterations, per_call: Functions, points: Array) -> Forecast:
        """The answers with iterations as they may go on, and these times what a call does where they count."""
        rows = self._index(iterations.counted)
        count = iterations.count(answer, rows, points)
        answer = choose(answer, count, rows, np.ones(count.value.shape, dtype=bool))
        each = rows_of(
            per_call.predict(points), np.array([per_call.rows[key] for key in iterations.keys], dtype=np.intp)
        )
        product = iterations.times(each, count)
        return choose(answer, product, self._index(iterations.keys), np.isfinite(product.value))

    def _scattered(self, answer: Forecast, points: Array) -> Forecast:
        """The answers open for what partners of irregular data may become with more ranks.

        Where blocks become smaller than what they reach, as many times more ranks are within it as there are more, and
        a rank's bytes are a share of the same data. Where nothing is known of them, both may be more or less.
        """
        keys = (*self.irregular, *self.unruled)
        if not keys:
            return answer
        index = self._index(keys)
        unknown = np.array([key in self.unruled for key in keys])[:, None]
        calls = np.array([name == MESSAGES for _, name in keys])[:, None]
        more = np.fmax(points[:, self.fitted.parameters.index("ranks")] / self.traced, 1.0)[None]
        opened = rows_of(answer, index)
        lower, upper = (
            np.where(calls & ~unknown, opened.lower, opened.lower / more),
            np.where(calls | unknown, opened.upper * more, opened.upper),
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(upper > lower, upper / lower, 1.0)
        status, reason = forecast.judged_by_width(factor, opened.status, opened.reason)
        opened = replace(opened, lower=lower, upper=upper, status=status, reason=reason)
        return choose(answer, opened, index, np.ones(opened.value.shape, dtype=bool))

    def _index(self, keys: Sequence[tuple[str, str]]) -> Index:
        return np.array([self.rows[key] for key in keys], dtype=np.intp)

    def _varied(self, answer: Forecast, points: Array) -> Forecast:
        """Nothing is known at another value of a parameter that took one, whatever structure the others have."""
        low, high = (self.fitted.trained[:, :, end] for end in (0, 1))
        status, reason = answer.status.copy(), answer.reason.astype(object)
        for axis, name in enumerate(self.fitted.parameters):
            unvaried = (low[:, axis, None] == high[:, axis, None]) & (points[None, :, axis] != low[:, axis, None])
            unvaried &= (status == forecast.OK) & ~self.fitted.unaffected[:, axis, None]
            status[unvaried] = forecast.UNVARIED
            reason[unvaried] = forecast.REASONS[forecast.UNVARIED].format(parameter=name)
        return replace(answer, status=status, reason=reason)

    def _limited(self, answer: Forecast, points: Array) -> Forecast:
        """No part exceeds its whole: loads that a level serves stay within the kernel's loads, misses within stores.

        A part that was minor at every configuration stays so with more ranks: what a few events say of their growth is
        chance. With larger problems it may not, as a working set outgrows a cache.
        """
        rows = self.rows
        pairs = [
            (row, rows[kernel, WHOLES[name]])
            for (kernel, name), row in rows.items()
            if (kernel, WHOLES.get(name)) in rows
        ]
        if not pairs:
            return answer
        part, of = (np.array(column) for column in zip(*pairs, strict=True))
        sound = answer.status[of] == forecast.OK
        arrays: dict[str, Any] = {}
        for name in ("value", "lower", "upper"):
            array = np.array(getattr(answer, name))
            most = getattr(answer, "value" if name == "value" else "upper")[of]
            array[part] = np.where(sound & (array[part] > most), most, array[part])
            arrays[name] = array
        arrays["lower"] = np.fmin(arrays["lower"], arrays["value"])
        answer = replace(answer, **arrays)
        if not self.minor:
            return answer
        index = np.array([rows[key] for key in self.minor])
        of = np.array([rows[kernel, WHOLES[name]] for kernel, name in self.minor])
        inside = np.ones(len(points), dtype=bool)
        for at, name in enumerate(self.fitted.parameters):
            if name != "ranks":
                inside &= points[:, at] <= self.fitted.trained[:, at, 1].max(initial=-np.inf)
        whole, most = answer.value[of], answer.upper[of]
        known = (answer.status[of] == forecast.OK) & inside[None, :]
        value = np.where(np.isfinite(answer.value[index]), np.minimum(answer.value[index], MINOR * whole), 0.0)
        # How they go on is what nobody looked at.
        steady = Forecast.settled(value, 0.0 * value, 2 * MINOR * most, form=1.0)
        return choose(answer, steady, index, known)

    def formula(self, i: int) -> str:
        """What is known of series `i`, as people read it."""
        key = self.fitted.keys[i]
        if self.iterations is not None and self.per_call is not None and key in self.iterations.rows:
            return self.iterations.formula(self.iterations.rows[key], self.per_call.formula(self.per_call.rows[key]))
        for law in (self.late, self.laws, self.neighbours):
            if law is not None and key in law.rows:
                return law.formula(law.rows[key])
        return self.fitted.formula(i) if self.levels is None else self.levels.formula(i)

    def structures(self) -> dict[str, Any]:
        """The structures as plain data, for :meth:`with_structures`."""
        parts = {each: getattr(self, each.name) for each in fields(self) if each.name != "fitted"}
        return {each.name: plain(part) for each, part in parts.items() if part != each.default}

    @classmethod
    def with_structures(cls, fitted: Fitted, content: Mapping[str, Any]) -> Functions:
        """Rebuild from :meth:`structures`; damaged content raises InputError."""
        return cls.from_dict({**content, "fitted": fitted})

    def _fits(self) -> bool:
        """Whether the structures are of the series fitted; InputError names the one that is not."""
        described, rows = (self.fitted.parameters, self.fitted.keys), set(self.rows)
        levels, stated = self.levels, self.stated
        fits = {
            "levels": levels is None or (levels.parameters, levels.keys) == described,
            "stated": stated is None or stated.parameters == described[0],
            "minor": all(key in rows and (key[0], WHOLES.get(key[1], "")) in rows for key in self.minor),
            "unserved": self.unserved is None or set(self.unserved.keys) <= rows,
            "irregular": {*self.irregular, *self.unruled, *self.sided} <= rows
            and self.traced >= 1
            and ("ranks" in described[0] or not (self.irregular or self.unruled or self.sided)),
        }
        for name, law in (
            ("neighbours", self.neighbours),
            ("laws", self.laws),
            ("late", self.late),
            ("blocks", self.blocks),
            ("iterations", self.iterations),
        ):
            fits[name] = law is None or (law.parameters == described[0] and set(law.keys) <= rows)
        if self.iterations is not None:
            called = set() if self.per_call is None else set(self.per_call.rows)
            fits["iterations"] &= set(self.iterations.counted) <= rows and set(self.iterations.keys) <= called
        for name, well in fits.items():
            if not well:
                raise InputError(f"{name!r} does not fit the functions", "fit the model again")
        return True


def extended(
    stated: Stated | None, learned: Callable[[Array], Forecast], points: Array, names: Sequence[str], grows: Mask
) -> Forecast:
    """The forecast of s series at `points` (k, m), those of stated kernels as they go on from what was measured.

    `learned` (callable): the forecast at any points by the measurements. `names` (s of str): of the series, after their
    kernels. `grows` (s,): whether a series is a volume; others stay as at the nearest values measured.
    """
    answer = learned(points)
    for kernel in () if stated is None else stated.texts:
        assert stated is not None
        nearest = stated.reference(kernel, points)
        index = np.flatnonzero([stated.kernel_of(name) == kernel for name in names])
        out = (nearest != points).any(axis=1)
        if not len(index) or not out.any():
            continue
        factor = np.where(grows[index, None], stated.growth(kernel, points), 1.0)
        carried = rows_of(learned(nearest), index)
        carried = replace(carried, **{end: factor * getattr(carried, end) for end in ("value", "lower", "upper")})
        answer = choose(answer, carried, index, np.broadcast_to(out, carried.value.shape))
    return answer


def find_minor(series: Series) -> tuple[tuple[str, str], ...]:
    """The parts (:data:`WHOLES`) that were minor at every configuration where their whole was measured.

    A part made of samples is so only where :data:`UNSEEN` samples more would not make it larger.
    """
    rows = series.rows
    pairs = [key for key in rows if (key[0], WHOLES.get(key[1], "")) in rows]
    if not pairs:
        return ()
    values = reduce(series.values, "median", axis=2)
    index = np.array([rows[key] for key in pairs])
    part = values[index] + UNSEEN * np.nan_to_num(series.worth[index]).max(axis=2)
    whole = values[[rows[key[0], WHOLES[key[1]]] for key in pairs]]
    small = np.all(
        np.where(np.isfinite(part), part, 0.0) <= MINOR * np.where(np.isfinite(whole), whole, np.inf), axis=1
    )
    return tuple(key for key, yes in zip(pairs, small.tolist(), strict=True) if yes)


def choose(base: Forecast, other: Forecast, index: Index, where: Mask) -> Forecast:
    """`base` with its rows `index` taken from `other` (one row for each) at the configurations `where` holds."""
    arrays: dict[str, Any] = {}
    for name in ARRAYS:
        array = np.array(getattr(base, name), dtype=object if name == "reason" else None)
        array[index] = np.where(where, getattr(other, name), array[index])
        arrays[name] = array
    return Forecast(**arrays)


def rows_of(forecast: Forecast, index: Index) -> Forecast:
    """Some rows of a forecast."""
    return replace(forecast, **{name: getattr(forecast, name)[index] for name in ARRAYS})


def join(forecasts: Sequence[Forecast]) -> Forecast:
    """Forecasts of the same configurations, one below the other."""
    arrays: dict[str, Any] = {name: np.concatenate([getattr(each, name) for each in forecasts]) for name in ARRAYS}
    return Forecast(**arrays)
