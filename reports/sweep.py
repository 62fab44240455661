"""A model asked along one parameter, from where it was measured to a target: what plots and reports draw.

Everything is asked for once and shared: the whole program's time with its interval, its parts by kernel, and every
series of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import numpy as np

from ranksight.analysis.diagnosis.causes import CAUSES, causes_of, seconds_of
from ranksight.analysis.diagnosis.diagnosing import Diagnosis, diagnose
from ranksight.analysis.diagnosis.evidence import Evidence
from ranksight.analysis.diagnosis.gathering import gather
from ranksight.core.arrays import Array, Mask
from ranksight.core.errors import InputError, meant
from ranksight.core.experiment import WHOLE
from ranksight.core.records import dataclass
from ranksight.model.application.breakdown import Breakdown
from ranksight.model.fitted_model import Model
from ranksight.model.largest import larger, largest_values
from ranksight.model.machine.transfer import measured_platform
from ranksight.model.process.solve import dividing
from ranksight.model.uncertainty.forecast import OK, Forecast
from ranksight.model.uncertainty.rows import choose

RANKS = "ranks"
TOO_SMALL = "the network has fewer nodes than that needs"
REACH, ELSE = (1.0, 2.0, 4.0, 8.0, 16.0), (1.0, 2.0)
"""Times the largest measured value among which the target is chosen where none is named, of ranks and of other
parameters: twice the side of a domain is eight times the work."""


@dataclass(frozen=True)
class Beyond:
    """The nearest value beyond the target at which the data no longer support an answer.

    `value`: of the parameter. `low` and `high`: ends of the interval there; NaN where there is none.
    """

    value: float
    low: float
    high: float
    reason: str


@dataclass(frozen=True)
class Sweep:
    """Answers of a model at k values of one parameter, the others held."""

    model: Model
    along: str  # the parameter that varies
    values: Array  # (k,): its values, rising, or falling to a finer mesh; the last is the target
    held: Mapping[str, float]  # the other parameters
    points: Array  # (k, m)
    said: Forecast  # of every series of the model
    total: Forecast  # time of the whole program, one row; NaN where the model has no time
    breakdown: Breakdown  # what the time is made of, by kernel
    level: float  # probability of the intervals
    beyond: Beyond | None = None
    """Where the data end; None where a target was named, or the data support the farthest that is tried."""

    @property
    def marks(self) -> list[str]:
        """A question mark with a blank at each value at which the data are insufficient for the program's time."""
        return ["" if status == OK else " ?" for status in self.total.status[0].tolist()]

    @property
    def legend(self) -> str:
        """What :attr:`marks` mean, to end a caption with; empty where there are none."""
        return "; ?: insufficient data" if any(self.marks) else ""

    @property
    def machine_of_runs(self) -> str:
        """Name of the machine that the runs were on, where another is asked for; empty otherwise."""
        return measured_platform(self.model).name if self.model.equation.machine else ""

    @property
    def measured_range(self) -> str:
        """What the range of the runs is called."""
        return f"range measured on {self.machine_of_runs}" if self.machine_of_runs else "measured range"

    @property
    def supported(self) -> float | None:
        """The largest value up to which the data support the program's time; None where they do nowhere."""
        fine = (self.total.status[0] == OK) & np.isfinite(self.total.value[0])
        upto = np.flatnonzero(np.logical_and.accumulate(fine))
        return float(self.values[upto[-1]]) if len(upto) else None

    @cached_property
    def shown(self) -> Forecast:
        """Every series of the model, the program's time as it is predicted."""
        row = self.model.functions.rows.get((WHOLE, "time"))
        if row is None:
            return self.said
        return choose(self.said, self.total, np.array([row]), np.ones((1, len(self.values)), dtype=bool))

    @cached_property
    def evidence(self) -> Evidence:
        """What the model knows of its kernels at the points."""
        return gather(self.model, self.points, self.level, (self.said, self.breakdown))

    @cached_property
    def each(self) -> dict[str, Array]:
        """Seconds a rank of each part but ``others`` in each kernel, (K, k), as a diagnosis divides them."""
        return dict(zip(CAUSES, seconds_of(self.evidence, causes_of(self.evidence)), strict=True))

    @property
    def parts(self) -> dict[str, Array]:
        """Seconds of each part of :data:`ranksight.reports.palette.NAMES` over all kernels, (k,)."""
        return {**{name: seconds.sum(axis=0) for name, seconds in self.each.items()}, "others": self.evidence.others}

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """What is wrong at the target and on the way there; None without kernels' times."""
        if not self.timed:
            return None
        return diagnose(self.model, self.points[-1:], level=self.level)

    @property
    def timed(self) -> bool:
        """Whether the model predicts a time."""
        return "time" in self.model.fitted.metrics

    @property
    def trained(self) -> tuple[float, float]:
        """Smallest and largest measured value of the parameter, at the held values where they were measured."""
        column = _measured(self.model, self.along, self.held)
        return float(column.min()), float(column.max())

    @property
    def target(self) -> dict[str, float]:
        """The configuration at the end."""
        return {name: float(x) for name, x in zip(self.model.parameters, self.points[-1], strict=True)}

    @property
    def nearest(self) -> int:
        """Position of the last value on the way to the target that was measured, or is between those that were."""
        low, high = self.trained
        inside = (self.values >= low * (1 - 1e-9)) & (self.values <= high * (1 + 1e-9))
        return int(np.flatnonzero(inside)[-1]) if inside.any() else 0

    def where(self) -> str:
        """The parameters that are held, as people read them."""
        return ", ".join(place(name, value) for name, value in self.held.items())

    def places(self) -> list[str]:
        """The values of the parameter, as people read them."""
        return [place(self.along, float(value)) for value in self.values]


