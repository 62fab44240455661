"""The front: the answer in one sentence, the rank count to use, the prediction, what limits scaling, and how far it can
be trusted."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksight.analysis.planning.remedies import UNSUPPORTED, named_run
from ranksight.core.units import in_full
from ranksight.reports.answer import loss_words, target_words
from ranksight.reports.html.context import Context
from ranksight.reports.html.figures import draw
from ranksight.reports.html.writing import in_one_unit, percent, spread, value
from ranksight.reports.plans import hours, remedy_rows, spent, unit_of
from ranksight.reports.plots import plot_prediction
from ranksight.reports.plots._axes import micro
from ranksight.reports.sweep import RANKS, place, sufficient
from ranksight.reports.trust import trust

MOST = 5
OF_TIMES = ("kernel", "network", "outside")
"""Kinds of advice that are shares of the program's time, and nothing where that is not known."""
OVERLAP = 1.2  # sum of the kernels over the program's time from which they are said to overlap


def build(context: Context) -> dict[str, Any]:
    """What the front's template needs."""
    sweep = context.sweep
    figures = [_figure(context)] if sweep.timed else []
    return {
        "lacking": context.model.remarks.left_out,
        "answer": micro(context.answer),
        "sufficient": sweep.timed and sufficient(sweep.total),
        "target": target_words(sweep),
        "recommended": _recommended(context),
        "origin": _origin(context),
        "obstacles": _obstacles(context),
        "help": _help(context),
        "facts": trust(sweep, context.measured),
        "next": _next(context),
        "figures": figures,
        "table": _table(context) if sweep.timed else None,
        "given": bool(context.experiments or sweep.machine_of_runs),
        "held": sweep.where(),
        "along": sweep.along,
    }


def _recommended(context: Context) -> dict[str, str] | None:
    """The rank count to use, why, and what a run there costs."""
    found = context.recommended
    if found is None:
        against = context.ideal
        if against is None or not sufficient(context.sweep.total):
            return None
        return {
            "what": "No rank count",
            "why": f"of those predicted has an efficiency of {percent(context.threshold)} or more.",
        }
    unit, scale = unit_of(found.core_hours)
    cost = f"{value(found.seconds, 'time')} and {hours(found.core_hours * scale)} {unit} a run"
    if found.target_hours == found.target_hours and found.ranks != context.sweep.values[-1]:
        cost += f" ({hours(found.target_hours * scale)} at {context.sweep.places()[-1]})"
    if context.cost is not None:
        cost += f", from {context.cost.basis}"
    share, there = percent(found.threshold), percent(found.efficiency)
    why = (
        f"it is the largest number predicted here, and its efficiency of {there} is above {share}"
        if found.last
        else f"it is the most with an efficiency of at least {share} ({there} there)"
    )
    return {"what": f"Ask for {place(RANKS, found.ranks)}", "why": f"because {why}: {cost}."}


def _origin(context: Context) -> list[tuple[str, str]]:
    """Where the report comes from: when and on what machine was measured, by which command, who wrote it."""
    runs = [run for experiment in context.experiments for run in experiment.runs if run.state == "complete"]
    days = sorted({run.started[:10] for run in runs if run.started})
    machines = {run.environment.get("processor") or run.environment.get("CPU name", "") for run in runs} - {""}
    cores = {run.environment.get("cores", "") for run in runs} - {""}
    machine = ", ".join(sorted(machines)[:2])
    if machine and len(cores) == 1:
        machine += f", {next(iter(cores))} cores"
    if context.platform is not None and context.platform.title not in machine:
        machine = "; ".join(filter(None, (machine, f"described as {context.platform.title}")))
    rows = {
        "Measured": " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "",
        "Machine": machine,
        **context.origin,
    }
    return [(name, text) for name, text in rows.items() if text]


def _obstacles(context: Context) -> dict[str, Any]:
    """What takes the time that ideal scaling would not take; without ideal scaling, what takes the time."""
    sweep, against = context.sweep, context.ideal
    total = float(sweep.total.value[0, -1])
    if not sweep.timed:
        return {"lead": "No times were measured, so nothing can be said of them.", "rows": []}
    if not sufficient(sweep.total):
        return {"lead": "Insufficient data at the target: what is lost there is not known.", "rows": []}
    if against is None or not context.losses or not total > 0:
        return {"lead": "The largest kernels there:", "rows": _largest(context)}
    lost = total - float(against.time[-1])
    rows = [
        {
            "kernel": loss.kernel,
            "what": loss_words(loss),
            "value": value(loss.seconds, "time"),
            "share": loss.seconds / total if total > 0 else float("nan"),
        }
        for loss in context.losses[:MOST]
    ]
    lead = (
        f"Against ideal {against.kind} scaling from {sweep.places()[against.reference]} on, given by the "
        f"{against.compared_by}, {value(max(lost, 0.0), 'time')} of {value(total, 'time')} are lost."
    )
    summed = float(np.nansum(sweep.breakdown.by_kernel[:, -1]))
    if total > 0 and summed > OVERLAP * total:
        lead += f" Kernels overlap, as nested timers do: they add up to {summed / total:.2g} times the program."
    return {"lead": lead, "rows": rows}


