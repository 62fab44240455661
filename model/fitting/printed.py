"""What is printed of fitted functions: closed forms, coefficients, and how a kernel's time grows compared with the work
that its counters show.

A time that grows faster than every requirement of its kernel is spent waiting, serialised or out of balance (Calotoiu
et al. 2013, sections 2 and 4).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.metrics import metric
from ranksight.core.records import dataclass
from ranksight.core.units import some_of
from ranksight.model.search.terms import values, write_term
from ranksight.model.series.reducing import Keyed

if TYPE_CHECKING:
    from ranksight.model.process.posterior import Process

ROUNDING = 1e-9
"""Part of the largest term below which, wherever the series was measured, a term is what rounding left."""
AGREED = 0.9
NAMED = 3
"""Requirements named that a time grows as; a kernel called once has a dozen."""
FASTER = 1 / 8
"""Exponent by which a time must outgrow a requirement to be called faster; the spaces' exponents lie closer than
twice this."""


def pairs(kernels: tuple[str, ...], metrics: tuple[str, ...]) -> list[tuple[int, list[int]]]:
    """Each time with the requirements of its kernel."""
    kinds = {name: metric(name).kind for name in set(metrics)}
    requirements: dict[str, list[int]] = {}
    for i, (kernel, name) in enumerate(zip(kernels, metrics, strict=True)):
        if kinds[name] == "requirement":
            requirements.setdefault(kernel, []).append(i)
    return [
        (i, requirements[kernel])
        for i, (kernel, name) in enumerate(zip(kernels, metrics, strict=True))
        if kinds[name] == "time" and kernel in requirements
    ]


PrintedTime = tuple[str, float, Sequence[tuple[str, float]]]
"""The formula of a time, its largest relative difference from what is predicted, and its terms with coefficients; empty
and none where it is the function of the runs."""


def written(terms: Iterable[tuple[float, Array]], parameters: Sequence[str]) -> str:
    """The sum of terms (m, 3) with their coefficients as people read it."""
    text = ""
    for coefficient, term in terms:
        name = write_term(term, parameters)
        piece = f"{abs(coefficient):.4g}" + (f" * {name}" if name else "")
        text += (" - " if coefficient < 0 else " + ") + piece
    if not text:
        return "0"
    return text[3:] if text.startswith(" + ") else "-" + text[3:]


Functions = TypeVar("Functions", bound="Printed")


@dataclass(frozen=True)
class Below(Generic[Functions]):
    """b series whose behaviour changes along one parameter within the range
    (:mod:`ranksight.model.fitting.changes`), and their functions up to there."""

    rows: Index  # (b,): the series
    axis: Index  # (b,): the parameter
    at: Array  # (b,): its value
    between: Array  # (b, 2): the last value measured below it and the first beyond: between them either may hold
    fitted: Functions


class Printed(Keyed):
    """What is printed of :class:`ranksight.model.fitting.fitted.Fitted`, which has these fields."""

    parameters: tuple[str, ...]
    terms: Array
    members: Index
    weight: Array
    coefficient: Array
    root: Array
    variance: Array
    trained: Array
    processes: tuple[Process, ...]
    below: tuple[Below[Any], ...]

    def leading(self, i: int) -> list[tuple[float, Array]]:
        """Coefficient and term (m, 3) of the leading hypothesis of series `i`, the slowest growing first."""
        return [
            (float(c), self.terms[t]) for c, t in zip(self.coefficient[i, 0], self.members[i, 0], strict=True) if t >= 0
        ]

    def formula(self, i: int) -> str:
        """The leading hypothesis of series `i` as people read it."""
        if not self.weight[i, 0] > 0:
            return "none"
        # From the largest values on which a function begins.
        pieces = [self._formula(i)]
        for part, at in self._changes(i):
            pieces[-1] += f" above {self.parameters[part.axis[at]]} = {part.at[at]:.4g}"
            pieces.append(part.fitted.formula(at))
        return ", ".join(pieces) + " below" * (len(pieces) > 1)

    def _changes(self, i: int) -> Iterator[tuple[Below[Any], int]]:
        """Where series `i` changes: what is below, and its place there."""
        for part in self.below:
            yield from ((part, at) for at in np.flatnonzero(part.rows == i).tolist())

    def _formula(self, i: int) -> str:
        return written(itertools.compress(self.leading(i), self._seen(i)), self.parameters)

    def _seen(self, i: int) -> Mask:
        """Which terms of the leading hypothesis are more than rounding somewhere in the range measured."""
        coefficients, terms = (np.array(part) for part in zip(*self.leading(i), strict=True))
        one = np.eye(len(self.parameters))
        ends = np.concatenate([0 * one[:1], 0 * one[:1] + 1, one, 1 - one])
        low, high = self.trained[i].T.copy()
        for part, at in self._changes(i):
            low[part.axis[at]] = max(low[part.axis[at]], part.between[at, 1])
        with np.errstate(invalid="ignore", over="ignore"):
            size = np.abs(coefficients[:, None] * values(terms, np.where(ends > 0, high, low)))
        rest = size <= ROUNDING * np.fmax.reduce(size, axis=0)
        # Where a term has no size, or none that a number may have, it stays.
        return np.asarray((~rest | np.isinf(size)).any(axis=1) & (coefficients != 0))

    def coefficients(self, i: int) -> list[tuple[str, float, float]]:
        """Term, coefficient and standard error of the leading hypothesis of series `i`, as :meth:`formula` has them;
        NaN where the function is fitted to what a process predicts."""
        error = np.sqrt(self.variance[i, 0] * (self.root[i, 0] ** 2).sum(axis=1))
        if any((process.rows == i).any() for process in self.processes):
            error = np.full(error.shape, np.nan)
        listed = [
            (write_term(self.terms[t], self.parameters) or "1", float(c), float(e))
            for t, c, e in zip(self.members[i, 0], self.coefficient[i, 0], error, strict=True)
            if t >= 0
        ]
        return list(itertools.compress(listed, self._seen(i))) if listed else []

    def notes(self, kernels: frozenset[str]) -> dict[int, str]:
        """For times of `kernels`, how their growth compares with that of their kernel's requirements.

        Said where hypotheses of more than nine tenths of the weight agree in it.
        """
        texts = {}
        for time, requirements in pairs(self.kernels, self.metrics):
            if self.kernels[time] not in kernels:
                continue
            others = [(_lead(self.terms, self.members[r, 0]), self.metrics[r]) for r in requirements]
            forms = zip(self.weight[time], self.members[time], strict=True)
            leads = [(float(w), _lead(self.terms, m)) for w, m in forms if w > 0]
            faster = sum(w for w, lead in leads if all(_outgrows(lead, other) for other, _ in others))
            same = {name: sum(w for w, lead in leads if np.abs(lead - other).max() <= FASTER) for other, name in others}
            similar = [name for name, w in same.items() if w > AGREED]
            if faster > AGREED:
                texts[time] = (
                    "grows faster than every requirement: waiting, serialisation, imbalance or shared bandwidth"
                )
            elif similar:
                texts[time] = f"grows as {some_of(similar, NAMED)}"
        return texts


def _outgrows(lead: Array, other: Array) -> bool:
    return bool((lead - other).sum() > FASTER and (lead - other).min() >= -FASTER)


def _lead(terms: Array, members: Index) -> Array:
    """Powers (m,) of the fastest growing term, a logarithm counted as a quarter of a power."""
    used = members[members >= 0]
    if not len(used):
        return np.zeros(terms.shape[1])
    power, logarithm, base = terms[used[-1]].T
    return np.asarray(power + 0.25 * logarithm + 1e3 * np.maximum(base, 0.0))
