"""What else grows with the ranks, beyond the law of shared bandwidth."""

import numpy as np
import pytest

from ranksight.model.quantity import Quantity
from ranksight.model.sharing.beyond import Beyond

RANKS = np.array([18.0, 36.0, 54.0, 72.0])


def _beyond(left: np.ndarray) -> Beyond:
    """Kernels in full domains of one node whose times leave a law that falls as 1 / ranks."""
    none = np.zeros(len(left), dtype=bool)
    law = np.broadcast_to(90 / RANKS, left.shape).copy()
    scatter = np.linspace(0.01, 0.03, len(left))
    return Beyond(18, RANKS, np.ones(4), law, left, scatter, none, none)


def _law(kernels: int, ranks: np.ndarray) -> Quantity:
    value = np.broadcast_to(90 / ranks, (kernels, len(ranks)))
    return Quantity.exact(np.log(value)).wider(np.array(0.03))


LEFT = np.array(
    [
        [0.0, 0.01, -0.01, 0.02],
        [0.0, 0.1, 0.2, 0.3],
        [np.nan, 0.05, 0.0, 0.04],
        [0.02, np.nan, np.nan, np.nan],
        [0.1, np.nan, 0.3, np.nan],
    ]
)


def test_kernels_and_configurations_together_are_as_they_are_alone() -> None:
    ranks = np.arange(18.0, 18 * 61, 18)
    nodes, active = np.ceil(ranks / 72), np.full(len(ranks), 18, dtype=np.intp)
    every = _beyond(LEFT).take(_law(len(LEFT), ranks), ranks, nodes, active)
    for row in range(len(LEFT)):
        held = _beyond(LEFT)
        own = Beyond(
            18,
            RANKS,
            np.ones(4),
            held.law[[row]],
            LEFT[[row]],
            held.scatter[[row]],
            held.guessed[[row]],
            held.whole[[row]],
        )
        for k in (0, 17, 59):
            some = slice(k, k + 1)
            alone = own.take(_law(1, ranks[some]), ranks[some], nodes[some], active[some])
            for mine, theirs in zip(every.interval(0.9), alone.interval(0.9), strict=True):
                assert mine[row, k] == pytest.approx(theirs[0, 0], rel=1e-6)


def test_what_grew_grows_on_and_one_number_of_ranks_shows_nothing() -> None:
    ranks = np.array([144.0, 288.0])
    said = _beyond(LEFT).take(_law(len(LEFT), ranks), ranks, ranks / 72, np.full(2, 18, dtype=np.intp))
    value, lower, upper = said.interval(0.9)
    growth = value / (90 / ranks)
    assert (growth[1] > [1.3, 1.4]).all()
    assert abs(growth[0, 0] - 1) < 0.06
    assert growth[3] == pytest.approx([1.0, 1.0], rel=1e-12)
    assert ((lower < value) & (value < upper))[:3].all()
