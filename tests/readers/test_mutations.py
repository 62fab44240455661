"""Mutated files of all formats in a process with bounded memory: read, or refused in one line, within seconds."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TURNS = 30
FILES = {
    "caliper": ("caliper/*.cali", "caliper/*.json"),
    "cachegrind": ("valgrind/cachegrind*",),
    "callgrind": ("valgrind/callgrind.out.100",),
    "gprof": ("gprof/*",),
    "gptl": ("gptl/*",),
    "hpctoolkit": ("hpctoolkit/*.xml",),
    "ipm": ("../../comm_readers/data/*.xml",),
    "likwid": ("likwid/[!f]*",),
    "mpip": ("../../comm_readers/data/*.mpiP",),
    "papi": ("papi/*",),
    "perf-report": ("perf/report.txt",),
    "perf-script": ("perf/script*",),
    "perf-stat": ("perf/stat*", "perf/tagged.txt"),
    "tau": ("tau/MULTI__TIME/profile.0.0.0",),
    "vtune": ("vtune/*",),
}
EXTRAP = "PARAMETER ranks\nPOINTS 2 4 8\nREGION main\nMETRIC time\nDATA 1 1.1\nDATA 2 2.1\nDATA 4 4.1\n"


def test_mutated_files_of_all_formats(
    tmp_path: Path, write_cube: Callable[..., Path], write_database: Callable[..., Path]
) -> None:
    for name in ("caliperreader", "pycubexr"):
        pytest.importorskip(name)
    for reader, patterns in FILES.items():
        (tmp_path / reader).mkdir()
        for file in (file for pattern in patterns for file in (HERE / "data").glob(pattern)):
            shutil.copy(file, tmp_path / reader)
    for name in ("extrap", "cube"):
        (tmp_path / name).mkdir()
    (tmp_path / "extrap" / "text.txt").write_text(EXTRAP)
    metrics = {"time": ("EXCLUSIVE", "DOUBLE", "sec", {0: [1.0, 2.0], 1: [3.0, 4.0]})}
    for packed in (False, True):
        write_cube(tmp_path / "cube" / f"p{packed:d}.cubex", ("main", [("a", [])]), [0, 1], metrics, packed)
    values = {1: {0: 1.0, 1: 1.0}, 2: {0: 2.0, 1: 2.0}, 0: {1: 3.0}}
    contexts = [(1, "main", 0, [(2, "work", 0, [])])]
    write_database(tmp_path / "hpctoolkit" / "db", contexts, ["REALTIME (sec)"], [(0, 0, values), (1, 0, values)])

    words = [sys.executable, str(HERE / "mutating.py"), str(tmp_path), str(TURNS)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout)
    assert said["found"] == []
    assert all(said["counts"][reader] >= TURNS for reader in (*FILES, "cube", "extrap"))
    assert 0 < said["refused"] < sum(said["counts"].values())
