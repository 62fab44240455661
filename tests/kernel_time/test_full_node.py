"""Runs within a node that no platform describes, which may have filled a memory domain."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.notes import one_domain


@pytest.mark.parametrize(
    ("parameter", "times", "noted"),
    [
        ("ranks", (100.0, 52.0, 29.0, 19.5, 17.0), True),  # levels off as in a full domain, or with a serial part
        ("ranks", (100.0, 50.5, 25.0, 12.6, 6.3), False),  # is divided to the end
        ("ranks", (10.0, 10.1, 10.3, 10.4, 10.6), False),  # is not divided at all
        ("nodes", (100.0, 52.0, 29.0, 19.5, 17.0), False),
    ],
)
def test_times_that_level_off_within_a_node_are_noted(
    tmp_path: Path, parameter: str, times: tuple[float, ...], noted: bool
) -> None:
    made = Experiment.create(tmp_path / "e", "node", [parameter])
    for x, time in zip((1, 2, 4, 8, 16), times, strict=True):
        made.add(Run({parameter: x}), pd.DataFrame({"kernel": ["k"], "rank": [-1], "time": [time]}))
    model = fit(made)
    assert ("memory domain that is full" in one_domain(model, np.array([[64.0]]))) == noted
    assert one_domain(model, np.array([[16.0]])) == ""
    described = fit(made, cores_per_domain=16, ranks_per_node=64) if parameter == "ranks" else model
    assert one_domain(described, np.array([[64.0]])) == ""
