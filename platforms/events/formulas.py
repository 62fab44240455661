"""Arithmetic over named numbers, as event tables and rules write it: read into a tree, evaluated on numbers or arrays.

    sum     = product { ("+" | "-") product }
    product = power { ("*" | "/") power }
    power   = factor [ "^" power ]
    factor  = number | name | ("min" | "max") "(" sum "," sum ")" | "(" sum ")"

A name is that of an event, or of the number that a rule counts with, and may hold dots, digits and underscores:
``fp_arith_inst_retired.128b_packed_double``. A quotient by zero is zero: it stands for a part of cycles that did not
occur. Powers bind from the right, before products.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ranksight.core.errors import InputError

Values = NDArray[np.float64]
Node: TypeAlias = "float | str | tuple[str, Node, Node]"
LONGEST = 2000
DEEPEST = 32

_TOKEN = re.compile(r"\s*(?:(?P<name>[A-Za-z_][A-Za-z0-9_.]*)|(?P<number>\d+(?:\.\d+)?)|(?P<mark>[-+*/^(),]))")


def _power(base: Values, exponent: Values) -> Values:
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return np.asarray(np.power(base, exponent), dtype=np.float64)


def _quotient(above: Values, below: Values) -> Values:
    above, below = np.broadcast_arrays(above, below)
    return np.divide(above, below, out=np.zeros(below.shape), where=below != 0)


_OPERATIONS: Mapping[str, Callable[[Values, Values], Values]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": _quotient,
    "^": _power,
    "min": np.minimum,
    "max": np.maximum,
}


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula over events.

    Attributes
    ----------
    text : str
        As written.
    events : tuple of str
        Names in it, in order of appearance.
    """

    text: str
    events: tuple[str, ...]
    _tree: Node

    def __call__(self, counts: Mapping[str, Values]) -> Values:
        """Evaluate on arrays of one shape; NaN where an event that is needed was not counted (NaN).

        Raises
        ------
        KeyError
            When an event of :attr:`events` is not among `counts`.
        """

        def value(node: Node) -> Values:
            if isinstance(node, float):
                return np.asarray(node)
            if isinstance(node, str):
                return np.asarray(counts[node], dtype=np.float64)
            operation, left, right = node
            return _OPERATIONS[operation](value(left), value(right))

        return value(self._tree)


def read_formula(text: str, origin: str) -> Formula:
    """Read a formula.

    Parameters
    ----------
    origin : str
        Where it stands, for messages.

    Raises
    ------
    InputError
        When `text` is not a formula.
    """
    if len(text) > LONGEST:
        raise InputError(f"{origin}: a formula of {len(text)} characters", f"{LONGEST} are the most")
    return _Reader(text, origin).formula()


class _Reader:
    """Recursive descent over the tokens of one formula."""

    def __init__(self, text: str, origin: str) -> None:
        self._text, self._origin = text, origin
        self._tokens: list[tuple[str, str]] = []
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                raise self._wrong(f"{text[at:].strip()[:10]!r} is not part of a formula")
            self._tokens.append((match.lastgroup or "", match[match.lastgroup or 0].strip()))
            at = match.end()
        self._at = 0
        self._deep = 0
        self._events: dict[str, None] = {}

    def _wrong(self, what: str) -> InputError:
        remedy = "write sums, products, powers, min(a, b) and max(a, b)"
        return InputError(f"{self._origin}: in '{self._text[:80]}' {what}", remedy)

    def formula(self) -> Formula:
        tree = self._sum()
        if self._at < len(self._tokens):
            raise self._wrong(f"{self._tokens[self._at][1]!r} is one too many")
        return Formula(self._text, tuple(self._events), tree)

    def _peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _take(self, wanted: str) -> None:
        if self._peek() != wanted:
            raise self._wrong(f"{wanted!r} is missing{f' before {self._peek()!r}' if self._peek() else ' at the end'}")
        self._at += 1

    def _sum(self) -> Node:
        self._deep += 1
        if self._deep > DEEPEST:
            raise self._wrong(f"parentheses are more than {DEEPEST} deep")
        tree = self._chain("+-", lambda: self._chain("*/", self._power))
        self._deep -= 1
        return tree

    def _chain(self, marks: str, part: Callable[[], Node]) -> Node:
        tree = part()
        while self._peek() and self._peek() in marks:
            mark = self._peek()
            self._at += 1
            tree = (mark, tree, part())
        return tree

    def _power(self) -> Node:
        base = self._factor()
        if self._peek() != "^":
            return base
        self._at += 1
        self._deep += 1
        if self._deep > DEEPEST:
            raise self._wrong(f"powers are more than {DEEPEST} deep")
        tree: Node = ("^", base, self._power())
        self._deep -= 1
        return tree

    def _factor(self) -> Node:
        if self._at >= len(self._tokens):
            raise self._wrong("something is missing at the end")
        kind, text = self._tokens[self._at]
        self._at += 1
        if kind == "number":
            return float(text)
        if kind == "name" and text in ("min", "max"):
            self._take("(")
            left = self._sum()
            self._take(",")
            right = self._sum()
            self._take(")")
            return (text, left, right)
        if kind == "name":
            self._events[text] = None
            return text
        if text == "(":
            tree = self._sum()
            self._take(")")
            return tree
        raise self._wrong(f"{text!r} is not a name or a number")
