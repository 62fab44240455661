"""Numbers as people and programs write them: thousands, decimal commas, Fortran's exponents, words for no value."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import repeat
from operator import contains

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.errors import InputError

MISSING = frozenset({"", "-", "--", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "missing", "."})
"""Texts, folded, that stand for no value."""
_SPACES = str.maketrans("", "", " _'’\u00a0\u202f\u2009")
_PREFIXES = {"n": 1e-9, "u": 1e-6, "\u00b5": 1e-6, "\u03bc": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9}
_PREFIXES |= {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30}
_POINT = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?([eE][+-]?\d+)?")
_FORTRAN = re.compile(r"(?<=[\d.])[dD](?=[+-]?\d)")
"""The exponent's letter of Fortran's double precision: ``1.5D-03``."""
_COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d*)([eE][+-]?\d+)?|[+-]?\d{1,3}(\.\d{3}){2,}")


def decimal_mark(texts: Sequence[str], delimiter: str) -> str | None:
    """Which of ``.`` and ``,`` separates the decimals of a column; None where the column leaves it open.

    ``1,5`` can only be a decimal comma and ``1,234,567`` or ``1,234.5`` only thousands; a column of nothing but
    numbers such as ``1,234`` is open.
    """
    with_comma = [text.translate(_SPACES) for text in texts if "," in text]
    if not with_comma:
        return "."
    if any(re.fullmatch(r"[+-]?0,\d+", text) for text in with_comma):  # no thousands begin with 0
        return ","
    if delimiter == ",":  # a bare comma separates fields there, so that a quoted one groups thousands
        return "." if all(_POINT.fullmatch(text) for text in with_comma) else ","
    point = all(_POINT.fullmatch(text) for text in with_comma)
    comma = all(_COMMA.fullmatch(text) for text in with_comma)
    return None if point and comma else "." if point else ","


def stated_scale(name: str, unit: str) -> float:
    """What values of a column are multiplied with whose name ends in a multiple of `unit`: 1e-3 for ``time [ms]``,
    ``time (ms)`` and ``time_ms``, where `unit` is ``s``; 1 where none is stated."""
    found = re.search(rf"[\[(_]\s*({'|'.join(_PREFIXES)}){unit}\s*[\])]?$", name) if unit else None
    return _PREFIXES[found[1]] if found else 1.0


def parse_numbers(texts: Sequence[str], decimal: str = ".") -> tuple[Array, list[int]]:
    """Read a column of numbers in full precision.

    Returns
    -------
    values : ndarray, shape (n,)
        NaN where the value is missing or is not a number.
    wrong : list of int
        Places of texts that are neither numbers nor stand for a missing value.
    """
    try:
        values = np.fromiter(map(float, texts), dtype=np.float64, count=len(texts))
        if not any(map(contains, texts, repeat("_"))):
            return values, []
    except ValueError:
        pass
    values = np.full(len(texts), np.nan)
    wrong = []
    for place, text in enumerate(texts):
        try:
            values[place] = parse_number(text, decimal)
        except InputError:
            wrong.append(place)
    return values, wrong


def parse_number(text: str, decimal: str = ".") -> float:
    """Read one number; NaN where `text` stands for a missing value. Raises InputError when it is not a number."""
    bare = text.strip()
    if bare.casefold() in MISSING:
        return float("nan")
    bare = bare.translate(_SPACES)
    if decimal == ",":
        if _COMMA.fullmatch(bare):
            bare = bare.replace(".", "").replace(",", ".")
    elif _POINT.fullmatch(bare):
        bare = bare.replace(",", "")
    try:
        return float(_FORTRAN.sub("e", bare))
    except ValueError:
        raise InputError(f"{text!r} is not a number") from None
