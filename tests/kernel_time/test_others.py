"""Time outside of kernels and messages: how far it may grow beyond the runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model.application.others import DoubtfulSum, Others, fit_others
from ranksight.model.fit import fit
from ranksight.model.priors import LATE_SLOPE
from ranksight.model.quantity import TAIL, Quantity
from ranksight.model.series.computation import RUNNING
from ranksight.model.series.domains import Domains
from ranksight.model.series.reducing import Series

RANKS = np.array([[1.0], [2], [4], [8], [12], [24], [48]])
FAR = np.array([[768.0]])


@pytest.mark.parametrize("slope", [3e-5, 9e-5, 3e-4])
def test_a_launch_that_hardly_grows_in_the_runs_is_inside_and_above_zero(slope: float) -> None:
    """A constant, and a term a rank that makes 1.6 to 16 % of it in the largest run, at 1 % of noise."""
    inside, widths = [], []
    true = 0.09 + slope * FAR[0, 0]
    for seed in range(200):
        noise = np.random.default_rng(seed).normal(0, 0.01, (2, len(RANKS), 3))
        kernel = 0.6 / RANKS * np.exp(noise[0])
        times = np.stack([kernel + (0.09 + slope * RANKS) * np.exp(noise[1]), kernel])
        series = Series(("ranks",), RANKS, times, kernels=(WHOLE, "solve"), metrics=("time", "time"))
        others = fit_others(series, series.values[0], np.ones(len(RANKS)), np.zeros(len(RANKS)))
        assert others is not None
        said = others.at(FAR, np.full(1, 1e-3), np.ones(1))
        low, high = said.lower[0, 0], said.upper[0, 0]
        assert low > 0
        inside.append(low < true < high)
        widths.append(high / low)
    assert np.mean(inside) >= 0.8
    assert np.median(widths) < 2


@pytest.mark.parametrize("domains", [None, Domains(12, 2, 24)])
def test_what_one_rank_alone_takes_says_little_of_several(domains: Domains | None) -> None:
    """One rank waits for nobody: what is there from the second on falls with the work of a rank."""
    ranks = np.array([[1.0], [3], [6], [12], [24]])
    rest = np.where(ranks > 1, 2e-4 + 9e-3 / ranks**0.9, 3e-4)
    noise = np.exp(np.random.default_rng(6).normal(0, 0.01, (len(ranks), 3)))
    kernel = np.broadcast_to(0.3 / ranks, noise.shape)
    series = Series(("ranks",), ranks, np.stack([kernel + rest * noise, kernel]), (WHOLE, "k"), ("time", "time"))
    others = fit_others(series, series.values[0], np.ones(len(ranks)), np.zeros(len(ranks)), domains)
    assert others is not None
    asked = np.concatenate([ranks, [[22.0]]])
    said = others.at(asked, 0.3 / asked[:, 0], asked[:, 0]).value[0]
    assert said[:-1] == pytest.approx(rest[:, 0], rel=0.15)
    assert said[-1] == pytest.approx(2e-4 + 9e-3 / 22**0.9, rel=0.15)


@pytest.mark.parametrize(("name", "truth"), [("line", (0.002, 3e-4)), ("constant", (0.02, 0.0))])
def test_noise_of_the_program_leaves_growth_its_doubt(name: str, truth: tuple[float, float]) -> None:
    """Program and kernels measured apart: at few ranks their noise is many times what is between them."""
    constant, slope = truth
    ranks, far = 2.0 ** np.arange(1, 7), np.array([[256.0], [1024.0]])
    expected = constant + slope * far[:, 0]
    inside = answered = 0
    for seed in range(40):
        noise = np.random.default_rng(seed).lognormal(0, 0.05, (2, len(ranks), 3))
        kernels = 5 / ranks[:, None]
        wall = kernels + constant + slope * ranks[:, None]
        series = Series(("ranks",), ranks[:, None], np.stack([wall, kernels]) * noise, (WHOLE, "k"), ("time", "time"))
        others = fit_others(series, series.values[0], np.ones(len(ranks)), np.zeros(len(ranks)))
        if others is None:  # noise puts the kernels above the program
            continue
        answered += 2
        said = others.at(far, 5 / far[:, 0], far[:, 0])
        inside += int(((said.lower[0] <= expected) & (expected <= said.upper[0])).sum())
        again = others.from_dict(others.to_dict()).at(far, 5 / far[:, 0], far[:, 0])
        assert said.value[0] == pytest.approx(again.value[0])
    assert answered >= 70, name
    assert inside >= 0.75 * answered, name


def test_waiting_that_shows_from_some_node_on_goes_on_from_there() -> None:
    """Starts on further nodes are longer than what one node itself takes from the second node on."""
    nodes, asked = np.array([1.0, 2, 3, 4]), np.array([8.0, 16.0])
    running, waiting = 2400 / nodes, 15 * np.maximum(nodes, 2)
    series = Series(
        ("ranks",), 24 * nodes[:, None], np.stack([running + waiting, running])[..., None], (WHOLE, RUNNING),
        ("time", "time"),
    )  # fmt: skip
    others = fit_others(series, series.values[0], np.ones(4), np.zeros(4), Domains(12, 2, 24))
    assert others is not None
    answer = others.at(24 * asked[:, None], 2400 / asked, 24 * asked)
    true = 15 * asked
    assert answer.value[0] == pytest.approx(true, rel=0.15)
    assert ((answer.lower[0] < true) & (true < answer.upper[0])).all()
    read = others.from_dict(others.to_dict()).at(24 * asked[:, None], 2400 / asked, 24 * asked)
    assert read.value[0] == pytest.approx(answer.value[0])


@pytest.mark.parametrize("late", [0.0, 0.3])
@pytest.mark.parametrize("name", ["time", "wall_time"])
def test_the_clock_of_the_whole_program_shows_what_is_outside(tmp_path: Path, name: str, late: float) -> None:
    """One rank works longer by a part of it: its time is the kernel's already, whatever the program's is named."""
    experiment = Experiment.create(tmp_path / "e", "solver", ["ranks"])
    for ranks in (4, 8, 12, 16, 32):
        own = 10 / ranks * np.r_[1 + late, np.ones(ranks - 1)]
        each = {"rank": np.arange(ranks)}
        whole = pd.DataFrame({"kernel": WHOLE, **each, name: own.max() + 0.5})
        experiment.add(
            Run({"ranks": ranks}), pd.concat([whole, pd.DataFrame({"kernel": "solve", **each, "time": own})])
        )
    program = fit(experiment).breakdown(np.array([[128.0]]))
    assert len(program.others.value) == 1
    assert program.others.value[0, 0] == pytest.approx(0.5, rel=0.02)
    assert program.total.value[0, 0] == pytest.approx(10 / 128 * (1 + late) + 0.5, rel=0.03)


def test_waiting_for_cores_is_not_outside_of_the_kernels(tmp_path: Path) -> None:
    """Eight ranks on four cores: the clock holds the scheduler's waiting, kernels' processor time does not."""
    experiment = Experiment.create(tmp_path / "e", "solver", ["ranks"])
    for ranks in (1, 2, 3, 4, 8):
        own, crowd = 10 / ranks, max(1.0, ranks / 4)
        of_whole = {"kernel": WHOLE, "rank": np.arange(ranks), "wall_time": crowd * own + 0.5}
        of_kernel = {"kernel": "solve", "rank": np.arange(ranks), "time": own}
        table = pd.concat([pd.DataFrame(of_whole), pd.DataFrame(of_kernel)])
        experiment.add(Run({"ranks": ranks}, environment={"cores": "4"}), table)
    program = fit(experiment).breakdown(np.array([[4.0], [16.0]]))
    assert len(program.others.value) == 1
    assert program.others.value[0] == pytest.approx([0.5, 0.5], rel=0.02)


@pytest.mark.parametrize(("most", "beyond"), [(1.0, True), (2.0, False)])
def test_runs_inside_one_node_leave_what_further_ones_add_open(most: float, beyond: bool) -> None:
    times: Any = SimpleNamespace(
        known=True,
        points=np.array([[2.0, 1.0, 5.0], [4.0, most, 9.0]]),
        at=lambda at: Quantity.exact(np.zeros((1, len(at)))),
    )
    domains: Any = SimpleNamespace(nodes=lambda ranks: np.maximum(ranks / 4, 1.0))
    points = np.array([[4.0], [32.0]])
    said = Others(0.1, times, jobs=0.2, domains=domains).at(points, np.full(2, 7.0), points[:, 0])
    further = LATE_SLOPE * np.log([1.0, 8.0]) * beyond
    assert np.log(said.upper[0]) / TAIL == pytest.approx(np.hypot(0.2, further))


def test_a_rest_that_every_run_shows_is_a_sum_of_terms() -> None:
    ranks = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    kernel = (16 / ranks + 4)[:, None] * np.array([0.999, 1.0, 1.001])
    series = Series(("ranks",), ranks[:, None], kernel[None], ("k",), ("time",))
    wall = kernel + 2 + np.array([0.001, 0.0, -0.001])
    found = fit_others(series, wall, np.ones(5), np.zeros(5))
    assert found is not None
    assert found.scatter == pytest.approx(np.sqrt(np.mean((2 / wall[:, 1]) ** 2)))
    assert found.times is not None
    assert found.doubtful is None
    assert found.at(np.array([[32.0]]), np.array([1.25]), np.array([32.0])).value[0, 0] == pytest.approx(2, rel=0.05)


def test_starts_on_further_nodes_go_with_the_nodes() -> None:
    """Nodes that do not go with the ranks show which of the two grows."""
    domains: Any = SimpleNamespace(nodes=lambda ranks: np.ceil(ranks / 4) ** 2)
    ranks = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 24.0])
    kernel = np.repeat((16 / ranks + 4)[:, None], 3, axis=1)
    series = Series(("ranks",), ranks[:, None], kernel[None], ("k",), ("time",))
    rest = (2 + 0.05 * domains.nodes(ranks))[:, None] + np.array([0.001, 0.0, -0.001])
    found = fit_others(series, kernel + rest, np.ones(6), np.zeros(6), domains)
    assert found is not None
    at = found.at(np.array([[64.0]]), np.array([4.25]), np.array([64.0]))
    assert at.value[0, 0] == pytest.approx(2 + 0.05 * 256, rel=0.03)


@pytest.mark.parametrize("error", [1e-9, 3e-5, 1e-2])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_sums_of_more_terms_than_runs_have_no_say(error: float, count: int) -> None:
    """Two of three terms meet one run, and three meet two, with any coefficients: the matrix has no inverse."""
    points = np.array([[1.0, 0.0748], [2, 0.0322], [4, 0.0322]])[:count]
    factors = np.zeros((3, 2, 3))
    factors[1, 0, 0] = factors[2, 1, 0] = 1.0
    members = np.array([[0, -1, -1], [0, 1, -1], [0, 1, 2], [-1, 1, 2]])
    measured, errors = np.array([7e-4, -6e-4, 5e-4])[:count], np.array([7e-5, error, error])[:count]
    sums = DoubtfulSum(factors, members, np.zeros(4), points, measured, errors, 1e6)
    weight = sums._fitted[0]
    assert weight[np.array([1, 2, 3, 2]) > count] == pytest.approx(0)
    answer = sums.at(points * 4)
    assert (answer.lower >= 0).all()
    assert np.isfinite(answer.upper).all()
