"""Numbers in lines of text, parsed all at once from an array of bytes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ranksight.core.arrays import Ints

Bytes = NDArray[np.uint8]

DIGITS = 15
"""Decimal digits that a double holds exactly; a count with more is absurd."""
_SPACE, _NEWLINE, _ZERO = 32, 10, 48


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
