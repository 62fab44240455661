"""How often a phase occurs at other rank counts: a line over the ranks, or over the displacement of admissible ones.

    W(p) = a + b x,  x = p, or the index of p among the rank counts that the program admits

A program that runs on square numbers of ranks only, whose weight grows with their root, has no line over p (R2 < 1) and
an exact one over x = sqrt(p) - 1.

Source: Panadero et al. 2015, section 2.2.2, figure 4 and table 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from ranksight.core.arrays import Array, Mask
from ranksight.core.errors import InputError, InsufficientError
from ranksight.core.records import dataclass
from ranksight.model.plaindata import Stored

PLAIN = "ranks"
_EXACT = 1e-9


def _squares(k: int) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    return lambda p: np.sqrt(p / k) - 1, lambda x: k * (x + 1) ** 2


RULES: Mapping[str, tuple[Callable[[Array], Array], Callable[[Array], Array]]] = {
    PLAIN: (lambda p: p, lambda x: x),
    "squares": _squares(1),
    "cubes": (lambda p: np.cbrt(p) - 1, lambda x: (x + 1) ** 3),
    "powers of two": (np.log2, np.exp2),
    **{f"{k} x squares": _squares(k) for k in (2, 3, 5, 6, 7, 10)},
}
"""Rules of admissible rank counts: from ranks to displacement, and back."""


def displacement(ranks: ArrayLike, rule: str) -> Array:
    """Index of each rank count among those that `rule` admits; not whole where it does not admit it."""
    if rule not in RULES:
        raise InputError(f"no rule of rank counts is named {rule!r}", f"known: {', '.join(RULES)}")
    return np.asarray(RULES[rule][0](np.asarray(ranks, dtype=np.float64)), dtype=np.float64)


def admits(ranks: ArrayLike, rule: str) -> Mask:
    """Which rank counts `rule` admits."""
    index = displacement(ranks, rule)
    whole = np.round(index)
    return np.asarray((np.abs(index - whole) < 1e-6) & (whole >= 0))


@dataclass(frozen=True)
class Weight(Stored):
    """A phase's weight as a line.

    `rule`: of :data:`RULES`; what the line's variable is. `r2`: coefficient of determination over the measured rank
    counts; 1 for a weight that does not change.
    """

    intercept: float
    slope: float
    rule: str = PLAIN
    r2: float = 1.0

    @property
    def exact(self) -> bool:
        """Whether the line goes through every measured weight."""
        return self.r2 > 1 - _EXACT

    def at(self, ranks: ArrayLike) -> Array:
        """Weight at each rank count; a whole number where the line is exact, never negative."""
        value = self.intercept + self.slope * displacement(ranks, self.rule)
        return np.asarray(np.maximum(np.round(value) if self.exact else value, 0.0))

    @property
    def formula(self) -> str:
        """As text: ``251 x + 502, x: squares``."""
        if self.slope == 0:
            return f"{self.intercept:.6g}"
        text = f"{self.slope:.6g} x {'-' if self.intercept < 0 else '+'} {abs(self.intercept):.6g}"
        return f"{text}, x: {self.rule}" + ("" if self.exact else f" (R2 = {self.r2:.5f})")

    def _fits(self) -> bool:
        return self.rule in RULES and bool(np.isfinite([self.intercept, self.slope, self.r2]).all())


def line(x: Array, y: Array) -> tuple[float, float, float]:
    """Intercept, slope and R2 of the least-squares line."""
    centred = x - x.mean()
    spread = float(centred @ centred)
    slope = float(centred @ (y - y.mean())) / spread if spread > 0 else 0.0
    intercept = float(y.mean() - slope * x.mean())
    total = float(((y - y.mean()) ** 2).sum())
    rest = float(((y - intercept - slope * x) ** 2).sum())
    scale = float((y**2).sum())
    return intercept, slope, 1.0 if total <= 1e-18 * scale else 1 - rest / total


def fit_weight(ranks: ArrayLike, weights: ArrayLike, rule: str | None = None) -> Weight:
    """Learn a phase's weight.

    Raises InsufficientError with fewer than two rank counts; InputError when `rule` does not admit a rank count
    measured.

    `ranks`, `weights` (m,): rank counts measured, and how often the phase occurred. `rule`: which rank counts the
    program admits; when not given, the plain line is taken where it is exact, and else the line with the largest R2
    among the rules that admit every rank count measured.
    """
    p, y = np.asarray(ranks, dtype=np.float64), np.asarray(weights, dtype=np.float64)
    if len(np.unique(p)) < 2:
        raise InsufficientError("a weight was seen at one number of ranks only", "trace at two or more, better three")
    if np.ptp(y) == 0:
        return Weight(float(y[0]), 0.0)
    if rule is not None and not admits(p, rule).all():
        bad = p[~admits(p, rule)][0]
        raise InputError(f"{bad:g} ranks were measured, which {rule!r} does not admit", f"known: {', '.join(RULES)}")
    best: Weight | None = None
    for name in (rule,) if rule is not None else RULES:
        if not admits(p, name).all():
            continue
        intercept, slope, r2 = line(displacement(p, name), y)
        if r2 > 1 - _EXACT:
            # Exact weights have whole or simple coefficients; rounding noise is no part of them.
            intercept, slope = round(intercept, 9), round(slope, 9)
        if best is None or r2 > best.r2 + _EXACT:
            best = Weight(intercept, slope, name, r2)
        if best.exact:
            break
    assert best is not None  # the plain rule admits every rank count
    return best
