"""Reductions of repetitions and of ranks to one number a configuration; NaN is missing and is skipped.

Where nobody said how, repetitions become one value by the law of their scatter. The mid-range is the best location of
uniform scatter, the mean of normal and the median of heavy-tailed scatter. How probable each law is follows from the
likelihoods of each series' repetitions, free of the locations of its configurations and of their common relative scale
(as in Uthoff 1970, *Journal of the American Statistical Association* 65, 1597, and 1973, *Annals of Statistics* 1, 170,
for one sample), multiplied over series.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Index
from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS, Experiment, Run
from ranksight.core.idle import working
from ranksight.core.metrics import REDUCTIONS, Reduction, metric
from ranksight.core.records import dataclass
from ranksight.model.series.computation import EXCHANGED, THREADS

SENT = ("messages", "bytes_sent")
CYCLES = ("cycles", "reference_cycles", "stall_cycles", "cpu_time", "compute_cpu_time")
"""Times of threads that add up over them."""
NOT_ADDED = (*EXCHANGED, "visits")
"""Requirements that belong to the rank."""


@dataclass(frozen=True)
class Location:
    """One value a configuration, with what is known of its scatter."""

    values: Array  # (s, n): reduced over repetitions; NaN where missing
    scale: Array  # (s, n): size that relative errors refer to, positive
    repeats: Array  # (s, n)
    """Number of repetitions, zero where missing; for less efficient locations the number that would do for the mean."""
    variance: Array  # (s,)
    """Relative variance of one repetition, moderated by the other series; NaN where nothing was repeated."""
    freedom: Array  # (s,): degrees of freedom behind `variance`
    samples: Array  # (s,)
    """Samples behind the value of a configuration, in the mean; infinite where values are not made of samples. A
    configuration of more samples counts for more repetitions."""

    def part(self, which: slice | Index) -> Location:
        """The same of some series."""
        return Location(*(getattr(self, name)[which] for name in Location.__dataclass_fields__))


NAMES = ("mean", "median", "min", "max", "sum", "q1", "gmean", "midrange")


def reduce(values: Array, how: str, axis: int = -1) -> Array:
    """Reduce `values` along `axis`, skipping NaN; a slice without numbers gives NaN.

    `how` ({"mean", "median", "min", "max", "sum", "q1", "gmean", "midrange"}): first quartile and median interpolate
    linearly; the geometric mean of a slice with a value at or below zero is NaN, except that a zero among non-negative
    values gives zero. Raises InputError when `how` is unknown.
    """
    with warnings.catch_warnings(), np.errstate(invalid="ignore", divide="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        if how == "mean":
            return np.asarray(np.nanmean(values, axis=axis))
        if how == "median":
            return median(values, axis)
        if how == "min":
            return np.asarray(np.nanmin(values, axis=axis))
        if how == "midrange":
            return np.asarray((np.nanmin(values, axis=axis) + np.nanmax(values, axis=axis)) / 2)
        if how == "max":
            return np.asarray(np.nanmax(values, axis=axis))
        if how == "sum":
            total = np.nansum(values, axis=axis)
            return np.where(np.isnan(values).all(axis=axis), np.nan, total)
        if how == "q1":
            return np.asarray(np.nanquantile(values, 0.25, axis=axis))
        if how == "gmean":
            return np.asarray(np.exp(np.nanmean(np.log(values), axis=axis)))
    raise InputError(f"no reduction is named {how!r}", f"known: {', '.join(NAMES)}")


def median(values: Array, axis: int = -1) -> Array:
    """The median of `values` along `axis`, skipping NaN; a slice without numbers gives NaN.

    numpy's own takes masked arrays for slices as short as repetitions are, and six times as long.
    """
    size = values.shape[axis]
    if not size:
        return np.full(np.delete(values.shape, axis), np.nan)
    ordered = np.sort(values, axis=axis)  # NaN last
    count = size - np.isnan(values).sum(axis=axis, keepdims=True)
    ends = np.maximum(count - 1, 0) // 2, np.minimum(count // 2, size - 1)
    low, high = (np.take_along_axis(ordered, at, axis=axis) for at in ends)
    return np.asarray(np.squeeze((low + high) / 2, axis=axis))


LAWS = ("midrange", "mean", "median")
SCALES = np.exp(np.linspace(-3, 3, 49))
"""Scales, in units of the pooled standard deviation, over which likelihoods are integrated evenly in their
logarithm."""
SAMPLE = 100
"""Series that are asked; more would not change the answer."""
BATCH = 2_000_000
"""Numbers of likelihoods in memory at once."""
NEGLIGIBLE = 0.01


def likelihoods(samples: Array, scale: Array) -> Array:
    """Log-likelihoods (3, c, g) of samples under uniform, normal and double exponential scatter, integrated over their
    location.

    `samples` (c, r): sorted along the second axis. `scale` (g,): half-width, standard deviation and mean deviation of
    the laws.
    """
    r = samples.shape[1]
    x = samples - samples[:, :1]
    width = x[:, -1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        uniform = np.log(np.maximum(2 * scale - width, 0.0)) - r * np.log(2 * scale)
        squares = ((x - x.mean(axis=1, keepdims=True)) ** 2).sum(axis=1, keepdims=True)
        normal = -squares / (2 * scale**2) - (r - 1) * np.log(scale * np.sqrt(2 * np.pi)) - np.log(r) / 2
        # The sum of |x_i - mu| is linear between samples with the slope 2 j - r.
        total = np.abs(x[:, :, None] - x[:, None, :]).sum(axis=2)
        least = total.min(axis=1, keepdims=True)
        fall = np.exp(-(total - least)[:, :, None] / scale)
        area = (fall[:, 0] + fall[:, -1]) * scale / r
        for j in range(1, r):
            slope = 2 * j - r
            if slope:
                area = area + np.abs(fall[:, j] - fall[:, j - 1]) * scale / abs(slope)
            else:
                area = area + (x[:, j] - x[:, j - 1])[:, None] * fall[:, j]
        double = np.log(area) - least / scale - r * np.log(2 * scale)
    return np.stack([uniform, normal, double])


def law_of_scatter(values: Array) -> Array:
    """Probabilities (3,) of uniform, normal and double exponential scatter of repetitions (s, n, r), equal before the
    data."""
    step = max(1, len(values) // SAMPLE)
    size = np.abs(reduce(values, "mean", axis=2))[..., None]
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = np.sort(np.where(size > 0, values / size, np.nan)[::step], axis=2)
    n, most = relative.shape[1:]
    each = max(1, BATCH // max(1, n * most * len(SCALES)))
    score = np.zeros(3)
    for start in range(0, len(relative), each):
        score += _score(relative[start : start + each])
    chance = np.exp(score - score.max())
    return np.asarray(chance / chance.sum())


def _score(relative: Array) -> Array:
    """Log-likelihoods (3,) of the laws, of some series of sorted repetitions (s, n, r), NaN last."""
    count = (~np.isnan(relative)).sum(axis=2)
    use = count >= 3
    filled = np.nan_to_num(relative)
    centred = np.where(np.isnan(relative), 0.0, filled - (filled.sum(axis=2) / np.maximum(count, 1))[..., None])
    freedom = np.where(use, count - 1, 0).sum(axis=1)
    spread = np.sqrt(np.where(use, (centred**2).sum(axis=2), 0.0).sum(axis=1) / np.maximum(freedom, 1))
    use &= (spread > 1e-12)[:, None]
    total = np.zeros((len(relative), 3, len(SCALES)))
    for r in np.unique(count[use]):
        series, at = np.nonzero(use & (count == r))
        score = likelihoods(relative[series, at, :r] / spread[series, None], SCALES)
        some, first = np.unique(series, return_index=True)
        total[some] += np.add.reduceat(score, first, axis=1).transpose(1, 0, 2)
    return np.asarray(special.logsumexp(total[use.any(axis=1)], axis=2).sum(axis=0))


def located_by_scatter(values: Array) -> tuple[Array, Array]:
    """Location (s, n) of repetitions (s, n, r): the laws' best locations by their probabilities; and these (3,)."""
    chance = law_of_scatter(values) if values.shape[2] > 2 else np.array([0.0, 1.0, 0.0])
    used = [(c, name) for c, name in zip(chance, LAWS, strict=True) if c > NEGLIGIBLE]
    total = sum(c for c, _ in used)
    return np.asarray(sum(c / total * reduce(values, name, axis=2) for c, name in used)), chance


