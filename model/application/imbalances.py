"""The imbalance of each kernel, and of the program: what the busiest rank takes over the mean, by the parameters.

    r_k = max over ranks T_k / mean over ranks T_k

The program waits for its slowest rank, which need not be the slowest in any kernel. Each class of ranks has a law of
its own in every kernel (:mod:`ranksight.model.application.rankclasses`), and the slowest is taken last:

    program's = max over classes c of sum_k m_k rho_kc,    rho_kc = w_kc / mean w_k,

w_kc the work of class c in kernel k, and m_k the mean time of all ranks in it. So Amdahl's law of a part that rank 0
does alone is its own function, whatever the others do. The imbalance, the program's time less sum_k m_k (the inverse of
POP's load balance), belongs to those kernels in which the slowest class does more than the mean, in proportion.

Where a kernel's time is that of its slowest rank, S_k = r_k m_k, slowest ranks of different kernels are different
ranks, and where waiting for others is inside of kernels (a halo exchange) what one rank computes longer it waits less:
the program takes less than the sum of S_k. Functions of MPI are no kernels here: all classes have what they take
besides waiting (:mod:`ranksight.model.application.unwaited`).

Of a kernel that n_k of P ranks have alone, T_k their mean, m_k is T_k n_k / P; the number of ranks that have a kernel
is a line over the ranks: one (what the root does), all, or all but one (workers). So one count determines both, and no
kernel is uneven in a balanced program.

A kernel whose ranks differ little everywhere is even, by less than a twentieth in their times; the most uneven one is
kept all the same, so that an even program is known as one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from ranksight.core.arrays import Array, Index, Mask, ratio
from ranksight.core.records import dataclass
from ranksight.core.units import in_full
from ranksight.model.application.rankclasses import CLASSES, RankClasses
from ranksight.model.application.unwaited import Unwaited
from ranksight.model.plaindata import Part
from ranksight.model.uncertainty import forecast

APART = 0.9
"""Part of the kernels' imbalances that falls on one rank, up to which kernels have slowest ranks of their own."""
LIGHT = 0.01
"""Part of the kernels' time up to which those do not count whose imbalance has no answer."""
OF_SLOWEST = "kernels' times are those of their slowest ranks"


def settled(known: Mask, times: Array, total: Array) -> Mask:
    """Where (k,) what ranks compute is separated from what they wait: the imbalance is `known` (K, k) of all kernels
    but some whose `times` (K, k) are :data:`LIGHT` of the `total` (k,)."""
    return np.asarray((times * ~known).sum(axis=0) <= LIGHT * total)


