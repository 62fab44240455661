"""Plans as people and machines read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ranksight.analysis.planning.choice import BUDGET, NOTHING, RUNS, WORTHLESS, Choice, PlannedRun
from ranksight.analysis.planning.cost import Cost
from ranksight.analysis.planning.designs import GAIN
from ranksight.core.experiment import WHOLE
from ranksight.core.metrics import Metric, metric
from ranksight.core.units import HOUR, counted, finite, format_factor, in_full, in_words, whole
from ranksight.model.uncertainty.forecast import OK, WIDE, WIDEST, Forecast
from ranksight.reports.terminal import Block, Column, Table, Text

COLUMNS = (
    "repetitions",
    "seconds",
    "core_hours",
    "core_hours_upper",
    "core_hours_so_far",
    "interval_factor",
    "why",
    "helps",
)


SETTLED = (
    "more runs hardly help: these are expected to narrow the interval by {part}, and explore what no fitted function "
    "predicts; what remains is scatter and the possible deviation from the function up to the target{nearer}"
)
NEARER = ", which only runs nearer to the target show"

CHEAP = 1.1  # factor of the collectors that is not worth a line
COLLECTING = "under {who} together, the runs made took {factor} times as long"
HELD = (
    "runs of more than {ranks} ranks are not planned: the machine measured on has too few "
    "cores; --max-ranks allows them"
)
SHARED = (
    "the machine measured on has fewer cores than some of these runs have ranks: there their counts are true, their "
    "times are not; --max-ranks leaves them out"
)
COSTS_MORE = "running the {target} instead costs less than these runs, {hours}{advice}"
ADVICE = ": measure {it}, the answer is then no prediction"
BARRED = ", were it not for {what}"
CROWDED = ", on a machine with more cores than the one measured on"


def percent(factor: float) -> str:
    """How far an interval's end lies from its middle: ``12 %``, or ``x 3.1`` where that says more."""
    return f"{100 * (factor - 1):.2g} %" if factor < 1.995 else f"x {format_factor(factor, 2)}"


LEAST_HOURS = 0.1
"""Core-hours below which costs are counted in core-seconds."""


def hours(value: float) -> str:
    """Core-hours with three digits, small ones too."""
    return f"{value:.3g}" if value >= 0.001 or value == 0 else f"{value:.1e}"


def unit_of(core_hours: float) -> tuple[str, float]:
    """The unit that costs of this size are counted in, and how many of it are a core-hour."""
    return ("core-seconds", HOUR) if core_hours < LEAST_HOURS else ("core-hours", 1.0)


def spent(core_hours: float, largest: float | None = None) -> str:
    """A cost with its unit, that of the `largest` of several; ``unknown`` where it is not known."""
    if not np.isfinite(core_hours):
        return "unknown"
    unit, factor = unit_of(core_hours if largest is None else largest)
    return f"{hours(factor * core_hours)} {unit}"


def remedy_rows(choice: Choice) -> list[dict[str, str]]:
    """What mends each cause of a wide interval, that which helps most first: cause, what to do, by how much it narrows
    the interval, and the cost."""
    return [
        {
            "cause": each.cause,
            "text": each.text,
            "gain": f"{each.gain:.0%}" if np.isfinite(each.gain) else "",
            "cost": spent(each.core_seconds / HOUR),
        }
        for each in choice.remedies
    ]


