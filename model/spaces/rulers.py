"""The search space around an expectation: ticks on a ruler (Shudler et al. 2015, section 2.3).

The large ticks are terms of the class of the expectation E, from 1 to E^2, their exponents found by halving the
intervals between 1, E and E^2; the small ticks are products with the next lower class. ``E = p`` gives the paper's 17
terms, exponents 0, 1/4, ..., 2 with and without ``log p``, but not ``p^2 log p``, which lies beyond E^2.

What the paper leaves open is settled so:

- Intervals are halved twice, as in its example (`DEPTH`).
- Products are with exponents 0 and 1 of the lower class; where E itself has another one, with that and those next to it
  (its rule of incrementing and decrementing by 1), so that ``k^3 2^k`` finds ``k^2 2^k`` and ``k^4 2^k``.
- E = O(1) "can be assigned to any one of the classes": a space of one term could never say no, so the space is that of
  O(log p).
- What falls (``1/p``) has the mirrored ruler, from E^2 to 1, with thirds too: surfaces of domains in three dimensions
  fall as ``p^(-2/3)``, which quarters and a constant would pass for ``O(1)``.
- Values that fall where nothing of the kind is expected, as work divided among the ranks does where ``O(log p)`` is the
  most that is allowed, have the ruler of ``1/p`` next to their own: rising terms alone meet them with sums that cancel,
  and seem to grow.
- A loop over all ranks is the most usual fault: ``p`` and ``p log p`` are in every space, whatever is expected.
- Several parameters: all products of their terms.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction

from ranksight.core.errors import InputError
from ranksight.core.records import dataclass
from ranksight.model import priors
from ranksight.model.search.growth import NONE, Growth, Order
from ranksight.model.search.offer import Listed
from ranksight.model.search.terms import ONE, Factor, hypotheses

DEPTH = 2
"""Times that intervals between large ticks are halved."""
MOST = 5000
"""Terms of a space of several parameters; rulers are made coarser until they are no more."""
ZERO, UNIT = Fraction(0), Fraction(1)
DIVIDED = Order(power=-UNIT)
"""Work that is divided."""
ALWAYS = (Order(power=UNIT), Order(power=UNIT, log=UNIT))
"""Terms of every generated ruler: a loop over all ranks, and one with a tree in it."""


@dataclass(frozen=True, slots=True)
class Ruler:
    """Terms of one parameter that somebody chose: all products of a rate, a power and a logarithm, and `more`."""

    powers: tuple[Fraction, ...] = (ZERO,)
    logs: tuple[Fraction, ...] = (ZERO,)
    rates: tuple[Fraction, ...] = (ZERO,)
    more: tuple[Order, ...] = ()

    @property
    def orders(self) -> tuple[Order, ...]:
        """All terms, the slowest growing first."""
        products = {Order(e, i, j) for e in self.rates for i in self.powers for j in self.logs}
        return tuple(sorted(products | set(self.more)))

    @classmethod
    def listing(cls, orders: Iterable[Order]) -> Ruler:
        """A ruler of terms given one by one, and 1."""
        return cls(more=tuple(orders))


MPI = Ruler(powers=tuple(sorted({Fraction(n, d) for d in (3, 4) for n in range(2 * d + 1)})), logs=(ZERO, UNIT))
"""The space of the paper's study of MPI (section 3.3): all multiples of 1/4 and 1/3 up to 2, with and without log p."""


def ruler(expected: Order, depth: int = DEPTH) -> tuple[Order, ...]:
    """Terms of one parameter around an expectation, the slowest growing first.

    `depth`: times that intervals are halved.
    """
    if expected == NONE:
        expected = Order(log=UNIT)
    limit = max(NONE, expected.to(Fraction(2)))
    ticks = [Fraction(n, 2**depth) for n in range(2 * 2**depth + 1)]
    growths = {expected}
    if expected.rate:
        lower = _lower(expected.power)
        growths |= {Order(tick * expected.rate, i) for tick in ticks for i in lower}
    elif expected.power:
        lower = _lower(expected.log)
        if expected.power < 0:
            ticks += [Fraction(n, 3) for n in range(1, 6)]
        growths |= {Order(ZERO, tick * expected.power, j) for tick in ticks for j in lower}
    else:
        growths |= {Order(log=tick * expected.log) for tick in ticks}
    return tuple(sorted(order for order in growths if order <= limit))


def _lower(power: Fraction) -> tuple[Fraction, ...]:
    around = () if power in (ZERO, UNIT) else (power - 1, power, power + 1)
    return tuple(sorted({ZERO, UNIT, *(exponent for exponent in around if exponent >= 0)}))


def deviation(expected: Order) -> Order:
    """The default deviation limit: the class of the expectation, its exponent halved."""
    if expected.rate:
        return Order(rate=abs(expected.rate) / 2)
    if expected.power:
        return Order(power=abs(expected.power) / 2)
    return Order(log=abs(expected.log) / 2)


