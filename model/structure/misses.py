"""Whether kernels may be predicted one by one at another problem size: the share of accesses that miss all caches.

    E = N_LLC misses / N_memory accesses

(Ding et al. 2018, section 2). Up to 1e-4 the caches hold what kernels work on, and their times follow their counts.
Above, how much a kernel waits depends on what else is in the caches, and the paper predicts the sum alone. It does not
say over which kernels and ranks E is taken; here it is the largest of all kernels and configurations measured.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ranksight.model.structure.functions import Functions

HELD = 1e-4
"""E up to which caches hold what kernels work on."""
SMALL = 0.01
"""Share of all loads below which a kernel does not count."""


def remark(functions: Functions, training: NDArray[np.float64]) -> str:
    """What E says of other problem sizes; nothing where it is small or loads were not counted."""
    rows = functions.rows
    kernels = [k for k, name in rows if name == "loads_mem" and (k, "loads") in rows]
    if not kernels:
        return ""
    said = functions.fitted.at_training(training)
    missed, every = (np.array([said[rows[k, name]] for k in kernels]) for name in ("loads_mem", "loads"))
    known = np.isfinite(missed) & np.isfinite(every) & (every > SMALL * np.nansum(every, axis=0))
    share = np.where(known, np.maximum(missed, 0.0) / np.where(known, every, 1.0), np.nan)
    if not known.any() or not np.nanmax(share) > HELD:
        return ""
    worst = kernels[int(np.unravel_index(int(np.nanargmax(share)), share.shape)[0])]
    span = f"{np.nanmin(share):.1g} to {np.nanmax(share):.1g}"
    return (
        f"E, loads served by memory over all loads, is {span} (most in {worst}), "
        f"above {HELD:g}: at another problem size trust the sum of the kernels more than each of them"
    )
