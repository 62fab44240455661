"""Messages that computation hides: nothing is waited for them while ranks compute for longer.

A nonblocking message is under way while its ranks compute. What the program waits for it is what it takes longer than
that computation, or what no computation hides, BF_comm times its price T_M:

    T = max(BF_comm T_M, T_M - a T_computing),      max over runs of (T_M - T) / T_computing <= a <= 1

with a the part of the computation that messages may hide behind: no smaller than what was seen to hide them, and
evenly likely up to all of it. Kinds of operations for which no run waited, for more than
:data:`ranksight.model.priors.OTHERS_NEGLIGIBLE` of its computation, follow this law; where runs wait, BF_comm shows how
much is hidden.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ranksight.core import special
from ranksight.core.arrays import Array, Mask, ratio
from ranksight.core.records import dataclass
from ranksight.model.application.comm_blocking import kind_of
from ranksight.model.application.exchanged import Exchanged
from ranksight.model.plaindata import Stored
from ranksight.model.priors import OTHERS_NEGLIGIBLE
from ranksight.model.quantity import EACH_END, Quantity

RESOLUTION = 1e-6
"""Part of the computation that a wait of zero is taken for, so that it has a logarithm."""
EARLY = ("psend", "put", "rput", "accumulate", "raccumulate")
"""Operations besides those whose names begin with I that return before their message has come."""
DRAWS = (64, 32)
"""Quantiles of what messages take, and of the computation that hides them, that the law is evaluated at."""


@dataclass(frozen=True)
class Hidden(Stored):
    """Kinds of operations that computation hid in all runs."""

    kinds: tuple[str, ...]
    share: float  # the largest part of its computation that a run hid messages for

    def rows(self, kinds: NDArray[np.str_]) -> Mask:
        """Which of the operations of these `kinds` (o,) are hidden, (o,)."""
        return np.isin(kinds, self.kinds)

    def _fits(self) -> bool:
        return len(self.kinds) > 0 and 0 <= self.share <= 1


def find_hidden(
    seconds: Mapping[str, Array], prices: Mapping[str, Array], computing: Array, operations: Collection[str]
) -> Hidden | None:
    """The kinds of those `operations` that return early for which no run waited; None where there are none.

    `seconds` and `prices` (n,) each: what n runs took for each kind, and what its messages take alone. `computing`
    (n,): mean seconds that ranks compute.
    """
    plain = {name: name.lower().removeprefix("pmpi_").removeprefix("mpi_") for name in operations}
    kinds = {kind_of(name) for name, text in plain.items() if text.startswith("i") or text in EARLY}
    none = OTHERS_NEGLIGIBLE * computing
    chosen = [
        kind
        for kind, took in seconds.items()
        if kind in kinds and (took <= none).all() and (took <= prices[kind]).all() and (took < prices[kind]).any()
    ]
    if not chosen:
        return None
    behind = np.sum([prices[kind] - seconds[kind] for kind in chosen], axis=0)
    return Hidden(tuple(chosen), min(float(ratio(behind, computing, 1.0).max()), 1.0))


def unhidden(hidden: Hidden, exchanged: Exchanged, kinds: NDArray[np.str_], computing: Array) -> Exchanged:
    """Times of operations with what computation does not hide of them.

    `kinds` (o,): of the operations. `computing` (k,): mean seconds that ranks compute. What was measured stays.
    """
    rows, times = hidden.rows(kinds), exchanged.times
    network, ends = exchanged.network[rows], np.stack([times.value, times.lower, times.upper])
    prices = network.sum(axis=0)
    asked = np.flatnonzero(~exchanged.measured & np.isfinite(computing) & (prices > 0))
    waited = Quantity.of_ends(*ends[:, rows][..., asked].sum(axis=1))
    normal, even = special.ndtri(_quantiles(DRAWS[0])), _quantiles(DRAWS[1])
    scale = np.exp(normal * np.where(normal < 0, waited.down[:, None], waited.up[:, None]))[..., None]
    behind = (hidden.share + (1 - hidden.share) * even) * computing[asked, None, None]
    visible = np.exp(waited.centre)[:, None, None] * scale
    left = np.maximum(visible, prices[asked, None, None] * scale - behind).reshape(len(asked), DRAWS[0] * DRAWS[1])
    totals = np.quantile(left, (0.5, EACH_END, 1 - EACH_END), axis=1)
    share = network[:, asked] / prices[asked]
    ends[np.ix_(np.arange(3), np.flatnonzero(rows), asked)] = share * totals[:, None]
    value, lower, upper = ends
    return exchanged.taking(replace(times, value=value, lower=lower, upper=upper))


def _quantiles(count: int) -> Array:
    return np.asarray((np.arange(count) + 0.5) / count)
