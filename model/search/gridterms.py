"""Terms of the sides of a process grid, which counts may follow along the number of ranks.

The sides of process grids do not grow as the number of ranks does. Blocks of a structured domain are cut along the
sides of a process grid. At 2, 4, 8, 16 ranks the sides of a two-dimensional one, as ``MPI_Dims_create`` gives them, are
2 x 1, 2 x 2, 4 x 2, 4 x 4: they double in turn, and what a rank has along one of them follows a staircase that no
smooth function of the ranks meets but at some. Sides are exact at every number of ranks, so that the points distinguish
a count that follows them from a smooth one. Where the points cannot distinguish them, both contribute to the model
average.

With sides x >= y >= z of P ranks, and [x > 1] for whether a side is cut at all, the terms are means over ranks: of the
length and the faces of a block, of neighbours and faces towards them where the domain ends, of partners in rows and
columns of the grid, of steps of a tree along them. A block with ghost layers where it is cut has a volume of
(1/x + r [x > 1]) (1/y + r [y > 1]) (1/z + r [z > 1]): its own, and its faces, edges and corner where these are. In one
dimension what all ranks but one have is new, whether there are several at all, the steps of a tree of all ranks, which
are whole, and work that all ranks but one share. A term is known by its number, from one on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from itertools import combinations
from math import log2, prod

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.dims import MOST_RANKS, dims_create
from ranksight.core.records import dataclass

Sides = tuple[int, ...]


@dataclass(frozen=True)
class GridTerm:
    """A function of the sides of a process grid."""

    dimensions: int
    text: str  # as people read it, x the longest side
    power: float  # it grows as ``ranks^power log2(ranks)^log``
    log: float
    value: Callable[[Sides], float]  # of the sides, the longest first
    one_side: bool = False  # whether it is of one of several sides
    crossed: bool = True  # whether products with other parameters are searched with it: few sizes meet too many


def _cut(side: int) -> bool:
    return side > 1


def _faces(sides: Sides, of: Callable[[int], float]) -> float:
    """Faces of a block in units of those of the domain, each times a function of the side that it bounds."""
    return sum(of(side) * side for side in sides) / prod(sides)


def _one(of: Callable[[Sides, int], float], at: int, sides: Sides) -> float:
    return of(sides, at)


def _of(d: int) -> list[GridTerm]:
    surface = 1 / d - 1
    names = "xyz"[:d]

    def total(text: str) -> str:
        return " + ".join(text.replace("s", name) for name in names)

    grid_terms = [
        GridTerm(d, total("1/s"), -1 / d, 0, lambda s: sum(1 / side for side in s)),
        GridTerm(d, total("(1 - 1/s)"), 0, 0, lambda s: sum(1 - 1 / side for side in s)),
        GridTerm(d, total("s"), 1 / d, 0, lambda s: float(sum(s))),
        GridTerm(d, f"({total('(s - 1)')}) / ranks", surface, 0, lambda s: _faces(s, lambda side: 1 - 1 / side)),
        GridTerm(d, total("[s > 1]"), 0, 0, lambda s: float(sum(map(_cut, s)))),
        GridTerm(d, f"({total('[s > 1] s')}) / ranks", surface, 0, lambda s: _faces(s, lambda side: float(side > 1))),
        GridTerm(d, f"({total('(1 - 1/s)')}) / ranks", -1, 0, lambda s: sum(1 - 1 / side for side in s) / prod(s)),
    ]
    if d > 2:
        grid_terms.append(GridTerm(d, f"({total('s')}) / ranks", surface, 0, lambda s: _faces(s, lambda side: 1.0)))
    for at, name in enumerate(names):
        single: list[tuple[str, float, float, Callable[[Sides, int], float]]] = [
            (f"1/{name}", -1 / d, 0, lambda s, at: 1 / s[at]),
            (name, 1 / d, 0, lambda s, at: float(s[at])),
            (f"log2({name})", 0, 1, lambda s, at: log2(s[at])),
        ]
        if d > 2:
            single.append((f"{name} / ranks", surface, 0, lambda s, at: s[at] / prod(s)))
        else:
            single.append((f"log2({name}) / {names[1 - at]}", -1 / d, 1, lambda s, at: log2(s[at]) / s[1 - at]))
        grid_terms += [GridTerm(d, text, i, j, partial(_one, of, at), True) for text, i, j, of in single]
    return grid_terms


_CHAIN = (
    GridTerm(1, "[x > 1]", 0, 0, lambda s: float(s[0] > 1)),
    GridTerm(1, "1 - 1/x", 0, 0, lambda s: 1 - 1 / s[0]),
    GridTerm(1, "(1 - 1/x) / ranks", -1, 0, lambda s: (1 - 1 / s[0]) / s[0]),
)
_TREE = GridTerm(1, "ceil(log2(x))", 0, 1, lambda s: float((s[0] - 1).bit_length()))
_LED = GridTerm(1, "1 / max(x - 1, 1)", -1, 0, lambda s: 1 / max(s[0] - 1, 1))
"""Work that all ranks share but one, which deals it out; one rank alone does it itself."""
_OTHERS = GridTerm(1, "x - 1", 1, 0, lambda s: float(s[0] - 1), crossed=False)
"""One for each of the other ranks."""


def _ghosts(d: int, together: int, text: str) -> GridTerm:
    """Parts of a block's ghost layers that exist where as many sides are cut: edges of two of them, the corner of
    three, in units of the domain's."""

    def value(sides: Sides) -> float:
        return sum(
            1 / prod(sides[at] for at in range(d) if at not in ways)
            for ways in combinations(range(d), together)
            if all(sides[at] > 1 for at in ways)
        )

    return GridTerm(d, text, (together - d) / d, 0, value)


