"""Numbers with units as people read them: SI prefixes for s, B, Hz and plain counts."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from ranksight.core.errors import InputError

_PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SMALL = ((1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"), (1e-12, "p"))
_SCALE = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30}

HOUR = 3600.0
"""Seconds of an hour."""
SHORTEST = 1e-15
"""Seconds below which a time is none."""
CYCLE = 1e-12
"""Seconds that no program takes less than: a cycle of a processor is longer."""
LEAST = 1e-300
"""Seconds below which nothing is predicted: digits of such numbers are lost, and functions of them fall to zero."""


def format_si(value: float, unit: str = "", digits: int = 3) -> str:
    """Write `value` with an SI prefix: ``format_si(1234.0, "B") == "1.23 kB"``.

    Counts (unit ``""``) and bytes below one are not given a prefix; times and frequencies are. Long times stay seconds,
    and times below the resolution of any clock (:data:`SHORTEST`) are 0.
    """
    if not math.isfinite(value):
        return f"{value} {unit}".strip()
    if value == 0:
        return f"0 {unit}".strip()
    size = abs(value)
    if unit == "s" and size < SHORTEST:
        return "0 s"
    if unit == "s" and size >= 999.5:
        # Nobody reads kiloseconds.
        if size >= 1e9:
            return f"{value:.{digits}g} s"
        return f"{float(f'{value:.{digits}g}'):,.0f} s"
    table = _PREFIXES if size >= 1 or unit in ("", "B") else _SMALL
    for scale, prefix in table:
        if size >= scale * 0.9995 or (scale, prefix) == table[-1]:
            return f"{value / scale:.{digits}g} {prefix}{unit}".strip()
    raise AssertionError("unreachable: the last prefix always matches")


def format_alike(values: Iterable[float], unit: str) -> tuple[str, list[str]]:
    """The unit of the largest of `values`, and all of them in it: ``format_alike([0.002, 5e-6], "s")`` is
    ``("ms", ["2.00", "0.005"])``.

    Three digits of the largest and thousandths at least; smaller ones are ``<0.001``. Those that are not
    finite are dashes.
    """
    numbers = list(values)
    most = max((abs(x) for x in numbers if math.isfinite(x)), default=0.0)
    prefixes = ((1.0, ""),) if unit == "s" and most >= 1 else _PREFIXES if most >= 1 or unit in ("", "B") else _SMALL
    scale, prefix = next((each for each in prefixes if most >= each[0] * 0.9995), prefixes[-1])
    if most == 0:
        scale, prefix = 1.0, ""

    def text(value: float) -> str:
        if not math.isfinite(value):
            return "\u2013"
        size = abs(value) / scale
        if value == 0 or 0 < size < 0.0005:
            return "0" if value == 0 else "<0.001"
        digits = 0 if size >= 99.95 else 1 if size >= 9.995 else 2 if size >= 0.9995 else 3
        return f"{value / scale:,.{digits}f}"

    return f"{prefix}{unit}", [text(x) for x in numbers]


def format_program(seconds: float) -> str:
    """Write the time of a whole program: as :func:`format_si` does, but never 0 where it is not."""
    return f"{seconds:.3g} s" if 0 < seconds < SHORTEST else format_si(seconds, "s")


def format_factor(value: float, digits: int = 3) -> str:
    """Write a factor for people: ``1.98``, ``13.7``, ``1,980``, ``290,000``; in powers of ten from a million."""
    if not 10**digits - 0.5 <= abs(value) < 1e6:
        return f"{value:.{digits}g}"
    return f"{float(f'{value:.{digits}g}'):,.0f}"


def in_full(value: float) -> str:
    """Write a parameter's value, whole numbers in full: a command with ``16777216`` asks for the same."""
    return f"{value:.0f}" if float(value).is_integer() and abs(value) < 2**53 else f"{value:g}"


def in_words(configuration: Mapping[str, float]) -> str:
    """A configuration for people: ``ranks 8, size 24``."""
    return ", ".join(f"{name} {in_full(value)}" for name, value in configuration.items())


def assigned(configuration: Mapping[str, float]) -> str:
    """A configuration as a log has it: ``ranks=8 size=24``."""
    return " ".join(f"{name}={in_full(value)}" for name, value in configuration.items())


def counted(count: int, noun: str) -> str:
    """Write a number and its noun, which takes an s in the plural: ``counted(1, "run") == "1 run"``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def some_of(names: Sequence[object], most: int = 3) -> str:
    """The first `most` names: ``a, b, c and 4 more``."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more


def parse_size(text: str) -> int:
    """Read a size in bytes: ``"32Ki"``, ``"1.5M"``, ``"4096"`` or ``"2 MiB"``.

    Raises InputError when `text` is not a size.
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*+([kKMGT]i?|)B?\s*", text)
    if match is None or match[2] not in _SCALE:
        raise InputError(f"{text!r} is not a size", "write bytes, or a number with k, M, G, Ki, Mi or Gi")
    return int(float(match[1]) * _SCALE[match[2]])


def parse_frequency(text: str) -> float:
    """Read a frequency in Hz: ``"2.5GHz"``, ``"2500 MHz"``, ``"2.5e9"``.

    Raises InputError when `text` is not a frequency above zero.
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?(?:[eE][0-9]+)?)\s*+([kMG]?)(?:[Hh][Zz])?\s*", text)
    value = 0.0 if match is None else float(match[1]) * _SCALE[match[2]]
    if not 0 < value < float("inf"):
        raise InputError(f"{text!r} is not a frequency", "write cycles a second, such as 2.5GHz or 2.5e9")
    return value


def finite(value: float) -> float | None:
    """A number as JSON holds it: None where it is not finite."""
    return float(value) if math.isfinite(value) else None


def whole(value: float) -> float | int:
    """A whole number as one, another as it is."""
    return int(value) if float(value).is_integer() and abs(value) < 2**53 else float(value)
