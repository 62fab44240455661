"""Templates are filled, and the program is found behind its launcher."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ranksight.campaign.launchers import LAUNCHERS, rank_variables
from ranksight.campaign.launching import Template, rank_expression
from ranksight.core.errors import InputError


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with launchers and a program that do nothing."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("mpirun", "srun", "flux", "jsrun", "aprun", "mpiexec.hydra", "app", "debug", "core", "env", "nice"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    (folder / "core").chmod(0o644)
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (("mpirun", "-n", "{ranks}", "app", "--n", "{size}"), "app"),
        (("mpirun", "--map-by", "core", "-x", "app", "-n", "{ranks}", "app"), "app"),
        (("srun", "--ntasks={ranks}", "app"), "app"),
        (("flux", "run", "-n", "{ranks}", "app"), "app"),
        (("srun", "-p", "debug", "-n", "{ranks}", "app"), "app"),
        (("jsrun", "-p", "{ranks}", "-b", "debug", "app"), "app"),
        (("aprun", "-n", "{ranks}", "-cc", "debug", "app"), "app"),
        (("mpiexec.hydra", "-ppn", "2", "-genvlist", "debug", "-n", "{ranks}", "app"), "app"),
        (("app", "{ranks}"), "app"),
        (("mpirun", "-n", "{ranks}", "env", "-u", "debug", "OMP_NUM_THREADS={size}", "app", "debug"), "app"),
        (("mpirun", "-n", "{ranks}", "nice", "-n", "5", "env", "A=app", "app"), "app"),
        (("env", "A=1", "app", "{ranks}"), "app"),
        (("mpirun", "-n", "{ranks}", "env"), "env"),
    ],
)
def test_the_program_is_found(bin_folder: Path, words: tuple[str, ...], program: str) -> None:
    launch = Template(words).fill({"ranks": 4, "size": 8})
    assert launch.program == program
    assert launch.wrap(["time", "-p"])[launch.program_at : launch.program_at + 3] == ("time", "-p", program)
    assert launch.launcher == ("" if words[0] in ("app", "env") else words[0])


def test_values_are_filled_in(bin_folder: Path) -> None:
    template = Template(("mpirun", "-n", "{ranks}", "app", "--x={x}", "{ranks}"))
    assert template.parameters == ("ranks", "x")
    assert template.fill({"ranks": 4.0, "x": 0.5}).command == ("mpirun", "-n", "4", "app", "--x=0.5", "4")


def test_the_process_grid_and_products_are_filled_in(bin_folder: Path) -> None:
    words = ("mpirun", "-n", "{ranks}", "app", "-P", "{grid3.x},{grid3.y},{grid3.z}", "{grid2.x}x{grid2.y}")
    template = Template((*words, "{size*grid3.x}"))
    assert template.parameters == ("ranks", "size")
    assert template.fill({"ranks": 12, "size": 5}).command[5:] == ("3,2,2", "4x3", "15")
    assert Template(("app", "{grid3.z}")).parameters == ("ranks",)
    assert Template(("app", "{grid3.w}", "{grid4.x}")).parameters == ()
    with pytest.raises(InputError, match="needs {ranks}"):
        template.fill({"size": 5})


def test_the_place_can_be_stated(bin_folder: Path) -> None:
    launch = Template(("mpirun", "-n", "{ranks}", "{wrap}", "not-there-yet", "a")).fill({"ranks": 2})
    assert launch.command == ("mpirun", "-n", "2", "not-there-yet", "a")
    assert launch.program == "not-there-yet"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("mpirun", "-n", "{ranks}", "./missing"), "missing is not a program"),
        (("mpirun", "-n", "{ranks}"), "no program is found"),
        (("nothing", "{ranks}"), "nothing is not a program"),
        (("ibrun", "-n", "{ranks}", "app"), "ibrun is not found"),
        (("mpirun", "-n", "{ranks}", "app", "{other}"), "needs {other}"),
        (("mpirun", "-n", "{ranks}", "{wrap}"), "nothing follows"),
        (("env", "A=1", "mpirun", "-n", "{ranks}", "app"), "env stands before the launcher mpirun"),
        ((), "no command"),
    ],
)
def test_what_cannot_be_run_is_named(bin_folder: Path, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Template(words).fill({"ranks": 2})


def test_a_launcher_that_is_not_known_is_not_taken_for_the_program(bin_folder: Path) -> None:
    start = bin_folder / "start"
    start.write_text("#!/bin/sh\n")
    start.chmod(0o755)
    words = (str(start), "{ranks}", str(bin_folder / "app"))
    with pytest.raises(InputError, match="not a launcher that is known"):
        Template(words).fill({"ranks": 2})
    assert Template((*words[:2], "{wrap}", words[2])).fill({"ranks": 2}).program == words[2]


def test_the_launchers_own_rank_is_believed_before_the_batch_systems() -> None:
    names = rank_variables()
    assert names.index("OMPI_COMM_WORLD_RANK") < names.index("PMI_RANK") < names.index("SLURM_PROCID")
    assert {name for launcher in LAUNCHERS for name in LAUNCHERS[launcher].variables} <= set(names)


@pytest.mark.parametrize("ranks", [0, -1, 2.5])
def test_ranks_are_whole(bin_folder: Path, ranks: float) -> None:
    with pytest.raises(InputError, match="not a number of ranks"):
        Template(("app",)).fill({"ranks": ranks})


@pytest.mark.skipif(sys.platform != "linux", reason="needs /bin/sh")
@pytest.mark.parametrize(
    ("environment", "rank"),
    [({}, "0"), ({"PMI_RANK": "3"}, "3"), ({"OMPI_COMM_WORLD_RANK": "5", "SLURM_PROCID": "7"}, "5")],
)
def test_the_shell_finds_the_rank(environment: dict[str, str], rank: str) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f'echo "{rank_expression()}"'], env=environment, capture_output=True, text=True
    )
    assert done.stdout.strip() == rank
