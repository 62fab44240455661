"""Kills of campaigns, and of the tasks of their jobs, at any time, and what is left then."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.hostile.programs import Program, Tally, complete, strangers
from benchmarks.settings import ROOT

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
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
