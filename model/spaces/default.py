"""The default space: growth, decay and their sums, a constant with or without them.

Exponents are those of Extra-P's default and of strong scaling; see :func:`default`.
"""

from __future__ import annotations

import itertools
from functools import lru_cache

from ranksight.model.spaces import SPACES
from ranksight.model.terms import ONE, Factor, Hypotheses, hypotheses

# x^i log2(x)^j that grow: Extra-P's default exponents (extra-p/extrap, single-parameter modeler).
GROWING: tuple[Factor, ...] = tuple(
    (n / d, float(j), 0.0)
    for n, d, logs in (
        (0, 1, (1, 2)),
        (1, 4, (0, 1, 2)),
        (1, 3, (0, 1, 2)),
        (1, 2, (0, 1, 2)),
        (2, 3, (0, 1, 2)),
        (3, 4, (0, 1, 2)),
        (4, 5, (0,)),
        (1, 1, (0, 1, 2)),
        (5, 4, (0, 1)),
        (4, 3, (0, 1)),
        (3, 2, (0, 1, 2)),
        (5, 3, (0,)),
        (7, 4, (0,)),
        (2, 1, (0, 1, 2)),
        (9, 4, (0,)),
        (7, 3, (0,)),
        (5, 2, (0, 1, 2)),
        (8, 3, (0,)),
        (11, 4, (0,)),
        (3, 1, (0, 1)),
    )
    for j in logs
)
# Work that is divided among ranks. Measured decay is a mixture of shares of volumes and surfaces, so the powers are dense.
FALLING: tuple[Factor, ...] = tuple((-n / 12, 0.0, 0.0) for n in range(1, 25))
_SURFACES: tuple[Factor, ...] = tuple((-n / d, 0.0, 0.0) for n, d in ((1, 3), (1, 2), (2, 3)))
_COARSE: tuple[Factor, ...] = tuple(
    (i, j, 0.0)
    for i, j in (
        (0.0, 1.0),
        (0.0, 2.0),
        (0.5, 0.0),
        (1.0, 0.0),
        (1.0, 1.0),
        (1.5, 0.0),
        (2.0, 0.0),
        (2.0, 1.0),
        (2.5, 0.0),
        (3.0, 0.0),
    )
)
# Logarithms of the weight of a form before the data. A constant with one term is the rule (0); a term without it (-1), two
# terms (-2 where one falls, -4 where both grow) and three (-4) are rarer, and there are many of them.
_ALONE, _FALL_AND_GROW, _MORE = -1.0, -2.0, -4.0


@SPACES.register("default")
@lru_cache(maxsize=8)
def default(parameters: int) -> Hypotheses:
    """Hypotheses of the default space over `parameters` parameters."""
    if parameters == 1:
        return _single()
    return _several(parameters)


def _single() -> Hypotheses:
    forms: list[tuple[tuple[Factor, ...], ...]] = [((ONE,),)]
    prior = [0.0]

    def add(terms: tuple[Factor, ...], weight: float) -> None:
        forms.append(tuple((term,) for term in terms))
        prior.append(weight)

    for term in GROWING + FALLING:
        add((term,), _ALONE)
        add((ONE, term), 0.0)
    for low, high in itertools.combinations(_COARSE, 2):
        if high[0] - low[0] >= 0.5 or low[0] == 0.0:
            add((low, high), _MORE)
            add((ONE, low, high), _MORE)
    for fall in (*_SURFACES, (-0.75, 0.0, 0.0), (-1.0, 0.0, 0.0), (-4 / 3, 0.0, 0.0)):
        for grow in _COARSE[:6]:
            add((fall, grow), _FALL_AND_GROW)
            add((ONE, fall, grow), _MORE)
    # Volume and surface of a share of the domain.
    for surface in _SURFACES:
        add(((-1.0, 0.0, 0.0), surface), _ALONE)
    return hypotheses(forms, prior)


_PLAIN: tuple[Factor, ...] = tuple(
    (i, j, 0.0)
    for i, j in (
        (-2.0, 0.0),
        (-1.0, 0.0),
        (-2 / 3, 0.0),
        (-0.5, 0.0),
        (-1 / 3, 0.0),
        (0.0, 1.0),
        (0.0, 2.0),
        (0.25, 0.0),
        (1 / 3, 0.0),
        (0.5, 0.0),
        (0.5, 1.0),
        (2 / 3, 0.0),
        (0.75, 0.0),
        (1.0, 0.0),
        (1.0, 1.0),
        (1.0, 2.0),
        (1.25, 0.0),
        (4 / 3, 0.0),
        (1.5, 0.0),
        (1.5, 1.0),
        (2.0, 0.0),
        (2.0, 1.0),
        (2.5, 0.0),
        (3.0, 0.0),
    )
)


def _several(parameters: int) -> Hypotheses:
    plain = (
        _PLAIN
        if parameters == 2
        else _PLAIN[1:6] + tuple(f for f in _PLAIN if f[0] in (0.5, 1.0, 2.0, 3.0) and f[1] <= 1)
    )
    one = (ONE,) * parameters
    forms: list[tuple[tuple[Factor, ...], ...]] = [(one,)]
    prior = [0.0]

    def alone(axis: int, factor: Factor) -> tuple[Factor, ...]:
        return tuple(factor if at == axis else ONE for at in range(parameters))

    for axis in range(parameters):
        for factor in plain:
            forms += [(alone(axis, factor),), (one, alone(axis, factor))]
            prior += [-1.0, 0.0]
    for a, b in itertools.combinations(range(parameters), 2):
        for f, g in itertools.product(plain, plain):
            product = tuple(f if at == a else g if at == b else ONE for at in range(parameters))
            forms += [
                (product,),
                (one, product),
                (one, alone(a, f), alone(b, g)),
                (one, alone(a, f), product),
                (one, alone(b, g), product),
            ]
            prior += [-1.0, -1.0, -1.0, -2.0, -2.0]
    if parameters > 2:
        for combination in itertools.product(plain, repeat=parameters):
            forms += [(combination,), (one, combination)]
            prior += [-1.0, -1.0]
    return hypotheses(forms, prior)
