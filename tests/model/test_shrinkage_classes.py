"""Classes of forms that series of a metric have in common."""

from __future__ import annotations

import numpy as np

from ranksight.model.search.shrinkage import classes


def test_powers_of_decay_within_a_quarter_are_one_class() -> None:
    table = np.zeros((7, 1, 3))
    table[1:, 0, 0] = [-1.0, -11 / 12, -5 / 6, -2 / 3, 1.0, 2.0]
    found = classes(table, np.array([[0], [1], [2], [3], [4], [5], [6]]))
    assert found[1] == found[2] == found[3]
    assert len({found[0], found[1], found[4], found[5]}) == 4
    assert found[5] == found[6]
    with_constant = classes(table, np.array([[0, 1], [0, 3], [1, -1], [0, 4]]))
    assert with_constant[0] == with_constant[1] != with_constant[2]
    assert with_constant[3] not in with_constant[:3]
