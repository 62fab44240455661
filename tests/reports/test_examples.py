"""The example scripts run as they stand, on what a small demonstration measures."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import assemble

USES = Path(__file__).resolve().parents[2] / "examples" / "uses"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as ``ranksight demo --bug`` leaves it, of made-up numbers."""
    place = tmp_path_factory.mktemp("uses") / "demo"
    place.mkdir()
    work = {
        "material_law": lambda p, n: 1e3 * n**3,
        "dot_product": lambda p, n: 40 * n**3,
        "find_neighbour": lambda p, n: 6e4 * p,
    }
    for name, ranks in (("experiment", (1, 2, 4, 8)), ("check", (16,))):
        experiment = Experiment.create(place / name, "heat", ["ranks", "size"])
        for p in ranks:
            for n in (8, 16):
                rows = [
                    {"kernel": k, "rank": r, "instructions": float(f(p, n)), "time": f(p, n) / 2e9}
                    for k, f in work.items()
                    for r in range(p)
                ]
                experiment.add(Run({"ranks": p, "size": n}, collector="x"), pd.DataFrame(rows))
    assemble(Experiment.read(place / "experiment"))[0].save(place / "heat.model.json")
    return place


@pytest.mark.parametrize(
    ("script", "words", "code", "said"),
    [
        ("more_ranks.py", ["512"], 0, "weak scaling"),
        ("larger_problem.py", ["32"], 0, "size 32.0"),
        ("memory_or_compute.py", ["8"], 0, "verdict"),
        ("scalability_bug.py", ["512"], 3, "find_neighbour grows from"),
        ("expectation_in_ci.py", [], 3, "1 violated"),
    ],
)
def test_every_example_runs(folder: Path, tmp_path: Path, script: str, words: list[str], code: int, said: str) -> None:
    given = folder / "experiment" if script == "expectation_in_ci.py" else folder
    command = [sys.executable, "-W", "error::FutureWarning", str(USES / script), str(given), *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == code, done.stdout + done.stderr
    assert said in done.stdout
    assert "Traceback" not in done.stderr
    made = tmp_path / script.replace(".py", ".svg")
    assert made.is_file() == (script != "expectation_in_ci.py")
    assert np.all([path.stat().st_size > 2000 for path in tmp_path.glob("*.svg")])
