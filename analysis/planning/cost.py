"""What a run costs: core-hours = seconds x ranks x threads / 3600, for every repetition; where neither is a parameter,
the processes, cores or nodes that one counts.

The seconds are the model's time t of the whole program, and where an experiment knows how long its runs took under the
collector that slowed them least, ``a + b t``: a >= 0 for starting and ending, b >= 1 for what the collector adds. Where
no time of the program is modelled, they are a function of how long its runs took. What all collectors together took in
place of that one (a simulation takes 50 times as long as the program) is a factor of its own, so that a run and the
target have prices of one kind. Runs whose ranks shared cores took so much longer, with as many core-hours: their time
is divided by the ranks on a core.

They are not known, least of all far out. With sigma the standard deviation of their logarithm, what is counted is their
expectation ``median * exp(sigma^2 / 2)`` (that of a lognormal law): a run that may take much longer costs more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ranksight.analysis.planning.goal import total_of
from ranksight.core import special
from ranksight.core.arrays import Array
from ranksight.core.errors import InsufficientError
from ranksight.core.experiment import Experiment
from ranksight.core.mpi import RANK_COUNTS
from ranksight.core.records import dataclass
from ranksight.core.units import HOUR
from ranksight.model.fitted_model import Model
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.series.computation import DIVIDERS
from ranksight.model.series.reducing import Series

TIMES = ("time", "wall_time", "cpu_time", "compute_cpu_time", "compute_time", "time_inclusive")
"""Metrics for the duration of a run, the best first: what every verb calls the time of the program leads."""
PLACES = ("cores", "nodes")
"""Parameters that a run's cores are proportional to, where none counts its ranks."""
FEWEST = 3
"""Configurations whose wall time is known that a function of it is fitted to."""
LEVEL = 0.9
"""Probability of the intervals of seconds."""
MOST_SIGMA = float(np.log(2.0))
"""Largest standard deviation of the logarithm of seconds that is believed: beyond it an answer is insufficient."""


Seconds = Callable[[Array], tuple[Array, Array]]
"""Points (k, m) to the median and upper end at :data:`LEVEL` of the seconds (k,) of one run; NaN where not known."""


@dataclass(frozen=True)
class Price:
    """What k runs cost."""

    seconds: Array  # (k,): expected, of one run of the program
    core_hours: Array  # (k,): expected, of all repetitions
    upper: Array  # (k,): core-hours that they stay below with probability 95 %


@dataclass(frozen=True)
class Cost:
    """Seconds of a run and its repetitions."""

    seconds: Seconds
    basis: str  # what the seconds come from, for people
    occupied: tuple[int, ...]  # columns whose product is the cores of a run; one core where there are none
    collectors: tuple[str, ...] = ()
    """Those that runs were made under, where more than one or a slower one than the basis was used."""
    factor: float = 1.0
    """Time of a run under all of them over that of the program's own run, the median of the runs made."""

    def of(self, points: Array, repetitions: int) -> Price:
        """The price of runs of the program at `points` (k, m)."""
        median, upper = self.seconds(points)
        with np.errstate(all="ignore"):
            sigma = np.log(upper / median) / float(special.ndtri((1 + LEVEL) / 2))
        sigma = np.clip(np.where(np.isfinite(sigma), sigma, MOST_SIGMA), 0.0, MOST_SIGMA)
        expected = median * np.exp(sigma**2 / 2)
        upper = median * np.exp(sigma * float(special.ndtri((1 + LEVEL) / 2)))
        each = repetitions * np.maximum(points[:, list(self.occupied)], 0.0).prod(axis=1) / HOUR
        return Price(expected, each * expected, each * upper)


def cost_of(model: Model, experiment: Experiment | None = None) -> Cost:
    """How to cost runs of the program that a model is of.

    `experiment`: its runs' wall times are used where they are known. Raises InsufficientError when neither the
    experiment nor the model knows how long anything takes.
    """
    occupied, counted = _occupied(model.parameters)
    measured = None if experiment is None else _measured(experiment)
    name = next((each for each in TIMES if each in model.fitted.metrics), None)
    if measured is not None:
        program = None if name is None or not total_of(model, name) else _predicted(model, name)
        seconds = measured.fitted() if program is None else measured.on_top_of(program)
        return Cost(seconds, measured.basis + counted, occupied, measured.collectors, measured.factor)
    if name is None:
        raise InsufficientError(
            "the duration of a run is not known: the model has no time",
            "give the experiment itself, or import a time with the counters",
        )
    total = total_of(model, name)
    never = [model.parameters[at] for at in _fixed(model)]
    basis = f"predicted {name}" if total else f"largest predicted {name}"
    if never:
        basis += f" (taken to grow as {' and '.join(never)}, never varied)"
    return Cost(_predicted(model, name), basis + counted, occupied)


