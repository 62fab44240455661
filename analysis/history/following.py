"""The history of a program: times and counts of its kernels at fixed configurations over many experiments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ranksight.analysis.comparison.comparing import is_work
from ranksight.analysis.comparison.sides import Key, Side, measured_side, time_metric
from ranksight.analysis.history.changepoints import changepoints, levels, noise
from ranksight.core.arrays import Array, Mask, log
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, Experiment
from ranksight.core.metrics import metric
from ranksight.core.records import dataclass
from ranksight.core.units import in_words
from ranksight.model.resource.counters import settle
from ranksight.model.series.reducing import Series, series_from_experiment
from ranksight.model.series.sampling import means_of_samples
from ranksight.model.uncertainty.forecast import TAIL


@dataclass(frozen=True)
class Entry:
    """One experiment of a history: its name, and when its first run started (ISO 8601; empty where unknown)."""

    name: str
    date: str


@dataclass(frozen=True)
class Target:
    """Time of the program that each experiment's model predicts at one configuration."""

    point: Mapping[str, float]
    value: Array  # (n,): seconds; NaN where there is no prediction
    lower: Array  # (n,)
    upper: Array  # (n,)
    ok: Mask  # (n,)
    reason: tuple[str, ...]  # why the data are insufficient; empty where they are not
    begins: Mask  # (n,): where a level begins


@dataclass(frozen=True)
class Step:
    """A change of one metric of one kernel at one configuration."""

    kernel: str
    metric: str
    point: int  # positions of the configuration and of the experiment that it first shows in
    at: int
    before: float  # levels of the segments
    after: float
    length: int  # experiments with a value in the segment after it
    last: bool  # whether no later change of the series follows

    @property
    def ratio(self) -> float:
        """After over before."""
        return self.after / self.before


@dataclass(frozen=True)
class History:
    """Values of s series at k configurations over n experiments."""

    entries: tuple[Entry, ...]  # in their order in time
    parameters: tuple[str, ...]
    points: Array  # (k, m): configurations that every experiment measured
    keys: tuple[Key, ...]  # tuple of (kernel, metric): :data:`ranksight.core.experiment.WHOLE` is the program
    value: Array  # (s, k, n): mean per rank, NaN where there is none
    error: Array  # (s, k, n): its relative standard error
    begins: Mask  # (s, k, n): where a new level begins; see :mod:`ranksight.analysis.history.changepoints`
    level_of: Array  # (s, k, n): mean of the segment that each value is in
    timer: str | None  # the metric that is the time
    level: float  # probability that no change is marked when there is none
    target: Target | None = None

    @property
    def rows(self) -> dict[Key, int]:
        """Index of each series."""
        return {key: at for at, key in enumerate(self.keys)}

    def place(self, point: int) -> str:
        """A configuration in words: ``ranks 8, size 24``."""
        return in_words(dict(zip(self.parameters, self.points[point], strict=True)))

    def steps(self) -> list[Step]:
        """All changes, the latest first, then the largest."""
        steps = []
        known = np.isfinite(self.value)
        for row, point, at in np.argwhere(self.begins).tolist():
            before = self.level_of[row, point, :at]
            before = before[known[row, point, :at]]
            if not len(before):  # a kernel that appears
                continue
            later = np.flatnonzero(self.begins[row, point, at + 1 :])
            end = at + 1 + int(later[0]) if len(later) else len(self.entries)
            steps.append(
                Step(
                    *self.keys[row],
                    point,
                    at,
                    float(before[-1]),
                    float(self.level_of[row, point, at]),
                    int(known[row, point, at:end].sum()),
                    not len(later),
                )
            )
        return sorted(steps, key=lambda step: (-step.at, -abs(np.log(step.ratio)), step.kernel, step.metric))

    def shares(self) -> Array:
        """Share (s, k) of each kernel in the program's time, the largest over the experiments; NaN without one."""
        whole = self.rows.get((WHOLE, self.timer or ""))
        shares = np.full(self.value.shape[:2], np.nan)
        if whole is None:
            return shares
        timed = {kernel: row for (kernel, name), row in self.rows.items() if name == self.timer}
        with np.errstate(all="ignore"):
            for at, (kernel, _) in enumerate(self.keys):
                if kernel in timed:
                    part = self.value[timed[kernel]] / self.value[whole]
                    shares[at] = np.where(np.isfinite(part).any(axis=1), np.nanmax(np.nan_to_num(part), axis=1), np.nan)
        return shares

    @property
    def drawn(self) -> tuple[str, ...]:
        """Metrics whose course is shown: the time, and where it did not change, the metric that did by most."""
        present = list(dict.fromkeys(name for _, name in self.keys))
        timed = [name for name in present if name == self.timer]
        most: dict[str, float] = {}
        for step in self.steps():
            most[step.metric] = max(most.get(step.metric, 0.0), abs(float(np.log(step.ratio))))
        if not present or (timed and (timed[0] in most or not most)):
            return tuple(timed)
        # What follows from the program alone is changed by it; what scatters may have by chance.
        order = sorted(most or present, key=lambda name: (not is_work(name), -most.get(name, 0.0)))
        return (*timed, order[0])

    def slower(self, percent: float, share: float = 0.0, metrics: Sequence[str] = ()) -> list[Step]:
        """Latest changes by which the time, or one of `metrics`, grew by more than `percent`, of kernels with at least
        `share` of the time."""
        shares, rows = self.shares(), self.rows
        return [
            step
            for step in self.steps()
            if step.last
            and step.metric in (metrics or (self.timer,))
            and step.ratio > 1 + percent / 100
            and (step.kernel == WHOLE or not shares[rows[step.kernel, step.metric], step.point] < share)
        ]


