"""The grammar of expectations and rules; nothing is ever evaluated as code.

An expectation is ``O(growth)``, or the growth alone::

    growth   := product ("+" product)*             one summand has to outgrow the others
    product  := factor (["*"] factor | "/" factor)*
    factor   := base ["^" exponent]
    base     := NAME | 1 | NUMBER "^" rate | ("sqrt" | "cbrt") "(" growth ")" | log | "(" growth ")"
    log      := ("log" | "log2" | "ln" | "lg" | "log10") ["^" exponent] (NAME | "(" NAME ")")
    rate     := NAME | "(" [number] ["*"] NAME ["/" number] ")"
    exponent := ["-"] number | "(" ["-"] number ["/" number] ")"

such as ``O(p^0.5 log p)``, ``O(k^3 2^k)``, ``O(n^3 / p)``, ``O(sqrt(p) log^2 p)``. A decimal of two digits or more that
rounds a fraction with a denominator up to 6 means the fraction: 0.67 is 2/3. See
:mod:`ranksight.analysis.expectations.inequality` for rules.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction

from ranksight.core.errors import InputError
from ranksight.model.search.growth import LARGEST_DENOMINATOR, Growth, Order, leading

LOGARITHMS = ("log", "log2", "ln", "lg", "log10")
ROOTS = {"sqrt": Fraction(1, 2), "cbrt": Fraction(1, 3)}
LONGEST = 400
"""Characters of an expectation; nobody writes more, and nesting is bounded by it."""
DEEPEST = 20
LARGEST = 64
"""Largest exponent; beyond it values overflow within a few doublings."""
_TOKEN = re.compile(r"\s*(?:(?P<number>\d+(?:\.\d+)?|\.\d+)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>[-+*/^()]))")


class ParseError(InputError):
    """Text that is not an expectation or rule; carries the place.

    Attributes
    ----------
    at : int
        Offset of the first character that does not fit.
    """

    def __init__(self, what: str, at: int, remedy: str = "") -> None:
        super().__init__(f"{what} at column {at + 1}", remedy)
        self.plain, self.at = what, at


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a text and where it stands; the kind is ``number``, ``name``, ``sign`` or ``end``."""

    kind: str
    text: str
    at: int


def growth(text: str) -> Growth:
    """Read an expectation.

    Raises
    ------
    ParseError
        With the column of what does not fit.

    Examples
    --------
    >>> str(growth("O(p^0.5 log p)"))
    'O(p^0.5 log p)'
    """
    if len(text) > LONGEST:
        raise ParseError(f"an expectation has {len(text)} characters, more than {LONGEST}", LONGEST)
    return _Parser(text).whole()


def tokenise(text: str, pattern: re.Pattern[str], remedy: str) -> list[Token]:
    """Words of a text, each of the kind that the matching group of `pattern` is named by, and its end.

    Raises
    ------
    ParseError
        With the place of what matches none, and the `remedy`.
    """
    found, at = [], 0
    while text[at:].strip():
        match = pattern.match(text, at)
        if match is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            raise ParseError(f"{text[at]!r} is not understood", at, remedy)
        kind = str(match.lastgroup)
        found.append(Token(kind, match[kind], match.start(kind)))
        at = match.end()
    return [*found, Token("end", "", len(text))]


