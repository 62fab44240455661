"""Parameters that divide the work, and how evenly their values do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranksight.core.arrays import Array, Index
from ranksight.core.dims import largest_prime
from ranksight.model.search.gridterms import MOST_RANKS

DIVIDING = ("ranks", "nodes", "p", "processes")
"""Parameters that divide work and add neighbours."""
EVEN = 7
"""Prime factors up to which numbers of ranks divide domains evenly, as libraries for Fourier transforms have it."""


def primes_of(points: Array, parameters: Sequence[str]) -> Index:
    """Largest prime factor (k, m) of whole numbers of ranks or nodes among `points` (k, m), which divide work the less
    evenly the larger it is; 1 for all else."""
    primes = np.ones(points.shape, dtype=np.intp)
    for axis, name in enumerate(parameters):
        x = points[:, axis]
        if name in DIVIDING and ((x >= 1) & (x == np.round(x)) & (x < MOST_RANKS)).all():
            primes[:, axis] = [largest_prime(int(each)) for each in x.tolist()]
    return primes
