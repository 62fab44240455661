"""Times alone, within a memory domain or a node: what they leave open is in the interval, or refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import ranksight as rs
from ranksight.model.priors import PROGRAM_STEP
from ranksight.model.quantity import TAIL

NODE = "icelake-8360y"
DOMAIN = 18


def timed(function: Callable[[float], float], ranks: tuple[int, ...]) -> rs.Model:
    times = [function(p) for p in ranks]
    return rs.fit(rs.from_dict({"ranks": list(ranks), "time": times}), platform=NODE)


def serial(p: float) -> float:
    return 10 / p + 1


def tree(p: float) -> float:
    return 10 / p + 0.3 * float(np.log2(p))


@pytest.mark.parametrize("most", [DOMAIN, 16])
@pytest.mark.parametrize("law", [serial, tree])
def test_a_part_that_is_not_divided_and_a_domain_that_fills_are_both_left_open(
    law: Callable[[float], float], most: int
) -> None:
    """A domain that is full, and one that is nearly so: more of its ranks are asked than were measured."""
    model = timed(law, (1, 2, 4, 8, most))
    for asked in (36, 72):
        (answer,) = (each for each in model.predict(ranks=asked).answers if each.kernel is None)
        assert answer.lower <= law(asked) <= answer.upper
        # As if each domain did what one did: the others find an interface of their own.
        assert answer.lower <= law(DOMAIN) * DOMAIN / asked <= answer.upper


def test_work_that_is_divided_stays_narrow() -> None:
    (answer,) = timed(lambda p: 10 / p, (1, 2, 4, 8, DOMAIN)).predict(ranks=72).answers
    assert answer.ok
    assert answer.upper / answer.lower < 1.6


@pytest.mark.parametrize("ranks", [(9, 18, 36, 72), (1, 2, 4, 8, 18), (36, 54, 72)])
def test_messages_between_nodes_are_as_uncertain_as_the_first_step_there(ranks: tuple[int, ...]) -> None:
    model = timed(serial, ranks)
    near, far = (next(each for each in model.predict(ranks=p).answers if each.kernel is None) for p in (72, 144))
    assert "messages between nodes" not in near.reason
    assert far.upper / far.lower > np.exp(2 * TAIL * PROGRAM_STEP)
    assert far.upper / far.lower > 1.8 * near.upper / near.lower