@dataclass(frozen=True)
class Imbalances(Part):
    """Ratios of the uneven kernels."""

    classes: RankClasses  # of K uneven kernels
    held: bool  # whether the kernels' times are those of their slowest ranks, and hold the imbalance
    averaged: bool  # whether cycles are means over ranks
    together: float = 1.0
    """The part of the kernels' imbalances that fell on one rank, the median over runs: near 0 where kernels hold the
    waiting for others."""
    having: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Ranks that have a kernel which not all have, ``first + slope x ranks``."""
    unwaited: Unwaited | None = None  # what communication is besides waiting, where ranks' times say it

    @property
    def kernels(self) -> tuple[str, ...]:
        """The uneven kernels."""
        return self.classes.kernels

    @property
    def phased(self) -> bool:
        """Whether ranks wait for each other after every kernel."""
        return self.unwaited is not None and self.unwaited.phased

    def remarks(self, points: Array) -> tuple[str, ...]:
        """What is to be known of kernels whose times are no sum."""
        if not self.held:
            return ()
        if self.together <= APART:
            return (f"{OF_SLOWEST}, which differ: the program takes less than their sum",)
        return (f"{OF_SLOWEST}; the program and shares have MPI without its waiting",) if self.unwaited else ()

    def unanswered(self, kernels: tuple[str, ...], times: Array, points: Array) -> list[str]:
        """Which imbalances of kernels that take some of the `times` (K, k) have no answer at `points` (k, m), and what
        is taken for them, a sentence each."""
        parameters = self.classes.fitted.parameters
        ranks = int(self.classes.points[:, parameters.index("ranks")].max(initial=1.0))
        unknown = ~self.known(kernels, points) & (times > LIGHT * times.sum(axis=0))
        ratios = self.of(kernels, points)
        texts = []
        for row, at in np.argwhere(unknown).tolist():
            where = ", ".join(f"{name} = {in_full(x)}" for name, x in zip(parameters, points[at], strict=True))
            texts.append(
                f"the imbalance of {kernels[row]} at {where} has insufficient data: {ratios[row, at]:.3g}, as measured "
                f"at up to {ranks} ranks, is assumed"
            )
        return texts

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

    def waited(self, kernels: tuple[str, ...], times: Array, points: Array) -> tuple[Array, tuple[str, ...]]:
        """What the program's slowest rank takes over the mean of all at each of k configurations, and its class."""
        mean = self.means(kernels, times, points).sum(axis=0)
        slowest = self.program(kernels, times, points)[0] * times.sum(axis=0)
        return slowest / np.where(mean > 0, mean, 1.0), self.slowest_class(kernels, times, points)

    def slowest_class(self, kernels: tuple[str, ...], times: Array, points: Array) -> tuple[str, ...]:
        """The class of ranks that the program waits for at each of k configurations; none where each kernel has its
        own, an imbalance has no answer, or another class may take longer."""
        if self.phased:
            return ("",) * len(points)
        (uneven, rows), each = self._uneven(kernels), self._seconds(kernels, times, points)[0]
        total = each.sum(axis=1)
        slowest, second = total.argmax(axis=0), np.partition(total, -2, axis=0)[-2]
        value, low, _ = self.classes.ratios(points)
        each[:, uneven] *= ratio(low, value, 1.0)[: len(CLASSES), rows]
        least = each.sum(axis=1)
        sure = np.take_along_axis(least, slowest[None], axis=0)[0] >= second
        sure &= settled(self.known(kernels, points), times, times.sum(axis=0))
        return tuple(CLASSES[at] if yes else "" for at, yes in zip(slowest, sure, strict=True))

    def _seconds(self, kernels: tuple[str, ...], times: Array, points: Array) -> tuple[Array, Array, Array]:
        """Seconds of each class of ranks in each kernel, (C, K, k), with the ends of their 90 % interval; 0 without
        ranks of the class."""
        uneven, rows = self._uneven(kernels)
        ranks = np.maximum(points[:, self.classes.fitted.parameters.index("ranks")], 1.0)
        # Not even two ranks have others than the first and the last.
        present = (np.arange(1, len(CLASSES) + 1)[:, None] <= ranks)[:, None]
        ends = []
        # The time of a slowest rank holds its ratio, wherever that lies in its interval.
        for end, most in zip(self.classes.ratios(points), self._ends(kernels, points), strict=True):
            of_slowest = most if self.held else np.ones_like(times)
            each = np.repeat(of_slowest[None], len(CLASSES), axis=0)
            each[:, uneven] = most[uneven] if self.phased else end[: len(CLASSES), rows]
            ends.append(np.where(present, times / of_slowest * each, 0.0))
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
        """:meth:`slowest` of any kernels, and the standard deviation of its logarithm, (len(kernels), k) each."""
        among = self.among(kernels, points)
        value, low, high = (np.log(self._of_those(end, among)) for end in self._ends(kernels, points))
        return np.exp(value), (high - low) / (2 * forecast.TAIL)

    def slowest(self, kernels: tuple[str, ...], points: Array) -> Array:
        """What the slowest rank takes over the mean of those that have a kernel, (len(kernels), k)."""
        return self._of_those(self.of(kernels, points), self.among(kernels, points))

    def _of_those(self, ratio: Array, among: Array) -> Array:
        """r_k over the mean of those that have a kernel, the part `among` of all ranks; at least 1."""
        return np.maximum(ratio * among if self.held else ratio, 1.0)

    def of(self, kernels: tuple[str, ...], points: Array) -> Array:
        """r_k of any kernels, 1 of the even ones, (len(kernels), k): the largest of any class over the mean."""
        return self._ends(kernels, points)[0]

    def _ends(self, kernels: tuple[str, ...], points: Array) -> tuple[Array, Array, Array]:
        """:meth:`of` with the ends of its 90 % interval."""
        uneven, rows = self._uneven(kernels)
        value, low, high = np.ones((3, len(kernels), len(points)))
        if len(uneven):
            for end, ratios in zip((value, low, high), self.classes.ratios(points), strict=True):
                end[uneven] = np.maximum(ratios.max(axis=0)[rows], 1.0)
        return value, low, high

    def over_mean(self, kernels: tuple[str, ...], points: Array) -> Array:
        """Work of the busiest rank of any kernels over the mean of all ranks, (len(kernels), k); NaN of even ones, and
        where it has no answer."""
        result = np.full((len(kernels), len(points)), np.nan)
        uneven, _ = self._uneven(kernels)
        result[uneven] = (self.of(kernels, points) / self.part(kernels, points))[uneven]
        return np.where(self.known(kernels, points), result, np.nan)

    def known(self, kernels: tuple[str, ...], points: Array) -> Mask:
        """Whether the ratio of each of any kernels has an answer at `points`, (len(kernels), k): that of the class
        which did most in it at the most ranks measured. Even kernels have 1."""
        result = np.ones((len(kernels), len(points)), dtype=bool)
        uneven, rows = self._uneven(kernels)
        if len(uneven):
            latest, known = self.classes.latest, self.classes.known(points)
            first = [len(CLASSES)] if self.phased else list(range(len(CLASSES)))
            most = latest[first] >= latest[first].max(axis=0)
            result[uneven] = (known[first] & most[..., None]).any(axis=0)[rows]
        return result

    def _uneven(self, kernels: tuple[str, ...]) -> tuple[Index, Index]:
        """Which of any kernels are uneven, and their rows here."""
        place = {kernel: at for at, kernel in enumerate(self.kernels)}
        pairs = [(at, place[kernel]) for at, kernel in enumerate(kernels) if kernel in place]
        uneven, rows = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
        return uneven, rows

    def _fits(self) -> bool:
        return 0 <= self.together <= 1 and bool(np.isfinite(list(self.having.values())).all())
