"""How the volume of a message follows the number of ranks, where it does so exactly.

Counts and sizes of messages are decided by the program, not by chance: a block is n / ranks long, the face of a block
on a process grid of x by y by z ranks n^2 / (x y). Such a law is taken where it holds at every run to rounding; what
follows none of them is left to the search for functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np

from ranksight.comm.patterns.steps import Step
from ranksight.core.arrays import Array, Ints
from ranksight.core.dims import dims_create
from ranksight.core.errors import InputError

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
_FACES: dict[str, int] = {}
"""Dimensions of the grid of each law that goes by one."""


def _named(dimensions: int, axes: str) -> str:
    return f"1 / ({' '.join(axes)}) of a {dimensions}-d grid"


for _d, _axes in ((3, "yz"), (3, "xz"), (3, "xy"), (3, "x"), (3, "y"), (3, "z"), (2, "x"), (2, "y")):

    def _face(p: int, d: int = _d, axes: str = _axes) -> float:
        extents = dims_create(p, d)
        return 1.0 / float(np.prod([extents["xyz".index(axis)] for axis in axes]))

    _LAWS[_named(_d, _axes)] = _face
    _FACES[_named(_d, _axes)] = _d
LAWS = tuple(_LAWS)


@lru_cache(maxsize=8192)
def weight(law: str, ranks: int) -> float:
    """Value of a law at a number of ranks; InputError where there is no such law."""
    if law not in _LAWS:
        raise InputError(f"there is no law {law!r}", "fit the model again")
    return _LAWS[law](max(ranks, 1))


def weights(laws: Sequence[str], ranks: Array | Ints | Sequence[int]) -> Array:
    """Values (l, n) of laws at numbers of ranks (n,)."""
    return np.array([[weight(law, int(p)) for p in ranks] for law in laws]).reshape(len(laws), len(ranks))


def across(step: Step) -> str:
    """The law of a block's face towards a neighbour: what is cut along the axes that the step does not go.

    A block of n^3 / (x y z) has n^2 / (y z) towards its neighbour in x, n / z towards the one in x and y.
    """
    axes = "xyz"[: len(step.vector)]
    axes = axes[::-1] if step.rising else axes
    still = sorted(axis for axis, way in zip(axes, step.vector, strict=True) if not way)
    return _named(len(axes), "".join(still)) if still else "constant"


def find_law(ranks: Ints, groups: Ints, values: Array) -> str:
    """The first of :func:`find_laws`, empty where the series follows none."""
    return next(iter(find_laws(ranks, groups, values)), "")


def find_laws(ranks: Ints, groups: Ints, values: Array, step: Step | None = None) -> tuple[str, ...]:
    """Every law that a series follows exactly, the likeliest first.

    Few numbers of ranks are met by several: at 2, 4 and 8 the face across the first axis of a three-dimensional grid is
    halved each time, as n / ranks is, and at 64 it is twice as large. Laws other than ``constant`` need three numbers
    of ranks: two are met by too many.

    Parameters
    ----------
    ranks, groups : (n,)
        Number of ranks of each run, and which runs share all other parameters.
    values : (n,)
        NaN where the series is missing.
    step : Step, optional
        The way that the messages go on a process grid. Grids of other dimensions are then no law, and where the face
        :func:`across` it is one, it is the only one.
    """
    known = np.isfinite(values)
    if not known.any():
        return ()
    ranks, groups, values = ranks[known], groups[known], values[known]
    several = max(len(np.unique(ranks[groups == g])) for g in np.unique(groups))
    if several < 2:
        return ()
    tried = [law for law in LAWS if step is None or _FACES.get(law, len(step.vector)) == len(step.vector)]
    exact = [law for law in (tried if several > 2 else LAWS[:1]) if _follows(law, ranks, groups, values)]
    if "constant" in exact:
        return ("constant",)
    if step is not None and across(step) in exact:
        return (across(step),)
    return tuple(exact)


def _follows(law: str, ranks: Ints, groups: Ints, values: Array) -> bool:
    scaled = values / weights([law], ranks)[0]
    parts = (scaled[groups == g] for g in np.unique(groups))
    return all(float(np.ptp(part)) <= EXACT * float(np.abs(part).max()) for part in parts)
