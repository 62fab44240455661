"""A million models of one parameter by whole commands: time, memory, and the size of the model's file."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks import inputs
from benchmarks.settings import Settings, Skipped
from benchmarks.speed import command, compile_modules
from benchmarks.table import markdown

TITLE = "A million models"
COUNT = 1_000_000


def run(settings: Settings) -> str:
    """Table of seconds and megabytes; takes minutes."""
    if settings.quick:
        raise Skipped("it takes minutes and has no quick form")
    own, rows = [sys.executable, "-m", "ranksight"], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text, made, model, cache = folder / "input", folder / "made.exp", folder / "made.model", folder / "compiled"
        compile_modules(text, str(made), str(model), own, cache, None)
        inputs.extrap(text, 1, COUNT)
        for words in (
            ["import", "extrap", str(text), "-o", str(made), "--force", "--quiet"],
            ["fit", str(made), "--all-kernels", "-o", str(model), "--force", "--quiet"],
            ["predict", str(model), "--x=128", "--kernel", f"k{COUNT // 2}"],
        ):
            used = command([*own, *words], cache)
            rows.append([words[0], used.cpu, used.wall, used.peak / 1e6])
        size = model.stat().st_size / 1e6
    return (
        f"{COUNT:,} models of one parameter, one of which is predicted; the model's file has {size:.0f} MB:\n\n"
        + markdown(["command", "CPU s", "clock, s", "peak memory, MB"], rows)
    )
