"""What the backend of a core waits for, memory or its own units, inferred from top-down fractions.

The top-down method (Yasin, "A Top-Down method for performance analysis and counters architecture", ISPASS 2014) divides
a core's slots into retiring, frontend bound, bad speculation and backend bound, the last into memory bound and core
bound (level 2), and memory bound into the cache levels, memory and stores (level 3). Where level 2 was measured it says
which side is more. Tools often leave it out, or its store part; then the method's sums still hold:

    memory = sum of its levels + stores,    core = 1 - retiring - frontend - bad speculation - memory,

so that both are linear in what levels 1 and 3 say. The coefficients, 1 where the formulas of a processor's events are
exact, are learned by least squares from kernels whose level 2 is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.errors import InputError

FIRST = ("retiring", "frontend_bound", "bad_speculation")
THIRD = ("l1_bound", "l2_bound", "l3_bound", "ext_mem_bound")
SECOND = ("memory_bound", "core_bound")
LEVELS = (*FIRST, *SECOND, *THIRD)


@dataclass(frozen=True)
class Sides:
    """Memory and core bound as linear functions of the other levels.

    `coefficients` (8, 2): of one, :data:`FIRST` and :data:`THIRD`, for memory and core bound.
    """

    coefficients: Array

    @classmethod
    def learn(cls, fractions: Mapping[str, Array]) -> Sides:
        """Least squares over n kernels; `fractions` holds (n,) of every level.

        Raises InputError when a level is missing, or there are fewer kernels than coefficients.
        """
        given = _matrix(fractions)
        second = np.stack([_of(fractions, name) for name in SECOND], axis=1)
        known = np.isfinite(given).all(axis=1) & np.isfinite(second).all(axis=1)
        if known.sum() < given.shape[1]:
            raise InputError(
                f"{int(known.sum())} kernels with all top-down levels are too few for {given.shape[1]} coefficients",
                "give at least as many kernels, or measure level 2",
            )
        return cls(np.asarray(np.linalg.lstsq(given[known], second[known], rcond=None)[0], dtype=np.float64))

    def __call__(self, fractions: Mapping[str, Array]) -> tuple[Array, Array]:
        """Memory bound and core bound, (n,) each: what was measured where level 2 is among `fractions`."""
        if all(name in fractions for name in SECOND):
            return _of(fractions, SECOND[0]), _of(fractions, SECOND[1])
        found = _matrix(fractions) @ self.coefficients
        return np.clip(found[:, 0], 0.0, 1.0), np.clip(found[:, 1], 0.0, 1.0)


def _matrix(fractions: Mapping[str, Array]) -> Array:
    columns = [_of(fractions, name) for name in (*FIRST, *THIRD)]
    return np.stack([np.ones(len(columns[0])), *columns], axis=1)


def _of(fractions: Mapping[str, Array], name: str) -> Array:
    if name not in fractions:
        raise InputError(f"the top-down level {name} is missing", f"levels are {', '.join((*FIRST, *SECOND, *THIRD))}")
    return np.asarray(fractions[name], dtype=np.float64)


def memory_bound(fractions: Mapping[str, Array]) -> Array:
    """Memory bound of n kernels, NaN where it is unknown: as measured, otherwise inferred from kernels where it was.

    `fractions` (mapping of str to (n,)): every level; NaN where it was not measured.
    """
    measured = np.clip(_of(fractions, SECOND[0]), 0.0, 1.0)
    given = np.isfinite(_matrix(fractions)).all(axis=1)
    lacking = ~np.isfinite(measured) & given
    if not lacking.any() or (given & ~lacking).sum() < len((*FIRST, *THIRD)) + 1:
        return measured
    rest = {name: values for name, values in fractions.items() if name not in SECOND}
    return np.where(lacking, Sides.learn(fractions)(rest)[0], measured)
