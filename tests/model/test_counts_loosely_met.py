"""Counts that no function meets: as many terms as values follow their scatter."""

from __future__ import annotations

import numpy as np
import pytest

from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.series.reducing import Series


@pytest.mark.parametrize("values", [(3.4987, 1.6074, 0.7863, 0.3888), (2.61, 1.27, 0.66, 0.32)])
def test_work_that_ranks_divide_unevenly_goes_on_falling(values: tuple[float, ...]) -> None:
    """Repetitions agree, and the total differs by 3 % from one number of ranks to another: a sum of three terms that
    cancel met four such values, and rose to five times the truth."""
    ranks = np.array([4.0, 9.0, 18.0, 36.0]) if values[0] > 3 else np.array([2.0, 4.0, 8.0, 16.0])
    counts = 1e10 * np.array(values)[None, :, None] * np.array([1.0, 1.0005])
    fitted = fit_series(Series(("ranks",), ranks[:, None], counts, ("solve",), ("instructions",)))
    asked = ranks[-1] * np.array([[2.0], [4.0], [16.0]])
    answer, divided = fitted.predict(asked), counts[0, -1, 0] * ranks[-1] / asked[:, 0]
    assert (answer.lower[0] < divided).all()
    assert (divided < answer.upper[0]).all()
    np.testing.assert_allclose(answer.value[0], divided, rtol=0.15)
