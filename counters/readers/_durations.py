"""Times as schedulers, shells and programs print them, in seconds."""

from __future__ import annotations

import math
import re

from ranksight.core.errors import InputError
from ranksight.core.numerals import GROUPING, parse_number
from ranksight.counters.names import UNITS

_CLOCK = re.compile(
    r"(?:(?:(?P<days>\d{1,6})-)?(?P<hours>\d{1,7}):)?(?P<minutes>\d{1,7}):(?P<seconds>\d{1,2}(?:[.,]\d{1,9})?)"
)
_LENGTHS = {"min": 60.0, "mins": 60.0, "minute": 60.0, "minutes": 60.0, "m": 60.0,
            "h": 3600.0, "hr": 3600.0, "hrs": 3600.0, "hour": 3600.0, "hours": 3600.0}  # fmt: skip
_SHORT = ("ns", "us", "\u00b5s", "\u03bcs", "ms", "msec", "s", "sec", "secs", "second", "seconds",
          "millisecond", "milliseconds", "microsecond", "microseconds", "nanosecond", "nanoseconds")  # fmt: skip
TIMES = _LENGTHS | {unit: UNITS[unit] for unit in _SHORT if unit in UNITS}
"""Names of units of time, folded, in seconds."""
UNIT = rf"(?:{'|'.join(sorted(map(re.escape, TIMES), key=len, reverse=True))})(?![A-Za-z])"
"""A unit of time, for a regular expression that ignores case."""
NUMBER = rf"\d[\d.,{GROUPING}]{{0,40}}(?:[eE][-+]?\d{{1,3}}(?![A-Za-z\d]))?"
DURATION = rf"(?:\d[\d:.,-]{{0,40}}:\d[\d.,]{{0,12}}|{NUMBER}(?:[ \t]?{UNIT}(?:[ \t]?{NUMBER}[ \t]?{UNIT}){{0,3}})?)"
"""A time, for the same: a clock's, or a number with or without a unit, or several with units."""
_PART = re.compile(rf"(?P<number>{NUMBER})[ \t]?(?P<unit>{UNIT})[ \t]?", re.IGNORECASE)


def plain_number(text: str) -> str:
    """What of a time is one number, to see what separates its decimals; empty where it is of several."""
    bare = text.strip()
    parts = _parts(bare)
    return "" if ":" in bare or len(parts) > 1 else parts[0][0] if parts else bare


def states_unit(text: str) -> bool:
    """Whether a time is a clock's or has a unit."""
    return ":" in text or bool(_parts(text.strip()))


def _scaled(value: float, unit: float) -> float:
    """`value` of a unit in seconds; thousandths are divided, as 3 ms are 0.003 s to the last digit."""
    return value / round(1 / unit) if unit < 1 else value * unit


def _parts(text: str) -> list[tuple[str, str]]:
    """Number and unit of each part of a time; none where it is not of such parts."""
    found = list(_PART.finditer(text))
    return [(each["number"], each["unit"]) for each in found] if "".join(each[0] for each in found) == text else []


def seconds(text: str, decimal: str = ".") -> float:
    """Seconds of ``12.5``, ``12.5 s``, ``300ms``, ``1m2.5s``, ``1:02.5``, ``1-02:03:04``.

    `decimal`: what separates the decimals of the numbers of its file. Raises InputError when it is no time, or below
    zero.
    """
    bare = text.strip()
    if (clock := _CLOCK.fullmatch(bare)) is not None:
        lengths = {"days": 86400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}
        return sum(length * float((clock[name] or "0").replace(",", ".")) for name, length in lengths.items())
    parts = _parts(bare) or [(bare, "s")]
    value = math.fsum(_scaled(parse_number(number, decimal), TIMES[unit.casefold()]) for number, unit in parts)
    if not 0 <= value < math.inf:
        raise InputError(f"{text!r} is not a time")
    return value
