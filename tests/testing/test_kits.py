"""The conformance kits: what ships passes them, what breaks a contract does not; the examples of extending.md run."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ranksight.campaign.collecting import COLLECTORS, Availability, Step
from ranksight.campaign.launching import Launch, Template
from ranksight.cli.main import main
from ranksight.comm.costs.collective import COLLECTIVES
from ranksight.core.errors import InputError, ToolError
from ranksight.core.experiment import Experiment, Run
from ranksight.core.reading import READERS, Reading
from ranksight.core.testing import check_collector, check_law, check_platform, check_reader
from ranksight.model.laws.law import LAWS
from ranksight.model.spaces import SPACES
from ranksight.platforms import load, names

EXTENDING = Path(__file__).resolve().parents[2] / "docs" / "extending.md"


@pytest.mark.parametrize("name", list(COLLECTORS))
def test_collectors_that_ship_keep_their_contract(name: str) -> None:
    check_collector(COLLECTORS[name])


@pytest.mark.parametrize("name", names())
def test_platforms_that_ship_are_whole(name: str) -> None:
    check_platform(name)


def test_a_platform_without_sources_does_not_pass(tmp_path: Path) -> None:
    whole = load("generic")
    with pytest.raises(AssertionError, match="no source is given for topology.sockets"):
        check_platform(replace(whole, sources={k: v for k, v in whole.sources.items() if k != "topology.sockets"}))
    (tmp_path / "bad.toml").write_text("schema = 1\n")
    with pytest.raises(AssertionError, match=r"bad\.toml"):
        check_platform(tmp_path / "bad.toml")


class Lines:
    """A reader of kernel,seconds; `fault` is what it does wrong."""

    text = "kernel,seconds"

    def __init__(self, fault: str = "") -> None:
        self.fault, self.count = fault, 0

    def recognises(self, path: Path, head: bytes) -> bool:
        return head.startswith(b"# lines") or self.fault == "all"

    def read(self, path: Path) -> Iterator[Reading]:
        self.count += 1
        text = path.read_text(errors="replace").splitlines()
        if not text or not text[0].startswith("# lines") or len(text) < 2:
            raise InputError(f"{'a file' if self.fault == 'nameless' else path} holds no lines")
        rows = []
        for line in text[1:]:
            kernel, _, seconds = line.rpartition(",")
            try:
                rows.append({"kernel": kernel or "?", "rank": 0, "time": float(seconds)})
            except ValueError:
                if self.fault == "raises":
                    raise
                raise InputError(f"{path}: {line!r} is not a kernel and seconds") from None
        table = pd.DataFrame(rows).drop_duplicates("kernel")
        lost = table["kernel"][table["time"].isna()].tolist()
        notes = tuple(f"time of {kernel} is nan" for kernel in lost) if self.fault != "silent" else ()
        if self.fault == "unnamed":
            notes = tuple("a value is missing" for _ in lost)
        if self.fault == "twice":
            table = pd.concat([table, table])
        if self.fault == "changing":
            table["time"] += self.count
        if self.fault == "columns":
            table = table.drop(columns="rank")
        provenance = {} if self.fault == "provenance" else {"time": "measured"}
        yield Reading(counters=table, provenance=provenance, notes=notes)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("", ""),
        ("all", "recognises is not False"),
        ("nameless", "does not name"),
        ("raises", "raises ValueError, not InputError"),
        ("twice", "a kernel comes twice on a rank"),
        ("changing", "reading twice gives other readings"),
        ("columns", "lack the column rank"),
        ("provenance", "no provenance is given for time"),
        ("silent", r"time of kernel\d+ on rank 0 is dropped without a note"),
        ("unnamed", r"no note names time of kernel\d+ on rank 0: a value is missing"),
    ],
)
def test_the_kit_of_readers_finds_faults(tmp_path: Path, fault: str, message: str) -> None:
    sample = tmp_path / "sample.lines"
    sample.write_text("# lines\n" + "".join(f"kernel{k},{k}.5\n" for k in range(40)))
    if not message:
        check_reader(Lines(), sample)
        return
    with pytest.raises((AssertionError, InputError), match=message):
        check_reader(Lines(fault), sample)


class Counting:
    """A collector of nothing; `fault` is what it does wrong."""

    text, deterministic, default = "nothing", True, False

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    def available(self) -> Availability:
        return Availability(False, "no such tool") if self.fault == "remedy" else Availability(True)

    def steps(self, launch: Launch, folder: Path) -> Sequence[Step]:
        command = ("echo", "hello") if self.fault == "program" else launch.command
        return [] if self.fault == "none" else [Step(command)]

    def collect(self, launch: Launch, folder: Path) -> Reading:
        if not (folder / "output-0.txt").exists() and self.fault != "empty":
            if self.fault == "raises":
                raise KeyError("output")
            raise ToolError("no output")
        table = pd.DataFrame({"kernel": ["a"], "rank": [0], "visits": [-1.0 if self.fault == "values" else 1.0]})
        return Reading(launch.configuration, table, provenance={} if self.fault == "provenance" else {"visits": "m"})


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("", ""),
        ("remedy", "says why, and what would help"),
        ("program", "does not end with"),
        ("none", "one execution at least"),
        ("empty", "an empty folder raises no error"),
        ("raises", "raises KeyError"),
        ("values", "-1 of visits"),
        ("provenance", "no provenance is given for visits"),
    ],
)
def test_the_kit_of_collectors_finds_faults(fault: str, message: str) -> None:
    launch = Template(("/bin/echo", "{ranks}")).fill({"ranks": 1})
    if not message:
        check_collector(Counting(), launch)
        return
    with pytest.raises(AssertionError, match=message):
        check_collector(Counting(fault), launch)


@pytest.fixture
def examples(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the examples of extending.md define; what they register is forgotten after the test."""
    for registry in (READERS, COLLECTORS, SPACES, COLLECTIVES, LAWS):
        list(registry)
        monkeypatch.setattr(registry, "_items", dict(registry._items))
    module = ModuleType("examples")
    monkeypatch.setitem(sys.modules, "examples", module)
    found: dict[str, Any] = module.__dict__
    for code in re.findall(r"```python\n(.*?)```", EXTENDING.read_text(), re.DOTALL):
        exec(compile(code, str(EXTENDING), "exec"), found)
    return found


