"""Departures from a law and the pace of kernels: instructions times how fast they go."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from ranksight.errors import InputError
from ranksight.experiment import Experiment, Run
from ranksight.model.assembly import fit
from ranksight.model.fitting.fitting import fit_series
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.model import Model
from ranksight.model.series.series import Series
from ranksight.model.uncertainty.departure import SMOOTH, Departure, _alike, learn_departure

SIZES = np.array([30.0, 45.0, 60.0, 90.0, 120.0])


def cpi(kernel: int, size: np.ndarray) -> np.ndarray:
    """A pace that rises by a factor of its own as a cache is outgrown around size 70."""
    return 0.4 * (1 + kernel / (1 + (70 / size) ** 3))


def write(path, noise=0.01, kernels=8):
    experiment = Experiment.create(path, "made-up", ["size"])
    rng = np.random.default_rng(5)
    for n in SIZES:
        i = 200 * n**3 * (1 + np.arange(kernels))
        cycles = i * cpi(np.arange(kernels), n) * np.exp(rng.normal(0, noise, kernels))
        table = pd.DataFrame(
            {"kernel": [f"k{k}" for k in range(kernels)], "rank": 0, "instructions": i, "cycles": cycles}
        )
        experiment.add(Run({"size": float(n)}, collector="made-up"), table)
    return experiment


def test_the_process_is_kriging():
    """Mean, variance and leave-one-out by the covariance written out."""
    x, y = np.log(SIZES)[:, None], np.array([[0.3, 0.1, 0.0, -0.2, 0.1]])
    made = Departure(x, y, np.full((3, 1), 1.3), np.full(3, 0.05))
    at = np.log([[75.0], [500.0]])
    from ranksight.model.uncertainty.departure import SIZES as GRID

    means, squares, left = [], [], []
    for smooth in SMOOTH:
        r = _alike(x, x, np.array([1.3]), smooth)
        near = _alike(at, x, np.array([1.3]), smooth)
        weight, mean, square, out = [], [], [], []
        for s in GRID:
            c = s**2 * r + 0.05**2 * np.eye(5)
            inverse = np.linalg.inv(c)
            weight.append(-0.5 * np.linalg.slogdet(c)[1] - 0.5 * y[0] @ inverse @ y[0])
            mean.append(s**2 * near @ inverse @ y[0])
            spread = s**2 - np.einsum("ij,jk,ik->i", s**2 * near, inverse, s**2 * near) + 0.05**2
            square.append(mean[-1] ** 2 + spread)
            out.append(inverse @ y[0] / np.diag(inverse))
        p = np.exp(np.array(weight) - max(weight))
        p /= p.sum()
        means.append(p @ np.array(mean))
        squares.append(p @ np.array(square))
        left.append(p @ np.array(out))
    mean, spread = made.at(at)
    assert mean[0] == pytest.approx(np.mean(means, axis=0))
    assert spread[0] == pytest.approx(np.sqrt(np.mean(squares, axis=0) - np.mean(means, axis=0) ** 2))
    assert made.left_out()[0] == pytest.approx(np.mean(left, axis=0))


def test_far_away_the_law_stands_alone():
    made = learn_departure(np.log(SIZES)[:, None], np.array([[0.3, 0.2, 0.1, 0.05, 0.0], [0.0, np.nan, 0.1, 0.2, 0.3]]))
    mean, spread = made.at(np.log([[60.0], [1e9]]))
    assert np.abs(mean[:, 1]).max() < 0.02
    assert (spread[:, 1] > 2 * spread[:, 0]).all()
    assert np.isnan(made.left_out()[1, 1])
    assert Departure.from_dict(json.loads(json.dumps(made.to_dict()))).at(np.log([[75.0]]))[0] == pytest.approx(
        made.at(np.log([[75.0]]))[0]
    )
    # Lengths of the wrong shape, and such as nobody wrote: dividing by the smallest number there is gives none.
    for lengths in ([[1.0]], [[1e-320]] * len(SMOOTH), [[1e300]] * len(SMOOTH)):
        with pytest.raises(InputError, match="damaged|fit together"):
            Departure.from_dict({**made.to_dict(), "lengths": lengths})


def test_a_pace_is_carried_where_time_alone_is_not(tmp_path):
    model = fit(write(tmp_path / "e"), platform=None)
    errors = []
    for answer in model.predict(size=150, metrics=["cycles"]).answers:
        if answer.kernel is None:
            continue
        k = int(answer.kernel[1:])
        true = 200 * 150.0**3 * (1 + k) * cpi(k, np.array(150.0))
        errors.append(abs(answer.value / true - 1))
        assert answer.ok
        assert answer.lower < true < answer.upper
    assert np.median(errors) < 0.04
    told = {a.evidence for a in model.predict(size=150, metrics=["cycles"]).answers if a.kernel}
    assert any(text.startswith("instructions x pace: instructions and cycles of 5 configurations") for text in told)
    model.save(tmp_path / "m.json")
    again = Model.load(tmp_path / "m.json")
    asked = np.array([[150.0]])
    assert again.forecast(asked).value == pytest.approx(model.forecast(asked).value, rel=1e-6)


def test_a_parameter_that_did_not_vary_invents_nothing():
    points = np.array([[1.0, n] for n in SIZES])
    series = Series(("ranks", "size"), points, (7 * SIZES**3)[None, :, None], ("k",), ("instructions",))
    fitted = fit_varied(series)
    assert fitted.formula(0) == "7 * size^3"
    said = fitted.predict(np.array([[1.0, 240.0], [2.0, 240.0]]))
    assert said.value[0] == pytest.approx(7 * 240.0**3, rel=1e-3)
    assert said.status[0, 0] == 0
    assert said.reason[0, 1] == "ranks took one value in the measurements"


def test_forms_that_outgrow_the_counts_by_a_power_are_rarer():
    """Cycles that rise as caches are outgrown are nearly n^4 for a while, where no count is."""
    at = np.array([[150.0]])
    rows = np.arange(8)
    given = {
        (f"k{k}", name): value
        for k in rows
        for name, value in (
            ("instructions", 200 * SIZES**3 * (1 + k)),
            ("cycles", 200 * SIZES**3 * (1 + k) * cpi(k, SIZES) * np.exp(np.random.default_rng(k).normal(0, 0.01, 5))),
        )
    }
    names = list(given)
    values = np.stack(list(given.values()))[:, :, None]
    series = Series(("size",), SIZES[:, None], values, tuple(k for k, _ in names), tuple(m for _, m in names))
    cycles = np.array([name == "cycles" for _, name in names])
    true = 200 * 150.0**3 * (1 + rows) * np.array([cpi(k, 150.0) for k in rows])
    told, alone = (fit_series(series, guide=guide).predict(at).value[cycles, 0] / true for guide in (True, False))
    assert np.median(told) < np.median(alone)
    assert (told[1:] <= alone[1:]).all()
