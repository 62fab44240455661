"""Small families of one parameter: a power law, Ding's family, exponentials, and those of a study of MPI libraries.

Ding's family is ``a x^b + c``, ``a e^(b x) + c`` and ``a log x + c`` (Ding et al. 2018, section 2); the nonlinear b is
searched on a dense grid.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.core.errors import InputError
from ranksight.core.metrics import Kind
from ranksight.model.search.growth import Growth
from ranksight.model.search.offer import Listed, Offer
from ranksight.model.search.problem import Problem
from ranksight.model.search.screening import Screened
from ranksight.model.search.terms import ONE, Factor, Hypotheses, hypotheses
from ranksight.model.series.noise import Location
from ranksight.model.spaces import SPACES
from ranksight.model.spaces.rulers import MPI, offer

POWERS = tuple(n / 24 for n in range(-72, 73) if n)
RATES = tuple(sign * 2.0**step for sign in (-1, 1) for step in np.arange(-4, 4.01, 0.25))
"""Rates b of exponentials, as doublings over the range measured."""


def one_term(factors: Iterable[Factor], without_constant: bool = True) -> Hypotheses:
    """A constant, and every factor with a constant and, if `without_constant`, without."""
    forms: list[tuple[tuple[Factor, ...], ...]] = [((ONE,),)]
    for factor in factors:
        forms.append(((ONE,), (factor,)))
        if without_constant:
            forms.append(((factor,),))
    return hypotheses(forms, [0.0] * len(forms))


def _of_one(name: str, parameters: int) -> None:
    if parameters != 1:
        raise InputError(f"the space {name!r} has one parameter, not {parameters}", "choose the space 'default'")


@SPACES.register("power")
@lru_cache(maxsize=2)
def power(parameters: int) -> Offer:
    """``a x^b + c`` and ``a x^b``, b between -3 and 3."""
    _of_one("power", parameters)
    return Listed(one_term((b, 0.0, 0.0) for b in POWERS))


@SPACES.register("exponential")
@lru_cache(maxsize=2)
def exponential(parameters: int) -> Offer:
    """``a x^k 2^(i x) + c``, i in {1/3, 1/2, 2/3, 1, 3/2, 2}, k in {0, 1, 2, 3, 4}, besides powers and logarithms."""
    _of_one("exponential", parameters)
    growing = [(float(k), 0.0, i) for i in (1 / 3, 0.5, 2 / 3, 1.0, 1.5, 2.0) for k in range(5)]
    plain = [(float(k), float(j), 0.0) for k in range(5) for j in range(2) if k or j]
    return Listed(one_term([*growing, *plain]))


class Ding(Offer):
    """Ding's family; its exponentials follow the range measured."""

    parameters = 1

    @property
    def load(self) -> int:
        """Numbers held a series."""
        return len(POWERS) + len(RATES) + 2

    def screen(self, points: Array, location: Location, positive: Mask, kind: Kind) -> tuple[Problem, Screened]:
        """Solve all hypotheses on all series."""
        spread = float(np.ptp(points[:, 0])) if len(points) else 0.0
        rates = [(0.0, 0.0, rate / spread) for rate in RATES] if spread > 0 else []
        factors: list[Factor] = [(b, 0.0, 0.0) for b in POWERS] + [(0.0, 1.0, 0.0), *rates]
        return Listed(one_term(factors, without_constant=False)).screen(points, location, positive, kind)


@SPACES.register("ding")
@lru_cache(maxsize=2)
def ding(parameters: int) -> Offer:
    """``a x^b + c``, ``a e^(b x) + c`` and ``a log x + c``."""
    _of_one("ding", parameters)
    return Ding()


@SPACES.register("mpi")
@lru_cache(maxsize=2)
def mpi(parameters: int) -> Offer:
    """All multiples of 1/4 and 1/3 up to 2 as powers, with and without a logarithm: the 26 terms of a study of MPI
    libraries, alone or with a constant, and pairs with a constant (Shudler et al. 2015, section 3.3)."""
    _of_one("mpi", parameters)
    return offer([Growth.of({"x": order}) for order in MPI.orders], ("x",))
