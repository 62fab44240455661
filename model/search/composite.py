"""Terms of a rank's share of the work, x = size^d / ranks, and blocks of it with ghost layers.

A domain of d dimensions that is divided among ranks leaves each a share x, and counts follow the share's volume and
surface whatever made it so: many ranks or a small problem.
"""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.model import priors
from ranksight.model.search.basis import Basis
from ranksight.model.search.terms import Factor, ghosted


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
