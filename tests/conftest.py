"""What all tests share."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import hypothesis
import pytest

# How long an example takes says more of the machine than of the code.
hypothesis.settings.register_profile("ranksight", deadline=None)
hypothesis.settings.load_profile("ranksight")

# Tests run on one node, in containers as root too; looking for networks would take Open MPI a second a start.
for _name, _value in (
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_pml", "ob1"),
    ("OMPI_MCA_btl", "^tcp,ofi,uct,usnic,openib"),
):
    os.environ.setdefault(_name, _value)

# A launcher that is killed leaves a folder named by its process number, and a later one of that number does not start.
_LAUNCHES = tempfile.mkdtemp(prefix="launches-")
for _name in ("PRTE_MCA_prte_tmpdir_base", "OMPI_MCA_orte_tmpdir_base"):
    os.environ[_name] = _LAUNCHES

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real measurements next to the repository; tests that need it are skipped where it is absent."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the folder of real measurements is not next to this repository")
    return folder.parent


def pytest_unconfigure() -> None:
    """Remove what launchers left."""
    shutil.rmtree(_LAUNCHES, ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a tool that this machine lacks, naming the tool."""
    needs = {"mpi": ("mpicc", "mpirun"), "valgrind": ("valgrind",), "perf": ("perf",)}
    for item in items:
        for mark, tools in needs.items():
            missing = [tool for tool in tools if shutil.which(tool) is None]
            if missing and item.get_closest_marker(mark):
                item.add_marker(pytest.mark.skip(reason=f"{', '.join(missing)} not found"))
