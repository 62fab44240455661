"""Processes that a program starts itself: traced in tables of their own, named where they cannot be."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ranksight.cli.main import main
from ranksight.core.experiment import Experiment, Run, read

P = 2
ROUNDS = 5

pytestmark = pytest.mark.mpi


@pytest.fixture(autouse=True)
def reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_MCA_btl", "^ofi,uct,usnic,openib")  # what is started later is reached by a network alone


def measure(place: Path, program: Path, *words: str, mpirun: str = "mpirun") -> int:
    template = (mpirun, "--oversubscribe", "-n", "{ranks}", str(program), *words)
    options = ("--ranks", str(P), "--collector", "pmpi-events", "--quiet", "--timeout", "60")
    return main(["measure", *options, "-o", str(place), "--", *template])


def measured(place: Path, program: Path, *words: str, mpirun: str = "mpirun") -> tuple[Experiment, Run]:
    assert measure(place, program, *words, mpirun=mpirun) == 0
    experiment = read(place)
    (run,) = experiment.runs
    assert run.configuration["ranks"] == P
    assert set(experiment.table(run, "messages")["rank"]) == set(range(P))
    return experiment, run


@pytest.mark.parametrize(
    ("how", "sizes"),
    [
        ("one", {"0.1": 3}),
        pytest.param("several", {"0.1": 3}, marks=pytest.mark.slow),
        ("chain", {"0.1": 1, "0.1_0.1": 1}),
    ],
)
def test_started_processes_have_tables_of_their_own(
    tracing, tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str, sizes: dict[str, int]
) -> None:
    experiment, run = measured(tmp_path / "a.exp", tracing.compile("spawn.c"), how, str(ROUNDS))
    ranks, sent = experiment.table(run, "spawned_ranks"), experiment.table(run, "spawned")
    assert ranks.groupby("world").size().to_dict() == sizes
    assert set(ranks["ended"]) == {"finalize"}
    calls = sent.groupby(["world", "operation"], observed=True)[["count", "bytes"]].sum()
    for world, size in sizes.items():
        assert calls.loc[(world, "Send")].tolist() == [size, 80 * size]
        assert calls.loc[(world, "Sendrecv_replace")].tolist() == [size * ROUNDS, 800 * size * ROUNDS]
    ring = experiment.table(run, "spawned_peers")
    assert set(ring.loc[ring["operation"] == "Send", "peer"]) == {-1}  # rank 0 of another world
    assert set(experiment.table(run, "spawned_events")["world"]) == set(sizes)
    count = sum(sizes.values())
    messages = count * (ROUNDS + 1)
    (note,) = [each for each in run.notes if "starts processes" in each]
    assert f"{count} besides the {P} ranks of this run: their {messages} messages of" in note
    assert note in capsys.readouterr().err


@pytest.mark.slow
def test_a_program_that_starts_none_has_no_such_tables(tracing, tmp_path: Path) -> None:
    experiment, run = measured(tmp_path / "a.exp", tracing.compile("spawn.c"), "alone", "1")
    assert experiment.table(run, "spawned") is None
    assert not any("starts processes" in note for note in run.notes)


def test_processes_that_cannot_be_traced_are_named(tracing, tmp_path: Path) -> None:
    experiment, run = measured(tmp_path / "a.exp", tracing.compile("spawn.c"), "untraced", "1")
    assert experiment.table(run, "spawned") is None
    (note,) = [each for each in run.notes if "starts processes" in each]
    assert "which are not traced" in note


@pytest.mark.slow
def test_an_abort_of_a_started_process_fails_the_run(tracing, tmp_path: Path) -> None:
    """With whatever code: an MPI that dies of the abort itself ends with another one, or not at all."""
    place = tmp_path / "a.exp"
    assert measure(place, tracing.compile("spawn.c"), "abort", "1") == 1
    assert not read(place).runs


@pytest.mark.skipif(shutil.which("mpif90") is None, reason="no Fortran")
@pytest.mark.slow
@pytest.mark.parametrize("words", ["none", "some"])
def test_processes_that_fortran_starts(tracing, tmp_path: Path, words: str) -> None:
    program = tracing.compile("spawn.F90", f"-DWORDS={words == 'some':d}", wrapper="mpif90")
    # The launcher of the MPI that the wrapper is of, whatever stands first on PATH.
    mpirun = Path(shutil.which("mpif90") or "").with_name("mpirun")
    experiment, run = measured(tmp_path / "a.exp", program, mpirun=str(mpirun))
    sent = experiment.table(run, "spawned").groupby("operation", observed=True)[["count", "bytes"]].sum()
    # Each sends one real number more than there are characters in its words.
    assert sent.loc["Send"].tolist() == [2, 2 * 8 * (7 if words == "some" else 1)]
