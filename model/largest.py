"""The largest run of a program, and the larger one that is asked for next: one rule for all outputs.

More ranks and a larger size are the larger problem; of a mesh width, a time step or a tolerance it is the smaller value
(:func:`ranksight.model.process.solve.dividing`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.valuerules import next_value
from ranksight.model.process.solve import dividing, efolds
from ranksight.model.series.computation import RANKS, cores


def largest_values(training: Array) -> Array:
    """The value of the largest problem in each column of `training` (n, m), (m,)."""
    return np.asarray(np.where(dividing(training), training.min(axis=0), training.max(axis=0)))


def larger(training: Array, factors: Array) -> Array:
    """Values that are `factors` (m,) beyond the largest problem in `training` (n, m): more of what grows, less of what
    gets finer."""
    most = largest_values(training)
    return np.asarray(np.where(dividing(training), most / factors, most * factors))


def largest_run(parameters: Sequence[str], training: Array) -> int:
    """Which of the runs `training` (n, m) is the largest: of those on most cores that of the largest problem."""
    active = cores(training, tuple(parameters))
    size = np.where((training > 0).all(axis=0), efolds(np.where(training > 0, training, 1.0), training), training)
    return int(np.lexsort((size.sum(axis=1), active))[-1])


def next_larger(parameters: Sequence[str], training: Array, along_ties: Callable[[Array], Array]) -> Array:
    """The configuration that is asked for next where none is named, (m,): twice the largest problem of `training`
    (n, m), on ranks that follow the rule of those measured, or a run where no larger one exists. `along_ties`: points
    with what varied with other parameters only where those have it."""
    # A parameter that shows no growth is asked for at a value that was measured: times have none from two values.
    twice = np.where([len(np.unique(column)) > 2 for column in training.T], 2.0, 1.0)
    ahead = larger(training, twice)
    if RANKS in parameters:
        at = list(parameters).index(RANKS)
        further = next_value(training[:, at], ahead[at])
        ahead[at] = further if np.isfinite(further) else ahead[at]
    ahead, least = along_ties(ahead[None])[0], training.min(axis=0)
    less = ahead < np.minimum(least, 1.0)
    if (less & (largest_values(training) > least)).any():  # less than one thread to a rank
        return np.asarray(training[training[:, 0].argmax()])
    return np.asarray(ahead)
