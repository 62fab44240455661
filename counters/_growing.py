"""Arrays that grow while a profile is read: names by number, costs by function, costs by call arc."""

from __future__ import annotations

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


class Table:
    """Sums of cost vectors by index."""

    def __init__(self, columns: int) -> None:
        self._sums = np.zeros((64, columns))

    def add(self, indices: Ints, costs: Array) -> None:
        """Add each row of `costs` to the sum at its index."""
        if not len(indices):
            return
        top = int(indices.max()) + 1
        if top > len(self._sums):
            larger = np.zeros((max(top, 2 * len(self._sums)), self._sums.shape[1]))
            larger[: len(self._sums)] = self._sums
            self._sums = larger
        np.add.at(self._sums, indices, costs)

    def rows(self, count: int) -> Array:
        """The sums at indices 0 to `count` - 1."""
        if count > len(self._sums):
            return np.vstack((self._sums, np.zeros((count - len(self._sums), self._sums.shape[1]))))
        return self._sums[:count]


class Arcs:
    """Sums of calls and costs by pair (caller, callee); memory is bounded by the number of distinct pairs."""

    def __init__(self, columns: int) -> None:
        self._keys: list[Ints] = []
        self._costs: list[Array] = []
        self._columns = columns
        self._pending = 0
        self._limit = PENDING

    def add(self, caller: Ints, callee: Ints, calls: Array, costs: Array) -> None:
        """Add one row a call site."""
        if not len(caller):
            return
        self._keys.append((caller << np.int64(32)) | callee)
        self._costs.append(np.column_stack((calls, costs)))
        self._pending += len(caller)
        if self._pending > self._limit:
            keys, sums = self._merged()
            self._keys, self._costs, self._pending = [keys], [sums], len(keys)
            self._limit = max(PENDING, 2 * len(keys))

    def _merged(self) -> tuple[Ints, Array]:
        if not self._keys:
            return np.zeros(0, np.int64), np.zeros((0, self._columns + 1))
        keys, costs = np.concatenate(self._keys), np.concatenate(self._costs)
        order = np.argsort(keys, kind="stable")
        keys, costs = keys[order], costs[order]
        first = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
        return keys[first], np.add.reduceat(costs, first, axis=0)

    def merged(self) -> tuple[Ints, Ints, Array, Array]:
        """Caller, callee, calls and costs of each distinct pair."""
        keys, sums = self._merged()
        return keys >> np.int64(32), keys & np.int64(0xFFFFFFFF), sums[:, 0], sums[:, 1:]