def axis_of(model: Model) -> str:
    """The parameter of the horizontal axis: ranks where they varied, otherwise the first that did."""
    varied = [name for at, name in enumerate(model.parameters) if len(np.unique(model.training[:, at])) > 1]
    if RANKS in varied or not varied:
        return RANKS if RANKS in model.parameters else model.parameters[0]
    return varied[0]


def sweep(
    model: Model,
    *,
    along: str | None = None,
    to: float | None = None,
    at: Mapping[str, float] | None = None,
    level: float = 0.9,
    count: int = 14,
) -> Sweep:
    """Ask a model along one parameter.

    Raises InputError when a parameter is unknown or a value is not positive.

    Parameters
    ----------
    along : str, optional
        The parameter; ``ranks`` where they varied, else the first that did.
    to : float, optional
        The target; when not given the farthest of :data:`REACH` times the largest measured problem that the data
        support.
    at : mapping of str to float, optional
        Values of the other parameters; that of the largest measured problem when not given.
    count : int
        Values between the smallest measured problem and the target, in addition to the measured ones.
    """
    along = axis_of(model) if along is None else along
    unknown = [name for name in (along, *(at or {})) if name not in model.parameters]
    if unknown:
        raise InputError(
            f"the model has no parameter {', '.join(unknown)}",
            meant(unknown[0], model.parameters) or f"its parameters are {', '.join(model.parameters)}",
        )
    most = {name: float(x) for name, x in zip(model.parameters, largest_values(model.training), strict=True)}
    free = following(model, along) - set(at or {})
    held = {name: float((at or {}).get(name, most[name])) for name in model.parameters if name not in {along, *free}}
    column = _measured(model, along, held)
    low, high = float(column.min()), float(column.max())

    def asked(values: Array) -> Array:
        rows = [[x if name == along else held.get(name, most[name]) for name in model.parameters] for x in values]
        return model.along_ties(np.array(rows)) if free else np.array(rows)

    beyond = None
    if to is None:
        farther = [larger(column[:, None], np.array([factor]))[0] for factor in (REACH if along == RANKS else ELSE)]
        end, beyond = _farthest(model, np.array(farther), asked, level)
    else:
        end = float(to)
    if not (np.isfinite(end) and end > 0):
        raise InputError(f"{along} is asked at {end:g}", "give a number above 0")
    if along == RANKS and (end < 1 or end % 1):
        raise InputError(f"ranks are asked at {end:g}", "give whole numbers of ranks, 1 or more")
    # A curve begins at the smallest problem and ends at the target.
    finer = bool(dividing(column[:, None])[0]) and end < high
    whole = along == RANKS or bool((np.append(model.training[:, model.parameters.index(along)], end) % 1 == 0).all())
    values = _values(column, high if finer else low, end, count, whole=whole)
    points = asked(values)
    said, broken = model.ask(points, level)
    return Sweep(model, along, values, held, points, said, model.whole_time(said, broken), broken, level, beyond)


