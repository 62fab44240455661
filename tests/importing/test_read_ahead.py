"""Files read by several processes make the same experiment."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from ranksight.cli.main import main
from ranksight.core.experiment import read


def tables(folder: Path) -> None:
    for ranks in (1, 2, 4, 8):
        (folder / f"r{ranks}.csv").write_text(f"ranks,kernel,time\n{ranks},a,{ranks}.5\n{ranks},b,2\n")


def test_the_same_by_one_process_and_by_two(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    tables(tmp_path / "in")
    words = ["import", "csv", str(tmp_path / "in"), "--parameter", "ranks", "--kernel", "kernel", "--metric", "time"]
    assert main([*words, "-o", str(tmp_path / "one")]) == 0
    assert main([*words, "-o", str(tmp_path / "two"), "--jobs", "2"]) == 0
    one, two = (read(tmp_path / name).counters().sort_values(["run", "kernel"]) for name in ("one", "two"))
    assert one.reset_index(drop=True).equals(two.reset_index(drop=True))


def test_a_bad_file_is_named_all_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").mkdir()
    tables(tmp_path / "in")
    (tmp_path / "in" / "r2.csv").write_text("ranks,kernel\n2,a\n")
    words = ["import", "csv", str(tmp_path / "in"), "--parameter", "ranks", "--kernel", "kernel", "--metric", "time"]
    assert main([*words, "-o", str(tmp_path / "one"), "--jobs", "2"]) == 0
    assert "r2.csv" in capsys.readouterr().err
    assert len(read(tmp_path / "one")) == 3
    assert main([*words, "-o", str(tmp_path / "two"), "--jobs", "2", "--strict"]) == 1
    assert not (tmp_path / "two").exists()
    assert main([*words, "-o", str(tmp_path / "two"), "--jobs", "0"]) == 2


def test_a_dask_scheduler_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("distributed")
    (tmp_path / "in").mkdir()
    tables(tmp_path / "in")
    words = ["import", "csv", str(tmp_path / "in"), "--parameter", "ranks", "--kernel", "kernel", "--metric", "time"]
    assert main([*words, "-o", str(tmp_path / "x"), "--dask", "what is this"]) == 1
    assert "not an address" in capsys.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as server:
        free = server.getsockname()[1]  # nobody listens there once it is closed
    assert main([*words, "-o", str(tmp_path / "x"), "--dask", f"tcp://127.0.0.1:{free}"]) == 1
    error = capsys.readouterr().err
    assert f"no Dask scheduler answers at tcp://127.0.0.1:{free}" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "x").exists()
