"""What part of a core's slots waits for memory, inferred from top-down fractions.

The top-down method (Yasin, "A Top-Down method for performance analysis and counters architecture", ISPASS 2014) divides
a core's slots into retiring, frontend bound, bad speculation and backend bound, the last into memory bound and core
bound (level 2), and memory bound into the cache levels, memory and stores (level 3). Tools often leave level 2 out, or
its store part; then the method's sums still hold:

    memory = sum of its levels + stores,    core = 1 - retiring - frontend - bad speculation - memory,

so that both are linear in what levels 1 and 3 say. The coefficients, 1 where the formulas of a processor's
events are exact, are learned by least squares from kernels whose level 2 is known.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ranksight.core.arrays import Array

FIRST = ("retiring", "frontend_bound", "bad_speculation")
THIRD = ("l1_bound", "l2_bound", "l3_bound", "ext_mem_bound")
SECOND = ("memory_bound", "core_bound")
LEVELS = (*FIRST, *SECOND, *THIRD)


def bound(fractions: Mapping[str, Array], by: str = "memory_bound") -> Array:
    """One of :data:`SECOND` of n kernels: as measured, otherwise inferred from kernels where it was; NaN if unknown.

    `fractions` (mapping of str to (n,)): that level, :data:`FIRST` and :data:`THIRD`; NaN where not measured.
    """
    measured = np.clip(fractions[by], 0.0, 1.0)
    others = np.stack([np.ones(len(measured)), *(fractions[name] for name in (*FIRST, *THIRD))], axis=1)
    complete, known = np.isfinite(others).all(axis=1), np.isfinite(measured)
    lacking = complete & ~known
    if not lacking.any() or (complete & known).sum() < others.shape[1]:
        return measured
    coefficients = np.linalg.lstsq(others[complete & known], fractions[by][complete & known], rcond=None)[0]
    return np.where(lacking, np.clip(others @ coefficients, 0.0, 1.0), measured)
