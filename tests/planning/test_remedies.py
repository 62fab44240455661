"""What mends each cause of a wide interval: samples, scatter, shared cores, an assumed network, scale."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.analysis.planning.choice import plan
from ranksight.analysis.planning.cost import cost_of
from ranksight.analysis.planning.designs import GAIN
from ranksight.analysis.planning.remedies import BUSY, NETWORK, SAMPLES, SCALE, SCATTER, Remedy
from ranksight.core.experiment import Experiment, Run, read
from ranksight.core.sampled import TABLE
from ranksight.model.fit import fit

RANKS = (1, 2, 4, 8)
TARGET = 64


def record(path: Path, scatter: float, cores: int = 64, samples: float = 0.0) -> Experiment:
    """Work that is divided; of `samples` a run, where it was sampled."""
    random = np.random.default_rng(2)
    made = Experiment.create(path, "work", ["ranks"])
    for p in RANKS:
        for repetition in range(2):
            seconds = 8.0 / p * random.lognormal(0, scatter)
            provenance = {"time": f"sampled, n = {samples:g}"} if samples else {}
            run = Run({"ranks": p}, repetition, "x", environment={"cores": str(cores)}, provenance=provenance)
            rows = pd.DataFrame({"kernel": "k", "rank": range(p), "time": seconds})
            tables = {}
            if samples:
                each = samples / p
                tables[TABLE] = pd.DataFrame(
                    {"kernel": "k", "rank": range(p), "metric": "time", "samples": each, "worth": seconds / each}
                )
            made.add(run, rows, tables=tables)
    return read(path)


def causes(made: Experiment, target: int = TARGET) -> dict[str, Remedy]:
    """What is proposed for the program's time at a target, by cause."""
    choice = plan(fit(made, platform=None), made, np.array([[float(target)]]), repetitions=2)
    assert all(each.gain >= GAIN for each in choice.remedies)
    assert [each.gain for each in choice.remedies] == sorted((each.gain for each in choice.remedies), reverse=True)
    return {each.cause: each for each in choice.remedies}


def test_scatter_is_repeated(tmp_path: Path) -> None:
    found = causes(record(tmp_path / "e", 0.08, cores=32))
    assert SCATTER in found
    assert found[SCATTER].text == "repeat: --reps 8"
    assert not {SAMPLES, BUSY, NETWORK} & set(found)


@pytest.mark.parametrize(("budget", "proposed"), [(None, False), (0.01, False), (1.0, True)])
def test_nothing_dearer_than_the_target_is_proposed_where_that_can_be_run(
    tmp_path: Path, budget: float | None, proposed: bool
) -> None:
    """Eight core-seconds a run: the target's two cost 16, three times the eight runs made 190."""
    made = record(tmp_path / "e", 0.08)
    choice = plan(fit(made, platform=None), made, np.array([[float(TARGET)]]), budget=budget, repetitions=2)
    assert (SCATTER in {each.cause for each in choice.remedies}) == proposed
    assert all(each.core_seconds <= 3600 * choice.budget for each in choice.remedies)


def test_ranks_that_shared_cores_need_an_idle_node(tmp_path: Path) -> None:
    found = causes(record(tmp_path / "e", 0.08, cores=2))
    assert "the runs of 4, 8 ranks" in found[BUSY].text
    assert SCATTER not in found


def test_counts_need_no_repetitions(tmp_path: Path) -> None:
    made = Experiment.create(tmp_path / "e", "counts", ["ranks"])
    for p in RANKS:
        rows = pd.DataFrame({"kernel": "k", "rank": range(p), "instructions": 8e9 / p, "time": 8.0 / p})
        made.add(Run({"ranks": p}), rows)
    model = fit(made, platform=None)
    choice = plan(model, made, np.array([[64.0]]), metric="instructions")
    assert {each.cause for each in choice.remedies} <= {SCALE}


@pytest.mark.parametrize(("samples", "proposed"), [(8, True), (1e6, False)])
def test_few_samples_need_longer_runs(tmp_path: Path, samples: float, proposed: bool) -> None:
    found = causes(record(tmp_path / "e", 0.5 / np.sqrt(samples), cores=16, samples=samples), 32)
    assert (SAMPLES in found) == proposed
    if proposed:
        assert "more steps" in found[SAMPLES].text
        assert SCATTER not in found


def test_a_run_costs_no_less_than_its_program(tmp_path: Path) -> None:
    """Runs that take 2 s to start show nothing of work that grows with the ranks; the model's time does."""
    made = Experiment.create(tmp_path / "e", "work", ["ranks"])
    for p in RANKS:
        rows = pd.DataFrame({"kernel": "k", "rank": range(p), "time": 1e-3 * p})
        made.add(Run({"ranks": p}, 0, "x", wall_time=2.0, environment={"cores": "64"}), rows)
    model, targets = fit(made, platform=None), np.array([[2.0], [16384.0]])
    near, far = cost_of(model, made).of(targets, 1).core_hours * 3600 / targets[:, 0]
    assert near == pytest.approx(2.0, rel=0.05)
    assert 16.4 < far < 1.05 * 16.4 + 2.3  # what it computes, and at most what its short runs took to start
