"""A term of the ranks, and what several of them are made of."""

from __future__ import annotations

from collections.abc import Callable

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
