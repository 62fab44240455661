"""Call sites in programs of Python: functions, not addresses in the module that binds MPI."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from ranksight.campaign.collecting import COLLECTORS
from ranksight.campaign.launching import Template
from ranksight.comm.tracer.callsites import UNKNOWN, CallSites, python_name
from ranksight.comm.tracer.rawfile import RankTrace

PYTHON, MPIRUN = "/usr/bin/python3", "mpirun.openmpi"
PROGRAM = Path(__file__).parent / "programs" / "functions.py"
P = 3


@lru_cache(maxsize=1)
def _missing() -> bool:
    asked = [PYTHON, "-c", "import mpi4py, sys; print(sys.version_info >= (3, 9))"]
    try:
        return subprocess.run(asked, capture_output=True, text=True).stdout.strip() != "True"
    except OSError:
        return True


def _kernels(tracing, folder: Path, *arguments: str) -> dict[str, set[str]]:
    """Operations of each kernel; skipped where there is no mpi4py for the distribution's Open MPI."""
    tracing.mpi(".openmpi")
    if _missing():
        pytest.skip("mpi4py of the distribution not found")
    words = (MPIRUN, "--oversubscribe", "-n", "{ranks}", PYTHON, str(PROGRAM), *arguments)
    messages = tracing.tables(Template(words).fill({"ranks": P}), folder).messages
    moving = messages[messages["kind"].isin(list("sprc"))]
    return {str(kernel): set(part["operation"]) for kernel, part in moving.groupby("kernel", observed=True)}


def _line(text: str) -> int:
    lines = PROGRAM.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def test_functions_of_python_are_the_kernels(tracing, tmp_path: Path) -> None:
    found = _kernels(tracing, tmp_path)
    shift = f"Ring.shift (functions.py:{_line('def shift')})"
    main = f"main (functions.py:{_line('def main')})"
    # a generator is a function of its own; a lambda and a generator within main are named by their own lines
    inner = f"main.(genexpr) (functions.py:{_line('sum(world')})"
    assert set(found) == {shift, main, inner, f"main.(lambda) (functions.py:{_line('lambda: world')})"}
    assert {"Isend", "Mrecv"} <= found[shift] or {"Sendrecv"} <= found[shift]
    assert "Barrier" in found[main]
    assert {"Allgather", "Allgatherv"} & found[inner]


def test_beginning_and_end_belong_to_the_script_and_the_interpreter(tracing, tmp_path: Path) -> None:
    _kernels(tracing, tmp_path / "a")
    words = (MPIRUN, "--oversubscribe", "-n", "{ranks}", PYTHON, str(PROGRAM))
    messages = tracing.tables(Template(words).fill({"ranks": P}), tmp_path / "b").messages
    kernels = {name: set(messages.loc[messages["operation"] == name, "kernel"]) for name in ("Init", "Finalize")}
    assert kernels == {"Init": {"(module) (functions.py:1)"}, "Finalize": {"(exit of Python)"}}


def test_no_call_waits_for_another_thread_of_python(tracing, tmp_path: Path) -> None:
    found = _kernels(tracing, tmp_path, "threads")
    operations = set().union(*found.values())
    assert "Barrier" in operations
    assert {"Allgather", "Allgatherv"} & operations


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind")
def test_the_start_of_the_interpreter_is_not_simulated(tracing, tmp_path: Path) -> None:
    tracing.mpi(".openmpi")
    if _missing():
        pytest.skip("mpi4py of the distribution not found")
    (tmp_path / "sums.py").write_text("from mpi4py import MPI\nfor _ in range(9): MPI.COMM_WORLD.allreduce(1)\n")
    launch = Template((MPIRUN, "-n", "{ranks}", PYTHON, str(tmp_path / "sums.py"))).fill({"ranks": 1})
    collector = COLLECTORS["callgrind"]
    for step in collector.steps(launch, tmp_path):
        done = subprocess.run(step.command, env={**os.environ, **step.environment}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    # Starting Python and MPI takes some hundred million instructions; mpi4py imports modules after MPI_Init as well.
    assert 1e4 < collector.collect(launch, tmp_path).counters["instructions"].sum() < 8e7


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Ring.shift\t/home/me/ring.py\t12", "Ring.shift (ring.py:12)"),
        ("<module>\tring.py\t1", "(module) (ring.py:1)"),
        ("main.<locals>.<lambda>\t/a/ring.py\t7", "main.(lambda) (ring.py:7)"),
        ("start\t/a/solver/__init__.py\t3", "start (solver/__init__.py:3)"),
        ("f\t<string>\t1", "f ((string):1)"),
        ("(exit of Python)", "(exit of Python)"),
        ("f\x1b[31m\t/a/b.py\t1", "f\ufffd[31m (b.py:1)"),
    ],
)
def test_name_of_a_function_of_python(text: str, name: str) -> None:
    assert python_name(text) == name


def test_ranks_that_number_functions_differently_share_kernels() -> None:
    top, places = np.uint64(1 << 63), CallSites()
    texts = ("f\t/a/b.py\t1", "g\t/a/b.py\t9")
    orders = (("", *texts), ("", *texts[::-1]))
    traces = [RankTrace({"rank": at}, 1e-9, (), (), [], order) for at, order in enumerate(orders)]
    asked = [places.sites(trace, np.array([1, 2, 3, 4096], np.uint64) | top) for trace in traces]
    sites, names = places.kernels()
    said = [list(names[np.searchsorted(sites, found)]) for found in asked]
    assert said[0] == ["f (b.py:1)", "g (b.py:9)", UNKNOWN, UNKNOWN]
    assert said[1] == ["g (b.py:9)", "f (b.py:1)", UNKNOWN, UNKNOWN]
