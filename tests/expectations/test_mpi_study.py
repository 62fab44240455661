"""The study of MPI libraries that ships as an example: what its benchmark writes, and that its expectations are read."""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ranksight.analysis.expectations.document import read_study
from ranksight.cli.main import main
from ranksight.core.experiment import read
from ranksight.model.spaces.rulers import terms

STUDY = Path(__file__).resolve().parents[2] / "examples" / "mpi_scalability"
TIMED = ["Barrier", "Bcast", "Reduce", "Allreduce", "Gather", "Allgather", "Alltoall", "Bcast_tree"]
WEIGHED = ["Comm_create", "Comm_dup", "Cart_create", "Win_create"]


def test_expectations_are_those_of_the_paper() -> None:
    study = read_study(STUDY / "expectations.toml")
    stated = {each.function: str(each.growth) for each in study.expectations}
    assert stated == {
        **dict.fromkeys(("Barrier", "Bcast", "Reduce", "Allreduce", "Bcast_tree", "MPI_memory"), "O(log p)"),
        **dict.fromkeys(("Gather", "Allgather", "Comm_create", "Win_create", "Cart_create"), "O(p)"),
        "Alltoall": "O(p log p)",
        "Comm_dup": "O(1)",
    }
    assert [rule.inequality.text for rule in study.rules] == [
        "Allreduce <= Reduce + Bcast",
        "Allgather <= Gather + Bcast",
    ]
    for each in study.expectations:
        assert len(terms(each.growth, ("p",), study.rulers)) == 26
        assert str(each.limit) == "O(p^0.5)"


def compile_with(compiler: str, folder: Path) -> Path:
    program = folder / "mpi_scalability"
    command = [compiler, "-O2", "-Wall", "-Werror", str(STUDY / "mpi_scalability.c"), "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program


@pytest.mark.mpi
def test_the_benchmark_times_and_weighs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_MCA_osc", "^ucx")
    program = compile_with("mpicc", tmp_path)
    out = tmp_path / "e"
    command = ["mpirun", "--oversubscribe", "-n", "{ranks}", str(program), "--repetitions", "8", "--warmups", "1"]
    assert main(["measure", "--ranks", "1,3", "--collector", "table", "--quiet", "-o", str(out), "--", *command]) == 0
    table = read(out).counters()
    for _, run in table.groupby("run", observed=True):
        values = run.set_index("kernel")
        assert list(values["time"].dropna().index) == TIMED
        assert (values.loc[TIMED, "time"] > 0).all()
        assert (values.loc[TIMED, "time"] < 10).all()
        # A communicator or window keeps something, and no megabytes, on one node.
        assert values.loc[WEIGHED, "memory_allocated"].between(64, 10e6).all()
        assert 1e5 < values.loc["MPI_memory", "memory_pss"] < 1e9


@pytest.mark.mpi
def test_the_benchmark_refuses_what_it_does_not_know(tmp_path: Path) -> None:
    program = compile_with("mpicc", tmp_path)
    for words in (["--size", "3"], ["--bytes"], ["--bytes", "-1"], ["--repetitions", "many"]):
        done = subprocess.run([str(program), *words], capture_output=True, text=True)
        assert done.returncode == 2
        assert "mpi_scalability" in done.stderr


@pytest.mark.skipif(shutil.which("smpicc") is None, reason="smpicc not found")
def test_simulated_times_repeat_to_the_digit(tmp_path: Path) -> None:
    program = compile_with("smpicc", tmp_path)
    shutil.copy(STUDY / "platform.xml", tmp_path)
    (tmp_path / "hosts").write_text("".join(f"node-{i}\n" for i in range(8)))
    command = ["smpirun", "-np", "8", "-platform", "platform.xml", "-hostfile", "hosts", "--log=root.thres:error"]
    command += ["--cfg=smpi/simulate-computation:no", str(program), "--repetitions", "2", "--warmups", "0"]
    environment = {name: value for name, value in os.environ.items() if name != "RANKSIGHT_TABLE"}
    told = [
        subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=True).stdout
        for _ in range(2)
    ]
    assert told[0] == told[1]
    rows = list(csv.DictReader(io.StringIO(told[0])))
    assert [row["kernel"] for row in rows] == TIMED
    times = {row["kernel"]: float(row["time"]) for row in rows}
    # Eight ranks, a binary tree of three levels, at most two messages a level one after another, 2 us each.
    assert 3 * 2e-6 <= times["Bcast_tree"] <= 6 * 6e-6
