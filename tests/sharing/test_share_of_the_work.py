"""Full domains with as much work a rank as one that was measured with a smaller problem."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from machines import CLOCK, CORE, DOMAIN, fullest, smooth

from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model import modelfile
from ranksight.model.answers import Answer
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model

RANKS, SIZES = (1, 2, 4, 8, 16, 18), (0.25, 0.5, 1.0)


def kept(ranks: int, size: float) -> dict[str, float]:
    """A rank whose working set sinks into a cache of its own and its part of a shared one."""
    share, n = size / ranks, fullest(ranks)
    held = (1e6 + 5e7 / n) / (1.5e8 * share)
    work, moved = 4e13 * share, 1e14 * share * (0.04 + 0.96 / (1 + held**3))
    time = smooth(0.5 * work / CLOCK + moved / CORE, moved / DOMAIN, n)
    return {"time": time, "instructions": work, "bytes_mem": moved}


def measured(path: Path, *metrics: str) -> Experiment:
    made, rng = Experiment.create(path, "sinking", ["ranks", "size"]), np.random.default_rng(5)
    for p in RANKS:
        for size in SIZES:
            counts = kept(p, size)
            counts["time"] *= float(np.exp(rng.normal(0, 0.01)))
            row = {"kernel": WHOLE, "rank": -1} | {name: counts[name] for name in metrics}
            made.add(Run({"ranks": p, "size": size}, collector="made-up"), pd.DataFrame([row]))
    return made


def asked(model: Model, ranks: int, size: float) -> Answer:
    (answer,) = model.predict(ranks=ranks, size=size, metrics=["time"]).answers
    return answer


def test_four_domains_find_the_caches_as_one_does_with_a_quarter_of_the_problem(tmp_path: Path) -> None:
    assert kept(72, 1.0) == pytest.approx(kept(18, 0.25))
    assert kept(72, 1.0)["bytes_mem"] < 0.5 * kept(18, 1.0)["bytes_mem"] / 4
    model = fit(measured(tmp_path / "e", "time", "instructions", "bytes_mem"), platform="icelake-8360y")
    for ranks, size in ((72, 1.0), (36, 0.5), (36, 0.75), (54, 1.0)):
        answer, true = asked(model, ranks, size), kept(ranks, size)["time"]
        assert answer.ok
        assert answer.value == pytest.approx(true, rel=0.12)
        assert answer.lower < true < answer.upper < 1.8 * answer.lower
    model.save(tmp_path / "m.json")
    assert asked(Model.load(tmp_path / "m.json"), 72, 1.0).value == pytest.approx(asked(model, 72, 1.0).value)
    content = modelfile.read(tmp_path / "m.json")
    content["equation"]["laws"]["sharing"]["seen"]["belief"] = [2.0]
    modelfile.write(tmp_path / "m.json", content, force=True)
    with pytest.raises(InputError, match="seen"):
        Model.load(tmp_path / "m.json").predict(ranks=72, size=1.0)
