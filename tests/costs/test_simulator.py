"""Cost equations and the reader of time-independent traces against SimGrid's SMPI, where it is installed."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from ranksight.comm.costs.collective import collective
from ranksight.comm.costs.fabric import Fabric
from ranksight.core.reading import READERS
from ranksight.examples.simulated.cluster import Simulator, build_messages, link

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    shutil.which("smpicc") is None or shutil.which("smpirun") is None, reason="smpicc, smpirun not found"
)


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    """The benchmark that runs the simulator."""
    spec = importlib.util.spec_from_file_location("simulated_collectives", ROOT / "benchmarks" / "collectives.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("smpi")
    build_messages(place)
    return place


def test_equations_meet_the_simulator(benchmark: ModuleType, folder: Path) -> None:
    simulator = Simulator(folder, benchmark.cluster("ethernet", 16))
    fabric = Fabric.flat(link(simulator))
    for ours in (
        "allreduce/recursive_doubling",
        "allgather/ring",
        "alltoall/pairwise",
        "bcast/binomial",
        "reduce/linear",
    ):
        operation, _, kind = ours.partition("/")
        found = simulator.run(16, [operation, "512", "131072"], benchmark.PAIRS[ours])
        predicted = collective(operation, kind)(16, found["bytes"].to_numpy(dtype=float), fabric)
        error = np.abs(predicted / found["duration"].to_numpy() - 1)
        assert error.max() < 0.15, ours


def test_a_trace_of_the_simulator_is_read(benchmark: ModuleType, folder: Path) -> None:
    Simulator(folder, benchmark.cluster("ethernet", 4)).place(4)
    command = ["smpirun", "-np", "4", "-platform", "platform.xml", "-hostfile", "hosts", "-trace-ti"]
    command += [
        "-trace-file",
        "run.txt",
        "--cfg=smpi/simulate-computation:no",
        "./collectives",
        "alltoall",
        "64",
        "4096",
    ]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    path = folder / "run.txt"
    assert READERS["smpi"].recognises(path, path.read_bytes()[:4096])
    (reading,) = READERS["smpi"].read(path)
    assert reading.configuration == {"ranks": 4.0}
    assert reading.messages is not None
    table = reading.messages[reading.messages["operation"] == "Alltoall"]
    assert sorted(set(table["bytes"])) == [4 * 64, 4 * 4096]
    assert set(table["rank"]) == {0, 1, 2, 3}
