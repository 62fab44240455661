"""Times of messages by what was sent, where no network is described."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.model.laws.cost_per_message import MessageCosts
from ranksight.model.quantity import Quantity

RANKS = np.array([2.0, 4, 8, 16, 32])
SENT = np.stack([6 * RANKS**0.5, 8e5 / RANKS])[None]
COSTS = np.array([2e-4, 3e-5, 1e-9])


def _learned(coefficients: np.ndarray, noise: float = 0.0, seed: int = 1) -> MessageCosts:
    scatter = np.exp(noise * np.random.default_rng(seed).normal(size=(1, len(RANKS))))
    time = (coefficients @ np.concatenate([np.ones((1, len(RANKS))), SENT[0]]))[None] * scatter
    return MessageCosts(("mpi",), RANKS[:, None], time, np.full(time.shape, noise), SENT)


def _asked(ranks: float) -> tuple[np.ndarray, Quantity, Quantity]:
    counts = np.log([6 * ranks**0.5, 8e5 / ranks])
    return np.array([[ranks]]), *(Quantity.exact(np.array([[count]])) for count in counts)


@pytest.mark.parametrize("used", [(1, 1, 1), (0, 1, 1), (0, 1, 0), (0, 0, 1), (1, 0, 1)])
def test_what_messages_and_bytes_cost_is_found(used):
    coefficients = COSTS * used
    value, low, high = _learned(coefficients).at(*_asked(256.0)).interval(0.9)
    true = coefficients @ [1.0, 6 * 16, 8e5 / 256]
    assert value.item() == pytest.approx(true, rel=0.05)
    assert low.item() < true < high.item()


def test_intervals_hold_what_they_say():
    true = COSTS @ [1.0, 6 * 128**0.5, 8e5 / 128]
    inside = []
    for seed in range(100):
        _, low, high = _learned(COSTS, 0.02, seed).at(*_asked(128.0)).interval(0.9)
        inside.append(low.item() < true < high.item())
    assert np.mean(inside) >= 0.82


def test_what_is_not_known_of_the_messages_is_not_known_of_their_time():
    points, messages, sent = _asked(256.0)
    exact, unsure = (_learned(COSTS * [0, 1, 0]).at(points, each, sent) for each in (messages, messages.wider(0.5)))
    assert unsure.up.item() == pytest.approx(np.hypot(exact.up.item(), 0.5), rel=0.05)


def test_messages_and_bytes_in_proportion_bound_each_other():
    """Runs whose messages all have a length say nothing of what each part costs, and yet no part has a cost below 0."""
    calls = 6 * RANKS**0.5
    sent = np.stack([calls, 8 * calls])[None]
    time = 2e-5 * calls[None]
    learned = MessageCosts(("mpi",), RANKS[:, None], time, np.full(time.shape, 0.01), sent)
    asked = np.log([6 * 64**0.5, 4 * 6 * 64**0.5])
    messages, volume = (Quantity.exact(np.array([[count]])) for count in asked)
    value, low, high = learned.at(np.array([[64.0]]), messages, volume).interval(0.9)
    assert low.item() < 2e-5 * 6 * 8 < high.item()
    assert high.item() < 4 * low.item()
    assert value.item() < 1.1 * 2e-5 * 6 * 8


def _reduction(folder, ranks: list[int], counted: bool = True) -> Experiment:
    """A kernel that computes, and calls of a reduction: as many at any number of ranks, each a step of a tree longer."""
    made = Experiment.create(folder, "reduction", ["ranks"])
    rng = np.random.default_rng(5)
    for count in ranks:
        for rep in range(2):
            times = np.array([8 / count, 0.012 * np.log2(count)]) * np.exp(0.01 * rng.normal(size=2))
            calls = [np.nan, 200.0 * (count > 1)]
            rows = {"kernel": ["solve", "reduce"], "rank": -1, "time": times, "messages": calls}
            counts = {"bytes_sent": [np.nan, 8 * calls[1]]}
            counts |= {"instructions": [1e9 / count, np.nan]} if counted else {}
            made.add(Run({"ranks": float(count)}, rep), pd.DataFrame({**rows, **counts}))
    return made


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("asked", [12, 24])
def test_costs_that_miss_the_runs_are_no_rival(tmp_path, asked: int, counted: bool):
    model = fit(_reduction(tmp_path / "e", [1, 2, 4, 8], counted))
    said = {each.kernel: each for each in model.predict(ranks=asked, metrics=["time"]).answers}["reduce"]
    assert said.ok
    assert said.value == pytest.approx(0.012 * np.log2(asked), rel=0.15)


def test_costs_that_miss_the_runs_are_no_rival_between_them(tmp_path):
    model = fit(_reduction(tmp_path / "e", [1, 2, 4, 8, 16]))
    said = {each.kernel: each for each in model.predict(ranks=6, metrics=["time"]).answers}["reduce"]
    assert said.lower > 0.8 * 0.012 * np.log2(6)


def test_a_program_whose_messages_were_counted(tmp_path):
    """Bytes fall with the ranks, and each of few messages has a latency; kernels that compute have counts."""
    made = Experiment.create(tmp_path / "e", "halo", ["ranks"])
    rng = np.random.default_rng(2)
    for ranks in RANKS:
        for rep in range(3):
            sent = 8e6 / ranks
            times = np.array([1 / ranks, 6 * 2e-5 + 1e-9 * sent]) * np.exp(0.01 * rng.normal(size=2))
            rows = {"kernel": ["solve", "MPI_Waitall"], "rank": -1, "time": times}
            counts = {"instructions": [1e9 / ranks, np.nan], "messages": [np.nan, 6], "bytes_sent": [np.nan, sent]}
            made.add(Run({"ranks": float(ranks)}, rep), pd.DataFrame({**rows, **counts}))
    fit(made).save(tmp_path / "m.json")
    said = {each.kernel: each for each in Model.load(tmp_path / "m.json").predict(ranks=256, metrics=["time"]).answers}
    true = 6 * 2e-5 + 1e-9 * 8e6 / 256
    assert said["MPI_Waitall"].lower < true < said["MPI_Waitall"].upper
    assert said["MPI_Waitall"].value == pytest.approx(true, rel=0.1)
    assert "cost per message" in said["MPI_Waitall"].evidence
