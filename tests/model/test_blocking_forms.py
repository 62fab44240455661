"""BF_comm that grows, nears a level, steps or has a knee; within a node and beyond it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ranksight.core import special
from ranksight.core.errors import InputError
from ranksight.model.application.blocking_forms import (
    CONSTANT,
    CONTENTION,
    GROWTH,
    KNEE,
    LEVELLING,
    NODES,
    STEP,
    at,
    grids,
)
from ranksight.model.application.comm_blocking import STATED, Blocking, Taken
from ranksight.model.application.fit_blocking import fit_blocking

RANKS = np.array([4.0, 8.0, 16.0, 32.0, 64.0])
FAR = np.array([256.0, 1024.0])
ONE_NODE = np.ones(1)
Form = Callable[[np.ndarray], np.ndarray]
TRUTHS: dict[str, Form] = {
    "logarithm": lambda p: 0.4 + 0.3 * np.log2(p),
    "levelling": lambda p: 3 * p / (p + 20),
    "from nothing": lambda p: 1 - np.exp(-p / 30),
    "falling": lambda p: 0.3 + 2 / np.sqrt(p),
    "contention": lambda p: 0.5 + 0.1 * np.sqrt(p),
    "step": lambda p: np.where(p > 16, 2.2, 1.0),
    "full link": lambda p: np.maximum(1.0, (p / 12) ** 0.5),
}
"""Shapes, none of which is at a point of the grids."""


def blocking(factor: Form, node: float = 0.0, ranks: np.ndarray = RANKS, scatter: float = 0.0) -> Blocking:
    noise = np.exp(scatter * np.random.default_rng(5).normal(size=len(ranks)))
    took = Taken(("allreduce",), ranks[:, None], np.log(factor(ranks) * noise)[None], np.full((1, len(ranks)), 0.005))
    cost = {("allreduce", STATED): np.ones(len(ranks))}
    result = fit_blocking(("ranks",), took, cost, lambda kind: {STATED: 1.0}, node)
    assert result is not None
    return result


def predicted(law: Blocking, ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Middle of BF and standard deviation of its logarithm, of the mixture."""
    mean, deviation, _ = law.at(ranks[:, None])
    middle = law.weights @ mean
    return np.exp(middle), np.sqrt(law.weights @ (deviation**2 + (mean - middle) ** 2))


@pytest.mark.parametrize("node", [0.0, 16.0])
@pytest.mark.parametrize("name", TRUTHS)
def test_shapes_go_on_beyond_the_runs(name: str, node: float) -> None:
    law, truth = blocking(TRUTHS[name], node), TRUTHS[name]
    assert law.weights.sum() == pytest.approx(1.0)
    mean, _, exact = law.at(RANKS[:, None])
    assert exact.all()
    np.testing.assert_allclose(np.exp(mean), np.broadcast_to(truth(RANKS), mean.shape))
    middle, deviation = predicted(law, FAR)
    np.testing.assert_allclose(middle, truth(FAR), rtol=0.2)
    assert (np.abs(np.log(middle / truth(FAR))) < float(special.ndtri(0.95)) * deviation).all()


@pytest.mark.parametrize("begins", [1, 2])
@pytest.mark.parametrize("power", [0.3, 0.5, 0.9])
def test_contention_begins_at_a_node(power: float, begins: int) -> None:
    """Links that only ranks of other nodes share: nothing shows them until there are `begins` nodes."""
    node, nodes, far = 24.0, np.array([1.0, 2.0, 4.0, 6.0, 8.0]), 24.0 * np.array([16.0, 32.0])

    def contention(p: np.ndarray) -> np.ndarray:
        return 0.7 * (1 + 0.6 * np.maximum(p / node / begins - 1, 0.0) ** power)

    middle, deviation = predicted(blocking(contention, node, node * nodes), far)
    np.testing.assert_allclose(middle, contention(far), rtol=0.1)
    assert (np.abs(np.log(middle / contention(far))) < float(special.ndtri(0.95)) * deviation).all()


