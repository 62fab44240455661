"""Whether runs on more ranks divide one problem, strong scaling, or keep the work of a rank, weak scaling.

Work that is divided falls from one rank count to the next, whatever grows next to it, so each kernel counts on its own.
With w_k(p) the work of a rank that has kernel k, the part that was seen to be divided is

    f = sum_k (w_k(first) - min_p w_k(p)) / sum_k w_k(first)

over the rank counts p that were measured: instructions where they were counted, computing time elsewhere. It is a lower
bound of the divided part. Weak scaling puts the efficiency up to 1 / (1 - f), and one well above 1 refutes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from ranksight.analysis.diagnosis.evidence import Evidence
from ranksight.core.arrays import Array, Mask, ratio

Kind = Literal["strong", "weak", "unknown"]

NOTICED = 1.1
"""Efficiency by weak scaling above which work is divided."""
HALF = -0.5
"""Slope d log w / d log p below which a kernel's work is divided."""
HEAVY = 0.01
"""Share of the work at the fewest ranks from which a kernel that is divided leaves weak scaling in doubt."""
UNKNOWN = "strong or weak scaling is not known: state it with 'ranksight fit --scaling'"
"""Words for users where neither follows from the measurements."""


def kind_of(line: Evidence) -> Kind:
    """The kind of scaling along `line`, whose points are measured rank counts that rise.

    ``strong`` where the divided part of what was counted, or of the time of kernels without counts, is above 1 - 1 /
    :data:`NOTICED`. ``unknown`` at a single rank count, where times fall as much that scatter or, by their intervals
    too, the counts contradict, and where a kernel is divided that is a small part of the work. ``weak`` otherwise.
    """
    rows = line.separate & ~line.calls.all(axis=1)
    if len(line.ranks) < 2 or not rows.any():
        return "unknown"
    seen = 1 - 1 / NOTICED
    counts, times = line.instructions[rows], line.computing[rows]
    counted = np.isfinite(counts).all(axis=1)
    by_counts, counts_fall = _divided(counts[counted], line.ranks)
    by_times, times_fall = _divided(times, line.ranks, line.low[rows], line.high[rows])
    fallen = by_times[:, ~counted].sum(axis=1)
    if by_counts[0].sum() > seen or (fallen[0] > seen and fallen[1] > 0):
        return "strong"
    # Scatter makes times fall whose counts do not: these contradict counts only where their intervals fall too.
    contradicted = np.where(counted, by_times[1], by_times[0]).sum() > seen
    in_doubt = contradicted or counts_fall.any() or times_fall[~counted].any()
    return "unknown" if in_doubt else "weak"


def _divided(work: Array, ranks: Array, low: Array | None = None, high: Array | None = None) -> tuple[Array, Mask]:
    """The divided part of each kernel's `work` (K, k), of that of all kernels, with the least that it may be by the
    ends of its interval, (2, K); and whether a kernel's work that matters is divided, (K,)."""
    low, high = work if low is None else low, work if high is None else high
    at = np.where(work > 0, work, np.inf).argmin(axis=1)[:, None]
    least, most = (np.take_along_axis(values, at, 1)[:, 0] for values in (work, high))
    total = work[:, 0].sum()
    drops = np.maximum(np.nan_to_num(np.stack([work[:, 0] - least, low[:, 0] - most])), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.log(least / work[:, 0]) / np.log(ranks[at[:, 0]] / ranks[0])
    falls = (slope < HALF) & (work[:, 0] >= HEAVY * total) & (drops[1] > 0)
    return ratio(drops, total, 0.0), falls


def stated(observed: Mapping[str, Any]) -> Kind | None:
    """The kind of scaling that was stated at the fit, among what a model keeps of it; None where none was."""
    kind = observed.get("scaling")
    return kind if kind in ("strong", "weak") else None
