"""Campaigns that are killed or hung up leave nothing running, and the next one measures alone."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ranksight.campaign import supervising
from ranksight.campaign.collecting import Step
from ranksight.campaign.measuring import RECORD, execute
from ranksight.core.errors import InputError, ToolError
from ranksight.core.experiment import Experiment

CAMPAIGN = """
import sys
import pandas as pd
from ranksight.cli.main import main
from ranksight.campaign.collecting import COLLECTORS, Availability, Step
from ranksight.core.reading import Reading

class Plain:
    text, deterministic, default = "", False, False
    def available(self):
        return Availability(True)
    def steps(self, launch, folder):
        return [Step(launch.command)]
    def collect(self, launch, folder):
        return Reading(counters=pd.DataFrame({"kernel": ["main"], "rank": [0], "visits": [1.0]}))

COLLECTORS.register("plain")(Plain())
sys.exit(main(sys.argv[1:]))
"""
# Ignores all that asks it to end, and starts one child in a group and one in a session of its own.
PROGRAM = """#!{python}
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
for leave in (os.setpgrp, os.setsid):
    if os.fork() == 0:
        leave()
        break
open("{place}/" + str(os.getpid()), "w").close()
if os.path.exists("{place}/quick"):
    sys.exit(0)
time.sleep(60)
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Where processes of the program leave their numbers; what the test did not end is ended."""
    folder = tmp_path / "numbers"
    folder.mkdir()
    yield folder
    for number in running(folder):
        os.kill(number, signal.SIGKILL)


@pytest.fixture
def program(tmp_path: Path, place: Path) -> Path:
    file = tmp_path / "program"
    file.write_text(PROGRAM.format(python=sys.executable, place=place))
    file.chmod(0o755)
    return file


def running(place: Path) -> list[int]:
    numbers = [int(file.name) for file in place.iterdir() if file.name.isdecimal()]
    return [number for number in numbers if number in supervising._processes()]


def wait_until(what: object, seconds: float = 15.0) -> bool:
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if what():  # type: ignore[operator]
            return True
        time.sleep(0.02)
    return False


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A supervisor that waits for a fifth of a second in place of five."""
    copy = tmp_path / "supervising.py"
    text = Path(supervising.__file__).read_text()
    copy.write_text(text.replace("PATIENCE = 5.0", "PATIENCE = 0.2"))
    assert copy.read_text() != text
    monkeypatch.setattr(supervising, "__file__", str(copy))


def campaign(tmp_path: Path, *command: str) -> subprocess.Popen[bytes]:
    copy = str(tmp_path / "supervising.py")
    patch = f"from ranksight.campaign import supervising\nsupervising.__file__ = {copy!r}\n"
    words = ["measure", "--ranks", "2", "--collector", "plain", "--quiet", "-o", str(tmp_path / "e"), "--", *command]
    return subprocess.Popen(
        [sys.executable, "-c", patch + CAMPAIGN, *words], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGKILL])
def test_nothing_runs_on(tmp_path: Path, program: Path, place: Path, number: signal.Signals) -> None:
    inherited = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup has tests ignore it
    try:
        process = campaign(tmp_path, str(program), "{ranks}")
    finally:
        signal.signal(signal.SIGHUP, inherited)
    with process:
        assert wait_until(lambda: len(running(place)) == 3)
        process.send_signal(number)
        process.wait(15)
    assert process.returncode == (-number if number == signal.SIGKILL else 130)
    if number == signal.SIGKILL:
        assert list((tmp_path / "e").glob(f".pass-*/{RECORD}"))
        assert wait_until(lambda: not running(place), 5)
        (place / "quick").touch()
        with campaign(tmp_path, str(program), "{ranks}") as process:
            assert process.wait(30) == 0
    assert not running(place)
    assert not list((tmp_path / "e").glob(".pass-*"))


def test_what_nohup_ignores_stays_ignored(tmp_path: Path, program: Path, place: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = campaign(tmp_path, str(program), "{ranks}")
    finally:
        signal.signal(signal.SIGHUP, before)
    with process:
        assert wait_until(lambda: len(running(place)) == 3)
        process.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 130


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="no mpirun")
def test_ranks_of_a_launcher_end(tmp_path: Path, place: Path) -> None:
    script = tmp_path / "rank"
    script.write_text(f'#!/bin/sh\n: > "{place}/$$"\nexec sleep 60\n')
    script.chmod(0o755)
    with campaign(tmp_path, "mpirun", "--oversubscribe", "-n", "{ranks}", str(script)) as process:
        assert wait_until(lambda: len(running(place)) == 2)
        process.kill()
        process.wait()
    assert wait_until(lambda: not running(place))


