"""Tables of values over one column of their points."""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import along_column


def test_values_over_one_column_and_what_the_others_have_together() -> None:
    points = np.array([(2.0, 10.0), (1.0, 10.0), (1.0, 20.0)])
    x, table = along_column(points, 0, np.array([[5.0, 6.0, 7.0]]))
    np.testing.assert_array_equal(x, [1.0, 2.0])
    np.testing.assert_array_equal(table, [[[6.0, 7.0], [5.0, np.nan]]])
    _, single = along_column(points[:2, :1], 0, np.array([[5.0, 6.0]]))
    np.testing.assert_array_equal(single, [[[6.0], [5.0]]])
