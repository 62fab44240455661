"""What every stage of the extrapolation is worth, and every law of kernels' times: each switched off in turn.

Stages of times are judged on times, those of counts on counts, and both on whole programs over nodes, whose times come
from many series. A stage whose absence shows on none of them has no place in the engine.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from benchmarks import beyond_nodes, late_changes, laws, second_splits, synthetic_functions
from benchmarks.few_points import windows
from benchmarks.measured_series import tasks_of
from benchmarks.measures import GROSS, interval_score, judge
from benchmarks.methods.answers import Answer
from benchmarks.methods.engine import Engine
from benchmarks.methods.power import Ideal, Last, LastPower
from benchmarks.settings import Settings, Skipped
from benchmarks.table import markdown
from benchmarks.tasks import Task, make
from ranksight.core.metrics import metric as described
from ranksight.model.process.covariance import PARTS, Turn
from ranksight.model.process.prevalence import WILD, Prevalence, learned
from ranksight.model.search import composite, crosswise
from ranksight.model.search.terms import LEVELLING, LIMITED
from ranksight.model.spaces import default

TITLE = "Ablation"
SEED = 5
FACTORS = (4.0, 16.0, 64.0)
"""How far synthetic functions are asked for."""
COUNT = {1: 30, 2: 10}
"""Synthetic functions by number of parameters."""
CLASS = 5
"""Series of each class of late changes and each law of programs."""
MOST = 15
"""Series of one source, and windows of few points of them."""
STEADY = 0.02
"""Noise of functions that are taken for counts, and none."""
PROGRAMS = "programs over nodes"

SLOW, SLOWER = 0.03, (1.5, 5.0)
"""Share of repetitions that are slow, and by which factors: another job's turn, a file system that hangs."""

SHOWN = 0.02
"""Change of an interval score that is shown."""

Array = NDArray[np.float64]
COLUMNS = ("farthest", "trivial", "90th", "below", "above", "width", "score", "abstained", "gross")


