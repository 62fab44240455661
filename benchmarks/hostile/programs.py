"""A program of known results that campaigns measure, what is left of them, and how what was found is counted."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

PROGRAM = """#!{python} -IS
# Writes its table, of values that its parameters give, while a child of its in a session of its own is running.
import os, sys, time
ranks, size = map(int, sys.argv[1:])
def note():
    open("{numbers}/" + str(os.getpid()), "w").close()
note()
child = os.fork()
if child == 0:
    os.setsid()
    note()
    time.sleep({seconds})
    os._exit(0)
os.waitpid(child, 0)
with open(os.environ["RANKSIGHT_TABLE"], "w") as table:
    table.write("kernel,rank,time\\n" + "".join(f"work,{{r}},{{ranks * 100 + size + r / 8}}\\n" for r in range(ranks)))
"""
PATIENCE = 20.0
"""Seconds that what a campaign started has to end after it; processes that ignore SIGTERM get ten of them."""


@dataclass
class Tally:
    """Kills of one command.

    Attributes
    ----------
    kills : int
    lost, orphans, left : int
        Runs or files that were complete and are not any more, or hold other content; processes that went on; files
        and folders that the next, whole command left lying.
    found : list of str
        What it was.
    """

    kills: int = 0
    lost: int = 0
    orphans: int = 0
    left: int = 0
    found: list[str] = field(default_factory=list)

    def lose(self, what: str) -> None:
        """Count a loss."""
        self.lost += 1
        self.found.append(what)

    def join(self, other: Tally) -> None:
        """Add the kills of another."""
        self.kills += other.kills
        self.lost += other.lost
        self.orphans += other.orphans
        self.left += other.left
        self.found += other.found

    def leave(self, names: list[str]) -> None:
        """Count what is left."""
        self.left += len(names)
        self.found += [f"left: {name}" for name in names]


class Program:
    """A program of known results in `folder`, and its processes."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self.numbers = folder / "numbers"
        self.numbers.mkdir()
        self.path = folder / "program"
        self.path.write_text(PROGRAM.format(python=sys.executable, numbers=self.numbers, seconds=seconds))
        self.path.chmod(0o755)

    def measure(self, place: Path, *more: str) -> list[str]:
        """The line that measures it."""
        line = ["measure", "--ranks", "1,2", "--size", "3,4", "--reps", "2", "--collector", "table", "--quiet"]
        return [*line, "-o", str(place), *more, "--", str(self.path), "{ranks}", "{size}"]

    def running(self) -> list[int]:
        """Its processes that have not ended."""
        found = []
        for file in self.numbers.iterdir():
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{file.name}/cmdline").read_bytes().split(b"\0")
                if os.fsencode(self.path) in words:
                    found.append(int(file.name))
        return found

    def ended(self, tally: Tally) -> None:
        """Wait for its processes to end; those that do not are counted, and ended."""
        limit = time.monotonic() + PATIENCE
        while (left := self.running()) and time.monotonic() < limit:
            time.sleep(0.05)
        tally.orphans += len(left)
        tally.found += [f"process {number} goes on" for number in left]
        for number in left:
            os.kill(number, signal.SIGKILL)
        for file in self.numbers.iterdir():
            file.unlink(missing_ok=True)


def complete(place: Path) -> dict[str, list[float]]:
    """Runs of an experiment and their times; raises where one is not what its configuration gives."""
    from ranksight.core.experiment import read

    if not place.exists():
        return {}
    found = {}
    experiment = read(place)
    for run in experiment.runs:
        table = experiment.table(run, "counters")
        if table is None:
            raise ValueError(f"run {run.id} has no counters")
        ranks, size = run.configuration["ranks"], run.configuration["size"]
        found[run.id] = sorted(table["time"])
        if found[run.id] != [ranks * 100 + size + rank / 8 for rank in range(int(ranks))]:
            raise ValueError(f"run {run.id} has the times {found[run.id]}")
    return found


def strangers(folder: Path, known: set[str]) -> list[str]:
    """What lies in a folder, and in that of its runs, beyond what belongs there."""
    found = [entry.name for entry in folder.iterdir() if entry.name not in known]
    for entry in folder.glob("*/runs"):
        found += [inside.name for inside in entry.iterdir() if inside.name.startswith(".")]
    for entry in folder.glob("*/.pass-*"):
        found.append(entry.name)
    return found
