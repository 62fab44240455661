"""Kernels beyond the heaviest are not held out, and share the weights that these have in common."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.laws import weighing
from ranksight.platforms import load


def test_the_heaviest_kernels_alone_are_held_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighing, "MOST", 2)
    experiment = Experiment.create(tmp_path / "exp", "many", ["ranks"])
    names = ["light", "heavy", "middle"]
    cost = {"light": 1e-3, "heavy": 1.0, "middle": 0.1}
    for p in (1, 2, 4, 8, 16):
        work = [1e9 * cost[name] / p for name in names]
        served = {level: [0.1 * each for each in work] for level in ("l1", "l2", "l3", "mem")}
        table = pd.DataFrame({"kernel": names, "rank": 0, "instructions": work, "time": [3e-9 * x for x in work]})
        table = table.assign(loads=[0.4 * x for x in work], **{f"loads_{level}": x for level, x in served.items()})
        experiment.add(Run({"ranks": p}, collector="counted"), table.assign(cycles=[6.0 * x for x in work]))
    model = fit(experiment, platform=load("generic"))
    listed = model.equation.weights
    assert listed is not None
    assert set(listed.kernels) == {"heavy", "middle"}
    assert listed.of(["light"], listed.laws)[0] == pytest.approx(listed.common)
