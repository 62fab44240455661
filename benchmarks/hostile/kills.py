"""Kills: of commands at operations on files, of campaigns at any time, and what is left then.

``python -m benchmarks.hostile.kills FOLDER COUNT SEED`` kills ``fit``, ``import``, ``report`` and ``measure`` by
SIGKILL at COUNT operations on files in the folder of their result, as evenly as their numbers allow, and prints what it
found as JSON. It forks a process for each, and so has to be one without threads.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.settings import ROOT

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
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
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


# ---- what is measured -----------------------------------------------------------------------------------------------


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


# ---- at operations on files -----------------------------------------------------------------------------------------

PRELOADED = ("cli.fit", "cli.import_", "cli.measure", "cli.report", "counters.readers.csv_table", "model.fit",
             "reports.html.page", "reports.sweep", "core.tables")  # fmt: skip
EVENTS = frozenset({"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate"})


def _hook(folder: str, at: int, count: list[int]) -> Callable[[str, tuple[Any, ...]], None]:
    """An audit hook that kills this process at the `at`-th operation on files in a folder, or counts them."""

    def hook(event: str, given: tuple[Any, ...]) -> None:
        if event in EVENTS:
            with contextlib.suppress(TypeError, ValueError):
                if not os.fsdecode(given[0]).startswith(folder):
                    return
        elif (event, given[1:]) != ("ctypes.dlsym", ("renameat2",)):
            return
        count[0] += 1
        if count[0] == at:
            os.kill(os.getpid(), signal.SIGKILL)

    return hook


def _forked(words: list[str], folder: Path, at: int) -> tuple[int, int]:
    """Run a command line in a fork; the status of its end, and how many operations on files it came to."""
    from ranksight.cli.main import main

    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        sink = os.open(os.devnull, os.O_RDWR)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        count = [0]
        sys.addaudithook(_hook(str(folder), at, count))
        code = main(words)
        os.write(writing, str(count[0]).encode())
        os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as answer:
        said = answer.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), int(said or 0)


def at_operations(folder: Path, count: int, seed: str) -> dict[str, Tally]:
    """Kill commands at `count` operations on files in all, and look after each at what is there.

    After each kill the file or experiment has to be as before or as after the whole command; after a whole one nothing
    more may lie there.
    """
    from benchmarks.hostile.samples import TABLE, experiment, pingpong

    for name in PRELOADED:  # a fork starts with what is loaded
        importlib.import_module(f"ranksight.{name}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "table.csv").write_text(TABLE)
    program = Program(folder, 0.01)
    source = experiment(folder / "source.exp", ("work",))
    place = folder / "results"
    place.mkdir()
    model, page, made = place / "m.json", place / "p.html", place / "made.exp"
    joined, text, machine, timings = place / "j.exp", place / "t.csv", place / "m.toml", folder / "timings.csv"
    timings.write_text(pingpong())
    shutil.copyfile(
        ROOT / "platforms" / "machines" / "zen4.toml", machine
    )  # of one that is there the network alone is new
    columns = [
        "--parameter",
        "ranks",
        "--parameter",
        "size",
        "--kernel",
        "kernel",
        "--rank",
        "rank",
        "--metric",
        "time",
    ]
    lines = {
        "fit -o": (["fit", str(source), "-o", str(model), "--force", "--quiet"], model),
        "report -o": (["report", str(folder / "old.json"), "-o", str(page), "--force"], page),
        "import -o": (
            ["import", "csv", str(folder / "table.csv"), *columns, "--force", "--quiet", "-o", str(made)],
            made,
        ),
        "join": (["import", "experiment", str(source), "--force", "--quiet", "-o", str(joined)], joined),
        "export -o": (["export", "csv", str(source), "--force", "--quiet", "-o", str(text)], text),
        "calibrate -o": (["calibrate", "--timings", str(timings), "--force", "--quiet", "-o", str(machine)], machine),
        "measure": (program.measure(place / "measured.exp"), place / "measured.exp"),
    }
    if _forked(["fit", str(source), "-o", str(folder / "old.json"), "--quiet"], folder, 0)[0] != 0:
        raise RuntimeError("fit of the sample failed")
    tallies = {}
    dice = random.Random(seed)
    for name, (words, result) in lines.items():
        tally = tallies[name] = Tally()
        # A first run writes compiled modules and caches, whose operations do not come again.
        for _ in range(1 if name == "measure" else 2):
            status, operations = _forked(words, place, 0)
            if status != 0:
                raise RuntimeError(f"{name} ends with status {status}")
        wanted = min(operations, count // len(lines))
        states = {_state(result)} if name != "measure" else set()
        if name == "measure":
            shutil.rmtree(result)
        chosen = sorted(dice.sample(range(1, operations + 1), wanted))
        for turn, at in enumerate(chosen):
            status, _ = _forked(words, place, at)
            tally.kills += status == -signal.SIGKILL  # a campaign that goes on has fewer operations
            try:
                if name == "measure":
                    program.ended(tally)
                    if result.exists() and (result / "experiment.json").exists():
                        complete(result)
                elif _state(result) not in states:
                    tally.lose(f"{name}: other content after a kill at operation {at}")
            except Exception as error:
                tally.lose(f"{name}: a kill at operation {at}: {error}")
            if turn % 8 == 7 or turn == len(chosen) - 1:
                for entry in place.glob(".*"):  # one that was not locked yet is removed a minute later
                    os.utime(entry, (0, 0))
                if _forked(words, place, 0)[0] != 0:
                    tally.lose(f"{name}: does not go on after a kill at operation {at}")
                elif name == "measure":
                    program.ended(tally)
                    if len(complete(result)) != 8:
                        tally.lose(
                            f"measure: {8 - len(complete(result))} runs are missing after a kill at operation {at}"
                        )
                tally.leave(strangers(place, {result.name for _, result in lines.values()}))
                if name == "measure":
                    shutil.rmtree(result)
    return tallies


def _state(result: Path) -> str:
    """A text that differs where the content of a file or an experiment does."""
    from ranksight.core.experiment import read

    if result.is_dir():
        return str(read(result).counters().drop(columns="run").to_dict("list"))
    if result.suffix == ".json":
        from ranksight.model.modelfile import read as read_model

        return str(read_model(result))
    text = result.read_text(encoding="utf-8")
    return text if result.suffix != ".html" else str((text[:15], text[-9:].strip(), len(text)))


# ---- at any time ----------------------------------------------------------------------------------------------------

SBATCH = """#!/bin/sh
# Stands for a batch system: runs all tasks of a script, each in a session of its own, and ends with them.
for script in "$@"; do :; done
for index in 0 1 2 3; do
    if [ "$index" = 0 ] || grep -q "^$index)" "$script"; then
        SLURM_JOB_ID=$$ SLURM_ARRAY_TASK_ID=$index setsid -w bash "$script" >"$script.$index.out" 2>&1
    fi
