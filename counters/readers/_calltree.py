"""From records that name call paths to exclusive values of kernel x rank x metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ranksight.core.experiment import WHOLE
from ranksight.core.names import CALLS

SEPARATOR = CALLS
OUTSIDE = "(outside of regions)"
"""Kernel of what was measured outside of all regions."""

Path = tuple[str, ...]


@dataclass(slots=True)
class Records:
    """Rows as a source gives them: one a call path x rank x thread (x further columns of the source)."""

    paths: list[Path]
    ranks: list[int]
    threads: list[str]
    columns: dict[str, NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Tree:
    """One row a call path x rank x thread, values of equal rows added.

    Attributes
    ----------
    paths, ranks, threads : lists, length n
    columns : dict of str to ndarray, shape (n,)
    parents : ndarray of int, shape (n,)
        Row of the nearest caller that has one on the same rank and thread, or -1.
    """

    paths: list[Path]
    ranks: list[int]
    threads: list[str]
    columns: dict[str, NDArray[np.float64]]
    parents: NDArray[np.int64]

    @property
    def kernels(self) -> list[str]:
        """Name of each row's kernel; a row without a path is the whole program."""
        return self.named(WHOLE)

    def named(self, bare: str) -> list[str]:
        """Name of each row's kernel, with `bare` for a row without a path."""
        return [SEPARATOR.join(part or "(unnamed)" for part in path) if path else bare for path in self.paths]


def tree(records: Records) -> Tree:
    """Add up the records of one call path on one rank and thread, and find every row's caller."""
    place: dict[tuple[Path, int, str], int] = {}
    keys = list(zip(records.paths, records.ranks, records.threads, strict=True))
    codes = np.array([place.setdefault(key, len(place)) for key in keys], dtype=np.int64)
    columns = {name: _added(codes, values, len(place)) for name, values in records.columns.items()}
    parents = np.full(len(place), -1, dtype=np.int64)
    for (path, rank, thread), at in place.items():
        for depth in range(len(path) - 1, 0, -1):
            above = place.get((path[:depth], rank, thread))
            if above is not None:
                parents[at] = above
                break
    rows = list(place)
    return Tree([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows], columns, parents)


def exclusive(values: NDArray[np.float64], parents: NDArray[np.int64]) -> tuple[NDArray[np.float64], int]:
    """Inclusive values made exclusive: own - sum of the children's; and how many were below zero and set to it.

    Rounding (below 1e-6 of the inclusive value, or of what six printed decimals lose) is not counted.
    """
    inner = (parents >= 0) & ~np.isnan(values)
    inside = np.bincount(parents[inner], weights=values[inner], minlength=len(values))
    own = values - inside
    digits = np.bincount(parents[inner], minlength=len(values)) * 1e-6
    with np.errstate(invalid="ignore"):
        wrong = own < -(1e-6 * np.abs(values) + digits)
        own = np.where(own < 0, 0.0, own)
    return own, int(wrong.sum())


def looks_inclusive(values: NDArray[np.float64], parents: NDArray[np.int64]) -> bool:
    """Whether values must contain their callees': no caller has less than its callees together.

    Of exclusive values that would be a rare accident, for callers that only call have next to nothing of their own.
    """
    inner = (parents >= 0) & ~np.isnan(values)
    inside = np.bincount(parents[inner], weights=values[inner], minlength=len(values))
    callers = np.bincount(parents[inner], minlength=len(values)) > 0
    digits = np.bincount(parents[inner], minlength=len(values)) * 1e-6
    with np.errstate(invalid="ignore"):
        return bool(callers.any() and (values[callers] >= inside[callers] * (1 - 1e-6) - digits[callers]).all())


def _added(codes: NDArray[np.int64], values: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    known = ~np.isnan(values)
    total = np.bincount(codes[known], weights=values[known], minlength=size).astype(np.float64)
    total[np.bincount(codes[known], minlength=size) == 0] = np.nan
    return total


def columns_of(rows: Sequence[Mapping[str, float]]) -> dict[str, NDArray[np.float64]]:
    """Columns from one mapping a row; NaN where a row lacks a name."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: np.array([row.get(name, np.nan) for row in rows], dtype=np.float64) for name in names}
