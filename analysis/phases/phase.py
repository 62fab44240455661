"""One phase over rank counts: its weight, its groups of ranks, and the time of one occurrence.

Ranks of an instruction group execute a similar number of instructions in a phase:

    similar(i, j)  <=>  min(I_i, I_j) >= 0.95 max(I_i, I_j)

Source: Panadero et al. 2015, section 2.2.3.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ranksight.analysis.phases.distant import DistantPoint, distant_point
from ranksight.analysis.phases.instructions import CONSTANT, InstructionTable
from ranksight.analysis.phases.power import Power, fit_power
from ranksight.analysis.phases.weights import Weight, fit_weight
from ranksight.core.arrays import Array, Index
from ranksight.core.errors import InputError, InsufficientError
from ranksight.core.records import dataclass

SIMILARITY = 0.95
"""Ranks are similar where the smaller of their instruction counts is at least this part of the larger."""


@dataclass(frozen=True)
class Group:
    """Ranks that do similar work in a phase."""

    ranks: Array  # (m,): rank counts, and seconds of computation of one of its ranks in one occurrence
    times: Array  # (m,)
    table: InstructionTable | None  # where instructions are known
    plain: Power  # time over rank counts, from the measured ones alone
    distant: DistantPoint | None
    reason: str  # why there is no distant point
    power: Power  # with the distant point where there is one; what predictions take

    @property
    def constant(self) -> bool:
        """Whether the group's instructions stay, over rank counts; the gate of the distant point."""
        return self.table is not None and self.table.spread <= CONSTANT


@dataclass(frozen=True)
class Phase:
    """A phase."""

    number: int  # from 1, in order of occurrence
    body: tuple[tuple[str, str], ...]  # kernel and operation of each call
    weight: Weight
    groups: tuple[Group, ...]  # those with most instructions first; one group where counts do not distinguish them
    communication: tuple[float, float]  # ``c_1 + c_2 log2 p`` seconds in MPI of one occurrence, as measured
    share: float  # of the run's time, at the largest rank count measured
    notes: tuple[str, ...] = ()

    def computation(self, ranks: ArrayLike, plain: bool = False) -> Array:
        """Seconds of computation of one occurrence, of the group that takes longest; `plain`: no distant point."""
        return np.asarray(np.max([(g.plain if plain else g.power).at(ranks) for g in self.groups], axis=0))

    @property
    def label(self) -> str:
        """Kernels and operations in short: ``exchange_halo Irecv Isend Waitall, solve_step Allreduce (2)``."""
        parts = []
        for kernel, calls in groupby(self.body, itemgetter(0)):
            runs = [(operation, len(list(same))) for operation, same in groupby(calls, itemgetter(1))]
            names = (operation if count == 1 else f"{operation} ({count})" for operation, count in runs)
            parts.append(" ".join([kernel, *names]))
        return ", ".join(parts)


def build_phase(
    number: int,
    body: tuple[tuple[str, str], ...],
    rows: pd.DataFrame,
    small: pd.DataFrame,
    share: float,
    rule: str | None = None,
) -> Phase:
    """Learn a phase from the rows of :func:`ranksight.analysis.phases.table.phase_table`.

    Raises InsufficientError when the phase was seen at one number of ranks only.

    `rows`, `small`: of this phase, with the original workload and with a smaller one, empty without. `rule`: rank
    counts that the program admits. The others are as in :class:`Phase`.
    """
    ranks = np.sort(rows["ranks"].unique())
    weights = rows.groupby("ranks")["weight"].median().to_numpy()
    weight = fit_weight(ranks, weights, rule)
    notes: list[str] = []
    if not weight.exact:
        notes.append(f"weights lie on no line over admissible rank counts: {weight.formula}")
    labelled, several = _groups(rows)
    if several:
        notes.append(several)
    small_labelled, _ = _groups(small)
    groups = []
    for label in range(int(labelled["group"].max()) + 1):
        group = labelled[labelled["group"] == label]
        theirs = small_labelled[small_labelled["group"] == label] if len(small) else small
        groups.append(_group(ranks, group, theirs, weights, weight))
    waiting = rows.groupby("ranks")["communication"].mean().to_numpy()
    return Phase(number, body, weight, tuple(groups), _logarithm(ranks, waiting), share, tuple(notes))


