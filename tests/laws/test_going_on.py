"""Laws are weighed as if none turned beyond its runs: of all but one it is not said how often they do."""

from __future__ import annotations

import numpy as np

from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.series.reducing import Series

X = np.array([1.0, 2.0, 4.0, 8.0, 16.0])


def test_functions_that_go_on_are_narrower_beyond_the_runs_and_the_same_inside() -> None:
    times = ((3 + 100 / X) * np.exp(0.05 * np.random.default_rng(1).normal(size=len(X))))[None, :, None]
    fitted = fit_series(Series(("ranks",), X[:, None], times, ("k",), ("time",)))
    points = np.array([[3.0], [64.0]])
    turning, straight = fitted.predict(points), fitted.going_on().predict(points)
    inside, beyond = (np.log(each.upper / each.lower)[0] for each in (turning, straight))
    np.testing.assert_allclose(inside[0], beyond[0], rtol=1e-6)
    assert inside[1] > 1.2 * beyond[1]
    np.testing.assert_allclose(turning.value, straight.value, rtol=0.02)
