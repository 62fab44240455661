"""The load imbalance of a program whose kernels' imbalances are not known one by one: busiest rank over the mean.

The work is processor time between MPI calls where it was measured, otherwise instructions or time. The imbalance is a
function of the parameters, and never less than 1. Where the same end of the ranks is busiest at the most ranks, such as
a root that reads and writes, it is named, and each class of ranks has its own function
(:mod:`ranksight.model.application.rankclasses`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array
from ranksight.core.experiment import ALL_RANKS, WHOLE, Experiment, Run
from ranksight.core.records import dataclass
from ranksight.core.sampled import sampled_runs
from ranksight.model.application.rankclasses import RankClasses, fit_classes, named_class, works
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.plaindata import Part
from ranksight.model.series.reducing import Series
from ranksight.model.structure.wholeunits import NO_UNITS, WholeUnits
from ranksight.model.uncertainty import forecast

FIRST, LAST = "first rank", "last rank"
KEY = ("(all ranks)", "imbalance")
"""Kernel and metric of the series."""
WORK = "compute_cpu_time"
"""The best measure of a rank's work: processor time between MPI calls."""
TELLING = 1.05
"""Imbalance from which on the busiest rank is reported."""
HAVING = ("time", "instructions")
"""Metrics that show which ranks have a kernel."""
DOUBT = 0.01
"""Probability of samples differing so much between ranks by chance, below which they differ."""
FEWEST = 3
"""Configurations with two ranks or more needed to extrapolate an imbalance."""


@dataclass(frozen=True)
class Balance(Part):
    """How unevenly ranks work."""

    fitted: Fitted  # the imbalance as measured, in the row :data:`KEY`
    seen: tuple[float, float]  # smallest and largest imbalance measured
    classes: RankClasses  # work of each class of ranks over the mean
    busiest: str = ""  # the rank that was busiest in all runs at the most ranks, the first or the last one

    def imbalance(self, points: Array) -> tuple[Array, Array, Array]:
        """Work of the busiest rank over the mean at `points` (k, m), with the ends of its 90 % interval; each (k,).

        Where the busiest rank is the first or the last one, each class of ranks has its own law, and the busiest is
        taken last; times of ranks that scatter about their mean have none. The interval holds what the ratio itself
        becomes by its own function.
        """
        predicted, row = self.fitted.predict(points), self.fitted.rows[KEY]
        (least, most), lower, upper = self.seen, predicted.lower[row], predicted.upper[row]
        known = predicted.status[row] == forecast.OK
        value = np.where(known, predicted.value[row], most)
        if self.busiest and most >= TELLING:
            value = self.classes.ratios(points)[0].max(axis=0)[0]
        low, high = np.where(known, lower, least), np.where(known, upper, most)
        value = np.maximum(np.nan_to_num(value, nan=1.0), 1.0)
        return value, np.clip(np.nan_to_num(low, nan=1.0), 1.0, value), np.fmax(high, value)

    def remarks(self, points: Array) -> list[str]:
        """Which rank the wall waits for at `points`, where it does by :data:`TELLING` or more."""
        if not self.busiest:
            return []
        return waited_for(self.fitted.parameters, points, self.imbalance(points)[0], [self.busiest] * len(points))

    def _fits(self) -> bool:
        low, high = self.seen
        return 1 <= low <= high < np.inf and "ranks" in self.fitted.parameters and KEY in self.fitted.rows


def waited_for(parameters: Sequence[str], points: Array, ratios: Array, slowest: Sequence[str]) -> list[str]:
    """What is to be known of the first or last rank that the others wait for at `points` (k, m).

    `ratios` (k,): its work over the mean. `slowest`: the class of the slowest rank at each of them.
    """
    texts, ranks = [], points[:, list(parameters).index("ranks")]
    for point, count, ratio, who in zip(points, ranks, ratios, slowest, strict=True):
        name = named_class(who, int(count))
        if ratio >= TELLING and name:
            where = ", ".join(f"{n} = {x:g}" for n, x in zip(parameters, point, strict=True))
            texts.append(f"at {where} all wait for {name}, which has {ratio:.3g} times the mean work")
    return texts


