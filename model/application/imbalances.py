"""The imbalance of each kernel, and of the program: what the busiest rank takes over the mean, by the parameters.

    r_k = max over ranks T_k / mean over ranks T_k

The program waits for its slowest rank, which need not be the slowest in any kernel. Each class of ranks has a law of
its own in every kernel (:mod:`ranksight.model.application.rankclasses`), and the slowest is taken last:

    program's = max over classes c of sum_k m_k rho_kc,    rho_kc = w_kc / mean w_k,

w_kc the work of class c in kernel k, and m_k the mean time of all ranks in it. So Amdahl's law of a part that rank 0
does alone is its own function, whatever the others do. The imbalance, the program's time less sum_k m_k (the inverse of
POP's load balance), belongs to those kernels in which the slowest class does more than the mean, in proportion.

Where a kernel's time is that of its slowest rank, S_k = r_k m_k, slowest ranks of different kernels are different
ranks, and where waiting for others is inside of kernels (a halo exchange, an MPI call) what one rank computes longer it
waits less: the program takes less than the sum of S_k. Of a kernel that n_k of P ranks have alone, T_k their mean, m_k
is T_k n_k / P; the number of ranks that have a kernel is a line over the ranks: one (what the root does), all, or all
but one (workers). So one count determines both, and no kernel is uneven in a balanced program.

A kernel whose ranks differ little everywhere is even, by less than a twentieth in their times; the most uneven one is
kept all the same, so that an even program is known as one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.core.arrays import Array, Index
from ranksight.core.experiment import ALL_RANKS, WHOLE, Experiment, Run
from ranksight.core.idle import working
from ranksight.core.metrics import metric
from ranksight.model import priors
from ranksight.model.application.rankclasses import CLASSES, WORKS, RankClasses, by_rank, fit_classes, works
from ranksight.model.plaindata import Stored
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.uncertainty import forecast

if TYPE_CHECKING:
    import pandas as pd

Tables = Mapping[str, "list[tuple[Run, pd.DataFrame]]"]

UNEVEN = 1.05
"""Largest over mean from which a kernel is uneven by its times."""
UNEVEN_COUNTS = 1.005
"""The same by its instructions, which do not scatter: a part that one rank does alone is small where it is found."""
FEWEST = 3
"""Configurations of two ranks or more needed to extrapolate an imbalance."""
COVERED = 0.9
"""Part of the program's time that kernels counted rank by rank must have for their imbalance to be the program's."""
HEAVY = 0.01
"""Part of the program's time from which on :data:`UNEVEN_COUNTS` holds for a kernel."""
SLIGHT = 0.005
"""Part of the program's time by which a slowest rank has to exceed the mean to be followed."""
APART = 0.9
"""Part of the kernels' imbalances that falls on one rank, up to which kernels have slowest ranks of their own."""
MEASURES = ("instructions", "cycles", "time")
"""Metrics that measure a rank's work in a kernel, the steadiest first."""


