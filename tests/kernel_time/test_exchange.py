"""Times of messages that no network describes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ranksight.model.laws.messages import fit_exchange
from ranksight.model.series.reducing import Series

RANKS = np.array([1.0, 2, 4, 8, 12, 24, 48])
FAR = np.array([[192.0], [768.0]])
LATENCY, GAP, WORK = 2e-6, 1e-10, 1e6


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
    mean, deviation = found.times.at(FAR)
    true = LAWS[law](FAR[:, 0])
    assert (np.abs(mean[0] - true) < 2 * deviation[0]).all()
    assert (deviation[0] < 0.3 * mean[0]).all()


def test_one_rank_sends_nothing() -> None:
    found = fit_exchange(series(LAWS["tree"]))
    assert found is not None
    assert found.applies(np.array([[1.0], [2.0]])).tolist() == [False, True]
