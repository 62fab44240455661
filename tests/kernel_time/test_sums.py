"""Sums of known forms: terms are found, none takes away, intervals cover."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from ranksight.core.errors import InputError
from ranksight.model.kernel_time.sums import Sums, fit_sums, forms, term
from ranksight.model.process.covariance import Turn
from ranksight.model.process.prevalence import learned
from ranksight.model.quantity import Quantity
from ranksight.model.search.terms import Hypotheses

NAMES = ("ranks",)
P = np.array([[2.0], [4], [8], [12], [24], [48]])
FAR = np.array([[192.0], [768.0]])


def moments(times: Quantity) -> tuple[np.ndarray, np.ndarray]:
    """Medians, and standard deviations from logarithms."""
    return np.exp(times.centre), np.exp(times.centre) * times.deviation


def space() -> Hypotheses:
    tree = {term(NAMES, {"ranks": factor}): 0.0 for factor in ((0.0, 1.0, 0.0), (1.0, 0.0, 0.0))}
    surface = {term(NAMES, {"ranks": (-share, 0.0, 0.0)}): 0.0 for share in (0.5, 2 / 3, 1.0)}
    return forms(NAMES, tree, surface)


def law(points: np.ndarray) -> np.ndarray:
    return 2e-3 + 4e-3 * points[:, 0] ** (-2 / 3) + 3e-4 * np.log2(points[:, 0])


def test_a_constant_a_surface_and_a_tree() -> None:
    found = fit_sums(space(), P, law(P)[None], 0.002 * law(P)[None])
    mean, deviation = moments(found.at(FAR))
    assert mean[0] == pytest.approx(law(FAR), rel=0.03)
    assert (deviation[0] < 0.1 * mean[0]).all()


def test_nine_in_ten_are_inside() -> None:
    """More of them where the law goes on, as intervals allow for one that turns."""
    generator = np.random.default_rng(2)
    noise = 0.02
    true = law(P)[None] * np.ones((300, 1))
    measured = true * np.exp(generator.normal(0, noise, true.shape))
    _, low, high = fit_sums(space(), P, measured, noise * measured).at(FAR[:1]).interval(0.9)
    inside = (low[:, 0] < law(FAR)[0]) & (law(FAR)[0] < high[:, 0])
    assert inside.mean() >= 0.85
    assert np.median(high / low) < 2


def test_sums_far_from_all_of_their_terms_are_fitted() -> None:
    """Values that no constant is near to: the sum is found all the same, and followed through what departs from it."""
    times = np.array([[3e-4, 36e-4, 24e-4, 15e-4, 9.6e-4]])
    ranks = np.array([[1.0], [3], [6], [12], [24]])
    constant = forms(NAMES)
    found = fit_sums(constant, ranks, times, 0.01 * times, lone=(0,)).at(np.concatenate([ranks, [[48.0]]]))
    assert np.exp(found.centre[0, :-1]) == pytest.approx(times[0], rel=0.1)
    assert 3e-4 < np.exp(found.centre[0, -1]) < 9e-4


def test_sums_may_turn_beyond_their_runs_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where configurations scatter more than what was measured has errors."""
    measured = law(P) * np.exp(np.random.default_rng(4).normal(0, 0.05, (40, len(P))))
    asked = fit_sums(space(), P, measured, 0.005 * measured)
    points = np.array([[20.0], [96.0], [384.0], [1536.0]])
    turning = asked.at(points)
    never = replace(learned(), turn=Turn(0.0, 0.0, 0.0, 0.0))
    monkeypatch.setattr("ranksight.model.kernel_time.sums.learned", lambda: never)
    straight = asked.at(points)
    np.testing.assert_allclose(turning.centre, straight.centre)
    np.testing.assert_allclose(turning.deviation[:, 0], straight.deviation[:, 0])
    wider = np.median(turning.deviation - straight.deviation, axis=0)
    assert wider[1] > 0.02
    assert wider[3] > wider[1]


