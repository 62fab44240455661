"""How the volume of a message follows the number of ranks, where it does so exactly.

Counts and sizes of messages are decided by the program, not by chance: a block is n / ranks long, the face of a block
on a process grid of x by y by z ranks n^2 / (x y). Such a law is taken where it holds at every run to rounding; what
follows none of them is left to the search for functions.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ranksight.comm.patterns.grid import dims_create
from ranksight.errors import InputError

Array = NDArray[np.float64]
EXACT = 1e-6
"""Relative difference of rounding."""

_LAWS: dict[str, Callable[[int], float]] = {
    "constant": lambda p: 1.0,
    "ranks": float,
    "ranks - 1": lambda p: float(max(p - 1, 1)),
    "1 / ranks": lambda p: 1.0 / p,
    "log2(ranks)": lambda p: float(np.log2(max(p, 2))),
    "1 / sqrt(ranks)": lambda p: p**-0.5,
    "1 / ranks^(2/3)": lambda p: p ** (-2.0 / 3.0),
}
for _d, _axes in ((3, "yz"), (3, "xz"), (3, "xy"), (3, "x"), (3, "y"), (3, "z"), (2, "x"), (2, "y")):

    def _face(p: int, d: int = _d, axes: str = _axes) -> float:
        extents = dims_create(p, d)
        return 1.0 / float(np.prod([extents["xyz".index(axis)] for axis in axes]))

    _LAWS[f"1 / ({' '.join(_axes)}) of a {_d}-d grid"] = _face
LAWS = tuple(_LAWS)


def weight(law: str, ranks: int) -> float:
    """Value of a law at a number of ranks; InputError where there is no such law."""
    if law not in _LAWS:
        raise InputError(f"there is no law {law!r}", "fit the model again")
    return _LAWS[law](max(ranks, 1))


def find_law(ranks: NDArray[np.int64], groups: NDArray[np.int64], values: Array) -> str:
    """The first law that a series follows exactly, empty where it follows none.

    Parameters
    ----------
    ranks, groups : (n,)
        Number of ranks of each run, and which runs share all other parameters.
    values : (n,)
        NaN where the series is missing.

    Returns
    -------
    str
        Laws other than ``constant`` need three numbers of ranks: two are met by too many.
    """
    known = np.isfinite(values)
    if not known.any():
        return ""
    ranks, groups, values = ranks[known], groups[known], values[known]
    several = max(len(np.unique(ranks[groups == g])) for g in np.unique(groups))
    for law in LAWS if several > 2 else LAWS[:1]:
        scaled = values / np.array([weight(law, int(p)) for p in ranks])
        if all(np.ptp(part) <= EXACT * np.abs(part).max() for part in (scaled[groups == g] for g in np.unique(groups))):
            return law if several > 1 else ""
    return ""
