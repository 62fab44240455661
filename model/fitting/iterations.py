"""Iterations as a factor: a run is a set-up and as much again with every step.

    y(x, n) = a(x) + n b(x)

with n the iterations and x all other parameters, kernel by kernel: what lies outside of the loop has no b. Runs of few
steps then predict runs of many. Nothing along n is left to a search over powers, and functions have neither discrepancy
nor changes of slope along it (Ding et al. 2018 change the number of steps with the problem and count it separately).

A time that does not grow with n may still have a part b that its scatter hides and that many steps would show. Its
interval includes such a part, unless a count of the kernel shows that the kernel is outside of the loop.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.model.fitting.fitted import Fitted


def check(name: str | None, parameters: Sequence[str], points: Array) -> None:
    """Raise InputError where `name` is not a parameter, or did not vary over the configurations (n, m)."""
    if name is None:
        return
    if name not in parameters:
        raise InputError(f"there is no parameter {name} to count iterations", f"there are {', '.join(parameters)}")
    seen = np.unique(points[:, list(parameters).index(name)])
    if len(seen) < 2 or seen[0] < 0:
        raise InputError(
            f"{name} is {seen[0]:g} in {'all runs' if len(seen) == 1 else 'a run'}",
            "measure two numbers of iterations: they separate the set-up from the time of each iteration",
        )


def iterated(fitted: Fitted, points: Array) -> str:
    """The note for points (k, m) beyond the iterations measured; empty where there are none."""
    if fitted.iterations is None or not len(fitted):
        return ""
    at = fitted.parameters.index(fitted.iterations)
    low, high = float(fitted.trained[:, at, 0].min()), float(fitted.trained[:, at, 1].max())
    if not ((points[:, at] < low) | (points[:, at] > high)).any():
        return ""
    return (
        f"{fitted.iterations} counts iterations: all values are a set-up plus a constant per iteration, from runs of "
        f"{low:g} to {high:g}; what only later iterations do is not included"
    )
