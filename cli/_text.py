"""Lines that fit a terminal of 80 columns."""

from __future__ import annotations

import textwrap

WIDTH = 80


def short(name: str, width: int) -> str:
    """`name` in `width` columns: its beginning and its end, as names of C++ differ at either."""
    if len(name) <= width:
        return name
    tail = (width - 1) // 3
    return f"{name[: width - 1 - tail]}…{name[len(name) - tail :]}"


def hanging(head: str, text: str, indent: int = 4) -> str:
    """`head` with `text` behind it where that fits, else `text` wrapped on the lines below, indented."""
    line = f"{head}{text}".rstrip()
    if len(line) <= WIDTH:
        return line
    blank = " " * indent
    return f"{head.rstrip()}\n" + textwrap.fill(text, WIDTH, initial_indent=blank, subsequent_indent=blank)
