"""Whatever is measured together, a model reads back the same, and answers with numbers in order or not at all.

Each group holds a series of every kind that real tables have: some begin, end, are zero in between, lack values, are
constant, have one value or none. What one of them is must not change what is predicted of the others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from ranksight.core.arrays import Array
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty.forecast import OK, Forecast
from ranksight.model.uncertainty.rows import rows_of

COUNTS = ("instructions", "loads_mem", "bytes_sent", "messages")
OTHERS = ("time", "mpi_time", "cpi", "memory_peak", "energy_node")
FEWEST, MOST = 4, 9
SEEDS = range(18)

Kind = Callable[[np.random.Generator, Array, Array], Array]
KINDS: Mapping[str, Kind] = {  # of values (n,) at the x (n,) of one parameter
    "whole": lambda rng, x, y: y,
    "begins": lambda rng, x, y: np.where(x < rng.choice(x), 0.0, y),
    "ends": lambda rng, x, y: np.where(x > rng.choice(x), 0.0, y),
    "zero in between": lambda rng, x, y: np.where(rng.random(len(y)) < 0.3, 0.0, y),
    "lacks values": lambda rng, x, y: np.where(rng.random(len(y)) < 0.3, np.nan, y),
    "constant": lambda rng, x, y: np.full(len(y), y[0]),
    "one value": lambda rng, x, y: np.where(np.arange(len(y)) == rng.integers(len(y)), y, np.nan),
    "zero": lambda rng, x, y: np.zeros(len(y)),
    "rounded": lambda rng, x, y: np.round(y / y.max() * 10),
}


def group(seed: int) -> Series:
    """A series of every kind over one parameter or two, with repetitions that scatter, or not."""
    rng = np.random.default_rng(seed)
    x = np.unique(2.0 ** rng.integers(0, 9, rng.integers(FEWEST, MOST)))
    points = x[:, None] if rng.random() < 0.6 else np.array([(p, n) for p in x for n in (12.0, 16.0, 24.0)])
    p, last = points[:, 0], points[:, -1]
    values = []
    for kind in KINDS.values():
        growth = p ** rng.uniform(-1.2, 1.2) * last ** rng.choice([0.0, 1.0, 2.0, 3.0])
        y = kind(rng, p, 10 ** rng.uniform(-4, 9) * growth)
        scatter = 10 ** rng.uniform(-4, -0.5) if rng.random() < 0.5 else 0.0
        values.append(y[:, None] * np.exp(rng.normal(0, scatter, (len(y), 2))))
        values[-1][:, 1][rng.random(len(y)) < 0.3] = np.nan
    metrics = rng.choice(COUNTS if rng.random() < 0.6 else [*COUNTS, *OTHERS], len(values))
    names = ("ranks", "size")[: points.shape[1]]
    return Series(names, points, np.array(values), tuple(KINDS), tuple(str(name) for name in metrics))


def asked(points: Array) -> Array:
    """The configurations themselves, and some between them, below, and far beyond."""
    return np.concatenate(
        [points, np.sqrt(points[:1] * points[-1:]), points[:1] / 2, points[-1:] * 2, points[-1:] * 16]
    )


def same(one: Forecast, other: Forecast, rtol: float) -> None:
    np.testing.assert_array_equal(one.status, other.status)
    for name in ("value", "lower", "upper"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=rtol, err_msg=name)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_group_of_perturbed_series(seed: int) -> None:
    series = group(seed)
    at = asked(series.points)
    fitted = fit_varied(series)
    predicted = fitted.predict(at)
    same(Fitted.from_dict(json.loads(json.dumps(fitted.to_dict()))).predict(at), predicted, 1e-9)
    answered = predicted.status == OK
    for end in (predicted.lower, predicted.value, predicted.upper):
        assert np.isfinite(end[answered]).all()
        assert not (end < 0).any()
    assert not ((predicted.lower > predicted.value) | (predicted.value > predicted.upper)).any()
    order = np.random.default_rng(seed).permutation(len(series))
    same(fit_varied(series.select(order)).predict(at), rows_of(predicted, order), 1e-6)