done
echo $$
"""


def at_any_time(folder: Path, count: int, seed: str, batch: bool = False) -> Tally:
    """Kill campaigns at times drawn at random, by signals drawn at random, and give the same line again until all is
    measured; with `batch` the tasks of their jobs, as a batch system does at a time limit.
    """
    folder.mkdir(parents=True, exist_ok=True)
    program = Program(folder, 0.1)
    dice = random.Random(seed)
    environment = {**os.environ, "PYTHONPATH": f"{ROOT.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    if batch:
        (folder / "bin").mkdir()
        (folder / "bin" / "sbatch").write_text(SBATCH)
        (folder / "bin" / "sbatch").chmod(0o755)
        environment["PATH"] = f"{folder / 'bin'}{os.pathsep}{environment['PATH']}"
    tally = Tally()
    number = 0
    typical = 3.0
    while tally.kills < count:
        number += 1
        place = folder / f"e{number}" / "e.exp"
        place.parent.mkdir()
        words = [sys.executable, "-m", "ranksight", *program.measure(place, *(("--emit", "slurm") if batch else ()))]
        before: dict[str, list[float]] = {}
        for _ in range(6):
            _killed(words, place, batch, environment, dice.uniform(0, 1.2 * typical), dice.choice(SIGNALS), tally)
            program.ended(tally)
            try:
                now = complete(place) if (place / "experiment.json").exists() else {}
                for run in before:
                    if run not in now:
                        tally.lose(f"run {run} is gone")
                before = now
            except Exception as error:
                tally.lose(f"after a kill: {error}")
            if len(before) == 8 or tally.kills >= count:
                break
        begin = time.monotonic()
        _killed(words, place, batch, environment, None, signal.SIGKILL, tally)
        if not before:
            typical = time.monotonic() - begin
        program.ended(tally)
        if len(complete(place)) != 8:
            tally.lose(f"{8 - len(complete(place))} runs are missing when the same line was given again")
        tally.leave(strangers(place.parent, {"e.exp", "e.exp.jobs"}))
    return tally


def _killed(
    words: list[str],
    place: Path,
    batch: bool,
    environment: dict[str, str],
    after: float | None,
    number: signal.Signals,
    tally: Tally,
) -> None:
    """Run a campaign, and kill it, or with `batch` one of its tasks, so many seconds after it started."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if batch:
        subprocess.run(words, env=environment, check=True, **quiet)  # type: ignore[call-overload]
        words = ["sh", str(place.with_name("e.exp.jobs") / "submit.sh")]
        if not Path(words[1]).exists():
            words = ["sh", str(place.with_name("e.exp.jobs") / "gather.sh")]
    with subprocess.Popen(words, env=environment, start_new_session=True, **quiet) as process:  # type: ignore[call-overload]
        if after is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(after)
            targets = list(_tasks(process.pid)) if batch else [process.pid] if process.poll() is None else []
            for target in targets:
                with contextlib.suppress(OSError):
                    (os.killpg if batch else os.kill)(target, number)
            tally.kills += bool(targets)
        process.wait()


def _tasks(leader: int) -> Iterator[int]:
    """Sessions of the tasks that a batch system's stand-in runs: those of its children that lead one."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError, IndexError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = int(fields[1]), int(fields[3])
    for number, (parent, session) in parents.items():
        above = parent
        while above in parents and above != leader:
            above = parents[above][0]
        if above == leader and session == number:
            yield number
            return


if __name__ == "__main__":
    found = at_operations(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
    print(json.dumps({name: vars(tally) for name, tally in found.items()}))
