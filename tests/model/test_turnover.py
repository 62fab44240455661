"""Kernels that come and go with the ranks are a sign of changing algorithms, shown beyond the ranks measured."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.model.structure.rank_notes import turnover

RANKS = (1, 2, 4, 8)


def experiment(path: Path, slabs: float, provenance: str = "measured") -> Experiment:
    """A program with a kernel that works up to 4 ranks only, and one on several ranks only; shares of all work."""
    made = Experiment.create(path / "e", "x", ["ranks", "size"])
    for size in (10, 20):
        for p in RANKS:
            work = 1e9 * size / p
            rows = {"solve": work, "exchange": 1e7 * size * (p > 1), "slabs": slabs * work * (p <= 4)}
            table = pd.DataFrame(
                [(name, rank, value) for name, value in rows.items() if value for rank in range(p)],
                columns=["kernel", "rank", "instructions"],
            )
            run = Run({"ranks": p, "size": size}, collector="callgrind", provenance={"instructions": provenance})
            made.add(run, table)
    return made


def test_a_kernel_that_goes_is_named_with_its_ranks(tmp_path: Path) -> None:
    said = turnover(experiment(tmp_path, 0.02))
    assert "of the instructions" in said
    assert "the most in slabs: on 2, 4, not on 8" in said


@pytest.mark.parametrize(("slabs", "provenance"), [(0.0, "measured"), (1e-5, "measured"), (0.02, "sampled by perf")])
def test_what_is_small_sampled_or_absent_on_one_rank_is_no_sign(tmp_path: Path, slabs: float, provenance: str) -> None:
    assert turnover(experiment(tmp_path, slabs, provenance)) == ""


def test_predictions_say_it_beyond_the_ranks_measured_only(tmp_path: Path) -> None:
    model = fit(experiment(tmp_path, 0.02))
    model.save(tmp_path / "m.json")
    again = Model.load(tmp_path / "m.json")
    beyond, within = (again.predict(ranks=p, size=20).notes for p in (16, 8))
    assert any("changes its algorithms" in note for note in beyond)
    assert not any("changes its algorithms" in note for note in within)
