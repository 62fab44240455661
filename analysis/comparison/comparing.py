"""The comparison as a whole: changes at configurations, their causes, and the scales at which they matter."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ranksight.analysis.comparison.change import CHANGED, Changes, changes
from ranksight.analysis.comparison.crossover import Crossover, Onset, axis, crossovers, onsets
from ranksight.analysis.comparison.explain import Cause, explain
from ranksight.analysis.comparison.sides import (
    Side,
    common_points,
    forecast_side,
    joined,
    measured_side,
    predicted_side,
    renamed,
    same_kernels,
    time_metric,
)
from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, Run
from ranksight.core.metrics import metric
from ranksight.core.records import dataclass
from ranksight.model.application.breakdown import Terms
from ranksight.model.fitted_model import Model
from ranksight.model.series.reducing import Series

PLACED = ("host", "SLURM_", "PBS_", "LSB_")
"""Prefixes of environment entries that name the place or the job of a run, not the machine."""
SCATTER = 0.03
"""Relative standard deviation of times between jobs on like nodes, which repetitions within one do not show."""


@dataclass(frozen=True)
class Subject:
    """What is compared: a model, with the values that it was made of where they are known.

    `runs`: what it was measured by; empty of a model.
    """

    name: str
    model: Model
    series: Series | None = None
    runs: tuple[Run, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """Two subjects compared at k configurations."""

    before: Side
    after: Side
    parameters: tuple[str, ...]
    points: Array  # (k, m)
    measured: bool  # whether the values were measured there on both sides, or are predicted
    timer: str  # the metric that is the time
    changes: Changes
    causes: dict[tuple[str, int], list[Cause]]  # mapping of (kernel, k) to list of Cause: of times that changed
    crossovers: list[Crossover]
    onsets: list[Onset]
    ranks: tuple[float, float] | None  # scales between which the last two were looked for
    level: float
    unpredicted: int = 0  # kernels whose time one side cannot predict at the largest of these scales
    renamed: tuple[tuple[str, str], ...] = ()
    """Kernels that seem to be one under two names (:func:`ranksight.analysis.comparison.sides.same_kernels`)."""
    work: str = ""  # the count by which kernels are compared where most of them have no time on both sides; else empty
    differences: tuple[str, ...] = ()  # how the runs of the two differ (:func:`differences`)

    @property
    def one_sided(self) -> tuple[tuple[list[str], list[str]], tuple[list[str], list[str]]]:
        """Metrics and kernels that only `before` has, and those that only `after` has."""
        rows = [list(side.rows) for side in (self.before, self.after)]
        each = [[list(dict.fromkeys(key[at] for key in keys)) for keys in rows] for at in (1, 0)]
        first, second = (
            tuple([one for one in names[at] if one not in set(names[1 - at])] for names in each) for at in (0, 1)
        )
        return (first[0], first[1]), (second[0], second[1])

    def slower(self, percent: float, least: float = 0.01) -> list[tuple[str, int, float]]:
        """Kernels whose time grew by more than `percent`, beyond the noise: kernel, configuration, growth in percent.

        `least`: share of the program's time that a kernel must have on one side.
        """
        slower = []
        whole = np.fmax(self.before.of(WHOLE, self.timer), self.after.of(WHOLE, self.timer))
        for (kernel, name), row in self.changes.rows.items():
            if name != self.timer:
                continue
            with np.errstate(all="ignore"):
                growth = 100 * (self.changes.ratio[row] - 1)
                share = np.fmax(self.changes.before[row], self.changes.after[row]) / whole
            heavy = ~(share < least)
            hit = (self.changes.verdict[row] == CHANGED) & (growth > percent) & heavy
            slower += [(kernel, int(k), float(growth[k])) for k in np.flatnonzero(hit)]
        return sorted(slower, key=lambda each: -each[2])

    def gated(self, metrics: Sequence[str] = ()) -> tuple[str, ...]:
        """Metrics that a threshold is for: `metrics`, or the time and all counts that follow from the program alone.

        Raises InputError for a metric that one side lacks.
        """
        each = [{name for _, name in side.rows} for side in (self.before, self.after)]
        for name in metrics:
            for side, present in zip((self.before, self.after), each, strict=True):
                if name not in present:
                    common = ", ".join(sorted(each[0] & each[1])) or "none"
                    raise InputError(f"{side.name} has no metric {name!r}", f"both have {common}")
        shared = [name for name in dict.fromkeys(name for _, name in self.changes.keys) if name in each[0] & each[1]]
        return tuple(metrics) or tuple(name for name in shared if name == self.timer or is_work(name))

    def grown(
        self, percent: float, least: float = 0.01, metrics: Sequence[str] = ()
    ) -> list[tuple[str, str, int, float]]:
        """Kernels of which a metric grew by more than `percent`, beyond the noise: kernel, metric, configuration,
        growth in percent; the largest first.

        `least`: share of the program's time, and of all kernels' counts, that a kernel must have on one side.
        `metrics`: as of :meth:`gated`.
        """
        gated = self.gated(metrics)
        grown = [
            (kernel, self.timer, k, growth)
            for kernel, k, growth in (self.slower(percent, least) if self.timer in gated else ())
        ]
        rows = self.changes.rows
        whole = np.fmax(self.before.of(WHOLE, self.timer), self.after.of(WHOLE, self.timer))
        for name in (name for name in gated if name != self.timer):
            rows_of = [row for (kernel, other), row in rows.items() if other == name and kernel != WHOLE]
            sums = [np.nansum(side[rows_of], axis=0) for side in (self.changes.before, self.changes.after)]
            for kernel, row in ((kernel, row) for (kernel, other), row in rows.items() if other == name):
                timed = rows.get((kernel, self.timer))
                with np.errstate(all="ignore"):
                    growth = 100 * (self.changes.ratio[row] - 1)
                    part = np.fmax(self.changes.before[row] / sums[0], self.changes.after[row] / sums[1])
                    if timed is not None:
                        share = np.fmax(self.changes.before[timed], self.changes.after[timed]) / whole
                        part = np.where(share < least, 0.0, part)
                hit = (self.changes.verdict[row] == CHANGED) & (growth > percent) & ~(part < least)
                grown += [(kernel, name, int(k), float(growth[k])) for k in np.flatnonzero(hit)]
        return sorted(grown, key=lambda each: (each[1] != self.timer, -each[3]))


def is_work(name: str) -> bool:
    """Whether a metric is a count that follows from the program alone, as instructions and messages do."""
    return metric(name).kind == "requirement" and metric(name).steady and metric(name).additive


def nothing_in_common(before: str, after: str, parameters: Sequence[str]) -> InputError:
    """What to raise where two subjects share no configuration, and none is asked for."""
    return InputError(
        f"{before} and {after} have no configuration in common",
        "say where to compare what they predict: " + " ".join(f"--{name} VALUE" for name in parameters),
    )


def compare(
    before: Subject,
    after: Subject,
    points: Array | None = None,
    *,
    scatter: float = SCATTER,
    level: float = 0.95,
    names: Mapping[str, str] | None = None,
) -> Comparison:
    """Compare two subjects.

    Raises InputError when the two have other parameters, no metric or no configuration in common.

    `points` (k, m): where they are compared; without, at the configurations that both were measured at. `scatter`:
    relative standard deviation of measured times between jobs. `level`: probability of intervals; ``1 - level`` is the
    accepted share of false ones among the changes reported. `names`: what kernels of the first are called in the
    second, where it is not the same.
    """
    _check_parameters(before, after)
    common = common_points(before.model.training, after.model.training)
    chosen = common if points is None else np.atleast_2d(np.asarray(points, dtype=np.float64))
    if not len(chosen):
        raise nothing_in_common(before.name, after.name, before.model.parameters)
    common_set = {tuple(point) for point in common.tolist()}
    known = all(tuple(point) in common_set for point in chosen.tolist())
    measured = known and before.series is not None and after.series is not None
    names = names or {}
    old, new = (_side(each, chosen, measured, scatter) for each in (before, after))
    sides = [renamed(old, names), new]
    timer = time_metric(sides)
    if timer is None and not set(sides[0].rows) & set(sides[1].rows):
        raise InputError(
            f"{before.name} and {after.name} have no metric of a kernel in common", "compare like with like"
        )
    changed = changes(sides[0], sides[1], level)
    ours, theirs = (each.model.breakdown(chosen).terms for each in (before, after))
    if ours is not None:
        ours = replace(ours, kernels=tuple(names.get(kernel, kernel) for kernel in ours.kernels))
    return Comparison(
        before=sides[0],
        after=sides[1],
        parameters=before.model.parameters,
        points=chosen,
        measured=measured,
        timer=timer or "",
        changes=changed,
        causes=_causes(changed, timer, sides, (ours, theirs)) if timer else {},
        level=level,
        renamed=same_kernels(*sides),
        work=_work(sides, timer),
        differences=differences(before.runs, after.runs) if before.runs and after.runs else (),
        **_scales(before, after, timer, chosen, names),
    )


def _work(sides: list[Side], timer: str | None) -> str:
    """The count that most kernels have on both sides, instructions before others; empty where as many have a time."""
    shared = [key for key in sides[0].rows if key in sides[1].rows and key[0] != WHOLE]
    count: dict[str, int] = {}
    for _, name in shared:
        if name == timer or metric(name).kind == "requirement":
            count[name] = count.get(name, 0) + 1
    timed = count.pop(timer or "", 0)
    most = max(count, key=lambda name: (count[name], name == "instructions"), default="")
    return most if most and count[most] > 2 * timed else ""


def _check_parameters(before: Subject, after: Subject) -> None:
    """Refuse models that are not over the same parameters in the same order."""
    if set(before.model.parameters) != set(after.model.parameters):
        raise InputError(
            f"{before.name} has the parameters {', '.join(before.model.parameters)}, "
            f"{after.name} {', '.join(after.model.parameters)}",
            "compare experiments over the same parameters",
        )
    if before.model.parameters != after.model.parameters:
        raise InputError(
            f"the parameters of {before.name} and {after.name} are in another order",
            "measure or import both over the same parameters in the same order",
        )


def _causes(
    changed: Changes, timer: str, sides: list[Side], terms: tuple[Terms | None, Terms | None]
) -> dict[tuple[str, int], list[Cause]]:
    """Why kernels' times changed, by kernel and configuration."""
    return {
        (kernel, int(k)): explain(kernel, timer, sides[0], sides[1], int(k), terms)
        for (kernel, name), row in changed.rows.items()
        if name == timer and kernel != WHOLE
        for k in np.flatnonzero(changed.verdict[row] == CHANGED)
    }


