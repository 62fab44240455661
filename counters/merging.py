"""Events that were counted in several runs of a program, merged by kernel; and the error of the merging.

A processor counts four to eight events at once. Each pass counts others, and all of them count cycles and instructions.
The programs of two passes are not the same to the digit: how far what every pass counts differs between them, kernel by
kernel, is how far events of different passes may belong to different runs.

    deviation = standard deviation over passes / mean over passes
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

TABLE = "passes"
"""Table of a run: ``kernel``, ``event`` or metric that every pass counts, ``passes``, the ``mean`` over passes of its
sum over ranks, and the ``deviation`` relative to that."""
HEAVY = 0.01
"""Share of an event from which a kernel is named in the note."""
FAR = 0.1


def merged(passes: Sequence[pd.DataFrame]) -> tuple[pd.DataFrame | None, tuple[str, ...]]:
    """The table of what several passes counted, and notes on it; nothing where only one pass was made.

    `passes`: of each, kernels as index and events as columns, sums over ranks. A kernel without samples in a pass
    counts as 0 there.
    """
    if len(passes) < 2:
        return None, ()
    common = [name for name in passes[0].columns if all(name in each.columns for each in passes[1:])]
    kernels = passes[0].index
    for each in passes[1:]:
        kernels = kernels.union(each.index)
    counts = np.stack([each.reindex(kernels)[common].fillna(0.0).to_numpy(np.float64) for each in passes])
    mean = counts.mean(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        deviation = np.where(mean > 0, counts.std(axis=0, ddof=1) / mean, 0.0)
    table = pd.DataFrame(
        {
            "kernel": np.repeat(kernels.to_numpy(), len(common)),
            "event": common * len(kernels),
            "passes": np.int32(len(passes)),
            "mean": mean.reshape(-1),
            "deviation": deviation.reshape(-1),
        }
    )
    heavy = (mean > 0) & (mean >= HEAVY * mean.sum(axis=0))
    if not heavy.any():
        return table, ()
    row, column = divmod(int(np.where(heavy, deviation, -1.0).argmax()), len(common))
    largest = float(deviation[row, column])
    note = (
        f"events were counted in {len(passes)} passes; what all of them count differs between passes by "
        f"{np.median(deviation[heavy]):.1%} (median of kernels of 1 %), and by {largest:.1%} at most: "
        f"{common[column]} of {kernels[row]}"
    )
    return table, (note, "the passes differ: measure with fewer metrics, or longer runs") if largest > FAR else (note,)
