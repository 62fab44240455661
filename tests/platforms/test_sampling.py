"""Samples of a measurement and their checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranksight.core.errors import ToolError
from ranksight.platforms.calibration import sampling
from ranksight.platforms.calibration.effort import Effort
from ranksight.platforms.calibration.sampling import (
    Samples,
    judged,
    merge,
    repeated,
    select,
    system_advice,
    unstable,
)


def test_samples_and_their_figures() -> None:
    good = Samples("x", ((1e6, 0.0100), (1e6, 0.0102), (1e6, 0.0098)))
    assert good.seconds == pytest.approx(1e-8)
    assert good.rate == pytest.approx(1e8)
    assert good.scatter == pytest.approx(0.02)
    assert good.describe() == "median of 3, scatter 2.0 %"
    with pytest.raises(ToolError, match="without work or time"):
        Samples("x", ((1e6, 0.0),))


def test_pyperf_judges_which_are_stable() -> None:
    good = Samples("good, 1 core", ((1e6, 0.0100), (1e6, 0.0102), (1e6, 0.0098)))
    short = Samples("short", ((1e3, 1e-5), (1e3, 1e-5)))
    wild = Samples("wild of 4 KiB", ((1e6, 0.01), (1e6, 0.01), (1e6, 0.03)))
    said = judged([good, short, wild])
    assert set(said) == {"short", "wild of 4 KiB"}
    assert said["short"] == ("the shortest raw value is only 10.0 us",)
    assert "the standard deviation" in said["wild of 4 KiB"][0]
    assert "is 69% of the mean" in said["wild of 4 KiB"][0]
    assert "the maximum (30.0 ns) is 80% greater" in said["wild of 4 KiB"][1]
    assert judged([wild]) == {"wild of 4 KiB": said["wild of 4 KiB"]}
    assert judged([good]) == {}


def test_what_scatters_is_measured_again_in_more_processes() -> None:
    calm = Samples("x", ((1e6, 0.01),) * 3)
    wild = Samples("x", ((1e6, 0.01), (1e6, 0.01), (1e6, 0.03)))
    shared = Samples("x", ((1e6, 0.09),) * 3, disturbed=1.0)

    def asked(results: list[Samples]) -> tuple[list[int], Samples]:
        numbers: list[int] = []

        def run(number: int) -> Samples:
            numbers.append(number)
            return results[min(number, len(results)) - 1]

        return numbers, repeated(run, Effort(0.01, 3, 2, 1, 1))

    assert asked([calm])[0] == [1, 2]
    assert asked([wild])[0] == [1, 2, 3, 4, 5, 6]
    numbers, found = asked([wild, wild, calm, calm, calm, calm])
    assert len(numbers) > 2
    assert found.seconds == pytest.approx(1e-8)
    mixed = asked([wild, shared, calm])[1]
    assert mixed.disturbed == 0
    assert mixed.pairs == calm.pairs


def test_advice_of_pyperf_is_passed_on_without_what_would_hurt(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """System state
============

ASLR: Full randomization

Advices
=======

Perf event: Set max sample rate to 1
Linux scheduler: Use isolcpus=<cpu list> kernel parameter to isolate CPUs
Power supply: the power cable must be plugged

Warnings
========

Turbo Boost (MSR): Failed to read MSR
"""
    monkeypatch.setattr(sampling, "_pyperf", lambda *words: text.splitlines())
    assert system_advice() == (
        "pyperf advises: Power supply: the power cable must be plugged ('python -m pyperf system tune' does so)"
    )
    monkeypatch.setattr(sampling, "_pyperf", lambda *words: [])
    assert system_advice() == ""
    assert judged([Samples("x", ((1e6, 0.01),))]) == {}


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
    assert "50 % of the samples shared" in unstable([both])[0]


def test_unstable_measurements_are_reported_by_kind_with_the_worst() -> None:
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
