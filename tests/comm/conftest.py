"""Programs that are traced, and the tables that come out."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ranksight.campaign.collecting import COLLECTORS
from ranksight.campaign.launching import Launch, Template
from ranksight.comm.tracer.gathering import read_folder
from ranksight.comm.tracer.tables import TraceTables, tabulate

PROGRAMS = Path(__file__).parent / "programs"
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


class Tracing:
    """Compiles programs of ``programs/`` once, and runs them under the tracer as a campaign would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._compiled: dict[tuple[str, ...], Path] = {}

    def compile(self, name: str, *flags: str, wrapper: str = "mpicc") -> Path:
        key = (name, wrapper, *flags)
        if key not in self._compiled:
            target = self.folder / f"{Path(name).stem}-{len(self._compiled)}"
            command = [wrapper, "-O2", "-w", "-o", str(target), str(PROGRAMS / name), *flags]
            done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, timeout=120)
            assert done.returncode == 0, done.stderr
            self._compiled[key] = target
        return self._compiled[key]

    def mpi(self, name: str) -> tuple[str, tuple[str, ...]]:
        """Compiler wrapper's suffix and launcher of an MPI: '' is the one on PATH, '_abi' one of the standard ABI, others
        have their Debian names."""
        launcher = {"": "mpirun", ".openmpi": "mpirun.openmpi", ".mpich": "mpiexec.mpich", "_abi": "mpicc_abi"}[name]
        for tool in (f"mpicc{name}", launcher):
            if shutil.which(tool) is None:
                pytest.skip(f"{tool} not found")
        if name == "_abi":
            return name, (str(Path(shutil.which(launcher) or launcher).with_name("mpiexec")),)
        return name, (launcher,) if name == ".mpich" else (launcher, "--oversubscribe")

    def launch(self, program: Path, ranks: int, *arguments: str, mpirun: tuple[str, ...] = ()) -> Launch:
        launcher = mpirun or ("mpirun", "--oversubscribe")
        return Template((*launcher, "-n", "{ranks}", str(program), *arguments)).fill({"ranks": ranks})

    def plain(self, launch: Launch) -> subprocess.CompletedProcess[str]:
        return subprocess.run(launch.command, capture_output=True, text=True, errors="replace", timeout=120)

    def run(self, launch: Launch, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        (step,) = COLLECTORS["pmpi"].steps(launch, folder)
        environment = {**os.environ, **step.environment, **variables}
        return subprocess.run(
            step.command, env=environment, capture_output=True, text=True, errors="replace", timeout=120
        )

    def tables(self, launch: Launch, folder: Path, **variables: str) -> TraceTables:
        folder.mkdir(exist_ok=True)
        done = self.run(launch, folder, **variables)
        assert done.returncode == 0, done.stderr
        traces, lost = read_folder(folder, launch.ranks)
        assert lost == []
        return tabulate(traces)


@pytest.fixture(scope="session")
def tracing(tmp_path_factory: pytest.TempPathFactory) -> Tracing:
    return Tracing(tmp_path_factory.mktemp("programs"))