def traced(experiment: Experiment, run: Run) -> bool:
    """Whether all that kernels of a run sent is known: a kernel or rank that is not listed then sent nothing."""
    return "ranks" in run.configuration and "bytes" in experiment.columns(run, "messages")


def reduction_of(name: str, over_ranks: Reduction | Mapping[str, Reduction] | None) -> Reduction:
    usual = metric(name).over_ranks
    how = over_ranks.get(name, usual) if isinstance(over_ranks, Mapping) else over_ranks or usual
    if how not in REDUCTIONS:
        raise InputError(f"no reduction is named {how!r}", f"known: {', '.join(REDUCTIONS)}")
    return how


def reduced(experiment: Experiment, run: Run, how: Mapping[str, Reduction]) -> list[tuple[str, list[str], Array]]:
    """Metric, kernels and their values over ranks, of one run.

    Means are over the ranks that have a kernel. Of what is sent they are over all: a rank that a trace has no row of
    sent nothing.
    """
    columns = experiment.columns(run, "counters")
    names = [name for name in how if name in columns]
    table = experiment.arrays(run) if names else None
    if table is None or not len(table):
        return []
    table = table.select(working(run, table))
    codes, kernels = table.code, list(table.kernels)
    whole = table.rank == ALL_RANKS
    order = np.lexsort((table.rank, codes))
    codes, whole = codes[order], whole[order]
    # A kernel x rank matrix, filled at (kernel, position of the rank within the kernel); NaN pads kernels that not
    # all ranks have.
    starts = np.searchsorted(codes, np.arange(len(kernels) + 1))
    position = np.arange(len(codes)) - starts[codes]
    result = []
    for name in names:
        column = table.values[name][order]
        if np.isinf(column).any():
            at = kernels[codes[int(np.flatnonzero(np.isinf(column))[0])]]
            raise InputError(
                f"{experiment.path / 'runs' / run.id}: {name} of kernel {at!r} is infinite",
                "correct the value and import the run again",
            )
        matrix = np.full((len(kernels), int(position.max()) + 1), np.nan)
        matrix[codes, position] = np.where(whole, np.nan, column)
        reduced = reduce(matrix, how[name], axis=1)
        if name in SENT and how[name] == "mean" and traced(experiment, run):
            reduced *= np.isfinite(matrix).sum(axis=1) / run.configuration["ranks"]
        present = whole & ~np.isnan(column)
        reduced[codes[present]] = column[present] * _times(run, name, how[name])
        keep = ~np.isnan(reduced)
        if keep.any():
            some = kernels if keep.all() else [k for k, yes in zip(kernels, keep, strict=True) if yes]
            result.append((name, some, reduced[keep]))
    return result


