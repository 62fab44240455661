"""Messages on standard error; the answer is on standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable

SHOWN = 10  # messages of one kind that are printed; the others are counted
LONGEST = 1200  # characters of a message: what others wrote may stand in it


def say(text: str, lead: str = "ranksight: ") -> None:
    """Print one line after `lead`; names in it may be anybody's, so what would steer a terminal is left out."""
    from ranksight.core.names import clipped

    print(f"{lead}{clipped(text, LONGEST)}", file=sys.stderr, flush=True)


def warn(text: str) -> None:
    """Print a warning; nothing where there is none."""
    if text:
        say(f"warning: {text}")


def say_first(what: str, messages: Iterable[str], kind: str) -> None:
    """Say the first of `messages`, each after `what`, and how many of the `kind` there are more."""
    texts = list(messages)
    for text in texts[:SHOWN]:
        say(f"{what}: {text}")
    if len(texts) > SHOWN:
        say(f"{len(texts) - SHOWN} more {kind}")
