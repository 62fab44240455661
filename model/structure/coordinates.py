"""What functions are of: the parameters of the runs, or others that are computed from them.

A user who knows that a program depends on nx, ny, nz and ranks through x = nx*ny*nz/ranks says so: x stands in place of
the parameters that its formula names, except ranks, so that functions are searched over (ranks, x). These need fewer
runs (x is the work per rank of Ding et al. 2018). Runs with the same values become repetitions of one configuration,
and how far they differ shows as scatter. Questions are asked in the runs' own parameters or in these.

Configurations are asked for by the values of parameters, kernels and metrics by name.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.dims import MOST_RANKS
from ranksight.core.errors import InputError, QuestionError, meant
from ranksight.core.experiment import Experiment
from ranksight.core.formula import Formula, read_formula
from ranksight.core.records import dataclass
from ranksight.model.formula import check_names, evaluate
from ranksight.model.plaindata import Stored
from ranksight.model.series.computation import DIVIDERS, WORK_PER_RANK

RANKS = "ranks"
DIGITS = 9
"""Significant digits of a computed value: what differs by rounding is the same configuration."""


@dataclass(frozen=True)
class Coordinates(Stored):
    """Parameters computed from those of the runs; false where none is (:data:`AS_MEASURED`)."""

    given: tuple[str, ...]  # parameters of the runs
    formulas: Mapping[str, str]  # name of each computed parameter, and its formula
    seen: Array  # (n, len(given)): configurations that were measured

    @classmethod
    def of(
        cls, experiment: Experiment, derived: Sequence[str] | Mapping[str, str], work: str | None = None
    ) -> Coordinates:
        """Read ``NAME=FORMULA`` for the runs of an experiment, and the formula of the work that a rank has.

        Raises InputError when a formula cannot be read, names what is not a parameter, or has no positive value at a
        configuration.
        """
        formulas = dict(derived) if isinstance(derived, Mapping) else _named(derived)
        if work is not None:
            if WORK_PER_RANK in (*formulas, *experiment.parameters):
                what = f"{WORK_PER_RANK} is a parameter already"
                raise InputError(what, f"leave --work out: a parameter named {WORK_PER_RANK} is the work of a rank")
            formulas[WORK_PER_RANK] = work
        if not formulas:
            return AS_MEASURED
        points = [run.point(experiment.parameters) for run in experiment.runs]
        seen = np.unique(np.array(points, dtype=np.float64).reshape(-1, len(experiment.parameters)), axis=0)
        coordinates = cls(experiment.parameters, formulas, seen)
        coordinates.points(seen)
        return coordinates

    def __post_init__(self) -> None:
        for name, formula in self._read.items():
            if name in self.given or not name.isidentifier():
                raise InputError(f"{name!r} cannot name a derived parameter", "give it a name of its own, such as x")
            check_names(formula, self.given, name)

    def __bool__(self) -> bool:
        return bool(self.formulas)

    @cached_property
    def _read(self) -> dict[str, Formula]:
        return {name: read_formula(text, f"parameter '{name[:40]}'") for name, text in self.formulas.items()}

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """What functions are of: ranks and what no formula names, then what is computed.

        Where the work per rank is stated, threads are kept as well: both say how many cores are at work.
        """
        dividers = set(DIVIDERS) if WORK_PER_RANK in self.formulas else {RANKS}
        replaced = {name for formula in self._read.values() for name in formula.names} - dividers
        return (*(name for name in self.given if name not in replaced), *self.formulas)

    def points(self, points: Array) -> Array:
        """Configurations (k, len(given)) of runs in these parameters, (k, m).

        Raises InputError when a computed value is not positive.
        """
        columns = {name: points[:, at] for at, name in enumerate(self.given)}
        for name, formula in self._read.items():
            value = evaluate(formula, points, self.given, name)
            columns[name] = np.array([float(f"{x:.{DIGITS}g}") for x in value])
        return np.stack([columns[name] for name in self.parameters], axis=1)

    def of_runs(self, values: Mapping[str, float | Sequence[float]]) -> Array | None:
        """All combinations of values asked for in the runs' parameters, (k, len(given)).

        None where these are the model's, or computed ones are asked for.
        """
        computed, replaced = set(values) & set(self.formulas), set(values) & (set(self.given) - set(self.parameters))
        if not self or (computed and not replaced):
            return None
        return combinations(self.given, self.seen, values)

    def view(self, experiment: Experiment) -> Experiment:
        """The experiment over these parameters; nothing on disk changes.

        Raises InputError when it is over other parameters than those of the runs that these were made for.
        """
        if not self or experiment.parameters == self.parameters:
            return experiment
        if set(experiment.parameters) != set(self.given):
            raise InputError(
                f"{experiment.path} is over {', '.join(experiment.parameters)}, not {', '.join(self.given)}",
                "give the experiment that the model was fitted to, or another of the same command",
            )
        places: dict[tuple[float, ...], dict[tuple[tuple[float, ...], int], int]] = {}
        runs = []
        for run in experiment.runs:
            point_of_run = run.point(self.given)
            point = tuple(self.points(np.array([point_of_run]))[0].tolist())
            # Passes of one run by several collectors stay together.
            runs_there = places.setdefault(point, {})
            repetition = runs_there.setdefault((point_of_run, run.repetition), len(runs_there))
            runs.append(
                replace(run, configuration=dict(zip(self.parameters, point, strict=True)), repetition=repetition)
            )
        return Experiment(experiment.path, experiment.application, self.parameters, runs)

    def remark(self) -> str:
        """The note that names the formulas."""
        return "; ".join(f"{name} is {text}" for name, text in self.formulas.items())

    def _fits(self) -> bool:
        return self.seen.ndim == 2 and self.seen.shape[1] == len(self.given) and bool(np.isfinite(self.seen).all())


AS_MEASURED = Coordinates((), {}, np.empty((0, 0)))
"""Where functions are of the parameters of the runs."""


def _named(derived: Sequence[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    for given in derived:
        name, equals, text = given.partition("=")
        name = name.strip()
        if not equals or not text.strip():
            raise InputError(f"{given!r} names no formula", "write NAME=FORMULA, such as 'x=size^3/ranks'")
        if name in names:
            raise InputError(f"{name} is derived twice", "give one formula for each name")
        names[name] = text.strip()
    return names


MOST_ANSWERS = 10_000_000
NO_CLOCK = "fit with --clock HZ, or with --platform NAME of the machine that was measured: time = cycles / clock"
"""What helps where cycles were counted, no time was measured, and no clock is known."""


def combinations(parameters: Sequence[str], training: Array, values: Mapping[str, float | Sequence[float]]) -> Array:
    """All combinations of the parameters' values, (k, m); a value given twice is asked once.

    A parameter that took one value in `training` (n, m) may be left out. Raises InputError when a parameter is unknown,
    has no value (QuestionError) or one that is not finite, or there are too many combinations.
    """
    unknown = [name for name in values if name not in parameters]
    if unknown:
        raise InputError(
            f"the model has no parameter {', '.join(unknown)}",
            meant(unknown[0], parameters) or f"its parameters are {', '.join(parameters)}",
        )
    axes = []
    for at, name in enumerate(parameters):
        wanted = values.get(name)
        if wanted is None:
            seen = np.unique(training[:, at])
            if len(seen) != 1:
                raise QuestionError(
                    f"no value is given for the parameter {name}", f"give --{name} VALUE, or {name}=VALUE in Python"
                )
            wanted = float(seen[0])
        axes.append(_numbers(name, wanted))
    if np.prod([float(len(axis)) for axis in axes]) > MOST_ANSWERS:
        raise InputError("too many combinations are asked for", "ask for fewer values at once")
    return np.array(list(itertools.product(*axes)), dtype=np.float64).reshape(-1, len(parameters))


def above_zero(parameters: Sequence[str], training: Array, points: Array) -> None:
    """InputError where a parameter that was above zero in all runs, `training` (n, m), is asked at zero or below in
    `points` (k, m): no program runs there."""
    for name, measured, asked in zip(parameters, training.min(axis=0), points.min(axis=0), strict=True):
        if asked <= 0 < measured:
            raise InputError(f"{name} is asked at {asked:g}, and was above zero in all runs", "give a value above zero")


def whole_ranks(parameters: Sequence[str], points: Array, what: str, remedy: str) -> None:
    """InputError where `points` (n, m) have no whole number of ranks from 1 to :data:`MOST_RANKS`; `what` has a place
    for the first such number."""
    if "ranks" not in parameters:
        return
    ranks = points[:, parameters.index("ranks")]
    bad = ranks[~((ranks >= 1) & (ranks == np.round(ranks)))]
    if len(bad):
        raise InputError(what.format(f"{bad[0]:g}"), remedy)
    if len(more := ranks[ranks > MOST_RANKS]):
        raise InputError(what.format(f"{more[0]:g}"), f"give {MOST_RANKS:.0f} at most")


def _numbers(name: str, content: Any) -> list[float]:
    try:
        numbers = np.atleast_1d(np.asarray(content, dtype=np.float64))
    except (TypeError, ValueError, OverflowError):
        numbers = np.full(1, np.nan)
    if not numbers.size or not np.isfinite(numbers).all() or numbers.ndim > 1:
        what = f"parameter {name} is asked at {content!r}"
        raise InputError(what, f"give {name} a finite number or a plain list of them, such as {name}=[8, 16]")
    return list(dict.fromkeys(float(x) for x in numbers))


def known(kind: str, wanted: Sequence[str], held: Sequence[str]) -> None:
    """InputError with the nearest names where one of `wanted` is not among `held`."""
    for name in wanted:
        if name not in held:
            near = difflib.get_close_matches(name, dict.fromkeys(held), n=3)
            listed = ", ".join(near or list(dict.fromkeys(held))[:8])
            remedy = f"{'nearest' if near else 'it has'}: {listed}"
            clockless = kind == "metric" and name == "time" and "cycles" in held
            raise InputError(f"the model has no {kind} {name!r}", NO_CLOCK if clockless else remedy)
