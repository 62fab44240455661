"""Whether a parameter changes nothing in a series beyond its scatter.

Of two parameters x and z, the logarithms of the values at each z are taken without their mean there. What x does is
looked for in what remains as a power of x, one that itself goes by z, and as anything repetitions do not explain:

    ln y - mean = b ln x + c ln x ln z + e,

with ln x and ln z around their means. Both are F tests (Draper and Smith, *Applied Regression Analysis*, chapters 1
and 6): of b and c together against e, and of all that remains against the scatter of repetitions.
"""

from __future__ import annotations

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Mask

TREND = 0.1
"""Level of the test for a power of the parameter: what is doubtful is taken for a change."""
LACKING = 0.01
"""Level of the test against repetitions."""
FEWEST = 4
"""Degrees of freedom needed to estimate the scatter."""


def unmoved(points: Array, values: Array, at: int) -> tuple[Mask, Array]:
    """Series in which the parameter `at` of two changes nothing, and the standard error of its power.

    `points` (n, 2). `values` (s, n, r): NaN where there is none.

    Returns
    -------
    still : (s,) bool
    error : (s,)
        Zero where it cannot be estimated.
    """
    none = np.zeros(len(values), dtype=bool), np.zeros(len(values))
    if not len(values) or (points <= 0).any():
        return none
    count = (~np.isnan(values)).sum(axis=2)
    logs = np.log(np.where(values > 0, values, np.nan))
    usable = np.isfinite(logs).sum(axis=(1, 2)) == count.sum(axis=1)
    known = count > 0
    centre = np.where(np.isfinite(logs), logs, 0.0).sum(axis=2) / np.maximum(count, 1)
    weight = count.astype(np.float64)
    groups, group = np.unique(points[:, 1 - at], return_inverse=True)
    member = (group[:, None] == np.arange(len(groups))).astype(np.float64)

    def around(x: Array) -> Array:
        """x (s, n) less its mean at each value of the other parameter."""
        mean = (weight * x) @ member / np.maximum(weight @ member, 1)
        return np.asarray(np.where(known, x - mean @ member.T, 0.0))

    x, z = np.log(points[:, at]), np.log(points[:, 1 - at])
    total = np.maximum(weight.sum(axis=1, keepdims=True), 1)
    y = around(centre)
    along = around(np.broadcast_to(x, weight.shape))
    with_other = along * (z - (weight * z).sum(axis=1, keepdims=True) / total)
    design = np.stack([along, with_other], axis=2)
    normal = np.einsum("sn,sni,snj->sij", weight, design, design)
    regular = np.linalg.matrix_rank(normal, hermitian=True) == 2
    inverse = np.linalg.inv(np.where(regular[:, None, None], normal, np.eye(2)))
    moment = np.einsum("sn,sni,sn->si", weight, design, y)
    explained = np.einsum("si,sij,sj->s", moment, inverse, moment)
    remains = (weight * y**2).sum(axis=1)
    levels = known.sum(axis=1) - ((weight @ member) > 0).sum(axis=1)
    free = levels - 2
    within = np.where(np.isfinite(logs), (logs - centre[..., None]) ** 2, 0.0).sum(axis=(1, 2))
    repeated = np.maximum(count - 1, 0).sum(axis=1)
    usable &= regular & (free >= FEWEST) & (remains > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.maximum(remains - explained, 0.0) / free
        trend = special.fdtrc(2, free, explained / 2 / variance)
        lacking = np.where(repeated > 0, special.fdtrc(levels, repeated, remains / levels / (within / repeated)), 1.0)
        still = usable & (trend > TREND) & (lacking > LACKING)
        error = np.sqrt(variance * inverse[:, 0, 0])
    return still, np.where(still, error, 0.0)
