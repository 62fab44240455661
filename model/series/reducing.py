"""Series: what the engine fits, many kernels and metrics over one set of configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.errors import InputError, nearest
from ranksight.core.experiment import Experiment, Run
from ranksight.core.metrics import Reduction, metric
from ranksight.core.mpi import communicates
from ranksight.core.records import dataclass
from ranksight.model.series.computation import THREADS
from ranksight.model.series.reduction import SENT, median, of_teams, reduced, reduction_of, traced
from ranksight.model.series.sampling import with_sampling

IN_MPI = "mpi_time"


class Keyed:
    """A dataclass whose `kernels` and `metrics` name its series; false where it has none."""

    kernels: tuple[str, ...]
    metrics: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.kernels)

    @cached_property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """Kernel and metric of each series."""
        return tuple(zip(self.kernels, self.metrics, strict=True))

    @cached_property
    def rows(self) -> Mapping[tuple[str, str], int]:
        """Index of each series by kernel and metric."""
        return {key: row for row, key in enumerate(self.keys)}

    @cached_property
    def of_messages(self) -> Mask:
        """Which series are of functions of MPI, or of the part of a kernel's time that is spent in them."""
        return np.array([communicates(kernel) or name == IN_MPI for kernel, name in self.keys], dtype=bool)

    def indices(self, keys: Sequence[tuple[str, str]]) -> Index:
        """Indices of series by kernel and metric."""
        return np.array([self.rows[key] for key in keys], dtype=np.intp)


NO_SAMPLES: Array = np.array(np.nan)
"""What a sample is worth where no value is made of samples."""


@dataclass(frozen=True)
class Series(Keyed):
    """Many series of values that share their configurations.

    Raises InputError when shapes do not match, a configuration appears twice, or a number is infinite.
    """

    parameters: tuple[str, ...]  # the m parameters, in the order of the columns of `points`
    points: Array  # (n, m): distinct configurations
    values: Array  # (s, n, r): value of every series at every configuration and repetition; NaN where there is none
    kernels: tuple[str, ...]  # of the s series
    metrics: tuple[str, ...]
    provenance: Mapping[str, str] = field(default_factory=dict)  # for each metric where its numbers come from
    hidden: Array = field(default_factory=lambda: np.empty(0))  # (n, h)
    """What else differed between the configurations, such as ranks and size where the parameter is work per rank: not
    fitted, but asking far outside of it widens the answer."""
    worth: Array = field(default_factory=lambda: NO_SAMPLES)  # (s, n, r)
    """What a sample is worth in the values that are made of samples (:mod:`ranksight.core.sampled`); NaN where a value
    is exact. A value of zero is then one that no sample fell on."""

    def __post_init__(self) -> None:
        points = np.ascontiguousarray(self.points, dtype=np.float64)
        values = np.ascontiguousarray(self.values, dtype=np.float64)
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "values", values)
        if points.ndim != 2 or points.shape[1] != len(self.parameters) or not self.parameters:
            raise InputError(f"points have the shape {points.shape}, not (n, {len(self.parameters)})")
        if len(set(self.parameters)) != len(self.parameters):
            raise InputError(f"parameters {', '.join(self.parameters)} name one twice")
        if (
            values.ndim != 3
            or values.shape[:2] != (len(self.kernels), len(points))
            or len(self.metrics) != len(self.kernels)
        ):
            raise InputError(
                f"values have the shape {values.shape}; {len(self.kernels)} kernels, {len(self.metrics)} metrics and "
                f"{len(points)} configurations need ({len(self.kernels)}, {len(points)}, repetitions)"
            )
        if not np.isfinite(points).all():
            raise InputError("a configuration holds a number that is not finite", "parameters are finite numbers")
        if len(points) and len(np.unique(points, axis=0)) != len(points):
            raise InputError("a configuration appears twice", "put its values into one configuration as repetitions")
        hidden, worth = (np.asarray(each, dtype=np.float64) for each in (self.hidden, self.worth))
        hidden = hidden if hidden.size else np.empty((len(points), 0))
        worth = worth if worth.ndim else np.broadcast_to(worth, values.shape)
        object.__setattr__(self, "hidden", hidden)
        object.__setattr__(self, "worth", worth)
        if hidden.ndim != 2 or len(hidden) != len(points) or not np.isfinite(hidden).all():
            raise InputError(
                f"hidden parameters have the shape {hidden.shape}, not ({len(points)}, h), or are not finite"
            )
        if worth.shape != values.shape or (worth <= 0).any() or np.isinf(worth).any():
            raise InputError(f"samples of {worth.shape} values have an impossible value")
        infinite = np.isinf(values)
        if infinite.any():
            at = int(np.argwhere(infinite)[0][0])
            raise InputError(
                f"{self.metrics[at]} of {self.kernels[at]!r} is infinite in a run",
                "correct the run, or leave the value out",
            )

    def __len__(self) -> int:
        return len(self.kernels)

    def select(self, which: Index | Mask) -> Series:
        """The series at `which` (indices or a mask), over the same configurations."""
        index = np.flatnonzero(which) if np.asarray(which).dtype == bool else np.asarray(which)
        return Series(
            self.parameters,
            self.points,
            self.values[index],
            tuple(self.kernels[i] for i in index),
            tuple(self.metrics[i] for i in index),
            self.provenance,
            self.hidden,
            self.worth[index],
        )

    def at(self, which: Index | Mask) -> Series:
        """The same series over the configurations `which` only."""
        return Series(
            self.parameters,
            self.points[which],
            self.values[:, which],
            self.kernels,
            self.metrics,
            self.provenance,
            self.hidden[which],
            self.worth[:, which],
        )

    @property
    def sampled(self) -> Mask:
        """Which series (s,) are made of samples."""
        return np.asarray(np.isfinite(self.worth).any(axis=(1, 2)))

    @property
    def samples(self) -> Array:
        """Samples behind each configuration (s, n); infinite where values are exact, NaN where there is none."""
        known = np.isfinite(self.values)
        each = np.where(known, np.where(np.isfinite(self.worth), self.values / self.worth, np.inf), 0.0)
        return np.where(known.any(axis=2), each.sum(axis=2), np.nan)


