"""What functions are of: the parameters of the runs, or others that are computed from them.

A user who knows that a program depends on nx, ny, nz and ranks through x = nx*ny*nz/ranks says so: x stands in place of
the parameters that its formula names, except ranks, so that functions are searched over (ranks, x). These need fewer
runs (x is the work per rank of Ding et al. 2018). Runs with the same values become repetitions of one configuration,
and how far they differ shows as scatter. Questions are asked in the runs' own parameters or in these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment
from ranksight.core.formula import Formula, read_formula
from ranksight.core.records import dataclass
from ranksight.model.formula import check_names, evaluate
from ranksight.model.plaindata import Stored
from ranksight.model.questions import combinations
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
