"""A term of the ranks, what several of them are made of, and terms of what halos of blocks on a process grid hold."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from math import prod

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.records import dataclass

Sides = tuple[int, ...]
Halo = tuple[int, bool, bool, bool]
"""Dimensions of a process grid, whether it is periodic, whether messages go across edges and corners too, and whether a
rank sends once to a neighbour that it meets both ways."""


@dataclass(frozen=True)
class RankTerm:
    """A mean over the ranks."""

    dimensions: int  # of the process grid
    text: str  # as people read it, without the grid
    value: Callable[[Sides], float]  # of the sides, the longest first
    most: int = 2  # of the terms of a sum that has it: three for basic ones, none for those of :data:`HALOS`
    turned: bool = False  # whether ranks that one side alone can have lie along the last
    limit: int = 0  # partners that a rank has at most, which the runs have to show; 0 of others

    @property
    def sides(self) -> str:
        """The sides that it is of; none in one dimension."""
        axes = "".join(axis for axis in "xyz" if axis in self.text)
        return "" if self.dimensions == 1 else side_name(axes, self.dimensions, self.turned)

    @property
    def one_side(self) -> bool:
        """Whether it is of one of several sides."""
        return self.dimensions > 1 and sum(axis in self.text for axis in "xyz") == 1

    @property
    def name(self) -> str:
        """The text with the grid that it is of; model files have this."""
        how = ", lines turned" if self.turned else ""
        return self.text if self.dimensions == 1 else f"({self.text} on a {self.dimensions}-d grid{how})"


def side_name(axes: str, dimensions: int, turned: bool) -> str:
    """Sides of a process grid, such as ``x of 3``."""
    return f"{axes} of {dimensions}{' turned' if turned else ''}"


def steps(ranks: int) -> int:
    """Steps of a binomial tree that reaches all ranks, ceil(log2(ranks))."""
    return (ranks - 1).bit_length()


def doublings(ranks: int) -> int:
    """Steps of recursive doubling, floor(log2(ranks))."""
    return ranks.bit_length() - 1


CORNERS = "with corners"
IN_TURN = ("rising", "falling", "")
"""Sides in the order in which halos are exchanged along them, where those exchanged before are sent on."""
AT_ONCE = {True: ("rising",), False: (CORNERS,)}
"""All neighbours at once, those across edges and corners too: what rising sides send on a periodic grid (True)."""


def _halo(d: int, periodic: bool, order: str, once: bool) -> list[RankTerm]:
    """Terms of a halo: faces of a block without a margin, with a margin along one side, along two."""

    def around(s: Sides) -> Array:
        shares = np.zeros(d)
        for way in itertools.product((-1, 0, 1), repeat=d):
            ahead = [side for step, side in zip(way, s, strict=True) if step]
            if any(side > 1 for side in ahead):
                inner = prod(1 - 1 / side for side in ahead)
                shares[len(ahead) - 1] += inner / prod(side for step, side in zip(way, s, strict=True) if not step)
        return shares

    def shares(s: Sides) -> Array:
        if order == CORNERS:
            return around(s)
        rising = s[::-1]  # the shortest side first
        ways = rising if order == "rising" else s
        shares = np.zeros(d)
        for at, side in enumerate(ways):
            if side == 1:
                continue
            # A face (1/a + r) (1/b + r), r only where the halo along a or b is there already.
            face = np.array([1.0])
            for other, length in enumerate(ways):
                if other != at:
                    face = np.convolve(face, [1 / length, 1.0 if not order or other < at else 0.0])
            shares += (1.0 if periodic and not (once and side == 2) else 1 - 1 / side) * face
        return shares

    how = f" {order}" if order == CORNERS else f" by {order} sides" if order else ""
    kind = f"{'periodic ' if periodic else ''}halo{how}{', once to each' if once else ''}"
    margins = ("faces", "faces with a margin", "faces with two margins")[:d]

    def one(s: Sides, at: int) -> float:
        return float(shares(s)[at])

    return [RankTerm(d, f"{what} of a {kind}", partial(one, at=at), 0) for at, what in enumerate(margins)]


HALO_TERMS: dict[Halo, list[list[RankTerm]]] = {
    (d, periodic, around, once): [
        _halo(d, periodic, order, once) for order in (AT_ONCE[periodic] if around else IN_TURN)
    ]
    for d, periodic, around, once in itertools.product((2, 3), (True, False), (False, True), (False, True))
    if not once or (periodic and not around)
}


HALOS = {kind: tuple(tuple(term.name for term in way) for way in ways) for kind, ways in HALO_TERMS.items()}
"""Names of the terms of each halo, by its kind."""
