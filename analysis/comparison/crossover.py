"""At which scale a change matters: where one side becomes the faster one, and from where on a change weighs."""

from __future__ import annotations

import numpy as np

from ranksight.analysis.comparison.sides import Side
from ranksight.core.arrays import Array, log_ratio
from ranksight.core.experiment import WHOLE
from ranksight.core.records import dataclass
from ranksight.model.uncertainty.forecast import TAIL

STEPS = 25
"""Numbers of ranks at which both sides are asked, about evenly apart in their logarithm."""
WEIGHS = 0.02
"""Part of the program's time from which on a kernel's change matters."""


@dataclass(frozen=True)
class Crossover:
    """A scale at which the faster side changes."""

    kernel: str
    at: float  # where the two are expected to be equal
    low: float
    high: float
    """Range in which the difference is within the noise; infinite (or zero) where it reaches beyond what was asked."""
    faster_above: str  # the side that is faster from there on


@dataclass(frozen=True)
class Onset:
    """From which scale on a kernel's change matters.

    `at`: ranks from which on it is :data:`WEIGHS` of the program's time, and more than noise. `until`: ranks to which
    it is, those of the largest scale asked where it is to the end. `part`: what it is of the program's time there,
    positive when slower. `unknown`: whether it is within the noise of the predictions at the largest scale.
    """

    kernel: str
    at: float
    part: float
    until: float
    unknown: bool = False


def axis(low: float, high: float) -> Array:
    """Whole numbers from `low` to `high`, about evenly apart in their logarithm."""
    return np.unique(np.round(np.exp(np.linspace(np.log(low), np.log(high), STEPS))))


def crossovers(before: Side, after: Side, timer: str, values: Array) -> list[Crossover]:
    """Where the program and its kernels become faster on the other side.

    `before` and `after`: predicted at `values` (k,) of one parameter, the others fixed.
    """
    crossings = []
    for kernel, ratio, error in _ratios(before, after, timer):
        known = np.isfinite(ratio) & np.isfinite(error)
        if known.sum() < 2:
            continue
        x, y, e = np.log(values[known]), ratio[known], error[known] * TAIL
        signs = np.sign(y)
        turn = np.flatnonzero(signs[:-1] * signs[1:] < 0)
        for place in turn:
            middle = x[place] - y[place] * (x[place + 1] - x[place]) / (y[place + 1] - y[place])
            sure = np.abs(y) > e
            left, right = np.flatnonzero(sure[: place + 1]), np.flatnonzero(sure[place + 1 :])
            # Without a sure difference on both sides no crossover can be distinguished from noise.
            if not len(left) or not len(right) or signs[left[-1]] * signs[place + 1 + right[0]] > 0:
                continue
            low, high = np.exp(x[left[-1]]), np.exp(x[place + 1 + right[0]])
            faster = after.name if signs[place + 1] < 0 else before.name
            crossings.append(Crossover(kernel, float(np.exp(middle)), float(low), float(high), faster))
    return sorted(crossings, key=lambda each: (each.kernel != WHOLE, each.at))


def onsets(before: Side, after: Side, timer: str, values: Array, seen: float) -> list[Onset]:
    """From where on each kernel's change matters, the heaviest first; a kernel of one side only is a change of all of
    its time. The program's change is among them where it has no kernels.

    `seen`: the largest of `values` (k,) that was measured. What matters there is kept where it does not to the end.
    """
    whole = before.of(WHOLE, timer)
    paired, single = _ratios(before, after, timer), _one_sided(before, after, timer)
    if parts := {kernel for kernel, _, _ in (*paired, *single)} - {WHOLE}:
        paired = [each for each in paired if each[0] in parts]
    changed = [
        (kernel, after.of(kernel, timer) - before.of(kernel, timer), np.abs(ratio) > TAIL * error)
        for kernel, ratio, error in paired
    ]
    changed += [(kernel, seconds, TAIL * error < 1) for kernel, seconds, error in single]
    begun = []
    last = max(int(np.searchsorted(values, seen, side="right")) - 1, 0)
    for kernel, seconds, sure in changed:
        with np.errstate(all="ignore"):
            part = seconds / whole
        weighs = np.isfinite(part) & (np.abs(part) >= WEIGHS) & sure
        end = len(values) - 1 if weighs[-1] else last
        if not weighs[end]:
            continue
        off = np.flatnonzero(~weighs)
        first = int(off[off < end].max(initial=-1)) + 1
        end = int(off[off > end].min(initial=len(values))) - 1
        unknown = end < len(values) - 1 and not sure[-1]
        begun.append(Onset(kernel, float(values[first]), float(part[end]), float(values[end]), unknown))
    return sorted(begun, key=lambda each: -abs(each.part))


def _ratios(before: Side, after: Side, timer: str) -> list[tuple[str, Array, Array]]:
    """Logarithm of after over before (k,) and its standard error, for the kernels that both have."""
    ratios = []
    for (kernel, name), row in before.rows.items():
        other = after.rows.get((kernel, name))
        if name != timer or other is None:
            continue
        sound = before.sound[row] & after.sound[other]
        ratio = np.where(sound, log_ratio(after.value[other], before.value[row]), np.nan)
        ratios.append((kernel, ratio, np.hypot(before.error[row], after.error[other])))
    return ratios


def _one_sided(before: Side, after: Side, timer: str) -> list[tuple[str, Array, Array]]:
    """Seconds (k,) that kernels of one side only add or spare, and their relative standard error."""
    ratios = []
    for side, other, sign in ((before, after, -1.0), (after, before, 1.0)):
        for (kernel, name), row in side.rows.items():
            if name == timer and (kernel, name) not in other.rows:
                ratios.append((kernel, np.where(side.sound[row], sign * side.value[row], np.nan), side.error[row]))
    return ratios
