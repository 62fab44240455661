"""Counts at configurations that were measured, where no function meets them.

A count may be of no law that is known here: neighbours of a stencil that are all there, partners that the data decide.
The function nearest to it is then off at runs themselves, and what was counted is the better answer there. How it goes
on is as open as the function's interval has it. So are messages and bytes that functions with several terms come near
and no law meets: more ranks may go on as any two next to each other of the three largest numbers of them did.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ranksight.core.arrays import Array, Mask, along_column, log_ratio, ratio
from ranksight.core.metrics import metric
from ranksight.core.records import dataclass
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.quantity import TAIL
from ranksight.model.series.computation import EXCHANGED
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.structure.gridlaw import EXACT
from ranksight.model.structure.improving import Key, Structure
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.model.uncertainty.rows import choose, open_to, rows_of

CLOSE = 0.01
"""Relative difference up to which a function meets a count."""


@dataclass(frozen=True)
class Met(Structure):
    """s counts at n configurations."""

    parameters: tuple[str, ...]
    kernels: tuple[str, ...]
    metrics: tuple[str, ...]
    points: Array  # (n, m)
    values: Array  # (s, n): medians of repetitions; NaN where nothing was counted
    scatter: Array  # (s, n): relative standard deviations of a repetition
    last: Array  # (s,): messages and bytes over what functions say of them at the most ranks; 1 of other counts
    power: Array  # (s, 2): of the ranks by which lawless ones went on at least and at most; NaN of others
    ended: Mask  # (s,): whether they stay as they are: each rank sends as much to partners that are drawn
    _sizes = "parameters:m kernels:s metrics:s points:nm values:sn scatter:sn>=0 last:s>0 power:s2 ended:s"

    @property
    def shifted(self) -> Mask:
        """Which counts (s,) are off their functions at the most ranks."""
        return np.asarray(np.abs(np.log(self.last)) > CLOSE)

    @property
    def single(self) -> Mask:
        """Which messages and bytes (s,) were counted at one number of ranks above one, and at others were none."""
        if "ranks" not in self.parameters:
            return np.zeros(len(self.kernels), dtype=bool)
        ranks = self.points[:, self.parameters.index("ranks")]
        numbers = np.unique(ranks[ranks > 1])
        some, known = (
            np.array([yes[:, ranks == number].any(axis=1) for number in numbers]).sum(axis=0)
            for yes in (self.values > 0, np.isfinite(self.values))
        )
        return np.asarray(np.isin(np.array(self.metrics, dtype=object), EXCHANGED) & (some == 1) & (known > 1))

    @property
    def open(self) -> Mask:
        """Which counts (s,) are open beyond the most ranks."""
        return np.asarray(self.shifted | np.isfinite(self.power[:, 0]) | self.single)

    @property
    def lawless(self) -> set[Key]:
        """Kernels and metrics of messages and bytes that no law meets."""
        return {key for key, free in zip(self.keys, np.isfinite(self.power[:, 0]).tolist(), strict=True) if free}

    def improved(self, answer: Forecast, fitted: Fitted, points: Array, exact: Collection[Key]) -> Forecast:
        """The counts at configurations that were measured."""
        same = (points[:, None] == self.points[None]).all(axis=2)
        at, measured = same.argmax(axis=1), same.any(axis=1)
        value = self.values[:, at]
        reach = 1 + TAIL * self.scatter[:, at]
        counted = Forecast.settled(value, value / reach, value * reach)
        return choose(answer, counted, fitted.indices(self.keys), measured & np.isfinite(value))

    def opened(self, now: Forecast, most: Forecast, more: Array) -> Forecast:
        """What functions say `now` of configurations (s, k) with `more` (k,) times the most ranks, open for what the
        counts there may show: that they stay as they are there, or go on from there, as functions or as they did.

        `most`: what functions say of the most ranks in place of those asked.
        """
        part, beyond = self.last[:, None], more > 1
        staying, going = most.value * part, now.value * part
        slowest, fastest = (staying * more ** self.power[:, [at]] for at in (0, 1))
        staying = np.where(self.shifted[:, None], staying, np.nan)
        lower = np.fmin(np.fmin(staying, going), slowest * (1 - CLOSE))
        upper = np.fmax(np.fmax(staying, going), fastest * (1 + CLOSE))
        # One number of ranks says nothing of how more of them go on.
        single = self.single[:, None]
        lower = np.where(single, 0.0, lower)
        upper = np.where(single, np.fmax(upper, np.nanmax(self.values, axis=1, initial=0.0)[:, None] * more), upper)
        opened = open_to(now, Forecast.settled(now.value, lower, upper), beyond & self.open[:, None])
        rows = np.flatnonzero(self.ended)
        return choose(opened, rows_of(most, rows), rows, np.broadcast_to(beyond, (len(rows), len(more))))


_NONE = np.empty((0, 0))
NOTHING_MISSED = Met((), (), (), _NONE, _NONE, _NONE, np.empty(0), np.empty((0, 2)), np.empty(0, dtype=bool))


def find_missed(
    series: Series,
    predicted: Array,
    lawless: Collection[Key] = (),
    drawn: Collection[Key] = (),
    sided: Collection[Key] = (),
) -> Met:
    """The counts of `series` that functions miss, given what these predict of them, (s, n), and the `lawless` ones, of
    which some have `drawn` partners, to whom all ranks send as much, and some go by the sides of a grid, others of
    which fewer ranks cut, so that their last step alone says how they go on."""
    requirement = np.array([metric(name).kind == "requirement" for name in series.metrics], dtype=bool)
    values = reduce(series.values, "median", axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        scatter = ratio(reduce(np.abs(series.values - values[..., None]), "mean", axis=2), values, 0.0)
        missed = np.abs(log_ratio(predicted, values)) > np.maximum(CLOSE, TAIL * scatter)
    largest = np.fmax.reduce(np.where(np.isfinite(values), values, 0.0), axis=1)[:, None]
    # Nothing is met by next to nothing.
    missed = np.where(values > 0, missed, (values == 0) & ~(np.abs(predicted) < CLOSE * largest))
    missed &= requirement[:, None] & ~series.sampled[:, None]
    free = np.array([key in lawless for key in series.keys], dtype=bool)
    rows = np.flatnonzero(missed.any(axis=1) | free)
    if not len(rows):
        return NOTHING_MISSED
    kernels, metrics = (tuple(column[row] for row in rows.tolist()) for column in (series.kernels, series.metrics))
    parts = log_ratio(values[rows], predicted[rows])
    known = np.isfinite(parts) & np.isin(np.array(metrics, dtype=object), EXCHANGED)[:, None]
    if "ranks" in series.parameters:
        ranks = series.points[:, series.parameters.index("ranks")]
        known &= ranks == ranks.max()
    last = np.exp(np.where(known, parts, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1))
    each = _powers(series, values[rows])
    known = np.isfinite(each) & free[rows][:, None, None]
    powers = ratio(np.where(known, each, 0.0).sum(axis=2), known.sum(axis=2), np.nan)
    on_sides = np.array([key in sided for key in zip(kernels, metrics, strict=True)], dtype=bool)
    powers = np.where(on_sides[:, None], powers[:, -1:], powers)
    power = np.stack([np.fmin.reduce(powers, axis=1), np.fmax.reduce(powers, axis=1)], axis=1)
    even, last_step = np.array([key in drawn for key in zip(kernels, metrics, strict=True)], dtype=bool), known[:, -1]
    ended = even & last_step.any(axis=1) & (np.abs(np.where(last_step, each[:, -1], 0.0)) <= EXACT).all(axis=1)
    return Met(
        series.parameters, kernels, metrics, series.points, values[rows], np.nan_to_num(scatter[rows]), last, power,
        ended,
    )  # fmt: skip


def _powers(series: Series, values: Array) -> Array:
    """Powers of the ranks (s, b, g) by which values (s, n) went on between numbers of them next to each other, the
    three largest above one, for each value of the other parameters; NaN where that is not known."""
    unknown = np.full((len(values), 1, 1), np.nan)
    if "ranks" not in series.parameters:
        return unknown
    logs = np.log(np.where(values > 0, values, np.nan))
    ranks, table = along_column(series.points, series.parameters.index("ranks"), logs)
    last = np.flatnonzero(ranks > 1)[-3:]
    if len(last) < 2:
        return unknown
    return np.asarray(np.diff(table[:, last], axis=1) / np.diff(np.log(ranks[last]))[:, None])
