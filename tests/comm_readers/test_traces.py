"""Readers of MPI traces: SMPI, liballprof, OTF2."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.comm.readers import otf2_trace
from ranksight.comm.readers._messages import plain, size_class
from ranksight.comm.readers._otf2_events import ENTER, LEAVE
from ranksight.core import limits
from ranksight.core.errors import InputError
from ranksight.core.reading import READERS, Reading, validated
from ranksight.core.testing import check_reader

SMPI = """0 init
1 init
2 init
0 compute 1e6
0 send 1 7 100 6
1 recv 0 7 100 6
0 isend 2 7 10 0
2 irecv 0 7 10 0
0 wait 0 2 7
2 waitall
0 bcast 5 0 1
1 bcast 5 0 1
2 bcast 5 0 1
0 allreduce 3 1e3 0
1 allreduce 3 1e3 0
2 allreduce 3 1e3 0
0 alltoall 4 4 1 1
0 scatter 6 6 0 2 2
1 scatter 6 6 0 2 2
0 allgatherv 2 2 2 2 0
0 reducescatter 1 2 3 500 4
0 barrier
0 compute 2.5e5
0 finalize
"""

ALLPROF = {
    0: """# htor's PMPI Tracer 1.0 Output File
# hostname: node1.(none)

MPI_Init:1000:0:0:2000
MPI_Isend:3000:140000:100:6,8,8:1:7:91,0,2:140500:3010
MPI_Waitall:3010:1:140500:0:3100
MPI_Allreduce:4100:1:2:3:6,8,8:3:91,0,2:4200
MPI_Scatter:4200:1:10:4,4,4:2:10:4,4,4:0:91,0,2:4210
MPI_Alltoallv:4210:1:2:3:4,4,4:5:6:7:4,4,4:91,0,2:4220
MPI_Finalize:5000:-
""",
    1: """# htor's PMPI Tracer 1.0 Output File

