"""A loop of one rank over all ranks is constant in the mean: the busiest rank is held against expectations as well."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.analysis.expectations.checking import Result, check
from ranksight.analysis.expectations.document import read_study
from ranksight.analysis.expectations.judging import BUSIEST
from ranksight.cli.init import _expectations
from ranksight.cli.main import main
from ranksight.core.experiment import Experiment, Run

RANKS = (2, 4, 8, 16)
AHEAD = 1024
LOOPS: dict[str, Callable[[int], float]] = {"O(p)": lambda p: 5000.0 * p, "O(p log p)": lambda p: 900 * p * np.log2(p)}


def record(path: Path, loop: Callable[[int], float], who: int) -> Experiment:
    """Work that is divided, and what one rank does for all of them."""
    made = Experiment.create(path, "gather", ["ranks"])
    for p in RANKS:
        alone = np.where(np.arange(p) == who % p, 3000 + loop(p), 3000.0)
        parts = {"solve": np.full(p, 4e8 / p), "gather": alone, "reduce": np.full(p, 700.0 * np.log2(p))}
        rows = [pd.DataFrame({"kernel": k, "rank": np.arange(p), "instructions": w}) for k, w in parts.items()]
        made.add(Run({"ranks": p}), pd.concat(rows, ignore_index=True))
    return made


def checked(tmp_path: Path, made: Experiment, more: str = "") -> Result:
    """What the file of expectations that `init` writes finds."""
    path = tmp_path / "expectations.toml"
    path.write_text(_expectations({"ranks": [float(p) for p in RANKS]}) + more)
    return check(read_study(path), made, targets={"ranks": (float(AHEAD),)})


@pytest.mark.parametrize("who", [0, -1])
@pytest.mark.parametrize("growth", list(LOOPS))
def test_what_one_rank_does_for_all_violates_the_template(tmp_path: Path, growth: str, who: int) -> None:
    result = checked(tmp_path, record(tmp_path / "e", LOOPS[growth], who))
    assert result.exit_code == 3
    (violated,) = (each for each in result.findings if each.violated)
    assert violated.function == "gather"
    assert violated.ranks == BUSIEST
    assert str(violated.match.found.renamed({"ranks": "p"})) == growth
    # Exact counts are predicted exactly.
    assert violated.costs[0].value == pytest.approx(3000 + LOOPS[growth](AHEAD), rel=0.01)


def test_an_even_program_meets_the_template(tmp_path: Path) -> None:
    result = checked(tmp_path, record(tmp_path / "e", lambda p: 0.0, 0))
    assert not result.violated
    assert {each.ranks for each in result.findings} == {""}


def test_a_stated_reduction_is_the_only_one(tmp_path: Path) -> None:
    made = record(tmp_path / "e", LOOPS["O(p)"], 0)
    assert not checked(tmp_path, made, '[measurement]\nranks = "mean"\n').violated
    result = checked(tmp_path, made, '[measurement]\nranks = "max"\n')
    assert [each.function for each in result.findings if each.violated] == ["gather"]


def test_people_and_programs_read_whose_growth_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = record(tmp_path / "e", LOOPS["O(p)"], 0)
    (tmp_path / "expectations.toml").write_text(_expectations({"ranks": [float(p) for p in RANKS]}))
    line = ["check", str(tmp_path / "expectations.toml"), str(made.path)]
    assert main(line) == 3
    assert "the busiest rank grows faster" in " ".join(capsys.readouterr().out.split())
    assert main([*line, "--format", "json"]) == 3
    functions = json.loads(capsys.readouterr().out)["functions"]
    assert {each["function"]: each["ranks"] for each in functions}["gather"] == BUSIEST
