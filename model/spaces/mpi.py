"""The space of a study of MPI libraries: all multiples of 1/4 and 1/3 up to 2 as powers, with and without a logarithm.

26 terms, alone or with a constant, and pairs with a constant (Shudler, Calotoiu, Hoefler, Strube and Wolf 2015,
section 3.3).
"""

from __future__ import annotations

from functools import lru_cache

from ranksight.core.errors import InputError
from ranksight.model.search.growth import Growth
from ranksight.model.search.offer import Offer
from ranksight.model.spaces import SPACES
from ranksight.model.spaces.rulers import MPI
from ranksight.model.spaces.rulers import offer as offer_terms


@SPACES.register("mpi")
@lru_cache(maxsize=2)
def mpi(parameters: int) -> Offer:
    """The 26 terms of one parameter; InputError for several."""
    if parameters != 1:
        raise InputError(f"the space 'mpi' has one parameter, not {parameters}", "choose the space 'default'")
    return offer_terms([Growth.of({"x": order}) for order in MPI.orders], ("x",))
