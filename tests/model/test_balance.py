"""Unlike ranks: one rank's special work neither hides in a mean nor spreads over all."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model.application.balance import FIRST, Balance, fit_balance
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model

RANKS = (4, 8, 12, 16, 24)
ROOT = 4.0
"""Seconds that the root reads and writes, at any number of ranks."""


def solving(ranks: int) -> float:
    return 64.0 / ranks


def write(path, root: float = ROOT, ranks=RANKS, absent: bool = False) -> Experiment:
    """A solver that all ranks share and output that the first rank does alone; times sampled and from the tracer.

    Others either have no time in the output, or `absent` no row of it.
    """
    experiment = Experiment.create(path, "made-up", ["ranks"])
    for p in ranks:
        solve = np.full(p, solving(p)) * (1 + 0.002 * np.cos(np.arange(p)))
        write_out = np.where(np.arange(p) == 0, root, 0.0)
        frames = [
            pd.DataFrame({"kernel": "solve", "rank": np.arange(p), "time": solve, "instructions": 1e9 * solve}),
            pd.DataFrame(
                {"kernel": "output", "rank": np.arange(p), "time": write_out, "instructions": 1e9 * write_out}
            ),
        ]
        frames[1] = frames[1][:1] if absent else frames[1]
        experiment.add(Run({"ranks": p}, collector="s", provenance={"time": "sampled, n = 100000"}), pd.concat(frames))
        whole = pd.DataFrame({"kernel": WHOLE, "rank": np.arange(p), "compute_cpu_time": solve + write_out})
        experiment.add(Run({"ranks": p}, collector="t"), whole)
    return experiment


def test_the_root_is_modelled_for_itself(tmp_path):
    model = fit(write(tmp_path / "e"), platform=None)
    balance = model.equation.balance
    assert balance.busiest == FIRST
    points = np.array([[24.0], [96.0]])
    value, low, high = balance.imbalance(points)
    for k, p in enumerate((24, 96)):
        busiest, mean = solving(p) + ROOT, solving(p) + ROOT / p
        assert value[k] == pytest.approx(busiest / mean, rel=0.1)
        assert 0.99 * low[k] <= busiest / mean <= 1.01 * high[k]
    # the mean alone would say 0.71 s at 96 ranks, and the imbalance of 24 ranks 1.7 s
    whole = next(a for a in model.predict(ranks=96, metrics=["time"]).answers if a.kernel is None)
    assert whole.value == pytest.approx(solving(96) + ROOT, rel=0.15)
    assert "all wait for rank 0, the first" in model.predict(ranks=96, metrics=["time"]).notes[0]
    broken = model.breakdown(points)
    assert broken.by_kernel.sum(axis=0) == pytest.approx(broken.total.value[0])
    model.save(tmp_path / "m.json")
    again = Model.load(tmp_path / "m.json")
    assert again.breakdown(points).total.value == pytest.approx(broken.total.value, rel=1e-6)


def test_what_one_rank_has_alone_is_not_counted_twice(tmp_path):
    model = fit(write(tmp_path / "e", absent=True), platform=None)
    assert model.equation.balance.remarks(np.array([[96.0]])) == []
    whole = next(a for a in model.predict(ranks=96, metrics=["time"]).answers if a.kernel is None)
    assert whole.value == pytest.approx(solving(96) + ROOT, rel=0.1)


def test_alike_ranks_have_no_imbalance(tmp_path):
    model = fit(write(tmp_path / "e", root=0.01), platform=None)
    value, _, high = model.equation.balance.imbalance(np.array([[64.0]]))
    assert value[0] < 1.05
    assert model.predict(ranks=64, metrics=["time"]).notes == ()
    assert high[0] < 1.5


def test_times_of_the_slowest_rank_are_not_multiplied_again(tmp_path):
    experiment = write(tmp_path / "e")
    model = fit(experiment, platform=None, over_ranks={"time": "max"})
    assert model.equation.balance is None
    assert model.equation.imbalance == 1.0


def test_too_little_says_nothing(tmp_path):
    assert fit_balance(write(tmp_path / "a", ranks=(4, 8)))[0] is None
    experiment = Experiment.create(tmp_path / "b", "x", ["ranks"])
    for p in RANKS:
        experiment.add(Run({"ranks": p}), pd.DataFrame({"kernel": ["k"], "rank": [-1], "instructions": [1.0]}))
    assert fit_balance(experiment) == (None, 1.0)


def test_a_damaged_file_is_refused(tmp_path):
    content = json.loads(json.dumps(fit_balance(write(tmp_path / "e"))[0].to_dict()))
    assert Balance.from_dict(content).busiest
    for damage in ({"busiest": None}, {"classes": {}}, {"seen": [0.5, 1]}, {"fitted": None}, {"seen": "x"}):
        with pytest.raises(InputError):
            Balance.from_dict({**content, **damage})
