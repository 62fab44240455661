"""What ranks measured is gathered when they finalize together, and nobody waits for who does not come."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ranksight.campaign.collecting import COLLECTORS
from ranksight.comm.tracer.gathering import read_folder
from ranksight.comm.tracer.tables import tabulate
from ranksight.core.errors import RanksightError

P = 3
pytestmark = pytest.mark.mpi


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def files(*ranks: int) -> list[str]:
    return [f"rank-{rank:06d}.trace" for rank in ranks]


@pytest.fixture(params=["", ".mpich", "_abi"], ids=["mpi", "mpich", "abi"])
def ends(tracing, request: pytest.FixtureRequest):
    suffix, mpirun = tracing.mpi(request.param)
    program = tracing.compile("ends.c", wrapper=f"mpicc{suffix}")
    return lambda *way, ranks=P: tracing.launch(program, ranks, *way, mpirun=mpirun)


@pytest.mark.parametrize(("group", "left"), [("256", 1), ("2", 3), ("1", 5)])
def test_a_file_holds_a_group_of_ranks(tracing, tmp_path: Path, ends, group: str, left: int) -> None:
    done = tracing.run(ends("nothing", ranks=5), tmp_path, RANKSIGHT_TRACE_GROUP=group)
    assert done.returncode == 0
    assert len(names(tmp_path)) == left
    assert set(names(tmp_path)) <= set(files(*range(5)))
    traces, lost = read_folder(tmp_path, 5)
    assert lost == []
    messages = tabulate(traces).messages
    counts = messages.groupby("operation", observed=True)["count"].sum()
    # Nothing of the gathering is among the program's calls.
    assert {str(name): int(n) for name, n in counts.items()} == {
        "Init": 5, "Comm_rank": 5, "Comm_size": 5, "Sendrecv": 50, "Sendrecv_recv": 50, "Barrier": 5, "Finalize": 5,
    }  # fmt: skip


@pytest.mark.parametrize("late", range(P))
def test_nobody_waits_beyond_the_limit(tracing, tmp_path: Path, ends, late: int) -> None:
    done = tracing.run(ends("late", str(late)), tmp_path, RANKSIGHT_TRACE_GATHER="0.3")
    assert done.returncode == 0
    assert done.stdout.count("done") == P
    assert len(names(tmp_path)) in (2, P)  # the late one apart, or, where it leads, each by itself
    traces, lost = read_folder(tmp_path, P)
    assert lost == []
    assert [trace.ended for trace in traces] == ["finalize"] * P


def test_a_signal_that_is_survived_leaves_no_file_of_its_own(tracing, tmp_path: Path, ends) -> None:
    assert tracing.run(ends("handler"), tmp_path).returncode == 0
    assert len(names(tmp_path)) == 1
    assert [trace.ended for trace in read_folder(tmp_path, P)[0]] == ["finalize"] * P


def test_large_contents_stay_with_their_ranks(tracing, tmp_path: Path) -> None:
    launch = tracing.launch(tracing.compile("ends.c"), 2, "many", "120000")  # 40 bytes an event
    assert tracing.run(launch, tmp_path, RANKSIGHT_TRACE_EVENTS="200000").returncode == 0
    assert names(tmp_path) == files(0, 1)
    traces, lost = read_folder(tmp_path, 2)
    assert lost == []
    assert all(len(trace.threads[0].events) > 100_000 for trace in traces)


@pytest.mark.parametrize(
    ("gather", "told"), [("30", "the traces of rank . and 2 others are"), ("0", "the trace of rank 1 is")]
)
def test_a_full_disk_is_told_in_a_line(tracing, tmp_path: Path, gather: str, told: str) -> None:
    launch = tracing.launch(tracing.compile("ends.c"), P, "nothing")
    for rank in range(P):
        (tmp_path / f"rank-{rank:06d}.trace.part").symlink_to("/dev/full")
    done = tracing.run(launch, tmp_path, RANKSIGHT_TRACE_GATHER=gather)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("done") == P  # lines of two ranks may come interleaved
    lines = [line for line in done.stderr.splitlines() if line.startswith("ranksight: ")]
    assert len(lines) == (1 if gather == "30" else P)
    line = f"ranksight: {told} lost, {re.escape(str(tmp_path))}: No space left on device; the program itself is not affected"
    assert any(re.fullmatch(line, found) for found in lines)
    with pytest.raises(RanksightError, match="is empty: the rank was killed, or the disk was full"):
        COLLECTORS["pmpi"].collect(launch, tmp_path)


def test_a_folder_that_only_some_ranks_can_write_keeps_the_others_waiting_for_nothing(tracing, tmp_path: Path) -> None:
    launch = tracing.launch(tracing.compile("ends.c"), P, "nothing")
    (step,) = COLLECTORS["pmpi"].steps(launch, tmp_path)
    at = step.command.index("env") + 1
    lead = next(word for word in step.command if word.startswith("RANKSIGHT_TRACE_DIR="))
    wrapped = (
        "sh",
        "-c",
        'test "$OMPI_COMM_WORLD_RANK$PMI_RANK" = 1 && export RANKSIGHT_TRACE_DIR=/nowhere; exec "$@"',
    )
    words = [word for word in step.command[at:] if word != lead]
    command = (*step.command[:at], lead, *wrapped, "sh", "env", *words)
    done = subprocess.run(command, capture_output=True, text=True, timeout=25)  # the limit is 30 s
    assert done.returncode == 0, done.stderr
    traces, lost = read_folder(tmp_path, P)
    assert [trace.head["rank"] for trace in traces] == [0, 2]
    assert lost == ["rank 1 left no trace: killed, started without the tracer, or the disk was full"]


@pytest.mark.parametrize("traced", [0, 1])
def test_ranks_without_the_tracer_are_not_waited_for(tracing, tmp_path: Path, traced: int, ends) -> None:
    """A program of two parts, one of which is started without the tracer."""
    (step,) = COLLECTORS["pmpi"].steps(ends("nothing", ranks=2), tmp_path)
    at = step.command.index("env")
    launcher, words = step.command[:at], step.command[at:]
    program = next(at for at, word in enumerate(words) if Path(word).name.startswith("ends"))
    parts = [("-n", "2", *words), ("-n", "2", *words[program:])]
    first, second = parts if traced == 0 else reversed(parts)
    before = launcher[: launcher.index("-n")]
    done = subprocess.run((*before, *first, ":", *second), capture_output=True, text=True, timeout=25)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("done") == 4
    traces, lost = read_folder(tmp_path, 4)
    assert [trace.head["rank"] for trace in traces] == [2 * traced, 2 * traced + 1]
    assert len(names(tmp_path)) == 1
    assert lost[0].startswith("ranks 2, 3 left" if traced == 0 else "ranks 0, 1 left")


def test_a_message_under_way_arrives_while_its_sender_waits(tracing, tmp_path: Path, ends) -> None:
    """The receiver finalizes only when it has the message, which its sender's library must push: nobody waits in vain."""
    done = tracing.run(ends("buffered"), tmp_path, RANKSIGHT_TRACE_GATHER="600")  # above the test's own time-out
    assert done.returncode == 0, done.stderr
    assert len(names(tmp_path)) == 1
