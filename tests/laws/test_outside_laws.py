"""Laws that other packages register: used like ours, refused by name where they break the protocol."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from ranksight.core.experiment import Experiment, Run

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment of one kernel that Amdahl's law describes exactly."""
    made = Experiment.create(tmp_path_factory.mktemp("outside") / "e", "serial", ["ranks"])
    for p in (1, 2, 4, 8, 16):
        made.add(
            Run({"ranks": float(p)}, 0, "timer"), pd.DataFrame({"kernel": ["solve"], "rank": -1, "time": 1 + 9 / p})
        )
    return made.path


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an installed package that registers :mod:`outside`."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copy(Path(__file__).parent / "outside.py", folder / "amdahl_law.py")
    info = folder / "amdahl-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: amdahl\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ranksight.laws]\namdahl = amdahl_law\n")
    return folder


def run(package: Path | None, *words: str | Path, fault: str = "") -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(map(str, [ROOT.parent, *([] if package is None else [package])]))
    environment = {**os.environ, "PYTHONPATH": paths, "FAULT": fault}
    command = [sys.executable, "-m", "ranksight", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT.parent)


def test_a_law_of_another_package_is_weighed_and_named(measured: Path, package: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.json"
    done = run(package, "fit", measured, "-o", model, "--verbose")
    assert done.returncode == 0, done.stderr
    assert "Amdahl" in done.stderr  # its weight after held-out sets
    done = run(package, "predict", model, "--ranks", "64", "--format", "json", "--verbose")
    (answer,) = (each for each in json.loads(done.stdout)["predictions"] if each["kernel"] == "solve")
    assert answer["method"] == "Amdahl"
    assert float(re.match(r"Amdahl ([\d.]+)", answer["evidence"])[1]) > 0.9
    assert answer["value"] == pytest.approx(1 + 9 / 64, rel=1e-2)
    assert float(re.search(r"weights of laws, time of solve: Amdahl ([\d.]+)", done.stderr)[1]) > 0.9
    # Where the law is not installed the model says so, and answers by the others.
    done = run(None, "predict", model, "--ranks", "64")
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "law Amdahl of this model is not installed: kernels' times come from the functions of time" in text
    again = json.loads(run(None, "predict", model, "--ranks", "64", "--format", "json").stdout)
    (other,) = (each for each in again["predictions"] if each["kernel"] == "solve")
    assert other["method"] == "function"
    assert other["value"] == pytest.approx(answer["value"], rel=0.2)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("fit", "law 'Amdahl' of amdahl_law is refused: fit raises ZeroDivisionError: no ranks"),
        pytest.param(
            "claims",
            "law 'Amdahl' of amdahl_law is refused: it claims kernels that were not measured: solve!",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "nan", "law 'Amdahl' of amdahl_law is refused: times that it answers are not finite", marks=pytest.mark.slow
        ),
        pytest.param(
            "import",
            "law 'amdahl' of the package amdahl cannot be loaded: RuntimeError: not here",
            marks=pytest.mark.slow,
        ),
        (
            "kept",
            "law 'Amdahl' of amdahl_law is refused: what it learned cannot be kept in a file: Out of range float values "
            "are not JSON compliant",
        ),
        ("thing", "law 'Amdahl' of builtins is refused: it is not derived from ranksight.model.laws.law.Law"),
        ("taken", "law 'constant CPI' is registered twice, by ranksight.model.laws.constant_cpi and amdahl_law"),
    ],
)
def test_a_law_that_breaks_the_protocol_is_refused_by_name(
    measured: Path, package: Path, tmp_path: Path, fault: str, said: str
) -> None:
    done = run(package, "fit", measured, "-o", tmp_path / "m.json", fault=fault)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert said in " ".join(done.stderr.split())
    assert not (tmp_path / "m.json").exists()


def test_a_broken_package_is_no_damage_of_a_model(measured: Path, package: Path, tmp_path: Path) -> None:
    assert run(package, "fit", measured, "-o", tmp_path / "m.json").returncode == 0
    for fault in ("import", "at"):
        done = run(package, "predict", tmp_path / "m.json", "--ranks", "64", fault=fault)
        assert done.returncode == 1
        assert "amdahl" in done.stderr
        assert "Traceback" not in done.stderr
        assert "another version" not in done.stderr
