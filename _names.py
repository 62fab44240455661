"""Names of others as they can be shown: in a terminal, in a plot, on a page."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff\ud800-\udfff]")


def printable(text: str) -> str:
    """`text` on one line, without characters that would steer a terminal or break a page."""
    return _CONTROL.sub("\ufffd", text)


def short(name: str, width: int) -> str:
    """`name`, printable, in `width` columns: its beginning and its end, as names of C++ differ at either."""
    text = printable(name)
    if len(text) <= width:
        return text
    tail = max(0, (width - 1) // 3)
    return f"{text[: max(0, width - 1 - tail)]}…{text[len(text) - tail :]}"
