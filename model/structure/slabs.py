"""Volumes that ranks in one row exchange, which more ranks may cut into rows and columns.

Few ranks cut a domain into slabs: neighbours stand in one row, and one exchange of all with all transposes it. There
are no more slabs than planes, so programs go over to pencils, p = x y, at a number of ranks of their own, as the
transforms of P3DFFT (Pekurovsky 2012) and of the NAS benchmark FT. Nothing in runs of slabs shows that number. On
pencils

- a rank has neighbours along two sides: up to twice the messages, each with a face of 1/x or 1/y of a slab's;
- two exchanges take the place of one, each of all that a rank has, and in blocks of whole planes.

The answer is that of slabs, and the interval holds both. Programs that transpose nothing have no planes to run out of:
their row of ranks stays one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from ranksight.comm.patterns.distances import Offset, Shift
from ranksight.comm.patterns.recognition import Explanation
from ranksight.comm.patterns.rule import Rule
from ranksight.comm.patterns.steps import Step
from ranksight.core.arrays import Array, Mask, ratio
from ranksight.core.dims import MOST_RANKS, dims_create
from ranksight.core.records import dataclass
from ranksight.core.units import some_of
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.structure.gridlaw import EXACT, SENT
from ranksight.model.structure.improving import Key, Structure
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.model.uncertainty.rows import choose, open_to, rows_of

ROUNDED = 1.25
"""What blocks of whole planes hold at most, over those of parts of planes, from four planes a block on."""
NUMBERS = 16.0
"""Bytes of a message up to which one length everywhere is that of a number or two, and no face."""


@dataclass(frozen=True)
class Slabs(Structure):
    """s series of volumes that ranks in one row exchange."""

    parameters: tuple[str, ...]  # of the model
    kernels: tuple[str, ...]
    metrics: tuple[str, ...]
    faces: Mask  # (s,): whether they are bytes of faces of slabs
    blocks: Mask  # (s,): whether they are bytes of blocks that all exchange with all
    reaching: Mask  # (s,): whether they are messages that are open for partners farther away, too
    most: float  # ranks of the largest run
    _sizes = "kernels:s metrics:s faces:s blocks:s reaching:s most:>=1"

    def improved(self, answer: Forecast, fitted: Fitted, points: Array, exact: Collection[Key]) -> Forecast:
        """The answers open for a second side, beyond the largest run."""
        ranks, sides = points[:, self.parameters.index("ranks")], self._sides(points)
        cut = np.broadcast_to(sides[:, 1] > 1, (len(self.kernels), len(ranks)))
        if not cut.any():
            return answer
        index = fitted.indices(self.keys)
        slabs = rows_of(answer, index)
        lower = np.where(self.faces[:, None], (1 / sides).sum(axis=1), 1.0)
        # Those that are opened by as many times as there are more ranks are no more on pencils.
        farther = np.where(self.reaching[:, None], np.fmax(ranks / self.most, 1.0), 1.0)
        upper = np.select([self.faces, self.blocks], [1.0, 2 * ROUNDED], 2.0)[:, None]
        upper = np.fmax(upper / farther, 1.0)
        pencils = Forecast.settled(slabs.value, slabs.lower * lower, slabs.upper * upper)
        return choose(answer, open_to(slabs, pencils, cut), index, cut)

    def remark(self, points: Array) -> str:
        """What the intervals at `points` (k, m) are open for; empty where nothing is."""
        if not (self._sides(points)[:, 1] > 1).any():
            return ""
        names = some_of(list(dict.fromkeys(self.kernels)))
        return (
            f"beyond {self.most:g} ranks programs may go over from slabs to pencils, as transforms do: the intervals "
            f"of messages and bytes of {names} have that, too"
        )

    def _sides(self, points: Array) -> Array:
        """Sides (k, 2) of the pencils that ranks beyond the largest run may cut; 1 and 1 where they cut none."""
        ranks = points[:, self.parameters.index("ranks")]
        whole = (ranks > self.most) & (ranks == np.floor(ranks)) & (ranks < MOST_RANKS)
        return np.array([dims_create(int(p), 2) for p in np.where(whole, ranks, 1.0)], dtype=np.float64)

    def _fits(self) -> bool:
        return "ranks" in self.parameters or not self.kernels


_NONE = np.empty(0, dtype=bool)
NO_SLABS = Slabs((), (), (), _NONE, _NONE, _NONE, 1.0)


def find_slabs(
    series: Series,
    rules: Mapping[str, Collection[Explanation]],
    transposing: Collection[str],
    scattered: Collection[Key] = (),
) -> Slabs:
    """The volumes of `series` that ranks in one row exchange, and as often at the most ranks as before.

    `rules`: of the partners of kernels, and of operations of kernels. `transposing`: those that are exchanges of all
    ranks with all. `scattered`: series that data decide; bytes of these are as open.
    """
    if "ranks" not in series.parameters or not transposing:
        return NO_SLABS
    ranks = series.points[:, series.parameters.index("ranks")]
    values = reduce(series.values, "median", axis=2)
    last = np.unique(ranks[ranks > 1])[-2:]
    if len(last) < 2:
        return NO_SLABS
    before, most = (np.nan_to_num(values[:, ranks == p]).mean(axis=1) for p in last)
    # Neighbours in a row that ends become more than those of a ring do, and what goes to all grows with the ranks.
    steady = (before > 0) & (most <= (1 + EXACT) * before * (1 - 1 / last[1]) / (1 - 1 / last[0]))
    keys = []
    by_data = {(kernel, "bytes_sent") for kernel, _ in scattered}
    for kernel, name in (key for key in series.keys if key[1] in SENT and key not in by_data):
        calls, volume = (series.rows.get((kernel, each)) for each in ("messages", "bytes_sent"))
        if calls is None or volume is None or not steady[calls]:
            continue
        if (kernel in transposing and most[volume] < before[volume]) or _in_row(rules.get(kernel, ())):
            keys.append((kernel, name))
    if not keys:
        return NO_SLABS
    kernels, metrics = zip(*keys, strict=True)
    of_bytes = np.array(metrics) == "bytes_sent"
    blocks = np.array([kernel in transposing for kernel in kernels])
    volume_of, calls_of = (
        values[series.indices([(kernel, each) for kernel in kernels])] for each in ("bytes_sent", "messages")
    )
    length = ratio(volume_of, calls_of)
    longest, shortest = np.nanmax(length, axis=1), np.nanmin(length, axis=1)
    numbers = (longest - shortest <= EXACT * longest) & (longest <= NUMBERS)
    reaching = np.array([key in scattered for key in keys])
    kinds = of_bytes & ~blocks & ~numbers, of_bytes & blocks, reaching
    return Slabs(series.parameters, kernels, metrics, *kinds, float(last[1]))


def _in_row(explanations: Collection[Explanation]) -> bool:
    """Whether all that may explain partners are neighbours in one row."""
    return bool(explanations) and all(_next(rule) for one in explanations for rule in one.rules)


def _next(rule: Rule) -> bool:
    if isinstance(rule, Offset | Shift):
        return abs(rule.by) == 1
    return isinstance(rule, Step) and len(rule.vector) == 1
