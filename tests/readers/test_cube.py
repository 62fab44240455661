"""CUBE4: exclusive values, ranks and threads, damaged and hostile archives; real files against pycubexr."""

from __future__ import annotations

import sys
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import readings
from readings import cell

from ranksight.core import places
from ranksight.core.errors import InputError, ToolError
from ranksight.core.reading import READERS
from ranksight.core.testing import check_reader

pytest.importorskip("pycubexr")

TREE = ("main", [("solve<a, b>", [("MPI_Send", [])]), ("io", []), ("solve<a, b>", [])])
"""Paths 0 main, 1 main->solve, 2 main->solve->MPI_Send, 3 main->io, 4 main->solve again."""
METRICS = {
    "visits": ("EXCLUSIVE", "UINT64", "occ", {0: [1, 1], 1: [10, 20], 2: [5, 5], 3: [1, 2], 4: [100, 200]}),
    # stored breadth first: main, solve, io, solve, MPI_Send
    "time": (
        "INCLUSIVE",
        "DOUBLE",
        "msec",
        {0: [9000, 8000], 1: [5000, 4000], 2: [1000, 1000], 3: [500, 500], 4: [2000, 1000]},
    ),
    "PAPI_TOT_INS": ("INCLUSIVE", "UINT64", "#", {0: [100, 100], 1: [50, 50], 2: [70, 10], 3: [0, 0], 4: [20, 20]}),
    "max_time": ("EXCLUSIVE", "MAXDOUBLE", "sec", {0: [1.0, 1.0]}),
    "bytes_sent": ("EXCLUSIVE", "UINT64", "bytes", {2: [4096, 8192]}),
    "bytes_put": ("EXCLUSIVE", "UINT64", "bytes", None),
}

read = partial(readings.read, "cube")


@pytest.mark.parametrize("compress", [False, True])
def test_values_are_exclusive_and_in_si(tmp_path: Path, write_cube: Callable[..., Path], compress: bool) -> None:
    path = write_cube(tmp_path / "profile.cubex", TREE, [0, 1], METRICS, compress)
    check_reader(READERS["cube"], path)
    reading = read(path)
    assert reading.configuration == {"ranks": 2.0}
    assert cell(reading, "main", "time") == pytest.approx(9.0 - 5.0 - 1.0 - 0.5)
    # both calls of solve from main are one kernel: 5 - 2 s and 0.5 s
    assert cell(reading, "main->solve<a, b>", "time") == pytest.approx(3.0 + 0.5)
    assert cell(reading, "main->solve<a, b>", "visits", 1) == 220
    assert cell(reading, "main->solve<a, b>->MPI_Send", "time", 1) == pytest.approx(1.0)
    assert cell(reading, "main->solve<a, b>->MPI_Send", "bytes_sent", 1) == 8192
    assert cell(reading, "main", "instructions") == 0
    assert cell(reading, "main", "instructions", 1) == 40
    assert cell(reading, "main->io", "instructions") == 70
    assert reading.provenance["instructions"] == "measured (PAPI_TOT_INS)"
    assert reading.tables[places.TABLE].to_numpy().tolist() == [["main->io", "io.c", 7]]
    assert any("PAPI_TOT_INS of callees exceeds" in note for note in reading.notes)
    assert any("without values: bytes_put" in note for note in reading.notes)
    assert any("max_time" in note and "left out" in note for note in reading.notes)


def test_threads_of_a_rank(tmp_path: Path, write_cube: Callable[..., Path]) -> None:
    reading = read(write_cube(tmp_path / "p.cubex", TREE, [0, 0], METRICS))
    assert reading.configuration == {"ranks": 1.0}
    assert cell(reading, "main->io", "instructions") == 80
    assert cell(reading, "main->io", "time") == pytest.approx(1.0)
    assert cell(reading, "main->solve<a, b>", "time") == pytest.approx(3.5)
    assert len(reading.tables["threads"]) == 8


