"""Kills of commands at operations on files, and what is left then.

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
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.hostile.programs import Program, Tally, complete, strangers
from benchmarks.settings import ROOT

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


if __name__ == "__main__":
    found = at_operations(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
    print(json.dumps({name: vars(tally) for name, tally in found.items()}))
