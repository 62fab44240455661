"""Partitioned and persistent operations, requests of one-sided ones, large counts: where the library has them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ranksight.comm.tracer.gathering import read_folder
from ranksight.comm.tracer.tables import tabulate

pytestmark = pytest.mark.mpi
P, D = 3, 8


@pytest.mark.parametrize("mpi", ["", ".mpich", "_abi"], ids=["mpi", "mpich", "abi"])
def test_what_mpi_4_brought(tracing, tmp_path: Path, mpi: str) -> None:
    suffix, mpirun = tracing.mpi(mpi)
    probe = "#include <mpi.h>\nint main(void) { return MPI_Psend_init == 0 || MPI_Allreduce_init == 0 || MPI_Isendrecv == 0; }\n"
    known = subprocess.run(
        [f"mpicc{suffix}", "-fsyntax-only", "-x", "c", "-"], input=probe, text=True, capture_output=True
    )
    if known.returncode != 0:
        pytest.skip("this MPI is older than 4.0")
    launch = tracing.launch(tracing.compile("modern.c", wrapper=f"mpicc{suffix}"), P, mpirun=mpirun)
    done = tracing.run(launch, tmp_path)
    assert done.returncode == 0, done.stderr
    traces, lost = read_folder(tmp_path, P)
    assert lost == []
    tables = tabulate(traces)
    for rank in range(P):
        wanted = {
            ("partitioned", "Psend_init"): (1, 0),
            ("partitioned", "Psend_start"): (3, 3 * 32 * D),
            ("partitioned", "Precv_start"): (3, 3 * 32 * D),
            ("partitioned", "Pready"): (12, 0),
            ("persistent_collectives", "Allreduce_init"): (1, 0),
            ("persistent_collectives", "Allreduce_start"): (4, 4 * 5 * D),
            ("persistent_collectives", "Bcast_start"): (4, 4 * 6 * D),
            ("persistent_collectives", "Barrier_start"): (4, 0),
            ("both_ways", "Isendrecv"): (1, 9 * D),
            ("both_ways", "Isendrecv_recv"): (1, 9 * D),
            ("asked_for", "Rput"): (1, 3 * D),
            ("asked_for", "Rget"): (1, 2 * D),
        }
        if mpi != "":  # MPICH's Isendrecv completes with a status that nobody has set
            del wanted["both_ways", "Isendrecv_recv"]
        if "large" in done.stdout:
            wanted |= {
                ("large", "Sendrecv"): (1, 7 * D),
                ("large", "Sendrecv_recv"): (1, 7 * D),
                ("large", "Allgatherv"): (1, (rank + 1) * D),
                ("large", "Reduce_scatter"): (1, 6 * D),
            }
        mine = tables.messages[tables.messages["rank"] == rank]
        found = mine.groupby(["kernel", "operation"], observed=True)[["count", "bytes"]].sum()
        got = {key: tuple(int(x) for x in found.loc[key]) if key in found.index else None for key in wanted}
        assert got == wanted
        peers = tables.peers[tables.peers["rank"] == rank].set_index("operation")["peer"]
        assert peers.loc["Psend_start"] == peers.loc["Rput"] == (rank + 1) % P
