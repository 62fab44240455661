"""How likely runs without a described machine have filled a memory domain."""

from __future__ import annotations

import pytest

from ranksight.model import priors
from ranksight.model.kernel_time.where import filled


@pytest.mark.parametrize(
    ("high", "fills", "within"), [(4, 0.5, 1.0), (16, 1.0, 1.0), (45.25, 1.0, 0.5), (128, 1.0, 0.0), (256, 0.0, 0.0)]
)
def test_more_ranks_fill_a_domain_and_leave_it(high: float, fills: float, within: float) -> None:
    """Runs from two ranks on show a full domain only as long as they lie within it."""
    assert filled(1, high) == pytest.approx(priors.FULL_NODE * fills, abs=1e-3)
    assert filled(2, high) == pytest.approx(priors.FULL_NODE * fills * within, abs=1e-3)