@dataclass(frozen=True)
class Imbalances(Stored):
    """Ratios of the uneven kernels."""

    classes: RankClasses  # of K uneven kernels
    seen: Array  # (K, 2): smallest and largest ratio measured
    held: bool  # whether the kernels' times are those of their slowest ranks, and hold the imbalance
    together: float = 1.0
    """The part of the kernels' imbalances that fell on one rank, the median over runs: near 0 where kernels hold the
    waiting for others."""
    having: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Ranks that have a kernel which not all have, ``first + slope x ranks``."""

    @property
    def kernels(self) -> tuple[str, ...]:
        """The uneven kernels."""
        return self.classes.kernels

    def remark(self) -> str:
        """What is to be known of kernels whose times are no sum."""
        if not self.held or self.together > APART:
            return ""
        return "kernels' times are those of their slowest ranks, which differ: the program takes less than their sum"

    def means(self, kernels: tuple[str, ...], times: Array, points: Array) -> Array:
        """Seconds of each kernel on the mean of all ranks, (K, k); `times` (K, k) are the predicted ones."""
        return np.asarray(times / self.of(kernels, points) if self.held else times * self.among(kernels, points))

    def parts(self, kernels: tuple[str, ...], times: Array, points: Array) -> Array:
        """Seconds of each kernel that are waiting for the program's slowest rank, (K, k); see :meth:`means`."""
        each, mean = self._seconds(kernels, times, points)[0], self.means(kernels, times, points)
        total = each.sum(axis=1)
        slowest = np.take_along_axis(each, total.argmax(axis=0)[None, None], axis=0)[0]
        beyond = np.maximum(slowest - mean, 0.0)
        positive = beyond.sum(axis=0)
        left = np.maximum(total.max(axis=0) - mean.sum(axis=0), 0.0)
        return np.asarray(beyond * np.divide(left, positive, out=np.zeros_like(left), where=positive > 0))

    def program(self, kernels: tuple[str, ...], times: Array, points: Array) -> tuple[Array, Array, Array]:
        """The program's slowest rank over the sum of the kernels' `times`, with the ends of its 90 % interval, each
        (k,)."""
        total = times.sum(axis=0)
        mean = self.means(kernels, times, points).sum(axis=0)
        ends = (np.maximum(each.sum(axis=1).max(axis=0), mean) for each in self._seconds(kernels, times, points))
        value, low, high = (np.where(total > 0, end / np.where(total > 0, total, 1.0), 1.0) for end in ends)
        return value, low, high

    def slowest_class(self, kernels: tuple[str, ...], times: Array, points: Array) -> tuple[str, ...]:
        """The class of ranks that the program waits for at each of k configurations."""
        total = self._seconds(kernels, times, points)[0].sum(axis=1)
        return tuple(CLASSES[at] for at in total.argmax(axis=0))

    def _seconds(self, kernels: tuple[str, ...], times: Array, points: Array) -> tuple[Array, Array, Array]:
        """Seconds of each class of ranks in each kernel, (C, K, k), with the ends of their 90 % interval; 0 without
        ranks of the class."""
        uneven, rows = self._uneven(kernels)
        ranks = np.maximum(points[:, self.classes.fitted.parameters.index("ranks")], 1.0)
        # Not even two ranks have others than the first and the last.
        present = (np.arange(1, len(CLASSES) + 1)[:, None] <= ranks)[:, None]
        ratio = self.of(kernels, points) if self.held else np.ones_like(times)
        ends = []
        for end in self.classes.ratios(points):
            each = np.repeat(ratio[None], len(CLASSES), axis=0)
            each[:, uneven] = end[: len(CLASSES), rows]
            ends.append(np.where(present, times / ratio * each, 0.0))
        value, low, high = ends
        return value, low, high

    def part(self, kernels: tuple[str, ...], points: Array) -> Array:
        """The part of all ranks that have each kernel, (K, k); 1 where times hold the imbalance, as they hold this."""
        return np.ones((len(kernels), len(points))) if self.held else self.among(kernels, points)

    def among(self, kernels: tuple[str, ...], points: Array) -> Array:
        """The part of all ranks that have each kernel, (K, k), whatever times hold."""
        ranks = np.maximum(points[:, self.classes.fitted.parameters.index("ranks")], 1.0)
        first, slope = np.array([self.having.get(kernel, (0.0, 1.0)) for kernel in kernels]).reshape(-1, 2).T
        return np.asarray(np.clip(np.round(first[:, None] + slope[:, None] * ranks, 6) / ranks, 1 / ranks, 1.0))

    def reaching(self, kernels: tuple[str, ...], points: Array) -> tuple[Array, Array]:
        """:meth:`slowest` of any kernels, and the standard deviation of its logarithm, (len(kernels), k) each.

        That is as much as it goes on beyond what was seen of it, and what times drift from their functions.
        """
        every, among = self.of(kernels, points), self.among(kernels, points)
        uneven, rows = self._uneven(kernels)
        whole = every[uneven]
        beyond = np.log(whole / np.clip(whole, *np.moveaxis(self.seen[rows], 1, 0)[:, :, None]))
        beyond = np.where(among[uneven] < 1, 0.0, beyond)  # who has it is no matter of how much
        trained = self.classes.fitted.trained[rows]
        ends, x = (np.log(np.maximum(each, 1e-300)) for each in (trained, points))
        out = np.maximum(np.maximum(x - ends[:, None, :, 1], ends[:, None, :, 0] - x), 0.0)
        drift = priors.DRIFT * np.sqrt((out**2).sum(axis=2))
        deviation = np.zeros_like(every)
        deviation[uneven] = np.hypot(beyond / forecast.TAIL, drift)
        return self._of_those(every, among), deviation

    def slowest(self, kernels: tuple[str, ...], points: Array) -> Array:
        """What the slowest rank takes over the mean of those that have a kernel, (len(kernels), k)."""
        return self._of_those(self.of(kernels, points), self.among(kernels, points))

    def _of_those(self, ratio: Array, among: Array) -> Array:
        """r_k over the mean of those that have a kernel, the part `among` of all ranks; at least 1."""
        return np.maximum(ratio * among if self.held else ratio, 1.0)

    def of(self, kernels: tuple[str, ...], points: Array) -> Array:
        """r_k of any kernels, 1 of the even ones, (len(kernels), k): the largest of any class over the mean."""
        ratio = np.ones((len(kernels), len(points)))
        uneven, rows = self._uneven(kernels)
        if len(uneven):
            ratio[uneven] = np.maximum(self.classes.ratios(points)[0].max(axis=0)[rows], 1.0)
        return ratio

    def over_mean(self, kernels: tuple[str, ...], points: Array) -> Array:
        """Work of the busiest rank of any kernels over the mean of all ranks, (len(kernels), k); NaN of even ones."""
        result = np.full((len(kernels), len(points)), np.nan)
        uneven, _ = self._uneven(kernels)
        result[uneven] = (self.of(kernels, points) / self.part(kernels, points))[uneven]
        return result

    def _uneven(self, kernels: tuple[str, ...]) -> tuple[Index, Index]:
        """Which of any kernels are uneven, and their rows here."""
        place = {kernel: at for at, kernel in enumerate(self.kernels)}
        pairs = [(at, place[kernel]) for at, kernel in enumerate(kernels) if kernel in place]
        uneven, rows = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
        return uneven, rows

    def _fits(self) -> bool:
        seen = self.seen
        return (
            0 <= self.together <= 1
            and bool(np.isfinite(list(self.having.values())).all())
            and seen.shape == (len(self.kernels), 2)
            and bool((seen >= 1).all() and (seen < np.inf).all() and (seen[:, 0] <= seen[:, 1]).all())
        )


