"""Times of whole programs at more ranks than were run: SPEChpc over nodes of Sapphire Rapids, and inside of nodes.

Every program of a split is trained on its smaller rank counts and asked for the larger ones, with what was counted or
with times alone, with the description of the node or without. Simple functions of the rank count are compared:
`a x^b + c` with the interval that its residuals give (Student's t, at least 1 % of noise), a power law through the last
two runs, ideal scaling, and the last value.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.measures import interval_score
from benchmarks.methods.answers import Answer, Method, plain
from benchmarks.methods.power import Ideal, Last, LastPower, Power
from benchmarks.settings import Settings, Skipped
from benchmarks.table import markdown
from benchmarks.tasks import Array, Task, make
from ranksight.core import special
from ranksight.core.errors import InputError, RanksightError
from ranksight.core.experiment import Experiment, Run
from ranksight.core.reading import READERS, Reading
from ranksight.model.fit import fit

TITLE = "More ranks than were run, over nodes and inside of them"
TIMES = ("kernel", "rank", "time")
KNOWN = (("counters", True), ("counters", False), ("times", True), ("times", False))
"""What a method is given: what was measured, and whether the node is described."""
LEAST_NOISE = 0.01
"""Scatter of single runs that residuals of few runs may hide."""
LEVEL = 0.9


@dataclass(frozen=True)
class Split:
    """Programs of one folder of LIKWID's tables: the ranks that are trained on, and those that are asked."""

    name: str
    folder: str
    platform: str
    trained: Callable[[int], bool]
    asked: Callable[[int], bool]


NODE = 104
SMALL, TINY, ICE = (f"spechpc_{name}" for name in ("small_sapphirerapids", "likwid_sapphirerapids", "likwid_icelake"))
SPLITS = (
    Split(
        "1..4 nodes -> 8, 12, 16",
        SMALL,
        "sapphirerapids-8470",
        lambda r: r <= 4 * NODE,
        lambda r: r // NODE in (8, 12, 16),
    ),
    Split("13 -> 104 ranks", TINY, "sapphirerapids-8470", lambda r: r <= 13, lambda r: r > 13),
    Split("18 -> 72 ranks", ICE, "icelake-8360y", lambda r: r <= 18, lambda r: r > 18),
)


def readings(folder: Path) -> dict[str, dict[int, list[Reading]]]:
    """What LIKWID's tables of a folder hold, by program and ranks; files that hold access errors are left out."""
    runs: dict[str, dict[int, list[Reading]]] = {}
    for file in sorted(folder.glob("*Rank*.txt")):
        program, ranks = re.findall(r"^(\w+)-\w+Rank(\d+)-", file.name)[0]
        try:
            tables = [each for each in READERS["likwid"].read(file) if each.counters is not None]
        except InputError:
            continue
        if all("time" in each.counters for each in tables if each.counters is not None) and tables:
            runs.setdefault(program, {})[int(ranks)] = tables
    return runs


def experiment(path: Path, runs: Iterable[tuple[int, list[Reading]]], columns: tuple[str, ...] | None) -> Experiment:
    """An experiment of some runs, with all that was counted or some `columns` of it."""
    made = Experiment.create(path, path.name, ["ranks"])
    for ranks, tables in sorted(runs, key=lambda run: run[0]):
        for repetition, reading in enumerate(tables):
            table = reading.counters
            assert table is not None
            kept = table if columns is None else table[list(columns)]
            made.add(Run({"ranks": float(ranks)}, repetition, "likwid", environment=reading.environment), kept)
    return made


def slowest(tables: list[Reading]) -> list[float]:
    """Seconds of the slowest rank, of each repetition."""
    return [float(table.counters["time"].max()) for table in tables if table.counters is not None]


def tasks(data: Path, split: Split) -> Iterator[tuple[Task, dict[int, list[Reading]]]]:
    """A task of each program, and the runs that it is trained on."""
    for program, runs in sorted(readings(data / "counters" / split.folder / "MEM_DP").items()):
        train = {ranks: tables for ranks, tables in runs.items() if split.trained(ranks)}
        held = {ranks: tables for ranks, tables in runs.items() if split.asked(ranks)}
        if len(train) < 3 or not held:
            continue
        pairs = [[((float(r),), slowest(tables)) for r, tables in sorted(each.items())] for each in (train, held)]
        yield make(split.name, program, "spechpc", ("ranks",), *pairs), train


def answer(task: Task, runs: dict[int, list[Reading]], split: Split, counted: bool, described: bool) -> Answer:
    """Ranksight's answer."""
    with tempfile.TemporaryDirectory() as folder:
        made = experiment(Path(folder) / task.name, runs.items(), None if counted else TIMES)
        try:
            model = fit(made, platform=split.platform if described else None)
            predicted = model.predict_at(task.targets, metrics=["time"])
        except RanksightError as error:
            return plain(np.full(len(task.targets), np.nan), 1, "", reason=str(error))
    found = [each for each in predicted.answers if each.kernel is None]
    value, lower, upper = (np.array([getattr(a, end) for a in found]) for end in ("value", "lower", "upper"))
    flagged = np.array([not a.ok for a in found])
    return Answer(value, lower, upper, flagged, tuple(a.reason for a in found), np.full((1, 2), np.nan), "")


