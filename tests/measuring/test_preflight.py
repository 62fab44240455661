"""Commands that would fail, or succeed and be wrong, are refused before the first run, whatever collects."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ranksight.campaign import preflight
from ranksight.campaign.launching import Launch
from ranksight.campaign.measuring import RECORD
from ranksight.cli.main import main
from ranksight.core.errors import InputError, ToolError
from ranksight.core.experiment import Experiment, read
from ranksight.core.linking import family_of_library, start_each_other

# Starts as many processes as it is asked for; they know their number, and nothing else of each other.
SINGLETONS = """#!/bin/sh
[ "$1" = --version ] && { echo "NAME"; exit 0; }
ranks=$2; shift 2; rank=0; started=
while [ $rank -lt $ranks ]; do OMPI_COMM_WORLD_RANK=$rank "$@" & started="$started $!"; rank=$((rank+1)); done
for one in $started; do wait $one || exit 1; done
"""
PROGRAM = """
#include <mpi.h>
#include <stdio.h>
int main(int count, char **words) {
    INIT;
    fclose(fopen("ran", "w"));
    MPI_Finalize();
    return 0;
}
"""


@pytest.fixture(params=["MPI_Init(&count, &words)", "int p; MPI_Init_thread(&count, &words, MPI_THREAD_FUNNELED, &p)"])
def program(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if shutil.which("mpicc") is None or shutil.which("mpirun") is None:
        pytest.skip("no MPI is installed")
    (tmp_path / "p.c").write_text(PROGRAM.replace("INIT", request.param))
    subprocess.run(["mpicc", "-o", str(tmp_path / "p"), str(tmp_path / "p.c")], check=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "p"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take minutes to start two ranks; a program that takes longer is not checked at all."""
    monkeypatch.setattr(preflight, "PATIENCE", 600.0)


def launcher(tmp_path: Path, name: str) -> Path:
    file = tmp_path / "mpirun"
    file.write_text(SINGLETONS.replace("NAME", name))
    file.chmod(0o755)
    return file


def launch(words: list[str], ranks: int) -> Launch:
    return Launch(tuple(words), len(words) - 1, {"ranks": float(ranks)}, ranks)


def test_a_launcher_that_starts_single_ranks_is_refused(program: Path, tmp_path: Path) -> None:
    mine = launcher(tmp_path, "something of the site")
    line = [launch([str(mine), "-n", str(ranks), str(program)], ranks) for ranks in (1, 2)]
    with pytest.raises(Exception, match=r"-n 2 .* starts programs of 1 rank, not of 2; use the launcher"):
        preflight.check(line, tmp_path, True, RECORD)
    assert not (tmp_path / "ran").exists()
    assert not list(tmp_path.glob(".pass-*"))
    preflight.check(line, tmp_path, False, RECORD)


def test_a_launcher_under_which_mpi_does_not_initialise_is_refused(program: Path, tmp_path: Path) -> None:
    mine = launcher(tmp_path, "something of the site")
    # What the launcher of another release of Open MPI does to this one.
    mine.write_text(mine.read_text().replace("rank=0;", "rank=0; export OMPI_MCA_pml=none MPICH_CH4_NETMOD=none;"))
    with pytest.raises(ToolError, match=r"-n 2 .* ends with status \d+ while it initialises MPI; use the launcher of"):
        preflight.check([launch([str(mine), "-n", "2", str(program)], 2)], tmp_path, True, RECORD)
    assert not (tmp_path / "ran").exists()


def test_the_right_launcher_passes_and_the_program_does_not_run(program: Path, tmp_path: Path) -> None:
    words = ["mpirun", "--oversubscribe", "-n", "2", str(program)]
    preflight.check([launch(words, 2)], tmp_path, True, RECORD)
    assert not (tmp_path / "ran").exists()
    with pytest.raises(Exception, match=r"starts programs of 2 ranks, not of 3; write \{ranks\}"):
        preflight.check([launch(words, 3)], tmp_path, True, RECORD)


def test_another_familys_launcher_is_refused_by_name(program: Path, tmp_path: Path) -> None:
    library = preflight.mpi_library(preflight.linked(str(program)) or {})
    other = "HYDRA build details:" if family_of_library(library) == "Open MPI" else "mpirun (Open MPI) 5.0"
    mine = launcher(tmp_path, other)
    with pytest.raises(InputError, match=r"belongs to (MPICH|Open MPI), but .* is linked with /"):
        preflight.check([launch([str(mine), "-n", "1", str(program)], 1)], tmp_path, False, RECORD)


