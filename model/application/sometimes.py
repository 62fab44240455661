"""Kernels that appear in some repetitions of a configuration only: the program's sum holds them as if in all."""

from __future__ import annotations

import numpy as np

from ranksight.core.experiment import WHOLE
from ranksight.model.series.reducing import Series

SMALLEST = 0.01
"""Share of the program's time from which such a kernel is worth a sentence."""
NAMED = 3


def sometimes(series: Series) -> str:
    """A sentence that names them, the largest first; empty where there is none of any weight."""
    rows = np.flatnonzero([m == "time" and k != WHOLE for k, m in series.keys])
    if len(rows) < 2:
        return ""
    values = series.values[rows]
    here = np.isfinite(values)
    seen, runs = here.sum(axis=2), here.any(axis=0).sum(axis=1)
    part = (seen > 0) & (seen < runs)
    mean = np.where(here, values, 0.0).sum(axis=2) / np.maximum(seen, 1)
    total = mean.sum(axis=0)
    share = np.where(part & (total > 0), mean / np.where(total > 0, total, 1.0), 0.0)
    most = share.max(axis=1)
    some = [at for at in np.argsort(-most, kind="stable").tolist() if most[at] > SMALLEST]
    if not some:
        return ""
    named = []
    for at in some[:NAMED]:
        place = share[at].argmax()
        named.append(
            f"{series.kernels[rows[at]]} (in {seen[at, place]} of {runs[place]} runs, {most[at]:.0%} of the time)"
        )
    more = f" and {len(some) - NAMED} more" if len(some) > NAMED else ""
    return "not in every repetition, but summed as if they were in all: " + ", ".join(named) + more
