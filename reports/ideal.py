"""Ideal scaling, and what keeps a program from it.

In strong scaling a rank's work falls as one over the ranks, in weak scaling it stays. Which of the two a series of runs
is, follows from :mod:`ranksight.analysis.diagnosis.kind`. Ideal is the time at the
fewest ranks measured, changed as the work would be if nothing else grew. What the prediction holds beyond that is lost,
and each kernel's parts say where.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ranksight.analysis.diagnosis.kind import stated
from ranksight.analysis.planning.cost import Cost
from ranksight.core.arrays import Array
from ranksight.core.records import dataclass
from ranksight.core.units import HOUR
from ranksight.model.uncertainty.forecast import OK
from ranksight.reports.sweep import RANKS, Sweep

SMALL = 0.05  # share of the time below which what is lost is not worth a word
OTHERS = "others"  # the part that no kernel has: launch, input and output, halted cycles
NOT_IDEAL = ("communication", "imbalance", OTHERS)
"""Parts that ideal scaling has none of, as parallel efficiency is lost to them at any number of ranks."""


@dataclass(frozen=True)
class Ideal:
    """Ideal scaling along ranks."""

    kind: Literal["strong", "weak"]  # {"strong", "weak"}
    compared_by: str  # what the kind follows from
    reference: int  # position of the fewest ranks measured in the sweep
    ratio: Array  # (k,): ideal time over what computing takes at the reference
    time: Array  # (k,): seconds, the global efficiency of the POP centre of the predicted time

    def efficiency(self, sweep: Sweep) -> Array:
        """Ideal over predicted time, (k,): the global efficiency that a diagnosis has."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.time / sweep.total.value[0])


@dataclass(frozen=True)
class Loss:
    """Time at the target that ideal scaling would not spend."""

    kernel: str | None  # none for what lies outside of kernels
    part: str  # one of :data:`ranksight.reports.palette.NAMES`
    seconds: float
    share: float  # of all that is lost


def ideal(sweep: Sweep) -> Ideal | None:
    """Ideal scaling of a sweep along ranks; None along another parameter, where ranks took one value, and where strong
    or weak scaling is not known."""
    low, high = sweep.trained
    found = sweep.diagnosis
    if sweep.along != RANKS or not high > low or found is None or found.kind == "unknown":
        return None
    first = int(np.argmin(np.abs(sweep.values - low)))
    kind: Literal["strong", "weak"] = "strong" if found.strong else "weak"
    counted = np.isfinite(sweep.evidence.instructions).all(axis=1).any()
    compared_by = "statement" if stated(sweep.model.observed) else "instructions per rank" if counted else "time"
    ratio = sweep.values[first] / sweep.values if kind == "strong" else np.ones(len(sweep.values))
    computing = sum(seconds[first] for name, seconds in sweep.parts.items() if name not in NOT_IDEAL)
    # The efficiencies of the diagnosis are of the sum of the parts, which is the program's time but for overlaps.
    return Ideal(kind, compared_by, first, ratio, ratio * computing * _over_parts(sweep))


def _over_parts(sweep: Sweep) -> Array:
    """The program's time over the sum of its parts, (k,)."""
    return np.asarray(sweep.total.value[0] / np.sum(list(sweep.parts.values()), axis=0))


def losses(sweep: Sweep, against: Ideal) -> list[Loss]:
    """What each part of each kernel takes at the target beyond ideal scaling, the largest first."""
    names = list(sweep.each)
    stack = np.stack([sweep.each[name] for name in names])
    rest = np.zeros((len(names), 1, stack.shape[2]))
    if len(sweep.breakdown.others.value):
        names.append(OTHERS)
        stack = np.concatenate([stack, np.zeros((1, *stack.shape[1:]))])
        rest = np.concatenate([rest, sweep.breakdown.others.value[None]])
    stack, kernels = np.concatenate([stack, rest], axis=1), (*sweep.breakdown.kernels, None)
    ideal_parts = against.ratio[-1] * stack[:, :, against.reference]
    ideal_parts[[at for at, name in enumerate(names) if name in NOT_IDEAL]] = 0.0
    extra = np.nan_to_num(stack[:, :, -1] - ideal_parts)
    lost = extra[extra > 0].sum()
    order = np.argsort(-extra, axis=None)
    found = []
    for flat in order[: 4 * len(names)]:
        part, kernel = np.unravel_index(flat, extra.shape)
        seconds = float(extra[part, kernel])
        if seconds <= 0:
            break
        found.append(Loss(kernels[kernel], names[part], seconds, float(seconds / lost)))
    return found


THRESHOLD = 0.7
"""Least efficiency where none is named; sites commonly ask for 0.7 to 0.8 of allocations."""


@dataclass(frozen=True)
class Recommended:
    """The largest rank count of a sweep with enough efficiency."""

    ranks: float
    threshold: float  # the least efficiency asked for and that predicted there, 0 to 1
    efficiency: float
    seconds: float  # of one run there
    core_hours: float
    target_hours: float  # core-hours of one run at the sweep's target; NaN where the data do not support its time
    last: bool  # whether it is the largest rank count that the data support: more might still be worth it


def recommended(
    sweep: Sweep, against: Ideal | None, threshold: float = THRESHOLD, cost: Cost | None = None
) -> Recommended | None:
    """The recommendation; None along another parameter than ranks, or where no supported rank count is so efficient.

    Rank counts are those of the sweep, measured ones among them. `cost`: of runs, as plans count it; without it
    the predicted time of as many cores as ranks.
    """
    if against is None or not sweep.timed:
        return None
    efficiency, seconds = against.efficiency(sweep), sweep.total.value[0]
    known = (sweep.total.status[0] == OK) & np.isfinite(seconds) & np.isfinite(efficiency)
    fine = np.flatnonzero(known & (efficiency >= threshold))
    if not len(fine):
        return None
    at = int(fine[-1])
    hours = sweep.values * seconds / HOUR if cost is None else cost.of(sweep.points, 1).core_hours
    return Recommended(
        float(sweep.values[at]),
        threshold,
        float(efficiency[at]),
        float(seconds[at]),
        float(hours[at]),
        float(hours[-1]) if known[-1] else float("nan"),
        at == int(np.flatnonzero(known)[-1]),
    )
