"""The imbalance of each kernel, and of the program: what the busiest rank takes over the mean, by the parameters.

    r_k = max over ranks T_k / mean over ranks T_k

The program's busiest rank is the busiest of every kernel, of some, or of none: what falls together on one rank,

    c = max over ranks sum_k T_k (w_kr / mean w_k - 1) / sum_k T_k (r_k - 1),

w_kr the work of rank r in kernel k and T_k the mean, is taken from the measurements, and

    imbalance_k = c T_k (r_k - 1),   program's = 1 + c sum_k T_k (r_k - 1) / sum_k T_k

(the inverse of POP's load balance). Where a kernel's time is that of its slowest rank, S_k = r_k T_k, its mean and its
imbalance are parts of it; what is left, (1 - c) S_k (1 - 1 / r_k), is no part of the program's time: slowest ranks of
different kernels are different ranks, and where waiting for others is inside of kernels (a halo exchange, an MPI call)
what one rank computes longer it waits less, so that c is near 0. Of a kernel that n_k of P ranks have alone, T_k their
mean, T_k (1 - n_k / P) is lost too; the number of ranks that have a kernel is a line over the ranks: one (what the root
does), all, or all but one (workers). So one count determines both, and no kernel is uneven in a balanced program.

Both the largest and the mean are functions of their own, as sums of what all ranks do and of what one does besides are
simpler than their ratio. A kernel whose ranks differ by less than a twentieth everywhere is even; the most uneven one
is kept all the same, so that an even program is known as one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Index
from ranksight.core.experiment import ALL_RANKS, WHOLE, Experiment, Run
from ranksight.core.idle import working
from ranksight.model import priors
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.plaindata import Stored
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.uncertainty import forecast

if TYPE_CHECKING:
    import pandas as pd

Tables = Mapping[str, "list[tuple[Run, pd.DataFrame]]"]

UNEVEN = 1.05
"""Largest over mean from which a kernel is uneven."""
FEWEST = 3
"""Configurations of two ranks or more needed to extrapolate an imbalance."""
COVERED = 0.9
"""Part of the program's time that kernels counted rank by rank must have for their imbalance to be the program's."""
APART = 0.9
"""c up to which kernels are reported to have slowest ranks of their own."""
MEASURES = ("instructions", "cycles", "time")
"""Metrics that measure a rank's work in a kernel, the steadiest first."""


