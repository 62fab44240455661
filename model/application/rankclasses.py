"""What each class of ranks does in a kernel: the first rank, the last one, and the others.

Programs give some ranks work of their own: the first gathers, reads and writes, the last has what a division leaves
over, one rank of a node sends for it, those inside of a grid have more neighbours than those at its edge. Each of these
is a law of its own: what the first rank does alone stays or grows with the ranks where all others do less. So every
kernel has one function for the first rank, one for the last, and one for the busiest of the others, each over the
mean. Of the others the rank that has most in all kernels together represents its class: the program waits for it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.core.arrays import Array, Index
from ranksight.core.metrics import metric
from ranksight.core.records import dataclass
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.plaindata import Stored
from ranksight.model.series.reducing import Series
from ranksight.model.structure.ranklaws import NO_RANK_LAWS, RankLaws, fit_rank_laws
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.model.uncertainty.rows import choose

if TYPE_CHECKING:
    import pandas as pd

CLASSES = ("first rank", "last rank", "other ranks")
"""The classes; the others are represented by their busiest rank."""
WORKS = ("mean", *CLASSES, "most of the others")
"""Work of a kernel that has a function: of the mean rank, of each class, and the most of any of the others in it."""
OPEN = (forecast.WIDE, forecast.DISAGREE, forecast.TURN)
"""Status of values that are not sure."""

EXACT = 1e-6
"""Leave-one-out error of counts that a function meets to rounding."""


@dataclass(frozen=True)
class RankClasses(Stored):
    """Work of each class of ranks in K kernels, over that of the mean rank."""

    fitted: Fitted  # :data:`WORKS` of the kernels, one block of K rows after the other
    points: Array  # (n, m): configurations measured, by rising ranks
    measured: Array  # (4, K, n): ratios there, of each class and the most of the others; NaN where not measured
    laws: RankLaws = NO_RANK_LAWS  # sums of terms of the ranks that meet counts exactly, named with the class

    @property
    def kernels(self) -> tuple[str, ...]:
        """The kernels."""
        return self.fitted.kernels[: self.measured.shape[1]]

    @property
    def latest(self) -> Array:
        """The ratios at the most ranks at which each was measured, (4, K); 0 without any."""
        latest = np.zeros(self.measured.shape[:2])
        for each in np.moveaxis(self.measured, 2, 0):
            latest = np.where(np.isfinite(each), each, latest)
        return latest

    def ratios(self, points: Array) -> tuple[Array, Array, Array]:
        """Work of each class, then the most of any of the others, over the mean at `points` (k, m), (4, K, k), with the
        ends of its 90 % interval.

        Where it was measured, that is the answer. A ratio without a prediction stays as it was at the most ranks; that
        of the others to the busiest of the first and last rank, which have one value a run and not one of many. No rank
        does more than all together. The interval is that of counts: what scatters in a rank's time scatters in the mean
        as well.
        """
        predicted = self._predict(points)
        shape = (len(WORKS), *self.measured.shape[1:2], len(points))
        value, lower, upper, status = (
            end.reshape(shape) for end in (predicted.value, predicted.lower, predicted.upper, predicted.status)
        )
        exact = (self.fitted.press < EXACT).reshape(shape[:2])[1:, :, None] & (status[1:] != forecast.TURN)
        sure = (status == forecast.OK) & np.isfinite(value)
        openly = np.isin(status, OPEN) & np.isfinite(value)
        counted = np.array([metric(name).kind == "requirement" for name in self.fitted.metrics[: shape[1]]])[:, None]
        # What leaves two times open, as memory domains that fill, divides out of their ratio. Counts of the first and
        # the last rank are of one rank each, so that functions that disagree still hold how they go on.
        one_rank = np.arange(len(WORKS) - 1)[:, None, None] < 2
        usable = exact | (counted & one_rank) | (openly[:1] & ~counted)
        known = (sure[1:] | (openly[1:] & usable)) & (sure | openly)[:1] & (value[:1] > 0)
        mean = np.where(known, value[:1], 1.0)
        latest = np.broadcast_to(self.latest[:, :, None], known.shape)
        one = np.where(known, value[1:] / mean, latest)
        low, high = (np.where(known & counted, end[1:] / mean, one) for end in (lower, upper))
        first, before = one[:2].max(axis=0), np.maximum(latest[:2].max(axis=0), 1e-300)
        like = latest[2:] * np.where(latest[:2].max(axis=0) > 0, first / before, 1.0)
        one[2:] = np.where(known[2:], one[2:], like)
        low, high = np.fmin(low, one), np.fmax(high, one)
        ranks = np.maximum(points[:, self.fitted.parameters.index("ranks")], 1.0)
        one, low, high = (np.where(ranks > 1, np.clip(end, 0.0, ranks), 1.0) for end in (one, low, high))
        at, place = np.nonzero((points[:, None] == self.points[None]).all(axis=2))
        measured = self.measured[:, :, place]
        for end in (one, low, high):
            end[:, :, at] = np.where(np.isfinite(measured), measured, end[:, :, at])
        return one, low, high

    def _predict(self, points: Array) -> Forecast:
        """Work of all rows at `points`, by the sum of terms that meets the counts where one does."""
        predicted = self.fitted.predict(points)
        if not self.laws:
            return predicted
        place = {key: row for row, key in enumerate(_named(self.fitted))}
        index = np.array([place[key] for key in self.laws.keys], dtype=np.intp)
        lawful = self.laws.predict(points)
        return choose(predicted, lawful, index, lawful.status == forecast.OK)

    def _fits(self) -> bool:
        rows, columns, count = self.measured.shape if self.measured.ndim == 3 else (0, 0, 0)
        fitted = self.fitted
        return (
            rows == len(WORKS) - 1
            and "ranks" in fitted.parameters
            and self.points.shape == (count, len(fitted.parameters))
            and fitted.kernels == len(WORKS) * fitted.kernels[:columns]
            and set(self.laws.keys) <= set(_named(fitted))
            and not bool((self.measured < 0).any() or np.isinf(self.measured).any())
        )


def by_rank(table: pd.DataFrame, ranks: int) -> Array:
    """Work (P, K) of all `ranks` in each kernel, of a table by rank (rows) and kernel (columns); 0 without a row."""
    labels = table.index.to_numpy()
    if ((labels < 0) | (labels >= ranks)).any():  # a tool's own numbers, in the order of the ranks
        labels = np.arange(len(labels))
    work = np.zeros((max(ranks, len(labels)), table.shape[1]))
    work[labels] = np.nan_to_num(table.to_numpy(dtype=np.float64))
    return work


def works(work: Array, weights: Array, having: Array) -> Array:
    """:data:`WORKS` (5, K) of a run; NaN where there is no last rank besides the first, and where there are no others.

    `work` (P, K): of each rank in each kernel. `weights` (K,): seconds of the mean rank in each kernel, by which the
    busiest of the others is found. `having` (K,) or (): ranks that the mean is over.
    """
    mean = work.sum(axis=0) / np.maximum(having, 1)
    result = np.full((len(WORKS), work.shape[1]), np.nan)
    result[0], result[1] = mean, work[0]
    if len(work) > 1:
        result[2] = work[-1]
    if len(others := work[1:-1]):
        worth = np.divide(weights, mean, out=np.zeros_like(mean), where=mean > 0)
        result[3], result[4] = others[int((others @ worth).argmax())], others.max(axis=0)
    return result


def fit_classes(
    parameters: tuple[str, ...], points: Array, values: Array, names: tuple[tuple[str, str], ...], **settings: Any
) -> RankClasses:
    """Learn the laws of the classes from what they did.

    `values` (5, K, n): :data:`WORKS` of K kernels at n configurations `points` (n, m); NaN where not measured. `names`:
    kernel and metric of each. `**settings`: of :func:`ranksight.model.fitting.fit_series.fit_series`.
    """
    ranks = points[:, parameters.index("ranks")]
    order = np.argsort(ranks, kind="stable")
    values = _single(values, ranks, order)
    nothing = ~(np.nan_to_num(values) > 0).any(axis=2, keepdims=True)
    kernels, metrics = zip(*names, strict=True)
    rows = np.where(nothing, np.nan, values).reshape(-1, len(points))[:, :, None]
    series = Series(parameters, points, rows, len(WORKS) * kernels, len(WORKS) * metrics)
    fitted = fit_varied(series, **settings)
    labels, _ = zip(*_named(fitted), strict=True)
    loose = ~(fitted.press < EXACT) & np.array([metric(name).kind == "requirement" for name in series.metrics])
    laws = _exact_laws(replace(series, kernels=labels).select(loose), **settings)
    return RankClasses(fitted, points[order], (values[1:] / values[:1])[:, :, order], laws)


def _single(values: Array, ranks: Array, order: Index) -> Array:
    """The works with those of runs of one rank, the first and the last at once, as of the one that does more of a
    kernel at the most ranks: it is the one with work of its own."""
    several = order[ranks[order] > 1]
    most = values[1:3][:, :, several[-1:]]
    last = (most[1] > most[0])[:, 0] if most.shape[2] else np.zeros(values.shape[1], dtype=bool)
    result = values.copy()
    result[2] = np.where(last[:, None] & (ranks == 1), values[1], values[2])
    result[1] = np.where(last[:, None] & (ranks == 1), np.nan, values[1])
    return result


def _exact_laws(counts: Series, **settings: Any) -> RankLaws:
    """Sums of terms of the ranks that meet `counts` to rounding at all numbers of ranks above one."""
    laws = fit_rank_laws(counts, set(counts.keys), **settings) if len(counts) else NO_RANK_LAWS
    if not laws:
        return laws
    several = counts.points[:, counts.parameters.index("ranks")] > 1
    predicted = laws.predict(counts.points[several]).value
    rows = counts.rows
    measured = counts.values[[rows[key] for key in laws.keys]][:, several, 0]
    missed = np.nan_to_num(np.abs(predicted - measured)) > EXACT * np.nan_to_num(measured)
    met = {key for row, key in enumerate(laws.keys) if not missed[row].any()}
    return laws if len(met) == len(laws.keys) else fit_rank_laws(counts, met, **settings) if met else NO_RANK_LAWS


def _named(fitted: Fitted) -> list[tuple[str, str]]:
    """Kernel, named with its class, and metric of each row of :data:`WORKS`."""
    each = len(fitted.kernels) // len(WORKS)
    names = zip(fitted.kernels, fitted.metrics, strict=True)
    return [(f"{WORKS[row // each]}: {kernel}", name) for row, (kernel, name) in enumerate(names)]
