"""What a run costs: core-hours = seconds x ranks / 3600, for every repetition and collector.

The seconds are predicted: where an experiment knows how long its runs took, from that, collector by collector (a
simulation takes 50 times as long as the program); else from the model's own time of the whole program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ranksight.errors import InsufficientError
from ranksight.experiment import WHOLE, Experiment
from ranksight.model.fitting.fitting import fit_series
from ranksight.model.model import Model
from ranksight.model.planning.goal import total_of
from ranksight.model.series.series import Series

Array = NDArray[np.float64]

TIMES = ("wall_time", "time", "cpu_time", "compute_cpu_time", "compute_time", "time_inclusive")
"""Metrics that tell how long a run takes, the best first."""
HOUR = 3600.0


@dataclass(frozen=True)
class Cost:
    """Seconds of a run and its repetitions.

    Attributes
    ----------
    seconds : callable
        Points (k, m) to seconds (c, k) of one run under each of c collectors; NaN where they cannot be told.
    deterministic : (c,) bool
        Collectors that need no repetition.
    basis : str
        What the seconds come from, for people.
    ranks : int or None
        Column of the ranks; without it a run is counted as one core.
    """

    seconds: Callable[[Array], Array]
    deterministic: NDArray[np.bool_]
    basis: str
    ranks: int | None

    def core_hours(self, points: Array, repetitions: int) -> Array:
        """Core-hours (k,) of all runs at `points`, in all collectors."""
        each = self.seconds(points)
        times = np.where(self.deterministic, 1, repetitions)
        cores = points[:, self.ranks] if self.ranks is not None else 1.0
        return np.asarray((times[:, None] * each).sum(axis=0) * cores / HOUR)


def cost_of(model: Model, experiment: Experiment | None = None) -> Cost:
    """How to cost runs of the program that a model is of.

    Parameters
    ----------
    experiment : Experiment, optional
        Its runs' wall times are used where all collectors have them.

    Raises
    ------
    InsufficientError
        When neither the experiment nor the model knows how long anything takes.
    """
    ranks = model.parameters.index("ranks") if "ranks" in model.parameters else None
    measured = None if experiment is None else _of_runs(experiment, ranks)
    if measured is not None:
        return measured
    name = next((each for each in TIMES if each in model.fitted.metrics), None)
    if name is None:
        raise InsufficientError(
            "nothing tells how long a run takes: the model has no time",
            "give the experiment itself, or import a time with the counters",
        )
    every = [row for (_, metric), row in model.functions.rows.items() if metric == name]
    total = total_of(model, name)

    def plain(points: Array) -> Array:
        each = model.functions.predict(points).value[every]
        both = np.nansum(each, axis=0) if total else np.nanmax(each, axis=0)
        return np.asarray(both * _unvaried(model, points))

    def seconds(points: Array) -> Array:
        if not total:
            return plain(points)[None]
        given = model.predict_at(points, kernels=[WHOLE], metrics=[name])
        said = np.array([each.value for each in given.answers if (each.kernel or WHOLE) == WHOLE])
        unknown = ~(said > 0)
        if unknown.any():
            said[unknown] = plain(points[unknown])
        return said[None]

    never = [model.parameters[at] for at in _fixed(model)]
    basis = f"predicted {name}" if total else f"largest predicted {name}"
    if never:
        basis += f" (taken to grow as {' and '.join(never)}, never varied)"
    return Cost(seconds, np.array([False]), basis, ranks)


def _fixed(model: Model) -> list[int]:
    """Columns of the parameters that took one value, ranks aside."""
    return [at for at, name in enumerate(model.parameters) if name != "ranks" and np.ptp(model.training[:, at]) == 0]


def _unvaried(model: Model, points: Array) -> Array:
    """Work at `points` over that at the one value of parameters that never varied, taken to be proportional."""
    factor = np.ones(len(points))
    for at in _fixed(model):
        if model.training[0, at] > 0:
            factor = factor * np.maximum(points[:, at], 0.0) / model.training[0, at]
    return factor


def _of_runs(experiment: Experiment, ranks: int | None) -> Cost | None:
    """From the runs' own wall times; None where some collector's are missing or too few to be fitted."""
    runs = [run for run in experiment.runs if run.state == "complete"]
    if not runs or any(run.wall_time is None or not run.wall_time > 0 for run in runs):
        return None
    names = list(dict.fromkeys(run.collector for run in runs))
    places: dict[tuple[float, ...], int] = {}
    cells: dict[tuple[int, int], list[float]] = {}
    for run in runs:
        place = places.setdefault(tuple(float(run.configuration[p]) for p in experiment.parameters), len(places))
        cells.setdefault((names.index(run.collector), place), []).append(float(run.wall_time or 0.0))
    width = max(map(len, cells.values()))
    values = np.full((len(names), len(places), width), np.nan)
    for (row, place), found in cells.items():
        values[row, place, : len(found)] = found
    if any(np.isfinite(values[row]).any(axis=1).sum() < 3 for row in range(len(names))):
        return None
    points = np.array(list(places), dtype=np.float64)
    series = Series(experiment.parameters, points, values, tuple(names), ("wall_time",) * len(names))
    fitted = fit_series(series)
    often = {name: max(len(found) for (row, _), found in cells.items() if names[row] == name) for name in names}
    most = max(often.values())
    once = np.array([often[name] == 1 and most > 1 for name in names])
    told = f"wall time of the runs made, {', '.join(names)}"
    return Cost(lambda at: fitted.predict(at).value, once, told, ranks)
