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
from ranksight.core.metrics import metric
from ranksight.model import priors
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.search.crosswise import LINE
from ranksight.model.search.offer import Listed
from ranksight.model.search.screening import Found
from ranksight.model.search.terms import ONE, hypotheses
from ranksight.model.series.reducing import Series

EXACT = 0.02
"""Relative leave-one-out error up to which a count is known."""


def check(name: str, parameters: Sequence[str], points: Array) -> None:
    """Raise InputError where `name` is not a parameter, or did not vary over the configurations (n, m)."""
    if name not in parameters:
        raise InputError(f"there is no parameter {name} to count iterations", f"there are {', '.join(parameters)}")
    seen = np.unique(points[:, list(parameters).index(name)])
    if len(seen) < 2 or seen[0] < 0:
        raise InputError(
            f"{name} is {seen[0]:g} in {'all runs' if len(seen) == 1 else 'a run'}",
            "measure two numbers of iterations: they separate the set-up from the time of each iteration",
        )


def iterated(fitted: Fitted, name: str, points: Array) -> str:
    """The note for points (k, m) beyond the iterations measured, of the parameter `name`; empty where there are
    none."""
    at = fitted.parameters.index(name)
    low, high = float(fitted.trained[:, at, 0].min()), float(fitted.trained[:, at, 1].max())
    if not ((points[:, at] < low) | (points[:, at] > high)).any():
        return ""
    return (
        f"{name} counts iterations: all values are a set-up plus a constant per iteration, from runs of "
        f"{low:g} to {high:g}; what only later iterations do is not included"
    )


def lines() -> Listed:
    """The space of a series whose only parameter are iterations: a constant, or a line with or without set-up."""
    return Listed(hypotheses([((ONE,),), ((LINE,),), ((ONE,), (LINE,))], [0.0, priors.FORMS["alone"], 0.0]))


def hidden_slope(series: Series, forms: Found, line: int) -> Array:
    """Relative error (s,) of times that do not grow, for as many further iterations as were measured at most.

    That of a slope n b fitted with a constant, ``sigma n_max / sqrt(sum (n - mean n)^2)``; 0 for what grows, for
    counts, and for kernels that are outside of the loop according to one of their counts.
    """
    n = series.points[:, line]
    leading = forms.members[:, 0]
    grows = (forms.basis.factors_of(leading)[..., line] > 0) & (leading >= 0)
    outside = ~grows.any(axis=1)
    kinds = np.array([metric(name).kind for name in series.metrics])
    exact = outside & (kinds == "requirement") & (forms.press[:, 0] <= EXACT**2)
    counted = {kernel for kernel, yes in zip(series.kernels, exact.tolist(), strict=True) if yes}
    doubted = outside & (kinds == "time") & np.array([kernel not in counted for kernel in series.kernels])
    present = np.isfinite(series.values).any(axis=2)
    count = np.maximum(present.sum(axis=1), 1)
    mean = (present @ n) / count
    spread = np.sqrt(np.where(present, (n[None, :] - mean[:, None]) ** 2, 0.0).sum(axis=1))
    error = np.sqrt(np.where(np.isfinite(forms.variance[:, 0]), forms.variance[:, 0], 0.0))
    return np.asarray(np.where(doubted & (spread > 0), error * n.max() / np.where(spread > 0, spread, 1.0), 0.0))
