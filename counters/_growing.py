"""What grows while a profile is read: names by number, and costs by function, call arc or place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ranksight.core import limits
from ranksight.core.arrays import Array, Ints

PENDING = 1 << 18


class Names:
    """Names of one kind (functions, files, objects), each kept once; and the numbers that stand for them in a file."""

    def __init__(self) -> None:
        self.texts: list[str] = [""]
        self._index: dict[str, int] = {"": 0}
        self._numbers = np.full(1024, -1, np.int32)

    def intern(self, text: str) -> int:
        """Index of `text`."""
        index = self._index.setdefault(text, len(self.texts))
        if index == len(self.texts):
            self.texts.append(text)
        return index

    def full(self, number: int) -> bool:
        """Whether `number` is larger than any real profile's."""
        return number >= limits.CALLGRIND_NUMBERS

    def define(self, number: int, text: str, replace: bool) -> bool:
        """Let `number` stand for `text`; False when it cannot, since it stands for another name (unless `replace`)."""
        if self.full(number):
            return False
        if number >= len(self._numbers):
            larger = np.full(min(limits.CALLGRIND_NUMBERS, max(2 * len(self._numbers), number + 1)), -1, np.int32)
            larger[: len(self._numbers)] = self._numbers
            self._numbers = larger
        index = self.intern(text)
        if not replace and self._numbers[number] not in (-1, index):
            return False
        self._numbers[number] = index
        return True

    def lookup(self, numbers: Ints) -> Ints:
        """Indices of the names that `numbers` stand for; -1 where they stand for none."""
        inside = numbers < len(self._numbers)
        return np.where(inside, self._numbers[np.where(inside, numbers, 0)], -1).astype(np.int64)


class Sums:
    """Sums of `columns` costs by key, a key being so many whole numbers; as large as there are distinct keys."""

    def __init__(self, keys: int, columns: int) -> None:
        self._parts: list[tuple[Ints, Array]] = [(np.zeros((0, keys), np.int64), np.zeros((0, columns)))]
        self._pending, self._limit = 0, PENDING

    def add(self, keys: Sequence[Ints], costs: Array) -> None:
        """Add rows of `costs`, each to the sum of the numbers that `keys` have for it."""
        self._parts.append((np.column_stack(keys), costs))
        self._pending += len(costs)
        if self._pending > self._limit:
            self._parts = [self.merged()]
            self._pending, self._limit = self.distinct, max(PENDING, 2 * self.distinct)

    @property
    def distinct(self) -> int:
        """How many distinct keys there were when rows were last put together."""
        return len(self._parts[0][0])

    def merged(self) -> tuple[Ints, Array]:
        """The distinct keys (n, keys), sorted, and their sums (n, columns)."""
        keys, costs = map(np.concatenate, zip(*self._parts, strict=True))
        order = np.lexsort(keys.T[::-1])
        keys, costs = keys[order], costs[order]
        first = np.flatnonzero(np.append(True, (keys[1:] != keys[:-1]).any(axis=1))[: len(keys)])
        return keys[first], np.add.reduceat(costs, first, axis=0)
