"""What a change would give: each kernel's time, and the program's, with one resource or one kernel twice as fast.

A part of the time that a resource takes is halved with it; what another resource needs at least is not undercut: with
execution twice as fast, bytes still take their time at the bandwidth of their level.
"""

from __future__ import annotations

import numpy as np

from ranksight.analysis.diagnosis.causes import Causes
from ranksight.core.arrays import Array, Index, ratio

CHANGES = ("execution", "caches", "memory", "network", "balance")
"""What is twice as fast (execution, caches of the second and third level, memory, messages), or perfect (balance)."""
TEXT = {
    "execution": "with execution twice as fast",
    "caches": "with L2 and L3 twice as fast",
    "memory": "with memory twice as fast",
    "network": "with messages twice as fast",
    "balance": "with ranks in balance",
}


def savings(causes: Causes, computing: Array, whole: Array) -> Array:
    """Part of each kernel's time that each of :data:`CHANGES` saves, (5, K, k).

    `computing` and `whole` (K, k): seconds of the mean rank's computing, and of all parts.
    """
    share = causes.share
    busy = ratio(computing, whole, 0.0)
    floor = np.nan_to_num(np.fmax.reduce(np.minimum(causes.used, 1.0), axis=0)) * busy
    inner = share[[0, 1, 2, 3, 6]].sum(axis=0)
    execution = np.minimum(share[0] / 2, np.maximum(inner - floor, 0.0))
    return np.stack([execution, (share[1] + share[2]) / 2, share[3] / 2, share[4] / 2, share[5]])


def best(saved: Array) -> tuple[Index, Array]:
    """The change that saves most, and what it saves, (K, k) each."""
    which = saved.argmax(axis=0)
    return which, np.take_along_axis(saved, which[None], 0)[0]
