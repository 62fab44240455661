"""Transposes on square process grids: row and column are exchanged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranksight.comm.patterns.rule import FAMILIES, EdgeSet, Links, Rule, exact_root, limited


@FAMILIES.register("transpose")
@dataclass(frozen=True)
class Transpose(Rule):
    """``destination = (source mod q) q + source div q`` with ``q = sqrt(ranks)``.

    `own`: whether ranks on the diagonal send to themselves.
    """

    own: bool
    family: ClassVar[str] = "transpose"
    order: ClassVar[int] = 7

    def links(self, ranks: int) -> Links:
        """One link a rank; none where the ranks are no square."""
        limited(ranks, ranks)
        q = exact_root(ranks)
        if q == 0:
            return Links.joined([])
        source = np.arange(ranks)
        target = source % q * q + source // q
        kept = np.full(ranks, True) if self.own else source != target
        return Links.of(source[kept], target[kept])

    @property
    def text(self) -> str:
        """The equation."""
        return "row and column exchanged on a square grid"

    @classmethod
    def propose(cls, edge_sets: Sequence[EdgeSet]) -> Iterable[tuple[Rule, ...]]:
        """With and without the diagonal."""
        yield (cls(False),)
        yield (cls(True),)