def test_a_program_without_mpi_is_refused_on_several_ranks(tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("no compiler is installed")
    (tmp_path / "p.c").write_text('#include <stdio.h>\nint main(void) { return puts("done") < 0; }\n')
    (tmp_path / "q.c").write_text("#include <unistd.h>\nint main(int n, char **w) { return execvp(w[1], w + 1); }\n")
    for name in "pq":
        subprocess.run(["gcc", "-o", str(tmp_path / name), str(tmp_path / f"{name}.c")], check=True)
    mine = str(launcher(tmp_path, "something of the site"))
    preflight.check([launch([mine, "-n", "1", str(tmp_path / "p")], 1)], tmp_path, False, RECORD)
    preflight.check([launch([mine, "-n", "2", str(tmp_path / "q")], 2)], tmp_path, False, RECORD)  # starts another
    preflight.check([launch([mine, "-n", "2", sys.executable], 2)], tmp_path, False, RECORD)
    with pytest.raises(InputError, match="p is linked with no MPI library: each of 2 processes would be a program of"):
        preflight.check([launch([mine, "-n", "2", str(tmp_path / "p")], 2)], tmp_path, False, RECORD)


@pytest.mark.skipif(shutil.which("mpirun") is None, reason="no MPI is installed")
def test_an_environment_in_which_the_launcher_does_not_start_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["measure", "--ranks", "1,2", "--collector", "pmpi", "--quiet", "-o", str(tmp_path / "e"), "--"]
    (tmp_path / "file").touch()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "file" / "below"))
    assert main([*line, "mpirun", "-n", "{ranks}", "true"]) == 1
    said = capsys.readouterr().err
    assert f"TMPDIR is {tmp_path}/file/below, where mpirun cannot write: Not a directory; unset TMPDIR" in said
    assert said.count("\n") == 1
    monkeypatch.setenv("TMPDIR", str(tmp_path / "to" / "make"))
    preflight.check([launch(["mpirun", "-n", "1", "true"], 1)], tmp_path, False, RECORD)
    monkeypatch.delenv("HOME")
    mine = launcher(tmp_path, "mpirun (Open MPI) 5.0")  # one that starts without
    preflight.check([launch([str(mine), "-n", "1", "true"], 1)], tmp_path, False, RECORD)
    mine.write_text("#!/bin/sh\necho a page of errors\nexit 1\n")
    with pytest.raises(InputError, match="HOME is not set, and .*mpirun does not start without it; export HOME"):
        preflight.check([launch([str(mine), "-n", "1", "true"], 1)], tmp_path, False, RECORD)


def test_families() -> None:
    assert start_each_other("MPICH", "Intel MPI")
    assert start_each_other("", "Open MPI")
    assert not start_each_other("Open MPI", "MPICH")
    assert family_of_library(os.devnull) == family_of_library("/none") == ""


def test_a_program_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("x")
    (tmp_path / "data").chmod(0o644)
    with pytest.raises(InputError, match="data is not a program that can be run"):
        preflight.check([launch(["mpirun", "-n", "2", str(tmp_path / "data")], 2)], tmp_path, True, RECORD)
    # In a container the program need not be here.
    preflight.check([launch(["mpirun", "-n", "2", "timeout", "/in/the/image"], 2)], tmp_path, True, RECORD)


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind")
def test_a_program_behind_env_is_simulated_itself(tmp_path: Path) -> None:
    loop = 'int s = 0; for (int i = atoi(getenv("K")); i; i--) s ^= i; return s < 0;'
    (tmp_path / "p.c").write_text(f"#include <stdlib.h>\nint main(void) {{ {loop} }}")
    subprocess.run(["gcc", "-g", "-o", str(tmp_path / "p"), str(tmp_path / "p.c")], check=True)
    line = [
        "measure",
        "--ranks",
        "1",
        "--k",
        "1000,3000",
        "--collector",
        "callgrind",
        "--quiet",
        "-o",
        str(tmp_path / "p.exp"),
    ]
    assert main([*line, "--", "env", "K={k}", str(tmp_path / "p"), "{ranks}"]) == 0
    counters = read(tmp_path / "p.exp").counters(["instructions"])
    few, many = sorted(counters.loc[counters["kernel"] == "main", "instructions"])
    assert few > 1000
    assert many / few == pytest.approx(3, rel=0.02)


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind")
def test_a_folder_without_a_good_run_takes_another_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad"
    bad.write_text("#!/bin/sh\nexit 3\n")
    bad.chmod(0o755)
    line = ["measure", "--collector", "callgrind", "--quiet", "-o", str(tmp_path / "e")]
    assert main([*line, "--ranks", "1", "--size", "2", "--", str(bad), "{ranks}", "{size}"]) == 1
    assert len(read(tmp_path / "e")) == 0
    assert list((tmp_path / "e" / "failed").iterdir())
    assert main([*line, "--ranks", "1", "--", str(bad), "{ranks}"]) == 1
    assert (read(tmp_path / "e").parameters, read(tmp_path / "e").application) == (("ranks",), "bad")
    assert [entry.name for entry in (tmp_path / "e" / "failed").iterdir()] == ["ranks1-callgrind-r0"]
    assert "was measured" not in capsys.readouterr().err


def test_an_experiment_with_runs_is_not_corrected(tmp_path: Path) -> None:
    from ranksight.core.run import Run

    experiment = Experiment.create(tmp_path / "e", "x", ["ranks"])
    experiment.add(Run({"ranks": 1.0}))
    with pytest.raises(InputError, match="holds runs of x"):
        experiment.correct("y", ["ranks"])
