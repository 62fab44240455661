"""BF_comm that is a logarithm, nears a level or steps at the node."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ranksight.core import special
from ranksight.core.errors import InputError
from ranksight.model.application.blocking_forms import LEVELLING, LOGARITHM, STEP, BlockingForms
from ranksight.model.application.comm_blocking import STATED, Blocking, Taken, fit_blocking

RANKS = np.array([4.0, 8.0, 16.0, 32.0, 64.0])
FAR = np.array([256.0, 1024.0])
Form = Callable[[np.ndarray], np.ndarray]
TRUTHS: dict[str, Form] = {
    LOGARITHM: lambda p: 0.4 + 0.3 * np.log2(p),
    LEVELLING: lambda p: 3 * p / (p + 20),
    STEP: lambda p: np.where(p > 16, 2.2, 1.0),
}


def forms(values: np.ndarray, node: float = 16.0) -> BlockingForms:
    each = np.tile(np.log(values), (3, 1))
    return BlockingForms((LOGARITHM, LEVELLING, STEP), RANKS, each, np.zeros(each.shape), node)


@pytest.mark.parametrize("name", TRUTHS)
def test_the_right_form_has_the_evidence_and_goes_on(name: str) -> None:
    found = forms(TRUTHS[name](RANKS))
    right = found.forms.index(name)
    assert int(found.evidence.argmax()) == right
    mean, deviation = found.at(FAR)
    np.testing.assert_allclose(np.exp(mean[right]), TRUTHS[name](FAR), rtol=0.06)
    assert (np.abs(mean[right] - np.log(TRUTHS[name](FAR))) < 2 * deviation[right]).all()


def test_runs_inside_a_node_leave_its_step_open() -> None:
    mean, deviation = forms(np.full(5, 2.0), node=64.0).at(np.array([64.0, 128.0]))
    assert np.exp(mean[2]) == pytest.approx([2.0, 2.0], rel=0.01)
    assert deviation[2, 0] < 0.1
    assert deviation[2, 1] == pytest.approx(1.0, rel=0.05)


def blocking(factor: Form, node: float = 16.0) -> Blocking:
    took = Taken(("allreduce",), RANKS[:, None], np.log(factor(RANKS))[None], np.full((1, 5), 0.005))
    cost = {("allreduce", STATED): np.ones(5)}
    found = fit_blocking(("ranks",), took, cost, lambda kind: {STATED: 1.0}, node)
    assert found is not None
    return found


@pytest.mark.parametrize("name", TRUTHS)
def test_hypotheses_are_weighed_by_the_data(name: str) -> None:
    found = blocking(TRUTHS[name])
    assert found.weights.sum() == pytest.approx(1.0)
    mean, deviation, exact = found.at(np.concatenate([RANKS, FAR])[:, None])
    assert exact[:, :5].all()
    np.testing.assert_allclose(np.exp(mean[:, :5]), np.broadcast_to(TRUTHS[name](RANKS), (len(mean), 5)))
    middle = np.exp(found.weights @ mean[:, 5:])
    np.testing.assert_allclose(middle, TRUTHS[name](FAR), rtol=0.25)
    reach = float(special.ndtri(0.95)) * np.sqrt(
        found.weights @ (deviation**2 + (mean - np.log(middle)[0]) ** 2)[:, 5:]
    )
    assert (np.abs(np.log(middle / TRUTHS[name](FAR))) < reach).all()


def test_a_power_stays_a_power() -> None:
    found = blocking(lambda p: 1.5 * (p / 32) ** 0.25)
    mean, *_ = found.at(FAR[:, None])
    assert np.exp(found.weights @ mean) == pytest.approx(1.5 * (FAR / 32) ** 0.25, rel=0.1)


def test_no_node_no_step() -> None:
    found = blocking(TRUTHS[STEP], node=0.0)
    assert found.forms is None or STEP not in found.forms.forms


def test_the_file_keeps_the_forms() -> None:
    found = blocking(TRUTHS[LEVELLING])
    read = Blocking.from_dict(found.to_dict())
    for one, other in zip(found.at(FAR[:, None]), read.at(FAR[:, None]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    damaged = found.to_dict()
    damaged["forms"]["forms"][0] = "spiral"
    with pytest.raises(InputError):
        Blocking.from_dict(damaged)