def history(
    experiments: Sequence[tuple[str, Experiment]],
    *,
    scatter: float = 0.03,
    level: float = 0.95,
    predict: Callable[[Experiment], tuple[float, float, float, str]] | None = None,
    target: Mapping[str, float] | None = None,
) -> History:
    """Values of all kernels over `experiments`, which are in their order in time, and where they change.

    Raises InputError when there are fewer than two, they have other parameters, or no configuration is common to all.

    `scatter`: relative standard deviation of times between jobs, assumed where there are too few experiments to show
    it. `level`: probability that no change is marked when there is none, for each metric. `predict`: the program's time
    at `target` by an experiment: value, ends of the 90 % interval and, where the data are insufficient, the reason.
    """
    if len(experiments) < 2:
        raise InputError("a history needs two experiments or more", "name their folders")
    first_name, first = experiments[0]
    for name, experiment in experiments[1:]:
        if set(experiment.parameters) != set(first.parameters):
            raise InputError(
                f"{name} varies {', '.join(experiment.parameters)}, {first_name} {', '.join(first.parameters)}",
                "a history is of experiments with the same parameters",
            )
    parameters = first.parameters
    series = [_series(experiment, parameters) for _, experiment in experiments]
    points = _common([each.points for each in series])
    if not len(points):
        raise InputError(
            "no configuration is measured in all experiments",
            "measure the same configurations each time, or leave out experiments",
        )
    sides = [measured_side(name, each, points, 0.0) for (name, _), each in zip(experiments, series, strict=True)]
    selected = [
        key
        for key in dict.fromkeys(key for side in sides for key in side.rows)
        if metric(key[1]).additive and metric(key[1]).kind != "ratio"
    ]
    value, error = (_stacked(sides, selected, which) for which in ("value", "error"))
    begins, level_of = _changes(selected, value, error, scatter, level)
    entries = tuple(Entry(name, started(experiment)) for name, experiment in experiments)
    aim = None
    if predict is not None and target is not None:
        aim = _target(target, [predict(experiment) for _, experiment in experiments], level)
    return History(
        entries, parameters, points, tuple(selected), value, error, begins, level_of, time_metric(sides), level, aim
    )


def started(experiment: Experiment) -> str:
    """When the first run of an experiment started; empty where no run says so."""
    return min((run.started for run in experiment.runs if run.started), default="")


def _series(experiment: Experiment, parameters: tuple[str, ...]) -> Series:
    """An experiment's series, its parameters in the order of `parameters`."""
    series = series_from_experiment(experiment, None, means_of_samples(experiment, None))
    series = settle(experiment, series).series
    order = [series.parameters.index(name) for name in parameters]
    return replace(series, parameters=parameters, points=series.points[:, order])


def _common(points: Sequence[Array]) -> Array:
    """Configurations (k, m) that all have, in ascending order."""
    common = set.intersection(*({tuple(point) for point in each.tolist()} for each in points))
    return np.array(sorted(common), dtype=np.float64).reshape(-1, points[0].shape[1])


def _stacked(sides: Sequence[Side], keys: Sequence[Key], which: str) -> Array:
    """One array (s, k, n) of all sides; NaN where a side lacks a series."""
    count = sides[0].value.shape[1]
    stacked = np.full((len(keys), count, len(sides)), np.nan)
    for at, side in enumerate(sides):
        rows = np.array([side.rows.get(key, -1) for key in keys])
        stacked[rows >= 0, :, at] = getattr(side, which)[rows[rows >= 0]]
    return stacked


def _changes(keys: Sequence[Key], value: Array, error: Array, scatter: float, level: float) -> tuple[Mask, Array]:
    """Where levels begin, and the levels, each metric with its own probability of a false one."""
    begins, level_of = np.zeros(value.shape, dtype=bool), np.full(value.shape, np.nan)
    names = np.array([name for _, name in keys], dtype=object)
    for name in dict.fromkeys(names.tolist()):
        rows = np.flatnonzero(names == name)
        flat, wrong = (x[rows].reshape(-1, value.shape[2]) for x in (value, error))
        logs = np.where(flat > 0, log(flat), np.nan)
        wrong = noise(logs, wrong, scatter if metric(str(name)).kind in ("time", "other") else 0.0)
        starts = changepoints(logs, wrong, level)
        begins[rows] = starts.reshape(len(rows), *value.shape[1:])
        level_of[rows] = np.exp(levels(logs, wrong, starts)).reshape(len(rows), *value.shape[1:])
    return begins, level_of


def _target(point: Mapping[str, float], predicted: Sequence[tuple[float, float, float, str]], level: float) -> Target:
    """Predictions in order, and where they change by more than their intervals."""
    value, lower, upper = (np.array([each[at] for each in predicted], dtype=np.float64) for at in range(3))
    reason = tuple(each[3] for each in predicted)
    ok = np.array([not text for text in reason], dtype=bool) & (lower > 0)
    with np.errstate(all="ignore"):
        logs = np.where(ok, np.log(value), np.nan)[None]
        wrong = np.where(ok, np.log(upper / lower) / 2 / TAIL, np.inf)[None]
    begins = changepoints(logs, np.maximum(wrong, 1e-6), level)[0]
    return Target(dict(point), value, lower, upper, ok, reason, begins)
