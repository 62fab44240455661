"""Loads by level of the memory hierarchy at any capacity and size, from misses counted at many cache sizes.

In run i a kernel misses a cache of capacity C with the share m_i(C) of its loads. A part q of the loads is served from
a capacity K_i(q) on, where m_i falls to q: the capacity that holds what is used between two uses of the same line. It
grows with the size as a power,

    ln K(q, u) = ln K_i(q) + g(q) (u - u_i),    u the logarithms of the parameters,

where g is learned from all runs, of parts that few runs show with the kernel's as its prior. Each run then predicts
K(q) where it is asked; the answer is their mean, near runs counting most, within what all of them leave, as each knows
between which two simulated capacities it is. A run that differs from the weighted median by more than :data:`APART` is
left out, as one whose size makes lines fall into the same sets. Between C and C' are served

    n = loads (m(C) - m(C')),    m(C) = the sum of all parts q with K(q) >= C.

Loads that are the first of their line miss every cache. In another run the same loads may use again what other code
has loaded before, as memory that was freed and given out again: they are parts as all others, and runs that saw no
cache hold them vote on whether any does.

The deviation of ln K is the scatter of what the runs predict, and that of a value anywhere between the two simulated
capacities. Where runs do not agree whether the smallest or largest capacity holds a part, the interval has both.
Source: Ding and Zhong, "Predicting whole-program locality through reuse distance analysis", PLDI 2003; as there the
reuse distances of parts of the accesses are functions of the size of the data.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.core.experiment import Experiment
from ranksight.core.metrics import LEVELS
from ranksight.core.records import dataclass
from ranksight.core.units import format_si
from ranksight.model.plaindata import Stored
from ranksight.model.quantity import TAIL
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast

if TYPE_CHECKING:
    import pandas as pd

    from ranksight.core.run import Run

TABLE = "cache_sizes"
"""Table of a run: ``kernel``, ``rank``, ``bytes`` and ``load_misses`` of a last level of that size."""
FEWEST = 2
"""Runs of which locality is learned."""
MOST = 64
"""Cache sizes of a run, at most."""
PARTS = 128
"""Parts that the loads of a kernel are divided into, at most."""
NEAR = 0.1
"""Distance, in e-folds of a parameter, up to which runs count the same."""
APART = 0.7
"""e-folds of capacity by which runs differ that do not follow the same law."""
GROWTH, COMMON, SCATTER = 1.0, 0.5, 0.2
"""Standard deviations: of an exponent before anything is known, of a part's from its kernel's, of ln K in a run."""
MINORITY = 0.05
"""Share of the weight from which an interval of 90 % has what some runs say against the others."""
HELD_OUT = 8
"""Runs that are held out, at most."""
HEIGHT = 0.01
"""Half-width of a share relative to itself, at least: loads at the ends of loops."""
LEAST, MINOR = 1e-3, 0.01
"""Share of a kernel's loads that is next to nothing, and of its misses that the height is not learned from."""
DRIFT = 0.15
"""Standard deviation of an exponent beyond the runs."""
AT_ONCE = 64
"""Configurations whose parts are in memory together."""
_CAPACITIES = re.compile(r"D1 (\d+),\d+,(\d+), L2 (\d+),\d+,\d+, LL (\d+),")


