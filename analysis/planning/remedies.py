"""What makes an interval wide, and what mends it: longer runs, repetitions, an idle node, a calibrated network, scale.

Each cause has a part of the goal's interval. A remedy is proposed if it is expected to take away :data:`.designs.GAIN`
of the interval:

- *too few samples*: a time of n samples is known to ``1 / sqrt(n)``; runs :data:`LONGER` times as long halve that;
- *scatter*: as many times the repetitions halve what repetitions scatter by;
- *busy machine*: ranks that shared cores scatter and wait; an idle node with a core for each is what mends it;
- *network not measured*: messages between nodes have a time from an assumed or fitted network until one is calibrated;
- *scale*: how the program grows up to the target is only seen nearer to it, by the runs of the plan;
- *not supported*: an answer whose interval is narrow, and that is insufficient for another reason, needs the run that
  this reason names; nothing else mends it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ranksight.analysis.planning.cost import Cost
from ranksight.analysis.planning.designs import GAIN
from ranksight.analysis.planning.goal import MOST_LOST, Goal
from ranksight.core.arrays import Array, Mask
from ranksight.core.experiment import WHOLE, Experiment
from ranksight.core.metrics import metric
from ranksight.core.records import dataclass
from ranksight.core.sampled import sampling_of
from ranksight.core.units import HOUR, in_full
from ranksight.model.fitted_model import Model
from ranksight.model.uncertainty.forecast import FEW_SAMPLES, IMPUTED, OK, TAIL, WIDEST

SAMPLES, SCATTER, BUSY, NETWORK, SCALE = "too few samples", "scatter", "busy machine", "network not measured", "scale"
UNSUPPORTED = "not supported"
_NAMED_RUN = re.compile(r"(?:^|[:;] )((?:measure|run longer)\b.*)$")
LONGER = 4
"""Times as long a run, or as many repetitions, that are proposed: they halve an error."""
CALIBRATING = 60.0
"""Seconds that measuring the network between two ranks takes, on a core each."""


@dataclass(frozen=True)
class Remedy:
    """What mends one cause of a wide interval."""

    cause: str  # one of the causes above
    text: str  # what to do
    gain: float  # part of the interval's width that it is expected to take away; NaN where the run makes the answer
    core_seconds: float  # NaN where it is not known


def named_run(reason: str) -> str:
    """What a reason for insufficient data says to measure; empty where it names nothing."""
    match = _NAMED_RUN.search(reason)
    return match[1] if match else ""


def required(goal: Goal, target_cost: float) -> Remedy | None:
    """The run that the reason of the goal's first unsupported answer names, where the answer's interval is narrow.

    `target_cost`: core-hours of the targets, the cost where the run is a target.
    """
    now = goal.now
    with np.errstate(all="ignore"):
        narrow = now.upper[0] / now.lower[0] <= WIDEST
    for at in np.flatnonzero((now.status[0] != OK) & narrow).tolist():
        if text := named_run(str(now.reason[0, at])):
            itself = any(f"{in_full(value)} ranks" in text for value in goal.targets[at].tolist())
            return Remedy(UNSUPPORTED, text, float("nan"), HOUR * target_cost if itself else float("nan"))
    return None


def remedies(
    model: Model, experiment: Experiment | None, goal: Goal, cost: Cost, repetitions: int
) -> tuple[Remedy, ...]:
    """The remedies besides runs at other configurations, that which helps most first.

    `experiment`: that the model was made of, where it is at hand. `repetitions`: of each of its runs.
    """
    if metric(goal.metric).kind == "requirement":
        return ()
    doubt = _Doubt.of(goal)
    if doubt is None:
        return ()
    again = HOUR * float(np.nansum(cost.of(model.training, repetitions).core_hours))
    sampled, form = _sampled(experiment), np.concatenate([source.form for source in goal.sources])
    more = f"--reps {LONGER * repetitions}"
    few = doubt.gain(_halved_samples(model, goal, sampled), form)
    proposed = [
        Remedy(SAMPLES, f"run {LONGER} times as long (more steps), or {more}", few, (LONGER - 1) * again),
        Remedy(NETWORK, NETWORK_TEXT, doubt.without(_of_messages(model, goal)), 2 * CALIBRATING),
    ]
    timed = _timed(goal, sampled)[:, None]
    less = np.where(timed, np.sqrt(form + (1 - form) / LONGER), 1.0)
    gain = doubt.gain(less, np.where(timed, form / less**2, form))
    crowded = sorted({int(run.configuration["ranks"]) for run in experiment.runs if run.crowded} if experiment else ())
    if crowded:
        text = f"use an idle node: ranks shared cores in the runs of {', '.join(map(in_full, crowded))} ranks"
        proposed.append(Remedy(BUSY, text, gain, again))
    else:
        proposed.append(Remedy(SCATTER, f"repeat: {more}", gain, (LONGER - 1) * again))
    return tuple(sorted((each for each in proposed if each.gain >= GAIN), key=lambda each: -each.gain))


ESTIMATED = "estimate"
"""How the source of a network's parameters begins that nobody measured."""
NETWORK_TEXT = "measure it: ranksight calibrate -o my.toml --network -- mpirun -n 2; fit with --platform my.toml"


