"""From records that name call paths to exclusive values of kernel x rank x metric."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ranksight.core import limits
from ranksight.core.arrays import Array, Ints
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE
from ranksight.core.names import CALLS
from ranksight.core.records import dataclass
from ranksight.counters.readers._files import damaged

SEPARATOR = CALLS
OUTSIDE = "(outside of regions)"
"""Kernel of what was measured outside of all regions."""


class CallPaths:
    """Call paths by number: each is its caller's path and one function more.

    Deep paths have long names, all of them together the square of the depth. So names are made once, at the end, and
    only as many as :data:`ranksight.core.limits.NAMES` allows.

    `where`: the file, for messages. `callers`: for each path the number of its caller's; :data:`ROOT` where it has
    none.
    """

    ROOT = -1

    def __init__(self, where: str) -> None:
        self.callers: list[int] = []
        self._where = where
        self._numbers: dict[tuple[int, str], int] = {}
        self._lengths: list[int] = []
        self._depths: list[int] = []
        self._left = limits.NAMES

    def number(self, caller: int, function: str) -> int:
        """The number of the path of `function`, called from that of number `caller`.

        Raises InputError when it is deeper than :data:`ranksight.core.limits.DEPTH`, or the names of all paths are too
        long.
        """
        found = self._numbers.get((caller, function))
        if found is not None:
            return found
        length, depth = len(function), 1
        if caller >= 0:
            length += self._lengths[caller] + len(SEPARATOR)
            depth += self._depths[caller]
        self._left -= length
        if depth > limits.DEPTH:
            raise damaged(f"{self._where}: calls are more than {limits.DEPTH} deep")
        if self._left < 0:
            raise InputError(
                f"{self._where}: the names of its call paths are longer than {limits.NAMES >> 20} MiB",
                "give a part of the profile, or one of fewer calls",
            )
        self.callers.append(caller)
        self._lengths.append(length)
        self._depths.append(depth)
        return self._numbers.setdefault((caller, function), len(self._numbers))

    def kernels(self) -> tuple[list[str], Ints]:
        """The distinct names of the paths, and for each path the place of its name among them."""
        names: list[str] = []
        for caller, function in self._numbers:
            names.append(function if caller < 0 else f"{names[caller]}{SEPARATOR}{function}")
        places: dict[str, int] = {}
        numbers = np.array([places.setdefault(name, len(places)) for name in names], dtype=np.int64)
        return list(places), numbers


@dataclass(frozen=True, slots=True)
class Tree:
    """One row a call path x rank x thread, values of equal rows added."""

    kernels: list[str]
    ranks: list[int]
    threads: list[str]
    columns: dict[str, Array]  # dict of str to ndarray, shape (n,)
    parents: Ints
    """ndarray of int, shape (n,): row of the nearest caller that has one on the same rank and thread, or -1."""


def tree(
    calls: CallPaths, paths: Sequence[int], ranks: Sequence[int], threads: Sequence[str], columns: Mapping[str, Array]
) -> Tree:
    """Add up the records of one call path on one rank and thread, and find every row's caller.

    `paths`: the number of each record's call path, ``CallPaths.ROOT`` of the whole program; `ranks`, `threads`,
    `columns`: of each record.
    """
    place: dict[tuple[int, int, str], int] = {}
    keys = list(zip(paths, ranks, threads, strict=True))
    codes = np.array([place.setdefault(key, len(place)) for key in keys], dtype=np.int64)
    sums = {name: _added(codes, values, len(place)) for name, values in columns.items()}
    callers = calls.callers
    nearest = dict(place)  # of every path that was come by: its row, or that of the nearest caller
    parents = np.full(len(place), -1, dtype=np.int64)
    for (path, rank, thread), at in place.items():
        above = callers[path] if path >= 0 else CallPaths.ROOT
        passed = []
        while above >= 0 and (above, rank, thread) not in nearest:
            passed.append((above, rank, thread))
            above = callers[above]
        parents[at] = nearest[above, rank, thread] if above >= 0 else -1
        nearest.update(dict.fromkeys(passed, int(parents[at])))
    names, codes = calls.kernels()
    rows = list(place)
    kernels = [names[codes[path]] if path >= 0 else WHOLE for path, _, _ in rows]
    return Tree(kernels, [row[1] for row in rows], [row[2] for row in rows], sums, parents)


def _inside(values: Array, parents: Ints) -> tuple[Array, Array]:
    """Sums over the rows that each row calls, and what six printed decimals lose of them."""
    inner = (parents >= 0) & ~np.isnan(values)
    inside = np.bincount(parents[inner], weights=values[inner], minlength=len(values)).astype(np.float64)
    return inside, 1e-6 * np.bincount(parents[inner], minlength=len(values)).astype(np.float64)


def exclusive(values: Array, parents: Ints) -> tuple[Array, int]:
    """Inclusive values made exclusive: own - sum of the children's; and how many were below zero and set to it.

    Rounding (below 1e-6 of the inclusive value, or of what six printed decimals lose) is not counted. Without a value
    that can be, of the row or of one that it calls, the row's own is infinite.
    """
    inside, digits = _inside(values, parents)
    unknown = (np.abs(values) >= limits.VALUE) | ~(np.abs(inside) < limits.VALUE)
    with np.errstate(invalid="ignore"):
        own = np.where(unknown, np.inf, values - inside)
        wrong = own < -(1e-6 * np.abs(values) + digits)
        own = np.where(own < 0, 0.0, own)
    return own, int(wrong.sum())


def looks_inclusive(values: Array, parents: Ints) -> bool:
    """Whether values must contain their callees': no caller has less than its callees together.

    Of exclusive values that would be a rare accident, for callers that only call have next to nothing of their own.
    """
    inside, digits = _inside(values, parents)
    callers = digits > 0
    with np.errstate(invalid="ignore"):
        return bool(callers.any() and (values[callers] >= inside[callers] * (1 - 1e-6) - digits[callers]).all())


def _added(codes: Ints, values: Array, size: int) -> Array:
    known = ~np.isnan(values)
    total = np.bincount(codes[known], weights=values[known], minlength=size).astype(np.float64)
    total[np.bincount(codes[known], minlength=size) == 0] = np.nan
    return total
