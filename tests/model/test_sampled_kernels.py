"""Kernels on which few samples fell."""

from __future__ import annotations

import numpy as np
import pytest

from ranksight.model.blocking import UNSEEN, fit_resources, shrinkage
from ranksight.model.resource import LEVELS, Machine
from ranksight.model.sampling import Sampled
from ranksight.model.series import Series
from ranksight.model.unsampled import with_unsampled

MACHINE = Machine("made up", 2e9, (4.0, 14.0, 50.0, 200.0))
PERIOD = 1e-3


def test_many_samples_are_believed_and_few_are_not() -> None:
    count = np.array([1e6, 2e6, 1.0, 0.5e6, 4e5, 3e5])
    expected = np.array([2e6, 1e6, 40.0, 0.5e6, 8e5, 3e5])
    drawn = shrinkage(count, expected)
    many = [0, 1, 3, 4, 5]
    assert drawn[many] == pytest.approx(1, abs=1e-4)
    # One sample where forty were expected: nearer to the program's speed, yet not all the way.
    assert 1 < drawn[2] < 40
    assert drawn[2] > 5


def sampled(scale: float, seed: int) -> tuple[Series, dict[str, np.ndarray]]:
    """Eight kernels of 1 cycle an instruction and a ninth of many times fewer instructions, sampled."""
    generator = np.random.default_rng(seed)
    points = np.array([[p] for p in (1.0, 2.0, 4.0, 8.0, 16.0)])
    values, kernels, metrics, samples = [], [], [], {}
    for at in range(9):
        kernel = f"k{at}"
        instructions = 2e9 * points[:, 0] * (scale if at == 8 else 1.0)
        loads = [0.2 * instructions, 0 * instructions, 0 * instructions, 0.001 * instructions]
        count = generator.poisson(instructions / MACHINE.frequency / PERIOD)
        samples[kernel] = count.astype(float)
        for name, value in (("instructions", instructions), ("time", count * PERIOD), *zip(LEVELS, loads, strict=True)):
            kernels.append(kernel)
            metrics.append(name)
            values.append(value)
    return Series(("ranks",), points, np.array(values)[:, :, None], tuple(kernels), tuple(metrics)), samples


def test_configurations_without_a_sample_count_as_such() -> None:
    ratios = []
    for seed in range(40):
        series, samples = sampled(2e-4, seed)
        found = fit_resources(series, MACHINE, samples)
        assert found is not None
        if "k8" not in found.kernels:
            continue
        at = found.kernels.index("k8")
        waiting = 0.2 * MACHINE.latencies[0] + 0.001 * MACHINE.latencies[3]
        ratios.append(found.cpi[at] + found.factor[at] * waiting)
    # About six samples in all: leaving the configurations out where none fell would tell twice the time and more.
    assert len(ratios) > 30
    assert np.median(ratios) == pytest.approx(1, abs=0.25)
    assert max(ratios) < 2.5
    assert min(ratios) > 0.4


def test_a_kernel_with_many_samples_keeps_its_time() -> None:
    series, samples = sampled(0.5, 1)
    found = fit_resources(series, MACHINE, samples)
    assert found is not None
    waiting = 0.2 * MACHINE.latencies[0] + 0.001 * MACHINE.latencies[3]
    assert found.cpi + found.factor * waiting == pytest.approx(1, abs=0.05)


def unsampled(scale: float, seed: int) -> Sampled:
    """The same without any sample on the ninth kernel, which then has no time."""
    series, samples = sampled(scale, seed)
    rows = np.array([key != ("k8", "time") for key in zip(series.kernels, series.metrics, strict=True)])
    samples.pop("k8")
    return Sampled(series.select(rows), samples)


def test_a_kernel_without_samples_has_the_pace_of_the_program() -> None:
    given = with_unsampled(unsampled(1e-6, 2))
    found = fit_resources(given.series, MACHINE, given.samples)
    assert found is not None
    at = found.kernels.index("k8")
    waiting = 0.2 * MACHINE.latencies[0] + 0.001 * MACHINE.latencies[3]
    assert found.cpi[at] + found.factor[at] * waiting == pytest.approx(1, abs=0.1)
    assert found.borrowed.tolist() == [kernel == "k8" for kernel in found.kernels]
    assert found.evidence[at] == UNSEEN


def test_samples_that_stay_away_tell_that_a_kernel_is_fast() -> None:
    given = with_unsampled(unsampled(1e-2, 2))
    found = fit_resources(given.series, MACHINE, given.samples)
    assert found is not None
    at = found.kernels.index("k8")
    # Three hundred were expected and none fell.
    assert found.cpi[at] < 0.02


def test_without_samples_nothing_is_borrowed() -> None:
    series, _ = sampled(1e-6, 2)
    given = Sampled(series, {})
    assert with_unsampled(given) is given