def _side(subject: Subject, points: Array, measured: bool, scatter: float) -> Side:
    if measured and subject.series is not None:
        side = _timed(measured_side(subject.name, subject.series, points, scatter), subject.model)
    else:
        side = predicted_side(subject.name, subject.model, points)
    communication = subject.model.equation.communication
    if not communication:
        return side
    counts, rows = communication.functions.predict(points), dict(communication.functions.rows)
    return joined(side, forecast_side(subject.name, rows, [counts]))


def _timed(side: Side, model: Model) -> Side:
    """The side with the times of kernels without samples marked: they were not measured."""
    resources = model.equation.resources
    if not resources.imputed.any():
        return side
    short = {kernel for kernel, imputed in zip(resources.kernels, resources.imputed, strict=True) if imputed}
    sound = side.sound.copy()
    sound[[row for (kernel, name), row in side.rows.items() if name == "time" and kernel in short]] = False
    return replace(side, sound=sound)


def _scales(
    before: Subject, after: Subject, timer: str | None, points: Array, names: Mapping[str, str]
) -> dict[str, Any]:
    """The fields of :class:`Comparison` that are of scales: over the ranks, the other parameters as at the last
    configuration."""
    nothing: dict[str, Any] = {"crossovers": [], "onsets": [], "ranks": None}
    if timer is None or "ranks" not in before.model.parameters:
        return nothing
    at = before.model.parameters.index("ranks")
    low = max(before.model.training[:, at].min(), after.model.training[:, at].min())
    most = max(before.model.training[:, at].max(), after.model.training[:, at].max())
    high = float(max(points[:, at].max(), most))
    if not high > low > 0:
        return nothing
    values = axis(float(low), high)
    line = np.repeat(points[-1][None], len(values), axis=0)
    line[:, at] = values
    old, new = (predicted_side(each.name, each.model, line) for each in (before, after))
    old = renamed(old, names)
    unpredicted = {
        kernel
        for side in (old, new)
        for (kernel, name), row in side.rows.items()
        if name == timer and kernel != WHOLE and not side.sound[row, -1]
    }
    return {
        "crossovers": crossovers(old, new, timer, values),
        "onsets": onsets(old, new, timer, values),
        "ranks": (float(low), high),
        "unpredicted": len(unpredicted),
    }