def fit_balance(experiment: Experiment, units: WholeUnits = NO_UNITS, **settings: Any) -> tuple[Balance | None, float]:
    """How unevenly ranks work, and how unevenly they did at most ranks by processor time.

    None where ranks were not counted one by one at enough configurations, 1 where processor time was not measured.
    `units`: what these make uneven is taken out: it is another at every number of ranks. `**settings`: of
    :func:`ranksight.model.fitting.fit_series.fit_series`.
    """
    present = experiment.metrics()
    metric = next((name for name in (WORK, "instructions", "time") if name in present), "")
    ratios: dict[tuple[float, ...], list[float]] = {}
    last: dict[float, list[float]] = {}
    done: dict[tuple[float, ...], list[Array]] = {}
    busiest: dict[float, set[str]] = {}
    for run, work in _works(experiment, metric) if metric else ():
        point = run.point(experiment.parameters)
        uneven = float(units.unevenness(np.array([point]), experiment.parameters)[0])
        ratio = max(1.0, float(work.max() / work.mean()) / uneven)
        done.setdefault(point, []).append(works(work[:, None], np.ones(1), np.array(len(work))) / uneven)
        ratios.setdefault(point, []).append(ratio)
        last.setdefault(float(len(work)), []).append(ratio)
        name = {0: FIRST, len(work) - 1: LAST}.get(int(work.argmax()), "")
        busiest.setdefault(float(len(work)), set()).add(name)
    at_most = float(np.median(last[max(last)])) if metric == WORK and last else 1.0
    if "ranks" not in experiment.parameters or len(ratios) < FEWEST:
        return None, at_most
    measured = _held(experiment)
    # Means over the ranks that have a kernel hold what a few ranks do alone already.
    cells = [np.maximum(np.array(several) * measured.get(point, 1.0), 1.0) for point, several in ratios.items()]
    values = np.array([np.median(cell) for cell in cells])
    series = Series(experiment.parameters, np.array(list(ratios)), values[None, :, None], KEY[:1], KEY[1:])
    seen = float(values.min()), float(values.max())
    each = np.stack([np.median(several, axis=0) for several in done.values()], axis=2)
    each[1:] *= np.array([measured.get(point, 1.0) for point in done])
    classes = fit_classes(experiment.parameters, series.points, each, ((KEY[0], metric),), **settings)
    # The same end of the ranks is not the busiest twice by chance.
    late = set().union(*(busiest[count] for count in sorted(busiest)[-2:]))
    one = late.pop() if len(late) == 1 else ""
    return Balance(fit_varied(series, **settings), seen, classes, one), at_most


def _held(experiment: Experiment) -> dict[tuple[float, ...], float]:
    """The sum of the kernels' means over all ranks, over that of their means over the ranks that have each.

    Samples do not show which ranks have a kernel: a rank without one may have it.
    """
    ratios: dict[tuple[float, ...], list[float]] = {}
    for run, table in experiment.tables("counters"):
        metric = next((name for name in HAVING if name in table.columns and not run.sampled(name)), "")
        if not metric:
            continue
        table = table[(table["rank"] != ALL_RANKS) & (table["kernel"] != WHOLE)].dropna(subset=[metric])
        if table["rank"].nunique() < 2:
            continue
        by_kernel = table.groupby("kernel", observed=True)[metric]
        each = float(by_kernel.mean().sum())
        if each > 0:
            point = run.point(experiment.parameters)
            ratios.setdefault(point, []).append(float(table[metric].sum()) / float(run.configuration["ranks"]) / each)
    return {point: float(np.median(parts)) for point, parts in ratios.items()}


def _works(experiment: Experiment, metric: str) -> Iterator[tuple[Run, Array]]:
    """The runs whose work was counted rank by rank, each with that of its ranks (r,), two or more.

    Ranks whose samples differ by no more than samples do have as much as each other.
    """
    for run, every in experiment.tables("counters"):
        if metric not in every.columns:
            continue
        table = every[every["rank"] != ALL_RANKS].dropna(subset=[metric])
        # Instructions of a whole program hold those of waiting in MPI, which is the reverse of work.
        table = table[(table["kernel"] == WHOLE) == (metric == WORK)]
        if table["rank"].nunique() < 2:
            continue
        ranks = range(int(run.configuration.get("ranks", table["rank"].nunique())))
        work = table.groupby("rank")[metric].sum().reindex(ranks, fill_value=0.0).to_numpy(dtype=np.float64)
        if run.sampled(metric) and _by_chance(experiment, run, metric, work):
            work = np.full_like(work, work.mean())
        if work.sum() > 0:
            yield run, work


def _by_chance(experiment: Experiment, run: Run, metric: str, work: Array) -> bool:
    """Whether the sums of ranks (r,) differ by no more than their samples explain (chi-squared test)."""
    for _, every in sampled_runs(experiment, [run]):
        table = every[every["metric"] == metric]
        if not table.empty:
            variance = float((table["samples"] * table["worth"] ** 2).sum()) / len(work)
            return bool(special.chdtrc(len(work) - 1, float(((work - work.mean()) ** 2).sum()) / variance) > DOUBT)
    return False
