"""Compare PET with the bulk-synchronous sum: two independent predictions of one time, and the cause of a difference.

PET (the time by phases) follows phases over rank counts at one workload; the sum follows kernels over all parameters.
Their agreement is evidence, and a disagreement has its cause in one of their parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.analysis.phases.pet import Pet
from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass
from ranksight.core.units import finite
from ranksight.model.application.breakdown import Breakdown
from ranksight.model.uncertainty import forecast

if TYPE_CHECKING:
    from ranksight.model.fitted_model import Model

AGREE = 0.1
"""Relative difference up to which the two agree in any case."""


@dataclass(frozen=True)
class CrossCheck:
    """Both answers at one configuration."""

    configuration: Mapping[str, float]
    value: float  # PET, NaN where its interval is too wide; the interval is NaN where two rank counts define it
    lower: float
    upper: float
    computation: float  # its parts
    communication: float
    sum: float  # the bulk-synchronous sum; NaN where no time of kernels was measured
    agree: bool  # whether they differ by no more than :data:`AGREE`, or by no more than the larger interval
    why: str  # where they disagree, the cause, or why there is no PET; else empty

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        numbers = {name: finite(getattr(self, name)) for name in ("value", "computation", "communication", "sum")}
        interval = [finite(self.lower), finite(self.upper)]
        return {
            "configuration": dict(self.configuration), **numbers, "interval": interval, "agree": self.agree,
            "why": self.why,
        }  # fmt: skip


def cross_check(
    pet: Pet, parameters: tuple[str, ...], points: Array, broken: Breakdown, start: Breakdown
) -> list[CrossCheck]:
    """Compare PET with the sum, at those of the `points` (k, m) that have the phases' workload.

    `parameters`: of the model; the columns of `points`. `broken`: the sum at `points`. `start`: the sum at the largest
    rank count of the phases, one point.
    """
    rows = []
    begin = pet.at(pet.measured[-1])
    for k, point in enumerate(points):
        configuration = dict(zip(parameters, map(float, point), strict=True))
        if any(configuration.get(name) != value for name, value in pet.workload.items()):
            continue
        try:
            predicted = pet.at(configuration["ranks"], broken.total.level)
        except InputError:
            continue  # a rank count that the phases' weights do not know
        value, total = float(predicted.total[0]), float(broken.total.value[0, k])
        known = np.isfinite(total) and total > 0
        lower, upper = float(predicted.lower[0]), float(predicted.upper[0])
        inside = float(np.nansum(predicted.communication))
        theirs = (float(broken.total.lower[0, k]), float(broken.total.upper[0, k]))
        overlap = np.isfinite(lower) and lower <= theirs[1] and theirs[0] <= upper
        agree = bool(known and (abs(value - total) <= AGREE * max(value, total) or overlap))
        if upper > forecast.WIDEST * lower:
            value, inside, lower, upper, agree = *[float("nan")] * 4, False
            why = str(forecast.too_wide(predicted.upper[:1] / predicted.lower[:1])[0])
        elif not known:
            why, total = "no time of kernels was measured", float("nan")
        else:
            why = "" if agree else _why(pet, configuration["ranks"], value - inside, inside, broken, k, begin, start)
        rows.append(CrossCheck(configuration, value, lower, upper, value - inside, inside, total, agree, why))
    return rows


def of_model(model: Model, points: Array, level: float = 0.9) -> tuple[list[CrossCheck], str]:
    """Compare PET with the sum for a model with phases; the text says why there is no PET.

    Raises InputError when what the model keeps of phases is damaged.
    """
    content = model.observed.get("phases")
    if content is None:
        return [], ""
    if isinstance(content, Mapping) and "missing" in content:
        return [], str(content["missing"])
    pet = Pet.from_dict(content)
    values = {**pet.workload, "ranks": pet.measured[-1]}
    if not set(model.parameters) <= set(values):
        raise InputError("'phases' lacks a parameter of the model", "fit the model again")
    largest = np.array([[values[name] for name in model.parameters]], dtype=np.float64)
    start = model.breakdown(largest, level)
    return cross_check(pet, model.parameters, points, model.breakdown(points, level), start), ""


def _why(
    pet: Pet, ranks: float, computed: float, inside: float, broken: Breakdown, k: int, begin: Any, start: Breakdown
) -> str:
    """The larger of the two parts' differences, and what it comes from."""
    messages = float(broken.parts["communication"][k])
    theirs = float(broken.total.value[0, k]) - messages
    if abs(inside - messages) > abs(computed - theirs):
        source = {"": "is not known to the phases", "measured": "was measured in the traces"}.get(
            pet.network, f"is messages on the network of {pet.network}"
        )
        other = f"{messages:.3g} s of messages on a described network" if messages > 0 else "none in the sum"
        return f"time in MPI: {inside:.3g} s, which {source}, against {other}"
    text = f"computation: {computed:.3g} s against {theirs:.3g} s"
    if broken.total.status[0, k] != forecast.OK:
        return f"{text}; the sum is insufficient there: {broken.total.reason[0, k]}"
    before = float(begin.computation.sum()), float(start.total.value[0, 0] - start.parts["communication"][0])
    steps = np.log(ranks / pet.measured[-1])
    if steps <= 0:
        return f"{text}, where both were measured: the event trace and the kernels' times come from different runs"
    if min(*before, computed, theirs) > 0:
        if abs(np.log(before[0] / before[1])) > 0.5 * abs(np.log(computed / theirs)):
            return (
                f"{text}; they differ at {pet.measured[-1]:g} ranks already, where phases were measured: "
                f"{before[0]:.3g} s against {before[1]:.3g} s"
            )
        ours, other = np.log(computed / before[0]) / steps, np.log(theirs / before[1]) / steps
        distant = max((phase.distant for phase in pet.phases), default=0.0)
        rests = f", resting on a distant point at {distant:g} ranks" if distant else ", as powers that never level off"
        return (
            f"{text}; from {pet.measured[-1]:g} ranks on phases go as p^{ours:.2f}{rests}, "
            f"the kernels' functions as p^{other:.2f}"
        )
    return text
