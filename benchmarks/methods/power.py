"""Simple baselines: one function for every series, fitted by relative least squares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.methods.answers import Answer, plain
from benchmarks.tasks import Array, Task

STEPS = {1: 81, 2: 33, 3: 13, 4: 9}
"""Exponents tried on every axis in the first round, by the number of parameters."""
LARGEST = 4.0
ROUNDS = 10
DIVIDED = ("ranks", "nodes", "p")
"""Parameters by which work is divided."""


class Power:
    """a x^b + c (with several parameters a product of powers, plus a constant), by relative least squares.

    For given exponents a and c are linear; the exponents are searched on a grid that is refined around its best point.
    """

    name = "a x^b + c"
    intervals = False

    def answer(self, tasks: Sequence[Task]) -> list[Answer]:
        """One fit a task."""
        return [self._one(task) for task in tasks]

    def _one(self, task: Task) -> Answer:
        mean = np.nanmean(task.values, axis=1)
        many = len(task.parameters)
        centre = np.log(task.points).mean(axis=0)
        x, target = np.log(task.points) - centre, np.log(task.targets) - centre
        weight = 1 / np.maximum(np.abs(mean), 1e-12 * np.abs(mean).max()) ** 2
        best, width = np.zeros(many), LARGEST
        for step in range(ROUNDS):
            count = STEPS[many] if step == 0 else 9 if many < 3 else 5
            axis = np.linspace(-width, width, count)
            grid = np.stack(np.meshgrid(*[axis] * many, indexing="ij"), axis=-1).reshape(-1, many)
            grid = np.clip(best + grid, -LARGEST, LARGEST)
            cost, a, c = _linear(np.exp(grid @ x.T), mean, weight)
            at = int(np.nanargmin(cost))
            best, width = grid[at], 2 * width / (count - 1)
        value = a[at] * np.exp(target @ best) + c[at]
        formula = f"{c[at]:.4g} + {a[at]:.4g} (x/x0)^{', '.join(f'{b:.3g}' for b in best)}"
        return plain(value, many, formula, np.column_stack([best, np.zeros(many)]))


def _linear(basis: Array, mean: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Weighted residual, slope and constant of ``mean = a basis + c`` for every row of basis (g, n)."""
    total = weight.sum()
    middle = basis @ weight / total
    level = mean @ weight / total
    spread = ((basis - middle[:, None]) ** 2) @ weight
    with np.errstate(divide="ignore", invalid="ignore"):
        a = ((basis - middle[:, None]) * weight) @ (mean - level) / spread
    a = np.where(spread > 1e-24 * total, a, 0.0)
    c = level - a * middle
    cost = ((a[:, None] * basis + c[:, None] - mean) ** 2) @ weight
    return np.where(np.isfinite(cost), cost, np.inf), a, c


class Last:
    """The value at the training point nearest to the target: what no model at all would say."""

    name = "last value"
    intervals = False

    def answer(self, tasks: Sequence[Task]) -> list[Answer]:
        """Nearest in the logarithms of the parameters."""
        answers = []
        for task in tasks:
            distance = np.abs(np.log(task.targets)[:, None] - np.log(task.points)[None]).sum(axis=2)
            value = np.nanmean(task.values, axis=1)[distance.argmin(axis=1)]
            answers.append(plain(value, len(task.parameters), "constant"))
        return answers


class Ideal:
    """The last value scaled as work that is divided: T(x_0) x_0 / x along ranks or nodes, constant along others."""

    name = "ideal scaling"
    intervals = False

    def answer(self, tasks: Sequence[Task]) -> list[Answer]:
        """From the training point nearest to the target."""
        answers = []
        for task in tasks:
            distance = np.abs(np.log(task.targets)[:, None] - np.log(task.points)[None]).sum(axis=2)
            nearest = distance.argmin(axis=1)
            value = np.nanmean(task.values, axis=1)[nearest]
            for axis, name in enumerate(task.parameters):
                if name in DIVIDED:
                    value = value * task.points[nearest, axis] / task.targets[:, axis]
            answers.append(plain(value, len(task.parameters), "1 / x"))
        return answers


class LastPower:
    """A power law through the last points of one parameter; with several the last value."""

    intervals = False

    def __init__(self, points: int = 2) -> None:
        self.points = points
        self.name = f"power law through the last {points}"

    def answer(self, tasks: Sequence[Task]) -> list[Answer]:
        """Least squares in the logarithms."""
        last = Last().answer(tasks)
        return [
            self._one(task) if len(task.parameters) == 1 else answer for task, answer in zip(tasks, last, strict=True)
        ]

    def _one(self, task: Task) -> Answer:
        order = np.argsort(task.points[:, 0])[-self.points :]
        x, y = np.log(task.points[order, 0]), np.log(np.abs(np.nanmean(task.values[order], axis=1)) + 1e-300)
        slope, level = np.polyfit(x, y, 1) if len(x) > 1 else (0.0, y[-1])
        value = np.exp(level + slope * np.log(task.targets[:, 0]))
        return plain(value, 1, f"x^{slope:.3g}", np.array([[slope, 0.0]]))
