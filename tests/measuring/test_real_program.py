"""Campaigns on the bundled MPI program: a rank that crashes, a campaign that is killed, tools that are missing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ranksight.cli.main import main
from ranksight.core.experiment import WHOLE, read
from ranksight.examples.build import build

pytestmark = pytest.mark.mpi


@pytest.fixture(autouse=True)
def allow_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
    monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")


@pytest.fixture(scope="module")
def heat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("heat", tmp_path_factory.mktemp("heat"))


def line(heat: Path, folder: Path, *program: str, ranks: str = "1,2", collector: str = "pmpi") -> list[str]:
    return [
        *("measure", "--ranks", ranks, "--size", "6", "--collector", collector, "-o", str(folder), "--"),
        *("mpirun", "--oversubscribe", "-n", "{ranks}", str(heat), "--n", "{size}", "--steps", "1", *program),
    ]


def test_messages_of_a_real_program(heat: Path, tmp_path: Path) -> None:
    assert main(line(heat, tmp_path / "e")) == 0
    experiment = read(tmp_path / "e")
    table = experiment.counters(["messages", "bytes_sent", "compute_cpu_time"])
    whole = table[(table["kernel"] == WHOLE) & table["run"].str.startswith("ranks2")]
    assert len(whole) == 2
    assert (whole["compute_cpu_time"] > 0).all()
    sent = experiment.messages(experiment.runs[1:])
    halo = sent[(sent["kernel"] == "exchange_halo") & (sent["operation"] == "Isend")]
    assert (halo["count"] == 26).all(), "25 iterations and the first residual, one neighbour"
    assert (halo["bytes"] == 26 * 36 * 8).all()


def test_a_rank_that_crashes(heat: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(line(heat, tmp_path / "e", "--crash", "1", ranks="2")) == 1
    error = capfd.readouterr().err
    assert f"mpirun --oversubscribe -n 2 {heat}" in error
    assert "exited with status" in error or "was killed" in error
    assert "Traceback" not in error
    assert "signal" in error.lower(), "the launcher's last lines are shown"
    assert len(read(tmp_path / "e")) == 0
    assert (tmp_path / "e" / "failed").is_dir()


def test_a_campaign_that_is_killed_goes_on(heat: Path, tmp_path: Path) -> None:
    words = line(heat, tmp_path / "e", ranks="1,2,3,4")
    process = subprocess.Popen(
        [sys.executable, "-m", "ranksight", *words], stdout=subprocess.PIPE, start_new_session=True
    )
    runs = tmp_path / "e" / "runs"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not (runs.is_dir() and [r for r in runs.iterdir() if r.name[0] != "."]):
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    before = {run.id: (runs / run.id / "run.json").stat().st_mtime_ns for run in read(tmp_path / "e").runs}
    assert before
    assert main(words) == 0
    after = read(tmp_path / "e")
    assert len(after) == 4
    assert all((runs / name).joinpath("run.json").stat().st_mtime_ns == at for name, at in before.items())
    assert not [entry for entry in (tmp_path / "e").iterdir() if entry.name.startswith(".pass")]


def test_without_the_compiler_of_mpi(
    heat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    for tool in ("mpirun", "sh", "env"):
        found = shutil.which(tool)
        assert found is not None
        (bare / tool).symlink_to(found)
    monkeypatch.setenv("PATH", str(bare))
    assert main(line(heat, tmp_path / "e")) == 1
    error = capsys.readouterr().err
    assert "no mpicc is found" in error
    assert "pip install 'ranksight[mpi]'" in error
    assert main(["measure", "--ranks", "1", "-o", str(tmp_path / "e"), "--", "mpirun", "-n", "{ranks}", str(heat)]) == 1
    error = capsys.readouterr().err
    assert "no collector works here" in error
    assert "valgrind" in error
    assert error.count("\n") == 1


def test_without_mpi(
    heat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(line(heat, tmp_path / "e")) == 1
    assert "the launcher mpirun is not found" in capsys.readouterr().err
    assert not (tmp_path / "e").exists()