def blocks(choice: Choice, crowded: bool = False, sharing: bool = False) -> list[Block]:
    """The plan: what is known at the target and what is hoped for, what was weighed, and the runs in their order.

    `crowded`: whether the targets have more ranks than the machine that the runs were made on has cores. `sharing`:
    whether planned runs have.
    """
    goal, count = choice.goal, len(choice.candidates.points)
    said = _known(choice)
    rules = [
        f"{name} {rule.text}{' (as measured)' if rule.inferred else ''} to {in_full(choice.candidates.farthest(name))}"
        for name, rule in choice.candidates.rules.items()
    ]
    if count:
        said.append(Text(f"considered: {', '.join([counted(count, 'configuration'), *rules])}", 0, 12))
    target_cost, budget = (spent(each, choice.budget) for each in (choice.target_cost, choice.budget))
    targets = f"target{'s' if len(goal.targets) > 1 else ''}"
    instead = f"running the {targets} instead {target_cost}"
    said.append(Text(f"cost: from {choice.cost.basis}; {instead}, budget {budget}", 0, 6))
    if choice.cost.factor > CHEAP:
        said.append(Text(_collecting(choice.cost), 6, 0))
    if choice.candidates.held is not None:
        said.append(Text(HELD.format(ranks=in_full(choice.candidates.held)), 0, 2))
    if choice.remedies:
        rows = [list(row.values()) for row in remedy_rows(choice)]
        said += ["", Table(["cause:name", "what to do:text", "narrows by/1", "cost:word/2"], rows)]
    if not choice.runs:
        return [*said, "", _ending(choice)]
    said += ["", _runs(choice), _ending(choice)]
    if sharing:
        said.append(Text(SHARED, 0, 2, "yellow"))
    if choice.costs_more:
        advice = ADVICE.format(it="it" if len(goal.targets) == 1 else "them")
        if choice.candidates.barred:
            advice = BARRED.format(what=choice.candidates.barred)
        elif crowded:
            advice = CROWDED
        said.append(Text(COSTS_MORE.format(target=targets, hours=target_cost, advice=advice), 0, 2, "yellow"))
    elif text := settled(choice):
        said.append(Text(text, 0, 2, "yellow"))
    return said


def settled(choice: Choice) -> str:
    """What to say where runs hardly narrow the intervals of answers; empty where they do, or there is no answer yet."""
    goal = choice.goal
    if not choice.settled or goal.now.status.any():
        return ""
    there = any(list(run.configuration.values()) in goal.targets.tolist() for run in choice.runs)
    return SETTLED.format(part=f"{100 * choice.narrowing:.2g} %", nearer="" if there else NEARER)


def _known(choice: Choice) -> list[Block]:
    """What is known at each target, and what is expected after the runs."""
    goal, names = choice.goal, list(choice.candidates.rules)
    unit = metric(goal.metric)
    said: list[Block] = []
    for at, target in enumerate(goal.targets):
        where = in_words(dict(zip(names, target, strict=True)))
        said.append(Text(f"{goal.what} at {where}, {goal.now.level:.0%} interval", style="bold"))
        sufficient = goal.now.status[0, at] in (OK, WIDE)
        said.append(Text("now       " + (_interval(unit, goal.now, at) if sufficient else "no answer"), 2, 10))
        if goal.now.status[0, at]:
            said.append(Text(f"insufficient: {goal.now.reason[0, at]}", 12, 0, "yellow"))
        if choice.runs:
            hoped = _interval(unit, choice.after, at) if sufficient else _width(choice.after, at)
            said.append(Text("expected  " + hoped, 2, 10))
    return said


def _runs(choice: Choice) -> Table:
    """The planned runs in their order."""
    names = list(choice.candidates.rules)
    lines = []
    total = 0.0
    unit, factor = unit_of(choice.budget)
    for run in choice.runs:
        total += run.core_hours
        place = [in_full(run.configuration[name]) for name in names]
        cost = [f"{run.repetitions}", f"{run.seconds:.3g}", hours(factor * run.core_hours), hours(factor * total)]
        lines.append([*place, *cost, _promised(choice, run), run.why, run.helps])
    columns = ["reps/3", "seconds/4", unit, "so far/2", "interval", "why:word/1", "mostly for:text/5"]
    # A column that says of every run that it helps the whole program says nothing.
    if {run.helps for run in choice.runs} <= {"", WHOLE}:
        columns, lines = columns[:-1], [row[:-1] for row in lines]
    return Table([*map(Column, names), *columns], lines)


def _promised(choice: Choice, run: PlannedRun) -> str:
    """The interval expected after a run; none where all targets still have no answer."""
    sufficient = np.isin(choice.goal.now.status[0], (OK, WIDE))
    if not sufficient.any() and (run.factor**2 > WIDEST).all():
        return "no answer"
    return percent(float(run.factor.mean()))