@dataclass(frozen=True)
class Locality(Stored):
    """Miss shares of K kernels in n runs at c capacities."""

    parameters: tuple[str, ...]
    kernels: tuple[str, ...]
    points: Array  # (n, m)
    sizes: Array  # (c,): bytes, rising
    misses: Array  # (K, n, c): share of the loads; NaN where a run lacks the kernel
    capacities: Array  # (3,): bytes of the levels that are asked for
    height: Array  # (K,): half-width of what m(C) may be off by itself, relative to it
    line: float  # bytes of a line
    moved: bool = False  # whether the capacities are those of another machine, whose sets differ
    _sizes = "parameters:m kernels:k points:nm>0 sizes:c>0 misses:knc capacities:3>0 height:k>=0 line:>0"

    def on(self, capacities: Array, line: float) -> Locality:
        """The same loads with caches of other capacities (3,); nothing where lines have another length."""
        capacities = np.asarray(capacities, dtype=np.float64)
        return replace(self, capacities=capacities, moved=True) if line == self.line else NO_LOCALITY

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """Kernel and metric of each row of :meth:`predict`."""
        return tuple((kernel, level) for kernel in self.kernels for level in LEVELS)

    def knows(self, kernel: str, metric: str) -> bool:
        """Whether a metric is answered."""
        return metric in LEVELS and kernel in self.kernels

    def formula(self, level: str) -> str:
        """Loads of a level as people read them."""
        sizes = [format_si(float(size), "B") for size in self.capacities]
        within = [f"beyond {each}" for each in sizes]
        at = LEVELS.index(level)
        return "loads " + " ".join([*within[at - 1 : at], *([f"within {sizes[at]}"] if at < len(sizes) else [])])

    def predict(self, points: Array, loads: Forecast) -> Forecast:
        """Loads that each level serves, rows by kernel and then by level, at `points` (k, m).

        `loads`: those of the kernels, a row each.
        """
        share = np.empty((3, len(self.kernels), len(LEVELS), len(points)))  # middle, downwards, upwards
        for at in range(len(self.kernels)):
            share[:, at] = self._shares(at, points)
        value, down, up = share.reshape(3, -1, len(points))
        whole = {name: np.repeat(getattr(loads, name), len(LEVELS), axis=0) for name in ("value", "lower", "upper")}
        with np.errstate(invalid="ignore"):
            low = np.hypot(down * whole["value"], value * (whole["value"] - whole["lower"]))
            high = np.hypot(up * whole["value"], value * (whole["upper"] - whole["value"]))
        counted = value * whole["value"]
        # Of none there is no ratio to what there may be.
        middle = np.where((counted == 0) & (high > 0), high / 10, counted)
        result = Forecast.settled(middle, np.maximum(counted - low, 0.0), counted + high, form=0.5)
        status, reason = (np.repeat(getattr(loads, name), len(LEVELS), axis=0) for name in ("status", "reason"))
        least = LEAST * np.nan_to_num(whole["value"])
        with np.errstate(invalid="ignore", divide="ignore"):
            factor = (result.upper + least) / (result.lower + least)
        status, reason = forecast.judged_by_width(factor, status, reason)
        return replace(result, status=status, reason=reason)

    def _fits(self) -> bool:
        shares = self.misses[np.isfinite(self.misses)]
        whole = np.asarray(np.isfinite(self.misses).all(axis=2))
        known = bool(whole.any(axis=1).all() and ((shares >= 0) & (shares <= 1)).all())
        return known and len(self.points) > 0 and len(self.sizes) > 1 and bool((np.diff(self.sizes) > 0).all())

    def _shares(self, kernel: int, points: Array) -> Array:
        """Shares (3, 4, k) of one kernel's loads that each level serves, and what they may be less and more."""
        known = np.isfinite(self.misses[kernel]).all(axis=1)
        misses, runs = self.misses[kernel, known], self.points[known]
        pieces = [points[at : at + AT_ONCE] for at in range(0, len(points), AT_ONCE)]
        missed = [_missed(misses, runs, self.sizes, each, self.capacities, self.moved) for each in pieces]
        ends = np.ones((1, len(points)))
        middle, low, high = (np.concatenate([ends, each, 0 * ends]) for each in np.concatenate(missed, axis=2))
        first = _first(misses[:, -1], runs, points)
        off = self.height[kernel] * np.maximum(middle - first, 0.0)
        off[1:-1] *= ~_counted(runs, self.sizes, points, self.capacities, self.moved)
        off[0] = 0.0
        less, more = np.hypot(middle - low, off), np.hypot(high - middle, off)
        value = middle[:-1] - middle[1:]
        down, up = np.hypot(less[:-1], more[1:]), np.hypot(more[:-1], less[1:])
        return np.array([value, np.minimum(down, value), up])


NO_LOCALITY = Locality((), (), np.empty((0, 0)), np.empty(0), np.empty((0, 0, 0)), np.empty(3), np.empty(0), 0.0)


