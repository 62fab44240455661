"""Times of messages that no network describes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ranksight.model.kernel_time.sums import values_of
from ranksight.model.laws.messages import fit_exchange
from ranksight.model.quantity import Quantity
from ranksight.model.series.domains import Domains
from ranksight.model.series.reducing import Series

RANKS = np.array([1.0, 2, 4, 8, 12, 24, 48])
FAR = np.array([[192.0], [768.0]])
LATENCY, GAP, WORK = 2e-6, 1e-10, 1e6


def moments(times: Quantity) -> tuple[np.ndarray, np.ndarray]:
    """Medians, and standard deviations from logarithms."""
    return np.exp(times.centre), np.exp(times.centre) * times.deviation


def series(time: Callable[[np.ndarray], np.ndarray]) -> Series:
    """A kernel with instructions, and messages without: seconds of three repetitions."""
    work = np.repeat((WORK / RANKS)[:, None], 3, axis=1)
    messages = np.repeat(np.where(RANKS > 1, time(RANKS), 0.0)[:, None], 3, axis=1)
    scatter = np.exp(np.random.default_rng(1).normal(0, 0.005, messages.shape))
    kernels, metrics = ("k", "k", "mpi"), ("instructions", "time", "time")
    return Series(("ranks",), RANKS[:, None], np.array([work, 1e-9 * work, messages * scatter]), kernels, metrics)


LAWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "tree": lambda p: np.ceil(np.log2(p)) * (LATENCY + GAP * 2e4),
    "ring": lambda p: (p - 1) * (LATENCY + GAP * 8e3 / p),
    "all to all": lambda p: (p - 1) * LATENCY / 4 + GAP * 8 * WORK / p,
    "reduction of a long message": lambda p: 2 * np.ceil(np.log2(p)) * LATENCY + 2 * GAP * 8e5 * (1 - 1 / p),
    "faces": lambda p: 6 * (LATENCY + GAP * 8 * (WORK / p) ** (2 / 3)),
}


@pytest.mark.parametrize("law", LAWS)
def test_the_usual_algorithms_are_met(law: str) -> None:
    found = fit_exchange(series(LAWS[law]))
    assert found is not None
    mean, deviation = moments(found.times.at(FAR))
    true = LAWS[law](FAR[:, 0])
    assert (np.abs(mean[0] - true) < 2 * deviation[0]).all()
    assert (deviation[0] < 0.3 * mean[0]).all()


def test_one_rank_sends_nothing() -> None:
    found = fit_exchange(series(LAWS["tree"]))
    assert found is not None
    assert found.applies(np.array([[1.0], [2.0]])).tolist() == [False, True]


@pytest.mark.parametrize("within", [(12.0, 24.0), (6.0, 12.0, 24.0)])
def test_runs_inside_a_node_do_not_spoil_those_beyond(within: tuple[float, ...]) -> None:
    """Latency and bandwidth of a node's memory say little of the adapter's."""

    def seconds(ranks: np.ndarray) -> np.ndarray:
        latency, gap = np.where(ranks > 24, 2e-6, 0.4e-6), np.where(ranks > 24, 1e-10, 2e-11)
        return np.asarray(1e5 * (6 * (latency + gap * 8 * (96**3 / ranks) ** (2 / 3)) + np.log2(ranks) * latency))

    ranks, asked = np.array([*within, 48.0, 96.0, 144.0, 192.0]), np.array([384.0, 1536.0])
    values = np.stack([np.stack([2000 / ranks, 4e12 / ranks, seconds(ranks)])] * 2, axis=2)
    measured = Series(("ranks",), ranks[:, None], values, ("solve", "solve", "mpi"), ("time", "instructions", "time"))
    law = fit_exchange(measured, Domains(12, 2, 24))
    assert law is not None
    said = law.at(asked[:, None])
    assert np.exp(said.centre[0]) == pytest.approx(seconds(asked), rel=0.1)
    assert (said.down[0] < 0.3).all()


NODES_LAWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "contention": lambda n: 1 + 0.4 * np.sqrt(n),
    "tree of nodes": lambda n: 1 + 0.5 * np.log2(n),
    "partners on other nodes": lambda n: 1 + 2 * (1 - 1 / n),
}


@pytest.mark.parametrize("law", NODES_LAWS)
def test_messages_grow_with_the_nodes(law: str) -> None:
    """Constant within a node, and growing beyond it: neither a constant nor in proportion to the ranks."""
    ranks, asked = np.array([4.0, 8, 16, 32, 64, 96, 128]), np.array([512.0, 2048.0])
    seconds = 1e-3 * NODES_LAWS[law](np.ceil(ranks / 16))
    scatter = np.exp(np.random.default_rng(2).normal(0, 0.005, (3, len(ranks), 3)))
    values = np.stack([2000 / ranks, 4e12 / ranks, seconds])[..., None] * scatter
    measured = Series(("ranks",), ranks[:, None], values, ("solve", "solve", "mpi"), ("time", "instructions", "time"))
    found = fit_exchange(measured, Domains(8, 2, 16))
    assert found is not None
    value, low, high = (end[0] for end in found.at(asked[:, None]).interval(0.9))
    true = 1e-3 * NODES_LAWS[law](asked / 16)
    assert value == pytest.approx(true, rel=0.15)
    assert ((low < true) & (true < high)).all()


def test_one_value_beyond_the_node_leaves_growth_open() -> None:
    """It may be a step, or begin to grow there."""
    ranks, asked = np.array([1.0, 2, 4, 8, 12, 24, 48]), np.array([[384.0]])
    seconds = np.where(ranks > 24, 1.5e-3, 1e-3)
    values = np.repeat(np.stack([2000 / ranks, 4e12 / ranks, seconds])[..., None], 2, axis=2)
    measured = Series(("ranks",), ranks[:, None], values, ("solve", "solve", "mpi"), ("time", "instructions", "time"))
    found = fit_exchange(measured, Domains(12, 2, 24))
    assert found is not None
    value, low, high = (float(end[0, 0]) for end in found.at(asked).interval(0.9))
    assert 1.5e-3 < value < 9e-3
    assert low < 1.7e-3
    assert high > 4e-3


def test_what_falls_and_what_grows_need_no_constant() -> None:
    """A message to each other rank, and shares of all data, with a BF_comm that follows the ranks."""

    def seconds(p: np.ndarray) -> np.ndarray:
        return np.asarray((p / 16) ** -0.15 * LAWS["all to all"](p))

    found = fit_exchange(series(seconds), Domains(12, 2, 24))
    assert found is not None
    value, low, high = (end[0] for end in found.at(FAR).interval(0.9))
    true = seconds(FAR[:, 0])
    assert value == pytest.approx(true, rel=0.1)
    assert ((low < true) & (true < high)).all()


def test_growth_over_nodes_is_no_sum_of_its_own_within_one() -> None:
    """Its logarithm is zero there, where times were measured."""
    found = fit_exchange(series(LAWS["tree"]), Domains(12, 2, 24))
    assert found is not None
    places = np.column_stack([RANKS[1:], 1.0 + (RANKS[1:] > 24), np.ceil(RANKS[1:] / 24)])
    assert (values_of(found.times.terms, found.times.members, places).sum(axis=1) > 0).all()
    assert (found.times.members >= 0).any(axis=1).all()
