"""Rules between functions: ``Allreduce <= Reduce + Bcast``, any inequality of sums with non-negative factors.

::

    rule := sum ("<=" | ">=") sum
    sum  := item ("+" item)*
    item := [number ["*"]] NAME

A name is a word, or anything between double quotes; words may hold ``_ : . [ ] ~`` and digits after the first
letter, so that most kernels need no quotes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ranksight.analysis.expectations.grammar import LONGEST, ParseError, Token, tokenise

_TOKEN = re.compile(
    r'\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<name>[A-Za-z_~][\w:.\[\]~]*)|"(?P<quoted>[^"]+)"|(?P<sign><=|>=|[-+*<>=]))'
)

Sum = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Inequality:
    """``smaller <= larger``, each a sum of functions with factors.

    Attributes
    ----------
    smaller, larger : tuple of (str, float)
        Functions and their factors.
    text : str
        As it was written.
    """

    smaller: Sum
    larger: Sum
    text: str

    @property
    def functions(self) -> tuple[str, ...]:
        """All functions it speaks of, each once."""
        return tuple(dict.fromkeys(name for name, _ in (*self.smaller, *self.larger)))


def inequality(text: str) -> Inequality:
    """Read a rule.

    Raises
    ------
    ParseError
        With the column of what does not fit.
    """
    if len(text) > 10 * LONGEST:
        raise ParseError(f"a rule has {len(text)} characters, more than {10 * LONGEST}", 10 * LONGEST)
    tokens = tokenise(text, _TOKEN, "put names with other signs between double quotes")
    left, at = _sum(tokens, 0)
    sign = tokens[at]
    if sign.text not in ("<=", ">="):
        what = "the end" if sign.kind == "end" else repr(sign.text)
        raise ParseError(f"expected <= or >=, found {what}", sign.at, "write it like Allreduce <= Reduce + Bcast")
    right, end = _sum(tokens, at + 1)
    if tokens[end].kind != "end":
        raise ParseError(f"expected the end, found {tokens[end].text!r}", tokens[end].at, "a rule is one inequality")
    smaller, larger = (left, right) if sign.text == "<=" else (right, left)
    both = dict(smaller)
    if all(both.get(name, 0.0) >= factor for name, factor in larger):
        raise ParseError(
            "the rule contradicts itself or says nothing", 0, "one side holds all of the other: no measurement decides"
        )
    return Inequality(smaller, larger, " ".join(text.split()))


def _sum(tokens: list[Token], at: int) -> tuple[Sum, int]:
    total: dict[str, float] = {}
    while True:
        factor = 1.0
        if tokens[at].kind == "number":
            factor = float(tokens[at].text)
            if not 0 < factor < 1e100:
                raise ParseError(f"the factor {tokens[at].text} is not positive", tokens[at].at)
            at += 1
            at += tokens[at].text == "*"
        name = tokens[at]
        if name.kind not in ("name", "quoted"):
            what = "the end" if name.kind == "end" else repr(name.text)
            raise ParseError(f"expected a function, found {what}", name.at, "write it like Allreduce <= Reduce + Bcast")
        total[name.text] = total.get(name.text, 0.0) + factor
        at += 1
        if tokens[at].text != "+" or tokens[at].kind != "sign":
            return tuple(total.items()), at
        at += 1