def _ending(choice: Choice) -> Text:
    """What is spent, and why no more is planned."""
    unit, factor = unit_of(choice.budget)
    planned, most = choice.core_hours, sum(run.upper for run in choice.runs)
    left = f"{hours(factor * (choice.budget - planned))} {unit}"
    made = f"{hours(factor * planned)} of {hours(factor * choice.budget)} {unit}, up to {hours(factor * most)}; "
    if not choice.runs:
        made = ""
    if choice.ended == WORTHLESS:
        if not choice.runs:
            reason = f"no run within the budget is expected to narrow the interval by {GAIN:.0%}"
            return Text(reason, 0, 2)
        return Text(f"{made}{left} are left: no other run is worth its cost before these are made", 0, 2)
    reasons = {
        RUNS: f"more with --runs, {left} are left",
        BUDGET: f"the {left} left pay for no other run",
        NOTHING: choice.candidates.none_left or "no other configuration is left under the rules",
    }
    return Text(made + reasons[choice.ended], 0, 2)


def _collecting(cost: Cost) -> str:
    """How much longer the runs of the experiment took under all collectors than the program takes alone."""
    factor = f"{cost.factor:.0f}" if cost.factor >= 10 else f"{cost.factor:.2g}"
    return COLLECTING.format(who=_listed(cost.collectors), factor=factor)


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def _interval(unit: Metric, said: Forecast, at: int) -> str:
    value, low, high = float(said.value[0, at]), float(said.lower[0, at]), float(said.upper[0, at])
    return f"{unit.format(value)} ({unit.format(low)} to {unit.format(high)})" if value == value else "no answer"


def _width(said: Forecast, at: int) -> str:
    """How wide an answer will be where there is none now: the value that known parts add up to is not the answer's."""
    with np.errstate(all="ignore"):
        ratio = float(said.upper[0, at] / said.lower[0, at])
    return (
        f"an answer within {percent(ratio**0.5)} either way" if ratio <= WIDEST else "nearer to an answer; plan again"
    )


def rows(choice: Choice) -> list[dict[str, Any]]:
    """One row a run, as ``--format csv`` prints them."""
    found, total = [], 0.0
    for run in choice.runs:
        total += run.core_hours
        found.append({**run.configuration, **_figures(run), "core_hours_so_far": total})
    return found


def _figures(run: PlannedRun) -> dict[str, Any]:
    return {
        "repetitions": run.repetitions,
        "seconds": run.seconds,
        "core_hours": run.core_hours,
        "core_hours_upper": run.upper,
        "interval_factor": float(run.factor.mean()),
        "why": run.why,
        "helps": run.helps,
    }


def to_dict(choice: Choice, commands: list[str]) -> dict[str, Any]:
    """The plan as plain data."""
    goal, names = choice.goal, list(choice.candidates.rules)
    return {
        "schema_version": 1,
        "goal": goal.what,
        "metric": goal.metric,
        "level": goal.now.level,
        "targets": [
            {
                "configuration": dict(zip(names, map(whole, target), strict=True)),
                "value": finite(goal.now.value[0, at]),
                "interval": [finite(goal.now.lower[0, at]), finite(goal.now.upper[0, at])],
                "status": "insufficient" if goal.now.status[0, at] else "ok",
                "reason": str(goal.now.reason[0, at]),
                "expected_interval": [finite(choice.after.lower[0, at]), finite(choice.after.upper[0, at])],
            }
            for at, target in enumerate(goal.targets)
        ],
        "rules": {
            name: {"rule": rule.text, "as_measured": rule.inferred} for name, rule in choice.candidates.rules.items()
        },
        "limits": {name: list(ends) for name, ends in choice.candidates.limits.items()},
        "thinned": list(choice.candidates.thinned),
        "cost_basis": choice.cost.basis,
        "collectors": list(choice.cost.collectors),
        "collectors_factor": choice.cost.factor,
        "ranks_held": choice.candidates.held,
        "budget": choice.budget,
        "core_hours": choice.core_hours,
        "ended": choice.ended,
        "narrowing": choice.narrowing,
        "core_hours_of_the_targets": finite(choice.target_cost),
        "costs_more_than_target": choice.costs_more,
        "targets_barred_by": choice.candidates.barred,
        "remedies": [
            {
                "cause": each.cause,
                "text": each.text,
                "narrowing": finite(each.gain),
                "core_seconds": finite(each.core_seconds),
            }
            for each in choice.remedies
        ],
        "runs": [
            {"configuration": {name: whole(x) for name, x in run.configuration.items()}, **_figures(run)}
            for run in choice.runs
        ],
        "commands": commands,
    }
