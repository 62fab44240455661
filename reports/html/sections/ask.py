"""The prediction at any configuration: a grid of the model that the page's script interpolates, or asks live."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import numpy as np

from ranksight.analysis.planning.spending import charged
from ranksight.core.arrays import Array, Index
from ranksight.core.errors import InputError
from ranksight.core.units import HOUR, finite, in_full
from ranksight.model.structure.coordinates import whole_ranks
from ranksight.reports.grid import Answers, Grid, answers_at
from ranksight.reports.html.context import Context
from ranksight.reports.html.encoding import pack
from ranksight.reports.html.writing import whole
from ranksight.reports.palette import NAMES, PARTS
from ranksight.reports.plans import LEAST_HOURS
from ranksight.reports.sweep import RANKS, following, place

MOST_NUMBERS = 60_000  # times of kernels that the grid of a page holds
MOST_KERNELS = 60
MARKED = 0.01
"""Relative difference between interpolation and model from which an answer is marked as interpolated."""
ABOUT = 0.05  # the same of the interval's ends
FARTHEST = 2.0**53  # value of a parameter that is asked for
FAR = 9.99  # what is written for a larger one


def build(context: Context) -> dict[str, Any] | None:
    """What the template needs; None where nothing can be asked for."""
    grid = context.grid
    if grid is None:
        return None
    sweep, model = context.sweep, context.model
    kernels = _largest(grid)
    data = {
        "axes": [_axis(context, grid, name) for name in grid.axes],
        "held": ", ".join(place(name, value) for name, value in grid.held.items()),
        "level": sweep.level,
        "along": sweep.along,
        "threshold": context.threshold,
        "least": LEAST_HOURS,
        "marked": MARKED,
        "about": ABOUT,
        "parts": [[NAMES[name], PARTS[name][1:].lower()] for name in NAMES],
        "kernels": [[whole(grid.names[at]), context.numbers.get(grid.names[at], -1)] for at in kernels.tolist()],
        **_reasons(grid.answers.reason),
        **_table(context, grid.answers, kernels),
        "command": _command(context, grid),
        "candidates": sweep.values.tolist(),
        "tied": _tied(context, grid),
        "live": context.live,
    }
    return {
        "data": data,
        "fields": [
            {"name": name, "most": float(values[-1]), "least": float(values[0]), "at": sweep.target[name]}
            for name, values in grid.axes.items()
        ],
        "held": data["held"],
        "map": len(grid.axes) > 1,
        "parameters": model.parameters,
        "assumed": assumed(context),
    }


def _table(context: Context, answers: Answers, kernels: Index) -> dict[str, Any]:
    """Rows of numbers of answers (packed): times, what they cost, parts of the time and kernels."""
    single, charges = _costs(context, answers)
    rows = [*single.values(), *charges.values(), *(answers.parts[name] for name in NAMES)]
    packed = pack(np.concatenate([np.array(rows), answers.kernels[kernels]]))
    return {"charges": list(charges), "codes": packed.codes, "scale": packed.scale}


def live_answer(context: Context, values: Mapping[str, float]) -> dict[str, Any]:
    """The model's own answer at values of the grid's parameters, as the page's script takes it.

    Raises InputError when a parameter is unknown or a value is none that the model can be asked at.
    """
    grid, model, sweep = context.grid, context.model, context.sweep
    if grid is None or set(values) != set(grid.axes):
        raise InputError("an answer needs a value for each field", f"give {', '.join(grid.axes if grid else ())}")
    points = sweep.points[-1:].copy()
    for name, value in values.items():
        if not (np.isfinite(value) and 0 < value <= FARTHEST):
            raise InputError(f"{name} is asked at {value:g}", f"give a number above 0, up to {FARTHEST:g}")
        points[:, model.parameters.index(name)] = value
    whole_ranks(model.parameters, points, "ranks are asked at {}", "give whole numbers of ranks, 1 or more")
    answers = answers_at(model, model.along_ties(points) if following(model, sweep.along) else points, sweep.level)
    single, charges = _costs(context, answers)
    (reason,) = answers.reason
    return {
        **{name: finite(float(row[0])) for name, row in single.items()},
        "charges": {name: finite(float(row[0])) for name, row in charges.items()},
        "parts": [finite(float(answers.parts[name][0])) for name in NAMES],
        "kernels": [finite(float(x)) for x in answers.kernels[_largest(grid), 0]],
        "mark": f"Not supported by the data: {whole(reason)}." if reason else "",
        "supported": not reason,
    }


def _costs(context: Context, answers: Answers) -> tuple[dict[str, Array], Mapping[str, Array]]:
    """Time and interval, core-hours and efficiency of answers by name, and what else they cost by its unit."""
    charges = charged(context.model, answers.points, answers.time, answers.spread, context.prices)
    ends = {"time": answers.time, "low": answers.low, "high": answers.high}
    return {**ends, "hours": _hours(context, answers), "efficiency": _efficiency(context, answers)}, charges


def _hours(context: Context, answers: Answers) -> Array:
    """Core-hours of one run; those of the nodes or cores where the model has no ranks are not known."""
    if RANKS not in context.model.parameters:
        return np.full(len(answers.time), np.nan)
    if context.cost is None:
        return answers.time * answers.points[:, context.model.parameters.index(RANKS)] / HOUR
    return context.cost.of(answers.points, 1).core_hours


def _efficiency(context: Context, answers: Answers) -> Array:
    """Ideal over predicted time at each configuration, against the fewest ranks measured at the other parameters."""
    against, sweep, model = context.ideal, context.sweep, context.model
    if against is None:
        return np.full(len(answers.time), np.nan)
    at = model.parameters.index(sweep.along)
    first = answers.points.copy()
    first[:, at] = sweep.values[against.reference]
    there, where = np.unique(first, axis=0, return_inverse=True)
    reference = model.whole_time(*model.ask(there, sweep.level)).value[0][where.ravel()]
    ratio = first[:, at] / answers.points[:, at] if against.kind == "strong" else 1.0
    with np.errstate(all="ignore"):
        return np.asarray(ratio * reference / answers.time)


def _axis(context: Context, grid: Grid, name: str) -> dict[str, Any]:
    column = context.model.training[:, context.model.parameters.index(name)]
    return {
        "name": name,
        "values": grid.axes[name].tolist(),
        "missed": np.round(np.minimum(grid.missed[name], FAR), 4).tolist(),
        "loose": np.round(np.minimum(grid.loose[name], FAR), 4).tolist(),
        "trained": [float(column.min()), float(column.max())],
        "target": context.sweep.target[name],
        "whole": bool((grid.axes[name] % 1 == 0).all()),
    }


def _reasons(reasons: tuple[str, ...]) -> dict[str, Any]:
    """Each reason once, and for each configuration which of them; 0 is none."""
    each = list(dict.fromkeys(("", *reasons)))
    return {"reasons": each, "reason": [each.index(text) for text in reasons]}


def _largest(grid: Grid) -> Index:
    """The kernels whose times the page holds, the largest first."""
    room = min(MOST_KERNELS, MOST_NUMBERS // len(grid.answers.time))
    share = np.nan_to_num(grid.answers.kernels)
    share = share / np.maximum(share.sum(axis=0), np.finfo(float).tiny)
    return np.argsort(-share.max(axis=1, initial=0.0), kind="stable")[:room]


def _command(context: Context, grid: Grid) -> str:
    """The line that asks the model itself, without the parameters of the fields and those that follow them."""
    file = "MODEL" if context.model_file is None else shlex.quote(whole(str(context.model_file)))
    held = (f"--{name} {in_full(value)}" for name, value in grid.held.items())
    return " ".join([f"ranksight predict {file}", *held, *map(shlex.quote, context.where)])


def _tied(context: Context, grid: Grid) -> list[list[Any]]:
    """Parameters that follow the first of the grid's, each with its values there."""
    names = [name for name in context.model.parameters if name not in grid.axes and name not in grid.held]
    first = grid.answers.points.reshape(grid.shape[0], -1, len(context.model.parameters))[:, 0]
    return [[name, first[:, context.model.parameters.index(name)].tolist()] for name in names]


def assumed(context: Context) -> list[str]:
    """The network that messages are priced on, and how collectives are done on it, in sentences."""
    network, found = context.model.equation.network, context.sweep.diagnosis
    if not network or found is None or not context.model.equation.communication:
        return []
    levels = {"intra": "within a node", "inter": "between nodes"}
    described = [
        f"{words} {whole(str(network.table[level].get('source') or 'as described'))}"
        for level, words in levels.items()
        if level in network.table
    ]
    if network.ranks_per_node < 1 << 20:
        described.append(f"{network.ranks_per_node:,} ranks on a node")
    lines = [f"Network: {'; '.join(described)}."]
    ways: dict[str, list[str]] = {}
    for row in found.algorithms().to_dict("records"):
        names = ways.setdefault(str(row["operation"]), [])
        if row["algorithm"] not in names:
            names.append(str(row["algorithm"]))
    if ways:
        each = ", ".join(f"{operation} by {' or '.join(names)}" for operation, names in ways.items())
        lines.append(f"Collectives at {context.sweep.places()[-1]}: {each.replace('_', ' ')}.")
    return lines
