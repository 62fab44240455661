"""The campaign against hostile inputs and kills, in small: the same inputs and the same kills each time."""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import safety
from benchmarks.hostile.mutating import GRAMMARS, mutated
from benchmarks.hostile.page import CHROMIUM, NAMES, show
from benchmarks.hostile.programs import Program, Tally, complete
from benchmarks.hostile.reading import read_inputs
from benchmarks.hostile.samples import experiment, make
from benchmarks.hostile.surroundings import CASES, Surroundings, no_room, surround
from benchmarks.settings import ROOT


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samples")
    make(folder, tracer=False)
    return folder


def test_hostile_inputs_are_read_or_refused(samples: Path) -> None:
    came = read_inputs(samples, range(400), "quick", jobs=2)
    assert came.found == []
    assert came.total() == 400
    assert 0 < came.total("refused") < came.total()
    drawn = {f"reader-{name}" for name in ("callgrind", "caliper", "extrap", "perf-stat", "tau", "vtune")}
    assert drawn | {"experiment", "expectations", "model", "platform", "table"} <= set(came.counts)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["experiment", "expectations", "line", "model", "platform", "project", "table"])
def test_what_is_changed_is_accepted_as_it_is(kind: str, samples: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "benchmarks.hostile.worker", str(samples), kind]
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=240, check=True)
    came = [json.loads(line) for line in done.stdout.splitlines()]
    assert {each["sample"] for each in came} == {path.name for path in (samples / kind).iterdir()}
    assert {each["sample"]: each["came"] for each in came if each["came"] != "read"} == {}


def test_changes_are_those_of_their_seed_and_of_every_grammar(samples: Path) -> None:
    used = set()
    contents = {str(file): file.read_bytes() for file in sorted(samples.rglob("*")) if file.is_file()}
    for name, content in list(contents.items()):
        if zipfile.is_zipfile(io.BytesIO(content)):
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                contents |= {f"{name} {part}": archive.read(part) for part in archive.namelist()}
    for name, content in contents.items():
        used |= {way for accepts, way in GRAMMARS if accepts(content)}
        made = [mutated(content, random.Random(f"{Path(name).name} {seed}")) for seed in (0, 0, 1, 2, 3, 4)]
        assert made[0] == made[1]
        assert len(set(made)) > 2
    assert used == {way for _, way in GRAMMARS}


def test_kills_at_operations_on_files_lose_and_leave_nothing(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "benchmarks.hostile.kills", str(tmp_path / "k"), "8", "tests"]
    paths = os.pathsep.join([str(ROOT.parent), str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]
    tallies = {name: Tally(**of) for name, of in json.loads(done.stdout).items()}
    assert set(tallies) == {"fit -o", "report -o", "import -o", "join", "export -o", "calibrate -o", "measure"}
    # An operation may not come: a campaign goes on where it was killed, and caches are written once.
    assert sum(tally.kills for tally in tallies.values()) >= 3
    for tally in tallies.values():
        assert tally.found == []


def test_commands_end_in_a_line_where_something_around_them_goes_wrong(tmp_path: Path) -> None:
    done, _, found = surround(tmp_path / "s", (no_room,))
    assert found == []
    assert done >= 1


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_surrounding(tmp_path: Path) -> None:
    _, _, found = surround(tmp_path / "s", tuple(set(CASES) - {no_room}))
    assert found == []


def test_what_a_command_leaves_is_seen(tmp_path: Path) -> None:
    case = Surroundings(tmp_path / "s")
    (case.place / "m.json").write_text("{}")
    (case.place / ".m.json.0123abcd").write_text("")
    case.judge("fit", 1, case.place / "m.json")
    (case.folder / "owned").write_text("")
    case.nothing_ran("a name")
    assert case.found == [
        "fit ends with 1 and leaves m.json",
        "fit leaves .m.json.0123abcd",
        "a name: what a name or a file holds was run",
    ]


@pytest.mark.slow
def test_many_hostile_inputs(samples: Path) -> None:
    came = read_inputs(samples, range(2000), "ci", jobs=2)
    assert came.found == []


def test_kills_go_on_where_they_were_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[str, int]] = []

    def killer(name: str, most: int) -> Callable[[Path, int, str], dict[str, Tally]]:
        def kill(folder: Path, count: int, seed: str) -> dict[str, Tally]:
            if len(done) == most:
                raise KeyboardInterrupt
            done.append((name, count))
            return {name: Tally(kills=count)}

        kill.__name__ = name
        return kill

    for most in (4, 99):
        for name in ("_operations", "_campaigns", "_tasks"):
            monkeypatch.setattr(safety, name, killer(name, most))
        with pytest.raises(KeyboardInterrupt) if most == 4 else nullcontext():
            tallies = safety.kills(tmp_path, 100, "s", tmp_path)
    assert {name: tally.kills for name, tally in tallies.items()} == {"_operations": 50, "_campaigns": 34, "_tasks": 16}
    assert sum(count for _, count in done) == 100  # none twice
    assert max(count for name, count in done if name != "_operations") == safety.AT_ONCE


def test_a_run_of_other_times_is_a_loss(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has the times"):
        complete(experiment(tmp_path / "e.exp"))
    assert complete(tmp_path / "none") == {}


def test_processes_that_go_on_are_seen(tmp_path: Path) -> None:
    program = Program(tmp_path, 60.0)
    with subprocess.Popen([str(program.path), "1", "2"]) as process:
        while len(program.running()) < 2:
            assert process.poll() is None
        found = program.running()
        assert process.pid in found
        for number in found:
            os.kill(number, 9)
    limit = time.monotonic() + 20
    while program.running() and time.monotonic() < limit:
        time.sleep(0.05)
    assert program.running() == []


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium is found")
def test_hostile_names_do_nothing_in_a_browser(tmp_path: Path) -> None:
    assert show(tmp_path / "page", NAMES[::17]) == (0, 0, [])
