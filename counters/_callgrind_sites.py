"""Places within functions: callgrind's compressed positions resolved, costs and jumps of the functions that are wanted.

A position is absolute (``0x401136``, ``25``), or relative to the one before: ``+3``, ``-2``, ``*`` for the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ranksight.core import limits
from ranksight.core.arrays import Array, Ints
from ranksight.counters._fields import decimals

Bytes = NDArray[np.uint8]

_HEX = np.full(256, -1, np.int64)
_HEX[list(b"0123456789")] = range(10)
_HEX[list(b"abcdef")] = _HEX[list(b"ABCDEF")] = range(10, 16)


@dataclass(frozen=True)
class Sites:
    """Exclusive cost within functions, by place; and the jumps between places.

    `function`, `address`, `file`, `line`: index of the function; address within its object (0 where the file has none);
    index of the source file; line. `jump_function`, `jump_from`, `jump_to`: addresses.
    """

    function: Ints
    address: Ints
    file: Ints
    line: Ints
    cost: Array
    jump_function: Ints
    jump_from: Ints
    jump_to: Ints


def positions(text: Bytes, start: Ints, length: Ints, last: int) -> Ints:
    """Resolve one position field a row, in the order of rows, after the position `last`; -1 where it is none."""
    first = text[start] if len(start) else np.zeros(0, np.uint8)
    same = (first == ord("*")) & (length == 1)
    minus = first == ord("-")
    signed = minus | (first == ord("+"))
    hexadecimal = (first == ord("0")) & (length > 2)
    hexadecimal[hexadecimal] = text[start[hexadecimal] + 1] == ord("x")
    plain = ~hexadecimal & ~same
    value = np.zeros(len(start), np.int64)
    at = np.flatnonzero(plain)
    value[at], bad = decimals(text, start[at] + signed[at], length[at] - signed[at])
    wrong = np.zeros(len(start), bool)
    wrong[at[bad]] = True
    at = np.flatnonzero(hexadecimal)
    wrong[at[length[at] > 17]] = True
    for k in range(2, 18):
        at = at[length[at] > k]
        if not len(at):
            break
        digit = _HEX[text[start[at] + k]]
        wrong[at[digit < 0]] = True
        value[at] = (value[at] << 4) | np.maximum(digit, 0)
    absolute = hexadecimal | (plain & ~signed)
    step = np.where(absolute | wrong, 0, np.where(minus, -value, value))
    walked = np.cumsum(step)
    base = np.maximum.accumulate(np.where(absolute, np.arange(len(start)), -1))
    known = base >= 0
    resolved = np.where(known, value[base] + walked - walked[base], last + walked)
    resolved[wrong] = -1
    return resolved


class Places:
    """Sums of cost by place, and the jumps, while a file is read."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._keys: list[Ints] = []
        self._costs: list[Array] = []
        self._pending = 0
        self._jumps: dict[tuple[int, int, int], None] = {}

    def add(self, function: Ints, address: Ints, file: Ints, line: Ints, cost: Array) -> None:
        """Add one row a line of costs."""
        if len(function):
            self._keys.append(np.column_stack((function, address, file, line)))
            self._costs.append(cost)
            self._pending += len(function)
            if self._pending > 1 << 18:
                keys, costs = self._merged()
                self._keys, self._costs, self._pending = [keys], [costs], 0

    def jump(self, function: int, start: int, end: int) -> None:
        """Add a jump."""
        if len(self._jumps) < limits.CALLGRIND_SITES:
            self._jumps[function, start, end] = None

    @property
    def full(self) -> bool:
        """Whether there are more places than any program has."""
        return bool(self._keys) and len(self._keys[0]) > limits.CALLGRIND_SITES

    def _merged(self) -> tuple[Ints, Array]:
        if not self._keys:
            return np.zeros((0, 4), np.int64), np.zeros((0, self._columns))
        keys, costs = np.concatenate(self._keys), np.concatenate(self._costs)
        order = np.lexsort(keys.T[::-1])
        keys, costs = keys[order], costs[order]
        first = np.flatnonzero(np.concatenate(([True], (keys[1:] != keys[:-1]).any(axis=1))))
        return keys[first], np.add.reduceat(costs, first, axis=0)

    def sites(self) -> Sites:
        """What was gathered."""
        keys, costs = self._merged()
        jumps = np.array(list(self._jumps), np.int64).reshape(-1, 3)
        function, address, file, line = (keys[:, k] for k in range(4))
        return Sites(function, address, file, line, costs, *jumps.T)
