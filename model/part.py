"""A part of an application's time that its evidence carries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from ranksight.core.arrays import Array
from ranksight.model.plaindata import Stored


class Part(Stored):
    """What a derived class says of places and configurations; nothing where neither matters to it."""

    def placed(self, placement: str | None, ranks_per_node: int | None) -> Self:
        """The same with ranks placed in another way than in the runs."""
        return self

    def remarks(self, points: Array) -> Sequence[str]:
        """What is to be known of answers at `points` (k, m), in sentences."""
        return ()
