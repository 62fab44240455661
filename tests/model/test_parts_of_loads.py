"""What a cache level serves is a part of the loads."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import fit


def test_a_part_that_outgrows_its_whole_is_the_whole_in_its_interval(tmp_path: Path) -> None:
    made = Experiment.create(tmp_path / "e", "parts", ["ranks"])
    for p in (1, 2, 4, 8, 16):
        loads = 1e6 + 3e5 * (p % 3)
        held = 1e5 * p**0.75
        row = {"kernel": "k", "rank": -1, "loads": loads, "loads_l1": held, "loads_l2": loads - held}
        made.add(Run({"ranks": p}, collector="made-up"), pd.DataFrame([row]))
    answers = fit(made, platform=None).predict(ranks=64, metrics=["loads", "loads_l1"]).answers
    loads, held = ([a for a in answers if a.metric == name] for name in ("loads", "loads_l1"))
    for whole, part in zip(loads, held, strict=True):
        assert part.value == whole.value
        assert part.lower <= part.value <= part.upper <= whole.upper