def differences(before: Sequence[Run], after: Sequence[Run]) -> tuple[str, ...]:
    """What differs between the runs of two experiments, in sentences; empty where all that is known is the same.

    Commands are compared at configurations that both have. Of the environment (processor, system, compiler, variables
    such as ``OMP_NUM_THREADS``) what both know is compared.
    """
    lines = []
    if different := _commands(before, after):
        lines.append("the commands differ: " + " and ".join(map(repr, different)))
    collectors = [sorted({run.collector for run in runs if run.collector}) for runs in (before, after)]
    if collectors[0] != collectors[1] and all(collectors):
        lines.append(f"the collectors differ: {' and '.join(', '.join(names) for names in collectors)}")
    names = {name for run in before for name in run.environment} & {name for run in after for name in run.environment}
    for name in sorted(names):
        if name.startswith(PLACED):
            continue
        values = [
            sorted({run.environment[name] for run in runs if name in run.environment}) for runs in (before, after)
        ]
        if values[0] != values[1]:
            lines.append(f"{name} differs: {' and '.join(', '.join(each) for each in values)}")
    return tuple(lines)


def _commands(before: Sequence[Run], after: Sequence[Run]) -> tuple[str, str] | None:
    """The commands of the first configuration at which the two have none in common; None where there is none."""
    each = []
    for runs in (before, after):
        ranks_of: dict[tuple[tuple[str, float], ...], list[str]] = {}
        for run in runs:
            if run.command:
                ranks_of.setdefault(tuple(sorted(run.configuration.items())), []).append(shlex.join(run.command))
        each.append(ranks_of)
    for place in sorted(each[0].keys() & each[1].keys()):
        if not set(each[0][place]) & set(each[1][place]):
            return each[0][place][0], each[1][place][0]
    return None
