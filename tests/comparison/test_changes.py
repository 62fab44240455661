"""Changes, their significance, their causes and the scales at which they matter, on data whose truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksight.analysis.comparison.change import CHANGED, GONE, NEW, SAME, UNSURE, changes
from ranksight.analysis.comparison.comparing import Subject, compare
from ranksight.analysis.comparison.explain import explain, log_mean
from ranksight.analysis.comparison.sides import Side, measured_side
from ranksight.core.errors import InputError
from ranksight.core.experiment import WHOLE
from ranksight.model.application.breakdown import Terms
from ranksight.model.fit import model_of
from ranksight.model.series.reducing import Series
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.reports.comparisons import because, between

RANKS = np.array([[2.0], [4], [8], [16], [32]])


def made(laws: dict[tuple[str, str], object], noise: float = 0.01, seed: int = 0, reps: int = 4) -> Series:
    generator = np.random.default_rng(seed)
    values = np.array([law(RANKS[:, 0]) for law in laws.values()])  # type: ignore[operator]
    exact = np.array([name != "time" for _, name in laws])[:, None, None]
    scatter = 1 + noise * generator.standard_normal((len(laws), len(RANKS), reps))
    kernels, names = zip(*laws, strict=True)
    return Series(("ranks",), RANKS, values[:, :, None] * np.where(exact, 1.0, scatter), kernels, names)


def subject(name: str, series: Series) -> Subject:
    return Subject(name, model_of(series, "made"), series)


def side(rows: dict[tuple[str, str], float], error: float = 0.01, freedom: float = 50.0) -> Side:
    value = np.array(list(rows.values()), dtype=float)[:, None]
    shape = value.shape
    return Side(
        "side", {key: at for at, key in enumerate(rows)}, value, np.full(shape, error), np.full(shape, freedom),
        np.isfinite(value),
    )  # fmt: skip


def test_a_difference_within_the_noise_is_none() -> None:
    """Of programs that did not change, no more than the rate accepted are called changed: kernels, and the program."""
    crowd = program = 0
    for seed in range(100):
        generator = np.random.default_rng(seed)
        before, after = (
            Series(("ranks",), RANKS, 1 + 0.05 * generator.standard_normal((20, 5, 4)),
                   tuple(f"k{i}" for i in range(20)), ("time",) * 20)
            for _ in range(2)
        )  # fmt: skip
        found = changes(measured_side("a", before, RANKS, 0.0), measured_side("b", after, RANKS, 0.0), 0.95)
        changed, whole = found.verdict == CHANGED, found.rows[WHOLE, "time"]
        crowd += int(np.delete(changed, whole, axis=0).any(axis=0).sum())
        program += int(changed[whole].sum())
    assert crowd / 500 < 0.08
    assert program / 500 < 0.08


def test_a_real_difference_is_found_with_its_interval() -> None:
    before, after = {("k", "time"): 1.0}, {("k", "time"): 1.2}
    found = changes(side(before), side(after))
    assert found.verdict[0, 0] == CHANGED
    assert found.ratio[0, 0] == pytest.approx(1.2)
    assert found.lower[0, 0] == pytest.approx(1.2 * np.exp(-1.984 * 0.01 * np.sqrt(2)), rel=1e-3)
    assert found.lower[0, 0] < 1.2 < found.upper[0, 0]
    assert changes(side(before, 0.1), side(after, 0.1)).verdict[0, 0] == SAME


def test_scatter_between_jobs_and_few_samples_widen() -> None:
    series = made({("k", "time"): lambda p: 1 + 0 * p}, noise=0.001)
    plain = measured_side("a", series, RANKS, 0.0)
    jobs = measured_side("a", series, RANKS, 0.03)
    # Four samples a configuration, one in each of four repetitions.
    few = measured_side("a", replace(series, worth=series.values), RANKS, 0.03)
    assert plain.error.max() < 0.002
    assert jobs.error == pytest.approx(0.03, rel=0.01)
    assert few.error[few.rows["k", "time"]] == pytest.approx(np.hypot(0.5, 0.03), rel=0.01)


def test_new_gone_and_unsure() -> None:
    before = side({("old", "time"): 1.0, ("both", "time"): 1.0, ("bad", "time"): 1.0})
    after = side({("new", "time"): 1.0, ("both", "time"): 1.0, ("bad", "time"): 2.0})
    after.sound[after.rows["bad", "time"]] = False
    found = changes(before, after)
    verdict = {kernel: int(found.verdict[row, 0]) for (kernel, _), row in found.rows.items()}
    assert verdict == {"old": GONE, "new": NEW, "both": SAME, "bad": UNSURE}


def test_what_falls_to_nothing_is_changed() -> None:
    before = side({("gone", "time"): 1.0, ("none", "time"): 0.0, ("come", "time"): 0.0})
    found = changes(before, side({("gone", "time"): 0.0, ("none", "time"): 0.0, ("come", "time"): 1.0}))
    assert found.verdict[:, 0].tolist() == [CHANGED, SAME, CHANGED]


def test_a_kernel_that_no_sample_fell_on_is_not_gone() -> None:
    """It is counted there; only its time is not known."""
    before = side({("k", "time"): 1.0, ("k", "instructions"): 1e9, ("old", "time"): 1.0})
    after = side({("k", "instructions"): 1e9, ("k2", "time"): 1.0, ("k2", "instructions"): 1.0})
    found = changes(before, after)
    verdict = dict(zip(found.keys, found.verdict[:, 0].tolist(), strict=True))
    assert verdict["k", "time"] == UNSURE
    assert verdict["k", "instructions"] == SAME
    assert verdict["old", "time"] == GONE
    assert verdict["k2", "time"] == NEW


def test_counts_that_changed_do_not_make_times_change() -> None:
    """Metrics are judged apart: fifty counts that all changed do not let a time at 1 in 25 of twenty pass."""
    rows = {(f"k{at}", "time"): 1.0 for at in range(20)} | {(f"k{at}", "instructions"): 1.0 for at in range(50)}
    later = {key: 2.0 if key[1] == "instructions" else 1.0 for key in rows} | {("k3", "time"): 1.03}
    found = changes(side(rows), side(later))
    assert found.verdict[found.rows["k3", "time"], 0] == SAME
    assert found.verdict[found.rows["k3", "instructions"], 0] == CHANGED


def test_the_program_is_no_part_of_the_crowd() -> None:
    """Of twenty kernels that may differ by chance one at 1 in 50 is none; the program alone, as far off, is changed."""
    rows = {(f"k{at}", "time"): 1.0 for at in range(20)} | {(WHOLE, "time"): 1.0}
    later = {**rows, ("k3", "time"): 1.034, (WHOLE, "time"): 1.034}
    found = changes(side(rows), side(later))
    assert found.verdict[found.rows["k3", "time"], 0] == SAME
    assert found.verdict[found.rows[WHOLE, "time"], 0] == CHANGED
    crowded = changes(side(rows), side({**rows, ("k3", "time"): 1.2}))
    assert crowded.verdict[crowded.rows["k3", "time"], 0] == CHANGED
    assert crowded.verdict[crowded.rows[WHOLE, "time"], 0] == SAME


def test_causes_within_the_noise_of_a_time_are_not_sure() -> None:
    before = side({("k", "time"): 1.0, ("k", "instructions"): 1e9}, error=0.03)
    after = side({("k", "time"): 0.52, ("k", "instructions"): 5e8}, error=0.03)
    for each in (before, after):
        each.error[each.rows["k", "instructions"]] = 1e-3
    causes = {each.name: each for each in explain("k", "time", before, after, 0, (None, None))}
    assert causes["instructions"].sure
    assert not causes["time per instruction"].sure
    assert because(list(causes.values())) == "instructions x 0.5 (time -51 %)"
    # Another machine's counters, not another count: the time itself shows it.
    slower = side({("k", "time"): 1.5, ("k", "instructions"): 1e9}, error=0.03)
    assert explain("k", "time", before, slower, 0, (None, None))[0].sure


def test_names_that_changed_are_reported_and_can_be_taken_for_one() -> None:
    law = {("k", "time"): lambda p: 1 / p, ("k", "instructions"): lambda p: 1e9 / p, ("l", "time"): lambda p: 2 / p}
    other = {("new", "time"): law["k", "time"], ("new", "instructions"): law["k", "instructions"],
             ("quite_else", "time"): law["l", "time"]}  # fmt: skip
    first, second = subject("a", made(law)), subject("b", made(other, seed=1))
    found = compare(first, second)
    assert found.renamed == (("k", "new"),)
    slower = {each.kernel: each.part > 0 for each in found.onsets}
    assert slower == {"k": False, "l": False, "new": True, "quite_else": True}
    same = compare(first, second, names={"k": "new"})
    assert same.changes.verdict[same.changes.rows["new", "time"]].tolist() == [SAME] * 5
    assert {each.kernel for each in same.onsets} == {"l", "quite_else"}
    with pytest.raises(InputError, match="no kernel 'm'"):
        compare(first, second, names={"m": "new"})
    with pytest.raises(InputError, match="has the kernels"):
        compare(first, second, names={"k": "l"})


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_log_mean_lies_between_and_is_symmetric(a: float, b: float) -> None:
    mean = log_mean(a, b)
    assert min(a, b) * (1 - 1e-9) <= mean <= max(a, b) * (1 + 1e-9)
    assert mean == pytest.approx(log_mean(b, a))


LOADS = ("loads_l1", "loads_l2", "loads_l3", "loads_mem")
positive = st.floats(0.1, 10)


def equation(cpi: float) -> Terms:
    none = np.zeros((1, 1))
    fine, empty = none.astype(np.intp), np.full((1, 1), "", dtype=object)

    def exactly(value: float) -> Forecast:
        return Forecast(none + value, none + value, none + value, fine, empty, none)

    counted = np.array([True])
    latencies = np.array([4.0, 14.0, 50.0, 200.0])
    return Terms(("k",), exactly(cpi), exactly(0.5), exactly(1e9), counted, ("",), latencies)


@given(st.lists(positive, min_size=12, max_size=12))
def test_causes_add_up_to_the_change(x: list[float]) -> None:
    """The division by logarithmic means leaves no rest, with and without levels."""
    sides, equations = [], []
    for part in (x[:6], x[6:]):
        i, cpi, factor = part[0] * 1e9, part[1], part[2]
        loads = dict(zip(LOADS, (part[3] * 1e8, part[4] * 1e7, part[5] * 1e6, 1e5), strict=True))
        cycles = i * cpi + factor * sum(
            n * latency for n, latency in zip(loads.values(), (4, 14, 50, 200), strict=True)
        )
        rows = {("k", "time"): cycles / 1e9, ("k", "instructions"): i, **{("k", name): n for name, n in loads.items()}}
        sides.append(side(rows))
        equations.append(equation(cpi))
    time = [each.of("k", "time")[0] for each in sides]
    for resources in ((equations[0], equations[1]), (None, None)):
        causes = explain("k", "time", sides[0], sides[1], 0, resources)
        assert sum(cause.part for cause in causes) == pytest.approx(time[1] / time[0] - 1, abs=1e-9, rel=1e-9)
        named = {cause.name: cause for cause in causes}
        assert named["instructions"].ratio == pytest.approx(x[6] / x[0])
    assert [abs(cause.part) for cause in causes] == sorted((abs(cause.part) for cause in causes), reverse=True)


def test_the_cause_is_the_one_that_was_changed() -> None:
    base = {("k", "time"): 2.0, ("k", "instructions"): 1e9, ("k", "loads_l1"): 1e8, ("k", "loads_mem"): 2e6}

    def causes(change: dict[tuple[str, str], float]) -> str:
        found = explain("k", "time", side(base), side({**base, **change}), 0, (equation(1.0), equation(1.0)))
        return found[0].name

    # 1 s of execution; 4e8 cycles for L1, 4e8 for memory, held up by a factor of 1.25.
    assert causes({("k", "instructions"): 1.5e9, ("k", "time"): 2.5}) == "instructions"
    assert causes({("k", "loads_mem"): 4e6, ("k", "time"): 2.5}) == "loads from memory"
    assert causes({("k", "time"): 2.5}) == "waiting per load"
    messages = {("m", "time"): 1.0, ("m", "messages"): 100.0, ("m", "bytes_sent"): 1e6}
    more = {("m", "time"): 1.5, ("m", "messages"): 100.0, ("m", "bytes_sent"): 1.5e6}
    assert explain("m", "time", side(messages), side(more), 0, (None, None))[0].name == "bytes per message"


def test_a_crossover_is_found_where_it_is() -> None:
    """1 + 40/p against 3 + 24/p: equal at p = 8."""
    law = {("work", "time"): lambda p: 1 + 40 / p}, {("work", "time"): lambda p: 3 + 24 / p}
    found = compare(subject("a", made(law[0])), subject("b", made(law[1], seed=1)), np.array([[32.0]]))
    crossing = [each for each in found.crossovers if each.kernel == "work"]
    assert len(crossing) == 1
    assert crossing[0].low < 8 < crossing[0].high
    assert crossing[0].at == pytest.approx(8, rel=0.2)
    assert crossing[0].faster_above == "a"


def test_where_a_change_matters() -> None:
    """A new term of 0.002 p added to 1 s of work passes 2 % of it at 10 ranks."""
    before = {("work", "time"): lambda p: 1 + 0 * p, ("halo", "time"): lambda p: 0.001 * p}
    after = {**before, ("halo", "time"): lambda p: 0.003 * p}
    found = compare(subject("a", made(before)), subject("b", made(after, seed=1)), np.array([[64.0]]))
    assert [each.kernel for each in found.onsets] == ["halo"]
    assert 7 <= found.onsets[0].at <= 16
    assert found.onsets[0].part == pytest.approx(0.128 / 1.064, rel=0.1)


def test_slower_honours_threshold_noise_and_weight() -> None:
    before = {("work", "time"): lambda p: 1 + 0 * p, ("tiny", "time"): lambda p: 1e-4 + 0 * p}
    after = {("work", "time"): lambda p: 1.3 + 0 * p, ("tiny", "time"): lambda p: 3e-4 + 0 * p}
    found = compare(subject("a", made(before)), subject("b", made(after, seed=1)), scatter=0.03)
    assert found.measured
    assert {kernel for kernel, _, _ in found.slower(10)} == {"work", WHOLE}
    assert not found.slower(40)
    assert {kernel for kernel, _, _ in found.slower(10, least=0.0)} == {"work", WHOLE, "tiny"}
    noisy = compare(subject("a", made(before)), subject("b", made(after, seed=1)), scatter=0.3)
    assert not noisy.slower(10)


def test_what_cannot_be_compared() -> None:
    one = subject("a", made({("k", "time"): lambda p: p}))
    other = Series(("size",), RANKS, one.series.values, ("k",), ("time",))  # type: ignore[union-attr]
    with pytest.raises(InputError, match="has the parameters"):
        compare(one, subject("b", other))
    far = Series(("ranks",), RANKS * 3, one.series.values, ("k",), ("time",))  # type: ignore[union-attr]
    with pytest.raises(InputError, match="no configuration in common"):
        compare(one, subject("b", far))


def test_an_interval_is_reported_in_one_unit() -> None:
    assert between(0.92, 1.09) == "-8 % to +9 %"
    assert between(0.446, 0.54) == "x 0.45 to x 0.54"
    assert between(0.9, 12.6) == "x 0.9 to x 13"
    assert between(float("nan"), 1.0) == ""
