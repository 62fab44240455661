"""Functions of the work per rank, x = size^d / ranks, searched in addition to those of each parameter.

A domain of d dimensions that is divided among ranks leaves each a share x, and counts follow the share's volume and
surface whatever made it so: many ranks or a small problem. Such functions have one argument. Runs which vary ranks and
size together, or only few of the combinations, therefore determine them as well as a full grid does, from the values of
x instead of several values of each parameter.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.metrics import Kind
from ranksight.model import priors
from ranksight.model.search.basis import Basis
from ranksight.model.search.problem import pose
from ranksight.model.search.screening import Screened, screen
from ranksight.model.search.terms import ONE, Factor, Hypotheses, ghosted, hypotheses
from ranksight.model.series.noise import Location

DIMENSIONS = (1, 2, 3)
SHARES: tuple[float, ...] = (1 / 4, 1 / 3, 1 / 2, 2 / 3, 3 / 4, 1.0, 4 / 3, 3 / 2, 2.0)
"""Powers of x that are offered, as far as the space has the factors."""
FEWEST = 3
"""Values of x needed to determine a function of it."""


def composite(basis: Basis, terms: Index) -> Mask:
    """Terms (...) that are a power of work per rank, ``(x^d / p)^e``."""
    powers = basis.powers(terms)
    with np.errstate(invalid="ignore", divide="ignore"):
        falling, growing = np.fmin.reduce(powers, axis=-1), np.fmax.reduce(powers, axis=-1)
        dimension = -growing / falling
        whole = (np.abs(dimension - np.round(dimension)) < 1e-6) & (dimension > 0.5) & (dimension < 3.5)
    two = (powers != 0).sum(axis=-1) == 2
    if basis.divisor is not None:
        two &= powers[..., basis.divisor] < 0
    return np.asarray(two & whole & (falling < 0) & ~np.isnan(powers).any(axis=-1))


def screen_composites(
    basis: Basis, points: Array, location: Location, positive: Mask, kind: Kind
) -> Iterator[Screened]:
    """Functions of work per rank, solved on all series and judged as functions of that one argument.

    `basis`: in whose terms the hypotheses are expressed. `points` (n, m). `location`, `positive`, `kind`: see
    :meth:`ranksight.model.search.offer.Offer.screen`.

    Yields
    ------
    Screened
        One for each way of dividing that the points determine.
    """
    for powers in _divisions(points.shape[1], basis.divisor):
        used = np.array(powers) != 0
        if not (points[:, used] > 0).all():
            continue
        x = np.exp(np.log(points[:, used]) @ np.array(powers)[used])
        x = np.array([float(f"{value:.9g}") for value in x])
        numbers, exponents = _numbers(basis, powers)
        if len(np.unique(x)) < FEWEST or not numbers:
            continue
        offered = _forms(exponents)
        listing = Basis.listed(offered.terms, x[:, None])
        solved = screen(offered, pose(listing, x[:, None], location, positive, kind))
        place = {ONE: 0} | {(e, 0.0, 0.0): number for e, number in zip(exponents, numbers, strict=True)}
        choice = np.array([place[tuple(term[0].tolist())] for term in offered.terms], dtype=np.intp)
        yield Screened(
            solved.residual,
            solved.offset,
            solved.members,
            solved.prior,
            np.broadcast_to(choice, (len(solved.residual), len(choice))),
        )


def ghost_blocks(factors: tuple[Factor, ...], divisor: int, series: int) -> tuple[Index, Index, Array]:
    """Blocks of a domain of two or three dimensions that have ghost layers along the sides that are cut.

    The arguments of :func:`ranksight.model.search.chosen.solve` for so many `series` of two parameters, terms as
    products of `factors`; `divisor` is the axis of the ranks.
    """
    place, radix = {factor: 1 + at for at, factor in enumerate(factors)}, len(factors) + 1
    terms, members, prior = [0], [], []
    for d in (2, 3):
        layers = ((-1.0, 0.0, 0.0), *ghosted(d))
        start = len(terms)
        for along, extent in zip(layers, range(d, -1, -1), strict=True):
            other = place[float(extent), 0.0, 0.0] if extent else 0
            terms.append(place[along] * radix**divisor + other * radix ** (1 - divisor))
        every = list(range(start, len(terms)))
        members += [every, [0, *every]]
        prior += [priors.FORMS["more"] + priors.FORMS["process grid"]] * 2
    width = max(map(len, members))
    table = np.array([row + [-1] * (width - len(row)) for row in members], dtype=np.intp)
    choice = np.ascontiguousarray(np.broadcast_to(np.array(terms, dtype=np.intp), (series, len(terms))))
    return choice, table, np.array(prior)


def _divisions(parameters: int, divisor: int | None) -> list[tuple[float, ...]]:
    """Powers of the parameters in x: one divides, another is an extent or all others are."""
    divisions: dict[tuple[float, ...], None] = {}
    for ranks in range(parameters) if divisor is None else (divisor,):
        for size, d in itertools.product((a for a in range(parameters) if a != ranks), DIMENSIONS):
            divisions[tuple(-1.0 if a == ranks else float(d) * (a == size) for a in range(parameters))] = None
        divisions[tuple(-1.0 if a == ranks else 1.0 for a in range(parameters))] = None
    return list(divisions)


def _numbers(basis: Basis, powers: tuple[float, ...]) -> tuple[list[int], tuple[float, ...]]:
    """Numbers of the terms x^e that the basis has, and e."""
    factors = basis.axes[0].exponents[:, 0].tolist()
    place = {round(power, 9): at for at, (power, *rest) in enumerate(factors) if rest == [0.0, 0.0]}
    radix = len(factors)
    numbers, exponents = [], []
    for e in SHARES:
        digits = [place.get(round(e * power, 9)) for power in powers]
        if None not in digits:
            numbers.append(sum((digit or 0) * radix**axis for axis, digit in enumerate(digits)))
            exponents.append(e)
    return numbers, tuple(exponents)


@lru_cache(maxsize=32)
def _forms(exponents: tuple[float, ...]) -> Hypotheses:
    """Powers of x with and without a constant, and the volume of a share with a surface of it."""
    power: dict[float, tuple[Factor]] = {e: ((e, 0.0, 0.0),) for e in exponents}
    constant: tuple[Factor] = (ONE,)
    weights = priors.FORMS
    forms, prior = [], []
    for e in exponents:
        forms += [[power[e]], [constant, power[e]]]
        prior += [weights["work per rank"] + weights["alone"], weights["work per rank"]]
        if e < 1 and 1.0 in power:
            forms += [[power[1.0], power[e]], [constant, power[1.0], power[e]]]
            prior += [weights["work per rank"]] * 2
    return hypotheses(forms, prior)
