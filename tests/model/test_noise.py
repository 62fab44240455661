"""Repetitions: their law, their scatter, and what quality control says."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from ranksight.core.errors import InputError
from ranksight.model.series.noise import judge, locate, moderate
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import LAWS, law_of_scatter, likelihoods, reduce


@pytest.mark.parametrize("size", [3, 4])
def test_likelihoods_are_the_integrals_over_the_location(size: int) -> None:
    sample = np.array([0.0, 0.13, 0.4, 0.5])[:size]
    scale = 0.6
    place = np.linspace(-20, 20, 400_001)[:, None]
    z = (sample - place) / scale
    densities = [np.abs(z) <= 1, np.exp(-z * z / 2) / np.sqrt(2 * np.pi) * 2, np.exp(-np.abs(z))]
    expected = [np.log((d / 2 / scale).prod(axis=1).sum() * 1e-4) for d in densities]
    np.testing.assert_allclose(likelihoods(sample[None], np.array([scale]))[:, 0, 0], expected, atol=1e-3)


@pytest.mark.parametrize(("name", "expected"), [("uniform", "midrange"), ("normal", "mean"), ("laplace", "median")])
def test_law_of_scatter_chooses_the_location(name: str, expected: str) -> None:
    generator = np.random.default_rng(0)
    sample = {
        "uniform": lambda: generator.uniform(-1, 1, (300, 5, 5)),
        "normal": lambda: generator.normal(size=(300, 5, 5)),
        "laplace": lambda: generator.laplace(size=(300, 5, 5)),
    }[name]()
    assert LAWS[law_of_scatter(1 + 0.05 * sample).argmax()] == expected


def test_one_outlier_keeps_the_midrange_away() -> None:
    values = 1 + 0.01 * np.random.default_rng(1).uniform(-1, 1, (1, 6, 5))
    values[0, 2, 0] = 3.0
    uniform, normal, double = law_of_scatter(values)
    assert uniform < 0.01
    assert double > normal


def test_variances_are_moderated_by_their_common_law() -> None:
    generator = np.random.default_rng(2)
    truth = 0.01 * 10 / generator.chisquare(10, size=4000)
    seen = truth * generator.chisquare(8, size=4000) / 8
    freedom, variance = moderate(seen, np.full(4000, 8.0))
    assert freedom == pytest.approx(10, rel=0.15)
    assert variance == pytest.approx(0.01, rel=0.05)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("mean", 3.0),
        ("median", 2.0),
        ("min", 1.0),
        ("max", 7.0),
        ("sum", 12.0),
        ("q1", 1.5),
        ("midrange", 4.0),
        ("gmean", 14 ** (1 / 4)),
    ],
)
def test_reductions_skip_what_is_missing(how: str, expected: float) -> None:
    values = np.array([[1.0, 2.0, np.nan, 2.0, 7.0]])
    if how in ("median", "q1", "gmean"):
        expected = {"median": 2.0, "q1": 1.75, "gmean": 28 ** (1 / 4)}[how]
    np.testing.assert_allclose(reduce(values, how, axis=1), [expected])
    assert np.isnan(reduce(np.full((1, 3), np.nan), how, axis=1)).all()


@pytest.mark.parametrize(("shape", "axis"), [((50, 5, 5), 2), ((40, 6), 0), ((7, 1), 1), ((3, 4, 0), 2)])
def test_medians_are_those_of_numpy(shape: tuple[int, ...], axis: int) -> None:
    generator = np.random.default_rng(4)
    values = generator.normal(size=shape)
    values[generator.uniform(size=shape) < 0.4] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # numpy warns of slices without numbers
        np.testing.assert_array_equal(reduce(values, "median", axis=axis), np.nanmedian(values, axis=axis))


def test_unknown_reduction_is_refused() -> None:
    with pytest.raises(InputError, match="no reduction is named 'avg'"):
        reduce(np.ones((1, 2)), "avg")


def test_named_reduction_is_honoured() -> None:
    values = np.array([[[1.0, 2.0, 9.0]]])
    assert locate(values, "min").values[0, 0] == 1.0
    assert locate(values, "max").values[0, 0] == 9.0
    assert locate(values, "median").values[0, 0] == 2.0


def test_small_values_weigh_by_how_repetitions_scatter() -> None:
    generator = np.random.default_rng(3)
    size = 10.0 ** np.arange(6)
    noise = 0.02 * generator.normal(size=(6, 5))
    same = size[:, None] * (1 + noise)
    clock = size[:, None] + size.max() * noise
    found = locate(np.stack([same, clock]), "mean").scale
    np.testing.assert_allclose(found[0], same.mean(axis=1), rtol=0.03)
    np.testing.assert_allclose(found[1], np.maximum(np.abs(clock.mean(axis=1)), 0.1 * np.abs(clock.mean(axis=1)).max()))
    once = locate(size[None, :, None], "mean").scale[0]
    np.testing.assert_allclose(once, np.maximum(size, 0.01 * size.max()))


def test_quality_shows_noise_from_signal_and_how_many_repetitions_it_takes() -> None:
    generator = np.random.default_rng(5)
    x = np.array([2.0, 4.0, 8.0, 16.0, 32.0])
    flat = np.full((1, 5, 4), 3.0) * (1 + 0.2 * generator.normal(size=(1, 5, 4)))
    slight = (3 + 0.01 * x)[None, :, None] * (1 + 0.1 * generator.normal(size=(1, 5, 4)))
    steep = x[None, :, None] * (1 + 0.1 * generator.normal(size=(1, 5, 4)))
    series = Series(
        ("p",), x[:, None], np.concatenate([flat, slight, steep]), ("flat", "slight", "steep"), ("time",) * 3
    )
    found = judge(locate(series.values, "mean", points=series.points))
    assert found.noisy[0]
    assert not found.noisy[2]
    assert found.repetitions[2] == 1
    assert np.isnan(found.repetitions[0]) or found.repetitions[0] > 4