def test_many_likely_hypotheses_keep_their_spread() -> None:
    """Two runs leave the power of contention open: what is kept of the hypotheses is no narrower than they are."""
    _, deviation = predicted(blocking(lambda p: np.where(p > 16, 1.5, 1.0), 16.0, np.array([16.0, 32.0])), FAR[:1])
    assert 0.2 < deviation[0] < 1.5


def test_a_power_stays_a_power() -> None:
    middle, _ = predicted(blocking(lambda p: 1.5 * (p / 32) ** 0.25), FAR)
    assert middle == pytest.approx(1.5 * (FAR / 32) ** 0.25, rel=0.05)


def test_scatter_widens_and_is_no_shape() -> None:
    middle, deviation = predicted(blocking(np.ones_like, scatter=0.05), FAR)
    assert middle == pytest.approx([1.0, 1.0], rel=0.25)
    assert (deviation > 0.05).all()
    assert (np.abs(np.log(middle)) < 2 * deviation).all()


def test_bf_grows_no_faster_than_the_ranks() -> None:
    middle, _ = predicted(blocking(lambda p: (p / 4) ** 1.6), np.array([64.0, 128.0, 6400.0]))
    assert (middle[1:] / middle[0] <= [2.02, 101.0]).all()
    assert middle[1] / middle[0] > 1.9


def test_runs_inside_a_node_leave_its_step_open() -> None:
    _, within = predicted(blocking(lambda p: np.full_like(p, 2.0), node=64.0), np.array([48.0]))
    _, beyond = predicted(blocking(lambda p: np.full_like(p, 2.0), node=64.0), np.array([65.0]))
    assert within[0] < 0.1
    assert beyond[0] > 0.3


def test_runs_inside_a_node_do_not_spoil_those_beyond() -> None:
    """A law of its own within the node leaves what is beyond it as if these runs were not there."""
    ranks = np.array([6.0, 12.0, 48.0, 96.0, 192.0])

    def two(p: np.ndarray) -> np.ndarray:
        return np.where(p > 24, 2.0 + 0.2 * np.log2(p), 0.3 * p**0.4)

    middle, deviation = predicted(blocking(two, 24.0, ranks), FAR)
    np.testing.assert_allclose(middle, two(FAR), rtol=0.1)
    assert (np.abs(np.log(middle / two(FAR))) < 2 * deviation).all()


def test_shapes_are_one_at_the_fewest_ranks_and_never_negative() -> None:
    ranks = np.array([4.0, 9.0, 16.0, 25.0, 1e6])
    nodes = np.ceil(ranks / 8)
    for name, (parameters, weight) in grids(ranks[:4], np.unique(nodes[:4])).items():
        values = at(name, parameters, ranks, nodes, 4.0)
        assert np.isfinite(values).all(), name
        assert weight.sum() == pytest.approx(1.0)
        if name in (CONSTANT, GROWTH, NODES, STEP, KNEE, CONTENTION):
            assert values[:, 0] == pytest.approx(np.zeros(len(values))), name


def test_a_step_needs_two_runs_on_each_side() -> None:
    assert STEP not in grids(np.array([4.0, 8.0, 16.0]), ONE_NODE)
    assert grids(RANKS, ONE_NODE)[STEP][0][:, 1].min() > 8
    assert LEVELLING in grids(np.array([4.0]), ONE_NODE)
    assert KNEE not in grids(np.array([4.0]), ONE_NODE)


def test_the_file_keeps_all() -> None:
    law = blocking(TRUTHS["levelling"], 16.0)
    read = Blocking.from_dict(law.to_dict())
    for one, other in zip(law.at(FAR[:, None]), read.at(FAR[:, None]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    for damage in ({"shapes": ["spiral"] * len(law.shapes)}, {"departures": [10**6] * len(law.shapes)}):
        with pytest.raises(InputError):
            Blocking.from_dict(law.to_dict() | damage)
