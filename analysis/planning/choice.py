"""The next runs worth their core-hours: the design whose runs together leave the least (:mod:`.designs`), the cheapest
run first. Results of the cheap ones may change which expensive ones are worth making: plan again after them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ranksight.analysis.planning.candidates import Candidates, candidates, cores_of
from ranksight.analysis.planning.cost import Cost, cost_of
from ranksight.analysis.planning.designs import GAIN, ROUNDING, Means, best
from ranksight.analysis.planning.goal import REACH, Goal, goal
from ranksight.analysis.planning.prospect import Prospect
from ranksight.analysis.planning.remedies import NETWORK, Remedy, remedies, required, scale
from ranksight.core.arrays import Array
from ranksight.core.errors import InsufficientError
from ranksight.core.experiment import Experiment
from ranksight.core.records import dataclass
from ranksight.core.units import HOUR, in_full
from ranksight.core.valuerules import Rule
from ranksight.model.fitted_model import Model
from ranksight.model.uncertainty.forecast import OK, WIDE, Forecast

WORLDS = 48
MOST = 5
"""Runs of a plan, where nobody says how many."""
SETTLED = 0.02
"""Part of the interval that a plan must be expected to remove, for its runs to be called helpful."""

RUNS, BUDGET, WORTHLESS, NOTHING = "runs", "budget", "worth", "candidates"
"""Why a plan ends: as many runs as were asked for, what is left of the budget pays for none, no other run is worth its
cost, all that could be run is planned."""


@dataclass(frozen=True)
class PlannedRun:
    """One run to make."""

    configuration: Mapping[str, float]
    repetitions: int
    seconds: float  # of one run under all collectors
    core_hours: float  # expected, of all repetitions
    upper: float  # core-hours that they stay below with probability 95 %
    factor: Array  # (t,)
    """Expected ratio of the interval's ends to its middle at each target after this run and those before it, such as
    1.2 for +-20 %."""
    helps: str  # kernel that gains most, with its metric where that is not the goal's
    why: str = ""
    """What it does that the runs before it do not, such as ``farther in ranks`` (:func:`_why`); ``explores, ...`` where
    it varies what never varied, and the interval is not expected to narrow by :data:`.designs.GAIN`."""


@dataclass(frozen=True)
class Choice:
    """Runs to make, the cheapest first."""

    goal: Goal
    candidates: Candidates
    cost: Cost
    runs: tuple[PlannedRun, ...]
    budget: float  # core-hours that were allowed
    target_cost: float  # core-hours of running all targets once instead
    after: Forecast  # what the goal's answer is expected to look like then, one row
    ended: str  # why no more runs are planned: :data:`RUNS`, :data:`BUDGET`, :data:`WORTHLESS` or :data:`NOTHING`
    narrowing: float  # part of the interval's width that all runs together are expected to take away
    remedies: tuple[Remedy, ...] = ()
    """What else narrows the interval, and these runs, that which helps most first; nothing that hardly helps, and
    where the targets can be run themselves, no runs that cost more. A network is calibrated once for all programs,
    whatever it costs."""

    @property
    def settled(self) -> bool:
        """Whether runs within the budget hardly narrow the interval any more."""
        return self.narrowing < SETTLED

    @property
    def core_hours(self) -> float:
        """Of all runs together."""
        return float(sum(run.core_hours for run in self.runs))

    @property
    def costs_more(self) -> bool:
        """Whether the runs cost more than running the targets themselves."""
        return self.core_hours > self.target_cost * ROUNDING


def plan(
    model: Model,
    experiment: Experiment | None,
    targets: Array,
    *,
    metric: str | None = None,
    kernel: str | None = None,
    level: float = 0.9,
    rules: Mapping[str, Rule] | None = None,
    limits: Mapping[str, tuple[float | None, float | None]] | None = None,
    budget: float | None = None,
    most: int = MOST,
    repetitions: int = 1,
) -> Choice:
    """What to measure next for an answer at `targets` (t, m): the same for every reader.

    `experiment`: that the model was made of, where it is at hand. Others: of :func:`goal`, :func:`candidates` and
    :func:`choose_runs`.
    """
    cores = None if experiment is None else cores_of(experiment)
    offered = candidates(model.parameters, model.training, targets, rules, limits, cores)
    asked, price = goal(model, targets, metric, kernel, level), cost_of(model, experiment)
    if len(offered.points):
        choice = choose_runs(asked, offered, price, budget=budget, most=most, repetitions=repetitions)
    else:
        choice = _no_runs(asked, offered, price, budget, repetitions)
    if (needed := required(asked, choice.target_cost)) is not None:
        return replace(choice, remedies=(needed,))
    mended = remedies(model, experiment, asked, price, repetitions)
    if choice.runs and choice.narrowing >= GAIN:
        mended = (*mended, scale(f"measure {_where(choice.runs)}", choice.narrowing, choice.core_hours))
    if budget is not None or _can_run(targets, offered, cores):
        most_spent = HOUR * choice.budget * ROUNDING
        mended = tuple(each for each in mended if each.cause == NETWORK or not each.core_seconds > most_spent)
    return replace(choice, remedies=tuple(sorted(mended, key=lambda each: -each.gain)))


def _no_runs(goal: Goal, candidates: Candidates, cost: Cost, budget: float | None, repetitions: int) -> Choice:
    """The plan where no configuration is left to measure."""
    target_cost = float(np.sum(cost.of(goal.targets, repetitions).core_hours))
    return Choice(
        goal, candidates, cost, (), target_cost if budget is None else budget, target_cost, goal.now, NOTHING, 0.0
    )


def _where(runs: Sequence[PlannedRun]) -> str:
    """The runs of a plan by their ranks, or the one parameter that there is."""
    names = list(runs[0].configuration)
    name = "ranks" if "ranks" in names else names[0]
    values = sorted({run.configuration[name] for run in runs})
    listed = ", ".join(map(in_full, values))
    if name == "ranks":
        return f"at {listed} ranks"
    return f"at {name} {listed}" if len(names) == 1 else "these runs"


def _can_run(targets: Array, offered: Candidates, cores: float | None) -> bool:
    """Whether the targets (t, m) can be run themselves, as far as is known: no rule or limit bars them, and the machine
    of the runs has a core for each rank."""
    ranks = targets[:, list(offered.rules).index("ranks")] if "ranks" in offered.rules else np.ones(len(targets))
    return not offered.barred and (cores is None or bool((ranks <= cores).all()))


def choose_runs(
    goal: Goal,
    candidates: Candidates,
    cost: Cost,
    *,
    budget: float | None = None,
    most: int = 5,
    repetitions: int = 1,
    worlds: int = WORLDS,
) -> Choice:
    """Choose runs.

    Raises InsufficientError when no candidate's cost is known, or none is within the budget.

    `budget`: core-hours; what running the targets instead would cost, as often, when not given. `most`: runs at most.
    `repetitions`: of each. `worlds`: outcomes drawn for every series.
    """
    price = cost.of(candidates.points, repetitions)
    target_cost = float(np.sum(cost.of(goal.targets, repetitions).core_hours))
    known = np.isfinite(price.core_hours) & (price.core_hours > 0)
    if not known.any():
        raise InsufficientError("the cost of no run is known", "measure a first few configurations with their time")
    least = float(price.core_hours[known].min())
    if budget is None:
        budget = target_cost if np.isfinite(target_cost) and target_cost > 0 else float(price.core_hours[known].max())
    within = np.flatnonzero(known & (price.core_hours <= budget * ROUNDING))
    if not len(within):
        measured = (goal.targets[:, None] == goal.training[None]).all(axis=2).any(axis=1).all()
        if measured:
            instead = "the target was measured: repeat it, or give more with --budget"
        elif target_cost <= least:
            instead = f"running the target itself costs {target_cost:.3g}"
        else:
            instead = "give more with --budget, or smaller configurations by rules and limits"
        raise InsufficientError(f"the cheapest run costs {least:.3g} core-hours, the budget is {budget:.3g}", instead)
    means = Means(price.core_hours, within, budget, most)
    prospect = best(Prospect(goal, candidates.points, worlds), means)
    runs = []
    names = list(candidates.rules)
    made = goal.training
    for at, before, width, helps in zip(
        prospect.chosen, prospect.widths[:-1], prospect.widths[1:], prospect.helps, strict=True
    ):
        configuration = dict(zip(names, map(float, candidates.points[at]), strict=True))
        expected = _after(goal, prospect.widths[0], width, prospect.beyond)
        with np.errstate(all="ignore"):
            factor = np.where(expected.lower[0] > 0, np.sqrt(expected.upper[0] / expected.lower[0]), np.exp(width))
        factor = np.where(np.isfinite(factor), factor, np.exp(width))
        why = _why(names, made, candidates.points[at])
        if width.mean() > (1 - GAIN) * before.mean():
            why = f"explores, {why}"
        made = np.concatenate([made, candidates.points[at][None]])
        hours = float(price.core_hours[at]), float(price.upper[at])
        runs.append(PlannedRun(configuration, repetitions, float(price.seconds[at]), *hours, factor, helps, why))
    after = _after(goal, prospect.widths[0], prospect.widths[-1], prospect.beyond)
    ended = _ended(prospect, means, len(candidates.points))
    return Choice(goal, candidates, cost, tuple(runs), budget, target_cost, after, ended, 1 - prospect.width)


def _ended(prospect: Prospect, means: Means, candidates: int) -> str:
    """Why no more runs are planned."""
    if len(prospect.chosen) >= means.most:
        return RUNS
    if len(prospect.chosen) == candidates:
        return NOTHING
    return WORTHLESS if len(means.left(prospect.chosen)) else BUDGET


def _why(names: list[str], made: Array, point: Array) -> str:
    """What a run at `point` (m,) adds to those `made` (n, m): values farther out, new values between, or
    values that never stood together."""
    for what, mask in (
        ("farther in", (point > made.max(axis=0)) | (point < made.min(axis=0))),
        ("new", ~(made == point).any(axis=0)),
    ):
        if mask.any():
            return f"{what} {' and '.join(name for name, hit in zip(names, mask, strict=True) if hit)}"
    return f"{' and '.join(names)} together"


def _after(goal: Goal, before: Array, width: Array, beyond: Array) -> Forecast:
    """The answer now with its interval narrowed in the ratio of half-widths (t,); where it has no ends, the width.

    Where there is no answer, widths are counted from :data:`REACH`, though what is known reaches `beyond` (t,) times
    as far: they narrow as much less.
    """
    now = goal.now
    # Parts without an answer are not in the ends that are printed.
    short = (now.status[0] != OK) & (now.status[0] != WIDE)
    width = np.where(short, np.minimum(width * beyond, before), width)
    with np.errstate(all="ignore"):
        ratio = np.where(before > 0, width / before, 1.0)
        down, up = np.log(now.value / now.lower), np.log(now.upper / now.value)
    down, up = (np.where(short, np.clip(end, before, np.maximum(before, REACH)), end) for end in (down, up))
    down = np.where(np.isfinite(down), down * ratio, width)
    up = np.where(np.isfinite(up), up * ratio, width)
    return replace(now, lower=now.value * np.exp(-down), upper=now.value * np.exp(up))
