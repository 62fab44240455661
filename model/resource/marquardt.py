"""Least squares of many problems at once, by Levenberg and Marquardt's steps (Marquardt 1963, J. SIAM 11, 431).

Problems that such steps do not settle are solved one at a time by lmfit's trust region.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.arrays import Array, Index

if TYPE_CHECKING:
    import lmfit

Residuals = Callable[[Array, Index], Array]
"""Residuals (m, r) at points (m, p) of the problems whose numbers are given, (m,)."""

STEPS = 100
SETTLED = 1e-3
"""Relative change of the parameters below which a problem is solved; of its squares, the square of it."""
DIFFERENCE = 1e-6
"""Change of a parameter that derivatives are taken with."""
CALLS = 200
"""Evaluations of a problem that is solved alone, at most."""
LONGEST = 2.0
"""Largest change of a parameter in one step."""
DAMPED = 1e-9
"""Least damping, as a share of the squared derivatives: where only a sum is determined there is one answer."""


def least_squares(residuals: Residuals, start: Array, low: Array, high: Array) -> Array:
    """Parameters (m, p) between `low` and `high` whose squared residuals are least, searched from `start` on."""
    point, damping, unsettled = start.copy(), np.full(len(start), 1e-3), np.arange(len(start))
    for _ in range(STEPS):
        if not len(unsettled):
            break
        position, least, most = point[unsettled], low[unsettled], high[unsettled]
        rest, slope = derivatives(residuals, position, unsettled, most)
        gradient, normal = np.einsum("mri,mr->mi", slope, rest), np.einsum("mri,mrj->mij", slope, slope)
        # A limit that the residuals would push past holds.
        free = ~(((position <= least) & (gradient > 0)) | ((position >= most) & (gradient < 0)))
        normal = np.where(free[:, :, None] & free[:, None, :], normal, 0.0)
        diagonal = np.maximum(np.einsum("mii->mi", normal), 1e-30)
        normal = normal + np.eye(start.shape[1]) * (damping[unsettled, None] * diagonal + 1e-30)[:, None, :]
        step = -np.linalg.solve(normal, (free * gradient)[..., None])[..., 0]
        trial = np.clip(position + np.clip(step, -LONGEST, LONGEST), least, most)
        before, after = (rest**2).sum(axis=1), (residuals(trial, unsettled) ** 2).sum(axis=1)
        better = after <= before
        point[unsettled[better]] = trial[better]
        damping[unsettled] = np.maximum(damping[unsettled] * np.where(better, 1 / 4, 4.0), DAMPED)
        small = (np.abs(trial - position) <= SETTLED * (1 + np.abs(position))).all(axis=1)
        unsettled = unsettled[~(small | (better & (before - after <= SETTLED**2 * before)))]
    for row in unsettled.tolist():
        point[row] = _alone(residuals, row, point[row], low[row], high[row])
    return point


def _alone(residuals: Residuals, row: int, start: Array, low: Array, high: Array) -> Array:
    """Parameters (p,) of one problem."""
    import lmfit  # takes as long as the rest of a prediction

    given = lmfit.Parameters()
    for at, (value, least, most) in enumerate(zip(start.tolist(), low.tolist(), high.tolist(), strict=True)):
        given.add(f"p{at}", value, min=least, max=most)

    def rest(parameters: lmfit.Parameters) -> Array:
        point = np.array([[float(parameter.value) for parameter in parameters.values()]])
        return np.asarray(residuals(point, np.array([row]))[0])

    with np.errstate(divide="ignore", invalid="ignore"):  # of correlations that nobody asks for
        minimum = lmfit.minimize(rest, given, method="least_squares", max_nfev=CALLS)
    return np.array([float(parameter.value) for parameter in minimum.params.values()])


def derivatives(residuals: Residuals, point: Array, rows: Index, high: Array) -> tuple[Array, Array]:
    """Residuals (m, r) of the problems `rows` and their derivatives (m, r, p), by differences away from `high`."""
    rest = residuals(point, rows)
    step = np.where(point + DIFFERENCE > high, -DIFFERENCE, DIFFERENCE)
    moved = [(residuals(point + step * unit, rows) - rest) / (step @ unit)[:, None] for unit in np.eye(point.shape[1])]
    return rest, np.stack(moved, axis=2)
