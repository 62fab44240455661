"""Terms of the ranks of what the halos of blocks on a process grid hold."""

from __future__ import annotations

import itertools
from functools import partial
from math import prod

import numpy as np

from ranksight.core.arrays import Array
from ranksight.model.structure.rankterm import Halo, RankTerm, Sides

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
