"""Extra-P, in an environment of its own, on the very same numbers.

Make that environment with ``python -m venv extrap-env && extrap-env/bin/pip install extrap==4.2.5`` and name its
interpreter with ``--extrap-python extrap-env/bin/python``.
"""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.methods.answers import Answer, plain
from benchmarks.tasks import Array, Task, batches, stack
from ranksight.core.errors import ToolError

WORKER = Path(__file__).with_name("extrap_worker.py")
VERSION = "4.2.5"


def nulls(values: Array) -> list[list[list[float | None]]]:
    """An (s, n, r) array for JSON, with None for NaN."""
    return [[[None if math.isnan(value) else value for value in row] for row in series] for series in values.tolist()]


class ExtraP:
    """Extra-P's default modeller; with `negative` its exponents may be negative, as strong scaling needs."""

    intervals = False

    def __init__(self, python: Path, negative: bool = False, cache: Path | None = None) -> None:
        self.python = python
        self.cache = cache
        self.negative = negative
        self.name = "Extra-P, negative exponents" if negative else "Extra-P"
        self.version = ""
        self.cpu = 0.0
        self.peak = 0.0

    def run(self, groups: list[dict[str, object]]) -> list[dict[str, object]]:
        """Hand groups to the worker and take its answers, or those it gave to the same groups before.

        Raises
        ------
        ToolError
            When the interpreter or Extra-P in it does not work.
        """
        text = json.dumps({"groups": groups})
        kept = None
        if self.cache is not None:
            self.cache.mkdir(parents=True, exist_ok=True)
            kept = self.cache / f"{hashlib.sha256((WORKER.read_text() + text).encode()).hexdigest()}.json"
            if kept.exists():
                return self._take(json.loads(kept.read_text(encoding="utf-8")))
        with tempfile.TemporaryDirectory() as folder:
            given, made = Path(folder) / "given.json", Path(folder) / "made.json"
            given.write_text(text, encoding="utf-8")
            try:
                subprocess.run(
                    [self.python, "-I", WORKER, given, made], check=True, capture_output=True, text=True, timeout=7200
                )
            except (OSError, subprocess.SubprocessError) as error:
                last = (getattr(error, "stderr", "") or str(error)).strip().split("\n")[-1]
                raise ToolError(
                    f"Extra-P does not run with {self.python}: {last}", "its module's text tells how to make one"
                ) from error
            answered = made.read_text(encoding="utf-8")
        if kept is not None:
            kept.write_text(answered, encoding="utf-8")
        return self._take(json.loads(answered))

    def _take(self, result: dict[str, Any]) -> list[dict[str, object]]:
        self.version, self.peak = str(result["version"]), float(result["peak"])
        answers: list[dict[str, object]] = result["groups"]
        return answers

    def answer(self, tasks: Sequence[Task]) -> list[Answer]:
        """Answers of Extra-P; what it refuses to model is flagged with the error it raised."""
        places: list[list[int]] = []
        groups: list[dict[str, object]] = []
        for where, batch in batches(tasks):
            places.append(where)
            groups.append(
                {
                    "parameters": list(batch[0].parameters),
                    "points": batch[0].points.tolist(),
                    "targets": batch[0].targets.tolist(),
                    "values": nulls(stack(batch)),
                    "negative": self.negative,
                }
            )
        answers: dict[int, Answer] = {}
        self.cpu = 0.0
        for where, made in zip(places, self.run(groups), strict=True):
            self.cpu += float(made["cpu"])  # type: ignore[arg-type]
            columns = (made["values"], made["formulas"], made["exponents"])
            for place, values, formula, exponents in zip(where, *columns, strict=True):  # type: ignore[call-overload]
                many = len(tasks[place].parameters)
                found = None if exponents is None else np.array(exponents, dtype=np.float64)
                value = np.array([np.nan if number is None else number for number in values])
                answers[place] = plain(value, many, formula or "none", found, str(made.get("error", "no model")))
        return [answers[place] for place in range(len(tasks))]
