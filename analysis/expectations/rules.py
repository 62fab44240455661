"""Rules between functions, on measurements, on models at scale, and asymptotically.

Models are combined before they are stripped to their leading terms (Shudler et al. 2015, section 2.4): a rule is
violated in the limit where some summand of its smaller side outgrows all of its larger side. Violations
in the measurements are reported separately from those that the models predict at larger scales. Each function has
several models with posterior weights, and so has the answer; an answer with less than nine tenths is not given.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from ranksight.analysis.expectations.document import Rule, Study
from ranksight.analysis.expectations.inequality import Sum
from ranksight.analysis.expectations.judging import AGREEMENT, weakness
from ranksight.analysis.expectations.models import Key, Model
from ranksight.core.arrays import Array
from ranksight.core.records import dataclass
from ranksight.model.search.growth import Growth
from ranksight.model.series.noise import locate

TOLERANCE = 0.05
"""Share by which the smaller side may exceed the larger one in measurements, beyond their scatter."""
ERRORS = 3.0
"""Standard errors of the difference that scatter explains."""
COMBINATIONS = 4096
"""Combinations of models that are tried for one rule."""
FARTHEST = 20
"""Doublings of a parameter beyond the measurements within which the scale of a violation is looked for."""
State = Literal["holds", "violated", "insufficient"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both sides of a rule at one configuration."""

    configuration: Mapping[str, float]
    smaller: float
    larger: float
    violated: bool

    @property
    def ratio(self) -> float:
        """Smaller over larger side; above one where the rule does not hold."""
        return self.smaller / self.larger if self.larger else float("inf")


@dataclass(frozen=True)
class RuleFinding:
    """What came of a rule."""

    rule: Rule
    smaller: tuple[Growth, ...]  # fastest growing summands of both sides
    larger: tuple[Growth, ...]
    in_the_limit: State  # by the models' growth
    measured: State  # by the measurements
    at: tuple[Comparison, ...] = ()  # measured configurations that violate it
    ahead: tuple[Comparison, ...] = ()  # by the models, at the targets
    begins: float | None = None  # value of the parameter beyond the measurements from which on the models violate it
    reason: str = ""  # why there is no answer in the limit

    @property
    def state(self) -> State:
        """Violated where measurements or models say so; insufficient where nothing does and the models cannot."""
        if "violated" in (self.in_the_limit, self.measured):
            return "violated"
        return "insufficient" if "insufficient" in (self.in_the_limit, self.measured) else "holds"


def leaders(side: Sequence[Growth]) -> tuple[Growth, ...]:
    """The summands that no other outgrows along every parameter."""
    distinct = tuple(dict.fromkeys(side))
    return tuple(a for a in distinct if not any(a != b and a.within(b) for b in distinct))


def holds_in_the_limit(smaller: Sequence[Growth], larger: Sequence[Growth]) -> bool:
    """Whether every summand of the smaller side is outgrown, or met, by one of the larger side."""
    return all(any(a.within(b) for b in larger) for a in leaders(smaller))


def check_rule(rule: Rule, models: Mapping[Key, Model], targets: Array, study: Study) -> RuleFinding:
    """Check one rule; models are held against each other at `targets` (k, m), `study` says what evidence has to be."""
    sides = rule.inequality.smaller, rule.inequality.larger
    used = {name: models[name, rule.metric] for name in rule.inequality.functions}
    at, measured = _measured(sides, used, study.how)
    weak = [f"{name}: {reason}" for name, model in used.items() if (reason := weakness(model, study))]
    if any(model.empty for model in used.values()):
        return RuleFinding(rule, (), (), "insufficient", measured, at, reason=weak[0])
    small, large = (tuple(used[name].growth for name, _ in side) for side in sides)
    chance = _chance(sides, used)
    limit: State = "holds" if chance >= AGREEMENT else "violated" if chance <= 1 - AGREEMENT else "insufficient"
    reason = f"it holds for {chance:.0%} of the functions that explain the measurements, by their weight"
    if weak:
        limit, reason = "insufficient", weak[0]
    values = (_value(side, used, targets) for side in sides)
    ahead = tuple(
        Comparison(_named(next(iter(used.values())), point), float(a), float(b), bool(a > b))
        for point, a, b in zip(targets, *values, strict=True)
    )
    begins = _begins(sides, used) if limit == "violated" else None
    reason = reason if limit == "insufficient" else ""
    return RuleFinding(rule, leaders(small), leaders(large), limit, measured, at, ahead, begins, reason)


