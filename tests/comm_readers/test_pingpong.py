"""Timings of messages in CSV."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranksight.comm.readers.pingpong import load
from ranksight.core.errors import InputError
from ranksight.core.reading import READERS
from ranksight.core.testing import check_reader


def written(folder: Path, text: str, name: str = "times.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_send_and_a_receive_are_one_round_trip(tmp_path: Path) -> None:
    path = written(tmp_path, "MPI_Send,8,1.0,1e-6\nMPI_Recv,8,1.0,3e-6\nMPI_Send,16,2.0,2e-6\nMPI_Recv,16,2.0,4e-6\n")
    table = load([path])
    trips = table[table["op"] == "pingpong"]
    assert trips["duration"].tolist() == pytest.approx([2e-6, 3e-6])
    assert table[table["op"] == "send"]["duration"].tolist() == pytest.approx([1e-6, 2e-6])
    assert set(table["op"]) == {"pingpong", "send"}


def test_files_of_one_call_are_overheads(tmp_path: Path) -> None:
    sends = written(tmp_path, "MPI_Isend,8,1.0,1e-6\nMPI_Isend,8,1.1,0\n", "sends.csv")
    receives = written(tmp_path, "op,bytes,duration\nMPI_Recv,8,2e-6\n", "receives.csv")
    assert load([sends, receives])["op"].tolist() == ["isend", "recv"]


def test_our_own_names_pass_through(tmp_path: Path) -> None:
    path = written(tmp_path, "op,bytes,duration\npingpong,8,2e-6\ngap,8,1e-7\n")
    assert load([path])["op"].tolist() == ["pingpong", "gap"]
    reader = READERS["pingpong"]
    assert reader.recognises(path, path.read_bytes())
    (reading,) = reader.read(path)
    assert len(reading.tables["timings"]) == 2
    check_reader(reader, path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MPI_Send,8,1.0,1e-6\nMPI_Recv,8,2.0,3e-6\n", "do not pair up"),
        ("MPI_Isend,8,1.0,1e-6\nMPI_Isend,eight,1.0,1e-6\n", ":2: bytes is 'eight'"),
        ("op,bytes,duration\npingpong,8,-1\n", ":2: duration"),
        ("op,bytes,duration\npingpong,8,nan\n", ":2: duration"),
        ("MPI_Isend,8,1.0,1e-6\nMPI_Fly,8,1.0,1e-6\n", ":2: unknown operation 'MPI_Fly'"),
        ("MPI_Isend,8\n", "2 columns"),
        ("MPI_Isend,8,1.0,1e-6,9\n", "5 columns"),
        ("op,bytes,duration\npingpong,8,1e-6,7,8\npingpong,8,1e-6\n", "Row #2: Expected 3 columns, got 5"),
        ("", "columns"),
        ("op,bytes,duration\n", "no timings"),
    ],
)
def test_damaged_files_are_refused_by_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load([written(tmp_path, text)])


def test_binary_and_missing_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_bytes(b"MPI_Isend,\xff\xfe\x00,1,1\n")
    with pytest.raises(InputError):
        load([path])
    with pytest.raises(InputError, match="cannot be read"):
        load([tmp_path / "none.csv"])