MPI_Init:1000:0:0:2000
MPI_Recv:2500:140000:100000:6,8,8:0:7:91,1,2:1:3050
MPI_Allreduce:4000:1:2:3:6,8,8:3:91,1,2:4200
MPI_Scatter:4200:1:10:4,4,4:2:10:4,4,4:0:91,1,2:4215
MPI_Alltoallv:4215:1:2:3:4,4,4:5:6:7:4,4,4:91,1,2:4220
MPI_Finalize:5000:-
""",
}


def one(reading: Reading, operation: str, rank: int) -> pd.Series:
    assert reading.messages is not None
    table = reading.messages
    found = table[(table["operation"] == operation) & (table["rank"] == rank)]
    assert len(found) == 1
    return found.iloc[0]


def allprof(folder: Path, changes: dict[int, tuple[str, str]] | None = None) -> Path:
    for rank, text in ALLPROF.items():
        old, new = (changes or {}).get(rank, ("", ""))
        assert old in text
        (folder / f"pmpi-trace-rank-{rank}.txt").write_text(text.replace(old, new, 1) if old else text)
    return folder


def test_smpi_counts_bytes_as_the_caller_hands_them_over(tmp_path: Path) -> None:
    path = tmp_path / "trace.ti"
    path.write_text(SMPI)
    assert READERS["smpi"].recognises(path, path.read_bytes())
    (reading,) = READERS["smpi"].read(path)
    assert reading.configuration == {"ranks": 3.0}
    expected = {
        ("Send", 0): 100,
        ("Isend", 0): 80,
        ("Bcast", 1): 20,
        ("Allreduce", 2): 24,
        ("Alltoall", 0): 3 * 4 * 4,
        ("Scatter", 0): 3 * 6,
        ("Scatter", 1): 6,
        ("Allgatherv", 0): 16,
        ("Reduce_scatter", 0): 6 * 8,
        ("Barrier", 0): 0,
        ("Waitall", 2): 0,
    }
    for (operation, rank), size in expected.items():
        assert one(reading, operation, rank)["bytes"] == size, operation
    assert one(reading, "Send", 0)["peers"] == 1
    assert np.isnan(one(reading, "Send", 0)["seconds"])
    assert reading.counters is not None
    assert reading.counters["flops"].tolist() == [1.25e6, 0.0, 0.0]


def test_smpi_files_of_ranks_by_list_and_by_folder(tmp_path: Path) -> None:
    inner = tmp_path / "trace_files"
    inner.mkdir()
    for rank in range(3):
        lines = [line for line in SMPI.splitlines() if line.startswith(f"{rank} ")]
        (inner / f"0_rank-{rank}.txt").write_text("\n".join(lines) + "\n")
    listing = tmp_path / "trace.txt"
    listing.write_text("".join(f"trace_files/0_rank-{rank}.txt\n" for rank in range(3)))
    whole = tmp_path / "whole.ti"
    whole.write_text(SMPI)
    (expected,) = READERS["smpi"].read(whole)
    for path, head in ((listing, listing.read_bytes()), (inner, b"")):
        assert READERS["smpi"].recognises(path, head)
        (reading,) = READERS["smpi"].read(path)
        keys = ["rank", "operation"]
        assert reading.messages is not None
        assert expected.messages is not None
        pd.testing.assert_frame_equal(
            reading.messages.sort_values(keys, ignore_index=True),
            expected.messages.sort_values(keys, ignore_index=True),
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 init\n0 fly 3\n", ":2: unknown action 'fly'"),
        ("0 init\n0 send 1 7\n2 init\n", "lacks 1 of 3 ranks: 1"),
        ("0 init\n0 allreduce\n", ":2: allreduce has 0 parameters"),
        ("0 init\n0 bcast many\n", ":2: parameter 1 is 'many'"),
        ("0 init\n0 bcast 1 0 99\n", ":2: data type 99"),
        ("0 init\nnothing\n", ":2: 'nothing' is not an action"),
        ("0 init\n0 bcast \0\n", ":2: no line of text"),
        ("../../etc/passwd.txt\n", ":1: '../../etc/passwd.txt' is neither"),
        ("/etc/passwd.txt\n", ":1: '/etc/passwd.txt' is neither"),
        ("missing.txt\n", r"missing\.txt cannot be read"),
    ],
)
def test_damaged_smpi_traces_are_refused_by_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "trace.ti"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        list(READERS["smpi"].read(path))


def test_liballprof_gives_calls_bytes_and_times(tmp_path: Path) -> None:
    folder = allprof(tmp_path)
    assert READERS["liballprof"].recognises(folder, b"")
    (reading,) = READERS["liballprof"].read(folder / "pmpi-trace-rank-0.txt")
    sent = one(reading, "Isend", 0)
    assert (sent["bytes"], sent["comm_size"], sent["peers"]) == (800, 2, 1)
    assert sent["seconds"] == pytest.approx(10e-6)
    assert one(reading, "Recv", 1)["bytes"] == 0
    assert one(reading, "Allreduce", 1)["bytes"] == 24
    assert one(reading, "Allreduce", 1)["seconds"] == pytest.approx(200e-6)
    assert one(reading, "Scatter", 0)["bytes"] == 80
    assert one(reading, "Scatter", 1)["bytes"] == 40
    assert any("Alltoallv" in note for note in reading.notes)
    assert reading.counters is not None
    counters = reading.counters
    np.testing.assert_allclose(counters["wall_time"], 3e-3)
    np.testing.assert_allclose(counters["mpi_time"] + counters["compute_time"], counters["wall_time"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({0: ("MPI_Waitall:3010", "MPI_Waitall:2010")}, "rank-0.txt:6: Waitall|rank-0.txt:6: MPI_Waitall ends before"),
        ({0: ("100:6,8,8:1:7:91,0,2:140500:3010", "3010")}, ":5: Isend has 1 arguments"),
        ({1: ("MPI_Init:1000:0:0:2000\n", "")}, "no MPI_Init"),
        ({1: ("MPI_Recv:2500", "garbage")}, "is not a call"),
        ({0: ("100:6,8,8", "100:6")}, "has no size"),
    ],
)
def test_damaged_liballprof_traces_are_refused_by_line(
    tmp_path: Path, changes: dict[int, tuple[str, str]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        list(READERS["liballprof"].read(allprof(tmp_path, changes)))


def test_a_missing_rank_is_named(tmp_path: Path) -> None:
    folder = allprof(tmp_path)
    (folder / "pmpi-trace-rank-0.txt").rename(folder / "pmpi-trace-rank-3.txt")
    with pytest.raises(InputError, match="lacks 2 of 4 ranks: 0, 2"):
        list(READERS["liballprof"].read(folder))


def test_otf2_ping_pong(shared: Path) -> None:
    pytest.importorskip("otf2")
    folder = shared / "data" / "formats" / "otf2" / "ping-pong-otf2"
    check_reader(READERS["otf2"], folder)
    (reading,) = READERS["otf2"].read(folder)
    assert reading.configuration == {"ranks": 2.0}
    assert reading.messages is not None
    sent = reading.messages[reading.messages["operation"] == "Send"]
    # Sizes double from 16 KiB on, one message of each from either rank.
    assert sorted(set(sent["bytes"])) == [2**power for power in range(14, 22)]
    assert set(sent["peers"]) == {1}
    assert set(sent["comm_size"]) == {2}
    assert (reading.messages["kernel"] == "int main(int, char**)").all()
    assert reading.counters is not None
    per_rank = reading.messages.groupby("rank")["seconds"].sum()
    np.testing.assert_allclose(per_rank, reading.counters["mpi_time"], rtol=1e-9)


def written_archive(folder: Path, leave: bool = True) -> Path:
    """Two ranks, one allreduce of 8 B each inside a region, by the package's own writer."""
    otf2 = pytest.importorskip("otf2")
    from otf2.enums import CollectiveOp, CommFlag, GroupType, LocationType, Paradigm, RegionRole

    with otf2.writer.open(str(folder), timer_resolution=1_000_000) as trace:
        define = trace.definitions
        regions = [define.region(name, region_role=RegionRole.FUNCTION) for name in ("main", "MPI_Allreduce")]
        node = define.system_tree_node("node")
        places = []
        for rank in range(2):
            group = define.location_group(f"MPI Rank {rank}", system_tree_parent=node)
            places.append(define.location("Master thread", type=LocationType.CPU_THREAD, group=group))
        define.group("", group_type=GroupType.COMM_LOCATIONS, paradigm=Paradigm.MPI, members=places)
        world = define.group("", group_type=GroupType.COMM_GROUP, paradigm=Paradigm.MPI, members=[0, 1])
        comm = define.comm("MPI_COMM_WORLD", group=world, flags=CommFlag.NONE)
        for place in places:
            writer = trace.event_writer_from_location(place)
            writer.enter(0, regions[0])
            writer.enter(100, regions[1])
            writer.mpi_collective_begin(100)
            writer.mpi_collective_end(
                140, collective_op=CollectiveOp.ALLREDUCE, communicator=comm, root=0, size_sent=16, size_received=16
            )
            writer.leave(150, regions[1])
            if leave:
                writer.leave(200, regions[0])
            else:
                writer.leave(200, regions[1])
    return folder


