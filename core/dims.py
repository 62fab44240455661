"""Ranks along the dimensions of a process grid, as ``MPI_Dims_create`` gives them or for blocks of least surface."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from ranksight.core.errors import InputError

if TYPE_CHECKING:
    from ranksight.core.arrays import Array, Ints

_TERM = r"(?:grid2\.[xy]|grid3\.[xyz]|[A-Za-z_][A-Za-z0-9_]*)"
FIELD = re.compile(rf"\{{({_TERM}(?:\*{_TERM})*)\}}")
"""A parameter of a command's template, a side of the process grid, or a product of them, in braces."""
_SIDE = re.compile(r"grid([23])\.[xyz]")
MOST_RANKS = 2.0**40
"""Ranks up to which grids, blocks and sums of the ranks are computed."""
EQUAL = 1e-9
"""Relative difference of two surfaces up to which they are the same."""


def dims_create(ranks: int, dimensions: int) -> tuple[int, ...]:
    """Factors of `ranks` as close to each other as they can be, largest first.

    The standard asks that the numbers ``MPI_Dims_create`` gives are as close to each other as possible and in
    non-increasing order (MPI 4.1, section 8.5.2). Open MPI and MPICH hand out the prime factors, largest first, each to
    the dimension that is smallest so far, as is done here. Raises InputError when one of the numbers is below 1.
    """
    if ranks < 1 or dimensions < 1:
        raise InputError(f"{ranks} ranks cannot be placed on {dimensions} dimensions", "both are whole numbers from 1")
    extents = [1] * dimensions
    for factor in sorted(_primes(ranks), reverse=True):
        extents[extents.index(min(extents))] *= factor
    return tuple(sorted(extents, reverse=True))


@lru_cache(maxsize=4096)
def factorisations(ranks: int, dimensions: int) -> tuple[tuple[int, ...], ...]:
    """All ordered ways to write `ranks` as a product of as many factors as there are dimensions, in rising order."""
    if dimensions == 1:
        return ((ranks,),)
    first = sorted(small for n in range(1, int(ranks**0.5) + 1) if ranks % n == 0 for small in {n, ranks // n})
    return tuple((n, *rest) for n in first for rest in factorisations(ranks // n, dimensions - 1))


@lru_cache(maxsize=4096)
def least_surface(ranks: int, edges: tuple[float, ...], rising: bool = False) -> tuple[int, ...]:
    """Extents of the process grid on which the blocks of a domain have the least surface.

    Molecular dynamics cuts boxes so (Plimpton 1995, section 5). Of grids with the same surface it is the first in
    rising order where `rising`, else the last. Raises InputError when `ranks` is below 1, or an edge is not positive.
    """
    if ranks < 1 or not edges or not all(0 < edge < float("inf") for edge in edges):
        raise InputError(
            f"a domain of edges {edges} cannot be cut for {ranks} ranks", "edges are positive, ranks from 1"
        )
    import numpy as np

    return tuple(least_surfaces(ranks, np.array([edges]), rising)[0].tolist())


def least_surfaces(ranks: int, edges: Array, rising: bool = False) -> Ints:
    """Extents (n, d) of :func:`least_surface` for domains of `edges` (n, d)."""
    import numpy as np

    ways = np.array(factorisations(ranks, edges.shape[1])[:: 1 if rising else -1], dtype=np.int64)
    cost = 1 / edges @ ways.T  # a block's surface over twice its volume
    return np.asarray(ways[(cost <= cost.min(axis=1, keepdims=True) * (1 + EQUAL)).argmax(axis=1)])


def grids_in(line: str) -> set[int]:
    """Dimensions of the process grids whose sides a command line gives the program."""
    return {int(found) for field in FIELD.findall(line) for found in _SIDE.findall(field)}


def _primes(number: int) -> list[int]:
    found = []
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return [*found, number] if number > 1 else found