def fit_imbalances(
    experiment: Experiment, held: bool, times: Series, every: bool = False, **settings: Any
) -> Imbalances | None:
    """Learn the imbalance of each uneven kernel; None where ranks were not measured one by one.

    `held`: whether the kernels' times are those of their slowest ranks: these give the imbalance then, as it is a part
    of them, where they are known by rank; otherwise the steadiest of :data:`MEASURES` does. `times`: with the kernels'
    times, by which their imbalances weigh. `every`: whether means are over all ranks, and not over those that have a
    kernel. `**settings`: of :func:`ranksight.model.fitting.fit_series.fit_series`.
    """
    if "ranks" not in experiment.parameters:
        return None
    at = experiment.parameters.index("ranks")
    timed = _by_rank(experiment, "time") if held else []
    tables = {"time": timed} if timed else {name: _by_rank(experiment, name) for name in MEASURES}
    weights = _weights(times)
    cells_of: dict[tuple[str, str], dict[tuple[float, ...], list[Array]]] = {}
    shares = []
    for name, several in tables.items():
        for run, table in several:
            point, ranks = run.point(experiment.parameters), int(run.configuration["ranks"])
            kernels = tuple(map(str, table.columns))
            weight = np.array([weights.get(point, {}).get(kernel, 0.0) for kernel in kernels])
            having = None if every or held else np.asarray(table.count(), dtype=np.float64)
            each = works(by_rank(table, ranks), weight, having)
            if ranks > 1:
                shares.append(_together(each, weight, held))
            for kernel, cells in zip(kernels, each.T, strict=True):
                if cells[0] > 0:
                    cells_of.setdefault((kernel, name), {}).setdefault(point, []).append(cells)
    measured: dict[tuple[str, str], dict[tuple[float, ...], Array]] = {}
    for name in MEASURES:
        for kernel, points in ((kernel, points) for (kernel, other), points in cells_of.items() if other == name):
            several_ranks = sum(point[at] > 1 for point in points)
            if several_ranks >= FEWEST and kernel not in {key for key, _ in measured}:
                measured[kernel, name] = {point: np.median(several, axis=0) for point, several in points.items()}
    if not measured:
        return None
    mean = {kernel: sum(each.get(kernel, 0.0) for each in weights.values()) for kernel in _names(weights)}
    if not held and sum(mean.get(kernel, 0.0) for kernel, _ in measured) < COVERED * sum(mean.values()):
        return None
    lines = {} if every else _having(tables)
    chosen = _uneven_ones(measured, weights, lines, held)
    places = sorted({point for key in chosen for point in measured[key]})
    none = np.full(len(WORKS), np.nan)
    values = np.array([[measured[key].get(point, none) for point in places] for key in chosen])
    values = np.moveaxis(values, 2, 0)
    ratio = np.fmax.reduce(values[1:], axis=0) / np.where(np.array(places)[:, at] > 1, values[0], np.nan)
    seen = np.maximum(np.stack([np.nanmin(ratio, axis=1), np.nanmax(ratio, axis=1)], axis=1), 1.0)
    classes = fit_classes(experiment.parameters, np.array(places), values, tuple(chosen), **settings)
    known = [share for share in shares if share == share]
    together = float(np.clip(np.median(known), 0.0, 1.0)) if known else 1.0
    return Imbalances(classes, seen, held, together, lines)


def _weights(series: Series) -> dict[tuple[float, ...], dict[str, float]]:
    """Time of each kernel at each configuration."""
    timed = [at for at, (kernel, name) in enumerate(series.keys) if name == "time" and kernel != WHOLE]
    values = np.nan_to_num(reduce(series.values[timed], "median", axis=2))
    names = [series.kernels[at] for at in timed]
    return {
        tuple(point): dict(zip(names, map(float, times), strict=True))
        for point, times in zip(series.points.tolist(), values.T, strict=True)
    }


