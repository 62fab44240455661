"""Checks between models: a metric that is the product of two others must have the product of their functions.

Operations are operations per visit times visits, bytes are bytes per message times messages. Functions found one by one
can contradict each other beyond the range where all were measured (Calotoiu et al. 2013, table 3, prints such a case).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.core.errors import InputError
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.parallel import pick

PRODUCTS: tuple[tuple[str, str, str], ...] = (
    ("flops", "flops_per_visit", "visits"),
    ("instructions", "instructions_per_visit", "visits"),
    ("loads", "loads_per_visit", "visits"),
    ("bytes_sent", "bytes_per_message", "messages"),
    ("cycles", "cpi", "instructions"),
)
"""Whole, and the two metrics whose product it is."""
TOLERANCE = 0.002
"""Relative deviation that rounding of printed or stored values explains."""


@dataclass(frozen=True)
class Deviation:
    """How far a whole lies from the product of its parts."""

    kernel: str
    whole: str  # metrics
    left: str
    right: str
    relative: Array  # (k,): ``left * right / whole - 1`` at the points asked for; NaN where one has no value
    consistent: Mask  # (k,)
    """Whether the intervals of the whole and of the product meet, or the deviation is within rounding."""


def check(fitted: Fitted, points: Array, products: tuple[tuple[str, str, str], ...] = PRODUCTS) -> list[Deviation]:
    """Compare wholes with products of parts at `points` (k, m), for every kernel that has all three metrics.

    Raises InputError when a product names a metric twice.
    """
    for triple in products:
        if len(set(triple)) != 3:
            raise InputError(f"{' = '.join(triple)} names a metric twice", "name the whole and two different parts")
    rows = fitted.rows
    held = set(fitted.metrics)
    products = tuple(triple for triple in products if held.issuperset(triple))
    having = [
        (kernel, triple, index)
        for kernel in (dict.fromkeys(fitted.kernels) if products else ())
        for triple in products
        if None not in (index := [rows.get((kernel, name)) for name in triple])
    ]
    if not having:
        return []
    # Only the functions that are compared are asked.
    asked = np.unique(np.array([index for *_, index in having], dtype=np.intp))
    answer = pick(fitted, asked).predict(points)
    found = []
    for kernel, (whole, left, right), rows_of in having:
        places = np.searchsorted(asked, np.array(rows_of))
        value, low, high = (getattr(answer, name)[places] for name in ("value", "lower", "upper"))
        with np.errstate(invalid="ignore", divide="ignore"):
            relative = value[1] * value[2] / value[0] - 1
        meet = (low[1] * low[2] <= high[0]) & (high[1] * high[2] >= low[0])
        found.append(Deviation(kernel, whole, left, right, relative, meet | (np.abs(relative) <= TOLERANCE)))
    return found


def contradictions(fitted: Fitted, point: Array) -> dict[int, str]:
    """Series of `fitted` whose function is not the product of those of its parts at `point` (m,), and by how much."""
    rows = fitted.rows
    where = ", ".join(f"{name} {value:g}" for name, value in zip(fitted.parameters, point, strict=True))
    return {
        rows[one.kernel, one.whole]: f"{one.left} x {one.right} gives {one.relative[0]:+.1%} at {where}"
        for one in check(fitted, point[None])
        if np.isfinite(one.relative[0]) and not one.consistent[0]
    }
