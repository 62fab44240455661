"""How fast something grows: a product of one factor ``2^(e x) x^i log2(x)^j`` a parameter, without coefficient.

Factors are ordered by their class (exponential, power, logarithm: Shudler et al. 2015, section 2.3), so that the tuple
(e, i, j) compares as the functions do for large x.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from ranksight.core.arrays import Array
from ranksight.core.records import dataclass
from ranksight.model.search.terms import LIMITED, Factor

LARGEST_DENOMINATOR = 840
"""Exponents are fractions up to this denominator; finer differences are rounding of what was computed."""


class Order(NamedTuple):
    """Exponents of one parameter x: ``2^(rate x) * x^power * log2(x)^log``, compared in this order."""

    rate: Fraction = Fraction(0)
    power: Fraction = Fraction(0)
    log: Fraction = Fraction(0)

    def times(self, other: Order) -> Order:
        """Exponents of the product."""
        return Order(self.rate + other.rate, self.power + other.power, self.log + other.log)

    def to(self, exponent: Fraction) -> Order:
        """Exponents of a power."""
        return Order(self.rate * exponent, self.power * exponent, self.log * exponent)

    @property
    def factor(self) -> Factor:
        """The factor as the engine counts it: power, logarithm, rate."""
        return float(self.power), float(self.log), float(self.rate)


NONE = Order()


@dataclass(frozen=True, slots=True)
class Growth:
    """A product of growths in several parameters.

    `orders` (tuple of (str, Order)): by name of the parameter, sorted; parameters without growth are left out.
    """

    orders: tuple[tuple[str, Order], ...] = ()

    @classmethod
    def of(cls, orders: Mapping[str, Order] | Iterable[tuple[str, Order]]) -> Growth:
        """Collect exponents by parameter."""
        return cls(tuple(sorted((name, order) for name, order in dict(orders).items() if order != NONE)))

    @classmethod
    def of_term(cls, term: Array, parameters: Sequence[str]) -> Growth:
        """From a term (m, 3) of the engine (:mod:`ranksight.model.search.terms`)."""
        return cls.of((name, order_of(*map(float, row))) for name, row in zip(parameters, term, strict=True))

    def __getitem__(self, parameter: str) -> Order:
        return dict(self.orders).get(parameter, NONE)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters it grows (or falls) with."""
        return tuple(name for name, _ in self.orders)

    def __mul__(self, other: Growth) -> Growth:
        names = dict.fromkeys((*self.parameters, *other.parameters))
        return Growth.of((name, self[name].times(other[name])) for name in names)

    def __pow__(self, exponent: Fraction) -> Growth:
        return Growth.of((name, order.to(exponent)) for name, order in self.orders)

    def __truediv__(self, other: Growth) -> Growth:
        return self * other ** Fraction(-1)

    def within(self, other: Growth) -> bool:
        """Whether it grows nowhere faster than `other`: along every parameter, the others being what they may."""
        return all(self[name] <= other[name] for name in (*self.parameters, *other.parameters))

    def renamed(self, names: Mapping[str, str]) -> Growth:
        """The same in other names of the parameters."""
        return Growth.of((names.get(name, name), order) for name, order in self.orders)

    def factors(self, parameters: Sequence[str]) -> tuple[Factor, ...]:
        """The term as the engine writes it, over `parameters`."""
        return tuple(self[name].factor for name in parameters)

    def __str__(self) -> str:
        """In big O as people write it: ``O(p^0.67 log p)``; :attr:`exact` keeps fractions."""
        return f"O({self._written(_decimal)})"

    @property
    def exact(self) -> str:
        """In big O with fractions, read back without loss by :func:`ranksight.analysis.expectations.grammar.growth`."""
        return f"O({self._written(str)})"

    def _written(self, number: Callable[[Fraction], str]) -> str:
        above: list[str] = []
        below: list[str] = []
        for name, order in self.orders:
            for symbol, exponent in ((name, order.power), (f"log {name}", order.log)):
                if exponent:
                    text = _power(symbol, number(abs(exponent)))
                    (above if exponent > 0 else below).append(text)
            if order.rate:
                size = number(abs(order.rate))
                text = f"2^{name}" if size == "1" else f"2^({size} {name})"
                (above if order.rate > 0 else below).append(text)
        if not below:
            return " ".join(above) or "1"
        divisor = below[0] if len(below) == 1 else f"({' '.join(below)})"
        return f"{' '.join(above) or '1'}/{divisor}"


def _decimal(exponent: Fraction) -> str:
    return f"{float(exponent):.4g}" if exponent.denominator in (1, 2, 4, 8) else f"{float(exponent):.2f}"


def _power(symbol: str, exponent: str) -> str:
    if exponent == "1":
        return symbol
    text = f"({exponent})" if "/" in exponent else exponent
    return f"log^{text} {symbol[4:]}" if symbol.startswith("log ") else f"{symbol}^{text}"


def order_of(power: float, log: float, rate: float) -> Order:
    """Exponents from the engine's factor, rounded to fractions; those that a term of a process grid grows with, and
    none of what ends at a value."""
    if rate == LIMITED:
        return NONE
    parts = (Fraction(value).limit_denominator(LARGEST_DENOMINATOR) for value in (max(rate, 0.0), power, log))
    return Order(*parts)


def leading(growths: Sequence[Growth]) -> Growth:
    """The growth of a sum along each parameter: of its fastest summand there, the other parameters held.

    ``n^3/p + 5`` grows as n^3 and, the constant being what is left at many p, as 1 along p.
    """
    names = dict.fromkeys(name for growth in growths for name in growth.parameters)
    return Growth.of((name, max(growth[name] for growth in growths)) for name in names)