def learn_locality(experiment: Experiment, series: Series) -> Locality:
    """The locality of the kernels of `series` whose runs counted misses by cache size."""
    capacities = _CAPACITIES.search(series.provenance.get("loads_l2", ""))
    runs = [run for run in experiment.runs if _counts(experiment, run)] if capacities else []
    rows = series.rows
    kernels = [kernel for kernel, name in rows if name == "loads" and all((kernel, level) in rows for level in LEVELS)]
    if capacities is None or len(runs) < FEWEST or not kernels:
        return NO_LOCALITY
    first, line, *others = map(float, capacities.groups())
    levels = np.array([first, *others])
    points = np.array([run.point(series.parameters) for run in runs])
    tables = [_shares_of(experiment, run, levels[0]) for run in runs]
    sizes = tables[0].columns.to_numpy(dtype=np.float64)
    same = np.array([np.array_equal(table.columns, tables[0].columns) for table in tables])
    same &= (np.isfinite(points) & (points > 0)).all(axis=1)
    misses = np.array([table.reindex(kernels).to_numpy() for table, yes in zip(tables, same, strict=True) if yes])
    if same.sum() < FEWEST or not 1 < len(sizes) <= MOST or not (np.diff(levels) >= 0).all():
        return NO_LOCALITY
    misses, points = misses.swapaxes(0, 1), points[same]
    known = np.isfinite(misses).all(axis=2).sum(axis=1) >= FEWEST
    names = tuple(kernel for kernel, yes in zip(kernels, known.tolist(), strict=True) if yes)
    if not names:
        return NO_LOCALITY
    height = np.array([_height(each, points, sizes) for each in misses[known]])
    return Locality(series.parameters, names, points, sizes, misses[known], levels, height, line)


def _counts(experiment: Experiment, run: Run) -> bool:
    """Whether a run has loads and their misses by cache size."""
    counted = {"loads", "loads_l1"} <= set(experiment.columns(run, "counters"))
    return counted and {"kernel", "bytes", "load_misses"} <= set(experiment.columns(run, TABLE))


def _shares_of(experiment: Experiment, run: Run, first: float) -> pd.DataFrame:
    """Shares of the loads of all ranks that miss each capacity, kernels by bytes, the `first` level's in front."""
    counters, table = experiment.table(run, "counters", ["kernel", "loads", "loads_l1"]), experiment.table(run, TABLE)
    assert counters is not None
    assert table is not None
    loads = counters.groupby("kernel", observed=True)[["loads", "loads_l1"]].sum()
    missed = table.groupby(["kernel", "bytes"], observed=True)["load_misses"].sum(min_count=1).unstack()
    missed = missed.loc[:, missed.columns.to_numpy(dtype=np.float64) > first].reindex(loads.index)
    missed.insert(0, first, loads["loads"] - loads["loads_l1"])
    shares = missed.div(loads["loads"].where(loads["loads"] > 0), axis=0).clip(0.0, 1.0)
    return shares.cummin(axis=1)


def _weights(step: Array) -> Array:
    """Weights (k, n) of runs that are `step` (k, n, m) e-folds from where they are asked for: those at the same place
    alone where there are some, otherwise the less the farther they are."""
    distance = np.sqrt((step**2).sum(axis=2))
    same = distance == 0
    return np.asarray(np.where(same.any(axis=1, keepdims=True), same, 1 / (NEAR + distance) ** 2))


def _first(missing: Array, points: Array, asked: Array) -> Array:
    """Share (k,) of loads that miss every cache at `asked` (k, m), from those (n,) of the runs at `points` (n, m)."""
    weight = _weights(np.log(asked[:, None] / points))
    return np.asarray(weight @ missing / weight.sum(axis=1))


def _missed(misses: Array, points: Array, sizes: Array, asked: Array, capacities: Array, moved: bool = False) -> Array:
    """Shares (3, c', k) of the loads that miss `capacities` (c',) at `asked` (k, m), and the ends of their interval,
    from those (n, c) of runs at `points` (n, m) that miss the capacities `sizes` (c,)."""
    parts, mass = _parts(misses)
    fitting, width = _capacities(misses, parts, np.log(sizes))
    logs, deviation, other = _predicted(fitting, width, np.log(sizes), np.log(points), np.log(asked), mass)  # (k, q)
    counted = _counted(points, sizes, asked, capacities, moved)[..., None]
    ends = np.log(capacities)[:, None, None]
    low, high = np.minimum(logs - TAIL * deviation, other), np.maximum(logs + TAIL * deviation, other)
    each = (logs, np.where(counted, logs, low), np.where(counted, logs, high))
    return np.array([(mass * (missed >= ends)).sum(axis=2) for missed in each])


