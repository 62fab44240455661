"""The instruction prediction table: how many instructions a rank executes in a phase at other rank counts.

In strong scaling the work of a group of ranks is shared out among more of them, and its total stays:

    TotalIG = W sum_{i < n} P_i,    P_i(p) = TotalIG / (n(p) W(p))

with W the phase's weight and n the group's ranks. (The published equation 1 multiplies by the weight once more, and its
sum has n + 1 terms; every row of the published table obeys the form above.) Whether the total does stay is tested
before anything is built on it: :func:`spread`.

Source: Panadero et al. 2015, equations 1 to 3, table 1.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ranksight.analysis.phases.weights import Weight, displacement, line
from ranksight.core.arrays import Array, ratio
from ranksight.core.records import dataclass

CONSTANT = 0.05
"""Largest spread of totals that still counts as constant: similarity within 95 % holds for groups and totals."""


def spread(totals: ArrayLike) -> float:
    """``(max - min) / median`` of the totals over rank counts; NaN without any."""
    known = np.asarray(totals, dtype=np.float64)
    known = known[np.isfinite(known)]
    middle = float(np.median(known)) if len(known) else float("nan")
    return float(np.ptp(known) / middle) if len(known) and middle > 0 else float("nan")


def typical(totals: ArrayLike) -> float:
    """The half-sample mode of the totals: of the shortest half, of its shortest half, and so on.

    Counts of the same work at several rank counts differ by interrupts and waiting, which only add: they are dense near
    the true value, with a tail above it. The tail does not move the mode.

    Source: Robertson & Cryer 1974; Bickel & Frühwirth 2006, "On a fast, robust estimator of the mode".
    """
    values = np.sort(np.asarray(totals, dtype=np.float64))
    while len(values) > 3:
        half = -(-len(values) // 2)
        widths = values[half - 1 :] - values[: len(values) - half + 1]
        at = int(np.argmin(widths))
        values = values[at : at + half]
    if len(values) == 3:
        low, high = values[1] - values[0], values[2] - values[1]
        values = values[:2] if low < high else values[1:] if high < low else values[1:2]
    return float(values.mean())


@dataclass(frozen=True, slots=True)
class InstructionTable:
    """A group's instructions per rank and occurrence, over rank counts."""

    ranks: Array  # (m,)
    processes: Array  # (m,)
    instructions: Array  # (m,)
    weights: Array  # (m,)
    """What was measured: rank counts, ranks of the group, mean instructions of one of them in one occurrence, and
    occurrences."""
    weight: Weight  # the weight at other rank counts
    total: float  # instructions of the group in the whole run, taken to stay

    @classmethod
    def of(
        cls,
        ranks: ArrayLike,
        instructions: ArrayLike,
        weights: ArrayLike,
        weight: Weight,
        processes: ArrayLike | None = None,
        total: float | None = None,
    ) -> InstructionTable:
        """From what was measured; all ranks form the group where `processes` is not given."""
        p, i, w = (np.asarray(column, dtype=np.float64) for column in (ranks, instructions, weights))
        n = p if processes is None else np.asarray(processes, dtype=np.float64)
        return cls(p, n, i, w, weight, typical(i * n * w) if total is None else total)

    @property
    def totals(self) -> Array:
        """Measured totals, (m,)."""
        return np.asarray(self.processes * self.instructions * self.weights)

    @property
    def spread(self) -> float:
        """See :func:`spread`."""
        return spread(self.totals)

    def group_size(self, ranks: ArrayLike) -> Array:
        """Ranks of the group at other rank counts: its share of all ranks, a line in 1 / p where it changes."""
        p = np.asarray(ranks, dtype=np.float64)
        share = self.processes / self.ranks
        if np.ptp(share) == 0:
            return np.asarray(p * share[0])
        level, edge, _ = line(1 / self.ranks, share)
        return np.asarray(np.clip(level * p + edge, 1.0, p))

    def at(self, ranks: ArrayLike) -> Array:
        """Instructions of one rank in one occurrence, ``P_i``; infinite where the phase does not occur."""
        shared = self.group_size(ranks) * self.weight.at(ranks)
        return ratio(self.total, shared, np.inf)

    def frame(self, targets: ArrayLike) -> pd.DataFrame:
        """Measured rows, then predicted ones at `targets`.

        Columns: ``part`` (``measured`` or ``predicted``), ``instructions``, ``ranks``, ``weight``, ``displacement``,
        ``total``.
        """
        p = np.asarray(targets, dtype=np.float64)
        every = np.concatenate([self.ranks, p])
        return pd.DataFrame(
            {
                "part": ["measured"] * len(self.ranks) + ["predicted"] * len(p),
                "instructions": np.concatenate([self.instructions, self.at(p)]),
                "ranks": every,
                "weight": np.concatenate([self.weights, self.weight.at(p)]),
                "displacement": displacement(every, self.weight.rule),
                "total": np.concatenate([self.totals, np.full(len(p), self.total)]),
            }
        )
