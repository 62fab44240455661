"""Markdown tables of results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def number(value: float, digits: int = 3) -> str:
    """A figure as it stands in a table; a dash where there is none."""
    if isinstance(value, str):
        return value
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "none"
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def markdown(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; the first column is text."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" + "---:|" * (len(header) - 1)]
    for row in rows:
        cells = [cell if isinstance(cell, str) else number(float(cell)) for cell in row]  # type: ignore[arg-type]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
