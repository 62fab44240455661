"""Units, counts, efficiencies and costs against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from ranksight.analysis.comparison.sides import measured_side
from ranksight.analysis.history.changepoints import noise
from ranksight.analysis.phases.power import fit_power
from ranksight.analysis.planning.cost import Cost
from ranksight.core.dims import dims_create
from ranksight.core.units import parse_size
from ranksight.counters.names import unit_scale
from ranksight.counters.readers._caliper_names import column
from ranksight.model import priors
from ranksight.model.fitting.fitted import between_jobs
from ranksight.model.series.reducing import Series
from ranksight.model.sharing import traffic


@pytest.mark.parametrize(
    ("name", "unit", "scale"),
    [
        ("sum#time.duration.ns", None, 1e-9),
        ("inclusive#sum#time.duration.ns", "nsec", 1e-9),
        ("scale#sum#time.duration.ns", None, 1.0),  # the file has brought it to seconds
        ("sum#time.duration", "usec", 1e-6),
        ("Time (E)", None, 1.0),
    ],
)
def test_times_of_caliper_become_seconds(name: str, unit: str | None, scale: float) -> None:
    assert column(name, unit).quantity == "time"
    assert column(name, unit).scale == scale


def test_units_bring_values_to_si() -> None:
    assert [unit_scale(unit) for unit in ("ms", "us", "ns", "GB", "GiB", "GHz")] == [1e-3, 1e-6, 1e-9, 1e9, 2**30, 1e9]
    assert [parse_size(text) for text in ("3k", "3Ki", "2Gi")] == [3000, 3072, 1 << 31]


def test_process_grids_are_as_close_to_cubes_as_their_factors_allow() -> None:
    assert [dims_create(64, 3), dims_create(96, 3), dims_create(7, 2)] == [(4, 4, 4), (6, 4, 4), (7, 1)]


def test_times_differ_between_jobs_by_four_percent_and_counts_do_not() -> None:
    assert between_jobs(("time", "instructions", "bytes_mem")) == pytest.approx([0.04, 0.0, 0.0])


def test_core_hours_are_the_expectation_of_a_lognormal_law() -> None:
    """Median 100 s, 90 % interval up to 200 s: sigma = ln 2 / 1.645, the mean is ``100 exp(sigma^2 / 2)``."""
    seconds = np.array([100.0]), np.array([200.0])
    cost = Cost(lambda points: seconds, "", (0,))
    sigma = np.log(2) / 1.644853626951
    price = cost.of(np.array([[36.0]]), 3)
    assert price.seconds == pytest.approx([100 * np.exp(sigma**2 / 2)])
    assert price.core_hours == pytest.approx([3 * 36 * 100 * np.exp(sigma**2 / 2) / 3600])
    assert price.upper == pytest.approx([3 * 36 * 200 / 3600])


def test_designs_are_weighed_by_their_marginal_likelihood() -> None:
    """Minus twice its logarithm, for data within their noise. What all designs share is open: it leaves the data's part
    orthogonal to it, of covariance ``noise^2 I + prior^2 Z Z'``."""
    rng = np.random.default_rng(20)
    common = np.stack([np.ones(12), np.linspace(-1, 1, 12)], axis=1)
    rest = np.linalg.qr(common, mode="complete").Q[:, 2:]
    target = common @ [1.0, 0.5] + rng.normal(scale=0.3 * traffic.NOISE, size=12)
    found, expected = [], []
    for extra in (rng.normal(size=(12, n)) for n in (0, 1, 2, 3)):
        design = np.column_stack([common, extra])
        _, cost = traffic._solve(design[None], target[None], np.ones((1, 12), dtype=bool))
        seen = rest.T @ extra
        covariance = traffic.NOISE**2 * np.eye(10) + priors.TRAFFIC**2 * seen @ seen.T
        found.append(float(cost[0]))
        expected.append(-2 * float(multivariate_normal(np.zeros(10), covariance).logpdf(rest.T @ target)))
    assert np.diff(found) == pytest.approx(np.diff(expected), rel=1e-3)
    assert np.diff(found).min() > 1  # columns that explain nothing cost something


def test_the_interval_of_a_power_is_that_of_a_line_in_the_logarithms() -> None:
    """Three points, so that Student's law has one degree of freedom: its quantile at 0.95 is tan(0.45 pi) = 6.3138."""
    ranks = np.array([1.0, np.e, np.e**2])
    line = fit_power(ranks, np.exp([2.0 + 0.1, 1.0 - 0.2, 0.0 + 0.1]))
    assert (line.factor, line.exponent) == pytest.approx((np.exp(2.0), -1.0))
    assert line.scatter == pytest.approx(np.sqrt(0.1**2 + 0.2**2 + 0.1**2))
    low, high = line.interval(np.e**3, 0.9)
    half = np.tan(0.45 * np.pi) * line.scatter * np.sqrt(1 + 1 / 3 + (3 - 1) ** 2 / 2)
    assert (np.log(low), np.log(high)) == pytest.approx((-1 - half, -1 + half))
    assert np.isnan(fit_power(ranks[:2], [2.0, 1.0]).interval(4.0)).all()


def test_a_mean_of_repetitions_is_as_exact_as_their_number_makes_it() -> None:
    """Times of 0.9 and 1.1 deviate by 0.1 sqrt(2); the mean of two by that over sqrt(2), besides 3 % between jobs."""
    points = np.array([[2.0], [4.0]])
    series = Series(("ranks",), points, np.array([[[0.9, 1.1], [0.9, 1.1]]]), ("a",), ("time",))
    side = measured_side("before", series, points, 0.03)
    assert side.error[side.rows["a", "time"]] == pytest.approx(np.hypot(0.1, 0.03))


def test_noise_between_experiments_is_that_of_their_successive_differences() -> None:
    """Every difference of 0, 0.1, 0, ... is 0.1; of normal values the median difference is sqrt(2) s / 1.4826."""
    found = noise(0.1 * np.array([[0.0, 1, 0, 1, 0, 1, 0]]), np.full((1, 7), 1e-3))
    assert found == pytest.approx(np.full((1, 7), 1.4826 * 0.1 / np.sqrt(2)))
    assert noise(np.zeros((1, 3)), np.full((1, 3), 0.04), 0.03) == pytest.approx(np.full((1, 3), 0.05))
