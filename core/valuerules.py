"""Rules that the values of a parameter follow: lists, ranges, cubes, powers of two, ``6*n^2``.

    rule        = alternative { "," alternative }
    alternative = number | number ".." number [ ":" step ] | name of a rule | formula in one name

A formula counts with its name n = 1, 2, 3, ... and is read by :mod:`ranksight.core.formula`: into a tree,
never evaluated as code. Programs restrict their ranks so (six faces of a cubed sphere, cubes of ranks, hypercubes), and
a plan must not ask for runs that the program refuses (checklist D23 of Ding et al. 2018: ``P = 6 n^2``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.core.formula import read_formula
from ranksight.core.records import dataclass

NAMED = {"cubes": "n^3", "squares": "n^2", "powers-of-two": "2^(n-1)", "even": "2*n", "any": "n"}
"""Rules that have a name."""
COUNTED = 1 << 20
FIRST_COUNTED = 1 << 11
"""Values of n that a formula is asked at, at most and first."""
FARTHEST = 64.0
"""Multiple of the values measured, or of the least asked for, up to which the next value of a rule is looked for."""
_NUMBER = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_RANGE = re.compile(rf"({_NUMBER})\s*\.\.\s*({_NUMBER})(?:\s*:\s*({_NUMBER}))?")


@dataclass(frozen=True)
class Rule:
    """The values that a parameter may take.

    `text`: as written, or as found in the values measured.
    """

    text: str
    inferred: bool = False

    def values(self, low: float, high: float, whole: bool = True) -> Array:
        """All values of the rule between `low` and `high` (both included), ascending.

        `whole`: only whole numbers, as ranks are. Raises InputError when the rule cannot be read.
        """
        parts = [_alternative(part.strip(), self.text, low, high) for part in _split(self.text)]
        found = np.unique(np.concatenate(parts))
        found = found[np.isfinite(found) & (found >= low * (1 - 1e-12)) & (found <= high * (1 + 1e-12))]
        return np.asarray(found[found == np.round(found)] if whole else found)


def _split(text: str) -> list[str]:
    """The alternatives of a rule; commas in parentheses belong to a formula."""
    parts, depth = [""], 0
    for mark in text:
        depth += (mark == "(") - (mark == ")")
        if mark == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += mark
    return parts


def _alternative(text: str, rule: str, low: float, high: float) -> Array:
    remedy = "write a list 8,27,64, a range 16..512:16, cubes, squares, powers-of-two, or a formula such as 6*n^2"
    if not text:
        raise InputError(f"the rule '{rule[:80]}' has an empty part", remedy)
    if match := re.fullmatch(_NUMBER, text):
        return np.array([float(match[0])])
    if match := _RANGE.fullmatch(text):
        first, last, step = float(match[1]), float(match[2]), float(match[3] or 1)
        if not step > 0 or last < first:
            raise InputError(f"the range '{text}' is empty", "write SMALLEST..LARGEST, or SMALLEST..LARGEST:STEP")
        # Only the part that is asked for, so that no range is too long to be held.
        start = max(0.0, np.ceil((low - first) / step - 1e-9))
        count = np.floor((min(last, high) - first) / step + 1e-9) - start + 1
        return np.asarray(first + step * (start + np.arange(max(0, int(min(count, COUNTED))))))
    formula = read_formula(NAMED.get(text, text), f"rule '{rule[:80]}'")
    if len(formula.names) > 1:
        raise InputError(
            f"the rule '{text[:80]}' has {len(formula.names)} names: {', '.join(formula.names[:4])}",
            f"a rule counts with one, such as 6*n^2; rules with a name are {', '.join(NAMED)}",
        )
    if not formula.names:
        return np.atleast_1d(formula({}))
    if formula.text == formula.names[0] and text not in NAMED and text != "n":
        raise InputError(f"no rule is named '{text[:80]}'", remedy)
    count = FIRST_COUNTED
    while True:
        with np.errstate(all="ignore"):
            found = np.asarray(formula({formula.names[0]: np.arange(1.0, count + 1)}))
        if found[-1] > high or not found[-1] > found[0] or count >= COUNTED:
            return found
        count *= 8


def infer(measured: Array, whole: bool = True) -> Rule:
    """The rule that the values measured seem to follow.

    Powers of two, cubes, squares and six squares come first, of those that hold all values the one that they fill most
    densely; then a common ratio, then a common difference; without any, the values themselves and, beyond them,
    doublings of the largest.

    `measured` (n,). `whole`: whether values are whole numbers.
    """
    return _inferred(tuple(np.unique(np.asarray(measured, dtype=np.float64)).tolist()), whole)


def infer_finer(measured: Array) -> Rule:
    """The rule that values follow which are the larger problem the smaller they are, such as mesh widths: from the
    largest on a common ratio; without any the values themselves and, beyond them, halves of the smallest.

    `measured` (n,), above zero.
    """
    seen = np.unique(np.asarray(measured, dtype=np.float64))[::-1]
    if len(seen) > 1:
        rule = Rule(f"{_number(seen[0])}/{_number((seen[:-1] / seen[1:]).min())}^(n-1)", inferred=True)
        held = rule.values(float(seen[-1]), float(seen[0]), whole=False)
        if all(np.isclose(held, value, rtol=1e-9).any() for value in seen):
            return rule
    return Rule(",".join([*map(_number, seen), f"{_number(seen[-1])}/2^n"]), inferred=True)


@lru_cache(maxsize=64)
def _inferred(measured: tuple[float, ...], whole: bool) -> Rule:
    """The same of different values in ascending order: those of all kernels are mostly the same."""
    seen = np.array(measured)
    low, high = float(seen[0]), float(seen[-1])
    offered: list[tuple[str, ...]] = []
    if len(seen) > 1 and low > 0:
        ratio, step = float((seen[1:] / seen[:-1]).min()), float(np.diff(seen).min())
        offered.append(("powers-of-two", "cubes", "squares", "6*n^2") if whole else ())
        offered.append((f"{_number(low)}*{_number(ratio)}^(n-1)",))
        offered.append((f"{_number(low)}*n",) if low == step else (f"{_number(low)}+{_number(step)}*(n-1)",))
    for group in offered:
        dense: dict[str, float] = {}
        for text in group:
            held = Rule(text).values(low, high, whole)
            if len(held) and all(np.isclose(held, value, rtol=1e-9).any() for value in seen):
                dense[text] = len(seen) / len(held)
        if dense:
            return Rule(max(dense, key=lambda text: dense[text]), inferred=True)
    doubled = f"{_number(high)}*2^n"
    return Rule(",".join([*map(_number, seen), *([doubled] if high > 0 else [])]), inferred=True)


def next_value(measured: Sequence[float] | Array, least: float, most: float = np.inf) -> float:
    """The smallest value from `least` on that follows the rule of the values `measured` (n,), to suggest a run.

    `most`, or the largest that follows the rule and is not above it, where it is nearer; NaN where neither is there.
    """
    rule = infer(np.asarray(measured, dtype=np.float64))
    end = min(most, FARTHEST * max(least, float(np.max(measured))))
    found = rule.values(least, end) if least <= end else np.array([])
    if not len(found) and np.isfinite(most):
        found = rule.values(float(np.max(measured)), most)[::-1]
        found = found[found > np.max(measured)]
    return float(found[0]) if len(found) else float("nan")


def _number(value: float) -> str:
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.12f}".rstrip("0").rstrip(".")
