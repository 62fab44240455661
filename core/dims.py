"""Ranks along the dimensions of a process grid, as ``MPI_Dims_create`` gives them."""

from __future__ import annotations

from ranksight.core.errors import InputError


def dims_create(ranks: int, dimensions: int) -> tuple[int, ...]:
    """Factors of `ranks` as close to each other as they can be, largest first.

    The standard asks that the numbers ``MPI_Dims_create`` gives are as close to each other as possible and in
    non-increasing order (MPI 4.1, section 8.5.2). Open MPI and MPICH hand out the prime factors, largest first, each to
    the dimension that is smallest so far, as is done here.

    Raises
    ------
    InputError
        When one of the numbers is below 1.
    """
    if ranks < 1 or dimensions < 1:
        raise InputError(f"{ranks} ranks cannot be placed on {dimensions} dimensions", "both are whole numbers from 1")
    extents = [1] * dimensions
    for factor in sorted(_primes(ranks), reverse=True):
        extents[extents.index(min(extents))] *= factor
    return tuple(sorted(extents, reverse=True))


def _primes(number: int) -> list[int]:
    found = []
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return [*found, number] if number > 1 else found