@pytest.mark.parametrize("power", [-0.15, 0.15])
def test_a_law_that_follows_the_ranks_by_an_unknown_power_is_inside(power: float) -> None:
    """A blocking factor of messages that changes with the ranks belongs to no term."""
    generator = np.random.default_rng(3)
    noise = 0.01
    true = law(P) * P[:, 0] ** power
    measured = true * np.exp(generator.normal(0, noise, (40, len(P))))
    value, low, high = fit_sums(space(), P, measured, noise * measured).at(FAR[:1]).interval(0.9)
    wanted = (law(FAR) * FAR[:, 0] ** power)[0]
    assert ((low[:, 0] < wanted) & (wanted < high[:, 0])).mean() >= 0.6
    assert np.median(np.abs(value[:, 0] / wanted - 1)) < 0.1


@pytest.mark.parametrize("at_once", [1, 10_000, 10**7])
def test_series_say_together_what_each_says_alone(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr("ranksight.model.kernel_time.sums.AT_ONCE", at_once)
    measured = law(P) * np.exp(0.02 * np.random.default_rng(5).normal(size=(6, len(P))))
    measured[1, 0] = measured[3, 0] = measured[4, 2] = np.nan
    mean, deviation = moments(fit_sums(space(), P, measured, 0.02 * np.nan_to_num(measured)).at(FAR))
    for row, values_of_one in enumerate(measured):
        alone = moments(fit_sums(space(), P, values_of_one[None], 0.02 * np.nan_to_num(values_of_one[None])).at(FAR))
        np.testing.assert_allclose([mean[row], deviation[row]], np.concatenate(alone), rtol=1e-9)


def test_no_term_takes_away() -> None:
    falling = 1.0 - 0.01 * P[:, 0]
    found = fit_sums(space(), P, falling[None], 0.001 * np.ones((1, len(P))))
    assert (moments(found.at(FAR))[0] >= 0).all()


def test_terms_that_repeat_each_other_are_one() -> None:
    """One number of ranks measured at six sizes: all terms of the ranks are the constant."""
    points = np.full((6, 1), 4.0)
    mean, deviation = moments(fit_sums(space(), points, np.full((1, 6), 3.0), np.full((1, 6), 0.03)).at(points[:1]))
    assert mean[0, 0] == pytest.approx(3.0, rel=1e-4)
    assert np.isfinite(deviation).all()


def test_plain_data_and_back() -> None:
    found = fit_sums(space(), P, law(P)[None], 0.01 * law(P)[None])
    again = Sums.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again.at(FAR).centre == pytest.approx(found.at(FAR).centre)
    for damage in ({"measured": [[1.0]]}, {"members": [[99]]}, {"points": [[0.0]]}, {"terms": []}):
        with pytest.raises(InputError, match="sums"):
            Sums.from_dict({**found.to_dict(), **damage})


def test_a_heavy_and_a_light_hypothesis_leave_the_interval_skewed() -> None:
    """Growth that hardly shows is that of the heaviest term; the others are smaller, and in the interval below."""
    ranks = np.array([[1.0], [2], [4], [8], [16]])
    growth = {term(NAMES, {"ranks": (1.0, 0.0, 0.0)}): 0.0, term(NAMES, {"ranks": (0.0, 1.0, 0.0)}): -2.0}
    measured = (1 + 0.01 * ranks[:, 0])[None]
    answer = fit_sums(forms(NAMES, growth), ranks, measured, 0.04 * measured).at(np.array([[256.0]]))
    value, low, high = (end[0, 0] for end in answer.interval(0.9))
    assert low < 2 < value < 1 + 0.02 * 256
    assert value / low > 1.2 * high / value


def test_a_sum_that_is_nothing_where_time_was_measured_has_no_say() -> None:
    """A tree alone takes no time on one rank: it was fitted as if it were a constant, and nothing was predicted."""
    ranks = np.array([[1.0], [2], [3], [4], [6], [9], [10], [12], [16], [18]])
    tree = {term(NAMES, {"ranks": (0.0, 1.0, 0.0)}): 0.0}
    measured = np.array([[41, 631, 11.3, 10.1, 24.3, 8.4, 8.3, 8.5, 9.1, 10.5]])
    found = fit_sums(forms(NAMES, tree, bare=True), ranks, measured, 0.25 * measured).at(np.array([[1.0], [18], [64]]))
    value, low, high = found.interval(0.9)
    assert (low < value).all()
    assert (value < high).all()
    assert 2 < value[0, 1] < 50