def _occupied(parameters: Sequence[str]) -> tuple[tuple[int, ...], str]:
    """Columns whose product is the cores of a run, and what is counted as a core where none is ranks or threads."""
    named = tuple(at for at, name in enumerate(parameters) if name in DIVIDERS)
    if named:
        return named, ""
    folded = [name.casefold() for name in parameters]
    counting = next((at for at, name in enumerate(folded) if name in RANK_COUNTS), None)
    counting = next((folded.index(name) for name in PLACES if name in folded), None) if counting is None else counting
    if counting is None:
        return (), ""
    return (counting,), "" if folded[counting] == "cores" else f", each of the {parameters[counting]} counted as a core"


def _predicted(model: Model, name: str) -> Seconds:
    """The model's time `name` of the whole program; of its largest kernel where they do not add up."""
    every = [row for (_, metric), row in model.functions.rows.items() if metric == name]
    total = total_of(model, name)

    def plain(points: Array) -> tuple[Array, Array]:
        each = model.functions.predict(points).at(LEVEL)
        combine = np.nansum if total else np.nanmax
        grown = _unvaried(model, points)
        median, upper = (combine(part[every], axis=0) * grown for part in (each.value, each.upper))
        return np.asarray(median), np.asarray(upper)

    def seconds(points: Array) -> tuple[Array, Array]:
        whole = model.programs(points, [name], LEVEL).get(name) if total else None
        if whole is None:
            return plain(points)
        median, upper = whole.value[0].copy(), whole.upper[0].copy()
        unknown = ~(median > 0)
        if unknown.any():
            median[unknown], upper[unknown] = plain(points[unknown])
        return median, upper

    return seconds


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


@dataclass(frozen=True)
class _Runs:
    """How long the runs of an experiment took under the collector that slowed them least."""

    parameters: tuple[str, ...]
    points: Array  # (n, m)
    walls: Array  # (n, r): seconds; NaN where there is no further run
    basis: str
    collectors: tuple[str, ...]
    factor: float

    def fitted(self) -> Seconds:
        """A function of the runs' own times."""
        names = (self.basis,), ("wall_time",)
        fitted = fit_series(Series(self.parameters, self.points, self.walls[None], *names))

        def seconds(points: Array) -> tuple[Array, Array]:
            predicted = fitted.predict(points).at(LEVEL)
            return predicted.value[0], predicted.upper[0]

        return seconds

    def on_top_of(self, program: Seconds) -> Seconds:
        """What the program takes and what its runs took besides, ``a + b t``; a function of the runs' own times where
        the program's is not known at enough of them."""
        from scipy.optimize import nnls

        wall, time = np.nanmedian(self.walls, axis=1), program(self.points)[0]
        known = time > 0
        if known.sum() < FEWEST:
            return self.fitted()
        wall, time = wall[known], time[known]
        start, added = nnls(np.column_stack([1 / wall, time / wall]), np.maximum(1 - time / wall, 0.0))[0]
        spread = np.exp(np.std(np.log(wall / (start + (1 + added) * time))) * special.ndtri((1 + LEVEL) / 2))

        def seconds(points: Array) -> tuple[Array, Array]:
            median, upper = program(points)
            whole = start + (1 + added) * median
            return whole, whole * np.exp(np.hypot(np.log(upper / median), np.log(spread)))

        return seconds


def _measured(experiment: Experiment) -> _Runs | None:
    """The runs' own wall times, of the collector that slowed them least; None where too few are known."""
    runs = [run for run in experiment.runs if run.state == "complete" and (run.wall_time or 0.0) > 0]
    names = sorted({run.collector for run in runs})
    places: dict[tuple[float, ...], int] = {}
    cells: dict[tuple[int, int], list[float]] = {}
    for run in runs:
        place = places.setdefault(tuple(float(run.configuration[p]) for p in experiment.parameters), len(places))
        # Ranks that shared a core took as much longer: a run is counted as on a core a rank, with as many core-hours.
        cells.setdefault((names.index(run.collector), place), []).append(float(run.wall_time or 0.0) / run.sharing)
    middle = np.full((len(names), len(places)), np.nan)
    for where, runs_there in cells.items():
        middle[where] = np.median(runs_there)
    enough = np.isfinite(middle).sum(axis=1) >= FEWEST
    if not enough.any():
        return None
    shared = middle[:, np.isfinite(middle).all(axis=0)]
    judged = shared if shared.size else middle
    slowness = np.where(enough, np.nanmean(np.log(judged), axis=1), np.inf)
    fastest = int(np.argmin(slowness))
    width = max(len(runs_there) for (row, _), runs_there in cells.items() if row == fastest)
    walls = np.full((len(places), width), np.nan)
    for (row, place), runs_there in cells.items():
        if row == fastest:
            walls[place, : len(runs_there)] = runs_there
    known = np.isfinite(walls).any(axis=1)
    points = np.array(list(places), dtype=np.float64)[known]
    factor = float(np.median(shared.sum(axis=0) / shared[fastest])) if shared.size else 1.0
    basis = f"wall time of the program's own runs ({names[fastest]})"
    if any(run.crowded for run in runs if run.collector == names[fastest]):
        basis += ", as if no ranks had shared a core"

    collectors = tuple(names) if len(names) > 1 else ()
    return _Runs(experiment.parameters, points, walls[known], basis, collectors, factor)