def scale(text: str, narrowing: float, core_hours: float) -> Remedy:
    """The plan's own runs as a remedy, `text` naming them."""
    return Remedy(SCALE, text, narrowing, HOUR * core_hours)


@dataclass(frozen=True)
class _Doubt:
    """Half-width of the goal's interval in logarithms, the mean over its targets: of its series, and of all."""

    goal: Goal  # without what its interval holds besides its series
    series: float
    whole: float

    @classmethod
    def of(cls, goal: Goal) -> _Doubt | None:
        """None where the interval has no width."""
        of_series = replace(goal, rest=np.zeros_like(goal.rest))
        series = float(of_series.width().mean())
        with np.errstate(all="ignore"):
            half = np.log(goal.now.upper[0] / goal.now.lower[0]) / 2
        whole = max(series, float(np.mean(np.where(np.isfinite(half), half, 0.0))))
        return cls(of_series, series, whole) if np.isfinite(whole) and whole > 0 else None

    def gain(self, ratio: Array, form: Array) -> float:
        """Part of the interval that goes where each series' has `ratio` (g, t) of its own, and `form` (g, t) then."""
        after = float(self.goal.width(ratio, form).mean())
        return max(0.0, 1 - float(np.sqrt(max(self.whole**2 - self.series**2, 0.0) + after**2)) / self.whole)

    def without(self, part: float) -> float:
        """Part of the interval that goes with an independent half-width `part`, which is none of the series'."""
        rest = self.whole**2 - self.series**2
        return 1 - float(np.sqrt(self.whole**2 - max(min(rest, part**2), 0.0))) / self.whole


def _timed(goal: Goal, sampled: Mapping[str, float]) -> Mask:
    """Which of the goal's series (g,) are measured times of kernels that were not sampled."""
    timed = []
    for number, source in enumerate(goal.sources):
        for row in source.rows:
            counted = metric(source.fitted.metrics[row]).kind == "requirement"
            timed.append(not number and not counted and source.fitted.kernels[row] not in sampled)
    return np.array(timed, dtype=bool)


def _sampled(experiment: Experiment | None) -> Mapping[str, float]:
    """Samples of the time of each kernel in a run, the median over runs; of those that were sampled."""
    counts: dict[str, list[float]] = {}
    for run in experiment.runs if experiment is not None else ():
        table = sampling_of(experiment, run) if experiment is not None else None
        if table is None or table.empty:
            continue
        counts_of = table[table["metric"].astype(str) == "time"].groupby("kernel", observed=True)["samples"].sum()
        for kernel, count in counts_of.items():
            counts.setdefault(str(kernel), []).append(float(count))
    return {kernel: float(np.median(several)) for kernel, several in counts.items() if kernel != WHOLE}


def _halved_samples(model: Model, goal: Goal, sampled: Mapping[str, float]) -> Array:
    """Width of each series (g, t) in the present one, where the error of its samples is half as large."""
    status = model.forecast(goal.targets, goal.now.level).status
    ratios = []
    for number, source in enumerate(goal.sources):
        half = source.ends.mean(axis=0)
        for at, row in enumerate(source.rows):
            kernel, unknown = source.fitted.kernels[row], False
            if number == 0:
                unknown = bool(np.isin(status[row], (IMPUTED, FEW_SAMPLES)).any())
            count = 0.0 if unknown else sampled.get(kernel, np.inf) if number == 0 else np.inf
            error = TAIL / np.sqrt(max(count, 1.0))
            part = np.minimum(np.divide(error, half[at], out=np.ones_like(half[at]), where=half[at] > 0), 1.0) ** 2
            ratios.append(np.sqrt(1 - part * (1 - 1 / LONGER)))
    return np.array(ratios)


def _of_messages(model: Model, goal: Goal) -> float:
    """Half-width of the program's time in logarithms by messages whose network was not measured; 0 where it was."""
    equation, parameters = model.equation, model.parameters
    sent, network = equation.communication, equation.network
    if "ranks" not in parameters or not sent.priced(network) or goal.metric != "time":
        return 0.0
    between = network.table.get("inter", {})
    if isinstance(between, Mapping) and between and not str(between.get("source", "")).startswith(ESTIMATED):
        return 0.0
    exchanged = model.breakdown(goal.targets, goal.now.level).exchanged
    if not exchanged:
        return 0.0
    times, total = exchanged.times, goal.now.value[0]
    rise, fall = ((times.upper - times.value).sum(axis=0), (times.value - times.lower).sum(axis=0))
    with np.errstate(all="ignore"):
        half = (np.log1p(rise / total) - np.log1p(-np.minimum(fall / total, MOST_LOST))) / 2
    return float(np.nan_to_num(half).mean())
