"""Counts of whole blocks, which a smooth function meets by chance or not at all.

Blocks of b cells hold x of them in

    k = ceil(x / b)  or  floor(x / b),

and U blocks are dealt out to x ranks in shares of ``ceil(U / x)`` or ``floor(U / x)``; so are counts of areas and
volumes, ``y = c k^d``, d = 1, 2, 3. Of a parameter that took n values, a function of q coefficients is tested by n - q
of them. Where these are few, functions with a falling part meet such counts by chance: 12, 18 and 24 cells make 3, 5
and 6 blocks of four, and so does 9 - 72 / x, which never reaches 9. Others are met by no function, and what the closest
leaves of them is no scatter.

Where values are those of whole blocks, they are known as a smooth law to their rounding alone, whose variance is that
of a number cut at random: one block is a part d / k of y, which makes ``d^2 / 12 k^-2``, relative: in the mean where
blocks become more, and of the fewest where they become fewer. One k decides all others, and the inequalities that they
set for b or U leave whole numbers or none:

    x / k <= b < x / (k - 1)  or  x / (k + 1) < b <= x / k;      (k - 1) x < U <= k x  or  k x <= U < (k + 1) x.
"""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.model.search.screening import Found
from ranksight.model.series.noise import Location

MOST = 128
"""Blocks at the smallest value up to which they are looked for: more are known to better than a half per cent."""
TESTED = 3
"""Values beyond the coefficients from which on a function that is exact is no chance."""
MET = 1e-9
"""Relative difference up to which blocks meet the values."""


def rounding(points: Array, location: Location, forms: Found) -> Array:
    """Relative variance (s,) that the rounding to blocks has in series that the leading function meets by chance or
    not at all; zero where an exact function is tested by values enough or only rises, and where the values are no
    blocks.

    `points` (n, 1). `location`: values (s, n).
    """
    result, x = np.zeros(len(location.values)), points[:, 0]
    present = location.repeats > 0
    used = forms.members[:, 0] >= 0
    terms = forms.basis.decode(np.maximum(forms.members[:, 0], 0).reshape(-1))[:, 0]
    falls = (terms[:, 0] < 0).reshape(used.shape) | (forms.coefficients[:, 0] < 0)
    chance = (used & falls).any(axis=1) & (used.sum(axis=1) > 1)
    chance &= present.sum(axis=1) - used.sum(axis=1) < TESTED
    doubtful = (chance | (forms.variance[:, 0] >= MET)) & used.any(axis=1)
    doubtful &= (present.sum(axis=1) > 2) & (np.where(present, location.values, 1.0) > 0).all(axis=1)
    rows = np.flatnonzero(doubtful)
    if not len(rows) or (x <= 0).any() or (x != np.round(x)).any():
        return result
    y = np.where(present[rows], location.values[rows], np.nan)
    y /= np.nanmin(y, axis=1, keepdims=True)
    first = np.arange(1.0, MOST + 1)[:, None]
    for power in (1, 2, 3):
        # All counts (r, k, n) that the smallest value decides, and those of them that are whole numbers.
        counts: Array = y[:, None, :] ** (1 / power) * first
        whole: Array = np.round(counts)
        row, at = np.nonzero(((np.abs(counts - whole) <= MET * counts) | np.isnan(counts)).all(axis=2))
        share = np.where(_made(x, whole[row, at]), np.nanmean(1 / whole[row, at] ** 2, axis=1), 0.0)
        share = np.where(_dealt(x, whole[row, at]), 1 / np.nanmin(whole[row, at], axis=1) ** 2, share)
        np.maximum.at(result, rows[row], power**2 / 12 * share)
    return result


def _made(x: Array, counts: Array) -> Mask:
    """Which counts (c, n), NaN where there is none, are those of blocks made of x (n,) cells."""
    with np.errstate(divide="ignore"):
        fewer, same, more = x / (counts - 1), x / counts, x / (counts + 1)
    up = np.ceil(np.nanmax(same, axis=1)) < np.nanmin(fewer, axis=1)
    down = np.floor(np.nanmin(same, axis=1)) > np.nanmax(more, axis=1)
    return np.asarray((up | down) & (np.nanmin(counts, axis=1) < np.nanmax(counts, axis=1)))


def _dealt(x: Array, counts: Array) -> Mask:
    """Which counts (c, n), NaN where there is none, are the shares of blocks that are dealt out to x (n,) ranks."""
    fewer, same, more = (counts - 1) * x, counts * x, (counts + 1) * x
    up = np.nanmax(fewer, axis=1) < np.nanmin(same, axis=1)
    down = np.nanmax(same, axis=1) < np.nanmin(more, axis=1)
    return np.asarray((up | down) & (np.nanmin(counts, axis=1) < np.nanmax(counts, axis=1)))
