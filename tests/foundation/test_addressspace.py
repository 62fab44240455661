"""Commands under a limited address space work, or say in one line what is missing."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from ranksight.core.addressspace import NEEDED, ONE_THREAD

ROOT = Path(__file__).resolve().parents[2]
TABLE = "ranks,kernel,time\n" + "".join(f"{p},{name},{8 / p}\n" for p in (1, 2, 4, 8) for name in ("stencil", "sort"))


def _under(limit: int, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command line in a process of so many bytes of addresses."""
    paths = f"{ROOT.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    environment = {name: text for name, text in os.environ.items() if name not in ONE_THREAD} | {"PYTHONPATH": paths}
    return subprocess.run(
        [sys.executable, "-m", "ranksight", *words], cwd=folder, env=environment, capture_output=True, text=True,
        timeout=120, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> list[str]:
    (tmp_path / "t.csv").write_text(TABLE)
    columns = ["--parameter", "ranks", "--kernel", "kernel", "--metric", "time"]
    return ["import", "csv", "t.csv", *columns, "-o", "e.exp", "--quiet"]


def test_too_little_is_refused_in_one_line(tmp_path: Path, table: list[str]) -> None:
    for words in (table, ["predict", "m.json", "--ranks", "64"]):
        done = _under(NEEDED - 1, tmp_path, *words)
        assert done.returncode == 1
        assert done.stderr == (
            "ranksight: the address space is limited to 500 MB (ulimit -v), 500 MB are needed; raise the limit, or run "
            "this on another node\n"
        )
    assert not (tmp_path / "e.exp").exists()
    assert _under(NEEDED - 1, tmp_path, "fit", "--help").returncode == 0
    done = _under(NEEDED - 1, tmp_path, "doctor", "--format", "json")
    (finding,) = [each for each in json.loads(done.stdout)["findings"] if each["topic"] == "address space"]
    assert (finding["level"], finding["found"]) == ("warning", "limited to 500 MB (ulimit -v), 500 MB are needed")


def test_a_little_more_is_enough(tmp_path: Path, table: list[str]) -> None:
    for words in (table, ["fit", "e.exp", "-o", "m.json", "--quiet"]):
        done = _under(NEEDED + 20_000_000, tmp_path, *words)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [520, 600, 700, 800, 1500])
def test_workers_take_the_limit_too(megabytes: int, tmp_path: Path, table: list[str]) -> None:
    assert _under(megabytes * 1_000_000, tmp_path, *table, "--jobs", "2").returncode == 0


def test_the_environment_is_as_before(tmp_path: Path) -> None:
    lines = (
        "import os, resource\nfrom ranksight.core.addressspace import load_under_limit\nbefore = dict(os.environ)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (600_000_000,) * 2)\nload_under_limit()\n"
        "assert dict(os.environ) == before\nimport pyarrow\nassert pyarrow.cpu_count() == 1\n"
        "assert pyarrow.default_memory_pool().backend_name == 'system'\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT.parent), "OMP_NUM_THREADS": "3"}
    subprocess.run([sys.executable, "-c", lines], env=environment, cwd=tmp_path, check=True, timeout=120)
