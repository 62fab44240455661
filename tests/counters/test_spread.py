"""The error of counts that stand for a whole run, from what occurrences differ by; and that functions take it for noise."""

import numpy as np
import pandas as pd
import pytest

from ranksight.core.experiment import Experiment
from ranksight.core.run import Run
from ranksight.counters import signature, spread
from ranksight.model.series.reducing import series_from_experiment


def table(instructions, loads, loads_l2):
    columns = {"visits": 10.0, "instructions": instructions, "loads": loads, "loads_l2": loads_l2}
    return pd.DataFrame(columns, ["a", "b"])


COUNTS = table([9e6, 1e6], [3e6, 3e5], [1e5, 2e4])


def raised(part, **by):
    changed = COUNTS.copy()
    for name, change in by.items():
        changed[name] += part * np.array(change)
    return changed


def test_errors_are_the_root_of_the_mean_of_squares():
    sums = [raised(signature.PART, loads_l2=[change, 0.0]) for change in (3000.0, -4000.0, 5000.0)]
    off = spread.errors(COUNTS, sums, 10.0)
    assert off.loc["a", "loads_l2"] == pytest.approx(np.sqrt(50e6 / 3))
    assert off.loc["b", "loads_l2"] == 0
    assert (off[["visits", "instructions", "loads"]] == 0).all(axis=None)


def test_what_changes_along_the_run_is_known_less_the_longer_the_run():
    walk = [raised(signature.PART, loads=[change, 0.0]) for change in (100.0, -100.0, 3000.0)]
    few, many = (spread.errors(COUNTS, walk, growth).loc["a", "loads"] for growth in (10.0, 40.0))
    assert few == pytest.approx(3000 * np.sqrt(40), rel=1e-2)
    assert many == pytest.approx(2 * few, rel=1e-2)


def test_errors_of_walks_hold_the_truth():
    """Counts of 2,000 occurrences that walk by independent steps, of which 100 are simulated."""
    generator, inside = np.random.default_rng(1), []
    calls, seconds = np.zeros(2001, np.int64), np.full(2001, 1e-3)
    found = signature.of_run(*signature.classes_of(calls, seconds), seconds, 100)
    m = len(found.weights)
    for _ in range(300):
        work = 1e6 + np.cumsum(generator.normal(0, 2e3, 2001))
        counts, *sums = (
            pd.DataFrame({"loads": [weights @ work[:m]]}, ["a"]) for weights in (found.weights, *found.further)
        )
        off = spread.errors(counts, sums, 20.0).loc["a", "loads"]
        inside.append(abs(counts.loc["a", "loads"] - work.sum()) <= 2 * off)
    # Of one degree of freedom: 0.70 of Student's law is within two of its scales.
    assert 0.6 < np.mean(inside) < 0.8


def test_exact_counts_have_no_samples_and_say_so():
    exact, notes = spread.record({0: COUNTS}, {0: 0 * COUNTS}, [0, 0])
    assert exact is None
    assert "the same in all occurrences" in notes[0]


def test_the_worst_count_is_named_and_small_kernels_are_not():
    off = 0 * COUNTS
    off.loc["a", "loads_l2"] = 2e4
    off.loc["b", "visits"] = 0.02
    samples, notes = spread.record({0: COUNTS}, {0: off}, [0, 0])
    assert "20.0% at most, loads_l2 of a" in notes[0]
    assert set(samples["metric"]) == {"loads_l2", "visits"}
    one = samples[(samples["metric"] == "loads_l2") & (samples["kernel"] == "a")]
    assert one["rank"].tolist() == [0, 1]
    assert (one["samples"] * one["worth"]).tolist() == pytest.approx([1e5, 1e5])
    assert (one["worth"] * np.sqrt(one["samples"])).tolist() == pytest.approx([2e4, 2e4])


def test_functions_take_the_error_for_noise(tmp_path):
    """Counts in full at one number of ranks, and of a part with an error at the others."""
    experiment = Experiment.create(tmp_path / "e", "app", ["ranks"])
    for ranks in (1, 2, 4):
        counts = COUNTS.assign(rank=0).rename_axis("kernel").reset_index()
        off = 0 * COUNTS
        off.loc["a", "loads_l2"] = 1e4
        samples, _ = spread.record({0: COUNTS}, {0: off}, [0])
        tables = {} if ranks == 2 else {"sampling": samples}
        run = Run(configuration={"ranks": float(ranks)}, repetition=0, collector="callgrind")
        experiment.add(run, counts, tables=tables)
    series = series_from_experiment(experiment)
    row = series.rows["a", "loads_l2"]
    assert series.values[row, :, 0] == pytest.approx([1e5, 1e5, 1e5])
    assert series.samples[row, [0, 2]] == pytest.approx([100, 100])
    assert series.samples[row, 1] > 1e9
    assert not series.sampled[series.rows["a", "instructions"]]
