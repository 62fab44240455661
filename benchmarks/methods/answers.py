"""What a method answers, and the interface of methods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.tasks import Array, Task


@dataclass(frozen=True, slots=True)
class Answer:
    """A method's answer to one task.

    Attributes
    ----------
    value : (k,)
        Predicted at the targets; NaN where there is no answer.
    lower, upper : (k,)
        Its 90 % interval; NaN from methods that give none.
    flagged : (k,) bool
        Where the method says that it does not know.
    reasons : tuple of str
        Why, one a target.
    exponents : (m, 2)
        Polynomial and logarithmic exponent of each parameter in that of its terms which is largest at the last target;
        NaN where the method has none.
    formula : str
    """

    value: Array
    lower: Array
    upper: Array
    flagged: NDArray[np.bool_]
    reasons: tuple[str, ...]
    exponents: Array
    formula: str


class Method(Protocol):
    """Learns from the training points of tasks and answers at their targets; never sees what was measured there."""

    name: str
    intervals: bool

    def answer(self, tasks: Sequence[Task]) -> list[Answer]:
        """Answers in the order of the tasks."""
        ...


def plain(value: Array, parameters: int, formula: str, exponents: Array | None = None, reason: str = "") -> Answer:
    """An answer without intervals, flagged where there is no value."""
    nothing = np.full(len(value), np.nan)
    flagged = ~np.isfinite(value)
    none = np.full((parameters, 2), np.nan) if exponents is None else exponents
    return Answer(value, nothing, nothing, flagged, tuple(reason if flag else "" for flag in flagged), none, formula)
