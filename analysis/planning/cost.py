"""What a run costs: core-hours = seconds x ranks / 3600, for every repetition and collector.

The seconds are predicted: where an experiment knows how long its runs took, from that, collector by collector (a
simulation takes 50 times as long as the program); else from the model's own time of the whole program. Runs whose ranks
shared cores took so much longer, with as many core-hours: their time is divided by the ranks on a core.

They are not known, least of all far out. With sigma the standard deviation of their logarithm, what is counted is their
expectation ``median * exp(sigma^2 / 2)`` (that of a lognormal law): a run that may take much longer is dearer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ranksight.analysis.planning.goal import total_of
from ranksight.core.errors import InsufficientError
from ranksight.core.experiment import WHOLE, Experiment
from ranksight.model.fitting.fitting import fit_series
from ranksight.model.model import Model
from ranksight.model.series.series import Series

Array = NDArray[np.float64]

TIMES = ("wall_time", "time", "cpu_time", "compute_cpu_time", "compute_time", "time_inclusive")
"""Metrics for the duration of a run, the best first."""
HOUR = 3600.0
LEVEL = 0.9
"""Probability of the intervals of seconds."""
MOST_SIGMA = float(np.log(2.0))
"""Largest standard deviation of the logarithm of seconds that is believed: beyond it an answer is insufficient."""


@dataclass(frozen=True)
class Price:
    """What k runs cost.

    Attributes
    ----------
    seconds : (k,)
        Expected, of one run under all collectors.
    core_hours : (k,)
        Expected, of all repetitions.
    upper : (k,)
        Core-hours that they stay below with probability 95 %; of independent collectors no more than this.
    """

    seconds: Array
    core_hours: Array
    upper: Array


@dataclass(frozen=True)
class Cost:
    """Seconds of a run and its repetitions.

    Attributes
    ----------
    seconds : callable
        Points (k, m) to the median and upper end at :data:`LEVEL` of the seconds (c, k) of one run under each of c
        collectors; NaN where they are not known.
    deterministic : (c,) bool
        Collectors that need no repetition.
    basis : str
        What the seconds come from, for people.
    ranks : int or None
        Column of the ranks; without it a run is counted as one core.
    """

    seconds: Callable[[Array], tuple[Array, Array]]
    deterministic: NDArray[np.bool_]
    basis: str
    ranks: int | None

    def of(self, points: Array, repetitions: int) -> Price:
        """The price of runs at `points` (k, m), under all collectors."""
        median, upper = self.seconds(points)
        with np.errstate(all="ignore"):
            sigma = np.log(upper / median) / float(ndtri((1 + LEVEL) / 2))
        sigma = np.clip(np.where(np.isfinite(sigma), sigma, MOST_SIGMA), 0.0, MOST_SIGMA)
        expected = median * np.exp(sigma**2 / 2)
        upper = median * np.exp(sigma * float(ndtri((1 + LEVEL) / 2)))
        cores = points[:, self.ranks] if self.ranks is not None else np.ones(len(points))
        each = np.where(self.deterministic, 1, repetitions)[:, None] * cores / HOUR
        return Price(expected.sum(axis=0), (each * expected).sum(axis=0), (each * upper).sum(axis=0))


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
            "the duration of a run is not known: the model has no time",
            "give the experiment itself, or import a time with the counters",
        )
    every = [row for (_, metric), row in model.functions.rows.items() if metric == name]
    total = total_of(model, name)

    def plain(points: Array) -> tuple[Array, Array]:
        each = model.functions.predict(points, LEVEL)
        both = np.nansum if total else np.nanmax
        grown = _unvaried(model, points)
        median, upper = (both(part[every], axis=0) * grown for part in (each.value, each.upper))
        return np.asarray(median), np.asarray(upper)

    def seconds(points: Array) -> tuple[Array, Array]:
        if not total:
            median, upper = plain(points)
            return median[None], upper[None]
        given = model.predict_at(points, level=LEVEL, kernels=[WHOLE], metrics=[name])
        whole = [each for each in given.answers if (each.kernel or WHOLE) == WHOLE]
        median, upper = (np.array([getattr(each, end) for each in whole]) for end in ("value", "upper"))
        unknown = ~(median > 0)
        if unknown.any():
            median[unknown], upper[unknown] = plain(points[unknown])
        return median[None], upper[None]

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
        # Ranks that shared a core took as much longer: a run is counted as on a core a rank, with as many core-hours.
        cells.setdefault((names.index(run.collector), place), []).append(float(run.wall_time or 0.0) / run.sharing)
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
    basis_text = f"wall time of the runs made, {', '.join(names)}"
    if any(run.crowded for run in runs):
        basis_text += ", as if no ranks had shared a core"

    def seconds(points: Array) -> tuple[Array, Array]:
        said = fitted.predict(points, LEVEL)
        return said.value, said.upper

    return Cost(seconds, once, basis_text, ranks)
