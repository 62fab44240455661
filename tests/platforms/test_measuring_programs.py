"""The C programs that measure a machine."""

from __future__ import annotations

import itertools
import math
import shutil
import subprocess
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from ranksight.core.errors import ToolError
from ranksight.platforms.calibration.programs import Programs

needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="cc, gcc and clang not found"
)


@pytest.fixture(scope="module")
def programs() -> Iterator[Programs]:
    with Programs() as built:
        yield built


@needs_compiler
@pytest.mark.parametrize(("nodes", "window"), [(1, 8), (7, 8), (8, 8), (100, 8), (1024, 1024), (4099, 64)])
def test_pointers_form_one_cycle_through_all_nodes_window_by_window(tmp_path: Path, nodes: int, window: int) -> None:
    source = files("ranksight.platforms.calibration").joinpath("latency.c")
    harness = tmp_path / "harness.c"
    harness.write_text(
        f'#define main measured_main\n#include "{source}"\n#undef main\n'
        "int main(void) {\n"
        f"  const size_t nodes = {nodes}, stride = 128, window = {window};\n"
        "  state = 1;\n  char *memory = lines_of(nodes * stride);\n  link_cycle(memory, nodes, stride, window);\n"
        "  void **at = (void **)memory;\n"
        '  do printf("%zu\\n", (size_t)((char *)at - memory) / stride), at = *at; while (at != (void **)memory);\n'
        "  return 0;\n}\n"
    )
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))))
    subprocess.run([compiler, "-O1", str(harness), "-o", str(tmp_path / "harness"), "-pthread"], check=True)
    done = subprocess.run([str(tmp_path / "harness")], capture_output=True, text=True, check=True)
    visited = [int(line) for line in done.stdout.split()]
    assert sorted(visited) == list(range(nodes))
    # Node 0 may stand anywhere in its window's part of the cycle: that window alone is entered twice.
    windows = [key for key, _ in itertools.groupby(place // window for place in visited)]
    assert len(windows) <= -(-nodes // window) + 1
    if nodes > 1000:
        jumps = np.abs(np.diff(visited))
        assert np.median(jumps) > window / 8  # no stride that a prefetcher could follow


@needs_compiler
@pytest.mark.parametrize(
    ("kernel", "arrays", "streams"),
    [("read", 1, 1), ("write", 1, 1), ("update", 1, 2), ("copy", 2, 2), ("triad", 3, 3)],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_bandwidth_counts_loads_and_stores_of_all_threads(
    programs: Programs, kernel: str, arrays: int, streams: int, threads: int
) -> None:
    size = 3 * 512 * 100
    cpus = ",".join(["-1"] * threads)
    samples = programs.run("bandwidth", (kernel, size, cpus, 1e-5, 2), "test")
    swept = size // arrays * streams * threads
    assert all(work % swept == 0 for work, _ in samples.pairs)
    sweeps = {work / swept for work, _ in samples.pairs}
    assert all(math.log2(count).is_integer() for count in sweeps)


@needs_compiler
@pytest.mark.parametrize("kernel", ["write", "update", "copy", "triad"])
def test_no_streaming_kernel_is_optimised_away(programs: Programs, kernel: str) -> None:
    # The loop of a kernel that a compiler saw through would take no time for any number of bytes.
    rates = {name: programs.run("bandwidth", (name, 1 << 16, "-1", 1e-4, 3), name).rate for name in ("read", kernel)}
    assert rates[kernel] < 50 * rates["read"]


@needs_compiler
@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("latency", (4096,), "usage: latency"),
        ("latency", (4096, 128, 4096, -1, 1, "soon", 3), "a number on the command line is off"),
        ("bandwidth", ("scale", 65536, "-1", 1e-5, 1), "none of read, write, update, copy, triad"),
        ("bandwidth", ("read", 65536, ",", 1e-5, 1), "no processor is named"),
        ("clock", ("4000", 1e-5, 1), "cannot bind a thread"),
    ],
)
def test_programs_refuse_what_they_cannot_measure(
    programs: Programs, name: str, arguments: tuple[object, ...], says: str
) -> None:
    with pytest.raises(ToolError, match=says):
        programs.run(name, arguments, "test")


def test_missing_and_broken_compilers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(ToolError, match="install gcc"):
        Programs()
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho 'cc: error: licence expired' >&2\nexit 1\n")
    broken.chmod(0o755)
    with Programs() as programs, pytest.raises(ToolError, match="licence expired"):
        programs.build("clock")