def _largest(context: Context) -> list[dict[str, Any]]:
    """The kernels that take most, each with what bounds it."""
    found = context.sweep.diagnosis
    if found is None:
        return []
    return [
        {
            "kernel": row["kernel"],
            "what": row["verdict"],
            "value": value(row["time"], "time"),
            "share": row["share"],
        }
        for row in found.verdicts().head(MOST).to_dict("records")
    ]


def _help(context: Context) -> list[dict[str, Any]]:
    """What saves most of the time, each trouble and each kernel once; where the data are insufficient for the time,
    the troubles alone, which counts and bounds of times prove."""
    found = context.sweep.diagnosis
    if found is None or context.sweep.along != RANKS:
        return []
    advice = found.advice()
    if not sufficient(context.sweep.total):
        advice = advice[~advice["kind"].isin(OF_TIMES)]
    rows = advice.to_dict("records")
    return [
        {"kernel": row["kernel"], "kind": row["kind"], "text": row["text"], "saves": row["saves"]}
        for row in rows[:MOST]
    ]


def _next(context: Context) -> dict[str, Any] | None:
    """What narrows the prediction most, as ``plan`` lists it, and the lines that make its runs; None where nothing
    does."""
    plan, farther = context.plan, _farther(context)
    if plan is None or not (plan.remedies or farther):
        return None
    needed = any(remedy.cause == UNSUPPORTED for remedy in plan.remedies)
    configurations = [] if plan.settled or needed else [run.configuration for run in plan.runs]
    commands = []
    if configurations and context.commands is not None:
        commands = context.commands(configurations, plan.runs[0].repetitions)
    now = plan.goal.now
    low, high = float(now.lower[0, 0]), float(now.upper[0, 0])
    return {
        "where": "; ".join(", ".join(place(name, x) for name, x in each.items()) for each in configurations),
        "many": len(configurations) > 1,
        "cost": spent(plan.core_hours),
        "now": spread((high / low) ** 0.5) if sufficient(context.sweep.total) else "",
        "interval": spread(float(plan.runs[-1].factor.mean())) if configurations else "",
        "commands": commands,
        "remedies": [*farther, *remedy_rows(plan)],
    }


def _farther(context: Context) -> list[dict[str, str]]:
    """The run that is needed for predictions farther than the target, as the answer names it."""
    beyond, sweep = context.sweep.beyond, context.sweep
    text = "" if beyond is None else named_run(beyond.reason)
    if beyond is None or not text:
        return []
    where, cost = place(sweep.along, beyond.value), ""
    if where in text and context.cost is not None:
        point = sweep.points[-1:].copy()
        point[:, context.model.parameters.index(sweep.along)] = beyond.value
        cost = spent(float(context.cost.of(point, 1).core_hours[0]))
    return [{"cause": f"to predict {where}", "text": text, "gain": "", "cost": cost}]


def _figure(context: Context) -> Any:
    sweep, against, found = context.sweep, context.ideal, context.measured
    total = sweep.total
    rows = [
        ("predicted", [value(x, "time") + mark for x, mark in zip(total.value[0], sweep.marks, strict=True)]),
        (
            f"{sweep.level:.0%} interval",
            [f"{value(a, 'time')} to {value(b, 'time')}" for a, b in zip(total.lower[0], total.upper[0], strict=True)],
        ),
    ]
    if against is not None:
        rows.append((f"ideal {against.kind} scaling", [value(x, "time") for x in against.time]))
        rows.append(("efficiency", [percent(x) for x in against.efficiency(sweep)]))
    low, high = sweep.trained
    alternative = (
        f"Predicted time over {sweep.along}, both axes logarithmic: {value(float(total.value[0, 0]), 'time')} at "
        f"{in_full(sweep.values[0])}, {value(float(total.value[0, -1]), 'time')} at {in_full(sweep.values[-1])}; "
        f"{sweep.measured_range} from {in_full(low)} to {in_full(high)}. The table below has the numbers."
    )
    return draw(
        "prediction",
        lambda ax: plot_prediction(sweep, found, against, ax),
        alternative,
        (10.5, 4.4),
        sweep.values.tolist(),
        rows,
        sweep.places(),
        narrow=True,
    )


def _table(context: Context) -> dict[str, Any]:
    """The numbers of the figure."""
    sweep, against = context.sweep, context.ideal
    measured: dict[float, float] = {}
    if context.measured is not None:
        times, _ = context.measured.total(context.model)
        here = context.measured.along(context.model, sweep.along, dict(sweep.held)) & np.isfinite(times)
        column = context.measured.points[:, context.model.parameters.index(sweep.along)]
        measured = {float(x): float(y) for x, y in zip(column[here], times[here], strict=True)}
    heads = ["predicted", "from", "to", *(["measured"] if measured else []), *(["ideal"] if against else [])]
    columns = [getattr(sweep.total, end)[0] for end in ("value", "lower", "upper")]
    columns += [np.array([measured.get(float(x), np.nan) for x in sweep.values])] if measured else []
    columns += [against.time] if against is not None else []
    unit, texts = in_one_unit(np.concatenate(columns).tolist(), "time")
    numbers = np.array(texts).reshape(len(columns), -1).T.tolist()
    rows = [
        [in_full(x), f"{first}{mark}", *rest]
        for x, mark, (first, *rest) in zip(sweep.values, sweep.marks, numbers, strict=True)
    ]
    heads = [sweep.along, f"predicted, {unit}", *heads[1:]]
    return {"heads": heads, "rows": rows, "caption": f"Predicted time over {sweep.along}{sweep.legend}"}