def test_otf2_collectives_hold_one_ranks_contribution(tmp_path: Path) -> None:
    folder = written_archive(tmp_path / "trace")
    (reading,) = READERS["otf2"].read(folder)
    found = one(reading, "Allreduce", 1)
    assert (found["kernel"], found["comm_size"], found["count"], found["bytes"]) == ("main", 2, 1, 8)
    assert found["seconds"] == pytest.approx(50e-6)
    assert reading.wall_time == pytest.approx(200e-6)


@pytest.mark.parametrize("again", ["MPI_Allreduce", "main"])
def test_an_otf2_call_that_ends_before_it_begins_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: str
) -> None:
    """The writer of the package refuses such times; a damaged archive has them."""
    folder = written_archive(tmp_path / "trace")
    region = 0 if again == "main" else 1
    given = [(ENTER, 0, 100, (region,)), (LEAVE, 0, 40, (region,)), (ENTER, 1, 0, (0,)), (LEAVE, 1, 200, (0,))]
    monkeypatch.setattr(otf2_trace, "events", lambda *_: iter(given))
    with pytest.raises(InputError, match="before it enters it" if region else "-6e-05 of wall_time"):
        validated(next(READERS["otf2"].read(folder)), "a file")


def test_an_otf2_archive_of_endless_events_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written_archive(tmp_path / "trace")
    monkeypatch.setattr(limits, "EVENTS_PER_BYTE", 0)
    monkeypatch.setattr("ranksight.comm.readers._otf2_events.BATCH", 2)
    with pytest.raises(InputError, match="more events than fit"):
        list(READERS["otf2"].read(folder))


