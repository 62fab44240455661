"""How far simulated counts are off that stand for a whole run: by what occurrences of the same stretch differ by.

The sums with further weights (:mod:`ranksight.counters.signature`) differ from the counts by one standard error each.
That of a count is the root of the mean of their squares. Work that changes along the run shows in the sum of the
earlier half alone: where that differs by significantly more than the others, what was not simulated may have gone as
far again each time. A count that walks by independent steps over m of N occurrences has

    variance of the mean of N = 4 N / m times that of the halves' difference

(both are integrals of a Wiener process, from 0: N / 3 and m / 12 of the variance of a step).

The run's table of samples (:mod:`ranksight.core.sampled`) holds counts whose error matters: as many samples as would
scatter as much. The functions fitted to them take it for noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ranksight.core.arrays import Array, Mask
from ranksight.core.metrics import LEVELS
from ranksight.core.sampled import effective, sampling
from ranksight.counters.signature import HALVES, PART

SIGNIFICANT = 18.51
"""Ratio of variances of one and two degrees of freedom that chance exceeds once in twenty (F distribution)."""
ROUNDED = 2.0
"""Counts that differ by rounding alone."""
HEAVY = 0.01
"""Share of a rank's instructions from which the error of a kernel matters."""
MATTERS = 1e-3
"""Relative error from which a count is not exact; and share of the loads of a kernel from which those of a level are
counted for it."""
LEAST = 1e-6
"""Relative error of counts of a metric others of which are not exact."""


def errors(counts: pd.DataFrame, sums: Sequence[pd.DataFrame], growth: float) -> pd.DataFrame:
    """Standard errors of the counts of one rank, of the same shape.

    `counts`: kernels as index, metrics as columns. `sums`: the same with the weights of
    :data:`~ranksight.counters.signature.HALVES`. `growth`: occurrences over those that were simulated,
    as far as what was not simulated comes after what was.
    """
    values = counts.to_numpy(np.float64)
    others = [each.reindex(index=counts.index, columns=counts.columns, fill_value=0.0) for each in sums]
    differences = np.array([(each.to_numpy(np.float64) - values) / PART for each in others])
    squares = np.where(np.abs(differences) <= ROUNDED, 0.0, differences) ** 2
    walk = HALVES.index("halves")
    noise = np.delete(squares, walk, axis=0).mean(axis=0)
    walks = squares[walk] > SIGNIFICANT * np.maximum(noise, ROUNDED**2)
    variance = np.where(walks, noise + max(4 * growth, 1.0) * (squares[walk] - noise), squares.mean(axis=0))
    return pd.DataFrame(np.sqrt(variance), counts.index, counts.columns)


def record(
    counts: Mapping[int, pd.DataFrame], off: Mapping[int, pd.DataFrame], counted_by: Sequence[int]
) -> tuple[pd.DataFrame | None, tuple[str, ...]]:
    """The table of samples of a run, None where all counts are exact; and a note.

    `counts`, `off`: by rank that was simulated, kernels as index. `counted_by`: for each rank the one whose counts it
    has.
    """
    every = pd.concat([counts[by].assign(rank=rank) for rank, by in enumerate(counted_by)])
    error = pd.concat([off[by] for by in counted_by])
    metrics = [name for name in every.columns if name != "rank"]
    heavy = every["instructions"] > HEAVY * every.groupby("rank")["instructions"].transform("sum")
    relative = _relative(every[metrics], error[metrics], heavy.to_numpy())
    known = np.isfinite(relative)
    largest = np.where(known, relative, 0.0).max(axis=0, initial=0.0)
    inexact = [name for name, most in zip(metrics, largest.tolist(), strict=True) if most > MATTERS]
    if not inexact:
        return None, ("counts of kernels of 1 % are the same in all occurrences that were simulated",)
    at = int(largest.argmax())
    kernel = every.index[int(np.where(known[:, at], relative[:, at], 0.0).argmax())]
    steady = [number for number, name in enumerate(metrics) if name not in LEVELS[1:] and "misses" not in name]
    usual = relative[:, steady][known[:, steady]]
    note = (
        f"counts of kernels of 1 % differ between occurrences: their errors are {np.median(usual):.2%} (median) and "
        f"{largest[at]:.1%} at most, {metrics[at]} of {kernel}"
    )
    rows = every.rename_axis("kernel").reset_index()
    variances = np.maximum(error[inexact].to_numpy(), LEAST * every[inexact].to_numpy()) ** 2
    ones = np.ones(len(rows))
    worth = {name: effective(rows[name].to_numpy(np.float64), variances[:, k], ones) for k, name in enumerate(inexact)}
    return sampling(rows, worth), (note,)


def _relative(values: pd.DataFrame, error: pd.DataFrame, heavy: Mask) -> Array:
    """Errors relative to their values; NaN for small kernels, and for what is next to none of a kernel's loads."""
    least = MATTERS * values["loads"].to_numpy(np.float64)[:, None]
    count = values.to_numpy(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = error.to_numpy(np.float64) / count
    least = np.where(np.isin(values.columns, ("visits", "instructions")), 0.0, least)
    return np.where(heavy[:, None] & (count > least), relative, np.nan)
