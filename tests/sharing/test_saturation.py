"""How many ranks fill a memory domain, as a diagnosis names it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from machines import CORES, DOMAIN, fullest, truth, write

from ranksight.analysis.diagnosis.saturation import FULL
from ranksight.cli.main import main
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model

ONE = (1, 2, 3, 4, 6, 8, 9, 12, 16, 18)
NODE = "icelake-8360y"
PROGRAM = {"traffic": 1e14, "instructions": 4e13, "cpi": 0.5}
COMPUTING = {"traffic": 1e12, "instructions": 4e13, "cpi": 0.5}


def filling(**program: float) -> int:
    """Fewest ranks at which the interface of the domain is at work for as much of the time as the diagnosis names."""
    busy = []
    for ranks in range(1, CORES + 1):
        time, volume, _ = truth(ranks, program["instructions"], program["cpi"], program["traffic"])
        busy.append(fullest(ranks) * sum(volume) / DOMAIN / time)
    return 1 + int(np.argmax(np.array(busy) >= FULL))


@pytest.fixture(scope="module")
def bounded(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return fit(write(tmp_path_factory.mktemp("bounded") / "e", ONE, **PROGRAM), platform=NODE)


def test_the_ranks_that_fill_a_domain_are_named(
    bounded: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (row,) = bounded.diagnose(ranks=72).saturation().to_dict("records")
    assert abs(row["ranks"] - filling(**PROGRAM)) <= 2
    assert row["cores"] == CORES
    bounded.save(tmp_path / "m.json")
    assert main(["diagnose", str(tmp_path / "m.json"), "--ranks", "72"]) == 0
    assert f"the memory domain saturates at {row['ranks']} of {CORES} ranks" in capsys.readouterr().out


def test_fewer_ranks_on_the_domain_do_not_fill_it(bounded: Model) -> None:
    assert bounded.diagnose(ranks=2).saturation().empty


def test_a_program_that_computes_fills_no_domain(tmp_path: Path) -> None:
    model = fit(write(tmp_path / "e", ONE, **COMPUTING), platform=NODE)
    assert model.diagnose(ranks=72).saturation().empty