def _groups(rows: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Rows with their group; one group for all where rank counts disagree on how many there are."""
    if rows.empty or not rows["instructions"].notna().all():
        return rows.assign(group=0), ""
    labelled = rows.assign(group=0)
    for _, part in rows.groupby("point"):
        labelled.loc[part.index, "group"] = instruction_groups(part["instructions"])
    counts = labelled.groupby("ranks")["group"].max() + 1
    if counts.nunique() > 1:
        numbers = ", ".join(f"{count} at {p:g} ranks" for p, count in counts.items())
        return rows.assign(group=0), f"groups of similar ranks differ in number ({numbers}): ranks are taken together"
    return labelled, ""


def _group(ranks: Array, rows: pd.DataFrame, small: pd.DataFrame, weights: Array, weight: Weight) -> Group:
    means = rows.groupby("ranks")[["computation", "instructions"]].mean()
    times = means["computation"].to_numpy()
    plain = fit_power(ranks, times)
    if not means["instructions"].notna().all():
        why = "instructions between calls are not known; time is used in place of them, and cannot map a workload"
        return Group(ranks, times, None, plain, None, why, plain)
    size = rows.groupby("ranks")["rank"].nunique().to_numpy(dtype=float)
    table = InstructionTable.of(ranks, means["instructions"].to_numpy(), weights, weight, size)
    point, why = _distant(table, small)
    power = plain if point is None else fit_power([*ranks, point.ranks], [*times, point.time])
    return Group(ranks, times, table, plain, point, why, power)


def _distant(table: InstructionTable, small: pd.DataFrame) -> tuple[DistantPoint | None, str]:
    if not table.spread <= CONSTANT:
        return None, f"its instructions are not constant over rank counts: they differ by {table.spread:.1%}"
    if small.empty:
        return None, "no smaller workload was measured ('ranksight measure --distant')"
    means = small.groupby("ranks")[["computation", "instructions", "cycles"]].mean()
    if not means["instructions"].notna().all():
        return None, "instructions of the smaller workload are not known"
    try:
        return (
            distant_point(
                means.index.to_numpy(dtype=float),
                means["instructions"].to_numpy(),
                means["computation"].to_numpy(),
                (means["cycles"] / means["instructions"]).to_numpy(),
                table,
            ),
            "",
        )
    except InsufficientError as error:
        return None, error.what


def _logarithm(ranks: Array, seconds: Array) -> tuple[float, float]:
    """``c_1 + c_2 log2 p`` with no negative coefficient; NaN where times are not known."""
    from scipy.optimize import nnls

    if not np.isfinite(seconds).all():
        return float("nan"), float("nan")
    scale = max(float(seconds.max()), 1e-300)
    coefficients, _ = nnls(np.stack([np.ones_like(ranks), np.log2(ranks)], axis=1), seconds / scale)
    return float(coefficients[0] * scale), float(coefficients[1] * scale)


def instruction_groups(instructions: ArrayLike) -> Index:
    """Group of each rank, 0 for those with most instructions.

    A group reaches from its largest count down to :data:`SIMILARITY` times that, so any two of its ranks are similar.
    `instructions` (n,): of each rank, in one occurrence of the phase; finite, not negative. Raises InputError when a
    count is out of range.
    """
    counts = np.asarray(instructions, dtype=np.float64)
    if not (np.isfinite(counts).all() and (counts >= 0).all()):
        raise InputError("an instruction count is negative or not finite", "measure the run again")
    order = np.argsort(-counts, kind="stable")
    ordered = counts[order]
    labels = np.empty(len(counts), dtype=np.intp)
    start, group = 0, 0
    while start < len(ordered):
        end = int(np.searchsorted(-ordered, -SIMILARITY * ordered[start], side="right"))
        labels[order[start:end]] = group
        start, group = max(end, start + 1), group + 1
    return labels
