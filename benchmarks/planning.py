"""Plans against whole grids: which part of the cost gives the accuracy of all runs, by plan and by rules of thumb."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.campaigns import (
    SHARES,
    Curve,
    Grid,
    Standing,
    at_random,
    cheapest,
    largest,
    replay,
    replay_plan,
    sparse,
)
from benchmarks.settings import Settings
from benchmarks.synthetic_functions import AXIS, draw, grid
from benchmarks.table import markdown
from benchmarks.tasks import Array, Task, stack
from ranksight.core.executing import executor, in_order
from ranksight.model.fitted_model import Model
from ranksight.model.series.reducing import Series

TITLE = "Planning of runs"
SEED = 5000
"""The rules by which plans are made were chosen on campaigns of other seeds."""
STREAM = 77
FUNCTIONS = 60
BUDGETS = (0.03, 0.1, 0.3)
NOISE = (0.1, 0.5)
REPETITIONS = 3
FARTHER = 16.0
RANDOM = 3
ACCURACY = 0.95
WHOLE_GRID = "whole grid"
KINDS = {"random": at_random, "cheapest first": cheapest, "largest that fits": largest, "sparse lines": sparse}


def run(settings: Settings) -> str:
    """Tables of accuracy by share of the cost, for synthetic functions and measured grids."""
    count = FUNCTIONS // 6 if settings.quick else FUNCTIONS
    groups = measured(settings.data, 6 if settings.quick else None) if settings.data.is_dir() else {}
    parts = []
    with executor(os.cpu_count() or 1) as (pool, width):
        for noise in NOISE:
            found = list(in_order(pool, width, partial(campaigns, noise), range(count)))
            parts.append(f"### Synthetic, ranks x size, {count} functions, {noise:.0%} noise\n\n{paired(found)}")
        for name, rows in zip(groups, in_order(pool, width, table, groups.values()), strict=True):
            parts.append(f"### {name}\n\n{rows}")
    return "\n\n".join([introduction(), *parts])


def introduction() -> str:
    """What is done, and what the columns mean."""
    return (
        "A campaign starts from the few smallest runs (of a grid the three smallest values of each parameter, a cross) "
        "and may make further ones of a grid that was measured in full; what is then fitted is judged by the error at "
        f"a target outside of the grid (synthetic: {FARTHER:g} times the largest value of both parameters). The rules "
        "know beforehand what each run costs; a plan has to predict it. *Sparse lines* are Extra-P's sampling: one "
        "line per axis and one further point.\n\n"
        "Synthetic campaigns have a part of the whole grid's core-hours to spend. *Off* is the size of the logarithm "
        "of predicted to true, the mean over all campaigns, ten times off at most; *median* of the error in percent; "
        "*accuracy* 100 % less the error, none counted below zero, the mean over the campaigns as part of that with "
        "the whole grid; *inside* how often the 90 % interval holds the truth; *spent* the part of the whole grid's "
        "cost, a mean. "
        "*Against the plan* is the mean difference of *off* from the plan's on the same campaigns, with its standard "
        "error: above zero the plan is nearer.\n\n"
        "Measured grids: *good* is "
        f"the percentage of campaigns whose accuracy (100 % less the error) is at least {ACCURACY:g} of that with the "
        "whole grid, after each share of the whole grid's core-hours; *cost of half, of nine tenths* the share from "
        f"which on so many of the campaigns stay good. *Cost of {ACCURACY:.0%}* is the share from which on the "
        "accuracy of all campaigns together, the mean of theirs, none counted below zero, stays at least that part of "
        "the whole grid's; *accuracy* is its part of the whole grid's at the end. *Error* and *interval* (ratio of its "
        "ends) are medians at the end, *spent* is what was made use of: a plan ends when no run is worth its cost."
    )


def campaigns(noise: float, number: int) -> dict[str, Curve]:
    """Where the campaigns of all policies stand with one function after each budget, and that with the whole grid."""
    grid = synthetic(number, noise)
    found = {"plan": replay_plan(grid, BUDGETS)}
    found |= {kind: replay(grid, order, 0, BUDGETS) for kind, order in KINDS.items()}
    return {**found, WHOLE_GRID: [grid.judged(np.ones(len(grid.cost), dtype=bool))] * len(BUDGETS)}


def paired(found: list[dict[str, Curve]]) -> str:
    """One row a budget and policy, each compared with the plan campaign by campaign."""
    rows = []
    for at, budget in enumerate(BUDGETS):
        ours = np.array([each["plan"][at].off for each in found])
        whole = _accuracy([each[WHOLE_GRID][at] for each in found])
        for kind in found[0]:
            if kind == WHOLE_GRID and at < len(BUDGETS) - 1:
                continue
            here = [each[kind][at] for each in found]
            off = np.array([each.off for each in here])
            apart = off - ours
            error = float(apart.std(ddof=1) / np.sqrt(len(apart)))
            against = "" if kind == "plan" else f"{apart.mean():+.3f} +- {error:.3f}"
            median = float(np.median([each.error for each in here]))
            inside = 100 * float(np.mean([each.inside for each in here]))
            spent = f"{100 * float(np.mean([each.spent for each in here])):.3g} %"
            name = kind if kind == WHOLE_GRID else f"{budget:.0%}, {kind}"
            accuracy = f"{100 * _accuracy(here) / whole:.1f}"
            rows.append([name, f"{off.mean():.3f}", median, accuracy, inside, spent, against])
    return markdown(["budget, policy", "off", "median %", "accuracy %", "inside %", "spent", "against the plan"], rows)


def _accuracy(found: list[Standing]) -> float:
    """100 less the error in percent, none below zero, the mean."""
    return float(np.mean([max(100 - each.error, 0.0) for each in found]))


def table(grids: list[Grid]) -> str:
    """One row a policy."""
    curves: dict[str, list[Curve]] = {"plan": [replay_plan(each) for each in grids]}
    for kind, order in KINDS.items():
        seeds = range(RANDOM if kind == "random" else 1)
        curves[kind] = [replay(each, order, seed) for seed in seeds for each in grids]
    # Every run of the grid, whatever the order.
    whole = np.array([curve[-1].error for curve in curves["cheapest first"]])
    wanted = np.where(whole < 100, 100 - ACCURACY * (100 - whole), whole)
    reached = np.maximum(100 - whole, 0).mean()
    rows = []
    for kind, found in curves.items():
        times = len(found) // len(grids)
        share = np.array([[each.spent for each in curve] for curve in found])
        errors = np.array([[each.error for each in curve] for curve in found])
        good = (errors <= np.tile(wanted, times)[:, None] + 1e-9).mean(axis=0)
        accuracy = np.maximum(100 - errors, 0).mean(axis=0)
        costs = [_share(share, enough) for enough in (good >= 0.5, good >= 0.9 - 1e-9, accuracy >= ACCURACY * reached)]
        ends = [curve[-1] for curve in found]
        spent, error, ratio = (
            float(np.median([getattr(e, what) for e in ends])) for what in ("spent", "error", "ratio")
        )
        part = 100 * accuracy[-1] / reached if reached > 0 else np.nan
        rows.append([kind, *(100 * good), *costs, part, error, ratio, f"{100 * spent:.3g} %"])
    start = 100 * float(np.median([each.cost[each.start].sum() / each.cost.sum() for each in grids]))
    head = [f"good % after; start {start:.2g} %", *(f"{share:.0%}" for share in SHARES)]
    costs = ["cost of half", "of nine tenths", f"cost of {ACCURACY:.0%}"]
    return markdown([*head, *costs, "accuracy %", "error %", "interval", "spent"], rows)


def _share(spent: Array, enough: np.ndarray) -> str:
    """Median share spent from which on all is `enough` (shares,)."""
    for at in range(len(SHARES)):
        if enough[at:].all():
            return f"{100 * float(np.median(spent[:, at])):.3g} %"
    return "never"


def _start(points: Array, values: int = 3) -> np.ndarray:
    """The smallest values of each axis, the others at their smallest: a cross."""
    found = np.zeros(len(points), dtype=bool)
    low = points.min(axis=0)
    for axis in range(points.shape[1]):
        few = np.unique(points[:, axis])[:values]
        others = np.delete(points == low, axis, axis=1).all(axis=1)
        found |= others & np.isin(points[:, axis], few)
    return found


def synthetic(number: int, noise: float) -> Grid:
    """A random function of the performance model normal form over ranks and size."""
    points = grid(2)
    target = np.full((1, 2), FARTHER * max(AXIS))
    generator = np.random.default_rng([SEED + number, STREAM])
    function = draw(generator, 2)
    scatter = 1 + noise / 2 * generator.uniform(-1, 1, size=(1, len(points), REPETITIONS))
    values = function(points)[None, :, None] * scatter
    name = f"function {number}"
    series = Series(("ranks", "size"), points, values, (name,), ("time",))
    cost = values.mean(axis=(0, 2)) * points[:, 0] / 3600
    return Grid(name, series, cost, _start(points), target, float(function(target)[0]), name)


def measured(data: Path, most: int | None = None) -> dict[str, list[Grid]]:
    """RELeARN, HOMME and LULESH as grids; a campaign for each of their timers."""
    from benchmarks.sources import homme, lulesh, relearn

    tasks = list(relearn.load(data))
    groups = {f"RELeARN, p 32..256 x n to p 512, {len(tasks)} regions": _grids(tasks, ("ranks", "size"), most)}
    tasks = [task for task in homme.load(data) if "ranks and ne to ne128" in task.split]
    chosen = homme.MAIN_LOOP + homme.COMMUNICATION
    tasks = [task for task in tasks if task.name.partition(",")[0] in chosen]
    found: list[Grid] = []
    for scheme in ("Eulerian", "semi-Lagrangian"):
        mine = [task for task in tasks if task.name.endswith(scheme)]
        main = next(task for task in mine if task.name.startswith(homme.MAIN_LOOP))
        same_points = [task for task in mine if np.array_equal(task.points, main.points)]
        found += _grids(same_points, ("ranks", "size"), most, main.name)
    groups[f"HOMME, ranks x ne to ne128, to the largest ne1024, {len(found)} timers"] = found
    tasks = [task for task in lulesh.load(data) if task.metric == "cycles"]
    groups[f"LULESH cycles, edge 30..120 to 150, {len(tasks)} kernels"] = _grids(tasks, ("size",), most)
    return groups


def _grids(tasks: list[Task], parameters: tuple[str, ...], most: int | None, timer: str | None = None) -> list[Grid]:
    """A campaign for each task; all of them are measured by every run, whose time is the timer's or the sum."""
    first = tasks[0]
    target = first.targets[-1:]
    tasks = [task for task in tasks if (task.targets[-1:] == target).all()]
    names = tuple(task.name for task in tasks)
    series = Series(parameters, first.points, stack(tasks), names, (first.metric,) * len(tasks))
    ranks = first.points[:, 0] if parameters[0] == "ranks" else 1.0
    timed = series.values if timer is None else series.values[[names.index(timer)]]
    cost = np.nanmean(timed, axis=2).sum(axis=0) * ranks / 3600
    start = _smallest(first.points, cost)
    known: dict[bytes, Model] = {}
    return [
        Grid(task.name, series, cost, start, target, float(task.measured[-1]), task.name, timer, known)
        for task in tasks[:most]
    ]


def _smallest(points: Array, cost: Array) -> np.ndarray:
    """A cross where the points are a grid; else the cheapest that vary every parameter."""
    axes = points.shape[1]
    if axes > 1 and len(points) == np.prod([len(np.unique(column)) for column in points.T]):
        return _start(points)
    found = np.zeros(len(points), dtype=bool)
    for at in np.argsort(cost, kind="stable"):
        found[at] = True
        if found.sum() >= 2 * axes + 1 - (axes == 1) and all(len(np.unique(column[found])) > 1 for column in points.T):
            break
    return found
