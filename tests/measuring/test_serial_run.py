"""Solvers that do not initialise MPI where they run on one rank."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ranksight.cli.main import main
from ranksight.core.experiment import read
from ranksight.model.application.agreement import message_series

pytestmark = [
    pytest.mark.mpi,
    pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed"),
]

SOURCE = r"""
#include <mpi.h>
double a[1000];
__attribute__((noinline)) static void work(void) { for (int i = 1; i < 1000; i++) { a[i] += a[i - 1] + 1; } }
int main(int argc, char **argv) {
    double sum;
    if (argc > 1) { MPI_Init(&argc, &argv); }
    for (int i = 0; i < 100; i++) { work(); }
    if (argc > 1) { MPI_Allreduce(a, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); MPI_Finalize(); }
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("serial")
    (place / "solver.c").write_text(SOURCE)
    made = place / "solver"
    subprocess.run(["mpicc", "-g", "-O1", "-o", str(made), str(place / "solver.c")], check=True)
    return made


def test_counts_and_no_messages_of_a_serial_run(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        monkeypatch.setenv(name, "1")
    line = ["measure", "--ranks", "1,2", "--collector", "callgrind", "--collector", "pmpi", "-o", str(tmp_path / "e")]
    parallel = ["mpirun", "--oversubscribe", "-n", "{ranks}", str(program), "parallel"]
    assert main([*line, "--quiet", "--at", "1", str(program), "--", *parallel]) == 0
    made = read(tmp_path / "e")
    counts = made.counters(["instructions"]).astype({"kernel": str})
    mine = counts[(counts["kernel"] == "work") & counts["instructions"].notna()].set_index(["run", "rank"])
    # The serial run does what each rank of the parallel one does.
    assert len(mine) == 3
    assert mine["instructions"].nunique() == 1
    sent = message_series(made)
    assert sent is not None
    assert sent.points.tolist() == [[1.0], [2.0]]
    assert [row[1].tolist() for row in sent.values if (row[1] > 0).any()]


def test_what_precedes_mpi_is_left_out_without_a_launcher_too(program: Path, tmp_path: Path) -> None:
    runs = {}
    for name, alone in {"serial": str(program), "single": f"{program} parallel"}.items():
        line = ["measure", "--ranks", "1", "--collector", "callgrind", "-o", str(tmp_path / name), "--quiet"]
        assert main([*line, "--at", "1", alone, "--", "mpirun", "-n", "{ranks}", str(program), "parallel"]) == 0
        table = read(tmp_path / name).counters(["instructions"]).astype({"kernel": str})
        runs[name] = table.set_index("kernel")["instructions"]
    assert runs["serial"]["work"] == runs["single"]["work"]
    # Initialising MPI takes a hundred times what the program does.
    assert runs["single"].sum() < 2 * runs["serial"].sum()
