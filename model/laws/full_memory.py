"""Memory that the runs may have filled, where nobody says which cores share it.

    G = n B / T,     G ~ n^s with s < 1/2 at the most ranks

n ranks move B bytes each through memory. Ranks beyond those of the runs find a domain of their own, and G grows again,
or share this one, and it does not: the runs do not say which, whatever function meets their times.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ranksight.core.arrays import Array, Mask, log_ratio, ratio
from ranksight.core.records import dataclass
from ranksight.model.laws.law import LAWS, Law, LawTimes
from ranksight.model.laws.view import Asked, View
from ranksight.model.plaindata import Stored
from ranksight.model.quantity import Quantity
from ranksight.model.series.computation import RANKS, THREADS, cores

GROWS = 0.5
"""Power of the ranks below which the traffic of all of them is taken to be what their memory can give."""
TRAFFIC = "bytes_mem"
REASON = (
    "more ranks hardly move more bytes a second in the runs, and how many cores share memory is not known: fit with "
    "--platform NAME, or --cores-per-domain N and --ranks-per-node N"
)


@dataclass(frozen=True)
class Filled(Stored):
    """Kernels whose traffic filled the memory of the runs."""

    kernels: tuple[str, ...]
    most: float  # cores of the largest run
    _sizes = "most:>=1"


class FullMemory(Law):
    """Times beyond runs that filled their memory are not determined without its domains."""

    prior: ClassVar[float] = 0.04
    needs: ClassVar[str] = "times and traffic of memory on more and more cores of one node, and no platform"
    formula: ClassVar[str] = "n B / T grows with less than the root of n cores: no T beyond the runs"
    source: ClassVar[str] = "docs/bandwidth.md"
    kind: ClassVar[type[Filled]] = Filled
    learns_from: ClassVar[tuple[str, ...]] = (TRAFFIC,)
    shares: ClassVar[bool] = True

    def fit(self, view: View) -> Filled | None:
        """The kernels whose traffic grows no more."""
        series, names = view.series, view.series.parameters
        if view.domains or RANKS not in names or "nodes" in names:
            return None
        if "simulated" in series.provenance.get(TRAFFIC, ""):  # by caches that nobody shares
            return None
        rate = ratio(view.medians(TRAFFIC, view.timed), view.medians("time", view.timed), np.nan)
        count = cores(series.points, names)
        slope = _slopes(rate * count, count, series.points[:, [name not in _PLACES for name in names]])
        kernels = tuple(kernel for kernel, s in zip(view.timed, slope.tolist(), strict=True) if s < GROWS)
        return Filled(kernels, float(count.max())) if kernels else None

    def at(self, learned: Filled, asked: Asked) -> LawTimes | None:
        """No times, and where there can be none."""
        kernels = tuple(kernel for kernel in learned.kernels if kernel in asked.timed)
        shape = len(kernels), len(asked.points)
        beyond: Mask = np.asarray(cores(asked.points, asked.parameters) > learned.most)
        nothing = np.full(shape, np.nan)
        return LawTimes(
            kernels, Quantity(nothing, nothing, nothing), np.zeros(shape, dtype=bool), ("",) * len(kernels),
            undetermined=np.broadcast_to(beyond, shape), reason=REASON,
        )  # fmt: skip


_PLACES = (RANKS, THREADS)


def _slopes(rate: Array, count: Array, others: Array) -> Array:
    """Powers (K,) with which rates (K, n) grow from half of the most cores, `count` (n,), on: medians over what else
    varies, `others` (n, q); NaN where there are not two such numbers of cores."""
    _, group = np.unique(others, axis=0, return_inverse=True)
    slopes = []
    for each in range(int(np.max(group, initial=-1)) + 1):
        members = np.flatnonzero(np.ravel(group) == each)
        last = members[count[members].argmax()]
        before = members[count[members] <= count[last] / 2]
        if count[last] == count.max() and len(before):
            first = before[count[before].argmax()]
            grown = log_ratio(rate[:, last], rate[:, first])
            slopes.append(np.where(np.isfinite(grown), grown, np.nan) / np.log(count[last] / count[first]))
    return np.median(slopes, axis=0) if slopes else np.full(len(rate), np.nan)


LAWS.register("full memory")(FullMemory())
