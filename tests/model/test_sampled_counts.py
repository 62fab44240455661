"""Counts made of samples: what n samples show, from the collector's table to the verdict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ranksight import fit
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, Run
from ranksight.core.sampled import effective, sampling, sampling_of
from ranksight.counters.derive import derive
from ranksight.model.application.balance import fit_balance
from ranksight.model.fitted_model import Model
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.resource.clock import measured_clock
from ranksight.model.resource.counters import contradictions
from ranksight.model.series.poisson import HALF, expected, located
from ranksight.model.series.reducing import Series, series_from_experiment
from ranksight.model.structure.functions import find_minor
from ranksight.model.structure.levels import Levels, fit_levels
from ranksight.model.uncertainty.forecast import FEW_SAMPLES, OK
from ranksight.platforms import Platform, load
from ranksight.platforms.events import load as load_events

PERIOD, RARE = 2_000_003.0, 100_003.0
RANKS = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
Law = Callable[[float], float]


def campaign(path: Path, laws: dict[str, Law], samples: float, repetitions: int = 1, seed: int = 0) -> Experiment:
    """Branches of kernels by law, of so many samples over all ranks and repetitions of a configuration in the mean."""
    generator = np.random.default_rng(seed)
    experiment = Experiment.create(path, "made up", ["ranks"])
    for p in RANKS:
        for repetition in range(repetitions):
            rows = [
                (kernel, rank, float(generator.poisson(scale_of(law, samples) * law(p) / repetitions)))
                for kernel, law in laws.items()
                for rank in range(int(p))
            ]
            hits = pd.DataFrame(rows, columns=["kernel", "rank", "branches"]).query("branches > 0")
            counters = hits.assign(branches=PERIOD * hits["branches"])
            experiment.add(
                Run({"ranks": p}, repetition, "perf", provenance={"branches": "sampled, n = 9 (branches)"}),
                counters,
                tables={"sampling": sampling(counters, {"branches": PERIOD})},
            )
    return experiment


def scale_of(law: Law, samples: float) -> float:
    """Samples of a rank where the law is one."""
    return samples / float(np.mean([law(p) * p for p in RANKS]))


LAWS: dict[str, Law] = {
    f"k{at}": law
    for at, law in enumerate(
        [lambda p: 1.0, lambda p: p**-1.0, lambda p: p**-0.5, lambda p: p**0.5, lambda p: p**-1.0 + 0.1] * 8
    )
}


@pytest.mark.parametrize("samples", [10.0, 100.0, 1e3, 1e5])
def test_intervals_hold_what_is_true(tmp_path: Path, samples: float) -> None:
    model = fit(campaign(tmp_path / "e", LAWS, samples))
    held, wrong, widths = [], 0, []
    for said in model.predict(ranks=[64], metrics=["branches"]).answers:
        if said.kernel is None:
            continue
        true = LAWS[said.kernel](64) * scale_of(LAWS[said.kernel], samples) * PERIOD
        held.append(said.lower <= true <= said.upper)
        wrong += said.status == OK and not 0.5 < said.value / true < 2
        widths.append(np.log(said.upper / said.lower) / 2)
        assert 0 <= said.lower <= said.value <= said.upper
    assert np.mean(held) >= 0.85
    assert wrong <= 1
    # Never better than what the samples of all five configurations show together.
    assert np.median(widths) > 1.645 / np.sqrt(5 * samples)


def test_next_to_no_samples_are_insufficient_and_say_so(tmp_path: Path) -> None:
    model = fit(campaign(tmp_path / "e", LAWS, 4.0))
    answers = [said for said in model.predict(ranks=[64], metrics=["branches"]).answers if said.kernel]
    assert all(said.status != OK for said in answers)
    few = [said for said in answers if said.status == FEW_SAMPLES]
    assert len(few) > len(answers) / 2
    assert "few samples" in few[0].reason
    assert "samples" in few[0].evidence


def test_what_samples_show_is_in_the_models_file(tmp_path: Path) -> None:
    model = fit(campaign(tmp_path / "e", {"k": LAWS["k0"]}, 50.0))
    model.save(tmp_path / "m.json")
    again = Model.load(tmp_path / "m.json")
    assert again.fitted.samples == pytest.approx(model.fitted.samples, rel=1e-5)
    assert model.fitted.samples[0] == pytest.approx(50, rel=0.3)
    first, second = (m.predict(ranks=[16, 256]).answers for m in (model, again))
    for one, other in zip(first, second, strict=True):
        assert (other.status, other.reason) == (one.status, one.reason)
        assert other.upper == pytest.approx(one.upper, rel=1e-5)


def test_counts_are_weighed_by_what_is_expected_of_them() -> None:
    """Weighed by themselves, counts of five in the mean give a function a fifth too low."""
    generator = np.random.default_rng(1)
    points = RANKS[:, None]
    counts = generator.poisson(5.0, (400, 5)).astype(float)
    counts = counts[counts.sum(axis=1) > 0]
    mean = expected(points, counts, np.ones_like(counts))
    weight = 1 / np.maximum(mean, HALF)
    message = (weight * counts).sum(axis=1) / weight.sum(axis=1)
    assert np.mean(message) == pytest.approx(5.0, rel=0.05)
    naive = np.maximum(counts, HALF)
    assert np.mean(counts.shape[1] / (1 / naive).sum(axis=1)) < 4.3


def test_expected_samples_follow_power_laws() -> None:
    points = np.array([[p, s] for p in (1.0, 2.0, 4.0) for s in (8.0, 16.0, 32.0)])
    true = 1e5 * points[:, 0] ** -1.0 * points[:, 1] ** 0.5
    found = expected(points, true[None], np.ones((1, 9)))
    assert found[0] == pytest.approx(true, rel=1e-3)
    assert expected(points, np.zeros((1, 9)), np.ones((1, 9))).sum() == pytest.approx(HALF)


def test_a_kernel_that_is_not_there_is_no_kernel_without_samples() -> None:
    points = RANKS[:, None]
    counts = np.array([[[0.0], [900.0], [950.0], [1000.0], [980.0]], [[0.0], [1.0], [0.0], [2.0], [1.0]]])
    found = located(points, counts, np.ones_like(counts), "auto")
    assert (found.repeats[0] > 0).tolist() == [False, True, True, True, True]
    assert np.isnan(found.values[0, 0])
    assert (found.repeats[1] > 0).all()
    assert found.samples[1] == pytest.approx(0.8, rel=0.05)
    assert found.variance[1] > 1


def test_scatter_beyond_samples_is_reported_by_repetitions() -> None:
    generator = np.random.default_rng(2)
    true = 1e4 * np.exp(0.1 * generator.standard_normal((60, 5, 4)))
    counts = generator.poisson(true).astype(float)
    found = located(RANKS[:, None], counts, np.ones_like(counts), "auto")
    assert np.sqrt(np.median(found.variance)) == pytest.approx(0.1, rel=0.2)
    calm = generator.poisson(1e4, (60, 5, 4)).astype(float)
    found = located(RANKS[:, None], calm, np.ones_like(calm), "auto")
    assert np.sqrt(np.median(found.variance)) == pytest.approx(0.01, rel=0.2)
    assert found.samples == pytest.approx(4e4, rel=0.02)


def test_absent_in_a_repetition_is_no_true_zero(tmp_path: Path) -> None:
    experiment = Experiment.create(tmp_path / "e", "made up", ["ranks"])
    hits = {0: [1, 0], 1: [0, 0], 2: [2, 1]}  # by repetition, of two ranks
    for repetition, both in hits.items():
        table = pd.DataFrame({"kernel": ["small", "small", "big", "big"], "rank": [0, 1, 0, 1]})
        table["branches"] = PERIOD * np.array([*both, 500.0, 500.0])
        table = table[table["branches"] > 0].reset_index(drop=True)
        worth = sampling(table, {"branches": PERIOD})
        run = Run({"ranks": 2}, repetition, "perf", provenance={"branches": "sampled, n = 1"})
        experiment.add(run, table, tables={"sampling": worth})
    series = series_from_experiment(experiment, None, {"branches": "mean"})
    rows = {kernel: at for at, kernel in enumerate(series.kernels)}
    small, big = rows["small"], rows["big"]
    # Four samples over three repetitions of two ranks.
    assert np.nanmean(series.values[small]) == pytest.approx(4 * PERIOD / 6)
    assert series.samples[small].tolist() == pytest.approx([4.0])
    assert series.samples[big].tolist() == pytest.approx([3000.0])
    assert np.isfinite(series.values[big]).sum() == 3


def test_metrics_of_several_events_have_the_error_of_all() -> None:
    table = load_events("skylake-x")
    formula = table.metrics["loads_mem"].formula
    names = list(formula.names)
    events = {name: np.array([30 * RARE, 0.0]) for name in names}
    found = derive(events, table, "sampled, n = 60", {name: np.full(2, RARE) for name in names})
    value, worth = found.columns["loads_mem"], found.worth["loads_mem"]
    step = [formula({**events, name: events[name] + RARE}) - formula(events) for name in names]
    variance = sum(30 * one[0] ** 2 for one in step)
    assert value[0] * worth[0] == pytest.approx(variance)
    # Where nothing fell, one sample more of the event that counts most.
    assert worth[1] == pytest.approx(max(abs(one[1]) for one in step))


def test_a_difference_of_many_samples_has_few() -> None:
    value, variance = np.array([10.0, 0.0, 5e5]), np.array([2e4, 2e4, 2e4])
    worth = effective(value, variance, np.ones(3))
    assert (value / worth)[0] < 0.1
    assert worth[1] == pytest.approx(np.sqrt(2e4))
    assert (value / worth)[2] == pytest.approx(5e5**2 / 2e4)


def test_tables_of_before_are_those_of_times(tmp_path: Path) -> None:
    experiment = Experiment.create(tmp_path / "e", "made up", ["ranks"])
    table = pd.DataFrame({"kernel": ["k"], "rank": [0], "time": [0.5], "cycles": [1e9]})
    old = pd.DataFrame({"kernel": ["k"], "rank": [0], "samples": [500.0], "relative_error": [0.04]})
    events = pd.DataFrame({"event": ["cycles"], "kernel": ["k"], "rank": [0], "samples": [500.0]})
    first = experiment.add(Run({"ranks": 1}, 0, "perf-clock"), table, tables={"sampling": old})
    second = experiment.add(Run({"ranks": 1}, 0, "perf"), table, tables={"sampling": events})
    message = sampling_of(experiment, first)
    assert message is not None
    assert message[["metric", "worth"]].values.tolist() == [["time", 0.001]]
    assert sampling_of(experiment, second) is None


@pytest.mark.parametrize(("samples", "worth"), [(-1.0, 1.0), (1.0, 0.0), (np.nan, 1.0), (1.0, np.inf)])
def test_samples_that_cannot_be_are_refused(tmp_path: Path, samples: float, worth: float) -> None:
    experiment = Experiment.create(tmp_path / "e", "made up", ["ranks"])
    table = pd.DataFrame({"kernel": ["k"], "rank": [0], "time": [0.5]})
    bad = pd.DataFrame({"kernel": ["k"], "rank": [0], "metric": ["time"], "samples": [samples], "worth": [worth]})
    experiment.add(Run({"ranks": 1}, 0, "perf-clock"), table, tables={"sampling": bad})
    with pytest.raises(InputError, match="number of samples that cannot be"):
        series_from_experiment(experiment)


def test_two_configurations_of_few_samples_are_no_exact_bridge() -> None:
    values = PERIOD * np.array([[5.0, 10.0], [0.0, 0.0], [4e6, 8e6]])[:, :, None]
    made = Series(("ranks",), RANKS[:2, None], values, ("a", "b", "c"), ("branches",) * 3, worth=0 * values + PERIOD)
    levels = fit_levels(made)
    assert levels
    for each in (levels, Levels.from_dict(levels.to_dict())):
        said = each.predict(np.array([[1.0], [2.0], [4.0]]))
        ratio = said.upper[:, 0] / said.value[:, 0]
        assert ratio[0] == pytest.approx(np.exp(1.645 / np.sqrt(5)), rel=0.2)
        assert ratio[1] > 5
        assert ratio[2] < 1.01
        assert said.status[0, 2] != OK
        assert (said.lower >= 0).all()


def few(loads: float, memory: float, worth: float | None) -> Series:
    values = np.array([loads, memory])[:, None, None].repeat(3, axis=1)
    each = np.full(values.shape, np.nan if worth is None else worth)
    return Series(("ranks",), RANKS[:3, None], values, ("k", "k"), ("loads", "loads_mem"), worth=each)


def test_samples_that_differ_by_chance_contradict_nothing() -> None:
    assert contradictions(few(4e6, 6e6, None))
    assert not contradictions(few(4e6, 6e6, 1e6))
    assert contradictions(few(4e6, 6e6, 1e3))


def test_a_part_is_minor_where_samples_could_show_otherwise() -> None:
    assert find_minor(few(1e9, 0.0, None)) == (("k", "loads_mem"),)
    assert find_minor(few(1e9, 0.0, 1e5)) == (("k", "loads_mem"),)
    assert not find_minor(few(1e7, 0.0, 1e5))


def test_ranks_are_not_uneven_by_the_chance_of_their_samples(tmp_path: Path) -> None:
    def made(name: str, uneven: float) -> Experiment:
        generator = np.random.default_rng(4)
        experiment = Experiment.create(tmp_path / name, "made up", ["ranks"])
        for p in (4, 8, 16, 32):
            mean = 20 * (1 + uneven * (np.arange(p) == 0))
            table = pd.DataFrame({"kernel": "k", "rank": np.arange(p)})
            table["instructions"] = PERIOD * generator.poisson(mean)
            worth = sampling(table, {"instructions": PERIOD})
            run = Run({"ranks": p}, 0, "perf", provenance={"instructions": "sampled, n = 1"})
            experiment.add(run, table, tables={"sampling": worth})
        return experiment

    even, uneven = fit_balance(made("even", 0.0))[0], fit_balance(made("uneven", 4.0))[0]
    assert even is None or even.imbalance(np.array([[16.0]]))[0][0] == pytest.approx(1, abs=1e-6)
    assert uneven is not None
    assert uneven.imbalance(np.array([[16.0]]))[0][0] > 2


KERNELS = {"stream": (0.35, 0.8), "poly": (2.0, 0.01)}
"""Instructions and stalls a cycle."""


def counted(path: Path, platform: Platform, samples: float, seed: int = 0, turbo: float = 1.0) -> Experiment:
    """A kernel that waits for memory and one that computes, of so many samples of cycles a configuration."""
    generator = np.random.default_rng(seed)
    experiment = Experiment.create(path, "made up", ["ranks"])
    latency = platform.memory.latency * platform.frequency
    for p in (1, 2, 4, 8):
        who = pd.DataFrame({"kernel": np.repeat(list(KERNELS), p), "rank": np.tile(np.arange(p), 2)})
        cycles = np.full(2 * p, samples * PERIOD / p)
        each, held = (np.repeat([pair[at] for pair in KERNELS.values()], p) for at in (0, 1))
        memory = np.where(held > 0.5, held * cycles / (0.1 * latency), 0.0)
        true = {"cycles": cycles, "instructions": each * cycles, "stall_cycles": held * cycles}
        true |= {"loads": 0.3 * each * cycles, "loads_l1": 0.3 * each * cycles - memory, "loads_mem": memory}
        true |= {"loads_l2": 0 * cycles, "loads_l3": 0 * cycles}
        periods = {name: RARE if name in ("loads_l2", "loads_l3", "loads_mem") else PERIOD for name in true}
        drawn = {name: periods[name] * generator.poisson(value / periods[name]) for name, value in true.items()}
        table = who.assign(**drawn)
        origin = dict.fromkeys(true, "sampled, n = 1")
        worth = sampling(table, periods)
        experiment.add(Run({"ranks": p}, 0, "perf", provenance=origin), table, tables={"sampling": worth})
        times = who.assign(time=generator.poisson(997 * cycles / turbo / platform.frequency) / 997)
        worth = sampling(times, {"time": 1 / 997})
        run = Run({"ranks": p}, 0, "perf-clock", provenance={"time": "sampled, n = 1"})
        experiment.add(run, times, tables={"sampling": worth})
    return experiment


def verdicts(path: Path, samples: float, seed: int = 0) -> pd.DataFrame:
    platform = load("icelake-8360y")
    model = fit(counted(path, platform, samples, seed), platform=platform)
    return model.diagnose(ranks=[8]).verdicts().set_index("kernel")


def test_verdicts_of_many_samples_stand(tmp_path: Path) -> None:
    found = verdicts(tmp_path / "e", 3000.0)
    assert found["verdict"].to_dict() == {"stream": "memory-bound", "poly": "compute-bound"}
    assert not found["evidence"].str.contains("samples:").any()


@pytest.mark.parametrize("turbo", [0.8, 1.4])
def test_cycles_and_times_of_two_runs_show_the_clock(tmp_path: Path, turbo: float) -> None:
    platform = load("icelake-8360y")
    experiment = counted(tmp_path / "e", platform, 3000.0, turbo=turbo)
    assert measured_clock(experiment) == pytest.approx(turbo * platform.frequency, rel=0.05)
    true = 3000 * PERIOD / 16 / turbo / platform.frequency
    said = {
        each.kernel: each for each in fit(experiment, platform=platform).predict(ranks=16, metrics=["time"]).answers
    }
    assert said["poly"].value == pytest.approx(true, rel=0.05)
    # What streams may find the memory of a domain full with twice the ranks, which is in its interval.
    for kernel, parts in (("stream", 1), ("poly", 1), (None, 2)):
        assert said[kernel].lower <= parts * true <= said[kernel].upper


def test_few_samples_show_no_clock(tmp_path: Path) -> None:
    assert np.isnan(measured_clock(counted(tmp_path / "e", load("icelake-8360y"), 10.0, turbo=1.4)))


@pytest.mark.parametrize("seed", range(3))
def test_verdicts_of_few_samples_say_so_or_are_open(tmp_path: Path, seed: int) -> None:
    found = verdicts(tmp_path / "e", 10.0, seed)
    assert found["evidence"].str.contains("fewest samples").all()
    true = {"stream": "memory-bound", "poly": "compute-bound"}
    for kernel, verdict in found["verdict"].items():
        assert verdict in ("undecided", true[str(kernel)])


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.lists(st.integers(0, 6), min_size=5, max_size=5), min_size=3, max_size=3), st.floats(1.0, 1e7))
def test_samples_of_any_number_are_predicted_above_zero(drawn: list[list[int]], worth: float) -> None:
    values = worth * np.array(drawn, dtype=np.float64)[:, :, None]
    names = ("branches", "loads_mem", "cycles")
    series = Series(("ranks",), RANKS[:, None], values, ("k",) * 3, names, worth=np.full(values.shape, worth))
    said = fit_varied(series).predict(np.array([[1.0], [3.0], [16.0], [64.0], [4096.0]]))
    assert (said.value >= 0).all()
    assert (said.lower >= 0).all()
    assert (said.lower <= said.value).all()
    assert (said.value <= said.upper).all()
    # A handful of samples shows nothing to a few per cent, and none does not show zero.
    assert (said.upper > 1.3 * said.value).all()
    none = values[:, :, 0].sum(axis=1) == 0
    assert (said.status[none] != OK).all()
