"""What every stage of the extrapolation is worth, and every law of kernels' times: each switched off in turn.

A stage whose absence shows on none of them has no place in the engine.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import late_changes, laws, second_splits, synthetic_functions
from benchmarks.few_points import windows
from benchmarks.measured_series import tasks_of
from benchmarks.measures import GROSS, interval_score, judge
from benchmarks.methods.answers import Answer
from benchmarks.methods.engine import Engine
from benchmarks.methods.power import Ideal, Last, LastPower
from benchmarks.settings import Settings, Skipped
from benchmarks.table import markdown
from benchmarks.tasks import Task
from ranksight.model.search import composite, crosswise
from ranksight.model.spaces import default

TITLE = "Ablation"
SEED = 5
FACTORS = (4.0, 16.0, 64.0)
"""How far synthetic functions are asked for."""
COUNT = {1: 100, 2: 40}
"""Synthetic functions by number of parameters."""
CLASS = 20
"""Series of each class of late changes and each law of programs."""
MOST = 240
"""Windows of few points from one source."""

SLOW, SLOWER = 0.03, (1.5, 5.0)
"""Share of repetitions that are slow, and by which factors: another job's turn, a file system that hangs."""

SHOWN = 0.02
"""Change of an interval score that is shown."""

Array = NDArray[np.float64]
COLUMNS = ("farthest", "trivial", "90th", "below", "above", "width", "score", "abstained", "gross")


