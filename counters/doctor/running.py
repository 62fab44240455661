"""Asking a tool about itself."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence

_PATIENCE = 20.0


def say(command: Sequence[str]) -> str | None:
    """What `command` prints, on both streams; None where it is missing, fails to start or hangs."""
    path = shutil.which(command[0])
    if path is None:
        return None
    try:
        done = subprocess.run(
            [path, *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout[:65536].decode("utf-8", "replace")


def version(text: str) -> str:
    """The first thing in `text` that looks like a version; empty where nothing does."""
    match = re.search(r"\b\d+\.\d+(?:\.\d+)*(?:[-.]?(?:rc|a|b|git|dev)\d*)?", text)
    return match[0] if match else ""
