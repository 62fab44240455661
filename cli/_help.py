"""The help of a verb, as wide as the terminal: written from the values of its options, as argparse would write it.

Loading argparse takes longer than starting Python allows for a page of help.
"""

from __future__ import annotations

import os
import sys

from ranksight.cli.options import help_of, names, options

TYPE_CHECKING = False  # typing itself takes a tenth of the time that Python needs to start
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NARROWEST, WIDEST = 40, 98  # columns of help
INDENT = 24  # column at which what an option is for begins
HELP = (("-h", "--help"), "", "show this help message and exit")


def page(verb: str) -> str:
    """The help of a verb."""
    description, usage, table = options(verb)
    room = max(NARROWEST, min(_columns() - 2, WIDEST))
    groups: dict[str, list[tuple[tuple[str, ...], str, str]]] = {"positional arguments": [], "options": [HELP]}
    for name, how in table.items():
        title = how.get("group") or ("options" if name.startswith("-") else "positional arguments")
        groups.setdefault(title, []).append((_shown(name, how), _value(name, how), help_of(how)))
    blocks = [f"usage: {usage}", *(_paragraph(block, room) for block in description.split("\n\n"))]
    for title, entries in groups.items():
        if entries:
            blocks.append("\n".join([f"{title}:", *(_entry(*entry, room) for entry in entries)]))
    return "\n\n".join(blocks) + "\n"


def _columns() -> int:
    """Columns of the terminal; 80 where there is none."""
    try:
        return int(os.environ.get("COLUMNS", "")) or 80
    except ValueError:
        pass
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns if sys.__stdout__ else 80
    except (AttributeError, OSError, ValueError):  # closed by who called, or no terminal
        return 80


def _shown(name: str, how: Mapping[str, Any]) -> tuple[str, ...]:
    if not name.startswith("-"):
        return ()
    return (*names(name, how), f"--no-{name[2:]}") if how.get("action") == "switch" else names(name, how)


def _value(name: str, how: Mapping[str, Any]) -> str:
    """What an option or argument takes; empty where it takes nothing."""
    if how.get("action") in ("store_true", "switch"):
        return ""
    shown = how.get("metavar") or (
        "{" + ",".join(how["choices"]) + "}" if "choices" in how else name.upper().strip("-")
    )
    text = shown if isinstance(shown, str) else " ".join(shown)
    return {"?": f"[{text}]", "*": f"[{text} ...]", "+": f"{text} [{text} ...]"}.get(how.get("nargs", ""), text)


def _entry(shown: tuple[str, ...], value: str, text: str, room: int) -> str:
    head = "  " + " ".join(filter(None, (", ".join(shown), value)))
    lines = _wrapped(text, room - INDENT)
    if len(head) <= INDENT - 2:
        return head.ljust(INDENT) + ("\n" + " " * INDENT).join(lines)
    return ("\n" + " " * INDENT).join([head, *lines])


def _paragraph(block: str, room: int) -> str:
    """A paragraph over the width; indented lines, which are examples, stay as they are."""
    if any(line.startswith(" ") for line in block.splitlines()):
        return block
    return "\n".join(_wrapped(block, room))


def _wrapped(text: str, room: int) -> list[str]:
    """The lines of a text, each at most `room` wide but for a longer word."""
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > room:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines
