"""Programs that have sessions in place of MPI_Init."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ranksight.comm.tracer.gathering import read_folder
from ranksight.comm.tracer.tables import tabulate

pytestmark = pytest.mark.mpi
P = 2


@pytest.mark.parametrize(
    ("mpi", "again"), [("", False), (".mpich", False), ("_abi", False), ("_abi", True)], ids=str
)  # fmt: skip
def test_sessions_are_traced_from_the_first_to_the_last(tracing, tmp_path: Path, mpi: str, again: bool) -> None:
    suffix, mpirun = tracing.mpi(mpi)
    probe = "#include <mpi.h>\nint main(void) { return MPI_Session_init == 0; }\n"
    known = [f"mpicc{suffix}", "-fsyntax-only", "-x", "c", "-"]
    if subprocess.run(known, input=probe, text=True, capture_output=True).returncode != 0:
        pytest.skip("this MPI has no sessions")
    program = tracing.compile("sessions.c", wrapper=f"mpicc{suffix}")
    launch = tracing.launch(program, P, *(["again"] if again else []), mpirun=mpirun)
    done = tracing.run(launch, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("done") == P  # lines of two ranks may come interleaved
    traces, lost = read_folder(tmp_path, P)
    assert lost == []
    assert [trace.ended for trace in traces] == ["finalize"] * P
    tables = tabulate(traces)
    found = tables.messages.groupby(["rank", "operation"], observed=True)[["count", "bytes"]].sum()
    for rank in range(P):
        counts = {str(name): int(row["count"]) for name, row in found.loc[rank].iterrows()}
        assert counts["Session_init"] == counts["Session_finalize"] == (3 if again else 2)
        assert counts["Sendrecv"] == counts["Comm_free"] == (2 if again else 1)
        assert found.loc[(rank, "Sendrecv"), "bytes"] == (12 if again else 5) * 8
        peers = tables.peers[(tables.peers["rank"] == rank) & (tables.peers["operation"] == "Sendrecv")]
        assert peers["peer"].unique().tolist() == [1 - rank]