@pytest.mark.parametrize("name", ["traces.def", "traces/0.evt", "traces/1.def"])
def test_a_pipe_in_an_otf2_archive_is_not_waited_for(tmp_path: Path, name: str) -> None:
    folder = written_archive(tmp_path / "trace")
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    with pytest.raises(InputError, match=f"{name} is not a regular file"):
        list(READERS["otf2"].read(folder))


def test_a_cut_off_otf2_archive_is_refused_without_the_library_s_own_lines(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = written_archive(tmp_path / "trace")
    events = sorted((folder / "traces").glob("*.evt"))
    for file in (*events, folder / "traces.def", folder / "traces.otf2"):
        whole = file.read_bytes()
        for content in (whole[: len(whole) // 2], b""):
            file.write_bytes(content)
            with pytest.raises(InputError) as caught:
                list(READERS["otf2"].read(folder))
            assert "\n" not in str(caught.value)
        file.write_bytes(whole)
    assert list(READERS["otf2"].read(folder))
    assert capfd.readouterr().err == ""


def test_an_otf2_file_without_its_end_is_refused_before_the_library_reads_past_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the library finds behind a cut differs from process to process, so it must not be asked."""
    folder = written_archive(tmp_path / "trace")
    monkeypatch.setattr(otf2_trace, "_otf2", lambda: pytest.fail("the library was asked"))
    for file in (*(folder / "traces").iterdir(), folder / "traces.def"):
        whole = file.read_bytes()
        assert whole[-1] == 1
        for content in (whole[:-1], b""):
            file.write_bytes(content)
            with pytest.raises(InputError, match=f"{file.name} is cut off"):
                list(READERS["otf2"].read(folder))
        file.write_bytes(whole)


def test_an_otf2_archive_with_fewer_events_than_it_counts_is_refused(tmp_path: Path) -> None:
    folder = written_archive(tmp_path / "trace")
    file = folder / "traces" / "0.evt"
    whole = file.read_bytes()
    leave = len(whole) - 15  # the last event, a time of 9 bytes and 4 of the leave, before the two marks of the end
    file.write_bytes(whole[:leave] + whole[-2:])
    with pytest.raises(InputError):
        list(READERS["otf2"].read(folder))


def test_damaged_otf2_archives_are_refused(tmp_path: Path) -> None:
    folder = written_archive(tmp_path / "trace", leave=False)
    with pytest.raises(InputError, match="leaves MPI_Allreduce without having entered"):
        list(READERS["otf2"].read(folder))
    (tmp_path / "trace2").mkdir()
    (tmp_path / "trace2" / "traces.otf2").write_bytes(b"no archive")
    with pytest.raises(InputError, match="not an OTF2 archive"):
        list(READERS["otf2"].read(tmp_path / "trace2"))


def test_classes_and_names() -> None:
    assert [size_class(size) for size in (0, 1, 2, 3, 4, 1024, 1025, 2.5)] == [0, 1, 2, 4, 4, 1024, 2048, 4]
    assert [plain(name) for name in ("MPI_Isend", "mpi_isend_", "MPI_REDUCE_SCATTER", "PMPI_Bcast")] == [
        "Isend",
        "Isend",
        "Reduce_scatter",
        "Bcast",
    ]