def series_from_experiment(
    experiment: Experiment,
    metrics: tuple[str, ...] | list[str] | None = None,
    over_ranks: Reduction | Mapping[str, Reduction] | None = None,
) -> Series:
    """Gather the counters of an experiment into series.

    Runs of one configuration and repetition by different collectors are joined: each contributes the kernels and
    metrics it has, and where two have the same one the first run in the experiment's order wins. Values of ranks are
    reduced; a value that its source had reduced already (:data:`~ranksight.core.experiment.ALL_RANKS`) is taken as it
    is, or times the ranks where a sum is asked for and its meaning (:mod:`ranksight.core.meaning`) is a rank's. Runs
    are read one at a time. Values made of samples are those of all of them (:mod:`ranksight.model.series.sampling`).
    Counts of ranks with several threads are means over cores (:func:`per_core`). What cannot be below zero, as a
    difference of two counts may have come out, is zero. `metrics`: all when not
    given. `over_ranks`: reduction over ranks; without it, each metric's own (:mod:`ranksight.core.metrics`). Raises
    InputError when the experiment has no runs or no such metric, or a reduction is unknown.
    """
    runs = [run for run in experiment.runs if run.state == "complete"]
    if not runs:
        raise InputError(f"{experiment.path} holds no complete run", "measure or import runs first")
    how = {name: reduction_of(name, over_ranks) for name in _wanted(experiment, metrics)}
    configurations, cells = _cells(experiment.parameters, runs)
    filled = _Values(len(configurations), 1 + max(repetition for _, repetition in cells))
    provenance: dict[str, str] = {}
    for place, runs_of in cells.items():
        for run in runs_of:
            for name, text in run.provenance.items():
                if name in how:
                    provenance.setdefault(name, text)
            for name, kernels, numbers in reduced(experiment, run, how):
                filled.fill(name, kernels, numbers, place)
    if not filled.rows:
        raise InputError(f"{experiment.path} holds no counters", "measure or import runs with counters")
    names, values = list(filled.rows), filled.array()
    silent = np.array([name in SENT and how[name] in ("mean", "sum") for _, name in names], dtype=bool)
    for place, runs_of in cells.items():
        if silent.any() and any(traced(experiment, run) for run in runs_of):
            column = values[(silent, *place)]
            values[(silent, *place)] = np.where(np.isnan(column), 0.0, column)
    signs = {name: metric(name).signed for name in how}
    signed = np.array([signs[name] for _, name in names], dtype=bool)
    values = np.where(signed[:, None, None], values, np.maximum(values, 0.0))
    series = Series(
        experiment.parameters,
        np.array(configurations, dtype=np.float64).reshape(len(configurations), len(experiment.parameters)),
        values,
        tuple(kernel for kernel, _ in names),
        tuple(name for _, name in names),
        provenance,
    )
    series = with_sampling(experiment, series, {name: reduction == "mean" for name, reduction in how.items()})
    return per_core(experiment, series, how)


_Part = tuple[int, Index, Index]


