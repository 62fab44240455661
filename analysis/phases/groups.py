"""Instruction groups: ranks that execute a similar number of instructions in a phase.

    similar(i, j)  <=>  min(I_i, I_j) >= 0.95 max(I_i, I_j)

Source: Panadero et al. 2015, section 2.2.3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ranksight.core.errors import InputError

SIMILARITY = 0.95


def instruction_groups(instructions: ArrayLike, similarity: float = SIMILARITY) -> NDArray[np.intp]:
    """Group of each rank, 0 for those with most instructions.

    A group reaches from its largest count down to `similarity` times that, so any two of its ranks are similar.

    Parameters
    ----------
    instructions : (n,)
        Of each rank, in one occurrence of the phase; finite, not negative.
    similarity : float
        Between 0 and 1.

    Raises
    ------
    InputError
        When a count or the similarity is out of range.
    """
    counts = np.asarray(instructions, dtype=np.float64)
    if not 0 < similarity <= 1:
        raise InputError(f"a similarity of {similarity:g}", "give a number above 0, up to 1, such as 0.95")
    if not (np.isfinite(counts).all() and (counts >= 0).all()):
        raise InputError("an instruction count is negative or not finite", "measure the run again")
    order = np.argsort(-counts, kind="stable")
    ordered = counts[order]
    labels = np.empty(len(counts), dtype=np.intp)
    start, group = 0, 0
    while start < len(ordered):
        end = int(np.searchsorted(-ordered, -similarity * ordered[start], side="right"))
        labels[order[start:end]] = group
        start, group = max(end, start + 1), group + 1
    return labels