def _chance(sides: tuple[Sum, Sum], used: Mapping[str, Model]) -> float:
    """Weight of the combinations of the functions' models for which a rule holds in the limit."""
    options: list[list[tuple[float, Growth]]] = []
    for model in used.values():
        total: dict[Growth, float] = {}
        for each in model.explanations:
            total[each.growth] = total.get(each.growth, 0.0) + each.weight
        options.append(sorted(((w, g) for g, w in total.items()), key=lambda each: -each[0]))
    # Combinations stay few: of many functions only the likeliest models count.
    count = max(1, int(COMBINATIONS ** (1 / len(options))))
    holds = everything = 0.0
    for combination in itertools.product(*(each[:count] for each in options)):
        weight = math.prod(each[0] for each in combination)
        growths = dict(zip(used, (each[1] for each in combination), strict=True))
        everything += weight
        if holds_in_the_limit(*([growths[name] for name, _ in side] for side in sides)):
            holds += weight
    return holds / everything if everything > 0 else 0.0


def _named(model: Model, point: Array) -> dict[str, float]:
    return dict(zip(model.fitted.parameters, map(float, point), strict=True))


def _value(side: Sum, used: Mapping[str, Model], points: Array) -> Array:
    total = np.zeros(len(points))
    for name, factor in side:
        total += factor * used[name].at(points)
    return total


def _measured(sides: tuple[Sum, Sum], used: Mapping[str, Model], how: str) -> tuple[tuple[Comparison, ...], State]:
    """Configurations that violate the rule by more than their scatter."""
    points = next(iter(used.values())).points
    value, square, known = np.zeros((2, len(points))), np.zeros(len(points)), np.ones(len(points), dtype=bool)
    for at, side in enumerate(sides):
        for name, factor in side:
            place = locate(used[name].values[None], how)
            value[at] += factor * place.values[0]
            known &= np.isfinite(place.values[0])
            spread = np.nan_to_num(place.variance[0], nan=0.0) / np.maximum(place.repeats[0], 1.0)
            square += (factor * place.scale[0]) ** 2 * spread
    if not known.any():
        return (), "insufficient"
    with np.errstate(invalid="ignore"):
        over = known & (value[0] > (1 + TOLERANCE) * value[1] + ERRORS * np.sqrt(square))
    model = next(iter(used.values()))
    values = tuple(
        Comparison(_named(model, points[i]), float(value[0, i]), float(value[1, i]), True) for i in np.flatnonzero(over)
    )
    return values, "violated" if values else "holds"


def _begins(sides: tuple[Sum, Sum], used: Mapping[str, Model]) -> float | None:
    """Where along the first parameter, from the largest measured value on, the models' sides cross for good."""
    model = next(iter(used.values()))
    most = model.present.max(axis=0)
    steps = 2.0 ** (np.arange(FARTHEST * 8 + 1) / 8)
    line = np.repeat(most[None, :], len(steps), axis=0)
    line[:, 0] = np.ceil(most[0] * steps)
    with np.errstate(over="ignore", invalid="ignore"):
        over = _value(sides[0], used, line) > _value(sides[1], used, line)
    below = np.flatnonzero(~over)
    first = int(below[-1]) + 1 if len(below) else 0
    return float(line[first, 0]) if first < len(line) else None
