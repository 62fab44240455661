"""The resource equation against numbers worked out by hand: time, clock, and prediction intervals at several levels."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ranksight.model.resource.equation import LEVELS, Machine, Resources
from ranksight.model.uncertainty.forecast import Forecast

CLOCK = 2e9
LATENCIES = (4.0, 12.0, 40.0, 200.0)
LOADS = dict(zip(LEVELS, (8e8, 1e8, 5e7, 1e7), strict=True))
CYCLES = 4 * 8e8 + 12 * 1e8 + 40 * 5e7 + 200 * 1e7
QUANTILE = 1.644853626951
"""Of the standard normal distribution at 0.95, from a table: the ends of 90 % intervals."""
JOBS = 0.04
"""What times differ by between jobs, as docs/how-it-works.md says."""


def given(instructions: float) -> tuple[Forecast, dict[tuple[str, str], int]]:
    """Instructions and loads of one kernel, known exactly."""
    counts = {"instructions": instructions, **LOADS}
    value = np.array([[number] for number in counts.values()])
    nothing = np.zeros(value.shape)
    reason = np.full(value.shape, "", dtype=object)
    return (
        Forecast(value, value, value, nothing.astype(np.intp), reason, nothing),
        {("k", name): at for at, name in enumerate(counts)},
    )


def resources(error: float = 0.0, **others: object) -> Resources:
    return Resources(
        Machine("made", CLOCK, LATENCIES), ("k",), np.array([0.5]), np.array([0.25]), np.array([error]),
        np.array([[0.2, 0.3]]), None, ("stalls counted, cycles from cycles",), **others,  # type: ignore[arg-type]
    )  # fmt: skip


def test_time_is_execution_and_blocked_loads() -> None:
    requirements, rows = given(6e9)
    parts = resources().parts(np.zeros((1, 1)), requirements, rows)
    assert parts.execution == pytest.approx(np.array([[6e9 * 0.5 / CLOCK]]))
    assert np.exp(parts.time.centre) == pytest.approx(np.array([[6e9 * 0.5 / CLOCK + 0.25 * CYCLES / CLOCK]]))
    scaled = resources(scale=1.5).parts(np.zeros((1, 1)), requirements, rows)
    assert np.exp(scaled.time.centre) == pytest.approx(1.5 * np.exp(parts.time.centre))


@pytest.mark.parametrize("run_to_run", [0.0, 0.04])
def test_intervals_add_the_blocking_factors_error_and_the_scatter_between_jobs(run_to_run: float) -> None:
    requirements, rows = given(6e9)
    parts = resources(error=0.05, run_to_run=run_to_run).parts(np.zeros((1, 1)), requirements, rows)
    time = 6e9 * 0.5 / CLOCK + 0.25 * CYCLES / CLOCK
    _, lower, upper = parts.time.interval(0.9)
    deviation = np.hypot(0.05 * CYCLES / CLOCK, np.hypot(JOBS, run_to_run) * time)
    assert float(upper[0, 0]) == pytest.approx(time + QUANTILE * deviation)
    assert float(lower[0, 0]) == pytest.approx(time * np.exp(-QUANTILE * deviation / time))


def test_a_kernel_without_a_cpi_of_its_own_is_open_by_its_spread() -> None:
    requirements, rows = given(6e9)
    parts = resources(spread=np.array([0.4])).parts(np.zeros((1, 1)), requirements, rows)
    (time, lower, upper), z = parts.time.interval(0.9), QUANTILE
    assert float(upper[0, 0]) == pytest.approx(time + time * np.hypot(np.expm1(z * 0.4), z * JOBS))
    assert float(lower[0, 0]) == pytest.approx(time * np.exp(-z * np.hypot(0.4, JOBS)))


def test_memory_takes_more_cycles_at_a_higher_clock_and_caches_do_not() -> None:
    assert Machine("made", CLOCK, LATENCIES).at(3e9) == Machine("made", 3e9, (4.0, 12.0, 40.0, 300.0))
    platform = SimpleNamespace(
        name="made",
        frequency=CLOCK,
        caches=[SimpleNamespace(latency=cycles) for cycles in LATENCIES[:3]],
        memory=SimpleNamespace(latency=100e-9),
    )
    assert Machine.of(platform) == Machine("made", CLOCK, LATENCIES)
    platform.caches.pop()
    assert Machine.of(platform).latencies == (4.0, 12.0, 200.0, 200.0)


def test_a_blocking_factor_that_is_hardly_known_lies_between_none_and_all_of_the_latency() -> None:
    requirements, rows = given(6e9)
    parts = resources(error=1e3).parts(np.zeros((1, 1)), requirements, rows)
    (time, lower, upper), waiting = parts.time.interval(0.9), CYCLES / CLOCK
    jobs = QUANTILE * JOBS * time
    assert float(upper[0, 0]) == pytest.approx(float((time + np.hypot(0.75 * waiting, jobs))[0, 0]))
    assert float(lower[0, 0]) == pytest.approx(float((time * np.exp(-np.hypot(0.25 * waiting, jobs) / time))[0, 0]))
