"""Histories: change points against what was put in, the verb from end to end, and its page."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.analysis.history.changepoints import changepoints, levels, noise
from ranksight.cli.main import main
from ranksight.core.experiment import Experiment, Run

COUNT = 10
STEP = 6
"""Of these experiments `solve` has more instructions from this one on."""
HOSTILE = "<script>alert('x')</script>"


def write(place: Path, at: int, parameters: tuple[str, ...] = ("ranks",), ranks: tuple[int, ...] = (2, 4, 8)) -> Path:
    """One experiment: `solve` takes 1.3 times as long and as many instructions from :data:`STEP` on; all scatter by 1 %."""
    found = Experiment.create(place, "demo", list(parameters))
    generator = np.random.default_rng(at)
    more = 1.3 if at >= STEP else 1.0
    for p in ranks:
        for repetition in range(3):
            rows = [("solve", more * 4e9 / p, more * 2.0 / p), (HOSTILE, 2e9 / p, 1.0 / p), ("copy", 1e9 / p, 0.5 / p)]
            table = pd.DataFrame(
                [(k, -1, i, t * generator.normal(1, 0.01)) for k, i, t in rows],
                columns=["kernel", "rank", "instructions", "time"],
            )
            configuration = dict(zip(parameters, (p, 7), strict=False))
            started = f"2026-03-{at + 1:02d}T10:00:00+00:00"
            found.add(Run(configuration, repetition, "synthetic", started=started), table)
    return place


@pytest.fixture(scope="module")
def nightly(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("history")
    # Names are not in the order of the dates.
    return [str(write(folder / f"c{9 - at}.exp", at)) for at in range(COUNT)]


def test_steps_are_found_where_they_are() -> None:
    generator = np.random.default_rng(3)
    truth = np.zeros((4, 40))
    truth[1, 25:] += 0.2
    truth[2, 10:] += 0.2
    truth[2, 30:] -= 0.4
    values = truth + generator.normal(0, 0.02, truth.shape)
    values[1, 24:26] = np.nan  # the step falls among experiments that lack the kernel
    values[3] = np.nan
    errors = np.full(truth.shape, 0.02)
    found = changepoints(values, errors)
    assert [np.flatnonzero(row).tolist() for row in found] == [[], [26], [10, 30], []]
    held = levels(values, errors, found)
    known = np.isfinite(values)
    np.testing.assert_allclose(held[known], truth[known], atol=0.02)
    assert np.isnan(held[3]).all()


def test_without_a_change_one_of_twenty_histories_shows_one() -> None:
    generator = np.random.default_rng(5)
    histories = [generator.normal(0, 0.05, (20, 30)) for _ in range(200)]
    wrong = [changepoints(values, np.full(values.shape, 0.05), 0.95).any() for values in histories]
    assert np.mean(wrong) < 0.08
    assert changepoints(np.zeros((2, 0)), np.zeros((2, 0))).shape == (2, 0)


def test_scatter_from_day_to_day_is_noise() -> None:
    generator = np.random.default_rng(7)
    values = generator.normal(0, 0.1, (1, 40))
    values[0, 20:] += 2.0
    found = noise(values, np.full(values.shape, 0.001))
    assert 0.06 < found[0, 0] < 0.15
    assert np.flatnonzero(changepoints(values, found)[0]).tolist() == [20]
    few = noise(values[:, :4], np.array([[0.01, 0.03, 0.01, 0.01]]))
    np.testing.assert_allclose(few, [[np.sqrt(0.0003), 0.03, np.sqrt(0.0003), np.sqrt(0.0003)]])
    np.testing.assert_allclose(noise(values[:, :4], np.full((1, 4), 0.03), 0.04), 0.05)


def test_the_change_is_marked_with_its_experiment(nightly: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", *nightly, "--format", "json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in content["experiments"]] == [f"c{9 - at}" for at in range(COUNT)]
    changes = [(row["kernel"], row["metric"]) for row in content["changes"] if row["kernel"] != "(whole program)"]
    assert set(changes) == {("solve", "time"), ("solve", "instructions")}
    assert {row["experiment"] for row in content["changes"]} == {f"c{9 - STEP}"}
    solve = [row["ratio"] for row in content["changes"] if row["kernel"] == "solve"]
    np.testing.assert_allclose(solve, 1.3, rtol=0.02)
    assert main(["history", *nightly, "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == COUNT * 3 * 4 * 2
    assert {row["experiment"] for row in rows if row["change"]} == {f"c{9 - STEP}"}


def test_the_threshold_is_for_ci(nightly: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", *nightly, "--threshold", "20", "--quiet"]) == 3
    said = capsys.readouterr().out
    assert "solve: +30 %" in said or "solve: +29 %" in said or "solve: +31 %" in said
    assert main(["history", *nightly, "--threshold", "40", "--quiet"]) == 0
    # What became faster is no failure.
    assert main(["history", *reversed(nightly), "--order", "given", "--threshold", "5", "--quiet"]) == 0


def test_the_table_and_the_prediction(nightly: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", *nightly[4:8], "--ranks", "16"]) == 0
    said = capsys.readouterr().out
    assert "c3" in said.split("Changes, the latest first")[1].splitlines()[2]
    assert "Predicted time of the program at ranks 16" in said
    times = [line.split() for line in said.split("at ranks 16")[1].splitlines() if "ms" in line]
    early, late = (float(times[at][1]) for at in (0, -1))
    assert late / early == pytest.approx(4.1 / 3.5, rel=0.05)
    assert max(map(len, said.partition("\nnext: ")[0].splitlines())) <= 80


def test_the_page_is_one_file_and_runs_nothing_of_others(nightly: list[str], tmp_path: Path) -> None:
    page = tmp_path / "h.html"
    assert main(["history", *nightly, "-o", str(page), "--quiet"]) == 0
    text = page.read_text()
    assert HOSTILE not in text
    assert "&lt;script&gt;alert" in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "https://" not in text
    assert text.count('class="mark"') >= 2
    assert main(["history", *nightly, "-o", str(page), "--quiet"]) == 1, "the file exists"
    assert main(["history", *nightly, "-o", str(page), "--quiet", "--force"]) == 0


@pytest.mark.skipif(not shutil.which("chromium"), reason="no Chromium is found")
def test_the_page_s_script_runs_without_an_error(nightly: list[str], tmp_path: Path) -> None:
    page = tmp_path / "h.html"
    main(["history", *nightly, "-o", str(page), "-q"])
    words = [
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
        "--v=0",
        "--dump-dom",
    ]
    words += [f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=2000", page.as_uri()]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "CONSOLE" not in done.stderr
    assert 'class="take"' in done.stdout


def test_bad_input_is_one_line(nightly: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = str(write(tmp_path / "other.exp", 1, ("ranks", "size")))
    apart = str(write(tmp_path / "apart.exp", 1, ranks=(3, 5)))
    for words, code, expected in (
        ([nightly[0], other], 1, "other varies ranks, size, c9 ranks"),
        ([nightly[0], apart], 1, "no configuration is measured in all"),
        ([nightly[0]], 1, "two experiments or more"),
        ([nightly[0], nightly[0]], 1, "named twice"),
        ([*nightly[:2], "--size", "4"], 2, "unrecognized arguments: --size"),
        ([*nightly[:2], "--ranks", "4,8"], 2, "one configuration"),
        ([*nightly[:2], "--kernel", "solv"], 1, "did you mean solve?"),
        ([*nightly[:2], "--level", "2"], 2, "not a probability"),
        ([*nightly[:2], "--top", "0"], 2, "prints nothing"),
    ):
        assert main(["history", *words]) == code, words
        error = capsys.readouterr().err
        assert expected in error
        assert error.count("\n") <= 2
