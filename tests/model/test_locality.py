"""Loads by level at capacities and sizes that nobody ran, from misses at many capacities: closed forms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment
from ranksight.core.metrics import LEVELS
from ranksight.core.run import Run
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.model.machine.anchor import on
from ranksight.model.structure.locality import NO_LOCALITY, Locality
from ranksight.model.uncertainty.forecast import Forecast

SIZES = np.array(sorted({32768, *(1 << at for at in range(16, 28)), *(3 << at for at in range(15, 25))}), float)
RUNS = np.array([64.0, 100.0, 160.0, 250.0, 400.0])
LEVEL = np.array([32768.0, 1 << 20, 1 << 25])
CACHES = "simulated (callgrind, D1 32768,8,64, L2 1048576,16,64, LL 33554432,16,64: bytes, ways, bytes a line)"


def streamed(size: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    """Three arrays of size^2 numbers passed again and again: an eighth of the loads until all of them fit."""
    return np.where(capacity < 24 * size**2, 1 / 8, 0.0)


def at_random(size: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    """Elements of size^2 numbers in no order: the share of them that is not in the cache."""
    return np.maximum(1 - capacity / (8 * size**2), 0.0)


def by_rows(size: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    """A row is reused where a few of size numbers fit, the whole where all do."""
    return np.where(capacity < 3 * 8 * 50 * size, 1 / 4, np.where(capacity < 16 * size**2, 1 / 16, 0.0))


def few_sets(size: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    """As :func:`streamed`, where some sets are full before others."""
    return np.clip((24 * size**2 / capacity - 1) / 0.25, 0.0, 1.0) / 8


KERNELS = {"streamed": streamed, "at random": at_random, "by rows": by_rows}


def made(misses: np.ndarray, capacities: np.ndarray = LEVEL) -> Locality:
    points = RUNS[:, None]
    kernels = tuple(f"k{at}" for at in range(len(misses)))
    height = np.full(len(misses), 0.01)
    return Locality(("size",), kernels, points, SIZES, misses, capacities, height, 64.0)


def counted(kernel: str) -> np.ndarray:
    return KERNELS[kernel](RUNS[:, None], SIZES)[None]


def shares(locality: Locality, sizes: np.ndarray) -> Forecast:
    ones = np.ones((len(locality.kernels), len(sizes)))
    return locality.predict(sizes[:, None], Forecast.settled(ones, ones, ones))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("capacity", [150e3, 700e3, 5e6])
def test_shares_at_capacities_and_sizes_that_were_not_run(kernel: str, capacity: float) -> None:
    asked = np.array([80.0, 128.0, 200.0, 320.0, 560.0])
    answer = shares(made(counted(kernel), np.array([32768.0, capacity, 1e8])), asked)
    beyond = KERNELS[kernel](asked, np.array([32768.0]))[()], KERNELS[kernel](asked, np.array([capacity]))
    truth = np.array([1 - beyond[0], beyond[0] - beyond[1], beyond[1], 0 * asked])
    inside = (answer.lower - 1e-9 <= truth) & (truth <= answer.upper + 0.0015)
    assert inside.mean() >= 0.9
    far = np.abs(answer.value - truth) > 0.1 * np.maximum(truth, 0.02)
    # A step of all loads within a tenth of the capacity may fall on either side.
    assert far.mean() <= 0.2


def test_what_a_run_counted_is_answered() -> None:
    answer = shares(made(counted("at random")), RUNS)
    misses = at_random(RUNS, LEVEL[:, None])
    truth = np.vstack([1 - misses[0], misses[0] - misses[1], misses[1] - misses[2], misses[2]])
    assert answer.value == pytest.approx(truth, abs=0.005)
    assert (answer.status == 0).all()


def test_runs_narrow_down_where_misses_end() -> None:
    """Some sets hold three arrays from four fifths of their size on, all sets from their size on: one run says between
    0.7 and 1.1 of it, all together less."""
    sizes = np.arange(232.0, 240.0, 2.0)
    found = shares(made(few_sets(RUNS[:, None], SIZES)[None]), sizes).value[LEVELS.index("loads_l2")]
    true = few_sets(sizes, SIZES[0]) - few_sets(sizes, LEVEL[1])
    np.testing.assert_allclose(found, true, atol=0.2 / 8)


def test_a_size_whose_lines_fall_into_the_same_sets_is_left_out() -> None:
    clean = counted("streamed")
    spoilt = clean.copy()
    spoilt[0, 3] = np.where(SIZES < 1 << 24, 0.7, 0.0)
    asked = np.array([64.0, 128.0, 181.0, 330.0])
    with_outlier, without = (shares(made(misses), asked) for misses in (spoilt, clean))
    assert with_outlier.value[1:, 0] == pytest.approx(without.value[1:, 0], abs=0.02)
    # a tenth of the way to what the one run says, which the interval has
    assert with_outlier.value[1:] == pytest.approx(without.value[1:], abs=0.071)
    assert (with_outlier.lower[1:] <= without.value[1:] + 1e-9).all()
    assert (without.value[1:] <= with_outlier.upper[1:] + 1e-9).all()


def test_an_interval_has_what_the_nearest_runs_say_where_they_do_not_agree() -> None:
    """Up to a size all loads miss the first level, from the next on none: in between nobody knows."""
    misses = np.where((RUNS[:, None] < 200) & (SIZES < 1 << 19), 0.5, 0.0)[None]
    answer = shares(made(misses), np.array([64.0, 66.0, 200.0, 399.0]))
    assert answer.value[1, :2] == pytest.approx(0.5, abs=0.02)
    assert answer.lower[1, 2] == pytest.approx(0.0, abs=0.02)
    assert answer.upper[1, 2] == pytest.approx(0.5, abs=0.02)
    assert answer.upper[1, 3] == pytest.approx(0.0, abs=0.02)


def test_first_loads_that_other_runs_use_again_move_no_others() -> None:
    """Half of the misses last until more than all arrays fit; some sizes are given memory that was used before."""
    sizes = RUNS[:, None]
    never = np.array([0.0, 0.0, 0.05, 0.05, 0.05])[:, None]
    later = np.where(60 * sizes**2 > SIZES, 1 / 16, never)
    misses = np.where(16 * sizes**2 > SIZES, 1 / 8, later)[None]
    answer = shares(made(misses, np.array([32768.0, 3 << 17, 1 << 25])), np.array([118.0, 130.0, 140.0]))
    assert answer.value[1] == pytest.approx(1 / 16, abs=0.003)


def test_levels_add_up_to_the_loads_and_move_with_the_capacity() -> None:
    locality = made(counted("at random"))
    asked = np.array([90.0, 220.0, 500.0])
    small, large = (shares(locality.on(np.array([32768.0, size, 1e8]), 64.0), asked) for size in (2e5, 2e6))
    assert small.value.sum(axis=0) == pytest.approx(1.0, abs=0.01)
    assert (small.value[1, 1:] < large.value[1, 1:]).all()
    assert small.value[1, 0] == pytest.approx(large.value[1, 0])
    assert locality.on(LEVEL, 256.0) is NO_LOCALITY


def test_a_file_that_does_not_fit_is_refused() -> None:
    locality = made(counted("streamed"))
    content = locality.to_dict()
    assert Locality.from_dict(content).misses.tolist() == locality.misses.tolist()
    for name, wrong in (("sizes", SIZES[::-1].tolist()), ("height", []), ("capacities", [1.0])):
        with pytest.raises(InputError):
            Locality.from_dict(content | {name: wrong})


def test_a_model_answers_between_its_sizes_and_on_another_machine(tmp_path: Path) -> None:
    made_up = Experiment.create(tmp_path / "e", "made-up", ["ranks", "size"])
    for size in RUNS:
        loads = 3 * size**2
        missed = loads * at_random(size, SIZES)
        served = -np.diff([loads, *loads * at_random(size, LEVEL), 0.0])
        counters = pd.DataFrame({"kernel": "k", "rank": [0], "loads": loads, **dict(zip(LEVELS, served, strict=True))})
        table = pd.DataFrame({"kernel": "k", "rank": 0, "bytes": SIZES[1:].astype(int), "load_misses": missed[1:]})
        run = Run({"ranks": 1.0, "size": size}, 0, "callgrind", provenance=dict.fromkeys(counters.columns[2:], CACHES))
        made_up.add(run, counters, tables={"cache_sizes": table.assign(store_misses=0.0)})
    model = fit(made_up, platform="generic")
    model.save(tmp_path / "m")
    model = Model.load(tmp_path / "m")
    between = model.predict(ranks=1, size=200).table().query("metric == 'loads_l2' and kernel == 'k'")
    truth = 3 * 200**2 * (at_random(200.0, LEVEL[0]) - at_random(200.0, LEVEL[1]))
    assert between["value"].iloc[0] == pytest.approx(truth, rel=0.05)
    elsewhere = (
        on(model, "broadwell-e5-2697v4")
        .predict(ranks=1, size=200)
        .table()
        .query("metric == 'loads_l2' and kernel == 'k'")
    )
    truth = 3 * 200**2 * (at_random(200.0, LEVEL[0]) - at_random(200.0, np.array(1 << 18)))
    assert elsewhere["value"].iloc[0] == pytest.approx(truth, rel=0.05)
    assert elsewhere["status"].iloc[0] == "ok"


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"kernel": ["k"], "rank": [0]}),
        pd.DataFrame({"kernel": "k", "rank": 0, "bytes": [65536, 131072], "load_misses": np.nan}),
        pd.DataFrame({"kernel": "other", "rank": 0, "bytes": [65536, 131072], "load_misses": 1.0}),
        pd.DataFrame({"kernel": "k", "rank": 0, "bytes": [-1, 0], "load_misses": 1e300}),
    ],
)
def test_tables_of_others_are_no_locality(table: pd.DataFrame, tmp_path: Path) -> None:
    made_up = Experiment.create(tmp_path / "e", "made-up", ["ranks"])
    for ranks in (1.0, 2.0, 4.0):
        counters = pd.DataFrame({"kernel": "k", "rank": [0], "loads": 100.0, "loads_l1": 90.0, "loads_l2": 10.0})
        counters = counters.assign(loads_l3=0.0, loads_mem=0.0)
        run = Run({"ranks": ranks}, 0, "callgrind", provenance=dict.fromkeys(counters.columns[2:], CACHES))
        made_up.add(run, counters, tables={"cache_sizes": table})
    assert fit(made_up, platform=None).functions.locality is NO_LOCALITY
