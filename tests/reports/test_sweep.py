"""Sweeps, ideal scaling, losses, crossings, trust and what is not predicted, on a program of known behaviour."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, Run
from ranksight.model.application.bulk_synchronous import Application
from ranksight.model.fit import assemble
from ranksight.model.fitted_model import Model
from ranksight.model.structure.functions import Functions
from ranksight.model.uncertainty.forecast import WIDE
from ranksight.reports.answer import answer
from ranksight.reports.html.context import Context
from ranksight.reports.html.sections.front import _obstacles
from ranksight.reports.ideal import ideal, losses
from ranksight.reports.measured import measured
from ranksight.reports.plots import plot_prediction
from ranksight.reports.plots.plot_ranking import ranked
from ranksight.reports.sweep import place, sweep
from ranksight.reports.traffic import pairs
from ranksight.reports.trust import trust
from ranksight.reports.unpredicted import unpredicted

HOSTILE = 'foo<bar<int>>::operator()<"x">&<script>alert(1)</script>'


def test_a_sweep_goes_from_what_was_measured_to_the_target(model: Model) -> None:
    found = sweep(model, to=1024)
    assert found.along == "ranks"
    assert found.held == {"size": 200}
    assert found.values.tolist() == [2.0**k for k in range(11)]
    assert found.trained == (1, 16)
    assert found.values[found.nearest] == 16
    assert found.total.value[0, -1] == pytest.approx(1e-4 * 200 + 2e-4 * 1024 + 5e-4, rel=0.01)
    assert sweep(model).target == {"ranks": 256, "size": 200}
    assert sweep(model, to=100, at={"size": 150}).target == {"ranks": 100, "size": 150}


def test_a_sweep_of_what_is_unknown_is_refused(model: Model) -> None:
    with pytest.raises(InputError, match="no parameter threads"):
        sweep(model, at={"threads": 3})
    with pytest.raises(InputError, match="no parameter depth"):
        sweep(model, along="depth")
    with pytest.raises(InputError, match="above 0"):
        sweep(model, to=-3)
    for ranks in (0.5, 1.5):
        with pytest.raises(InputError, match="whole numbers of ranks"):
            sweep(model, to=ranks)


def test_ranks_are_whole_and_the_target_is_among_them(model: Model) -> None:
    found = sweep(model, to=1000)
    assert (found.values == np.round(found.values)).all()
    assert found.values[-1] == 1000
    assert {1.0, 2.0, 4.0, 8.0, 16.0} <= set(found.values.tolist())


def test_places_are_read_as_words() -> None:
    assert place("ranks", 1) == "1 rank"
    assert place("ranks", 2048) == "2,048 ranks"
    assert place("size", 0.5) == "size 0.5"


def test_what_is_lost_against_ideal_scaling_is_the_growing_kernel(model: Model) -> None:
    found = sweep(model, to=256)
    against = ideal(found)
    assert against is not None
    assert (against.kind, against.compared_by) == ("weak", "instructions per rank")
    best = 1e-4 * 200 + 2e-4 + 5e-4
    assert against.time == pytest.approx(np.full(9, best), rel=0.01)
    lost = losses(found, against)
    assert lost[0].kernel == HOSTILE
    assert lost[0].seconds == pytest.approx(2e-4 * 255, rel=0.01)
    assert lost[0].share > 0.99
    assert against.efficiency(found)[-1] == pytest.approx(best / (best + 2e-4 * 255), rel=0.01)
    said = answer(found, against, lost)
    assert "256 ranks" in said
    assert "71% of the time is lost" in said
    assert HOSTILE in said
    assert "insufficient" not in said
    status = found.said.status.copy()
    status[found.model.functions.rows[HOSTILE, "time"], -1] = WIDE
    doubtful = replace(found, said=replace(found.said, status=status))
    assert f"in {HOSTILE}, whose own time has insufficient data" in answer(doubtful, against, lost)


def test_work_that_falls_as_the_ranks_grow_is_strong_scaling(tmp_path: Path) -> None:
    experiment = Experiment.create(tmp_path / "e", "strong", ["ranks"])
    for p in (1, 2, 4, 8, 16):
        table = pd.DataFrame({"kernel": "k", "rank": range(p), "time": 1.0 / p + 0.01, "instructions": 1e9 / p})
        experiment.add(Run({"ranks": p}, collector="x"), table)
    found = sweep(assemble(experiment)[0], to=64)
    against = ideal(found)
    assert against is not None
    assert against.kind == "strong"
    assert against.time[-1] == pytest.approx(1.01 / 64, rel=0.02)


def test_ideal_scaling_is_reported_over_ranks_only(model: Model) -> None:
    assert ideal(sweep(model, along="size", to=1000)) is None


def test_a_crossing_lies_where_times_are_equal(model: Model) -> None:
    asked = sweep(model, to=1024)
    assert asked.diagnosis is not None
    rows = asked.diagnosis.crossovers().to_dict("records")
    (crossing,) = [row for row in rows if {row["kernel"], row["over"]} == {HOSTILE, "steady"}]
    assert crossing["kernel"] == HOSTILE
    assert crossing["largest"]
    assert crossing["ranks"] == pytest.approx(100, rel=0.03)
    assert [asked.breakdown.kernels[at] for at in ranked(asked)] == ["steady", HOSTILE, "$x_1$ {{ 7*7 }}"]


def test_a_report_diagnoses_as_the_verb_does(model: Model) -> None:
    """Also where the target is no power of two, which the points of figures then are not either."""
    found, asked = sweep(model, to=150).diagnosis, model.diagnose(ranks=150, size=200)
    assert found is not None
    assert found.crossovers().equals(asked.crossovers())
    assert found.scaling().equals(asked.scaling())


def test_what_was_measured_is_joined_in_the_models_order(model: Model, known: Experiment, fresh: Experiment) -> None:
    found = measured(model, [known, fresh])
    assert found is not None
    assert found.trained.tolist() == [True] * 10 + [False] * 2
    at = found.points.tolist().index([32.0, 200.0])
    row = model.functions.rows[HOSTILE, "time"]
    assert found.value[row, at] == pytest.approx(2e-4 * 32)
    total, what = found.total(model)
    assert total[at] == pytest.approx(0.02 + 2e-4 * 32 + 5e-4)
    assert what == "measured sum of kernels"
    here = found.along(model, "ranks", {"size": 200.0})
    assert found.points[here, 0].tolist() == [1, 2, 4, 8, 16, 32]


def test_an_experiment_of_other_parameters_is_refused(model: Model, tmp_path: Path) -> None:
    other = Experiment.create(tmp_path / "e", "other", ["ranks"])
    other.add(Run({"ranks": 1}), pd.DataFrame({"kernel": ["k"], "rank": [0], "time": [1.0]}))
    with pytest.raises(InputError, match="varies ranks, the model ranks, size"):
        measured(model, [other])


def test_trust_shows_distance_and_the_check(model: Model, known: Experiment, fresh: Experiment) -> None:
    found = sweep(model, to=256)
    facts = {fact.title: fact for fact in trust(found, measured(model, [known, fresh]))}
    assert "16 times the largest measured" in facts["Distance"].text
    assert facts["Distance"].grade == "fair"
    assert "Compared with 2 configurations" in facts["Check"].text
    assert facts["Check"].grade == "good"
    assert "No run was held back" in {f.title: f for f in trust(found, measured(model, [known]))}["Check"].text
    assert "Check" not in {fact.title for fact in trust(found)}


def test_what_is_not_predicted_names_its_reason_and_the_run(model: Model) -> None:
    assert unpredicted(sweep(model, to=64)) == []
    fitted = replace(model.fitted, status=np.ones_like(model.fitted.status))
    alone = replace(model, functions=Functions(fitted), equation=Application())
    found = unpredicted(sweep(alone, to=256))
    assert len(found) == len(model.fitted)
    assert found[0].metric == "time"
    assert "too few configurations" in found[0].reason
    assert found[0].remedy == "measure ranks 32, 64 as well"


def test_the_matrix_is_that_of_the_run_with_most_ranks(known: Experiment, fresh: Experiment) -> None:
    found = pairs([known, fresh])
    assert found is not None
    assert (found.ranks, found.step) == (32, 1)
    assert found.bytes.sum() == 32 * 300
    assert (found.bytes[np.arange(32), np.roll(np.arange(32), 1)] == 300).all()


def scattering(tmp_path: Path) -> Model:
    """A program whose times at few ranks leave open how it goes on."""
    experiment = Experiment.create(tmp_path / "exp", "open", ["ranks"])
    for p, seconds in ((4, 10.0), (8, 5.6), (16, 3.1), (24, 3.3)):
        rows = [{"kernel": "work", "rank": rank, "time": seconds} for rank in range(p)]
        experiment.add(Run({"ranks": p}, collector="made-up"), pd.DataFrame(rows))
    return assemble(experiment)[0]


def test_the_target_is_the_farthest_that_the_data_support(model: Model, tmp_path: Path) -> None:
    assert sweep(model).beyond is None, "all that is tried is supported"
    found = sweep(scattering(tmp_path))
    assert found.beyond is not None
    assert found.values[-1] == found.supported < found.beyond.value == 2 * found.values[-1]
    assert (found.total.status == 0).all()
    asked = sweep(found.model, to=found.beyond.value)
    assert asked.total.status[0, -1] != 0
    assert asked.beyond is None
    assert asked.supported is not None
    assert asked.supported < found.beyond.value
    said = answer(found, ideal(found))
    assert f"at {found.beyond.value:.0f} ranks, {found.beyond.reason}" in said
    assert f"up to {asked.supported:.0f} ranks" in answer(asked, None)


def test_axes_end_near_what_the_data_support(tmp_path: Path) -> None:
    found = sweep(scattering(tmp_path), to=24 * 4096)
    assert found.total.upper[0, -1] > 10 * found.total.lower[0, -1], "the interval there is no use to anyone"
    assert _obstacles(Context(found.model, found))["rows"] == []
    low, high = plot_prediction(found).get_ylim()
    assert low <= 3.1 <= 10.0 <= high < 100
