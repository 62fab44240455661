"""Waiting for ranks that still compute: columns of one rank add up to the same time on every rank, waiting included."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model

RANKS = (4, 6, 13, 26, 50)
AHEAD = (100, 400)
CLOCK = 2.2e9
SERIAL = 0.7
"""Seconds that the last rank writes."""
CALL = 2e-4
"""Seconds that a call takes besides waiting."""


def uneven(p: int) -> np.ndarray:
    """Seconds of work that is divided among the ranks, of which every fourth has 1.4 times what the others have."""
    return 40 / p * np.where(np.arange(p) % 4 == 0, 1.4, 1.0)


def even(p: int) -> np.ndarray:
    return np.full(p, 20.0 / p)


def none(p: int) -> np.ndarray:
    return np.zeros(p)


def written(p: int) -> np.ndarray:
    return np.where(np.arange(p) == p - 1, SERIAL, 0.0)


Work = Callable[[int], np.ndarray]


def record(path: Path, work: Work, serial: Work, phased: bool = False) -> Experiment:
    """All wait in a reduction for the slowest rank, at the end or after each kernel; times scatter by a hundredth."""
    made = Experiment.create(path, "waits", ["ranks"])
    noise = np.random.default_rng(8)
    for p in RANKS:
        for repetition in range(2):
            scatter = noise.normal(1, 0.01, (2, p))
            parts = {"sweep": work(p) * scatter[0], "dump": serial(p) * scatter[1]}
            spent = sum(parts.values())
            program = sum(part.max() for part in parts.values()) if phased else spent.max()
            parts["MPI_Allreduce"] = program - spent + CALL
            frames = [
                pd.DataFrame({"kernel": name, "rank": np.arange(p), "time": seconds})[seconds > 0]
                for name, seconds in parts.items()
            ]
            table = pd.concat(frames, ignore_index=True)
            computes = table["kernel"] != "MPI_Allreduce"
            table["cycles"] = np.where(computes, table["time"] * CLOCK, np.nan)
            table["instructions"], table["stall_cycles"] = 2.0 * table["cycles"], 0.3 * table["cycles"]
            made.add(Run({"ranks": p}, repetition), table)
    return made


def longest(p: int, work: Work, serial: Work) -> float:
    return float((work(p) + serial(p)).max()) + CALL


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Model:
    path = tmp_path_factory.mktemp("steady")
    fit(record(path / "e", uneven, none), platform=None).save(path / "m.json")
    return Model.load(path / "m.json")


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return fit(record(tmp_path_factory.mktemp("serial") / "e", even, written), platform=None)


def test_an_imbalance_that_is_the_same_everywhere_goes_on(steady: Model) -> None:
    imbalances = steady.equation.imbalances
    assert imbalances is not None
    points = np.array(AHEAD, dtype=float)[:, None]
    assert imbalances.of(("sweep",), points)[0] == pytest.approx(1.27, rel=0.06)
    ahead = steady.diagnose(ranks=400).balance().set_index("kernel").loc["sweep", "ahead"]
    assert ahead == pytest.approx(imbalances.of(("sweep",), points[1:])[0, 0])


@pytest.mark.parametrize("which", ["steady", "serial"])
def test_the_program_ends_with_its_slowest_rank(which: str, request: pytest.FixtureRequest) -> None:
    model = request.getfixturevalue(which)
    broken = model.breakdown(np.array([*RANKS[-1:], *AHEAD], dtype=float)[:, None])
    parts = (uneven, none) if which == "steady" else (even, written)
    expected = np.array([longest(p, *parts) for p in (*RANKS[-1:], *AHEAD)])
    assert broken.total.value[0, :2] == pytest.approx(expected[:2], rel=0.05)
    assert broken.total.value[0, 2] == pytest.approx(expected[2], rel=0.2)
    assert (broken.total.lower[0] <= expected).all()
    assert (expected <= broken.total.upper[0]).all()
    assert broken.by_kernel.sum(axis=0) == pytest.approx(broken.total.value[0])


def test_what_waits_for_one_rank_is_the_imbalance_of_its_kernel(serial: Model) -> None:
    found = serial.diagnose(ranks=100)
    broken = found.evidence.broken
    waiting = dict(zip(broken.kernels, broken.each["imbalance"][:, -1], strict=True))
    assert waiting["dump"] == pytest.approx(SERIAL, rel=0.1)
    assert broken.each["communication"].sum(axis=0)[-1] < 0.05 * SERIAL
    verdicts = found.verdicts().set_index("kernel")
    assert verdicts["verdict"]["dump"] == "imbalance-bound"
    assert verdicts["share"]["MPI_Allreduce"] < 0.05


def test_ranks_that_wait_after_every_kernel_wait_for_its_slowest(tmp_path: Path) -> None:
    """The rank that dumps is another one than those that sweep longest, and at more ranks the slowest of all."""
    model = fit(record(tmp_path / "e", uneven, written, phased=True), platform=None)
    counts = (*RANKS, *AHEAD)
    broken = model.breakdown(np.array(counts, dtype=float)[:, None])
    expected = np.array([float(uneven(p).max()) + SERIAL + CALL for p in counts])
    assert broken.total.value[0] == pytest.approx(expected, rel=0.05)
    assert (broken.total.lower[0] <= expected).all()
    assert (expected <= broken.total.upper[0]).all()
    assert broken.each["communication"].sum(axis=0).max() < 0.1 * SERIAL
    waiting = dict(zip(broken.kernels, broken.each["imbalance"][:, -1], strict=True))
    assert waiting["dump"] == pytest.approx(SERIAL * (1 - 1 / counts[-1]), rel=0.05)
    waits = model.predict(ranks=[*map(float, counts)], kernels=["MPI_Allreduce"], metrics=["time"]).table()
    assert (waits["value"].to_numpy() <= 1.02 * broken.total.value[0]).all()
    assert model.diagnose(ranks=100).efficiencies()["load_balance"].notna().all()


@pytest.mark.parametrize("alone", ["sweep", "dump"])
def test_an_imbalance_is_no_change_of_the_clock(tmp_path: Path, alone: str) -> None:
    """Cycles are means over the ranks that have a kernel, times those of its slowest rank."""
    model = fit(record(tmp_path / "e", uneven, written), platform="icelake-8360y")
    points = np.array([*RANKS, *AHEAD], dtype=float)[:, None]
    terms = model.breakdown(points).terms
    row = terms.kernels.index(alone)
    assert terms.clock.value[row] == pytest.approx(CLOCK, rel=0.03)
    assert terms.cpi.value[row] == pytest.approx(0.7 / 2.0, rel=0.04)
    cycles = model.predict(ranks=[float(p) for p in points[:, 0]], kernels=[alone], metrics=["cycles"])
    each = uneven if alone == "sweep" else written
    expected = [CLOCK * float(each(int(p))[each(int(p)) > 0].mean()) for p in points[:, 0]]
    assert cycles.table()["value"].to_numpy() == pytest.approx(expected, rel=0.1)
