"""Random functions of the performance model normal form, measured with noise: tasks whose truth is known.

A function of one parameter is ``c0 + c1 x^i log2(x)^j``; with several parameters it is, by a fair coin, ``c0`` plus the
product or plus the sum of one such term a parameter. (i, j) is drawn evenly from the exponents of Extra-P's default
space, coefficients so that their logarithms are even over [0.01, 100]. A measured value is the true one times
``1 + e``, e even over [-w, w]: noise of 10 % in total is w = 0.05.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.tasks import Array, Task

EXPONENTS: tuple[tuple[float, float], ...] = tuple(
    (n / d, float(j))
    for n, d, logs in (
        (0, 1, (1, 2)),
        (1, 4, (0, 1, 2)),
        (1, 3, (0, 1, 2)),
        (1, 2, (0, 1, 2)),
        (2, 3, (0, 1, 2)),
        (3, 4, (0, 1, 2)),
        (4, 5, (0,)),
        (1, 1, (0, 1, 2)),
        (5, 4, (0, 1)),
        (4, 3, (0, 1)),
        (3, 2, (0, 1, 2)),
        (5, 3, (0,)),
        (7, 4, (0,)),
        (2, 1, (0, 1, 2)),
        (9, 4, (0,)),
        (7, 3, (0,)),
        (5, 2, (0, 1, 2)),
        (8, 3, (0,)),
        (11, 4, (0,)),
        (3, 1, (0, 1)),
    )
    for j in logs
)
AXIS = (4.0, 8.0, 16.0, 32.0, 64.0)
FACTORS = (2.0, 4.0, 8.0, 16.0)
REPETITIONS = 5
SMALLEST, LARGEST = 1e-2, 1e2


@dataclass(frozen=True, slots=True)
class Function:
    """A function drawn: exponents (m, 2), constant, coefficients, and whether the terms are multiplied."""

    exponents: Array
    constant: float
    coefficients: Array
    product: bool

    def __call__(self, points: Array) -> Array:
        """Values at points (n, m)."""
        terms = points ** self.exponents[:, 0] * np.log2(points) ** self.exponents[:, 1]
        if self.product:
            return np.asarray(self.constant + self.coefficients[0] * terms.prod(axis=1))
        return np.asarray(self.constant + terms @ self.coefficients)


def draw(generator: np.random.Generator, parameters: int) -> Function:
    """Draw one function."""
    which = generator.integers(len(EXPONENTS), size=parameters)
    low, high = np.log(SMALLEST), np.log(LARGEST)
    coefficients = np.exp(generator.uniform(low, high, size=1 + parameters))
    product = bool(generator.integers(2)) if parameters > 1 else True
    return Function(np.array([EXPONENTS[at] for at in which]), float(coefficients[0]), coefficients[1:], product)


def grid(parameters: int, axis: Sequence[float] = AXIS) -> Array:
    """All combinations of the axis, (n, m)."""
    return np.stack(np.meshgrid(*[axis] * parameters, indexing="ij"), axis=-1).reshape(-1, parameters)


def tasks_of(
    seed: int, count: int, parameters: int, noise: float, axis: Sequence[float] = AXIS
) -> tuple[list[Task], list[Function]]:
    """`count` tasks with `noise` in total (0.1 is +-5 %) and the functions behind them.

    The same seed draws the same functions and the same unit noise at every level.
    """
    generator = np.random.default_rng([seed, parameters])
    points = grid(parameters, axis)
    targets = np.array([[factor * max(axis)] * parameters for factor in FACTORS])
    tasks, functions = [], []
    for number in range(count):
        function = draw(generator, parameters)
        unit: NDArray[np.float64] = generator.uniform(-1, 1, size=(len(points), REPETITIONS))
        values = function(points)[:, None] * (1 + noise / 2 * unit)
        names = tuple("xyz"[:parameters])
        truth = function(targets)
        name = f"function {number}"
        tasks.append(
            Task(
                f"{parameters} parameters, {noise:.0%} noise", name, "synthetic", names, points, values, targets, truth
            )
        )
        functions.append(function)
    return tasks, functions