def with_residuals(task: Task, said: Answer) -> Answer:
    """The answer of `a x^b + c` with the interval of its relative residuals at the runs; those of n runs with three
    coefficients have n - 3 degrees of freedom, at least one."""
    at_runs = Power().answer([make("", "", "", task.parameters, _pairs(task), [(p, [1.0]) for p in task.points])])[0]
    residual = np.log(np.nanmean(task.values, axis=1) / at_runs.value)
    freedom = max(len(residual) - 3, 1)
    scatter = np.hypot(np.sqrt((residual**2).sum() / freedom), LEAST_NOISE)
    half = float(special.stdtrit(freedom, (1 + LEVEL) / 2)) * scatter
    lower, upper = said.value * np.exp(-half), said.value * np.exp(half)
    return Answer(said.value, lower, upper, said.flagged, said.reasons, said.exponents, said.formula)


def _pairs(task: Task) -> list[tuple[Array, Array]]:
    return list(zip(task.points, task.values, strict=True))


def row(name: str, given: list[tuple[Task, Answer]]) -> list[object]:
    """A row of :data:`HEAD`."""
    error = np.concatenate([a.value / t.measured - 1 for t, a in given])
    size = np.where(np.isfinite(error), np.abs(error), np.inf)
    last = np.array([abs(a.value[-1] / t.measured[-1] - 1) for t, a in given])
    sure = ~np.concatenate([a.flagged for _, a in given])
    shown: list[object] = [name, 100 * sure.mean(), 100 * np.median(size), 100 * size.max(), 100 * np.median(last)]
    shown.append(100 * float((error[np.isfinite(error)] > 0).mean()))
    width = np.concatenate([a.upper / a.lower for _, a in given])
    if not (np.isfinite(width) & sure).any():
        return [*shown, *[float("nan")] * 3]
    inside = np.concatenate([(a.lower <= t.measured) & (t.measured <= a.upper) for t, a in given])
    score = float(np.mean([interval_score(t, a) for t, a in given]))
    return [*shown, 100 * inside[sure].mean(), np.median(width[sure]), score]


HEAD = ("", "answered, %", "median error, %", "largest, %", "median at the farthest, %", "too high, %", "inside, %",
        "width", "interval score")  # fmt: skip
"""Columns of a table: errors are of all targets, *inside* and *width* (ratio of interval ends) of those answered."""


def each_target(task: Task, given: Answer) -> str:
    """Errors in percent at the targets one after the other, in italics outside of the interval."""
    inside = (given.lower <= task.measured) & (task.measured <= given.upper)
    errors = 100 * (given.value / task.measured - 1)
    return ", ".join(f"{e:+.0f}" if yes else f"*{e:+.0f}*" for e, yes in zip(errors, inside, strict=True))


def table(data: Path, split: Split) -> str:
    """The tables of a split: its errors, and over nodes those of each program."""
    held = list(tasks(data, split))
    rows, programs = [], [[task.name] for task, _ in held]
    for metrics, described in KNOWN:
        given = [(task, answer(task, runs, split, metrics == "counters", described)) for task, runs in held]
        rows.append(row(f"ranksight, {metrics}" + (", platform" if described else ""), given))
        for line, pair in zip(programs, given, strict=True):
            line.append(each_target(*pair))
    methods: tuple[Method, ...] = (Power(), LastPower(), Ideal(), Last())
    for method in methods:
        given = [(task, a) for (task, _), a in zip(held, method.answer([t for t, _ in held]), strict=True)]
        if isinstance(method, Power):
            given = [(task, with_residuals(task, a)) for task, a in given]
        rows.append(row(method.name, given))
    shown = f"### {split.name}\n\n" + markdown(HEAD, rows)
    if split.folder != SMALL:
        return shown
    heads = [metrics + (", platform" if described else "") for metrics, described in KNOWN]
    return f"{shown}\n\nErrors in % one by one, in italics outside of the interval:\n\n" + markdown(
        ["program", *heads], programs
    )


def run(settings: Settings) -> str:
    """The tables."""
    if not settings.data.is_dir():
        raise Skipped("the folder of real measurements, ../shared/data, is not next to this repository")
    return (
        "Programs of SPEChpc 2021, counted as a whole by LIKWID, one run at each rank count; asked for is the time of "
        "the slowest rank. `a x^b + c` has the interval of its residuals at the runs.\n\n"
        + "\n\n".join(table(settings.data, split) for split in SPLITS)
    )