class _Values:
    """Values (s, n, r) of series, which are entered as they come: block by block, so that none is copied.

    Attributes
    ----------
    rows : mapping of (kernel, metric) to int
    """

    _BLOCK = 256

    def __init__(self, configurations: int, repetitions: int) -> None:
        self.rows: dict[tuple[str, str], int] = {}
        self._last: dict[str, tuple[list[str], list[_Part]]] = {}
        self._blocks: list[Array] = []
        self._shape = (self._BLOCK, configurations, repetitions)

    def fill(self, metric: str, kernels: list[str], numbers: Array, place: tuple[int, int]) -> None:
        """Enter a metric of some kernels at a configuration and repetition, where it has no value yet."""
        known, parts = self._last.get(metric, ([], []))
        if known != kernels:  # most runs have the same kernels in the same order
            parts = self._places(metric, kernels)
            self._last[metric] = kernels, parts
        for number, inside, columns in parts:
            cell = (inside, *place)
            old = self._blocks[number][cell]
            self._blocks[number][cell] = np.where(np.isnan(old), numbers[columns], old)

    def _places(self, metric: str, kernels: list[str]) -> list[_Part]:
        """Where values of a metric of `kernels` belong: block by block, rows of it and positions in `kernels`."""
        rows, size = self.rows, self._BLOCK
        index = np.fromiter(
            (rows.setdefault((kernel, metric), len(rows)) for kernel in kernels), dtype=np.intp, count=len(kernels)
        )
        while len(rows) > len(self._blocks) * size:
            self._blocks.append(np.full(self._shape, np.nan))
        order = np.argsort(index, kind="stable")
        number, starts = np.unique(index[order] // size, return_index=True)
        split = np.split(order, starts[1:])
        return [
            (at, index[places] % size, places) for at, places in zip(number.tolist(), split, strict=True) if len(places)
        ]

    def array(self) -> Array:
        """All that was entered."""
        return np.concatenate(self._blocks)[: len(self.rows)]


def _wanted(experiment: Experiment, metrics: tuple[str, ...] | list[str] | None) -> tuple[str, ...]:
    """The metrics asked for, or all; InputError where the experiment holds none, or not one of them."""
    present = experiment.metrics()
    wanted = present if metrics is None else tuple(dict.fromkeys(metrics))
    if not wanted:
        raise InputError(f"{experiment.path} holds no metric", "measure or import runs with one")
    for name in wanted:
        if name not in present:
            raise InputError(f"{experiment.path} holds no metric {name!r}", nearest(name, present))
    return wanted


def _cells(
    parameters: tuple[str, ...], runs: list[Run]
) -> tuple[list[tuple[float, ...]], dict[tuple[int, int], list[Run]]]:
    """Configurations in their order, and the runs of each (configuration, repetition), the latter counted from zero."""
    configurations: dict[tuple[float, ...], int] = {}
    by_cell: dict[tuple[int, int], list[Run]] = {}
    for run in runs:
        key = run.point(parameters)
        place = (configurations.setdefault(key, len(configurations)), run.repetition)
        by_cell.setdefault(place, []).append(run)
    counts = [0] * len(configurations)
    numbered: dict[tuple[int, int], tuple[int, int]] = {}
    for place in sorted(by_cell):
        numbered[place] = (place[0], counts[place[0]])
        counts[place[0]] += 1
    return list(configurations), {numbered[place]: runs_of for place, runs_of in by_cell.items()}


def per_core(experiment: Experiment, series: Series, how: Mapping[str, Reduction]) -> Series:
    """The series with counts as means over cores, where `threads` is a parameter of the experiment.

    A tool that follows a process adds up what its threads do, so that a rank of four threads has four times the
    instructions of one core. The equation, the clock and the bandwidth of a memory domain are those of cores. Counts of
    every kernel are therefore divided by the threads, unless the tool gave a row for each thread already. Times pass
    for all threads at once and stay, but for sampled ones: each thread is sampled while it runs. `series`: of its
    ranks. `how` (mapping of metric to str): how ranks became one value: a sum over ranks stays a sum.
    """
    if THREADS not in series.parameters:
        return series
    column = series.parameters.index(THREADS)
    places = {tuple(point): at for at, point in enumerate(series.points.tolist())}
    divided: dict[str, Mask] = {name: np.zeros(len(series.points), dtype=bool) for name in how}
    for run in experiment.runs:
        place = places.get(run.point(series.parameters))
        if run.state == "complete" and place is not None:
            for name in of_teams(experiment, run) & divided.keys():
                divided[name][place] |= how[name] != "sum"
    nothing = np.zeros(len(series.points), dtype=bool)
    over = np.stack([divided.get(name, nothing) for name in series.metrics])
    scale = np.where(over, 1 / np.maximum(series.points[:, column], 1.0), 1.0)[..., None]
    return replace(series, values=series.values * scale, worth=series.worth * scale)


def located(series: Series) -> tuple[Array, Array]:
    """Medians over repetitions (s, n), and their relative standard errors, pooled over the configurations."""
    values = series.values
    count = np.isfinite(values).sum(axis=2)
    middle = median(values, axis=2)
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = (values / middle[..., None] - 1) ** 2
    freedom = np.maximum(count - 1, 0).sum(axis=1)
    pooled = np.where(freedom > 0, np.nansum(np.where(np.isfinite(squares), squares, 0.0), axis=(1, 2)), 0.0)
    variance = (pooled / np.maximum(freedom, 1))[:, None] / np.maximum(count, 1)
    # A median of three and more scatters as a mean of two thirds of them.
    variance = np.where(count > 2, variance * np.pi / 2, variance)
    samples = series.samples
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = np.where(samples > 0, 1 / samples, 1.0)
    return middle, np.sqrt(variance + np.where(np.isfinite(samples), drawn, 0.0))
