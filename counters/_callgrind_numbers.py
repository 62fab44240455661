"""Numbers and positions in lines of callgrind's profiles, parsed all at once from an array of bytes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ranksight.core.arrays import Array, Ints
from ranksight.core.records import dataclass

Bytes = NDArray[np.uint8]

DIGITS = 15
"""Decimal digits that a double holds exactly; a count with more is absurd."""
_SPACE, _NEWLINE, _ZERO = 32, 10, 48
_HEX = np.full(256, -1, np.int64)
_HEX[list(b"0123456789")] = range(10)
_HEX[list(b"abcdef")] = _HEX[list(b"ABCDEF")] = range(10, 16)


def fields(text: Bytes) -> tuple[Ints, Ints, Ints, Ints]:
    """Split lines into fields at blanks.

    `text`: whole lines, the last one ended too.

    Returns
    -------
    line, column, start, length : arrays of int
        For each field the line it is on, its number on the line, where it starts and how long it is.
    """
    newline = text == _NEWLINE
    inside = ~(newline | (text == _SPACE))
    edge = np.empty(len(text) + 1, bool)
    edge[0] = len(text) > 0 and bool(inside[0])
    edge[-1] = False
    np.not_equal(inside[1:], inside[:-1], out=edge[1:-1])
    edges = np.flatnonzero(edge)
    start, stop = edges[0::2], edges[1::2]
    line = np.searchsorted(np.flatnonzero(newline), start)
    column = np.arange(len(start))
    if len(start):
        head = np.flatnonzero(np.concatenate(([True], line[1:] != line[:-1])))
        column -= np.repeat(head, np.diff(np.append(head, len(start))))
    return line, column, start, stop - start


def decimals(text: Bytes, start: Ints, length: Ints) -> tuple[Ints, Ints]:
    """Values of fields of decimal digits, and the indices of those that are none or have more than 15 digits."""
    value = np.zeros(len(start), np.int64)
    bad = length > DIGITS
    active = np.flatnonzero(length > 0)
    for k in range(DIGITS):
        if k:
            active = active[length[active] > k]
        if not len(active):
            break
        digit = text[start[active] + k] - np.uint8(_ZERO)  # wraps round: what is no digit comes out above 9
        bad[active[digit > 9]] = True
        value[active] = value[active] * 10 + digit
    bad |= length == 0
    return value, np.flatnonzero(bad)


def positions(text: Bytes, start: Ints, length: Ints, last: int) -> Ints:
    """Positions of one field a row, in the order of rows, after the position `last`; -1 where it is none.

    A position is absolute (``0x401136``, ``25``), or relative to the one before: ``+3``, ``-2``, ``*`` for the same.
    """
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


@dataclass(frozen=True)
class Parsed:
    """Fields of lines of costs: their row, their column (0 the first cost, below it positions), place and length."""

    text: Bytes
    row: Ints
    column: Ints
    start: Ints
    length: Ints
    cost_row: Ints
    cost_column: Ints
    cost: Array