@dataclass(frozen=True)
class Imbalances(Stored):
    """Ratios of the uneven kernels."""

    fitted: Fitted  # work of the busiest rank of each of K uneven kernels, then that of the mean rank
    seen: Array  # (K, 2): smallest and largest ratio measured
    held: bool  # whether the kernels' times are those of their slowest ranks, and hold the imbalance
    together: float = 1.0  # c, the part of the kernels' imbalances that falls on one rank
    having: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Ranks that have a kernel which not all have, ``first + slope x ranks``."""

    @property
    def kernels(self) -> tuple[str, ...]:
        """The uneven kernels."""
        return self.fitted.kernels[: len(self.seen)]

    def ratios(self, points: Array) -> Array:
        """r_k of the uneven kernels at `points` (k, m), (K, k); 1 on one rank.

        A ratio without a prediction stays the largest seen. A predicted one changes by at most the change that was
        seen, or by as much more as even the interval's nearer end says; no rank does more than all.
        """
        said = self.fitted.predict(points)
        low, high = self.seen[:, :1], self.seen[:, 1:]
        spare = high / low
        most, mean = np.split(said.value, 2)
        # What leaves both open, as domains that fill, divides out: how wide each is says nothing of their ratio.
        predicted = np.isin(said.status, (forecast.OK, forecast.WIDE, forecast.DISAGREE, forecast.TURN))
        known = predicted.reshape(2, len(self.seen), -1).all(axis=0) & (mean > 0)
        ratio = most / np.where(known, mean, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            (most_low, mean_low), (most_high, mean_high) = np.split(said.lower, 2), np.split(said.upper, 2)
            bottom, top = np.fmin(low / spare, most_high / mean_low), np.fmax(high * spare, most_low / mean_high)
        value = np.where(known & np.isfinite(ratio), np.clip(ratio, bottom, top), high)
        ranks = points[:, self.fitted.parameters.index("ranks")]
        return np.clip(value, 1.0, np.maximum(ranks, 1.0))

    def parts(self, kernels: tuple[str, ...], times: Array, points: Array) -> Array:
        """Seconds of each kernel that are waiting for the busiest rank, (K, k).

        `times` (K, k): their predicted times. `points` (k, m).
        """
        return np.asarray(self.together * self._beyond(kernels, times, points))

    def left(self, kernels: tuple[str, ...], times: Array, points: Array) -> Array:
        """Seconds of each kernel's slowest rank that are no part of the program's time, (K, k); 0 of means."""
        if not self.held:
            return np.zeros_like(times)
        return np.asarray((1 - self.together) * self._beyond(kernels, times, points))

    def remark(self) -> str:
        """What is to be known of kernels whose times are no sum."""
        if not self.held or self.together > APART:
            return ""
        return "kernels' times are those of their slowest ranks, which differ: the program takes less than their sum"

    def _beyond(self, kernels: tuple[str, ...], times: Array, points: Array) -> Array:
        """What the busiest rank of each kernel has over the mean of all, (K, k)."""
        ratio = self.of(kernels, points)
        return np.asarray(times * ((1 - 1 / ratio) if self.held else (ratio - 1)))

    def part(self, kernels: tuple[str, ...], points: Array) -> Array:
        """The part of all ranks that have each kernel, (K, k); 1 where times hold the imbalance, as they hold this."""
        return np.ones((len(kernels), len(points))) if self.held else self.among(kernels, points)

    def among(self, kernels: tuple[str, ...], points: Array) -> Array:
        """The part of all ranks that have each kernel, (K, k), whatever times hold."""
        ranks = np.maximum(points[:, self.fitted.parameters.index("ranks")], 1.0)
        first, slope = np.array([self.having.get(kernel, (0.0, 1.0)) for kernel in kernels]).reshape(-1, 2).T
        return np.asarray(np.clip(np.round(first[:, None] + slope[:, None] * ranks, 6) / ranks, 1 / ranks, 1.0))

    def program(self, kernels: tuple[str, ...], times: Array, points: Array) -> Array:
        """The program's busiest rank over the sum of the kernels' times, (k,): 1 and more where these are means, 1 and
        less where they are those of slowest ranks."""
        total = times.sum(axis=0)
        more = -self.left(kernels, times, points) if self.held else self.parts(kernels, times, points)
        return np.asarray(1 + more.sum(axis=0) / np.where(total > 0, total, 1.0))

    def reaching(self, kernels: tuple[str, ...], points: Array, level: float) -> tuple[Array, Array]:
        """:meth:`slowest` of any kernels, and how far the logarithm of each may be off, (len(kernels), k) each.

        That is as much as it goes on beyond what was seen of it, and what times drift from their functions.
        """
        every, among = self.of(kernels, points), self.among(kernels, points)
        here, there = self._uneven(kernels)
        whole, z = every[here], float(special.ndtri((1 + level) / 2))
        beyond = np.log(whole / np.clip(whole, *np.moveaxis(self.seen[there], 1, 0)[:, :, None]))
        beyond = np.where(among[here] < 1, 0.0, beyond)  # who has it is no matter of how much
        ends, x = (np.log(np.maximum(each, 1e-300)) for each in (self.fitted.trained[there], points))
        out = np.maximum(np.maximum(x - ends[:, None, :, 1], ends[:, None, :, 0] - x), 0.0)
        drift = priors.DRIFT * np.sqrt((out**2).sum(axis=2))
        reach = np.zeros_like(every)
        reach[here] = np.hypot(beyond * z / forecast.TAIL, drift * z)
        return self._of_those(every, among), reach

    def slowest(self, kernels: tuple[str, ...], points: Array) -> Array:
        """What the slowest rank takes over the mean of those that have a kernel, (len(kernels), k)."""
        return self._of_those(self.of(kernels, points), self.among(kernels, points))

    def _of_those(self, ratio: Array, among: Array) -> Array:
        """r_k over the mean of those that have a kernel, the part `among` of all ranks; at least 1."""
        return np.maximum(ratio * among if self.held else ratio, 1.0)

    def of(self, kernels: tuple[str, ...], points: Array) -> Array:
        """r_k of any kernels, 1 of the even ones, (len(kernels), k)."""
        ratio = np.ones((len(kernels), len(points)))
        here, there = self._uneven(kernels)
        if len(here):
            ratio[here] = self.ratios(points)[there]
        return ratio

    def _uneven(self, kernels: tuple[str, ...]) -> tuple[Index, Index]:
        """Which of any kernels are uneven, and their rows here."""
        place = {kernel: at for at, kernel in enumerate(self.kernels)}
        mine = [(at, place[kernel]) for at, kernel in enumerate(kernels) if kernel in place]
        here, there = np.array(mine, dtype=np.intp).reshape(-1, 2).T
        return here, there

    def _fits(self) -> bool:
        fitted, seen = self.fitted, self.seen
        return (
            0 <= self.together <= 1
            and bool(np.isfinite(list(self.having.values())).all())
            and "ranks" in fitted.parameters
            and seen.shape == (len(fitted) // 2, 2)
            and fitted.kernels == 2 * fitted.kernels[: len(seen)]
            and bool((seen >= 1).all() and (seen < np.inf).all() and (seen[:, 0] <= seen[:, 1]).all())
        )


def fit_imbalances(experiment: Experiment, held: bool, times: Series, **settings: Any) -> Imbalances | None:
    """Learn the imbalance of each uneven kernel; None where ranks were not measured one by one.

    `held`: whether the kernels' times are those of their slowest ranks: these give the imbalance then, as it is a part
    of them; otherwise the steadiest of :data:`MEASURES` does. `times`: with the kernels' times, by which their
    imbalances weigh. `**settings`: of :func:`ranksight.model.fitting.fit_series.fit_series`.
    """
    if "ranks" not in experiment.parameters:
        return None
    found: dict[tuple[str, str], dict[tuple[float, ...], list[tuple[float, float]]]] = {}
    tables = {name: _by_rank(experiment, name) for name in (("time",) if held else MEASURES)}
    for name, several in tables.items():
        for run, table in several:
            point = tuple(float(run.configuration[parameter]) for parameter in experiment.parameters)
            for kernel, pair in _measured(run, table, every=held).items():
                found.setdefault((kernel, name), {}).setdefault(point, []).append(pair)
    measured: dict[tuple[str, str], dict[tuple[float, ...], Array]] = {}
    for name in MEASURES:
        for kernel, cells in ((kernel, cells) for (kernel, other), cells in found.items() if other == name):
            if len(cells) >= FEWEST and kernel not in {key for key, _ in measured}:
                measured[kernel, name] = {point: np.median(pairs, axis=0) for point, pairs in cells.items()}
    if not measured:
        return None
    weights = _weights(times)
    counted = sum(weights.get(kernel, 0.0) for kernel, _ in measured)
    if not held and counted < COVERED * sum(weights.values()):
        return None
    ratios = {key: max(most / mean for most, mean in cells.values()) for key, cells in measured.items()}
    least = min(UNEVEN, max(ratios.values()))
    measured = {key: cells for key, cells in measured.items() if ratios[key] >= least}
    points = sorted({point for cells in measured.values() for point in cells})
    none = np.full(2, np.nan)
    values = np.array([[cells.get(point, none) for point in points] for cells in measured.values()])
    ratio = values[..., 0] / values[..., 1]
    seen = np.maximum(np.stack([np.nanmin(ratio, axis=1), np.nanmax(ratio, axis=1)], axis=1), 1.0)
    kernels, names = zip(*measured, strict=True)
    both = np.concatenate([values[..., 0], values[..., 1]])[:, :, None]
    series = Series(experiment.parameters, np.array(points), both, 2 * kernels, 2 * names)
    together = _slowest_together(tables["time"], measured) if held else _together(tables, measured, weights)
    return Imbalances(fit_varied(series, **settings), seen, held, together, _having(tables))


def _weights(series: Series) -> dict[str, float]:
    """Mean time of each kernel over the configurations."""
    mine = [at for at, (kernel, name) in enumerate(series.keys) if name == "time" and kernel != WHOLE]
    mean = np.nan_to_num(reduce(series.values[mine], "median", axis=2)).mean(axis=1)
    return {series.kernels[at]: float(value) for at, value in zip(mine, mean, strict=True)}


def _together(tables: Tables, measured: Collection[tuple[str, str]], weights: Mapping[str, float]) -> float:
    """The part of the kernels' imbalances that falls on one rank: c, the median over runs; 1 where no run has all."""
    import pandas as pd

    by_run: dict[str, list[pd.DataFrame]] = {}
    for name in dict.fromkeys(name for _, name in measured):
        for run, table in tables[name]:
            mine = [kernel for kernel, other in measured if other == name and kernel in table]
            by_run.setdefault(run.id, []).append(table[mine])
    found = []
    for columns in by_run.values():
        if sum(each.shape[1] for each in columns) < len(measured):
            continue
        work = pd.concat(columns, axis=1)
        beyond = (work / work.mean() - 1).fillna(0.0) * [weights.get(str(kernel), 0.0) for kernel in work]
        if (most := float(beyond.max().clip(lower=0.0).sum())) > 0:
            found.append(float(beyond.sum(axis=1).max()) / most)
    return float(np.clip(np.median(found), 0.0, 1.0)) if found else 1.0


