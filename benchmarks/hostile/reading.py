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

PIECE = 1_000
"""Inputs that one process reads; what a library keeps of each is gone with it. A run that is stopped loses no more."""
CPU = 20.0
"""Seconds of a processor for each input, or for each MB that is read or written of it: longer is a hang. A sound fit
with a report takes five, and twice that where others compute."""
PATIENCE = 600.0
"""Seconds without a word after which a process is ended: it waits for what never comes."""
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclass
class Came:
    """What inputs came to.

    Attributes
    ----------
    counts : dict of str to Counter
        For each kind how many were ``read`` and ``refused``, and how many were ``found`` to come to something else.
    found : list of (int, str, str, str)
        Number, kind and sample, and what it came to, of the latter.
    peak : int
        Bytes of the largest process.
    again : int
        Inputs that were read again, since they came to a fault when they were read for the first time.
    """

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    found: list[tuple[int, str, str, str]] = field(default_factory=list)
    peak: int = 0
    again: int = 0

    def total(self, what: str = "") -> int:
        """How many inputs there were, or how many came to `what`."""
        return sum(of[what] if what else of.total() for of in self.counts.values())

    def add(self, number: int, kind: str, sample: str, came: str) -> None:
        """Count an input; one that came to a fault is printed, too."""
        sound = came in ("read", "refused")
        self.counts.setdefault(kind, Counter())[came if sound else "found"] += 1
        if not sound:
            self.found.append((number, kind, sample, came))
            print(f"input {number} {kind}/{sample}: {came}", file=sys.stderr)

    def join(self, other: Came) -> None:
        """Add what other inputs came to."""
        for kind, of in other.counts.items():
            self.counts.setdefault(kind, Counter()).update(of)
        self.found += other.found
        self.peak = max(self.peak, other.peak)
        self.again += other.again


def read_inputs(samples: Path, numbers: range, seed: str = "1", jobs: int = 1, keep: Path | None = None) -> Came:
    """Read the inputs of these numbers.

    Parameters
    ----------
    samples : Path
        As :func:`benchmarks.hostile.samples.make` writes them.
    numbers : range
    seed : str
    jobs : int
        Processes at once.
    keep : Path, optional
        Folder of what inputs came to, a file for each :data:`PIECE` of them. Those that it holds already are not read
        again, but for those that came to a fault.
    """
    pieces = [numbers[at : at + PIECE] for at in range(0, len(numbers), PIECE)]
    came = Came()
    with ThreadPoolExecutor(jobs) as pool:
        for piece in pool.map(lambda piece: _kept(samples, seed, piece, keep), pieces):
            came.join(piece)
    return came


def _kept(samples: Path, seed: str, numbers: range, keep: Path | None) -> Came:
    """What a piece came to, from `keep` where it is there."""
    if keep is None:
        return _piece(samples, seed, numbers)
    file = keep / f"{seed}-{numbers.start}-{numbers.stop}.json"
    if not file.exists():
        came = _piece(samples, seed, numbers)
        file.write_text(json.dumps(vars(came), indent=1), encoding="utf-8")
        return came
    held = json.loads(file.read_text(encoding="utf-8"))
    came = Came({kind: Counter(of) for kind, of in held["counts"].items()}, [], held["peak"], len(held["found"]))
    for number, kind, *_ in held["found"]:
        came.counts[kind]["found"] -= 1
        came.join(_piece(samples, seed, range(number, number + 1)))
    return came


def _piece(samples: Path, seed: str, numbers: range) -> Came:
    """What a piece came to, read by one process, and a further one where an input ended the one before."""
    came = Came()
    first = numbers.start
    while first < numbers.stop:
        first = _process(samples, seed, range(first, numbers.stop), came)
    return came


def _process(samples: Path, seed: str, numbers: range, came: Came) -> int:
    """Add what one process reads to `came`; the number of the first input that it did not come to."""
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
    at: tuple[int, str, str] = (numbers.start, "?", "?")
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
                if "number" in line:
                    at = (line["number"], line["kind"], line["sample"])
                elif "came" in line:
                    came.add(*at, line["came"])
                came.peak = max(came.peak, line.get("peak", 0))
        else:
            process.kill()
            came.add(*at, f"no end within {PATIENCE:g} s")
            return at[0] + 1
        if process.wait() == 0:
            return numbers.stop
        errors.seek(0)
        last = (errors.read()[-300:].decode("utf-8", "replace").splitlines() or [""])[-1]
        came.add(*at, f"ends the process with status {process.returncode}: {last}")
        return at[0] + 1
