"""Changes from one side to the other, and which of them are more than noise.

    r = after / before,   ln r +- t sqrt(e_before^2 + e_after^2),

t from Student's distribution with Welch's degrees of freedom. Of many kernels some differ by chance: of the changes
reported, at most a share of ``1 - level`` is expected to be false (Benjamini and Hochberg 1995, *Journal of the Royal
Statistical Society* B 57, 289). This is controlled for each configuration and metric separately, as counts that all
changed say nothing about times. The whole program is tested alone: its change is reported when the interval excludes 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ranksight.analysis.comparison.sides import Key, Side
from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.experiment import WHOLE
from ranksight.core.records import dataclass

SAME, CHANGED, UNSURE, NEW, GONE, UNKNOWN = range(6)
"""Within the noise; more than that; insufficient data on a side; only after; only before; between predictions, an
interval that holds no change and a large one."""
NAMES = ("same", "changed", "insufficient", "new", "gone", "unknown")
LARGE = 0.1
"""Relative change that two predictions have to exclude to be the same, where no other is asked for."""


@dataclass(frozen=True)
class Changes:
    """Changes of series at k configurations."""

    keys: tuple[Key, ...]  # tuple of (kernel, metric)
    before: Array  # (s, k)
    after: Array  # (s, k)
    ratio: Array  # (s, k): after over before with its interval; NaN where one is missing
    lower: Array  # (s, k)
    upper: Array  # (s, k)
    verdict: Index  # (s, k): index of one of :data:`NAMES`
    level: float

    @property
    def rows(self) -> dict[Key, int]:
        """Index of each series."""
        return {key: at for at, key in enumerate(self.keys)}


def changes(before: Side, after: Side, level: float = 0.95, large: float | None = None) -> Changes:
    """What changed between two sides over the same configurations.

    `large`: relative change that the interval has to exclude where none is found; without it none has to.
    """
    keys = tuple(dict.fromkeys([*before.rows, *after.rows]))
    value, error, freedom, sound, present = (
        [_aligned(side, keys, which, fill) for side in (before, after)]
        for which, fill in (("value", np.nan), ("error", np.inf), ("freedom", 1.0), ("sound", False), (None, False))
    )
    with np.errstate(all="ignore"):
        ratio = value[1] / value[0]
        # Two zeros are the same; something out of nothing is a change without a ratio.
        ratio = np.where((value[0] == 0) & (value[1] == 0), 1.0, ratio)
        middle = np.log(ratio)
        spread = np.hypot(error[0], error[1])
        welch = spread**4 / sum(e**4 / f for e, f in zip(error, freedom, strict=True))
    welch = np.where(np.isfinite(welch), np.clip(welch, 1.0, 1e6), 1e6)
    reach = special.stdtrit(welch, (1 + level) / 2)
    known = np.isfinite(middle) & np.isfinite(spread)
    with np.errstate(all="ignore"):
        size = np.where(spread > 0, np.abs(middle) / spread, np.where(middle == 0, 0.0, np.inf))
    chance = np.where(known, 2 * special.stdtr(welch, -np.where(known, size, 0.0)), 1.0)
    known_both = known & sound[0] & sound[1]
    differs = known_both & (chance <= 1 - level)
    crowd = np.array([kernel != WHOLE for kernel, _ in keys], dtype=bool)
    names = np.array([name for _, name in keys], dtype=object)
    for name in dict.fromkeys(names[crowd].tolist()):
        rows = np.flatnonzero(crowd & (names == name))
        differs[rows] = _discovered(chance[rows], known_both[rows], 1 - level)
    verdict = np.where(differs, CHANGED, SAME)
    verdict = np.where(~known_both, UNSURE, verdict)
    nothing = [~present[side] | np.isnan(value[side]) for side in (0, 1)]
    known = [_known(side, keys) for side in (before, after)]
    verdict = np.where(nothing[0] & ~nothing[1] & ~known[0], NEW, verdict)
    verdict = np.where(nothing[1] & ~nothing[0] & ~known[1], GONE, verdict)
    one_zero = ((value[0] == 0) != (value[1] == 0)) & ~nothing[0] & ~nothing[1] & sound[0] & sound[1]
    verdict = np.where(one_zero, CHANGED, verdict)
    with np.errstate(all="ignore"):
        low, high = ratio * np.exp(-reach * spread), ratio * np.exp(reach * spread)
        if large is not None:
            wide = (high > 1 + large) | (low < 1 / (1 + large))
            verdict = np.where((verdict == SAME) & (middle != 0) & wide, UNKNOWN, verdict)
    return Changes(keys, value[0], value[1], ratio, low, high, verdict.astype(np.intp), level)


def _aligned(side: Side, keys: tuple[Key, ...], which: str | None, fill: float | bool) -> NDArray:  # type: ignore[type-arg]
    """One array of a side in the order of `keys`; `which` None: whether the side has the series."""
    index = np.array([side.rows.get(key, -1) for key in keys])
    if which is None:
        return np.repeat((index >= 0)[:, None], side.value.shape[1], axis=1)
    return np.where(index[:, None] >= 0, getattr(side, which)[index], fill)


def _known(side: Side, keys: tuple[Key, ...]) -> Mask:
    """Where (s, k) a side has the kernel of each key by some metric: one on which no sample fell is not gone."""
    kernels_of: dict[str, Mask] = {}
    for (kernel, _), row in side.rows.items():
        kernels_of[kernel] = kernels_of.get(kernel, False) | np.isfinite(side.value[row])
    nowhere = np.zeros(side.value.shape[1], dtype=bool)
    return np.array([kernels_of.get(kernel, nowhere) for kernel, _ in keys]).reshape(len(keys), -1)


def _discovered(chance: Array, known_both: Mask, rate: float) -> Mask:
    """Which series (s, k) differ by more than chance at each configuration, with false ones at most at `rate`."""
    ordered = np.sort(np.where(known_both, chance, 2.0), axis=0)
    count = np.maximum(known_both.sum(axis=0), 1)
    rank = np.arange(1, len(chance) + 1)[:, None]
    passed = ordered <= rate * rank / count
    last = np.where(passed.any(axis=0), len(chance) - 1 - np.argmax(passed[::-1], axis=0), -1)
    bound = np.where(last >= 0, ordered[np.maximum(last, 0), np.arange(chance.shape[1])], -1.0)
    return np.asarray(known_both & (chance <= bound[None, :]))
