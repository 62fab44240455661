"""How often laws turn beyond their runs (:class:`ranksight.model.process.covariance.Turn`), from curves.

The near part of a published curve is extrapolated with a table that its program had no part in. Published curves are
of whole programs at their limits, and users' tables are not all: laws whose truth is known count as well, as many as of
several sources. How often laws turn, how that depends on the scatter of their runs, and by how much they do is
what makes the far parts of all likeliest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import norm

from benchmarks import laws, synthetic_functions
from benchmarks.tasks import Array, Task
from ranksight.model.process.covariance import Turn
from ranksight.model.process.posterior import back
from ranksight.model.uncertainty.mixture import Components

SEED = 7
NOISES = (0.02, 0.1, 0.2, 0.5)
"""Of made-up functions, whole width."""
LEAST = 1e-12
"""Density of ln y that is none: one absurd curve must not decide."""


@dataclass(frozen=True)
class Ahead:
    """What is predicted of one curve if its law goes on, and what was measured."""

    source: str
    split: str
    components: Components  # (c, k)
    near: Array  # (c, k): their centres at the nearest points within the range of the runs
    scatter: float  # of runs around their law, the standard deviation of ln y
    distance: Array  # (k,): e-folds beyond the runs
    measured: Array  # (k,): ln y


def made_up(most: int) -> list[Task]:
    """Times of laws that go on, but for those of memory domains: `most` of programs, and of functions of each noise."""
    drawn = [task for task in laws.tasks_of(SEED, max(1, most // len(laws.LAWS))) if task.metric == "time"]
    for noise in NOISES:
        drawn += synthetic_functions.tasks_of(SEED, most, 1, noise)[0]
    return drawn


def turn_of(curves: Sequence[Ahead], most: int) -> Turn:
    """The turn that makes far parts of curves likeliest; `most` of a split count."""
    curves = [curve for curve in curves if curve.distance.any()]
    number = Counter(curve.split for curve in curves)
    worth = np.array([min(1.0, most / number[curve.split]) / len(curve.measured) for curve in curves])
    worth = np.repeat(worth, [len(curve.measured) for curve in curves])
    # Components of all values one after the other: weight, how far the value is from each, how far that is from where
    # the runs end, its spread, how much farther turns may go, and the scatter.
    columns = [
        np.stack(
            np.broadcast_arrays(
                part.weight,
                curve.measured - part.centre,
                back(curve.near, part.centre, curve.distance),
                part.spread,
                curve.distance,
                np.array(curve.scatter),
            )
        )
        for curve in curves
        for part in (curve.components,)
    ]
    weight, off, constant, spread, distance, scatter = np.concatenate(
        [each.transpose(0, 2, 1).reshape(6, -1) for each in columns], axis=1
    )
    count = np.concatenate([np.full(each.shape[2], each.shape[1]) for each in columns])
    starts = np.cumsum(count) - count

    def loss(free: Array) -> float:
        turn = _turn(free)
        often = turn.probability(scatter)
        parts = (1 - often) * norm.pdf(off, scale=spread)
        parts += often * norm.pdf(off, loc=turn.flatter * constant, scale=np.hypot(spread, turn.slope * distance))
        return -float(worth @ np.log(np.add.reduceat(weight * parts, starts) + LEAST))

    accuracy = {"xatol": 0.005, "fatol": 0.005}
    best = _turn(minimize(loss, (-2.0, -1.0, -1.0, -1.0), method="Nelder-Mead", options=accuracy).x)
    return Turn(round(best.often, 3), *(round(number, 2) for number in best[1:]))


def _turn(free: Array) -> Turn:
    """The turn of unbounded numbers."""
    return Turn(float(expit(free[0])), *np.exp(free[1:]).tolist())
