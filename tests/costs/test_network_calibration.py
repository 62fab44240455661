"""Measuring a network with the ping-pong program."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ranksight.cli import main
from ranksight.comm import calibration
from ranksight.comm.calibration import calibrate_network, check_launcher, parse
from ranksight.comm.costs.cost import cost
from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.network import NetworkParameters
from ranksight.comm.tracer.building import Compiler
from ranksight.core.errors import InputError, ToolError
from ranksight.core.linking import mpi_of_launcher
from ranksight.platforms import load, save


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """Open MPI refuses to be run by root without these."""
    if os.geteuid() == 0:
        monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT", "1")
        monkeypatch.setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")


@pytest.mark.mpi
@pytest.mark.usefixtures("as_root")
def test_two_ranks_on_one_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = calibrate_network(("mpirun", "--oversubscribe", "-n", "2"), seconds=0.2, largest=4096)
    assert found.level == "intra"
    assert found.hosts[0] == found.hosts[1]
    assert set(found.timings["op"]) == {"pingpong", "isend", "send", "recv", "gap", "reduce"}
    assert found.timings["bytes"].max() == 4096
    assert (found.timings["duration"] > 0).all()
    small, large = found.parameters.transfer([1, 4096])
    # Between a memory access and a millisecond, on any machine and under any load of others.
    assert 1e-8 < small <= large * 1.01
    assert found.parameters.latency is None or found.parameters.latency > 0
    assert NetworkParameters.from_dict(found.parameters.to_dict()) == found.parameters
    assert not list(tmp_path.iterdir())


@pytest.mark.mpi
@pytest.mark.usefixtures("as_root")
def test_another_number_of_ranks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="3 ranks"):
        calibrate_network(("mpirun", "--oversubscribe", "-n", "3"), seconds=0.5, largest=64)


def test_existing_timings_complete_a_platform_file(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    save(load("zen4"), tmp_path / "mine.toml")
    files = sorted((shared / "data" / "network").glob("taurus*.csv"))
    line = ["calibrate", "-o", "mine.toml", "--network"]
    assert main([*line, *(word for file in files for word in ("--timings", str(file)))]) == 0
    printed = capsys.readouterr().out
    assert "between nodes" in printed
    assert "g is not identifiable" in printed
    fabric = Fabric.from_dict(load(str(tmp_path / "mine.toml")).network, 2)
    assert fabric.far.eager_limit == 65536
    assert main(["import", "pingpong", str(files[1]), "-o", "imported", "--quiet"]) == 0
    assert main([*line[:-1], "--level", "intra", "--timings", "imported", "--quiet"]) == 0
    assert set(load(str(tmp_path / "mine.toml")).network) == {"inter", "intra"}


def launcher(folder: Path, text: str) -> str:
    path = folder / "mpirun"
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.parametrize(
    ("said", "family", "release"),
    [
        ("mpirun (Open MPI) 5.0.11\n\nReport bugs to", "Open MPI", "5.0"),
        ("HYDRA build details:\n    Version:                                 4.0.2\n", "MPICH", "4.0"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.9 Build 20230307", "Intel MPI", "2021.9"),
        ("slurm 23.02.6", "", ""),
    ],
)
def test_launchers_say_what_they_belong_to(tmp_path: Path, said: str, family: str, release: str) -> None:
    assert mpi_of_launcher(launcher(tmp_path, said)) == (family, release)


def test_a_compiler_of_another_mpi_is_refused_before_running(tmp_path: Path) -> None:
    hydra = launcher(tmp_path, "HYDRA build details:\n    Version:    4.0.2\n")
    with pytest.raises(ToolError, match=r"Open MPI 5\.0.*MPICH 4\.0"):
        check_launcher(Compiler("mpicc", "", "", "Open MPI", "5.0"), [hydra])
    check_launcher(Compiler("mpicc", "", "", "MPICH", "3.4"), [hydra])
    check_launcher(Compiler("mpicc", "", "", "", ""), [hydra])
    open_mpi = launcher(tmp_path, "mpirun (Open MPI) 4.1.4\n")
    with pytest.raises(ToolError, match=r"5\.0.*4\.1"):
        check_launcher(Compiler("mpicc", "", "", "Open MPI", "5.0"), [open_mpi])
    check_launcher(Compiler("mpicc", "", "", "Open MPI", "4.0"), [open_mpi])
    with pytest.raises(ToolError, match="not found"):
        check_launcher(Compiler("mpicc", "", "", "Open MPI", "4.0"), ["no-such-launcher"])


def test_two_programs_of_one_rank_are_distinguished_from_one_of_two() -> None:
    with pytest.raises(InputError, match="2 programs of 1 rank") as caught:
        parse("@#ranks 1\n@#ranks 1\n", "mpirun -n 2")
    assert "different MPIs" in caught.value.remedy
    with pytest.raises(ToolError, match="ended before"):
        parse("@#ranks 2\n@pingpong,8,1e-6\n", "mpirun -n 2")
    with pytest.raises(ToolError, match="mixed up"):
        parse("@#ranks 2\n@pingpong,8,1e-6@pingpong\n", "mpirun -n 2")


def test_senseless_arguments_are_refused() -> None:
    for words, seconds, largest in (((), 5, 64), (("mpirun",), 0, 64), (("mpirun",), float("nan"), 64), (("a",), 5, 1)):
        with pytest.raises(InputError):
            calibrate_network(words, seconds, largest)


@pytest.mark.mpi
@pytest.mark.usefixtures("as_root")
def test_the_verb_completes_a_platform_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    save(load("zen4"), tmp_path / "mine.toml")
    line = ["calibrate", "--quiet", "-o", "mine.toml", "--network", "--seconds", "0.2", "--largest", "64"]
    two = ["--", "mpirun", "--oversubscribe", "-n", "2"]
    assert main([*line, *two]) == 0
    described = load(str(tmp_path / "mine.toml"))
    assert described.caches == load("zen4").caches
    fabric = Fabric.from_dict(described.network, 2, "mine.toml: network")
    assert fabric.near.library.startswith(("Open MPI", "MPICH", "Intel", "MVAPICH"))
    assert cost("allreduce", 2, 8.0, fabric) > 0
    assert main([*line, *two]) == 1
    assert "[network.intra] already" in capsys.readouterr().err
    assert main(["calibrate", "--network"]) == 2


def test_a_launcher_that_takes_too_long_may_tidy_up(tmp_path: Path) -> None:
    tidied = tmp_path / "tidied"
    slow = f"trap 'touch {tidied}; exit 1' TERM; sleep 60 & wait"
    with pytest.raises(ToolError, match="was not done after 1 s"):
        calibration._run(["sh", "-c", slow], 1.0)
    assert tidied.exists()
