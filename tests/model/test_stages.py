"""Stages of a fit, and the files of `model/` that an experiment passes on its way to a predicted time."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from types import FrameType
from typing import Any, get_type_hints

import numpy as np
import pandas as pd
import pytest

from ranksight import fit, model
from ranksight.core.experiment import Experiment, Run
from ranksight.core.log import LOG
from ranksight.model.fit import STAGES, Records
from ranksight.model.stages.measuring import Statement

MODEL = Path(model.__file__).resolve().parent
PASSED = 67
"""Files with a function that runs; 45 are wanted, and more must not be."""


def times(folder: Path) -> Experiment:
    """Times of two kernels at five numbers of ranks."""
    made = Experiment.create(folder / "e", "made", ["ranks"])
    for ranks in (2, 4, 8, 16, 32):
        for repetition in range(2):
            time = [10 / ranks * (1 + 0.01 * repetition), 0.2 * np.log2(ranks) + 0.001 * repetition]
            table = pd.DataFrame({"kernel": ["a", "b"], "rank": 0, "time": time})
            made.add(Run({"ranks": ranks}, repetition, "made"), table)
    return made


def test_each_stage_reads_what_those_before_it_return() -> None:
    known: set[type] = {Statement}
    for stage in STAGES:
        *needed, returned = get_type_hints(stage).values()
        assert set(needed) <= known, stage.__name__
        known.add(returned)


def test_a_record_is_replaced_by_the_next_of_its_type() -> None:
    def longer(text: str, number: int) -> str:
        return text * number

    def count(text: str) -> int:
        return len(text)

    records = Records("ab", 2)
    for stage in (longer, count, longer):
        records.apply(stage)
    assert (records[str], records[int]) == ("abab" * 4, 4)
    with pytest.raises(KeyError):
        records[float]


def test_an_experiment_of_times_passes_no_more_files_than_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment, passed = times(tmp_path), set[str]()
    monkeypatch.setattr(LOG, "level", logging.WARNING)  # what is logged has words of its own
    fit(experiment).predict(ranks=64)  # what is learned once for all is no part of the way

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            passed.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        fit(experiment).predict(ranks=64)
    finally:
        sys.setprofile(before)
    files = {path for path in (Path(each).resolve() for each in passed) if MODEL in path.parents}
    assert files
    assert len(files) <= PASSED, sorted(str(path.relative_to(MODEL)) for path in files)
