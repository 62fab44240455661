"""Kernels whose time is not computing by what was counted: messages, files, and time without cycles.

A kernel of which messages were counted in every run and nothing that computes, next to kernels whose instructions were
counted, exchanges. A function of MPI that handles files (MPI 4.1, chapter 14) waits for these. A kernel that has c
cycles in T seconds ran at c / T; clocks of one processor differ by less than :data:`CLOCKS`, so that one far slower
than the kernel with most cycles was halted: it waited for files, devices or other programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.arrays import Array, Mask, ratio
from ranksight.core.experiment import WHOLE
from ranksight.model.series.computation import COUNTED

if TYPE_CHECKING:
    from ranksight.model.fitted_model import Model

CLOCKS = 4.0
"""Highest over lowest clock of a processor, at most: 1 GHz to 4."""
SENT = ("messages", "bytes_sent")
"""Metrics of what a kernel sends."""


def exchanging(model: Model, kernels: Sequence[str]) -> Mask:
    """Which kernels sent in all runs that timed them and have no counts of computing, where others have, (K,)."""
    rows, trained = model.functions.rows, model.fitted.trained
    computing = {kernel for kernel, name in rows if name in COUNTED and kernel != WHOLE}

    def sends(kernel: str) -> bool:
        if not computing or kernel in computing or kernel == WHOLE or (kernel, "time") not in rows:
            return False
        sent = [rows[kernel, name] for name in SENT if (kernel, name) in rows]
        return any((trained[row] == trained[rows[kernel, "time"]]).all() for row in sent)

    return np.array([sends(kernel) for kernel in kernels], dtype=bool)


def running(cycles: Array, seconds: Array) -> Array:
    """Part of its time that each kernel has cycles of the clock of the kernel with most, (K, k); NaN where these were
    not counted, of that kernel and of one alone."""
    rate = ratio(np.where(cycles > 0, cycles, np.nan), seconds)
    most = np.where(np.isfinite(rate), cycles, -1.0).argmax(axis=0)[None]
    part = rate / np.take_along_axis(rate, most, 0)
    return np.where(np.arange(len(cycles))[:, None] == most, np.nan, part)