def _counted(points: Array, sizes: Array, asked: Array, capacities: Array, moved: bool) -> Mask:
    """Which misses (c', k) a run counted; none of caches that others than the simulated ones are (`moved`)."""
    same = (asked[:, None] == points).all(axis=2).any(axis=1) & (not moved)
    return np.asarray(np.isin(capacities, sizes)[:, None] & same)


def _height(misses: Array, points: Array, sizes: Array) -> float:
    """What predictions of runs that are held out, one at a time, miss beyond their interval: nine of ten shares are off
    by no more, relative to themselves; those of loads that some cache holds."""
    known, misses = np.flatnonzero(np.isfinite(misses).all(axis=1)), misses - misses[:, -1:]
    least = max(LEAST, MINOR * float(np.nanmax(misses)))
    off = [np.full(1, HEIGHT)]
    chosen = known[np.unique(np.linspace(0, len(known) - 1, HELD_OUT).round().astype(np.intp))] if len(known) else known
    for run in chosen if len(known) > FEWEST else ():
        others = known[known != run]
        middle, low, high = _missed(misses[others], points[others], sizes, points[run : run + 1], sizes)[..., 0]
        error = misses[run] - middle
        beyond = np.sqrt(np.maximum(error**2 - np.where(error > 0, high - middle, middle - low) ** 2, 0.0))
        off.append((beyond / np.maximum(middle, least))[np.maximum(misses[run], middle) > least])
    return max(HEIGHT, float(np.quantile(np.concatenate(off), 0.9)))


def _parts(misses: Array) -> tuple[Array, Array]:
    """Parts q (q,) of loads between the shares (n, c) that were counted, and the mass of each."""
    edges = np.unique(np.concatenate([[0.0], misses.ravel()]))
    edges = edges[np.unique(np.linspace(0, len(edges) - 1, PARTS + 1).round().astype(np.intp))]
    return (edges[1:] + edges[:-1]) / 2, np.diff(edges)


def _capacities(misses: Array, parts: Array, sizes: Array) -> tuple[Array, Array]:
    """ln K (n, q) of each part; minus infinity below the smallest capacity, infinite where none holds it. And the
    distance (n, q) of the two simulated capacities that it is between."""
    rows = [np.interp(parts, row[::-1], sizes[::-1], left=np.inf, right=-np.inf) for row in misses]
    smaller = np.array([len(sizes) - np.searchsorted(row[::-1], parts) for row in misses]) - 1
    return np.array(rows), np.diff(sizes)[np.clip(smaller, 0, len(sizes) - 2)]