class _Parser:
    """Recursive descent; one method a rule of the grammar."""

    def __init__(self, text: str) -> None:
        self.tokens = tokenise(text, _TOKEN, "write it like O(p^0.5 log p)")
        self.next = 0
        self.depth = 0

    @property
    def token(self) -> Token:
        return self.tokens[self.next]

    def take(self) -> Token:
        token = self.token
        self.next += token.kind != "end"
        return token

    def accept(self, *texts: str) -> bool:
        if self.token.kind != "end" and self.token.text in texts:
            self.next += 1
            return True
        return False

    def expect(self, text: str, why: str = "") -> None:
        if not self.accept(text):
            raise self.unexpected(f"expected {text!r}{why}")

    def unexpected(self, wanted: str) -> ParseError:
        token = self.token
        what = "the end" if token.kind == "end" else repr(token.text)
        return ParseError(f"{wanted}, found {what}", token.at, "write it like O(p^0.5 log p)")

    def whole(self) -> Growth:
        if self.token.kind == "end":
            raise ParseError("nothing is written", 0, "write it like O(log p); O(1) is constant")
        opened = self.token.text == "O" and self.tokens[self.next + 1].text == "("
        self.next += 2 * opened
        found = self.sum()
        if opened:
            self.expect(")", " of O(...)")
        if self.token.kind != "end":
            raise self.unexpected("expected the end")
        if any(abs(part) > LARGEST for _, order in found.orders for part in order):
            raise ParseError(f"an exponent above {LARGEST} is not supported", 0, "values would overflow")
        return found

    def sum(self) -> Growth:
        self.depth += 1
        if self.depth > DEEPEST:
            raise ParseError("parentheses are nested too deep", self.token.at)
        start = self.token.at
        summands = [self.product()]
        while self.accept("+"):
            summands.append(self.product())
        if self.token.text == "-":
            raise ParseError("a difference has no place in big O", self.token.at, "leave the smaller term out")
        most = leading(summands)
        if most not in summands:
            each = " + ".join(str(one)[2:-1] for one in summands)
            raise ParseError(
                f"no summand of {each} outgrows the others along every parameter", start, "write a product"
            )
        self.depth -= 1
        return most

    def product(self) -> Growth:
        found = self.factor()
        while True:
            if self.accept("*"):
                found = found * self.factor()
            elif self.accept("/"):
                found = found / self.factor()
            elif self.token.kind in ("number", "name") or self.token.text == "(":
                found = found * self.factor()
            else:
                return found

    def factor(self) -> Growth:
        token = self.token
        if token.kind == "number":
            return self.numeral()
        base = self.base()
        return base ** self.exponent() if self.accept("^") else base

    def base(self) -> Growth:
        token = self.token
        if self.accept("("):
            found = self.sum()
            self.expect(")")
            return found
        if token.kind != "name":
            raise self.unexpected("expected a parameter, log, sqrt or a number")
        self.take()
        if token.text in LOGARITHMS:
            return self.logarithm()
        if token.text in ROOTS and self.token.text == "(":
            self.expect("(")
            found = self.sum()
            self.expect(")")
            return found ** ROOTS[token.text]
        return Growth.of({token.text: Order(power=Fraction(1))})

    def logarithm(self) -> Growth:
        exponent = self.exponent() if self.accept("^") else Fraction(1)
        opened = self.accept("(")
        token = self.token
        if token.kind != "name" or token.text in LOGARITHMS:
            raise self.unexpected("expected a parameter after log")
        self.take()
        if opened and self.token.text != ")":
            raise ParseError(
                "a logarithm is of one parameter",
                self.token.at,
                "log(p^2) grows as log(p), and log(n p) as log(n) + log(p)",
            )
        if opened:
            self.expect(")")
        return Growth.of({token.text: Order(log=exponent)})

    def numeral(self) -> Growth:
        token = self.take()
        value = Fraction(token.text)
        if not self.accept("^"):
            if value == 1:
                return Growth()
            raise ParseError(
                f"the constant {token.text} has no place in big O",
                token.at,
                "leave it out; write an exponent that is a fraction in parentheses: p^(1/2)",
            )
        if value <= 1:
            raise ParseError(f"{token.text} to a power does not grow", token.at, "write a base above 1, such as 2^k")
        name, rate = self.rate()
        base = Fraction(math.log2(value)).limit_denominator(LARGEST_DENOMINATOR)
        return Growth.of({name: Order(rate=rate * base)})

    def rate(self) -> tuple[str, Fraction]:
        if self.token.kind == "name":
            return self.take().text, Fraction(1)
        self.expect("(", " or a parameter in the exponent")
        rate = Fraction(-1 if self.accept("-") else 1)
        if self.token.kind == "number":
            rate *= self.number()
            if self.accept("/"):
                rate /= self.number()
            self.accept("*")
        if self.token.kind != "name":
            raise self.unexpected("expected a parameter in the exponent")
        name = self.take().text
        if self.accept("/"):
            rate /= self.number()
        self.expect(")")
        return name, rate

    def exponent(self) -> Fraction:
        at = self.token.at
        if not self.accept("("):
            value = (-1 if self.accept("-") else 1) * self.number()
        else:
            value = (-1 if self.accept("-") else 1) * self.number()
            if self.accept("/"):
                value /= self.number()
            self.expect(")")
        if abs(value) > LARGEST:
            raise ParseError(f"an exponent of {float(value):g} is not supported", at, f"at most {LARGEST}")
        return value

    def number(self) -> Fraction:
        token = self.token
        if token.kind != "number":
            raise self.unexpected("expected a number")
        self.take()
        value = simple(token.text)
        if value == 0 and self.tokens[self.next - 2].text == "/":
            raise ParseError("a fraction is divided by zero", token.at)
        return value


def simple(text: str) -> Fraction:
    """A number as a fraction; what rounds a fraction with a denominator up to 6 to two digits or more is that."""
    exact = Fraction(text)
    digits = len(text.partition(".")[2])
    if digits >= 2:
        near = exact.limit_denominator(6)
        if abs(near - exact) <= Fraction(1, 2 * 10**digits):
            return near
    return exact.limit_denominator(LARGEST_DENOMINATOR)
