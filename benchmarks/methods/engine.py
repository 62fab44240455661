"""Ranksight's own engine with its defaults."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from benchmarks.methods.answers import Answer
from benchmarks.tasks import Array, Task, batches, stack
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.search.terms import values
from ranksight.model.series.reducing import Series


class Engine:
    """fit_series and predict, nothing chosen by hand.

    The engine learns noise, and what functions share, from the series fitted together. With `alone` every series
    is fitted by itself: what it says of a program with a single kernel.
    """

    intervals = True

    def __init__(self, space: str = "default", alone: bool = False) -> None:
        self.space = space
        self.alone = alone
        self.name = "Ranksight, each series alone" if alone else "Ranksight"
        self.cpu = 0.0

    def answer(self, tasks: Sequence[Task]) -> list[Answer]:
        """Fit series over the same points together."""
        answers: dict[int, Answer] = {}
        start = time.process_time()
        groups = (([place], [task]) for place, task in enumerate(tasks)) if self.alone else batches(tasks)
        for where, batch in groups:
            first = batch[0]
            series = Series(
                first.parameters,
                first.points,
                stack(batch),
                tuple(task.name for task in batch),
                tuple(task.metric for task in batch),
                hidden=first.hidden,
            )
            fitted = fit_series(series, space=self.space)
            forecast = fitted.predict(first.targets, hidden=first.hidden_targets)
            for row, place in enumerate(where):
                answers[place] = Answer(
                    forecast.value[row],
                    forecast.lower[row],
                    forecast.upper[row],
                    np.asarray(forecast.status[row] != 0),
                    tuple(map(str, forecast.reason[row])),
                    leading_exponents(fitted, row, first.targets[-1:]),
                    fitted.formula(row),
                )
        self.cpu = time.process_time() - start
        return [answers[place] for place in range(len(tasks))]


def leading_exponents(fitted: Fitted, row: int, target: Array) -> Array:
    """For every parameter the exponents (m, 2) in the term of it that is largest at the target (1, m)."""
    terms = fitted.leading(row)
    if not terms:
        return np.full((len(fitted.parameters), 2), np.nan)
    found = np.zeros((len(fitted.parameters), 2))
    size = np.full(len(fitted.parameters), -1.0)
    for coefficient, term in terms:
        value = abs(coefficient * values(term[None], target)[0, 0])
        larger = term.any(axis=1) & (value > size)
        found[larger], size[larger] = term[larger, :2], value
    return found
