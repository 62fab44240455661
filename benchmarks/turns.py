"""How often laws turn beyond their runs (:class:`ranksight.model.process.covariance.Turn`), from published curves.

The near part of a curve is extrapolated with a table that its program had no part in. The probability of a turn and
the change of slope are those under which the measured far parts are likeliest, where others are taken to go on as they
were (:data:`STRAIGHT`): published ones are of whole programs at their limits, and users' tables are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import norm

from benchmarks.tasks import Array
from ranksight.model.process.covariance import Turn
from ranksight.model.uncertainty.mixture import Components

STRAIGHT = 0.6
"""Curves that go on for each that is published, a judgement: with a quarter of them intervals of tables that follow a
law become twice as wide, with twice as many those of published curves hold 3 % less."""
LEAST = 1e-12
"""Density of ln y that is none: one absurd curve must not decide."""


@dataclass(frozen=True)
class Ahead:
    """What is predicted of one curve if its law goes on, and what was measured."""

    source: str
    split: str
    components: Components  # (c, k)
    distance: Array  # (k,): e-folds beyond the runs
    measured: Array  # (k,): ln y


def turn_of(curves: Sequence[Ahead], most: int) -> Turn:
    """The turn that makes far parts of curves likeliest; `most` of a split count."""
    curves = [curve for curve in curves if curve.distance.any()]
    number = Counter(curve.split for curve in curves)
    worth = np.array([min(1.0, most / number[curve.split]) / len(curve.measured) for curve in curves])
    worth = np.repeat(worth, [len(curve.measured) for curve in curves])
    # Components of all values one after the other: how far the value is from each, and how much farther turns may go.
    columns = [
        np.stack(
            [part.weight, curve.measured - part.centre, part.spread, np.broadcast_to(curve.distance, part.spread.shape)]
        )
        for curve in curves
        for part in (curve.components,)
    ]
    weight, off, spread, distance = np.concatenate([each.transpose(0, 2, 1).reshape(4, -1) for each in columns], axis=1)
    count = np.concatenate([np.full(each.shape[2], each.shape[1]) for each in columns])
    starts = np.cumsum(count) - count

    def loss(free: Array) -> float:
        turn = Turn(float(expit(free[0])), float(np.exp(free[1])))
        parts = (1 - turn.often) * norm.pdf(off, scale=spread)
        parts += turn.often * norm.pdf(off, scale=np.hypot(spread, turn.slope * distance))
        density = np.log(np.add.reduceat(weight * parts, starts) + LEAST)
        return -float(worth @ density + STRAIGHT * worth.sum() * np.log1p(-turn.often))

    often, slope = minimize(loss, (-2.0, -1.0), method="Nelder-Mead", options={"xatol": 0.01, "fatol": 0.01}).x
    return Turn(round(float(expit(often)), 3), round(float(np.exp(slope)), 2))
