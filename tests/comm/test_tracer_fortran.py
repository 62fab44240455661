"""Fortran programs through mpif.h, use mpi and use mpi_f08: the same numbers as the program states."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytestmark = pytest.mark.mpi
P, D, R, I = 4, 8, 4, 4  # ranks; sizes of double precision, real, integer

EXCHANGE = {
    "Irecv": (4, (10 + 20 + 30 + 12) * D),
    "Isend": (4, (10 + 20 + 30 + 12) * D),
    "Sendrecv": (1, 7 * R),
    "Sendrecv_recv": (1, 7 * R),
    "Send": (1, 5 * I),
    "Recv": (1, 5 * I),
    "Send_init": (1, 0),
    "Recv_init": (1, 0),
    "Send_start": (4, 4 * 11 * D),
    "Recv_start": (4, 4 * 11 * D),
    "Startall": (4, 0),
    "Waitall": (2, 0),
    "Waitany": (2, 0),
    "Wait": (1, 0),
    "Request_free": (2, 0),
}
TOGETHER = {
    "Bcast": (1, 6 * D),
    "Allreduce": (3, 2 * 8 * D + D),
    "Alltoall": (1, P * 3 * D),
    "Alltoallw": (1, P // 2 * (D + R)),
    "Comm_split": (1, 0),
    "Comm_free": (1, 0),
    "Barrier": (1, 0),
}


@pytest.mark.parametrize("mpi", [".openmpi", ".mpich"])
@pytest.mark.parametrize("interface", ["", "-DUSE_MPI", "-DUSE_F08"], ids=["mpif.h", "use-mpi", "use-mpi_f08"])
def test_every_interface_is_traced(tracing, tmp_path: Path, mpi: str, interface: str) -> None:
    suffix, mpirun = tracing.mpi(mpi)
    if shutil.which(f"mpif90{suffix}") is None or shutil.which("gfortran") is None:
        pytest.skip("no Fortran compiler of this MPI")
    flags = ("-fallow-argument-mismatch", interface) if interface else ("-fallow-argument-mismatch",)
    program = tracing.compile("fortran.F90", *flags, wrapper=f"mpif90{suffix}")
    tables = tracing.tables(tracing.launch(program, P, mpirun=mpirun), tmp_path)
    for rank in range(P):
        mine = tables.messages[tables.messages["rank"] == rank]
        for kernel, wanted in (("exchange_", EXCHANGE), ("together_", TOGETHER)):
            found = mine[mine["kernel"] == kernel].groupby("operation", observed=True)[["count", "bytes"]].sum()
            got = {name: tuple(found.loc[name]) if name in found.index else None for name in wanted}
            assert got == wanted
        peers = tables.peers[tables.peers["rank"] == rank].groupby("operation", observed=True)["peer"].agg(set)
        assert peers["Isend"] == {(rank + 1) % P}
        assert peers["Irecv"] == {(rank - 1) % P}
    assert (tables.messages[tables.messages["operation"] == "Finalize"]["count"] == 1).all()
    assert (tables.messages["operation"] == "Get_processor_name").sum() == P
