"""Kernels on which few samples fell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import stdtrit

from ranksight import fit
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.model.application.balance import fit_balance
from ranksight.model.resource.blocking import UNSEEN, fit_resources, shrinkage
from ranksight.model.resource.counters import Sampled, settle, with_unsampled
from ranksight.model.resource.equation import LEVELS, Machine
from ranksight.model.series.reducing import Series, series_from_experiment
from ranksight.model.series.sampling import means_of_samples
from ranksight.model.stages import learning

MACHINE = Machine("made up", 2e9, (4.0, 14.0, 50.0, 200.0))
PERIOD = 1e-3


def test_many_samples_are_believed_and_few_are_not() -> None:
    count = np.array([1e6, 2e6, 1.0, 0.5e6, 4e5, 3e5])
    expected = np.array([2e6, 1e6, 40.0, 0.5e6, 8e5, 3e5])
    drawn = shrinkage(count, expected)
    many = [0, 1, 3, 4, 5]
    assert drawn[many] == pytest.approx(1, abs=1e-4)
    # One sample where forty were expected: nearer to the program's speed, yet not all the way.
    assert 1 < drawn[2] < 40
    assert drawn[2] > 5


def sampled(scale: float, seed: int) -> tuple[Series, dict[str, np.ndarray]]:
    """Eight kernels of 1 cycle an instruction and a ninth of many times fewer instructions, sampled."""
    generator = np.random.default_rng(seed)
    points = np.array([[p] for p in (1.0, 2.0, 4.0, 8.0, 16.0)])
    values, kernels, metrics, samples = [], [], [], {}
    for at in range(9):
        kernel = f"k{at}"
        instructions = 2e9 * points[:, 0] * (scale if at == 8 else 1.0)
        loads = [0.2 * instructions, 0 * instructions, 0 * instructions, 0.001 * instructions]
        count = generator.poisson(instructions / MACHINE.frequency / PERIOD)
        samples[kernel] = count.astype(float)
        for name, value in (("instructions", instructions), ("time", count * PERIOD), *zip(LEVELS, loads, strict=True)):
            kernels.append(kernel)
            metrics.append(name)
            values.append(value)
    return Series(("ranks",), points, np.array(values)[:, :, None], tuple(kernels), tuple(metrics)), samples


def test_configurations_without_a_sample_count_as_such() -> None:
    ratios = []
    for seed in range(40):
        series, samples = sampled(2e-4, seed)
        found = fit_resources(series, MACHINE, samples)
        assert found is not None
        if "k8" not in found.kernels:
            continue
        at = found.kernels.index("k8")
        waiting = 0.2 * MACHINE.latencies[0] + 0.001 * MACHINE.latencies[3]
        ratios.append(found.cpi[at] + found.factor[at] * waiting)
    # About six samples in all: leaving the configurations out where none fell would give twice the time and more.
    assert len(ratios) > 30
    assert np.median(ratios) == pytest.approx(1, abs=0.25)
    assert max(ratios) < 2.5
    assert min(ratios) > 0.4


def test_a_kernel_with_many_samples_keeps_its_time() -> None:
    series, samples = sampled(0.5, 1)
    found = fit_resources(series, MACHINE, samples)
    assert found is not None
    waiting = 0.2 * MACHINE.latencies[0] + 0.001 * MACHINE.latencies[3]
    assert found.cpi + found.factor * waiting == pytest.approx(1, abs=0.05)


def unsampled(scale: float, seed: int) -> Sampled:
    """The same without any sample on the ninth kernel, which then has no time."""
    series, samples = sampled(scale, seed)
    rows = np.array([key != ("k8", "time") for key in zip(series.kernels, series.metrics, strict=True)])
    samples.pop("k8")
    return Sampled(series.select(rows), samples)


def test_a_kernel_without_samples_has_the_pace_of_the_program() -> None:
    given = with_unsampled(unsampled(1e-6, 2))
    found = fit_resources(given.series, MACHINE, given.samples)
    assert found is not None
    at = found.kernels.index("k8")
    waiting = 0.2 * MACHINE.latencies[0] + 0.001 * MACHINE.latencies[3]
    assert found.cpi[at] + found.factor[at] * waiting == pytest.approx(1, abs=0.1)
    assert found.imputed.tolist() == [kernel == "k8" for kernel in found.kernels]
    assert found.evidence[at] == UNSEEN


def test_samples_that_stay_away_show_that_a_kernel_is_fast() -> None:
    given = with_unsampled(unsampled(1e-2, 2))
    found = fit_resources(given.series, MACHINE, given.samples)
    assert found is not None
    at = found.kernels.index("k8")
    # Three hundred were expected and none fell.
    assert found.cpi[at] < 0.02


def test_without_samples_nothing_is_imputed() -> None:
    series, _ = sampled(1e-6, 2)
    given = Sampled(series, {})
    assert with_unsampled(given) is given


def campaign(path: Path, seconds: dict[str, float], uneven: float = 0.0, run_to_run: float = 0.0) -> Experiment:
    """A program of kernels that take `seconds` on each rank, sampled each millisecond, three times, and counted.

    The last rank takes `uneven` more of the first kernel than the mean; ``root`` runs on the first rank alone. The pace
    of the machine scatters by `run_to_run` from one number of ranks to the next.
    """
    generator = np.random.default_rng(3)
    experiment = Experiment.create(path, "made-up", ["ranks"])
    for p in (2, 4, 8, 16):
        kernels = np.repeat(list(seconds), p)
        table = pd.DataFrame({"kernel": kernels, "rank": np.tile(np.arange(p), len(seconds))})
        table["true"] = np.repeat(list(seconds.values()), p)
        first = (table["kernel"] == next(iter(seconds))).to_numpy()
        table.loc[first, "true"] *= 1 + uneven * (2 * np.arange(p) / (p - 1) - 1)
        table = table[(table["kernel"] != "root") | (table["rank"] == 0)]
        counts = table[["kernel", "rank"]].assign(instructions=1e9 * table["true"])
        counts["loads"] = counts["loads_l1"] = 0.2 * counts["instructions"]
        counts["loads_l2"] = counts["loads_l3"] = counts["loads_mem"] = 0.0
        experiment.add(Run({"ranks": p}, 0, "callgrind", provenance={"instructions": "simulated"}), counts)
        table["true"] *= np.exp(run_to_run * (-1) ** np.log2(p))
        for repetition in range(3):
            hits = table.assign(samples=generator.poisson(table["true"] / PERIOD)).query("samples > 0")
            experiment.add(
                Run({"ranks": p}, repetition, "perf-clock", provenance={"time": "sampled, n = 1"}),
                hits[["kernel", "rank"]].assign(time=PERIOD * hits["samples"]),
                tables={"sampling": hits[["kernel", "rank", "samples"]]},
            )
        each = table.groupby("rank")["true"].sum()
        whole = pd.DataFrame({"kernel": WHOLE, "rank": each.index, "compute_cpu_time": each.to_numpy()})
        experiment.add(Run({"ranks": p}, 0, "pmpi"), whole)
    return experiment


def test_ranks_and_repetitions_without_a_sample_count_in_a_mean(tmp_path: Path) -> None:
    seconds = {"large": 0.4, "small": 1e-3, "tiny": 2e-4, "root": 0.1}
    experiment = campaign(tmp_path / "e", seconds)
    series = settle(experiment, series_from_experiment(experiment, None, means_of_samples(experiment, None))).series
    rows = {key: at for at, key in enumerate(zip(series.kernels, series.metrics, strict=True))}
    most = int(series.points[:, 0].argmax())
    taken = {kernel: float(np.nanmean(series.values[rows[kernel, "time"], most])) for kernel in seconds}
    # Over the ranks that a sample fell on, one of a millisecond or more each, `tiny` would have five times its time.
    assert taken["large"] == pytest.approx(0.4, rel=0.05)
    assert taken["small"] == pytest.approx(1e-3, rel=0.4)
    assert taken["tiny"] < 6e-4
    # What one rank has alone is that rank's.
    assert taken["root"] == pytest.approx(0.1, rel=0.2)


def test_few_samples_do_not_hide_that_ranks_are_uneven(tmp_path: Path) -> None:
    seconds = {"uneven": 4e-3, **{f"small{at}": 1e-3 for at in range(8)}}
    balance, _ = fit_balance(campaign(tmp_path / "e", seconds, uneven=0.3))
    assert balance is not None
    assert balance.imbalance(np.array([[16.0]]))[0][0] == pytest.approx(1.1, abs=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_few_samples_of_the_calm_configurations_are_not_mixed_with_those_that_wait(seed: int) -> None:
    generator = np.random.default_rng(seed)
    points = np.array([[s] for s in (1.0, 2.0, 4.0, 8.0)])
    instructions = np.full(4, 1e9)
    far = np.array([0.0, 0.0, 0.02, 0.02]) * instructions
    cycles = 0.25 * instructions + 0.3 * MACHINE.latencies[2] * far
    count = generator.poisson(cycles / MACHINE.frequency / PERIOD)
    assert count[:2].sum() < 400
    loads = [0.3 * instructions - far, 0 * far, far, 0 * far]
    named = (("instructions", instructions), ("time", count * PERIOD), *zip(LEVELS, loads, strict=True))
    names, values = zip(*named, strict=True)
    series = Series(("size",), points, np.array(values)[:, :, None], ("k",) * len(names), names)
    found = fit_resources(series, MACHINE, {"k": count.astype(float)})
    assert found is not None
    # Two of the four wait as long as they work; all four together would give half as much again.
    assert found.cpi[0] == pytest.approx(0.25, rel=0.2)


@pytest.mark.parametrize("run_to_run", [0.0, 0.2])
def test_a_machine_of_unsteady_pace_widens_times_of_kernels_and_program(tmp_path: Path, run_to_run: float) -> None:
    experiment = campaign(tmp_path / "e", {"first": 2.0, "second": 3.0}, run_to_run=run_to_run)
    model = fit(experiment, platform="icelake-8360y")
    for kernel in ("first", None):
        said = next(a for a in model.predict(ranks=16).answers if a.metric == "time" and a.kernel == kernel)
        # Four configurations, two above and two below: a sample of three degrees of freedom, as far as these show.
        reach = run_to_run * np.sqrt(4 / 3) * stdtrit(3, 0.95)
        assert np.log(said.upper / said.value) == pytest.approx(reach, abs=0.06 + 0.15 * reach)
        assert np.log(said.value / said.lower) == pytest.approx(reach, abs=0.06 + 0.15 * reach)


def test_the_exact_time_of_a_program_of_many_kernels_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = campaign(tmp_path / "e", {"first": 2.0, "second": 3.0}, run_to_run=0.2)
    few = fit(experiment, platform="icelake-8360y").equation.resources
    monkeypatch.setattr(learning, "MOST_INSIDE", 1)  # no part of the equation is learned after the scale
    many = fit(experiment, platform="icelake-8360y").equation.resources
    assert few is not None
    assert many is not None
    assert few.scale != 1
    assert (many.scale, many.run_to_run) == (few.scale, few.run_to_run)
