"""The demonstration from end to end, with and without the planted bug."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.core.experiment import read
from ranksight.model.fitted_model import Model
from ranksight.model.resource.equation import LEVELS
from ranksight.model.structure.levels import COUNTS

OWN = (
    "apply_operator",
    "dot_product",
    "axpy",
    "xpby",
    "material_law",
    "table_lookup",
    "pack_halo",
    "unpack_halo",
    "exchange_halo",
)
SAMPLED = {"branches", "flops", "flops_dp", "flops_sp"}
"""By perf, where the processor's counters can be reached; a program this short is met by few samples."""


def demo(*words: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **({} if path is None else {"PATH": path})}
    return subprocess.run(
        [sys.executable, "-m", "ranksight", "demo", *words],
        capture_output=True,
        text=True,
        env=environment,
        timeout=1200,
    )


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.valgrind
@pytest.mark.timeout(1300)
def test_prediction_and_runs_agree(tmp_path: Path) -> None:
    done = demo("--quick", "-o", str(tmp_path / "d"))
    assert done.returncode == 0, done.stderr[-2000:]
    folder = tmp_path / "d"
    assert (folder / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / "demo.svg").read_text()[:1000]
    assert len(read(folder / "experiment")) >= 16
    assert Model.load(folder / "heat.model.json").parameters == ("ranks", "size")
    check = pd.read_csv(folder / "check.csv")
    counts = check[check["kernel"].isin(OWN) & check["metric"].isin(COUNTS - set(LEVELS) - SAMPLED)]
    assert {(16, 8), (2, 32)} <= set(zip(counts["ranks"], counts["size"], strict=True))
    assert len(counts) > 40
    assert counts["error"].abs().max() < 0.05
    assert counts["error"].abs().median() < 0.01
    assert (counts["status"] == "ok").all()
    assert "No kernel grows with the number of ranks" in done.stdout or "No time per function" in done.stdout
    assert str(folder) in done.stdout
    again = demo("--quick", "-o", str(folder))
    assert again.returncode == 1
    assert "exists already" in again.stderr


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.valgrind
@pytest.mark.perf
@pytest.mark.timeout(1300)
def test_the_planted_bug_is_named(tmp_path: Path) -> None:
    done = demo("--quick", "--bug", "--quiet", "-o", str(tmp_path / "d"))
    assert done.returncode == 0, done.stderr[-2000:]
    # The largest kernels are those where the data suffice, which may be few ranks; growth is named far beyond.
    ranking = done.stdout[done.stdout.index("Largest kernels at") :]
    # The line of each kernel that grows, words apart by one space.
    lines = " ".join(ranking.split()).split("Grows with the number of ranks: ")[1:]
    growing = {line.split(",")[0]: line for line in lines}
    planted = re.search(r"(\d+) times as long at 1024; .* \* ranks", growing.pop("find_neighbour"))
    assert planted is not None
    assert float(planted[1]) > 100
    # Kernels that wait for messages may grow, too, as loaded as two cores make the machine measured on.
    assert all("communication-bound" in line for line in growing.values())


@pytest.mark.slow
@pytest.mark.mpi
@pytest.mark.timeout(1300)
def test_a_machine_without_valgrind_and_perf_still_gets_its_demo(tmp_path: Path) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for tool in Path(folder).iterdir() if Path(folder).is_dir() else ():
            if tool.name not in ("valgrind", "perf", "callgrind_control") and not (bare / tool.name).exists():
                (bare / tool.name).symlink_to(tool)
    assert shutil.which("valgrind", path=str(bare)) is None
    done = demo("--quick", "-o", str(tmp_path / "d"), path=str(bare))
    assert done.returncode == 0, done.stderr[-2000:]
    assert "without callgrind: valgrind" in done.stdout
    assert "without perf-clock" in done.stdout
    assert "messages" in done.stdout
    check = pd.read_csv(tmp_path / "d" / "check.csv")
    messages = check[(check["kernel"] == "exchange_halo") & (check["metric"] == "messages")]
    assert set(zip(messages["ranks"], messages["size"], strict=True)) == {(2, 32), (16, 8), (16, 16)}
    assert messages["error"].abs().max() < 0.01


def test_what_cannot_be_is_said_before_anything_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    assert main(["demo", "-o", str(tmp_path / "mine"), "--force"]) == 1
    assert "exists already" in capsys.readouterr().err
    assert (tmp_path / "mine" / "thesis.tex").read_text() == "years of work"
    assert main(["demo", "-o", str(tmp_path / "d"), "--platform", "cray-1"]) == 1
    assert "cray-1" in capsys.readouterr().err
    assert not (tmp_path / "d").exists()


def test_without_mpi_the_demo_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert main(["demo", "-o", str(tmp_path / "d")]) == 1
    error = capsys.readouterr().err
    assert "no mpirun is found" in error
    assert "pip install 'ranksight[mpi]'" in error
    assert not (tmp_path / "d").exists()
