"""CPU time of short commands over that of starting Python and of loading the libraries that they need.

A table of times of one kernel, at five numbers of ranks, is imported and fitted. Commands and their libraries run in
turns, each in a process of its own; ratios are of medians within this run.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.settings import Settings
from benchmarks.speed import command
from benchmarks.table import markdown

TITLE = "Start of short commands"
LIBRARIES = (
    "numpy",
    "pyarrow.parquet",
    "pandas",
    "scipy.special",
    "scipy.linalg",
    "scipy.optimize",
    "lmfit",
    "matplotlib",
)
"""What is counted as the libraries of a command, where it loads them."""
TURNS = 15
TABLE = "ranks,time\n" + "".join(f"{ranks},{100 / ranks + ranks**0.5}\n" for ranks in (1, 2, 4, 8, 16))


def loaded(words: list[str]) -> tuple[list[str], int]:
    """The libraries that a command loads, and how many modules of the package."""
    code = (
        "import contextlib, io, sys\nfrom ranksight.cli.main import main\n"
        f"with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n    main({words!r})\n"
        f"print(*(name for name in {LIBRARIES!r} if name in sys.modules))\n"
        "print(sum(name.startswith('ranksight') for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names, count = done.stdout.split("\n")[:2]
    return names.split(), int(count)


def run(settings: Settings) -> str:
    """Table of CPU seconds and ratios."""
    turns = 3 if settings.quick else TURNS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table, made, model, cache = folder / "times.csv", folder / "times.exp", folder / "times.model", folder / "pyc"
        table.write_text(TABLE, encoding="utf-8")
        commands = {
            "--help": ["--help"],
            "fit --help": ["fit", "--help"],
            "import": ["import", str(table), "--force", "--quiet", "-o", str(made)],
            "fit": ["fit", str(made), "--force", "-o", str(model)],
            "predict": ["predict", str(model), "--ranks", "64"],
        }
        needed = {what: loaded(words) for what, words in commands.items()}
        rows = []
        spent: dict[str, list[tuple[float, float]]] = {what: [] for what in commands}
        for turn in range(turns + 1):
            for what, words in commands.items():
                ours = command([sys.executable, "-m", "ranksight", *words], cache).cpu
                alone = f"import {', '.join(needed[what][0])}" if needed[what][0] else ""
                theirs = command([sys.executable, "-c", alone], cache).cpu
                if turn:  # the first one compiles
                    spent[what].append((ours, theirs))
        for what, pairs in spent.items():
            ours, theirs = np.median(pairs, axis=0).tolist()
            libraries, modules = needed[what]
            rows.append([what, ", ".join(libraries) or "none", modules, ours, theirs, ours / theirs])
    return (
        f"Medians of {turns} turns, modules compiled before; one kernel whose time was measured at five numbers of "
        "ranks. The last column is the command over Python that loads the same libraries and does nothing.\n\n"
        + markdown(["command", "libraries", "own modules", "CPU s", "libraries alone, CPU s", "ratio"], rows)
    )