def _predicted(
    capacity: Array, width: Array, sizes: Array, inputs: Array, asked: Array, mass: Array
) -> tuple[Array, Array, Array]:
    """ln K (k, q) at `asked` (k, m), its deviation, and ln K by the runs that do not agree with it.

    From ln K (n, q) of the runs at `inputs` (n, m), which is anywhere between two simulated capacities, of distance
    `width` (n, q). A run whose K is smaller or larger than all of the `sizes` (c,), logarithms, is a bound to that of
    others.
    """
    growth, doubt = _growth(capacity, inputs, mass)  # (q, m), (q, m, m)
    step = asked[:, None] - inputs[None]  # (k, n, m)
    moved = np.einsum("knm,qm->knq", step, growth)
    each, known = capacity[None] + moved, np.isfinite(capacity)
    weight = _weights(step)[..., None]
    usual = _median(each, weight * known)
    known = known & (weight > 0)
    with np.errstate(invalid="ignore"):
        close = known & (np.abs(each - usual) <= APART)
    # A run says against it whose K is not within the bound that it would be.
    outside = np.where(capacity < 0, usual > sizes[0] + moved, usual < sizes[-1] + moved) & ~known & (weight > 0)
    bound = _median(each, weight * ~known)
    sides = np.stack([(weight * side).sum(axis=1, keepdims=True) for side in (outside, close)])
    against = sides[0] >= sides[1]
    median = np.where(against, bound, usual)
    other = np.where(sides.min(axis=0) > MINORITY * sides.sum(axis=0), np.where(against, usual, bound), median)[:, 0]
    weight = weight * close
    finite = np.isfinite(median[:, 0]) & weight.any(axis=1)
    total = np.where(finite, weight.sum(axis=1), 1.0)
    values = np.where(weight > 0, each, 0.0)
    mean = np.where(finite, (weight * values).sum(axis=1) / total, median[:, 0])
    rest = np.where(weight > 0, each - np.where(finite, mean, 0.0)[:, None], 0.0)
    centre = np.einsum("knq,knm->kqm", weight / total[:, None], step)  # how far the runs that count are
    spread = (weight * rest**2).sum(axis=1) / total + np.einsum("kqm,qmo,kqo->kq", centre, doubt, centre)
    smaller = sizes[np.clip(np.searchsorted(sizes, capacity, side="right") - 1, 0, len(sizes) - 1)]
    mean, between = _narrowed(mean, smaller + moved, smaller + moved + width, (weight > 0) & finite[:, None])
    beyond = np.maximum(asked - inputs.max(axis=0), 0) + np.maximum(inputs.min(axis=0) - asked, 0)
    spread = spread + ((DRIFT * beyond) ** 2).sum(axis=1)[:, None]
    spread = spread + np.minimum(((weight / total[:, None] * width) ** 2).sum(axis=1), between**2) / 12
    agreed = np.where(np.isfinite(other) & finite, mean, other)
    return mean, np.sqrt(np.where(finite, spread, 0.0)), agreed


def _narrowed(mean: Array, low: Array, high: Array, counts: Mask) -> tuple[Array, Array]:
    """The `mean` (k, q) within what all runs that `counts` (k, n, q) leave for it, from `low` to `high` (k, n, q), and
    the distance of its ends; as it is, and infinite, where nothing is left."""
    least = np.where(counts, low, -np.inf).max(axis=1)
    most = np.where(counts, high, np.inf).min(axis=1)
    some = counts.any(axis=1) & (least < most)
    inside = np.clip(mean, np.where(some, least, -np.inf), np.where(some, most, np.inf))
    return inside, np.where(some, most - np.where(some, least, 0.0), np.inf)


def _median(values: Array, weight: Array) -> Array:
    """Weighted median (k, 1, q) over the runs of `values` (k, n, q)."""
    order = np.argsort(values, axis=1, kind="stable")
    ranked = np.cumsum(np.take_along_axis(np.broadcast_to(weight, values.shape), order, axis=1), axis=1)
    half = (ranked < ranked[:, -1:] / 2).sum(axis=1, keepdims=True)
    return np.take_along_axis(values, np.take_along_axis(order, half, axis=1), axis=1)


def _growth(capacity: Array, inputs: Array, mass: Array) -> tuple[Array, Array]:
    """Exponents (q, m) and their covariances: those of all parts together are the prior of each."""
    known = np.isfinite(capacity)
    count = np.maximum(known.sum(axis=0), 1)
    weight = known / SCATTER**2
    x = inputs[:, None] - (known[..., None] * inputs[:, None]).sum(axis=0) / count[:, None]  # (n, q, m)
    y = np.where(known, capacity, 0.0)
    y = np.where(known, y - y.sum(axis=0) / count, 0.0)
    normal = np.einsum("nq,nqm,nqo->qmo", weight, x, x)
    moment = np.einsum("nq,nqm,nq->qm", weight, x, y)
    eye = np.eye(inputs.shape[1])
    share = mass / mass.sum() if mass.sum() > 0 else mass
    common = np.linalg.solve(np.einsum("q,qmo->mo", share, normal) + eye / GROWTH**2, share @ moment)
    covariance = np.linalg.inv(normal + eye / COMMON**2)
    return np.einsum("qmo,qo->qm", covariance, moment + common / COMMON**2), covariance
