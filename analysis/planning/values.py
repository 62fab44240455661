"""The rules of :mod:`ranksight.core.valuerules` as plans use them, and long axes thinned."""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.valuerules import NAMED, Rule, infer

__all__ = ["NAMED", "Rule", "infer", "thin"]


def thin(values: Array, most: int) -> Array:
    """At most `most` of the values (ascending, positive), as evenly apart in their logarithm as they come; the ends
    stay."""
    if len(values) <= most:
        return values
    at = np.log(np.maximum(values, 1e-300))
    wanted = np.linspace(at[0], at[-1], most)
    place = np.clip(np.searchsorted(at, wanted), 1, len(at) - 1)
    nearer = np.where(wanted - at[place - 1] < at[place] - wanted, place - 1, place)
    return np.asarray(values[np.unique(np.concatenate([[0], nearer, [len(values) - 1]]))])