def _slowest_together(tables: list[tuple[Run, pd.DataFrame]], measured: Collection[tuple[str, str]]) -> float:
    """c of times of slowest ranks, the median over runs: with it, their sum is the program's busiest rank's time."""
    uneven = [kernel for kernel, _ in measured]
    found = []
    for _, table in tables:
        times = table.fillna(0.0)
        beyond = times.max() - times.mean()
        most = float(beyond[[kernel for kernel in uneven if kernel in times]].sum())
        if most > 0:
            found.append(1 - (float(times.max().sum()) - float(times.sum(axis=1).max())) / most)
    return float(np.clip(np.median(found), 0.0, 1.0)) if found else 1.0


def _having(tables: Tables) -> dict[str, tuple[float, float]]:
    """Lines over the ranks of how many have each kernel, of those that not all have."""
    found: dict[str, tuple[list[float], list[int]]] = {}
    seen: set[str] = set()
    for several in tables.values():
        mine: set[str] = set()
        for run, table in several:
            for kernel, count in table.count().items():
                if count and kernel not in seen:
                    ranks, counts = found.setdefault(str(kernel), ([], []))
                    ranks.append(float(run.configuration["ranks"]))
                    counts.append(int(count))
                    mine.add(str(kernel))
        seen |= mine
    lines = {}
    for kernel, (ranks, counts) in found.items():
        if ranks == counts:
            continue
        if len(set(ranks)) > 1:
            slope, first = np.polyfit(ranks, counts, 1)
        else:
            first, slope = 0.0, float(np.mean(counts)) / ranks[0]
        lines[kernel] = (float(first), float(slope))
    return lines


