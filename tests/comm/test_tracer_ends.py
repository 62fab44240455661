"""However a program ends, its own result stays, and what its ranks could write is there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ranksight.campaign.collecting import COLLECTORS
from ranksight.comm.tracer.gathering import read_folder
from ranksight.comm.tracer.tables import tabulate
from ranksight.core.errors import InputError, RanksightError, ToolError

pytestmark = pytest.mark.mpi
P = 2


def count(tables, kernel: str, operation: str, rank: int = 0) -> int:
    found = tables.messages
    rows = found[(found["kernel"] == kernel) & (found["operation"] == operation) & (found["rank"] == rank)]
    return int(rows["count"].sum())


@pytest.mark.parametrize(
    ("way", "status", "rounds"),
    [
        ("nothing", 0, 10),
        ("fork", 0, 10),
        ("failed", 0, 20),
        ("freed", 0, 10),
        ("outstanding", 0, 10),
        ("handler", 0, 20),
        ("uncompleted", 0, 10),
        ("status", 41, 10),
    ],
)
def test_a_program_that_finalizes_is_traced_whole(tracing, tmp_path: Path, way: str, status: int, rounds: int) -> None:
    launch = tracing.launch(tracing.compile("ends.c"), P, way)
    done = tracing.run(launch, tmp_path)
    assert done.returncode == status
    assert done.stdout.count("done") == (0 if status else P)
    traces, lost = read_folder(tmp_path, P)
    assert lost == []
    assert [trace.ended for trace in traces] == ["finalize"] * P
    tables = tabulate(traces)
    assert tables.notes == ()
    for rank in range(P):
        assert count(tables, "rounds", "Sendrecv", rank) == rounds
    if way == "failed":
        refused = tables.messages[(tables.messages["kernel"] == "main") & (tables.messages["operation"] == "Send")]
        assert refused["count"].sum() == refused["bytes"].sum() == 0
        assert len(refused) == P
    if way == "freed":
        barriers = tables.messages[(tables.messages["kernel"] == "main") & (tables.messages["operation"] == "Barrier")]
        # One more over all ranks stands at the end of every way.
        assert barriers.groupby("comm_size")["count"].sum().to_dict() == {1: 4 * P, P: 5 * P}
    if way == "outstanding":
        received = tables.messages[tables.messages["operation"] == "Irecv"]
        assert received["comm_size"].tolist() == [P] * len(received)
        assert (received["count"].sum(), received["bytes"].sum()) == (4 * P, 4 * P * 8)
    if way == "uncompleted":
        assert count(tables, "main", "Irecv") == 1


@pytest.mark.parametrize(("way", "ended"), [("exit", "exit"), ("_exit", "exit")])
def test_a_program_without_finalize_is_traced_to_its_exit(tracing, tmp_path: Path, way: str, ended: str) -> None:
    launch = tracing.launch(tracing.compile("ends.c"), 1, way)
    assert tracing.run(launch, tmp_path).returncode == tracing.plain(launch).returncode
    traces, lost = read_folder(tmp_path, 1)
    assert lost == []
    assert traces[0].ended == ended
    tables = tabulate(traces)
    assert count(tables, "rounds", "Sendrecv") == 10
    assert "without MPI_Finalize" in tables.notes[0]


@pytest.mark.parametrize(
    ("way", "ended"),
    [
        ("abort", "signal 6"),
        ("term", "signal 15"),
        ("segv", "signal 11"),
        ("stack", "signal 11"),
        ("MPI_Abort", "abort"),
    ],
)
def test_a_rank_that_dies_leaves_what_it_had_and_its_status(tracing, tmp_path: Path, way: str, ended: str) -> None:
    launch = tracing.launch(tracing.compile("ends.c"), P, way, "slowly")
    done = tracing.run(launch, tmp_path)
    assert done.returncode == tracing.plain(launch).returncode != 0
    traces, lost = read_folder(tmp_path, P)
    dead = next(trace for trace in traces if trace.head["rank"] == P - 1)
    assert dead.ended == ended
    assert count(tabulate(traces), "rounds", "Sendrecv", P - 1) == 10
    assert len(traces) + len(lost) == P


def test_an_abort_with_exit_code_zero_is_a_failed_run(tracing, tmp_path: Path) -> None:
    launch = tracing.launch(tracing.compile("ends.c"), 1, "MPI_Abort", "0")
    assert tracing.run(launch, tmp_path).returncode == tracing.plain(launch).returncode
    with pytest.raises(ToolError, match="rank 0 called MPI_Abort"):
        COLLECTORS["pmpi"].collect(launch, tmp_path)


def test_mpi_that_is_loaded_at_run_time_is_traced(tracing, tmp_path: Path) -> None:
    launch = tracing.launch(tracing.compile("loaded.c", "-ldl", wrapper="gcc"), P)
    if tracing.plain(launch).returncode == 77:
        pytest.skip("no Open MPI 4")
    assert tracing.run(launch, tmp_path).stdout.count("done") == P
    traces, lost = read_folder(tmp_path, P)
    assert lost == []
    assert sum(count(tabulate(traces), "main", "Allreduce", rank) for rank in range(P)) == 5 * P


def test_a_killed_rank_is_named(tracing, tmp_path: Path) -> None:
    launch = tracing.launch(tracing.compile("ends.c"), P, "kill", "slowly")
    assert tracing.run(launch, tmp_path).returncode == tracing.plain(launch).returncode != 0
    with pytest.raises(
        RanksightError,
        match=r"1 left no trace: killed, started without the tracer, or the disk was full|is empty: the rank was killed",
    ):
        COLLECTORS["pmpi"].collect(launch, tmp_path)


def test_a_missing_rank_is_named(tracing, tmp_path: Path) -> None:
    launch = tracing.launch(tracing.compile("ends.c"), P, "nothing")
    assert tracing.run(launch, tmp_path, RANKSIGHT_TRACE_GATHER="0").returncode == 0
    (tmp_path / "rank-000000.trace").unlink()
    with pytest.raises(ToolError, match="rank 0 left no trace"):
        COLLECTORS["pmpi"].collect(launch, tmp_path)


def test_a_file_that_may_not_grow_does_not_touch_the_program(tracing, tmp_path: Path) -> None:
    launch = tracing.launch(tracing.compile("ends.c"), 1, "nothing")
    (step,) = COLLECTORS["pmpi"].steps(launch, tmp_path)
    wrapped = ("sh", "-c", 'ulimit -f 8; exec "$@"', "sh")  # 4 KiB: SIGXFSZ strikes who writes more
    at = step.command.index("env")
    command = (*step.command[:at], *wrapped, *step.command[at:])
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "done" in done.stdout
    assert "the trace of rank 0 is lost" in done.stderr
    with pytest.raises(InputError, match="is empty: the rank was killed, or the disk was full"):
        COLLECTORS["pmpi"].collect(launch, tmp_path)


def test_a_folder_that_vanished_does_not_touch_the_program(tracing, tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    launch = tracing.launch(tracing.compile("ends.c"), 1, "nothing")
    (step,) = COLLECTORS["pmpi"].steps(launch, folder)
    folder.rmdir()
    done = subprocess.run(step.command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert "done" in done.stdout


def test_threads_that_call_at_once(tracing, tmp_path: Path) -> None:
    launch = tracing.launch(tracing.compile("threads.c", "-pthread"), P)
    done = tracing.run(launch, tmp_path)
    if done.returncode == 77:
        pytest.skip("this MPI gives no MPI_THREAD_MULTIPLE")
    assert done.returncode == 0, done.stderr
    traces, _ = read_folder(tmp_path, P)
    tables = tabulate(traces)
    moved = 100 * 8 * (1 + 2 + 3 + 4)
    for rank in range(P):
        mine = (
            tables.messages[tables.messages["rank"] == rank]
            .groupby("operation", observed=True)[["count", "bytes"]]
            .sum()
        )
        assert tuple(mine.loc["Isend"]) == (400, moved)
        assert tuple(mine.loc["Irecv"]) == (400, moved)
        assert mine.loc["Barrier", "count"] == 20
        assert mine.loc["Waitall", "count"] == 400
    assert (tables.ranks["threads"] == 5).all()


def test_names_of_cpp_and_static_functions(tracing, tmp_path: Path) -> None:
    sibling = Path(shutil.which("mpicc") or "mpicc").resolve().with_name("mpicxx")
    launch = tracing.launch(tracing.compile("names.cpp", wrapper=str(sibling if sibling.exists() else "mpicxx")), 1)
    found = tracing.tables(launch, tmp_path).messages
    kernel = {str(row.operation): str(row.kernel) for row in found.itertuples()}
    assert kernel["Allreduce"] == "flow::Solver::step(double)"
    assert kernel["Barrier"] == "void flow::pass<int>(int)"
    assert kernel["Bcast"] == "hidden()"


def test_every_one_of_many_outstanding_requests_is_completed(tracing, tmp_path: Path) -> None:
    """The index of requests grows twice on the way; half of the messages hold a byte."""
    found = tracing.tables(tracing.launch(tracing.compile("outstanding.c"), 1), tmp_path).messages
    calls = found.groupby("operation")[["count", "bytes"]].sum()
    assert calls.loc["Irecv"].tolist() == [300_000, 150_000] == calls.loc["Send"].tolist()
