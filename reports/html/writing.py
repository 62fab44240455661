"""How names and numbers are written on the page."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from markupsafe import Markup

from ranksight.core.metrics import metric
from ranksight.core.names import clipped, printable, short_names
from ranksight.core.units import format_alike, format_factor
from ranksight.reports.plots._axes import micro

_UNSAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&'\u2028\u2029"}


def embed(data: Any) -> Markup:
    """JSON that can stand inside a script element: no character of it can end the element."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=True)
    return Markup(text.translate(_UNSAFE))


def packed(text: str) -> Markup:
    """Text compressed (zlib) and in Base64, which the page's script opens: a twelfth of a table's size."""
    return Markup(base64.b64encode(zlib.compress(text.encode(), 9)).decode("ascii"))


def shower(names: Sequence[str]) -> Callable[[str, int], str]:
    """What writes a name as a table shows it: those of `names` distinct from each other, any other clipped."""
    known: dict[int, dict[str, str]] = {}

    def shown(name: str, longest: int = 72) -> str:
        if longest not in known:
            known[longest] = short_names(names, longest)
        return known[longest].get(name) or clipped(name, longest)

    return shown


def whole(name: str) -> str:
    """A kernel's name in full, without control characters."""
    return printable(name)


def cut(name: str, longest: int) -> str:
    """The beginning of a name in a figure, where a dollar sign would begin a formula."""
    return (name if len(name) <= longest else f"{name[: longest - 1]}…").replace("$", r"\$")


def value(number: float, name: str) -> str:
    """A metric's value with its unit; a dash where there is none."""
    return micro(metric(name).format(number)) if number - number == 0 else "–"


def in_one_unit(numbers: Iterable[float], name: str) -> tuple[str, list[str]]:
    """The unit and the texts of a metric's values in a column: all in one unit."""
    unit, texts = format_alike(numbers, metric(name).unit)
    return micro(f"0 {unit}").removeprefix("0 ") if unit else "", texts


def percent(share: float) -> str:
    """A share: whole percents, one digit below ten; what is too small for that digit is not nothing."""
    if share - share != 0:
        return "–"
    if 0 < share < 0.0005:
        return "<0.1%"
    return f"{share:.0%}" if abs(share) >= 0.0995 else f"{share:.1%}"


def spread(factor: float) -> str:
    """How far the ends of an interval lie from its middle: ``±12 %``, or ``×/÷ 3.1`` where that says more."""
    return f"±{100 * (factor - 1):.2g} %" if factor < 1.995 else f"×/÷ {format_factor(factor, 2)}"


def size(count: float) -> str:
    """Bytes of a file."""
    return metric("bytes_mem").format(float(count))
