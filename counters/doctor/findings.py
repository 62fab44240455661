"""Findings about a machine, and what examinations that make them look at: its files, and what tools say."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Literal

from ranksight.core.records import dataclass

Level = Literal["ok", "note", "warning", "missing"]
"""``ok``: in order; ``note``: good to know; ``warning``: numbers suffer; ``missing``: something cannot be measured."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found."""

    topic: str  # what was looked at: ``PMU``, ``perf``, ``frequency governor`` ..
    level: Level  # {"ok", "note", "warning", "missing"}
    found: str  # what was found, with its figures
    means: str = ""  # what follows for measuring; empty where nothing does
    remedy: str = ""  # what mends it, as a line to type where there is one; empty where nothing needs mending

    def plain(self) -> dict[str, str]:
        """As plain data."""
        return asdict(self)


_CATALOGUE = tomllib.loads(files("ranksight.counters.doctor").joinpath("findings.toml").read_text(encoding="utf-8"))


def finding(kind: str, /, **figures: object) -> Finding:
    """One of ``findings.toml`` with the figures of this machine."""
    texts = _CATALOGUE[kind]
    found, means, remedy = (texts.get(part, "").format(**figures) for part in ("found", "means", "remedy"))
    return Finding(texts["topic"], texts["level"], found, means, remedy)


@dataclass(frozen=True, slots=True)
class Machine:
    """Where examinations look: the root of the file system (another in tests), and a folder whose free space counts."""

    root: Path = Path("/")
    folder: Path = Path()

    def text(self, path: str) -> str | None:
        """Content of a small system file without the blanks around it; None where it cannot be read."""
        try:
            with (self.root / path).open("rb") as file:
                return file.read(65536).decode("utf-8", "replace").strip()
        except OSError:
            return None


Examination = Callable[[Machine], Iterator[Finding]]

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