def groups(data: Path, quick: bool = False) -> tuple[dict[str, list[Task]], dict[str, list[Task]]]:
    """Series of times and of counts by what they are: measured, cut down to few points, other splits, made up."""
    share = 5 if quick else 1
    times: dict[str, list[Task]] = {}
    counts: dict[str, list[Task]] = {}
    measured, _ = tasks_of(data)
    generator = np.random.default_rng(SEED)

    def some(tasks: Sequence[Task]) -> list[Task]:
        chosen = generator.permutation(len(tasks))[: max(1, MOST // share)]
        return [tasks[at] for at in sorted(chosen.tolist())]

    for source in dict.fromkeys(task.source for task in measured):
        for kind, metric in ((times, True), (counts, False)):
            tasks = [task for task in measured if task.source == source and (task.metric == "time") == metric]
            if tasks:
                kind[source] = some(tasks)
    for count in (3, 2):
        cut = [some(list(windows(tasks, count))) for tasks in times.values()]
        times[f"{count} points"] = [task for tasks in cut for task in tasks]
    times["second splits"] = some(second_splits.load(data))
    times["late changes"] = late_changes.tasks_of(SEED, CLASS // share)
    times["jumps within the range"] = late_changes.early(SEED, 3 * CLASS // share)
    times["next to nothing on one rank"] = late_changes.from_one_rank(SEED, 3 * CLASS // share)
    times["the same over size, too"] = late_changes.from_one_rank(SEED, 3 * CLASS // share, (1.0, 2.0, 4.0))
    times["decades apart, where measured"] = late_changes.decades(SEED, 3 * CLASS // share)
    made = laws.tasks_of(SEED, CLASS // share)
    times["laws of programs"] = [task for task in made if task.metric == "time"]
    counts["laws of counts"] = [task for task in made if task.metric != "time"]
    for split in beyond_nodes.SPLITS:
        counts[f"counted, {split.name}"] = list(_counted(data, split))
    for parameters, number in COUNT.items():
        for kind, noises, metric in ((times, (0.1, 0.2, 0.5), "time"), (counts, (0.0, STEADY), "instructions")):
            for noise in noises:
                tasks, functions = synthetic_functions.tasks_of(SEED, number // share, parameters, noise)
                tasks = [replace(task, metric=metric) for task in tasks]
                for factor in FACTORS:
                    kind[f"{parameters} parameters, {noise:.0%} noise, {factor:g}x"] = _asked(tasks, functions, factor)
    tasks, functions = synthetic_functions.tasks_of(SEED, COUNT[1] // share, 1, 0.1)
    times["slow repetitions, 16x"] = _asked([_with_slow(task, generator) for task in tasks], functions, 16.0)
    return times, {name: tasks for name, tasks in counts.items() if tasks}


def _counted(data: Path, split: beyond_nodes.Split) -> Iterator[Task]:
    """What LIKWID counted of the programs of a split, as means over ranks."""
    for program, runs in sorted(beyond_nodes.readings(data / "counters" / split.folder / "MEM_DP").items()):
        tables = {ranks: [each.counters for each in readings] for ranks, readings in sorted(runs.items())}
        names = set.intersection(*(set(table.columns) for each in tables.values() for table in each))
        for metric in sorted(name for name in names if described(name).kind == "requirement"):
            means = {ranks: [float(table[metric].mean()) for table in each] for ranks, each in tables.items()}
            if not all(value > 0 for values in means.values() for value in values):
                continue
            near, far = (
                [((float(ranks),), values) for ranks, values in means.items() if wanted(ranks)]
                for wanted in (split.trained, split.asked)
            )
            if len(near) > 2 and far:
                yield make(f"{split.name} {metric}", program, "spechpc", ("ranks",), near, far, metric=metric)


def _programs(data: Path, quick: bool) -> tuple[list[Task], Callable[[], list[Answer]]]:
    """Programs with their counters: how long they take on more ranks, and how that is answered."""
    splits = [(split, task, runs) for split in beyond_nodes.SPLITS for task, runs in beyond_nodes.tasks(data, split)]
    splits = splits[:: 3 if quick else 1]

    def answers() -> list[Answer]:
        return [beyond_nodes.answer(task, runs, split, True, True) for split, task, runs in splits]

    return [task for _, task, _ in splits], answers


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


def _usual_pace(around: Array, *rest: Any) -> Array:
    return np.ones(len(around))


def _no_spreads(above: Array, below: Array, rest: Array, pace: Array) -> tuple[Array, Array]:
    return np.zeros(rest.shape), np.zeros(rest.shape)


def _without_part(name: str) -> Prevalence:
    """The table without one part of the covariance."""
    table = learned()
    absent = table.scales[:, PARTS.index(name)] == 0
    weight = np.where(absent, table.covariances, -np.inf)
    return replace(table, covariances=weight - logsumexp(weight))


def _tame() -> Prevalence:
    """The table without departures and scatter by factors."""
    table = learned()
    weight = np.where(table.scales.max(axis=1) < WILD, table.covariances, -np.inf)
    return replace(table, covariances=weight - logsumexp(weight))


def _without_means(left_out: Callable[[Array], bool]) -> Prevalence:
    """The table without some means, known by their terms (q, 1, 3)."""
    table = learned()
    out = np.array([left_out(table.terms[mean[mean >= 0]]) for mean in table.members])
    means = np.where(out, -np.inf, table.means)
    return replace(table, means=means - logsumexp(means))


def _without_numbered(numbers: Sequence[float]) -> Prevalence:
    """The table without means of factors that are known by one of these numbers."""
    return _without_means(lambda terms: bool(np.isin(terms[:, 0, 2], numbers).any()))


def _table(table: Callable[[], Prevalence]) -> Stage:
    once = lru_cache(maxsize=1)(table)
    return {"process.fit_process.learned": once}


Stage = Mapping[str, Any]
OF_TIMES: dict[str, Stage] = {
    "outliers among repetitions": {"series.noise.without_outliers": lambda values: values},
    "runs that may be odd": _table(lambda: replace(learned(), kinds=np.array([0.0, -np.inf, -np.inf]))),
    "changepoints": {"fitting.outcome.changepoints": lambda x, data, *rest: np.full(len(data.logs), np.nan)},
    "one rank over several parameters": {"fitting.changes.evidence_of": lambda points, location: 0.0},
    "turns beyond the runs": _table(
        lambda: replace(learned(), turn=Turn(0.0, 0.0, 0.0, 0.0), whole_turn=Turn(0.0, 0.0, 0.0, 0.0))
    ),
    "local departures": _table(lambda: _without_part("local")),
    "changes of slope": _table(lambda: _without_part("slope")),
    "scatter and steps by factors": _table(_tame),
    "exponents that are not listed": _table(lambda: _without_part("power")),
    "means that level off": _table(lambda: _without_numbered([factor[2] for factor in LEVELLING])),
    "divisions that end": _table(lambda: _without_numbered([LIMITED])),
    "means of three terms": _table(lambda: _without_means(lambda terms: len(terms) > 2)),
    "prevalence of means": _table(lambda: replace(learned(), means=_even(learned().means))),
    "hidden parameters": {"fitting.fitted.spreads": _no_spreads},
}
"""Stages of times, and what takes their place where one is switched off."""
OF_COUNTS: dict[str, Stage] = {
    "shrinkage across kernels": {"priors.FORMS_WORTH": 1e12},
    "cost of terms that cancel": {"search.screening.cancelling": lambda *given: 0.0},
    "cost of negative coefficients": {"priors.NEGATIVE": 0.0},
    "cost of growth unseen": {"priors.GROWTH_UNSEEN": 0.0},
    "rounding of blocks": {
        "uncertainty.blocks.rounding": lambda points, location, *rest: np.zeros(len(location.values))
    },
    "counts that keep to their function": {"uncertainty.drift.pace": _usual_pace},
    "best of many forms": {"uncertainty.discrepancy.by_chance": np.ones_like},
    "drift": {"priors.DRIFT": 0.0},
}
"""Stages of counts and rates, and what takes their place where one is switched off."""


def _even(weights: Array) -> Array:
    """Even weights of the means that occur, logarithms."""
    occurs = np.isfinite(weights)
    return np.where(occurs, -np.log(occurs.sum()), -np.inf)


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
    kinds = groups(settings.data, settings.quick)
    programs, answered = _programs(settings.data, settings.quick)
    simple = (Last(), Ideal(), LastPower(2), LastPower(3))
    trivial = {
        id(tasks): [method.answer(tasks) for method in simple]
        for tasks in (programs, *(tasks for given in kinds for tasks in given.values()))
    }

    def measured(given: dict[str, list[Task]]) -> dict[str, list[float]]:
        found = {name: figures(tasks, Engine().answer(tasks), trivial[id(tasks)]) for name, tasks in given.items()}
        return {**found, PROGRAMS: figures(programs, answered(), trivial[id(programs)])}

    parts = []
    for name, given, stages in zip(("times", "counts"), kinds, (OF_TIMES, OF_COUNTS), strict=True):
        whole = measured(given)
        number = {**{group: len(tasks) for group, tasks in given.items()}, PROGRAMS: len(programs)}
        rows: list[list[object]] = [[group, number[group], *row] for group, row in whole.items()]
        without = [_changed(stage, whole, _without(names, given, measured)) for stage, names in stages.items()]
        parts += [
            f"### Series of {name}",
            markdown(["series", "number", *COLUMNS], rows),
            "Without one stage: change of the mean interval score over all groups and of gross errors, and the groups "
            f"whose score changes most (by {SHOWN:g} or more). A stage without effect has no place.",
            markdown(["without", "score", "gross", "most"], without),
        ]
    return "\n\n".join(
        [
            "Figures of series and of whole programs: error in percent at the farthest point (median), that of the "
            "best trivial method (last value, ideal scaling, power law through the last two or three points) and the "
            "90th percentile; measured values below and above the 90 % interval and the median ratio of its ends, "
            "where answered; mean interval score in e-folds (smaller is better); abstained; errors above 50 % that "
            "nothing warned of.",
            *parts,
            _of_laws(settings),
        ]
    ).rstrip()


Figures = dict[str, list[float]]


def _without(
    names: Stage, given: dict[str, list[Task]], measured: Callable[[dict[str, list[Task]]], Figures]
) -> Figures:
    """The figures of groups with other values of some names."""
    with replaced(names):
        return measured(given)


def _changed(stage: str, whole: Figures, other: Figures) -> list[object]:
    """A row: what the absence of a stage changes."""
    score, gross = (COLUMNS.index(name) for name in ("score", "gross"))
    change = {name: other[name][score] - whole[name][score] for name in whole}
    most = sorted(change, key=lambda name: -abs(change[name]))[:3]
    shown = ", ".join(f"{name} {change[name]:+.2f}" for name in most if abs(change[name]) >= SHOWN) or "none"
    return [
        stage,
        float(np.mean(list(change.values()))),
        sum(other[name][gross] - whole[name][gross] for name in whole),
        shown,
    ]


def _of_laws(settings: Settings) -> str:
    """The table of laws; it uses this module."""
    from benchmarks.law_ablation import section

    return section(settings)
