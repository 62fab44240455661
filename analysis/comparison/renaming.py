"""Kernels that seem to be one under two names: gone on one side, new on the other, and alike.

A rename is never assumed: it is told, and taken as one when the user says so. Two kernels are alike when a count of
both agrees at every configuration, or when their names are nearly the same: a suffix that another compiler gives, a
signature written out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import SequenceMatcher

import numpy as np

from ranksight.analysis.comparison.sides import Side
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE
from ranksight.core.metrics import metric

NEARLY = 0.75
"""Likeness of two names (Ratcliff and Obershelp's, 0 to 1) from which on they are nearly the same."""
EQUAL = 0.01
"""Relative difference within which counts of one kernel, compiled twice, agree."""
MOST = 200
"""Kernels of one side only, beyond which pairs are not looked for: two other programs, not a renamed one."""


def renamed(side: Side, names: Mapping[str, str]) -> Side:
    """The side with kernels called otherwise.

    Raises
    ------
    InputError
        When it has no such kernel, or already one of the new name.
    """
    held = {kernel for kernel, _ in side.rows}
    for old, new in names.items():
        if old not in held:
            raise InputError(f"{side.name} has no kernel {old!r} to rename", "write --rename BEFORE=AFTER")
        if new in held:
            raise InputError(f"{side.name} has a kernel {new!r} beside {old!r}", "two kernels are not one")
    return replace(side, rows={(names.get(kernel, kernel), name): row for (kernel, name), row in side.rows.items()})


def alike(before: Side, after: Side) -> tuple[tuple[str, str], ...]:
    """Pairs of a kernel of `before` only and one of `after` only that seem to be one, each other's best."""
    kernels = [dict.fromkeys(kernel for kernel, _ in side.rows if kernel != WHOLE) for side in (before, after)]
    gone = [kernel for kernel in kernels[0] if kernel not in kernels[1]]
    new = [kernel for kernel in kernels[1] if kernel not in kernels[0]]
    if not gone or not new or max(len(gone), len(new)) > MOST:
        return ()
    score = np.array([[_likeness(before, after, old, other) for other in new] for old in gone])
    best, back = score.argmax(axis=1), score.argmax(axis=0)
    return tuple((gone[i], new[j]) for i, j in enumerate(best.tolist()) if score[i, j] > 0 and back[j] == i)


def _likeness(before: Side, after: Side, old: str, new: str) -> float:
    """Of two kernels: from 1 where counts agree, that of their names where it is high, else 0."""
    names = SequenceMatcher(None, old, new).ratio()
    counts = [name for kernel, name in before.rows if kernel == old and metric(name).kind == "requirement"]
    for name in counts:
        if (new, name) not in after.rows:
            continue
        pair = before.of(old, name), after.of(new, name)
        known = np.isfinite(pair[0]) & np.isfinite(pair[1]) & (pair[0] > 0)
        if known.any() and (np.abs(pair[1][known] / pair[0][known] - 1) <= EQUAL).all():
            return 1 + names
    return names if names >= NEARLY else 0.0