def _times(run: Run, name: str, how: Reduction) -> float:
    """What makes a value of all ranks together the reduction that is asked for: a rank's becomes a sum over ranks.

    Sums were divided where they were stored (:meth:`ranksight.core.reading.Reading.per_rank`), but for those of sockets
    and nodes.
    """
    meaning = run.meaning(name)
    single = how == "sum" and meaning.over in ("one", "mean", "max")
    return float(run.configuration.get("ranks", 1.0)) if single else 1.0


def of_busiest(experiment: Experiment, names: Iterable[str]) -> list[str]:
    """Metrics of `names` whose values are the largest rank's in every run, as their source says."""
    return [name for name in names if all(run.meaning(name).over == "max" for run in experiment.runs)]


def added(name: str, run: Run) -> bool:
    """Whether a tool that follows a process adds a metric up over its threads."""
    if run.meaning(name).of == "core":
        return False
    described = metric(name)
    if name == "time":
        return run.sampled(name)
    return name in CYCLES or (described.kind == "requirement" and described.additive and name not in NOT_ADDED)


def of_teams(experiment: Experiment, run: Run) -> frozenset[str]:
    """The metrics of a run's counters that were added up over the threads of a rank."""
    if by_thread(experiment, run):
        return frozenset()
    return frozenset(name for name in experiment.columns(run, "counters") if added(name, run))


def of_core(experiment: Experiment, run: Run, name: str) -> float:
    """What makes a rank's value of a metric one of a core: one over the threads that it was added up over."""
    return 1 / float(run.configuration[THREADS]) if name in of_teams(experiment, run) else 1.0


def by_thread(experiment: Experiment, run: Run) -> bool:
    """Whether a run has a row for each thread of each rank."""
    ranks, threads = (float(run.configuration.get(name, 1)) for name in ("ranks", THREADS))
    if threads <= 1:
        return True
    table = experiment.table(run, "counters", ["rank"])
    return table is not None and table["rank"].nunique() >= ranks * threads