def groups(data: Path, quick: bool = False) -> dict[str, list[Task]]:
    """All series by what they are: measured, cut down to few points, other splits, made-up laws, functions."""
    share = 5 if quick else 1
    found: dict[str, list[Task]] = {}
    measured, _ = tasks_of(data)
    for task in measured:
        found.setdefault(task.source, []).append(task)
    generator = np.random.default_rng(SEED)
    for count in (3, 2):
        for source in list(dict.fromkeys(task.source for task in measured)):
            cut = list(windows([task for task in measured if task.source == source], count))
            if cut:
                chosen = generator.permutation(len(cut))[: MOST // share]
                found.setdefault(f"{count} points", []).extend(cut[at] for at in chosen)
    found["second splits"] = second_splits.load(data)
    found["late changes"] = late_changes.tasks_of(SEED, CLASS // share)
    found["jumps within the range"] = late_changes.early(SEED, 3 * CLASS // share)
    found["laws of programs"] = laws.tasks_of(SEED, CLASS // share)
    for parameters, count in COUNT.items():
        for noise in (0.1, 0.2, 0.5):
            tasks, functions = synthetic_functions.tasks_of(SEED, count // share, parameters, noise)
            for factor in FACTORS:
                found[f"{parameters} parameters, {noise:.0%} noise, {factor:g}x"] = _asked(tasks, functions, factor)
    tasks, functions = synthetic_functions.tasks_of(SEED, COUNT[1] // share, 1, 0.1)
    found["slow repetitions, 16x"] = _asked([_with_slow(task, generator) for task in tasks], functions, 16.0)
    return found


def _asked(tasks: Sequence[Task], functions: Sequence[Callable[[Array], Array]], factor: float) -> list[Task]:
    """The tasks with targets `factor` times their largest points, where the functions say what is true."""
    target = np.array([[factor * max(synthetic_functions.AXIS)] * len(tasks[0].parameters)])
    return [
        Task(
            f"{task.split} {factor:g}x",
            task.name,
            "synthetic",
            task.parameters,
            task.points,
            task.values,
            target,
            function(target),
        )
        for task, function in zip(tasks, functions, strict=True)
    ]


def _with_slow(task: Task, generator: np.random.Generator) -> Task:
    """The task with single repetitions that took several times as long."""
    slower = np.where(generator.random(task.values.shape) < SLOW, generator.uniform(*SLOWER, task.values.shape), 1.0)
    return replace(task, values=task.values * slower)


def figures(tasks: Sequence[Task], answers: Sequence[Answer], trivial: Sequence[Sequence[Answer]]) -> list[float]:
    """The row of :data:`COLUMNS` of a group: errors in percent at the farthest point (median, the best trivial
    method's median, 90th percentile), shares in percent of measured values below and above the interval where one was
    answered, median ratio of its ends, mean interval score, abstained in percent, gross errors nothing warned of."""
    points = judge(tasks, answers)
    last = points.error[points.last]
    others = [judge(tasks, each) for each in trivial]
    answered = ~points.flagged
    measured = np.concatenate([task.measured for task in tasks])
    value = np.concatenate([answer.value for answer in answers])
    out = answered & ~points.inside
    count = max(int(answered.sum()), 1)
    return [
        float(np.median(last)),
        min((float(np.median(each.error[each.last])) for each in others), default=math.nan),
        float(np.quantile(last, 0.9)),
        100 * float((out & (measured < value)).sum()) / count,
        100 * float((out & ~(measured < value)).sum()) / count,
        float(np.exp(np.median(points.width[answered]))) if answered.any() else math.nan,
        float(np.mean([interval_score(task, answer) for task, answer in zip(tasks, answers, strict=True)])),
        100 * float(points.flagged.mean()),
        int(((points.error > GROSS) & ~points.flagged & ~points.inside).sum()),
    ]


def _no_breaks(points: Array, location: Any, *rest: Any) -> Any:
    return np.full(len(location.values), np.nan)


def _usual_pace(discrepancy: Array, *rest: Any) -> Array:
    return np.ones(len(discrepancy))


def _with_first(*given: Any) -> Any:
    return given[5]


def _no_spreads(above: Array, below: Array, rest: Array, pace: Array) -> tuple[Array, Array]:
    return np.zeros(rest.shape), np.zeros(rest.shape)


Stage = Mapping[str, Any]
STAGES: dict[str, Stage] = {
    "outliers among repetitions": {"series.noise.without_outliers": lambda values: values},
    "shrinkage across kernels": {"priors.FORMS_WORTH": 1e12},
    "cost of terms that cancel": {"search.screening.cancelling": lambda *given: 0.0},
    "cost of negative coefficients": {"priors.NEGATIVE": 0.0},
    "cost of growth unseen": {"priors.GROWTH_UNSEEN": 0.0},
    "first value of another regime": {"fitting.fit_series.without_first": _with_first},
    "changepoints within the range": {"fitting.fit_series.find_breaks": _no_breaks},
    "discrepancy learned": {"uncertainty.drift.pace": _usual_pace},
    "best of many forms": {"uncertainty.discrepancy.by_chance": np.ones_like},
    "drift": {"priors.DRIFT": 0.0},
    "uneven numbers of ranks": {"priors.UNEVEN": 0.0},
    "a node that is full": {"kernel_time.where.filled": lambda low, high: 0.0},
    "hidden parameters": {"fitting.fitted.spreads": _no_spreads},
}
"""Stages of the extrapolation, and what takes their place where one is switched off."""


@contextmanager
def replaced(stage: Stage) -> Iterator[None]:
    """Other values of names in :mod:`ranksight.model`, or of one entry of a table (``priors.FORMS[alone]``), as long as
    the context lasts."""
    before = []
    try:
        for place, value in stage.items():
            path, name, entry = _parts(place)
            module = importlib.import_module(f"ranksight.model.{path}")
            held = getattr(module, name)
            before.append((module, name, held))
            setattr(module, name, {**held, entry: value} if entry else value)
        _forget()
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)
        _forget()


def _parts(place: str) -> tuple[str, str, str]:
    """Module, name and entry of a place such as ``priors.FORMS[alone]``; without brackets the entry is empty."""
    path, _, name = place.rstrip("]").rpartition(".")
    name, _, entry = name.partition("[")
    return path, name, entry


def value_of(place: str) -> float:
    """The value in use at a place of :func:`replaced`."""
    path, name, entry = _parts(place)
    held = getattr(importlib.import_module(f"ranksight.model.{path}"), name)
    return float(held[entry] if entry else held)


def _forget() -> None:
    """Hypotheses that were listed with other weights."""
    for cached in (default.default, default._along_ranks, composite._forms, crosswise._structures):
        cached.cache_clear()


def run(settings: Settings) -> str:
    """The figures of all groups, and what each stage's absence changes; raises Skipped where the data is absent."""
    if not settings.data.is_dir():
        raise Skipped("the folder of real measurements, ../shared/data, is not next to this repository")
    given = groups(settings.data, settings.quick)
    trivial = {
        name: [method.answer(tasks) for method in (Last(), Ideal(), LastPower(2), LastPower(3))]
        for name, tasks in given.items()
    }

    def measured() -> dict[str, list[float]]:
        return {name: figures(tasks, Engine().answer(tasks), trivial[name]) for name, tasks in given.items()}

    whole = measured()
    head = ["series", "number", *COLUMNS]
    rows: list[list[object]] = [[name, len(given[name]), *row] for name, row in whole.items()]
    without: list[list[object]] = []
    for stage, names in STAGES.items():
        with replaced(names):
            other = measured()
        score, gross = (COLUMNS.index(name) for name in ("score", "gross"))
        change = {name: other[name][score] - whole[name][score] for name in whole}
        most = sorted(change, key=lambda name: -abs(change[name]))[:3]
        without.append(
            [
                stage,
                float(np.mean(list(change.values()))),
                sum(other[name][gross] - whole[name][gross] for name in whole),
                ", ".join(f"{name} {change[name]:+.2f}" for name in most if abs(change[name]) >= SHOWN) or "none",
            ]
        )
    return (
        "Figures of all series benchmarks: error in percent at the farthest point (median), that of the best trivial "
        "method (last value, ideal scaling, power law through the last two or three points) and the 90th percentile; "
        "measured values below and above the 90 % interval and the median ratio of its ends, where answered; mean "
        "interval score in e-folds (smaller is better); abstained; errors above 50 % that nothing warned of.\n\n"
        + markdown(head, rows)
        + "\n\nWithout one stage: change of the mean interval score over all groups and of gross errors, and the "
        f"groups whose score changes most (by {SHOWN:g} or more). A stage without effect has no place.\n\n"
        + markdown(["without", "score", "gross", "most"], without)
        + f"\n\n{_of_laws(settings)}"
    ).rstrip()


def _of_laws(settings: Settings) -> str:
    """The table of laws; it uses this module."""
    from benchmarks.law_ablation import section

    return section(settings)
