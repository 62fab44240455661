"""Places within functions: what is known of them, and callgrind's compressed positions resolved.

A position is absolute (``0x401136``, ``25``), or relative to the one before: ``+3``, ``-2``, ``*`` for the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