def _names(weights: Mapping[tuple[float, ...], Mapping[str, float]]) -> list[str]:
    return list(dict.fromkeys(kernel for each in weights.values() for kernel in each))


def _uneven_ones(
    measured: Mapping[tuple[str, str], Mapping[tuple[float, ...], Array]],
    weights: Mapping[tuple[float, ...], Mapping[str, float]],
    having: Collection[str],
    slowest: bool,
) -> list[tuple[str, str]]:
    """Kernels, each with its metric, that are uneven, or that not all ranks have; the most uneven one at least.

    Of kernels that take :data:`HEAVY` of the time counts are followed that differ by less than times have to. Where
    times are those of slowest ranks they are a program's time only less what they are apart, so that those count too
    which are less uneven and take much.
    """
    ratios: dict[tuple[str, str], float] = {}
    followed: set[tuple[str, str]] = set()
    for key, cells in measured.items():
        counted = metric(key[1]).kind == "requirement"
        for point, each in cells.items():
            ratio = max(float(np.nanmax(each[1:]) / each[0]), 1.0)
            ratios[key] = max(ratio, ratios.get(key, 1.0))
            times = weights.get(point, {})
            share = times.get(key[0], 0.0) / (sum(times.values()) or 1.0)
            if (slowest and share * (1 - 1 / ratio) > SLIGHT) or (
                counted and ratio >= UNEVEN_COUNTS and share >= HEAVY
            ):
                followed.add(key)
    least = min(UNEVEN, max(ratios.values()))
    return [key for key, ratio in ratios.items() if ratio >= least or key in followed or key[0] in having]


def _together(works_of: Array, weights: Array, slowest: bool) -> float:
    """The part of the kernels' imbalances that falls on one rank in a run; NaN where there is none.

    `works_of` (5, K): :data:`ranksight.model.application.rankclasses.WORKS`. `weights` (K,): the kernels' times.
    """
    most = np.fmax.reduce(works_of[1:], axis=0)
    scale = np.divide(weights, most if slowest else works_of[0], out=np.zeros_like(most), where=works_of[0] > 0)
    total = float((np.maximum(most - works_of[0], 0.0) * scale).sum())
    if not total > 0:
        return float("nan")
    beyond = np.nansum((works_of[1 : 1 + len(CLASSES)] - works_of[0]) * scale, axis=1)
    return float(beyond.max()) / total


def _having(tables: Tables) -> dict[str, tuple[float, float]]:
    """Lines over the ranks of how many have each kernel, of those that not all have."""
    counted: dict[str, tuple[list[float], list[int]]] = {}
    seen: set[str] = set()
    for several in tables.values():
        kernels_of: set[str] = set()
        for run, table in several:
            for kernel, count in table.count().items() if run.configuration["ranks"] > 1 else ():
                if count and kernel not in seen:
                    ranks, counts = counted.setdefault(str(kernel), ([], []))
                    ranks.append(float(run.configuration["ranks"]))
                    counts.append(int(count))
                    kernels_of.add(str(kernel))
        seen |= kernels_of
    lines = {}
    for kernel, (ranks, counts) in counted.items():
        if ranks == counts:
            continue
        if len(set(ranks)) > 1:
            slope, first = np.polyfit(ranks, counts, 1)
        else:
            first, slope = 0.0, float(np.mean(counts)) / ranks[0]
        lines[kernel] = (float(first), float(slope))
    return lines


def _by_rank(experiment: Experiment, name: str) -> list[tuple[Run, pd.DataFrame]]:
    """A metric by rank (rows) and kernel (columns) of each run whose ranks were measured one by one; not of sampled
    values. Runs of one rank are among them where others have several."""
    tables = []
    for run in experiment.runs:
        arrays = None if run.sampled(name) else experiment.arrays(run)
        if arrays is None or name not in arrays.values:
            continue
        chosen = np.array([kernel != WHOLE for kernel in arrays.kernels], dtype=bool)[arrays.code]
        chosen &= (arrays.rank != ALL_RANKS) & ~np.isnan(arrays.values[name])
        if (rows := working(run, arrays)) is not None:
            chosen &= rows
        if len(np.unique(arrays.rank[chosen])) < min(2, run.configuration["ranks"]):
            continue
        import pandas as pd

        kernels = pd.Categorical.from_codes(arrays.code[chosen], dtype=pd.CategoricalDtype(list(arrays.kernels)))
        table = pd.DataFrame({"kernel": kernels, "rank": arrays.rank[chosen], name: arrays.values[name][chosen]})
        pivot = table.pivot_table(index="rank", columns="kernel", values=name, aggfunc="sum", observed=True)
        tables.append((run, pivot))
    return tables if any(len(table) > 1 for _, table in tables) else []
