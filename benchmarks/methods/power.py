"""Simple baselines: one function for every series, fitted by relative least squares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import least_squares

from benchmarks.methods.answers import Answer, plain
from benchmarks.tasks import Array, Task


class Power:
    """a x^b + c (one parameter; with several, a product of powers plus a constant), by relative least squares."""

    name = "a x^b + c"
    intervals = False

    def answer(self, tasks: Sequence[Task]) -> list[Answer]:
        """One fit a task."""
        return [self._one(task) for task in tasks]

    def _one(self, task: Task) -> Answer:
        mean = np.nanmean(task.values, axis=1)
        centre = np.exp(np.log(task.points).mean(axis=0))
        x, target = np.log(task.points / centre), np.log(task.targets / centre)
        scale = np.abs(mean).max() or 1.0
        y = mean / scale
        weight = 1 / np.maximum(np.abs(y), 1e-12)
        many = x.shape[1]

        def residual(p: Array) -> Array:
            return np.asarray((p[0] * np.exp(x @ p[1:-1]) + p[-1] - y) * weight)

        best = None
        low, high = np.r_[-np.inf, np.full(many, -4.0), -np.inf], np.r_[np.inf, np.full(many, 4.0), np.inf]
        for slope in (-1.0, -0.5, 0.5, 1.0, 2.0):
            start = np.r_[0.5 * y.mean(), np.full(many, slope), 0.5 * y.mean()]
            with np.errstate(all="ignore"):
                try:
                    found = least_squares(residual, start, bounds=(low, high), max_nfev=500)
                except ValueError:
                    continue
            if best is None or found.cost < best.cost:
                best = found
        if best is None:
            return plain(np.full(len(target), np.nan), many, "none", reason="no fit")
        a, b, c = best.x[0], best.x[1:-1], best.x[-1]
        exponents = np.column_stack([b, np.zeros(many)])
        formula = f"{c * scale:.4g} + {a * scale:.4g} (x/x0)^{', '.join(f'{e:.3g}' for e in b)}"
        return plain(scale * (a * np.exp(target @ b) + c), many, formula, exponents)


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
