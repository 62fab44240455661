"""Functions of MPI are communication, whichever tool timed them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ranksight as rs
from ranksight.cli import main
from ranksight.core.leftout import MPI
from ranksight.core.mpi import communicates, is_call, is_symbol
from ranksight.core.reading import READERS
from ranksight.core.view import View
from ranksight.model.series.folding import OTHERS, OTHERS_OF_MPI, Folded

CALLS = ["MPI_Allreduce", "MPI_Allreduce()", "PMPI_Isend", "main->solve->MPI_Waitall", "mpi_bcast_", "mpi_waitall",
         "mpi_comm_split_", "MPI_ALLTOALL", "MPIX_Start", "main -> x->pmpi_irecv__", "MPI_Send(void const*, int)"]  # fmt: skip
OF_MPI = [MPI, "MPI", "mpi time", "main->MPI_Reduce->memcpy", "exchange() [MPI]", "main->f->MPIDI_CH3I_Progress"]
COMPUTING = ["solve", "mpi_smooth", "MPIsolver", "halo_exchange", "mpi_test_case", "(whole program)", "(others)", "ompi",
             "send", "MPI_", "libmpi_like->step"]  # fmt: skip


@pytest.mark.parametrize("kernel", CALLS)
def test_calls_of_mpi_communicate(kernel: str) -> None:
    assert is_call(kernel)
    assert communicates(kernel)


@pytest.mark.parametrize("kernel", OF_MPI)
def test_so_does_what_they_call_and_all_together(kernel: str) -> None:
    assert communicates(kernel)


@pytest.mark.parametrize("kernel", COMPUTING)
def test_other_functions_do_not(kernel: str) -> None:
    assert not communicates(kernel)


def test_symbols_of_a_static_library() -> None:
    assert all(map(is_symbol, ["MPI_Send", "PMPI_Wait", "mpi_bcast_", "MPIR_Wait", "ucp_worker_progress"]))
    assert not any(map(is_symbol, ["smooth", "mpi_smooth", "MPI", "umpi_x"]))


TIMES = {"smooth": lambda p: 8.0 / p, "sum": lambda p: 0.1 * p}
"""Seconds of a computing kernel and of an all-reduce that grows with the ranks."""


def tau(folder: Path, call: str, group: str) -> Path:
    for ranks in (2, 4, 8, 16):
        place = folder / "tau" / f"n{ranks}"
        place.mkdir(parents=True)
        for rank in range(ranks):
            rows = [("main", 0.0, "TAU_DEFAULT"), ("smooth()", TIMES["smooth"](ranks), "TAU_USER"), (call, TIMES["sum"](ranks), group)]  # fmt: skip
            text = "\n".join(f'"{name}" 5 0 {1e6 * t:.0f} {1e6 * t:.0f} 0 GROUP="{of}"' for name, t, of in rows)
            head = "3 templated_functions_MULTI_TIME\n# Name Calls Subrs Excl Incl ProfileCalls #\n"
            (place / f"profile.{rank}.0.0").write_text(f"{head}{text}\n0 aggregates\n0 userevents\n")
    return folder / "tau"


def table(folder: Path, call: str) -> Path:
    rows = [
        f"{p},{name},{TIMES[key](p)}" for p in (2, 4, 8, 16) for name, key in (("smooth()", "smooth"), (call, "sum"))
    ]
    path = folder / "t.csv"
    path.write_text("\n".join(["ranks,f,time", *rows]) + "\n")
    return path


@pytest.mark.parametrize(
    ("made", "call"),
    [
        (lambda folder: tau(folder, "MPI_Allreduce()", "MPI"), "MPI_Allreduce()"),
        (lambda folder: tau(folder, "sum_of_all()", "MPI | TAU_MESSAGE"), "sum_of_all() [MPI]"),
        (lambda folder: table(folder, "mpi_allreduce_"), "mpi_allreduce_"),
        (lambda folder: table(folder, "main->cg->PMPI_Allreduce"), "main->cg->PMPI_Allreduce"),
        (lambda folder: table(folder, MPI), MPI),
    ],
    ids=["tau", "group", "fortran", "path", "library"],
)
def test_their_time_is_that_of_messages(tmp_path: Path, made: object, call: str) -> None:
    source = made(tmp_path)
    columns = ["--parameter", "ranks", "--kernel", "f", "--metric", "time"]
    line = ["csv", str(source), *columns] if source.is_file() else [str(source), "--parameter", r"ranks=n(\d+)"]
    assert main(["import", *line, "-o", str(tmp_path / "e.exp"), "--quiet"]) == 0
    found = rs.fit(tmp_path / "e.exp").diagnose(ranks=64)
    rows = found.verdicts().set_index("kernel")
    assert rows.loc[call, "verdict"] == "communication-bound"
    assert rows.loc[call, ["communication", "unknown"]].tolist() == [1.0, 0.0]
    assert rows.loc["smooth()", "communication"] == 0.0
    assert rows.loc[call, "time"] == pytest.approx(6.4, rel=0.05)
    assert rows.loc[call, "lower"] < rows.loc[call, "time"] < rows.loc[call, "upper"]
    parts = {name: float(values[0]) for name, values in found.evidence.broken.parts.items()}
    assert parts["communication"] == pytest.approx(6.4, rel=0.05)
    assert sum(parts.values()) == pytest.approx(float(found.evidence.total[0]))
    line = found.efficiencies().set_index("ranks")
    assert line.loc[64, "communication"] == pytest.approx(0.125 / 6.525, rel=0.1)
    assert line.loc[64, "computation_scaling"] == pytest.approx(1.0, rel=0.02)


def test_small_calls_stay_apart_from_small_kernels(tmp_path: Path) -> None:
    experiment = rs.Experiment.create(tmp_path / "e.exp", "e", ["ranks"])
    times = {"solve": 8.0, "a": 0.1, "b": 0.2, "MPI_Wait": 0.3, "a->MPI_Send": 0.4}
    run = experiment.add(
        rs.Run({"ranks": 1.0}), pd.DataFrame({"kernel": list(times), "rank": 0, "time": times.values()})
    )
    held = View(experiment, Folded(["a", "b", "MPI_Wait", "a->MPI_Send"])).table(run, "counters")
    assert held is not None
    found = dict(zip(held["kernel"].astype(str), held["time"], strict=True))
    assert found == pytest.approx({"solve": 8.0, OTHERS: 0.3, OTHERS_OF_MPI: 0.7})
    assert communicates(OTHERS_OF_MPI)


@pytest.mark.parametrize(
    ("reader", "path"),
    [("tau", "tau/tau-cpi-mpi"), ("hpctoolkit", "hpctoolkit/hpctoolkit-cpi-database")],
)
def test_real_profiles_of_cpi_communicate_most_of_the_time(shared: Path, reader: str, path: str) -> None:
    (reading,) = READERS[reader].read(shared / "data" / "formats" / path)
    seconds = reading.counters.groupby("kernel", observed=True)["time"].sum()
    calls = np.array([communicates(str(kernel)) for kernel in seconds.index])
    assert seconds[calls].sum() > 0.95 * seconds.sum()
    assert not any(communicates(str(name)) for name in seconds.index if "MPI" not in str(name).upper())
