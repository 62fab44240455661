"""Samples of a measurement and their checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranksight.errors import ToolError
from ranksight.platforms.calibration.sampling import Samples, merge, select, unstable


def test_samples_and_their_checks() -> None:
    good = Samples("x", ((1e6, 0.0100), (1e6, 0.0102), (1e6, 0.0098)))
    assert good.seconds == pytest.approx(1e-8)
    assert good.rate == pytest.approx(1e8)
    assert good.scatter == pytest.approx(0.02)
    assert good.warnings() == ()
    assert good.describe() == "median of 3, scatter 2.0 %"
    short = Samples("x", ((1e3, 1e-5),))
    assert short.warnings() == ("the shortest sample took 10 us, too short to time",)
    wild = Samples("x", ((1e6, 0.01), (1e6, 0.01), (1e6, 0.03)))
    assert "scatter by 69 %" in wild.warnings()[0]
    assert "+200 %" in wild.warnings()[1]
    with pytest.raises(ToolError, match="without work or time"):
        Samples("x", ((1e6, 0.0),))


def test_disturbed_samples_are_left_out_while_others_are_left() -> None:
    rows = [(1.0, 9.0, 1.0), (1.0, 2.0, 0.5), (1.0, 1.0, 0.999)]
    kept = select("x", rows)
    assert kept.pairs == ((1.0, 1.0),)
    assert kept.warmup == (1.0, 9.0)
    assert kept.disturbed == 0
    none = select("x", rows[:2])
    assert none.disturbed == 1
    both = merge([kept, none])
    assert both.pairs == ((1.0, 1.0), (1.0, 2.0))
    assert both.disturbed == 0.5
    assert "50 % of the samples shared" in both.warnings()[0]


def test_unstable_measurements_are_told_by_kind_with_the_worst() -> None:
    good = Samples("latency of 4 KiB", ((1e6, 0.01), (1e6, 0.01)))
    bad = Samples("latency of 8 KiB", ((1e6, 0.01), (1e6, 0.013)))
    worse = Samples("latency of 16 KiB", ((1e6, 0.01), (1e6, 0.04)))
    (line,) = unstable([good, bad, worse])
    assert line.startswith("latency: 2 of 3 unstable; latency of 16 KiB")
    assert unstable([good]) == ()


def test_samples_become_a_pyperf_file(tmp_path: Path) -> None:
    import pyperf

    samples = Samples("clock, 1 core", ((1e6, 0.010), (1e6, 0.012)), warmup=(1e6, 0.02))
    pyperf.BenchmarkSuite([samples.benchmark()]).dump(str(tmp_path / "s.json"))
    read = pyperf.BenchmarkSuite.load(str(tmp_path / "s.json")).get_benchmark("clock, 1 core")
    assert read.get_values() == (1.0e-8, 1.2e-8)
    assert read.median() == pytest.approx(samples.seconds)