_GHOSTS = (
    _ghosts(2, 2, "[x > 1] [y > 1]"),
    _ghosts(3, 2, "[x > 1] [y > 1] / z + [x > 1] [z > 1] / y + [y > 1] [z > 1] / x"),
    _ghosts(3, 3, "[x > 1] [y > 1] [z > 1]"),
)


def _around(d: int, text: str, near: Callable[[int], float]) -> GridTerm:
    """Neighbours all around, across edges and corners too, by those along a side and a rank itself."""
    name = " ".join(text.format(side) for side in "xyz"[:d])
    return GridTerm(d, f"{name} - 1", 0, 0, lambda s: prod(map(near, s)) - 1.0, crossed=False)


_AROUND = tuple(
    _around(d, text, near)
    for d in (2, 3)
    for text, near in (("(3 - 2/{0})", lambda side: 3 - 2 / side), ("min({0}, 3)", lambda side: float(min(side, 3))))
)
"""Where the domain ends, and where it is periodic and neighbours on two sides may be one."""
# Model files hold numbers of terms: new ones come last.
GRID_TERMS: tuple[GridTerm, ...] = (
    *_CHAIN,
    *(term for d in (2, 3) for term in _of(d)),
    _TREE,
    _LED,
    _OTHERS,
    *_GHOSTS,
    *_AROUND,
)


@lru_cache(maxsize=4096)
def _at(ranks: int) -> tuple[float, ...]:
    sides = {d: dims_create(ranks, d) for d in (1, 2, 3)}
    return tuple(term.value(sides[term.dimensions]) for term in GRID_TERMS)


def grid_values(ranks: Array) -> Array:
    """Values (t, n) of all terms at numbers of ranks (n,), between two whole ones at the nearer; NaN below one."""
    known = (ranks >= 0.5) & (ranks <= MOST_RANKS)
    table = np.full((len(GRID_TERMS), len(ranks)), np.nan)
    for place in np.flatnonzero(known):
        table[:, place] = _at(max(round(float(ranks[place])), 1))
    return table