def terms(
    expected: Growth,
    parameters: Sequence[str],
    rulers: Mapping[str, Ruler] | None = None,
    depth: int = DEPTH,
    falling: Collection[str] = (),
) -> tuple[Growth, ...]:
    """All terms of the space over `parameters`: products of one term a parameter.

    `rulers` (mapping of str to Ruler): the user's own terms, by parameter. `depth`: of the generated rulers; less where
    there would be more than :data:`MOST` terms. `falling`: parameters along which the values fall. Raises InputError
    when there are too many terms even so.
    """
    rulers_of = rulers or {}
    while True:
        axes = [
            rulers_of[name].orders if name in rulers_of else _generated(expected[name], depth, name in falling)
            for name in parameters
        ]
        size = 1
        for axis in axes:
            size *= len(axis)
        if size <= MOST:
            break
        if not depth or set(parameters) <= set(rulers_of):
            raise InputError(
                f"the search space of {', '.join(parameters)} has {size} terms, more than {MOST}",
                "expect fewer parameters at once and hold the others, or give shorter lists under [search]",
            )
        depth -= 1
    growths = [Growth.of(zip(parameters, orders, strict=True)) for orders in itertools.product(*axes)]
    return tuple(dict.fromkeys([*growths, expected]))


def _generated(expected: Order, depth: int, falls: bool) -> tuple[Order, ...]:
    """The terms of a generated ruler, with those of what falls where values do, and :data:`ALWAYS`."""
    return tuple(sorted({*ruler(expected, depth), *(ruler(DIVIDED, depth) if falls else ()), *ALWAYS}))


def wider(
    expected: Growth,
    parameters: Sequence[str],
    rulers: Mapping[str, Ruler] | None = None,
    depth: int = DEPTH,
    exponential: bool = False,
    falling: Collection[str] = (),
) -> tuple[Growth, ...]:
    """The space of :func:`terms` and, along generated rulers, what lies beyond its upper boundary as far again.

    A logarithm goes on with powers up to x^2, what falls with what rises as fast.

    `expected`, `parameters`, `rulers`, `depth`, `falling`: see :func:`terms`. `exponential`: go on with exponentials up
    to 2^(2 x), too.
    """
    joined = {}
    for name in parameters:
        orders = {*_generated(expected[name], depth, name in falling), *ruler(_next(expected[name]), depth)}
        if exponential:
            orders |= {Order(Fraction(n, 4), Fraction(i)) for n in range(1, 9) for i in range(5)}
        joined[name] = Ruler.listing(orders)
    return terms(expected, parameters, {**joined, **(rulers or {})}, 0)


def _next(expected: Order) -> Order:
    if expected.rate:
        return Order(rate=abs(expected.rate) * (2 if expected.rate > 0 else 1))
    if expected.power:
        return Order(power=abs(expected.power) * (2 if expected.power > 0 else 1))
    return Order(power=UNIT)


def offer(growths: Sequence[Growth], parameters: Sequence[str], expectation: Growth | None = None) -> Listed:
    """What the engine searches: a constant, every term with a constant and alone, and a constant with two terms.

    Pairs are of any two terms of one parameter; of several parameters, of `expectation` and any other, as there are too
    many. They are rarer than single terms by :data:`priors.FORMS["more"]`, and terms of :data:`ALWAYS` that grow faster
    than the ruler around `expectation` by :data:`priors.RARE_TERM`.
    """
    one: tuple[Factor, ...] = (ONE,) * len(parameters)
    offered = [growth for growth in growths if growth.orders]
    listed = [growth.factors(parameters) for growth in offered]
    forms: list[tuple[tuple[Factor, ...], ...]] = [(one,)]
    prior = [0.0]
    for growth, factors in zip(offered, listed, strict=True):
        forms += [(one, factors), (factors,)]
        prior += [priors.RARE_TERM if expectation is not None and _rare(growth, expectation) else 0.0] * 2
    pairs: Iterable[tuple[tuple[Factor, ...], ...]] = ()
    if len(parameters) == 1:
        pairs = itertools.combinations(listed, 2)
    elif expectation is not None and expectation.orders:
        expected = expectation.factors(parameters)
        pairs = ((expected, factors) for factors in listed if factors != expected)
    completed = [(one, *pair) for pair in pairs]
    return Listed(hypotheses([*forms, *completed], [*prior, *[priors.FORMS["more"]] * len(completed)]))


def _rare(growth: Growth, expectation: Growth) -> bool:
    """Whether a term is there only because it is always offered."""
    return any(order in ALWAYS and order > ruler(expectation[name])[-1] for name, order in growth.orders)


def stated(growth: Growth, parameters: Sequence[str]) -> Listed:
    """One expectation as a function: ``c0 + c E`` and ``c E``, where E falls only the latter; c0 if constant."""
    one: tuple[Factor, ...] = (ONE,) * len(parameters)
    if not growth.orders:
        return Listed(hypotheses([(one,)], [0.0]))
    factors = growth.factors(parameters)
    falls = any(order < NONE for _, order in growth.orders)
    forms: list[tuple[tuple[Factor, ...], ...]] = [(factors,)] if falls else [(one, factors), (factors,)]
    return Listed(hypotheses(forms, [0.0] * len(forms)))