def _farthest(
    model: Model, values: Array, asked: Callable[[Array], Array], level: float
) -> tuple[float, Beyond | None]:
    """The farthest of `values`, nearest first, up to which the data support the program's time, and the next; the first
    where they support none, the last where no time was measured."""
    if "time" not in model.fitted.metrics:
        return float(values[-1]), None
    points = asked(values)
    held = holding(model, points)
    total = model.whole_time(*model.ask(points[: max(1, int(held.sum()))], level))
    fine = (total.status[0] == OK) & np.isfinite(total.value[0])
    count = int(np.logical_and.accumulate(fine).sum())
    if count in (0, len(values)):
        return float(values[count - 1 if count else 0]), None
    if count == len(fine):
        return float(values[count - 1]), Beyond(float(values[count]), np.nan, np.nan, TOO_SMALL)
    low, high = (float(end[0, count]) for end in (total.lower, total.upper))
    return float(values[count - 1]), Beyond(float(values[count]), low, high, str(total.reason[0, count]))


def holding(model: Model, points: Array) -> Mask:
    """Whether the network of the model has nodes for the ranks at `points` (k, m)."""
    network = model.equation.network
    if not network or network.topology is None or RANKS not in model.parameters:
        return np.ones(len(points), dtype=bool)
    nodes = np.ceil(points[:, model.parameters.index(RANKS)] / network.ranks_per_node)
    return np.asarray(nodes <= network.topology.nodes)


def following(model: Model, along: str) -> set[str]:
    """Parameters that varied only with the one of the axis, and follow it."""
    ties = model.fitted.ties
    if along != RANKS:
        return set()
    tied = [ties[:, 1 + at].any() for at in range(len(model.parameters))]
    return {name for name, yes in zip(model.parameters, tied, strict=True) if yes and name != along}


def _measured(model: Model, along: str, held: Mapping[str, float]) -> Array:
    """Measured values of a parameter: those at the held values of the others, all where there are none."""
    at = model.parameters.index(along)
    same = np.ones(len(model.training), dtype=bool)
    for name, value in held.items():
        same &= np.isclose(model.training[:, model.parameters.index(name)], value)
    return np.asarray(model.training[same, at] if same.any() else model.training[:, at])


def _values(column: Array, low: float, end: float, count: int, whole: bool) -> Array:
    """Measured values from `low` to the end and others between, evenly by their logarithm where all are positive;
    falling where `low` is the coarsest mesh.

    A target that is a power of two beyond measured ranks is reached through powers of two: they are what people run.
    """
    finer = low > end and low >= column.max()
    start = low if finer else min(low, end)
    if start <= 0:
        between = np.linspace(start, end, count)
    else:
        doublings = np.log2(end / start)
        if whole and abs(doublings - round(doublings)) < 1e-9 and doublings < 2 * count:
            between = start * 2.0 ** np.arange(round(doublings) + 1)
        else:
            between = np.geomspace(start, end, count)
    if whole:
        between = np.maximum(np.round(between), 1.0)
    measured = np.unique(column[column >= end] if finer else column[column <= end])
    if len(measured) > count:  # those that stand for all
        measured = measured[np.unique(np.linspace(0, len(measured) - 1, count).astype(int))]
    values = np.concatenate([measured, between, [end]])
    # Rounding makes no two values of one.
    _, first = np.unique(values.astype(np.float32) if finer else values, return_index=True)
    return np.asarray(values[first][:: -1 if finer else 1])


def place(name: str, value: float) -> str:
    """One parameter's value as people read it: ``1,024 ranks``, ``size 24``."""
    number = f"{value:,.0f}" if float(value).is_integer() else f"{value:.4g}"
    return f"{number} rank{'' if value == 1 else 's'}" if name == RANKS else f"{name} {number}"


def sufficient(forecast: Forecast) -> bool:
    """Whether the data suffice for the answer of the first series at the last point."""
    return bool(forecast.status[0, -1] == OK and np.isfinite(forecast.value[0, -1]))