def test_a_rank_is_missing(tmp_path: Path, write_cube: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match="rank 1 of 0 to 2 is missing"):
        read(write_cube(tmp_path / "p.cubex", TREE, [0, 2], METRICS))


def test_paths_that_climb_out_are_refused(tmp_path: Path, write_cube: Callable[..., Path]) -> None:
    for name, kind in (("../../evil", tarfile.REGTYPE), ("/etc/evil", tarfile.REGTYPE), ("3.data", tarfile.SYMTYPE)):
        info = tarfile.TarInfo(name)
        info.type = kind
        info.linkname = "/etc/passwd"
        path = write_cube(tmp_path / "p.cubex", TREE, [0, 1], METRICS, extra=[info])
        with pytest.raises(InputError, match="leads out of it"):
            read(path)


def test_damaged_archives(tmp_path: Path, write_cube: Callable[..., Path]) -> None:
    whole = write_cube(tmp_path / "whole.cubex", TREE, [0, 1], METRICS, compress=True).read_bytes()
    path = tmp_path / "cut.cubex"
    with tarfile.open(tmp_path / "whole.cubex") as archive:
        last = archive.getmembers()[-1]
    for end in [0, 1, 300, *range(512, last.offset_data + last.size, 700)]:
        path.write_bytes(whole[:end])
        with pytest.raises(InputError, match="cut.cubex"):
            read(path)
    broken = write_cube(tmp_path / "broken.cubex", TREE, [0, 1], METRICS, anchor_end="</cub")
    with pytest.raises(InputError, match="broken.cubex is not a CUBE4 archive that can be read: ExpatError"):
        read(broken)
    with pytest.raises(InputError, match="no metric with values"):
        read(write_cube(tmp_path / "none.cubex", TREE, [0, 1], {"bytes_put": METRICS["bytes_put"]}))


def test_absurd_number_is_refused(tmp_path: Path, write_cube: Callable[..., Path]) -> None:
    metrics = {"time": ("EXCLUSIVE", "DOUBLE", "sec", {0: [1e300, 1.0]})}
    with pytest.raises(InputError, match=r"kernel 'main' on rank 0 has 1e\+300 of time"):
        read(write_cube(tmp_path / "p.cubex", TREE, [0, 1], metrics))


def test_missing_extra_is_named(
    tmp_path: Path, write_cube: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_cube(tmp_path / "p.cubex", TREE, [0, 1], METRICS)
    monkeypatch.setitem(sys.modules, "pycubexr", None)
    with pytest.raises(ToolError, match=r"pip install 'ranksight\[cube\]'"):
        read(path)


def test_real_files_agree_with_pycubexr(shared: Path) -> None:
    from pycubexr import CubexParser

    files = sorted((shared / "data" / "formats" / "cube").rglob("*.cubex"))
    assert len(files) >= 11
    own = {"PAPI_FP_OPS": "flops", "PAPI_L3_LDM": "loads_mem"}
    compared = 0
    for path in files:
        assert READERS["cube"].recognises(path, path.read_bytes()[:4096])
        table = read(path).counters
        with CubexParser(str(path)) as cube:
            ranks = len(cube.get_locations())
            for metric in cube.all_metrics():
                name = own.get(metric.name, metric.name)
                if name not in table or metric.name in ("min_time", "max_time"):
                    continue
                values = cube.get_metric_values(metric)
                expected: dict[str, np.ndarray] = {}
                for node in cube.all_cnodes():
                    path_name, at = node.region.name, node.parent
                    while at is not None:
                        path_name, at = f"{at.region.name}->{path_name}", at.parent
                    exclusive = np.asarray(values.cnode_values(node, convert_to_exclusive=True), dtype=float)
                    expected[path_name] = expected.get(path_name, 0.0) + exclusive
                got = table.pivot(index="kernel", columns="rank", values=name)
                for kernel, exclusive in expected.items():
                    assert len(exclusive) == ranks
                    np.testing.assert_allclose(got.loc[kernel], exclusive, rtol=1e-9, atol=1e-9)
                    compared += len(exclusive)
    assert compared > 100_000
