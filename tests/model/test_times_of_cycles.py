"""Times of runs that counted cycles and measured none: cycles over a clock, whoever states it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.special import ndtri

from ranksight.cli import main
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, Experiment, Run, read
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.model.priors import PLATFORM_CLOCK
from ranksight.model.resource.clock import Clock, Timed, untimed
from ranksight.platforms import load

RANKS = (1, 2, 4, 8, 16)
HZ = 2e9


def experiment(folder: Path, *, kernels: dict[str, list[str]], whole: dict[str, float] | None = None) -> Experiment:
    """Runs with `kernels`' metrics of 1e9 / ranks each, cycles twice that on the last rank, and the program's."""
    made = Experiment.create(folder / "e", "app", ["ranks"])
    for ranks in RANKS:
        rows = []
        for kernel, metrics in kernels.items():
            for rank in (0, 1):
                values = dict.fromkeys(metrics, 1000000000.0 / ranks * (1 + rank))
                rows.append({"kernel": kernel, "rank": rank, **values})
        if whole:
            rows.append({"kernel": WHOLE, "rank": -1, **whole})
        made.add(Run({"ranks": float(ranks)}, 0, "made"), pd.DataFrame(rows))
    return made


def test_time_is_cycles_of_the_slowest_rank_over_the_clock(tmp_path: Path) -> None:
    made = experiment(tmp_path, kernels={"a": ["instructions", "cycles"]})
    model = fit(made, clock=HZ)
    answer = model.predict(ranks=4, metrics=["time"]).table()
    assert answer.set_index("kernel").loc["a", "value"] == pytest.approx(2 * 1e9 / 4 / HZ, rel=1e-3)
    assert "unhalted cycles over the clock of 2 GHz (stated)" in model.remarks.notes[0]


def test_a_nominal_clock_is_no_measured_one(tmp_path: Path) -> None:
    made = experiment(tmp_path, kernels={"a": ["cycles"], "b": ["cycles"]})
    platform = load("haswell-e5-2680v3")

    def half_widths(**how: Any) -> NDArray[np.float64]:
        found = fit(made, **how).predict(ranks=24, metrics=["time"]).table()
        assert set(found["status"]) == {"ok"}
        return np.log(found["upper"] / found["lower"]).to_numpy() / 2

    stated, nominal = half_widths(clock=platform.frequency), half_widths(platform=platform)
    one_clock = float(ndtri(0.95)) * PLATFORM_CLOCK
    assert len(stated) == 3, "two kernels and the program"
    assert (stated < one_clock).all()
    assert (nominal >= one_clock * (1 - 1e-6)).all(), (
        "the kernels have one clock: their sum is as uncertain as they are"
    )
    assert (nominal < 1.5 * one_clock).all()


def test_the_clock_of_the_platform_is_taken_and_kept_in_the_file(tmp_path: Path) -> None:
    made = experiment(tmp_path, kernels={"a": ["instructions", "cycles"]}, whole={"time": 5.0})
    platform = load("haswell-e5-2680v3")
    place = tmp_path / "m.json"
    assert main(["fit", str(tmp_path / "e"), "--platform", platform.name, "-o", str(place), "--quiet"]) == 0
    seen = Model.load(place).view(made)
    table = seen.table(seen.runs[0], "counters")
    assert table.set_index("kernel").loc["a", "time"].tolist() == pytest.approx(
        [1e9 / platform.frequency, 2e9 / platform.frequency]
    )
    assert table.set_index("kernel").loc[WHOLE, "time"] == 5.0
    assert "derived from cycles" in seen.runs[0].provenance["time"]
    pd.testing.assert_series_equal(seen.counters(["time"])["time"][:2], table["time"][:2], check_names=False)


def test_frequencies_of_the_runs_come_first(tmp_path: Path) -> None:
    made = experiment(tmp_path, kernels={"a": ["cycles", "frequency"]})
    clock = Clock.of(None, None, made)
    assert clock
    table = Timed.of(made, clock).table(made.runs[0], "counters", ["kernel", "time"])
    assert table["time"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("kernels", "whole", "needed"),
    [
        ({"a": ["cycles"]}, {"time": 1.0}, True),
        ({"a": ["cycles"]}, None, True),
        ({"a": ["cycles", "time"], "b": ["cycles"]}, None, False),
        ({"a": ["instructions"]}, {"cycles": 1.0}, True),
        ({"a": ["instructions"]}, {"cycles": 1.0, "time": 1.0}, False),
        ({"a": ["instructions"]}, None, False),
    ],
)
def test_measured_times_are_never_replaced(
    tmp_path: Path, kernels: dict[str, list[str]], whole: dict[str, float] | None, needed: bool
) -> None:
    made = experiment(tmp_path, kernels=kernels, whole=whole)
    assert untimed(made) is needed
    assert bool(Clock.of(None, load("zen4"), made)) is needed
    if not needed:
        with pytest.raises(InputError, match="--clock is for cycles without times"):
            Clock.of(HZ, None, made)


def test_cycles_without_a_clock_say_which_option_gives_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment(tmp_path, kernels={"a": ["cycles"]})
    place = str(tmp_path / "m.json")
    assert main(["fit", str(tmp_path / "e"), "-o", place]) == 0
    assert "no time was measured: fit with --clock HZ" in " ".join(capsys.readouterr().out.split())
    assert main(["predict", place, "--ranks", "32", "--metric", "time"]) == 1
    assert "no metric 'time'; fit with --clock HZ, or with --platform" in capsys.readouterr().err
    for text in ("0", "fast", "2.5 m"):
        assert main(["fit", str(tmp_path / "e"), "--clock", text, "-o", place, "--force"]) == 1
        assert f"{text!r} is not a frequency" in capsys.readouterr().err


def test_what_a_sample_is_worth_is_so_in_time(tmp_path: Path) -> None:
    made = Experiment.create(tmp_path / "s", "app", ["ranks"])
    counters = pd.DataFrame({"kernel": ["a"], "rank": [0], "cycles": [4e6]})
    samples = pd.DataFrame({"kernel": ["a"], "rank": [0], "metric": ["cycles"], "samples": [4.0], "worth": [1e6]})
    run = Run({"ranks": 1.0}, 0, "perf", provenance={"cycles": "sampled, n = 4"})
    made.add(run, counters, tables={"sampling": samples})
    seen = Timed.of(made, Clock(HZ, "stated"))
    assert seen.runs[0].sampled("time")
    table = seen.table(seen.runs[0], "sampling").set_index("metric")
    assert table.loc["time", "worth"] == 1e6 / HZ
    assert table.loc["time", "samples"] == 4.0
    assert read(tmp_path / "s").metrics() == ("cycles",), "nothing on disk changes"
    assert np.isfinite(seen.table(seen.runs[0], "counters")["time"]).all()