def test_the_example_of_a_reader_runs(
    examples: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = tmp_path / "tests" / "data" / "sample.mytool"
    sample.parent.mkdir(parents=True)
    sample.write_text("# mytool 1\nsolve,1.5\nhalo,0.5\n")
    monkeypatch.chdir(tmp_path)
    examples["test_my_reader"]()
    assert main(["import", "mytool", str(sample), "--set", "ranks=4", "-o", "a.exp", "-q"]) == 0
    table = Experiment.read(tmp_path / "a.exp").counters().set_index("kernel")
    assert table["time"].to_dict() == {"solve": 1.5, "halo": 0.5}


def test_the_example_of_a_collector_runs(
    examples: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_collector(COLLECTORS["wall-clock"], Template(("/bin/sleep", "0.01")).fill({"ranks": 1}))
    (tmp_path / "launch").write_text(
        '#!/bin/sh\nshift 2\nPMI_RANK=0 "$@" && SLURM_PROCID=9 OMPI_COMM_WORLD_RANK=1 "$@"\n'
    )
    (tmp_path / "mpirun").symlink_to("launch")
    (tmp_path / "launch").chmod(0o755)
    shutil.copy("/bin/true", tmp_path / "heat")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.chdir(tmp_path)
    examples["test_my_collector"]()


def test_the_examples_of_a_space_and_a_collective_run(examples: dict[str, Any]) -> None:
    assert "surfaces" in SPACES
    assert "bcast/flat" in COLLECTIVES


def test_the_example_of_a_law_runs(examples: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Experiment.create(tmp_path / "tests" / "data" / "sample.exp", "serial", ["ranks"])
    for p in (1, 2, 4, 8, 16):
        made.add(Run({"ranks": float(p)}, 0, "timer"), pd.DataFrame({"kernel": ["a"], "rank": -1, "time": 1 + 9 / p}))
    monkeypatch.chdir(tmp_path)
    examples["test_my_law"]()
    found = check_law("Amdahl", made)
    assert np.exp(found.time.centre[0, -1]) == pytest.approx(1 + 9 / 256)
