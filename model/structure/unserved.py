"""Cache levels that served nothing in any run: with larger problems they may, as a working set outgrows a cache.

A count of zero at every size measured is met by the constant zero and by any number of steps beyond them. Where the
working set is larger than it ever was, the loads that the outermost level with a share of them served may move to any
level further out:

    0 <= loads_j <= loads_i,    i the last level before j that served more than next to nothing,

or all loads, where the first level served them all. The working set is not counted. It goes with the loads, as each
turn of a loop loads what it works on, and is no larger than the memory of the program; where either of the two is not
above the largest measured, a zero stands. So it does inside of the range, and for more ranks at sizes measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.experiment import WHOLE
from ranksight.core.records import dataclass
from ranksight.model.plaindata import Stored
from ranksight.model.series.reducing import Keyed, Series
from ranksight.model.series.reduction import reduce
from ranksight.model.structure.levels import SERVED, whole_of
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast

OUTWARDS = (("loads", "loads_l2", "loads_l3", "loads_mem"), ("stores", "store_misses_l2", "store_misses_l3"))
"""What is loaded or stored, and its parts that leave the first level, the nearest first."""
MEMORY = ("memory_pss", "memory_peak")
"""Memory of a rank of the program, the better evidence first."""
NOTHING = 0.005
"""Share of its whole up to which a level served next to nothing."""
LARGER = 0.01
"""What the loads or the memory grow by before a working set is larger than the largest measured."""


@dataclass(frozen=True)
class Unserved(Stored, Keyed):
    """The levels that served nothing, or next to nothing, at every configuration."""

    kernels: tuple[str, ...]  # of u series
    metrics: tuple[str, ...]
    sources: tuple[str, ...]  # the metric of the same kernel whose loads may move there; empty where none was counted
    most: Array  # (u,): largest loads (or stores) of the kernel at any configuration; NaN where they were not counted
    memory: tuple[str, float] = ("", 0.0)  # the metric that gives the program's memory, and the largest measured
    _sizes = "kernels:u metrics:u sources:u most:u"

    def opened(
        self,
        answer: Forecast,
        rows: Mapping[tuple[str, str], int],
        points: Array,
        parameters: tuple[str, ...],
        trained: Array,
        iterations: str | None,
    ) -> Forecast:
        """`answer` for s series at `points` (k, m), the upper ends of these opened where a working set may outgrow a
        cache.

        `trained` (s, m, 2): smallest and largest value of each parameter among the configurations of a series.
        `iterations` (str or None): the parameter along which work is repeated, and no working set grows.
        """
        index = np.array([rows[key] for key in self.keys], dtype=np.intp)
        sizes = [at for at, name in enumerate(parameters) if name not in ("ranks", iterations)]
        beyond = points[None, :, sizes] > trained[index][:, None, sizes, 1]
        wholes = [(kernel, whole_of(name)) for kernel, name in self.keys]
        at = np.array([rows.get(key, -1) for key in wholes], dtype=np.intp)
        with np.errstate(invalid="ignore"):
            closed = (at >= 0)[:, None] & (answer.value[at] <= (1 + LARGER) * self.most[:, None])
            if (WHOLE, self.memory[0]) in rows:
                row = rows[WHOLE, self.memory[0]]
                closed |= (answer.status[row] == forecast.OK) & (answer.value[row] <= (1 + LARGER) * self.memory[1])
        where = beyond.any(axis=2) & ~closed
        if not where.any():
            return answer
        source = np.array([rows.get(key, -1) for key in zip(self.kernels, self.sources, strict=True)], dtype=np.intp)
        top = np.where((source >= 0)[:, None], answer.upper[source], np.inf)
        lower, upper, status, reason = (
            np.array(getattr(answer, name)) for name in ("lower", "upper", "status", "reason")
        )
        lower[index] = np.where(where, 0.0, lower[index])
        upper[index] = np.where(where, np.fmax(top, upper[index]), upper[index])
        widened = where & (status[index] == forecast.OK)
        status[index] = np.where(widened, forecast.WIDE, status[index])
        reason = reason.astype(object)
        first = beyond.argmax(axis=2)
        for i, k in zip(*np.nonzero(widened), strict=True):
            axis = sizes[first[i, k]]
            largest = trained[index[i], axis, 1]
            reason[index[i], k] = f"the working set may outgrow a cache beyond {parameters[axis]} {largest:g}"
        return replace(answer, lower=lower, upper=upper, status=status, reason=reason)

    def _fits(self) -> bool:
        return set(self.metrics) <= SERVED


ALL_SERVED = Unserved((), (), (), np.empty(0))


def find_unserved(series: Series) -> Unserved:
    """The levels that served nothing, or next to nothing, at any configuration of `series`.

    Where loads were not counted, only a count of zero is nothing. Sampled counts are not looked at: no sample is not
    nothing, and what it may be is predicted with them.
    """
    rows = series.rows
    sampled = series.sampled
    levels = [(key, i) for key, i in rows.items() if key[1] in SERVED and not sampled[i]]
    if not levels:
        return ALL_SERVED
    values = reduce(series.values, "median", axis=2)
    none = np.full(values.shape[1], np.nan)

    def of(kernel: str, name: str) -> Array:
        row = rows.get((kernel, name))
        return none if row is None else values[row]

    def nothing(kernel: str, name: str) -> bool:
        of_kernel, every = of(kernel, name), of(kernel, whole_of(name))
        with np.errstate(invalid="ignore"):
            return bool((np.isnan(of_kernel) | (of_kernel <= np.where(every > 0, NOTHING * every, 0.0))).all())

    keys, sources, most = [], [], []
    for (kernel, name), row in levels:
        if np.isnan(values[row]).all() or not nothing(kernel, name):
            continue
        chain = next((chain for chain in OUTWARDS if name in chain), ())
        before = [each for each in chain[: chain.index(name)] if (kernel, each) in rows] if chain else []
        serving = [each for each in before[1:] if not nothing(kernel, each)]
        every = of(kernel, whole_of(name))
        keys.append((kernel, name))
        sources.append((serving or before[:1] or [""])[-1])
        most.append(np.nan if np.isnan(every).all() else float(np.nanmax(every)))
    if not keys:
        return ALL_SERVED
    memory = ("", 0.0)
    for name in MEMORY:
        used = of(WHOLE, name)
        if not memory[0] and np.isfinite(used).any():
            memory = (name, float(np.nanmax(used)))
    kernels, metrics = zip(*keys, strict=True)
    return Unserved(tuple(kernels), tuple(metrics), tuple(sources), np.array(most), memory)
