"""Functions of a whole and of its parts must agree, and where they do not, the fit says so."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from ranksight.cli.main import main
from ranksight.core.experiment import Experiment, Run


def test_functions_that_contradict_their_product_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Operations that grow faster than operations per visit times visits: one of the three counts is wrong.
    experiment = Experiment.create(tmp_path / "counts", "counts", ["size"])
    for size in (2, 4, 8, 16, 32):
        row = {"kernel": "cg", "rank": -1, "visits": 100 * size, "flops_per_visit": 16 * size, "flops": 99 * size**2.5}
        sound = {**row, "kernel": "mg", "flops": 1600 * size**2}
        experiment.add(Run({"size": size}, 0, "synthetic"), pd.DataFrame([row, sound]))
    assert main(["fit", str(tmp_path / "counts"), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["functions"]
    notes = {(one["kernel"], one["metric"]): one["remark"] for one in found if one["remark"]}
    # At 8 times the largest size the product is 1600 / 99 / sqrt(256) of the whole.
    assert notes == {("cg", "flops"): "flops_per_visit x visits gives +1.0% at size 256"}
