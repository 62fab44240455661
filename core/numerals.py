"""Numbers as people and programs write them: thousands, decimal commas, Fortran's exponents, words for no value.

Which of ``.`` and ``,`` separates the decimals is a property of a file, not of a number: ``3,788`` is 3788 in one
locale and 3.788 in another, and the file's other numbers say which. :func:`decimal_mark` looks at all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import contains

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.errors import InputError

MISSING = frozenset({"", "-", "--", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "missing", "."})
"""Texts, folded, that stand for no value."""
GROUPING = "'\u2019\u00a0\u202f\u2009"
"""Characters that group thousands and nothing else: apostrophes and the blanks that a line is not broken at."""
_SPACES = str.maketrans("", "", f" _{GROUPING}")
_PREFIXES = {"n": 1e-9, "u": 1e-6, "\u00b5": 1e-6, "\u03bc": 1e-6, "m": 1e-3, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}
_PREFIXES |= {"T": 1e12, "Ti": 2.0**40, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30}
_NAMES = {
    "s": r"(?i:s|secs?|seconds?)",
    "B": r"B|(?i:bytes?)",
    "J": r"J|(?i:joules?|ws|wh)",
    "W": r"W|(?i:watts?)",
    "Hz": r"(?i:hz)",
}
"""How units are written in names of columns; a watt-hour is 3600 J."""
LONGER = r"\[\s*mins?\s*\]|[\[(]\s*(?:h|hrs?)\s*[\])]|[\[(_]\s*(?:minutes?|hours?)\s*[\])]?"
"""Minutes and hours at the end of a column's name. ``(min)`` and ``_min`` are a minimum as often, and no unit here."""
_FORTRAN = re.compile(r"(?<=[\d.])[dD](?=[+-]?\d)")
"""The exponent's letter of Fortran's double precision: ``1.5D-03``."""
_EXPONENT = r"(?:[eEdD][+-]?\d{1,4})?"
_GROUPED = r"(?:\d{{1,3}}(?:{0}\d{{2,3}})+|[1-9]\d{{0,2}}){0}\d{{3}}"
"""Thousands between marks. No single group follows a zero; in India all groups but the last are of two digits."""
_DECIMAL = {
    mark: re.compile(rf"[+-]?(?:{_GROUPED.format(re.escape(other))}(?:{re.escape(mark)}\d*)?|"
                     rf"\d+{re.escape(mark)}\d*|{re.escape(mark)}\d+){_EXPONENT}")
    for mark, other in ((".", ","), (",", "."))
}  # fmt: skip
"""What numbers with a mark look like where each of the two separates the decimals."""


def decimal_mark(texts: Iterable[str], where: str, whole: Iterable[str] = (), remedy: str = "") -> str | None:
    """Which of ``.`` and ``,`` separates the decimals of a file; None where its numbers leave it open.

    ``1,5`` and ``0,125`` can only be a decimal comma, ``1,234,567`` and ``1,234.5`` only thousands, and numbers that
    group with blanks or apostrophes group with nothing else. A file of nothing but numbers such as ``1,234`` is open;
    one of nothing but numbers such as ``1.234`` has decimal points, as all that is written with LC_ALL=C.

    Parameters
    ----------
    texts : iterable of str
        All numbers of the file.
    where : str
        The file, for messages.
    whole : iterable of str
        Those that are counts, without decimals: a mark in them groups thousands.
    remedy : str
        What to do where two numbers contradict each other.

    Raises InputError, naming both, where two numbers have different marks.
    """
    proof: dict[str, str] = {}
    some_open = False
    counts = set(whole)
    for text in {*texts, *counts}:
        if "," not in text and "." not in text:
            continue
        marks = _marks(text.strip(), text in counts)
        if len(marks) == 1:
            proof.setdefault(marks[0], text.strip())
        some_open |= len(marks) == 2 and "," in text
    if len(proof) == 2:
        raise InputError(
            f"{where} has two decimal marks: a comma in {proof[',']!r} and a point in {proof['.']!r}",
            remedy or "write it again with LC_ALL=C",
        )
    return next(iter(proof), None if some_open else ".")


def _marks(text: str, count: bool) -> list[str]:
    """The marks that may separate the decimals of a number with a mark; none where it is not a number."""
    bare = text.translate(_SPACES)
    marks = [mark for mark in ".," if _DECIMAL[mark].fullmatch(bare)]
    if len(marks) == 2 and (count or bare != text):
        # the one mark that is there groups thousands in a count, and decimals where something else groups
        return [mark for mark in marks if (mark in bare) != count]
    return marks


def settled_mark(texts: Sequence[str], where: str, whole: Iterable[str] = (), remedy: str = "") -> str:
    """As :func:`decimal_mark`; InputError, naming both readings of a number, where the file leaves it open."""
    found = decimal_mark(texts, where, whole, remedy)
    if found is not None:
        return found
    text = next(text for text in texts if "," in text and len(_marks(text.strip(), False)) == 2).strip()
    bare = text.translate(_SPACES)
    raise InputError(
        f"{where}: {text!r} is {bare.replace(',', '')} or {bare.replace(',', '.')}: no number of the file says whether "
        "a comma separates decimals or thousands",
        remedy or "write it again with LC_ALL=C",
    )


def stated_scale(name: str, unit: str) -> float:
    """What values of a column are multiplied with whose name ends in a multiple of `unit`: 1e-3 for ``time [ms]``,
    ``time (ms)`` and ``time_ms``, where `unit` is ``s``, 60 for ``time [min]`` and 3.6e6 for ``energy [kWh]``; 1 where
    none is stated. Raises InputError where the name ends in another unit in square brackets."""
    if unit == "s" and (longer := re.search(rf"(?:{LONGER})$", name, re.IGNORECASE)):
        return 60.0 if "min" in longer[0].lower() else 3600.0
    found = _stated(name, unit)
    if found is not None:
        return _PREFIXES.get(found["prefix"], 1.0) * (3600.0 if found["unit"].endswith(("h", "H")) else 1.0)
    other = re.search(r"\[([^\[\]]+)\]$", name) if unit else None
    if other is not None:
        raise InputError(f"{other[1]!r} in {name!r} is no known multiple of {unit}", f"give the values in {unit}")
    return 1.0


def states(name: str, unit: str) -> bool:
    """Whether a column's name ends in `unit` or a multiple of it."""
    return _stated(name, unit) is not None


def _stated(name: str, unit: str) -> re.Match[str] | None:
    names = _NAMES.get(unit, re.escape(unit))
    found = rf"[\[(_]\s*(?P<prefix>{'|'.join(_PREFIXES)}|)(?P<unit>{names})\s*[\])]?$"
    return re.search(found, name) if unit else None


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
        if decimal == "." and not any(map(contains, texts, repeat("_"))):
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
    other = "," if decimal == "." else "."
    if (decimal == "," or other in bare) and _DECIMAL[decimal].fullmatch(bare):
        bare = bare.replace(other, "").replace(",", ".")
    elif decimal == "," and "." in bare:
        raise InputError(f"{text!r} is not a number where a comma separates decimals")
    try:
        return float(_FORTRAN.sub("e", bare))
    except ValueError:
        raise InputError(f"{text!r} is not a number") from None
