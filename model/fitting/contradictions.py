"""Checks between functions: a metric that is the product of two others must have the product of their functions.

Operations are operations per visit times visits, bytes are bytes per message times messages. Functions found one by one
can contradict each other beyond the range where all were measured (Calotoiu et al. 2013, table 3, prints such a case).
"""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.joining import pick

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


def contradictions(fitted: Fitted, point: Array) -> dict[int, str]:
    """Series of `fitted` whose function is not the product of those of its parts at `point` (m,), and by how much.

    They contradict each other where the intervals of the whole and of the product do not meet, and the deviation
    ``left * right / whole - 1`` is beyond rounding.
    """
    rows, metrics = fitted.rows, set(fitted.metrics)
    having = [
        (triple, index)
        for triple in PRODUCTS
        if metrics.issuperset(triple)
        for kernel in dict.fromkeys(fitted.kernels)
        if None not in (index := [rows.get((kernel, name)) for name in triple])
    ]
    if not having:
        return {}
    # Only the functions that are compared are asked.
    asked = np.unique(np.array([index for _, index in having], dtype=np.intp))
    answer = pick(fitted, asked).predict(point[None])
    where = ", ".join(f"{name} {value:g}" for name, value in zip(fitted.parameters, point, strict=True))
    texts = {}
    for (_, left, right), index in having:
        places = np.searchsorted(asked, np.array(index, dtype=np.intp))
        value, low, high = (getattr(answer, name)[places, 0] for name in ("value", "lower", "upper"))
        with np.errstate(invalid="ignore", divide="ignore"):
            relative = float(value[1] * value[2] / value[0] - 1)
        meet = low[1] * low[2] <= high[0] and high[1] * high[2] >= low[0]
        if np.isfinite(relative) and not meet and abs(relative) > TOLERANCE:
            texts[int(asked[places[0]])] = f"{left} x {right} gives {relative:+.1%} at {where}"
    return texts
