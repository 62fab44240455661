"""Strong and weak scaling by the kernels' own work, in doubt, and as stated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.analysis.diagnosis.efficiencies import table
from ranksight.analysis.diagnosis.evidence import Evidence
from ranksight.analysis.diagnosis.kind import UNKNOWN, kind_of
from ranksight.cli import main
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model.fit import fit

Make = Callable[..., Evidence]
RANKS = [1.0, 2.0, 4.0, 8.0, 16.0]


def over(function: Callable[[np.ndarray], np.ndarray]) -> list[float]:
    return [float(x) for x in function(np.array(RANKS)) * np.ones(len(RANKS))]


@pytest.mark.parametrize(
    ("times", "kind"),
    [
        ({"io": lambda p: 30.0, "solve": lambda p: 12 / p}, "strong"),
        ({"work": lambda p: 20 / p, "search": lambda p: 1.5 * p}, "strong"),
        ({WHOLE: lambda p: 20 / p + 1.5 * p}, "strong"),
        ({WHOLE: lambda p: 8 / p + 0.5 * p}, "strong"),
        ({"work": lambda p: 20.0, "search": lambda p: 1.5 * p}, "weak"),
        ({"work": lambda p: 20 * (1 + 0.02 * np.sin(7 * p)), "tiny": lambda p: 0.1 / p}, "weak"),
        ({"work": lambda p: 30.0, "small": lambda p: 1 / p}, "unknown"),
    ],
)
def test_divided_work_is_seen_next_to_what_stays_or_grows(
    evidence: Make, times: dict[str, Callable[[np.ndarray], np.ndarray]], kind: str
) -> None:
    assert kind_of(evidence({name: over(time) for name, time in times.items()}, RANKS)) == kind


def test_counts_decide_and_times_that_contradict_them_leave_doubt(evidence: Make) -> None:
    counts = {"work": over(lambda p: 4e10 / p), "search": over(lambda p: 3e9 * p)}
    grows = {"work": over(lambda p: 20.0), "search": over(lambda p: 1.5 * p)}
    assert kind_of(evidence(grows, RANKS, instructions=counts)) == "strong"
    falls = {"work": over(lambda p: 20 / p), "search": over(lambda p: 1.5)}
    steady = {"work": over(lambda p: 4e10), "search": over(lambda p: 3e9)}
    assert kind_of(evidence(falls, RANKS, instructions=steady)) == "unknown"
    # A fall within the times' intervals contradicts no count.
    scattered = {"work": over(lambda p: 20 * p**-0.1), "search": over(lambda p: 1.5)}
    assert kind_of(evidence(scattered, RANKS, instructions=steady)) == "unknown"
    assert kind_of(evidence(scattered, RANKS, instructions=steady, wide=dict.fromkeys(steady, 2.0))) == "weak"
    assert kind_of(evidence(scattered, RANKS, wide=dict.fromkeys(steady, 2.0))) == "unknown"


def test_one_rank_count_shows_no_kind_and_no_efficiency(evidence: Make) -> None:
    assert kind_of(evidence({"work": [1.0]}, [4.0])) == "unknown"
    found = table(evidence({"work": over(lambda p: 1 / p), "rest": over(lambda p: 1.0)}, RANKS), "unknown")
    assert found[["global", "computation_scaling"]].isna().all(axis=None)
    assert found["ranks"].tolist() == RANKS


def written(folder: Path, times: dict[str, Callable[[float], float]]) -> Experiment:
    experiment = Experiment.create(folder, "made-up", ["ranks"])
    for ranks in RANKS:
        rows = [{"kernel": name, "rank": -1, "time": time(ranks)} for name, time in times.items()]
        experiment.add(Run({"ranks": ranks}, collector="x"), pd.DataFrame(rows))
    return experiment


def test_efficiency_of_divided_work_next_to_input(tmp_path: Path) -> None:
    model = fit(written(tmp_path / "e", {"io": lambda p: 30.0, "solve": lambda p: 12 / p}))
    for ranks in (1, 2, 16, 64):  # the kind does not depend on what is asked for
        assert model.diagnose(ranks=ranks).kind == "strong"
    assert model.diagnose(ranks=16).efficiencies()["global"].iloc[-1] == pytest.approx(42 / (16 * 30.75), rel=0.02)


def test_a_kind_that_is_not_known_is_said_and_can_be_stated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path / "e", {"io": lambda p: 30.0, "solve": lambda p: 1 / p})
    file = str(tmp_path / "m.json")
    for options, kind, words in (([], "unknown", UNKNOWN), (["--scaling", "weak"], "weak", "(weak scaling)")):
        assert main(["fit", str(tmp_path / "e"), "-o", file, "--force", *options]) == 0
        main(["diagnose", file, "--ranks", "16"])
        text = " ".join(capsys.readouterr().out.split())
        assert words in text
        assert ("Efficiency" in text) == (kind != "unknown")
        main(["diagnose", file, "--ranks", "16", "--format", "json"])
        assert f'"work": "{kind}"' in capsys.readouterr().out
