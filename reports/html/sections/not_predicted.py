"""What is not predicted, why, and the runs to add."""

from __future__ import annotations

from typing import Any

from ranksight.core.metrics import metric
from ranksight.reports.answer import target_words
from ranksight.reports.html.context import Context
from ranksight.reports.html.writing import spread, value
from ranksight.reports.plans import hours, remedy_rows, settled, spent, unit_of
from ranksight.reports.sweep import place
from ranksight.reports.unpredicted import next_run

MOST = 200


def build(context: Context) -> dict[str, Any]:
    """What the template needs."""
    unpredicted = context.unpredicted
    times = [one for one in unpredicted if one.metric == "time"]
    return {
        "target": target_words(context.sweep),
        "count": len(unpredicted),
        "of": len(context.model.fitted),
        "times": len(times),
        "rows": unpredicted[:MOST],
        "more": max(0, len(unpredicted) - MOST),
        "next": context.first_run or next_run(context.sweep),
        "plan": _plan(context),
    }


def _plan(context: Context) -> dict[str, Any] | None:
    """The runs that narrow the prediction most, and the commands that make them."""
    plan = context.plan
    if plan is None or not plan.runs:
        return None
    unit = metric(plan.goal.metric)
    configurations = [run.configuration for run in plan.runs]
    commands = [] if context.commands is None else context.commands(configurations, plan.runs[0].repetitions)
    return {
        "unit": unit.name,
        "basis": plan.cost.basis,
        "settled": settled(plan),
        "now": _ends(plan.goal.now, unit.name),
        "after": _ends(plan.after, unit.name),
        "target_cost": spent(plan.target_cost, plan.budget),
        "cost_unit": unit_of(plan.budget)[0],
        "remedies": remedy_rows(plan),
        "rows": [
            {
                "where": ", ".join(place(name, x) for name, x in run.configuration.items()),
                "repetitions": run.repetitions,
                "hours": hours(unit_of(plan.budget)[1] * run.core_hours),
                "interval": spread(float(run.factor.mean())),
                "helps": run.helps,
            }
            for run in plan.runs
        ],
        "commands": commands,
    }


def _ends(said: Any, name: str) -> str:
    return f"{value(float(said.lower[0, 0]), name)} to {value(float(said.upper[0, 0]), name)}"