def _by_rank(experiment: Experiment, name: str) -> list[tuple[Run, pd.DataFrame]]:
    """A metric by rank (rows) and kernel (columns) of each run of two ranks or more; not of sampled values."""
    found = []
    for run in experiment.runs:
        held = None if run.sampled(name) else experiment.arrays(run)
        if held is None or name not in held.values:
            continue
        own = np.array([kernel != WHOLE for kernel in held.kernels], dtype=bool)[held.code]
        own &= (held.rank != ALL_RANKS) & ~np.isnan(held.values[name])
        if (rows := working(run, held)) is not None:
            own &= rows
        if len(np.unique(held.rank[own])) < 2:
            continue
        import pandas as pd  # which runs of one rank do without

        kernels = pd.Categorical.from_codes(held.code[own], dtype=pd.CategoricalDtype(list(held.kernels)))
        table = pd.DataFrame({"kernel": kernels, "rank": held.rank[own], name: held.values[name][own]})
        pivot = table.pivot_table(index="rank", columns="kernel", values=name, aggfunc="sum", observed=True)
        found.append((run, pivot))
    return found


def _measured(run: Run, table: pd.DataFrame, every: bool) -> dict[str, tuple[float, float]]:
    """Largest and mean of a metric, by kernel, in a run.

    The mean is over all ranks, those without the kernel too, where `every`; else over those that have it.
    """
    most, total, count = table.max(), table.sum(), table.count()
    mean = total / (float(run.configuration["ranks"]) if every else count)
    pairs = zip(table.columns, most.tolist(), mean.tolist(), strict=True)
    return {str(kernel): (most, average) for kernel, most, average in pairs if average > 0}