def test_the_next_campaign_ends_or_names_what_is_left(tmp_path: Path, program: Path, place: Path) -> None:
    with campaign(tmp_path, str(program), "{ranks}") as process:
        assert wait_until(lambda: len(running(place)) == 3)
        (record,) = (tmp_path / "e").glob(f".pass-*/{RECORD}")
        leader = int(record.read_text().split()[2])
        os.kill(leader, signal.SIGSTOP)  # so that it sees nothing until it is killed, too
        process.kill()
        process.wait()
        os.kill(leader, signal.SIGKILL)
    assert wait_until(lambda: leader not in supervising._processes())
    assert len(running(place)) == 3
    with campaign(tmp_path, str(program), "{ranks}") as process:
        _, error = process.communicate(timeout=30)
    assert process.returncode == 1
    assert b"left processes running" in error
    assert error.count(b"\n") == 1
    assert all(str(number).encode() in error for number in running(place))


def test_a_number_that_is_anothers_by_now_is_left_alone(tmp_path: Path) -> None:
    record = tmp_path / "pass" / RECORD
    record.parent.mkdir()
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as other:
        start = supervising._processes()[other.pid][2]
        host, boot = os.uname().nodename, supervising._boot()
        for line in (
            f"{host} {boot} {other.pid} {start - 1} -",
            f"{host} other {other.pid} {start} -",
            "",
            "a b c d e",
        ):
            record.write_text(line)
            supervising.end_left(record)
            assert other.poll() is None
        record.write_text(f"elsewhere {boot} {other.pid} {start} SLURM_JOB_ID")
        supervising.end_left(record)
        record.write_text(f"elsewhere {boot} {other.pid} {start} -")
        with pytest.raises(InputError, match="may still be running at elsewhere"):
            supervising.end_left(record)
        assert other.poll() is None
        record.write_text(f"{host} {boot} {other.pid} {start} -")
        supervising.end_left(record)
        assert other.wait(5) == -signal.SIGTERM


def test_a_supervisor_that_is_killed_takes_the_run_along(tmp_path: Path, program: Path, place: Path) -> None:
    script = tmp_path / "killer"
    script.write_text(f'#!/bin/sh\n: > "{place}/$$"\nkill -KILL $PPID\nexec sleep 60\n')
    script.chmod(0o755)
    with pytest.raises(ToolError, match="SIGKILL"):
        execute(Step((str(script),)), tmp_path / "out", None)
    assert wait_until(lambda: not running(place), 2)


def test_a_program_sees_what_it_would_see_alone(tmp_path: Path) -> None:
    text = (
        "import os, sys\n"
        "assert sys.stdin.read() == ''\n"
        "print(sorted(os.listdir('/proc/self/fd')), os.environ['ADDED'])\n"
    )
    seconds = execute(Step((sys.executable, "-c", text), {"ADDED": "yes"}), tmp_path / "out", 30)
    said = (tmp_path / "out").read_text()
    assert "yes" in said
    assert "['0', '1', '2', '3'] yes" in said
    assert 0 < seconds < 30
    with pytest.raises(ToolError, match="cannot be started: No such file"):
        execute(Step((str(tmp_path / "none"),)), tmp_path / "out", None)
    with pytest.raises(ToolError, match="exited with status 3"):
        execute(Step(("sh", "-c", "exit 3")), tmp_path / "out", None)
    ask = ("sh", "-c", "grep -E 'Sig(Blk|Ign|Cgt)' /proc/self/status")
    plain = subprocess.run(ask, capture_output=True, text=True, check=True).stdout
    execute(Step(ask), tmp_path / "out", None)
    # posix_spawn ignores signals 32 and 33, which the C library keeps for itself.
    assert [int(word, 16) & 0x7FFFFFFF for word in (tmp_path / "out").read_text().split()[1::2]] == [
        int(word, 16) & 0x7FFFFFFF for word in plain.split()[1::2]
    ]


def test_a_run_on_another_host_keeps_the_next_from_starting(tmp_path: Path, program: Path, place: Path) -> None:
    left = Experiment.create(tmp_path / "e", "x", ["ranks"]).path / ".pass-old"
    left.mkdir()
    (left / RECORD).write_text("elsewhere boot 1 1 -")
    with campaign(tmp_path, str(program), "{ranks}") as process:
        _, error = process.communicate(timeout=30)
    assert process.returncode == 1
    assert f"see to it there, then remove {left}" in error.decode()
    assert left.is_dir()
