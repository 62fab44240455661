"""Mutated inputs read by processes of bounded memory and time, and what they came to."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.settings import ROOT

PIECE = 10_000
"""Inputs that one process reads; what a library keeps of each is gone with it."""
PATIENCE = 120.0
"""Seconds without a word after which a process is ended: it waits for what never comes."""
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclass
class Came:
    """What inputs came to.

    Attributes
    ----------
    counts : dict of str to Counter
        For each kind how many were ``read`` and ``refused``, and how many should not have come to what they did.
    found : list of (int, str, str)
        Number, kind and sample, and what it came to, of the latter.
    peak : int
        Bytes of the largest process.
    """

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    found: list[tuple[int, str, str]] = field(default_factory=list)
    peak: int = 0

    def total(self, what: str = "") -> int:
        """How many inputs there were, or how many came to `what`."""
        return sum(of[what] if what else of.total() for of in self.counts.values())

    def _add(self, lines: list[dict[str, object]]) -> None:
        for line in lines:
            if "came" in line:
                self.found.append((line["number"], f"{line['kind']}/{line['sample']}", line["came"]))  # type: ignore[arg-type]
            for kind, of in line.get("counts", {}).items():  # type: ignore[attr-defined]
                self.counts.setdefault(kind, Counter()).update(of)
            self.peak = max(self.peak, line.get("peak", 0))  # type: ignore[call-overload, type-var]


def read_inputs(samples: Path, numbers: range, seed: str = "1", jobs: int = 1) -> Came:
    """Read the inputs of these numbers.

    Parameters
    ----------
    samples : Path
        As :func:`benchmarks.hostile.samples.make` writes them.
    numbers : range
    seed : str
    jobs : int
        Processes at once.
    """
    pieces = [numbers[at : at + PIECE] for at in range(0, len(numbers), PIECE)]
    came = Came()
    with ThreadPoolExecutor(jobs) as pool:
        for piece in pool.map(lambda piece: _piece(samples, seed, piece), pieces):
            came._add(piece)
    return came


def _piece(samples: Path, seed: str, numbers: range) -> list[dict[str, object]]:
    """The lines of the processes that read a piece: a further one where an input ended the one before."""
    lines: list[dict[str, object]] = []
    first = numbers.start
    while first < numbers.stop:
        at, ended = _process(samples, seed, range(first, numbers.stop), lines)
        if not ended:
            break
        lines.append({"number": at, "kind": "?", "sample": "?", "came": ended, "counts": {"?": {"found": 1}}})
        first = at + 1
    return lines


def _process(samples: Path, seed: str, numbers: range, lines: list[dict[str, object]]) -> tuple[int, str]:
    """Run one process; the number of its last input, and how that ended it ("" where it did not)."""
    words = [
        sys.executable,
        "-m",
        "benchmarks.hostile.worker",
        str(samples),
        seed,
        str(numbers.start),
        str(numbers.stop),
    ]
    environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    at = numbers.start
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, env=environment, cwd=ROOT
        ) as process,
    ):
        assert process.stdout is not None
        buffer = b""
        while select.select([process.stdout], [], [], PATIENCE)[0]:
            more = os.read(process.stdout.fileno(), 1 << 16)
            if not more:
                break
            *whole, buffer = (buffer + more).split(b"\n")
            for line in map(json.loads, whole):
                at = line.get("at", at)
                if "at" not in line:
                    lines.append(line)
                if "came" in line:
                    print(f"input {line['number']} {line['kind']}/{line['sample']}: {line['came']}", file=sys.stderr)
        else:
            process.kill()
            return at, f"no end within {PATIENCE:g} s"
        if process.wait() == 0:
            return at, ""
        errors.seek(0)
        last = (errors.read()[-300:].decode("utf-8", "replace").splitlines() or [""])[-1]
        return at, f"ends the process with status {process.returncode}: {last}"
