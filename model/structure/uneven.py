"""One run on a number of ranks that cuts a domain unevenly, as a prime number does: it says nothing of the others.

13 ranks cut a domain into 13 slabs, where 12 cut it into 4 x 3 blocks: more is sent, and ranks wait in a longer row.
What spins while it waits counts instructions, so that these are no work there, and a function that has to meet such a
run misses all others. Where one number of ranks alone has a large prime factor
(:data:`ranksight.model.search.gridterms.EVEN`), it is left out of

- counts that it raises above the line of logarithms between the other runs, or through the last two of them;
- times that it raises above those of fewer ranks, as no shared bandwidth does, or where it raises instructions.

Floating-point operations and traffic, which waiting does not change, keep it, as do messages, which have laws of their
own at any number of ranks.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranksight.core.arrays import Array, log
from ranksight.model import priors
from ranksight.model.search.gridterms import DIVIDING, EVEN, primes_of
from ranksight.model.series.noise import behaviour
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce

LEAST = 4
"""Other runs that show what a series does without the uneven one."""
NEAR = 2.0
"""Largest ratio to the most ranks of the others."""
SENT = frozenset({"messages", "bytes_sent", "peers"})


def without_uneven(series: Series) -> tuple[Series, str]:
    """The series without values that one uneven number of ranks raises, and the note on it, empty where none does."""
    axis = next((at for at, name in enumerate(series.parameters) if name in DIVIDING), None)
    if axis is None:
        return series, ""
    uneven = primes_of(series.points, series.parameters)[:, axis] > EVEN
    odd = np.unique(series.points[uneven, axis])
    if len(odd) != 1:
        return series, ""
    others, values = np.delete(series.points, axis, axis=1), log(reduce(series.values, "median", axis=2))
    timed = np.array([behaviour(name) == "time" for name in series.metrics], dtype=bool)
    spinning = np.array([name == "instructions" for name in series.metrics], dtype=bool)
    raised = np.zeros(values.shape, dtype=bool)
    for at in np.flatnonzero(uneven):
        comparable = np.flatnonzero(~uneven & (others == others[at]).all(axis=1))
        x = series.points[comparable, axis]
        if len(comparable) >= LEAST and x.min() < odd[0] <= NEAR * x.max():
            above = values[:, at] - _expected(np.log(x), values[:, comparable], np.log(odd[0]), timed)
            with np.errstate(invalid="ignore"):
                raised[:, at] = above > priors.UNEVEN
    raised[[name in SENT for name in series.metrics]] = False
    raised |= timed[:, None] & raised[timed | spinning].any(axis=0)
    if not raised[timed].any():
        return series, ""
    note = (
        f"times at {series.parameters[axis]} {odd[0]:g} are left out: its prime factor divides the work unevenly, and "
        "ranks wait there longer than in the other runs"
    )
    return replace(series, values=np.where(raised[:, :, None], np.nan, series.values)), note


def _expected(x: Array, y: Array, at: float, timed: Array) -> Array:
    """Values (s,) at `at` by those `y` (s, n) at `x` (n,): of counts on a straight line between the two nearest or
    through the last two, of times no less than at the nearest smaller x. NaN where a value is missing."""
    order = np.argsort(x)
    x, y = x[order], y[:, order]
    right = int(np.clip(np.searchsorted(x, at), 1, len(x) - 1))
    below = int(np.searchsorted(x, at)) - 1
    share = (at - x[right - 1]) / (x[right] - x[right - 1])
    with np.errstate(invalid="ignore"):  # values that are missing are on no line
        line = y[:, right - 1] + share * (y[:, right] - y[:, right - 1])
        return np.asarray(np.where(timed, np.maximum(line, y[:, below]), line))
