"""Processor time between calls, held against the program's own clock while ranks crowd the cores."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from ranksight.comm.tracer.gathering import read_folder
from ranksight.comm.tracer.tables import tabulate

pytestmark = pytest.mark.mpi
P = 6


@pytest.mark.parametrize(("mode", "off"), [("adaptive", 0.4), ("exact", 0.1)])
def test_processor_time_of_computation_is_the_program_s_own(tracing, tmp_path: Path, mode: str, off: float) -> None:
    """The adaptive mode reads the processor's clock now and then: what ran between is estimated, the worse the more the
    cores are shared."""
    launch = tracing.launch(tracing.compile("compute.c"), P)
    done = tracing.run(launch, tmp_path, RANKSIGHT_CPU_TIME=mode)
    assert done.returncode == 0, done.stderr
    said = dict(line.split() for line in done.stdout.splitlines())
    traces, _ = read_folder(tmp_path, P)
    tables = tabulate(traces)
    found = tables.ranks.set_index("rank")
    for rank in range(P):
        own = float(said[str(rank)])
        assert found.loc[rank, "compute_cpu_time"] == pytest.approx(own, rel=off, abs=2e-3)
        assert found.loc[rank, "compute_time"] >= 0.98 * own
        assert found.loc[rank, "cpu_time"] >= 0.98 * own
    # The stretches add up to the whole, in wall time and in processor time.
    sums = tables.phases.groupby("rank")[["seconds", "cpu_seconds"]].sum()
    assert sums["seconds"].tolist() == pytest.approx(found["compute_time"].tolist(), rel=1e-6)
    assert sums["cpu_seconds"].tolist() == pytest.approx(found["compute_cpu_time"].tolist(), rel=1e-6)


def test_processor_time_can_be_left_out(tracing, tmp_path: Path) -> None:
    launch = tracing.launch(tracing.compile("compute.c"), 1)
    found = tracing.tables(launch, tmp_path, RANKSIGHT_CPU_TIME="off").ranks
    assert found["compute_cpu_time"].isna().all()
    assert (found["compute_time"] > 0).all()


def test_what_was_lost_inside_short_calls_takes_nothing_from_computation(tracing, tmp_path: Path) -> None:
    """A processor lost between two readings of its clock may have been lost in MPI calls, more than computation took."""
    launch = tracing.launch(tracing.compile("compute.c"), 1)
    assert tracing.run(launch, tmp_path).returncode == 0
    (trace,), _ = read_folder(tmp_path, 1)
    before = tabulate([trace]).ranks["compute_cpu_time"].iloc[0]
    main = trace.threads[0]
    records = main.records.copy()
    shortest = int(np.argmin(np.where(records["compute"] > 0, records["compute"], np.iinfo(np.uint64).max)))
    records["lost"][shortest] = 10 * records["compute"].max()
    threads = (dataclasses.replace(main, records=records), *trace.threads[1:])
    tables = tabulate([dataclasses.replace(trace, threads=threads)])
    found = tables.ranks["compute_cpu_time"].iloc[0]
    assert (tables.phases["cpu_seconds"] >= 0).all()
    assert 0 < found <= before
    assert found == pytest.approx(before - records["compute"][shortest] * trace.tick, rel=1e-2)
