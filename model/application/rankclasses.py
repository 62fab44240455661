"""What each class of ranks does in a kernel: the first rank, the last one, and the others.

Programs give some ranks work of their own: the first gathers, reads and writes, the last has what a division leaves
over, one rank of a node sends for it, those inside of a grid have more neighbours than those at its edge. Each of these
is a law of its own: what the first rank does alone stays or grows with the ranks where all others do less. So every
kernel has one function for the first rank, one for the last, and one for the busiest of the others, each over the
mean. Of the others the rank that has most in all kernels together represents its class: the program waits for it. The
busiest rank of a kernel, whichever it is, has a function as well: where every fourth rank has more, an end of the
ranks is one of them by chance.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.metrics import metric
from ranksight.core.records import dataclass
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.plaindata import Stored
from ranksight.model.quantity import CENTRAL, Quantity, product
from ranksight.model.series.reducing import Series
from ranksight.model.structure.ranklaws import NO_RANK_LAWS, RankLaws, fit_rank_laws
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.model.uncertainty.rows import choose

if TYPE_CHECKING:
    import pandas as pd

CLASSES = ("first rank", "last rank", "other ranks")
"""The classes; the others are represented by their busiest rank."""
WORKS = ("mean", *CLASSES, "busiest rank")
"""Work of a kernel that has a function: of the mean rank, of each class, and the most that any rank has in it."""
GOING_ON = (forecast.OK, forecast.WIDE, forecast.TURN)
"""Status of laws that say how a ratio goes on, however surely."""
RATIO = "imbalance"
"""Metric of the ratios."""

EXACT = 1e-6
"""Leave-one-out error of counts that a function meets to rounding."""


def named_rank(rank: int, ranks: int) -> str:
    """A rank of `ranks` as all outputs name it: ``rank 0, the first``, ``rank 31, the last``, ``rank 7``."""
    place = ", the first" if rank == 0 else ", the last" if rank == ranks - 1 else ""
    return f"rank {rank}{place}"


def named_class(name: str, ranks: int) -> str:
    """The one rank of a class among `ranks`, as :func:`named_rank` has it; empty of other ranks."""
    return named_rank(0 if name == CLASSES[0] else ranks - 1, ranks) if name in CLASSES[:2] else ""


@dataclass(frozen=True)
class RankClasses(Stored):
    """Work of each class of ranks in K kernels, over that of the mean rank."""

    fitted: Fitted  # :data:`WORKS` of the kernels, one block of K rows after the other
    ratio: Fitted  # the same ratios as they are, one block of K rows for each but the mean
    points: Array  # (n, m): configurations measured, by rising ranks
    measured: Array  # (4, K, n): ratios there, of each class and the busiest rank; NaN where not measured
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
        """Work of each class, then of the busiest rank, over the mean at `points` (k, m), (4, K, k), with the ends of
        its 90 % interval.

        Where it was measured, that is the answer. Elsewhere a ratio goes on by its own law, or by the laws of the two
        works that it is made of where these say it more surely: where one rank has work besides what all repeat, both
        works are sums of terms, and their ratio is none. A class whose rank was the busiest goes on as that one does
        where it has neither. Without any (:meth:`known`) it stays as it was at the most ranks, within what was
        measured. No rank does more than all together.
        """
        single, divided = self._by_ratio(points), self._divided(points)
        known = np.stack([self.latest, *self._range()])[..., None] + np.zeros(len(points))
        ends = np.where(np.isfinite(single).all(axis=0), single, known)
        surer = ~np.isfinite(single).all(axis=0) | (_width(divided) < _width(single))
        ends = np.where(np.isfinite(divided).all(axis=0) & surer, divided, ends)
        # A class whose rank did most is the busiest rank, whose law may have an answer where its own has none.
        by_law = np.isfinite(np.stack([single, divided])).all(axis=1).any(axis=0)
        by_busiest = self._by_busiest(np.asarray(by_law))
        ends[:, : len(CLASSES)] = np.where(by_busiest, ends[:, len(CLASSES) :], ends[:, : len(CLASSES)])
        # Where few ranks do the most, few runs show them among the others, and their law is the less steady one.
        ends[:, 2] = np.minimum(ends[:, 2], ends[:, [0, 1, 3]].max(axis=1))
        ranks = np.maximum(points[:, self.fitted.parameters.index("ranks")], 1.0)
        ends = np.where(ranks > 1, np.clip(ends, 0.0, ranks), 1.0)
        at, place = np.nonzero((points[:, None] == self.points[None]).all(axis=2))
        measured = self.measured[:, :, place]
        ends[..., at] = np.where(np.isfinite(measured), measured, ends[..., at])
        value, low, high = ends
        return value, low, high

    def known(self, points: Array) -> Mask:
        """Whether a ratio of :meth:`ratios` was measured at `points` (k, m), or a law has an answer there, (4, K, k);
        where neither is so the last one measured is taken for it."""
        each = np.stack([self._by_ratio(points), self._divided(points)])
        by_law: Mask = np.asarray(np.isfinite(each).all(axis=1).any(axis=0))
        by_law[: len(CLASSES)] |= self._by_busiest(by_law)
        at, place = np.nonzero((points[:, None] == self.points[None]).all(axis=2))
        by_law[..., at] |= np.isfinite(self.measured[:, :, place])
        return np.asarray(by_law | (points[:, self.fitted.parameters.index("ranks")] <= 1))

    def _by_busiest(self, by_law: Mask) -> Mask:
        """Which classes have the answer of the busiest rank, (3, K, k), by which ratios have a law, (4, K, k)."""
        latest, classes = self.latest, len(CLASSES)
        same = (latest[:classes] >= latest[classes:]) & (latest[classes:] > 0)
        return np.asarray(same[..., None] & by_law[classes:] & ~by_law[:classes])

    def _by_ratio(self, points: Array) -> Array:
        """The ratios with their ends by laws of their own, (3, 4, K, k); NaN where these do not say them."""
        predicted = self.ratio.predict(points)
        ends = np.stack([predicted.value, predicted.lower, predicted.upper])
        ends = np.where(np.isin(predicted.status, GOING_ON), np.maximum(ends, 0.0), np.nan)
        return ends.reshape(3, *self.measured.shape[:2], len(points))

    def _divided(self, points: Array) -> Array:
        """The ratios with their ends by the laws of the works, as :meth:`_by_ratio`; NaN where one is not sure."""
        predicted = self._predict(points)
        shape = (len(WORKS), self.measured.shape[1], len(points))
        value, lower, upper, status = (
            end.reshape(shape) for end in (predicted.value, predicted.lower, predicted.upper, predicted.status)
        )
        sure = (status == forecast.OK) & (value > 0) & (lower > 0)
        logs = Quantity.of_ends(*(np.where(sure, end, np.nan) for end in (value, lower, upper)))
        each, mean = logs.rows(np.arange(1, len(WORKS))), logs.rows(np.arange(1))
        return np.stack(product([each, mean.inverse()]).interval(CENTRAL))

    def _range(self) -> tuple[Array, Array]:
        """Smallest and largest ratio measured, (4, K); 0 without any."""
        measured = np.nan_to_num(self.measured, nan=np.inf)
        least = measured.min(axis=2, initial=np.inf)
        most = np.nan_to_num(self.measured).max(axis=2, initial=0.0)
        return np.where(np.isfinite(least), least, 0.0), most

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
            and self.ratio.parameters == fitted.parameters
            and self.ratio.kernels == (len(WORKS) - 1) * fitted.kernels[:columns]
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
        result[2], result[4] = work[-1], work.max(axis=0)
    if len(others := work[1:-1]):
        worth = np.divide(weights, mean, out=np.zeros_like(mean), where=mean > 0)
        result[3] = others[int((others @ worth).argmax())]
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
    nothing = np.asarray(~(np.nan_to_num(values) > 0).any(axis=2, keepdims=True))
    kernels, metrics = zip(*names, strict=True)
    rows = np.where(nothing, np.nan, values).reshape(-1, len(points))[:, :, None]
    series = Series(parameters, points, rows, len(WORKS) * kernels, len(WORKS) * metrics)
    fitted = fit_varied(series, **settings)
    labels, _ = zip(*_named(fitted), strict=True)
    loose = ~(fitted.press < EXACT) & np.array([metric(name).kind == "requirement" for name in series.metrics])
    laws = _exact_laws(replace(series, kernels=labels).select(loose), **settings)
    ratios = (values[1:] / values[:1])[:, :, order]
    several = np.where((ranks[order] > 1) & ~nothing[1:], ratios, np.nan).reshape(-1, len(points))[:, :, None]
    blocks = len(WORKS) - 1
    series = Series(parameters, points[order], several, blocks * kernels, (RATIO,) * len(several))
    return RankClasses(fitted, fit_varied(series, **settings), points[order], ratios, laws)


def _width(ends: Array) -> Array:
    """Width of an interval over its value, of `ends` (3, ...); NaN where one is not known."""
    value, low, high = ends
    return np.asarray((high - low) / np.where(value > 0, value, 1.0))


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
