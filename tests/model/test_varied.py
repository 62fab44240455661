"""Parameters that change nothing in a series have no influence on it."""

from __future__ import annotations

import numpy as np

from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.fitting.joining import join, pick
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.series.reducing import Series

RANKS, SIZES = np.array([2.0, 4, 8, 12]), (4.0, 8.0)
SENT = np.array([13.0, 23.5, 27.75, 30.0 + 2 / 3])
"""Messages of a rank of an adaptive mesh, whatever the size of its blocks."""
ASKED = np.array([16.0, 32, 64])


def crossed() -> Series:
    """One count that goes by the ranks alone, one by both, one by none; the first two are silent on one rank."""
    points = np.array([[p, n] for p in (1.0, *RANKS) for n in SIZES])
    silent = np.full(len(SIZES), np.nan)
    rows = [
        np.concatenate([silent, np.repeat(SENT, len(SIZES))]),
        np.concatenate([silent, (SENT[:, None] * np.array(SIZES) ** 2).ravel()]),
        np.full(len(points), 24.0),
    ]
    names = ("messages", "bytes_sent", "messages")
    return Series(("ranks", "size"), points, np.array(rows)[:, :, None], ("refine", "refine", "sum"), names)


def test_a_size_that_changes_nothing_is_no_further_evidence() -> None:
    series = crossed()
    said = fit_varied(series).predict(np.array([[p, 4.0] for p in ASKED]))
    alone = fit_series(Series(("ranks",), RANKS[:, None], SENT[None, :, None], ("refine",), ("messages",)))
    wanted = alone.predict(ASKED[:, None])
    for name in ("value", "lower", "upper"):
        np.testing.assert_allclose(getattr(said, name)[0], getattr(wanted, name)[0], rtol=1e-6)
    # What both change, and what neither does, stay as they were.
    as_before = fit_series(series).predict(np.array([[p, 4.0] for p in ASKED]))
    np.testing.assert_allclose(said.value[1:], as_before.value[1:], rtol=1e-9)


def test_a_size_far_from_those_measured_may_change_something_yet() -> None:
    fitted = fit_varied(crossed())
    near, far = (fitted.predict(np.array([[16.0, size]])) for size in (4.0, 4096.0))
    assert far.value[0, 0] == near.value[0, 0]
    assert far.upper[0, 0] - far.lower[0, 0] > near.upper[0, 0] - near.lower[0, 0]


def test_functions_are_picked_with_their_breaks() -> None:
    x = 2.0 ** np.arange(1, 11)
    exact = np.stack(
        [3 + 2 * x**0.5, np.where(x < 50, 100 / x + 1, 40 + 0.5 * x), 0 * x + 7, 2.0 * np.where(x < 100, x, 5 * x)]
    )
    scatter = 1 + 0.03 * np.random.default_rng(4).uniform(-1, 1, size=(*exact.shape, 3))
    fitted = fit_series(Series(("ranks",), x[:, None], exact[:, :, None] * scatter, tuple("abcd"), ("time",) * 4))
    assert [part.rows.tolist() for part in fitted.below] == [[1, 3]]
    asked = np.array([[16.0], [100.0], [4096.0]])
    rows = [np.array([3, 0]), np.array([2, 1])]
    parts = [pick(fitted, each) for each in rows]
    np.testing.assert_allclose(parts[0].predict(asked).value, fitted.predict(asked).value[rows[0]], rtol=1e-8)
    assert pick(fitted, np.array([2])).below == ()
    back = join(parts, rows)
    assert back.kernels == fitted.kernels
    np.testing.assert_allclose(back.predict(asked).value, fitted.predict(asked).value, rtol=1e-8)
