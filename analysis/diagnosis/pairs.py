"""Kernels with the same cycles per instruction of which one has more memory stalls than the other.

Two kernels with the same CPI at the smallest scale may differ in how far memory blocks them. As ranks share the work,
working sets shrink into caches and memory blocks less; the kernel with more of its cycles in stalls gains more. The
blocking factor distinguishes them where CPI cannot (Ding et al. 2018, stress against transport_integral).
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ranksight.analysis.diagnosis.causes import Causes
from ranksight.analysis.diagnosis.evidence import Evidence
from ranksight.core.arrays import ratio
from ranksight.core.experiment import WHOLE

SIMILAR = 1.1
"""Ratio of two CPIs below which they look the same."""
APART = 2.0
"""Ratio of two blocking factors, or of the shares of memory stalls, from which kernels differ."""
LIGHT = 0.01
MOST = 40
"""Largest kernels that are compared with each other."""


def table(evidence: Evidence, causes: Causes) -> pd.DataFrame:
    """Pairs of kernels with the same CPI and different blocking by memory, at the first configuration asked for.

    Columns: ``kernel`` (more memory stalls) and ``other``; ``cpi``, ``other_cpi``; ``bf_mem``, ``other_bf_mem``;
    ``held``, ``other_held`` (share of their computing that L2, L3 and memory stall); ``gain`` (how much more of its
    time ``kernel`` saves than ``other`` with these twice as fast); those that differ most first.
    """
    columns = ["kernel", "other", "cpi", "other_cpi", "bf_mem", "other_bf_mem", "held", "other_held", "gain"]
    computing = evidence.computing[:, 0]
    total = evidence.whole[:, 0].sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        cpi = computing * evidence.frequency / evidence.instructions[:, 0]
    inner = causes.share[[0, 1, 2, 3, 6], :, 0].sum(axis=0)
    stalled = ratio(causes.share[1:4, :, 0].sum(axis=0), inner, 0.0)
    factor = evidence.blocking[:, 0]
    usable = np.isfinite(cpi) & (computing >= LIGHT * total) & evidence.ok[:, 0]
    usable &= np.array([kernel != WHOLE for kernel in evidence.kernels])
    index = np.flatnonzero(usable)
    index = index[np.argsort(-computing[index], kind="stable")[:MOST]]
    first, second = (index[each] for each in np.triu_indices(len(index), 1))
    swap = stalled[first] < stalled[second]
    first, second = np.where(swap, second, first), np.where(swap, first, second)
    similar = np.abs(np.log(cpi[first] / cpi[second])) <= np.log(SIMILAR)
    # Shares of computing are more informative than factors, whose scale is that of each kernel's own loads.
    low, high = (ends[1:4, :, 0].sum(axis=0) / np.where(inner > 0, inner, 1.0) for ends in (causes.low, causes.high))
    different = (stalled[first] >= 0.1) & (stalled[first] >= APART * stalled[second]) & (low[first] > high[second])
    chosen = np.flatnonzero(similar & different)
    a, b = first[chosen], second[chosen]
    names = np.array(evidence.kernels, dtype=object)
    columns_of_both = (values[each] for values in (names, cpi, factor, stalled) for each in (a, b))
    table = pd.DataFrame(dict(zip(columns, (*columns_of_both, (stalled[a] - stalled[b]) / 2), strict=True)))
    return table.sort_values("gain", ascending=False, kind="stable", ignore_index=True)
