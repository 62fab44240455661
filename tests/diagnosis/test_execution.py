"""What is known of execution: bounds that hold, and a law between them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksight.analysis.diagnosis.execution import SPREAD, USUAL, WIDTH, Execution, execution

ONE = np.ones((1, 1))


def known(cycles: float, instructions: float, waiting: float, minimum_cpi: float = np.nan, minimum_wait: float = np.nan,
          stalls: float = np.nan) -> Execution:  # fmt: skip
    return execution(
        cycles * ONE,
        instructions * ONE,
        waiting * ONE,
        minimum_cpi * ONE,
        np.array([minimum_wait]),
        stalls * ONE,
        0 * ONE,
    )


def test_a_kernel_that_caches_serve_is_execution_to_the_last_cycle() -> None:
    law = known(4e9, 1e9, 0.0, minimum_cpi=4.0, minimum_wait=0.0)
    assert law.low.item() == law.high.item() == 1.0
    assert law.quantile(0.05).item() == law.quantile(0.95).item() == 1.0


def test_loads_wait_no_longer_than_one_by_one() -> None:
    law = known(4e9, 1e9, 1e9)
    assert law.low.item() == pytest.approx(0.75)
    assert law.quantile(0.05).item() >= 0.75


def test_stalls_only_add_to_what_the_calm_configuration_shows() -> None:
    law = known(10e9, 1e9, 1e12, minimum_cpi=2.0, minimum_wait=0.5)
    assert law.low.item() == pytest.approx(0.15)
    assert law.high.item() == pytest.approx(0.2)


def test_counted_stalls_are_believed() -> None:
    law = known(10e9, 1e9, 1e12, minimum_cpi=2.0, stalls=7e9)
    assert law.quantile(0.5).item() == pytest.approx(0.3, abs=0.01)
    assert 0.25 < law.low.item() < law.high.item() < 0.35


def test_without_any_bound_the_law_of_programs_is_what_is_left() -> None:
    law = known(1e12, 1e9, np.inf)
    assert law.low.item() == pytest.approx(1 / WIDTH / 1000)
    # Cut far out, below at the width of a core: four of five programs are cut nowhere near their median.
    assert law.quantile(0.5).item() * 1000 == pytest.approx(USUAL, rel=0.1)
    assert law.quantile(0.95).item() * 1000 == pytest.approx(USUAL * np.exp(1.645 * SPREAD), rel=0.05)


@given(st.floats(0.2, 50), st.floats(0, 100), st.floats(0.01, 0.99))
def test_probability_and_quantile_are_each_other_s_inverse(cpi: float, waiting: float, probability: float) -> None:
    law = known(cpi * 1e9, 1e9, waiting * 1e9)
    share = law.quantile(probability)
    assert law.low.item() <= share.item() <= law.high.item() <= 1
    if law.high.item() - law.low.item() > 1e-3:
        assert law.below(share).item() == pytest.approx(probability, abs=1e-3)
