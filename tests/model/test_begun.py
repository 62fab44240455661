"""Times that are nothing on one rank, or up to another value, and functions from there on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.series.reducing import Series
from ranksight.model.structure.called import Called
from ranksight.model.structure.levels import fit_levels
from ranksight.model.structure.ranklaws import fit_rank_laws
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.reports.formula import latex, python, readable

RANKS = np.array([1.0, 2, 4, 8, 12, 24, 48])


def sent(ranks: np.ndarray) -> np.ndarray:
    return np.where(ranks > 1, 0.2 / ranks + 0.004, 0.0)


def _fit(points: np.ndarray, exact: np.ndarray, parameters: tuple[str, ...]) -> Fitted:
    scatter = np.exp(0.01 * np.random.default_rng(5).normal(size=(1, len(points), 3)))
    return fit_series(Series(parameters, points, exact[None, :, None] * scatter, ("mpi",), ("time",)))


def test_nothing_on_one_rank_and_a_function_beyond():
    fitted = _fit(RANKS[:, None], sent(RANKS), ("ranks",))
    answer = fitted.predict(np.array([[1.0], [2.0], [96.0], [192.0]]))
    assert answer.value[0, 0] == answer.lower[0, 0] == answer.upper[0, 0] == 0
    np.testing.assert_allclose(answer.value[0, 1:], sent(np.array([2.0, 96.0, 192.0])), rtol=0.06)
    assert (answer.upper[0, 2:] < 4 * answer.lower[0, 2:]).all()
    again = Fitted.from_dict(json.loads(json.dumps(fitted.to_dict())))
    np.testing.assert_allclose(again.predict(np.array([[1.0], [96.0]])).value, answer.value[:, [0, 2]], rtol=1e-3)


def test_what_is_printed_holds_from_where_the_time_begins():
    text = _fit(RANKS[:, None], sent(RANKS), ("ranks",)).formula(0)
    assert readable(text).endswith("above ranks = 1, 0 below")
    assert "0 & " in latex(text)
    at = [eval(python(text, ("ranks",)), {"ranks": ranks}) for ranks in (1, 2, 96)]
    assert at == pytest.approx(sent(np.array([1.0, 2, 96])), rel=0.05)


def test_zeros_over_ranks_at_every_size():
    ranks, size = (each.ravel() for each in np.meshgrid([1.0, 2, 4, 8, 16], [16.0, 32, 64]))
    exact = sent(ranks) * (size / 32) ** 2
    fitted = _fit(np.column_stack([ranks, size]), exact, ("ranks", "size"))
    answer = fitted.predict(np.array([[1.0, 128.0], [32.0, 64.0]]))
    assert answer.value[0, 0] == 0
    assert answer.value[0, 1] == pytest.approx(4 * sent(np.array(32.0)), rel=0.1)


def late(*values: float) -> Forecast:
    """What is said at 16, 24, 32, 64 and 512 ranks of values at 2, 4, ... 32 ranks."""
    ranks = 2.0 ** np.arange(1, 6)
    return _fit(ranks[:, None], np.array(values), ("ranks",)).predict(np.array([[16.0], [24.0], [32.0], [64.0], [512]]))


def test_one_value_stands_where_it_was_measured_and_goes_either_way():
    said = late(0, 0, 0, 0, 3.0)
    assert (said.value[0, 0], said.lower[0, 0], said.upper[0, 0]) == (0, 0, 0)
    assert said.lower[0, 1] == 0, "it may not have begun yet"
    assert said.status[0, 1] == forecast.WIDE
    assert said.value[0, 2] == pytest.approx(3.0, rel=0.03)
    assert said.lower[0, 3] < 0.6 * 3.0
    assert said.upper[0, 3] > 1.2 * 3.0
    assert said.upper[0, 4] > 4 * said.lower[0, 4]


@pytest.mark.parametrize("slope", [-1.0, 0.0, 0.5, 1.0])
def test_two_values_show_how_it_goes_on(slope: float):
    said = late(0, 0, 0, 2.0, 2.0 * 2**slope)
    true = 2.0 * np.array([1, 2, 4, 32]) ** slope
    assert said.value[0, 2] == pytest.approx(true[1], rel=0.03)
    assert said.value[0, 3] == pytest.approx(true[2], rel=0.1)
    assert ((said.lower[0, 2:] < true[1:]) & (true[1:] < said.upper[0, 2:])).all()


def test_a_kernel_that_was_not_measured_on_one_rank_hides_no_change_of_others():
    sent = np.where(RANKS > 1, 0.02 + 0.01 * np.log2(RANKS), 1e-6)
    missing = np.where(RANKS > 1, 1 / RANKS, np.nan)
    values = np.stack([sent, missing])[:, :, None] * np.exp(0.01 * np.random.default_rng(5).normal(size=(2, 7, 3)))
    together = fit_series(Series(("ranks",), RANKS[:, None], values, ("exchange", "late"), ("time", "time")))
    alone = fit_series(Series(("ranks",), RANKS[:, None], values[:1], ("exchange",), ("time",)))
    assert "above ranks = " in together.formula(0)
    assert "above" not in together.formula(1)
    far = np.array([[96.0]])
    assert together.predict(far).value[0] == pytest.approx(alone.predict(far).value[0], rel=0.01)


@pytest.mark.parametrize("law", [lambda p: 0.1 / p + 0.01, lambda p: 0.02 * p ** (1 / 3), lambda p: 0.02 + 0 * p])
def test_what_one_rank_has_next_to_nothing_of_follows_from_the_others(law):
    ranks = np.array([1.0, 2, 4, 8, 16])
    exact = np.where(ranks > 1, law(ranks), 1e-6)
    fitted = _fit(ranks[:, None], exact, ("ranks",))
    answer = fitted.predict(np.array([[1.0], [2.0], [64.0]]))
    np.testing.assert_allclose(answer.value[0], [1e-6, law(2.0), law(64.0)], rtol=0.2)
    assert (answer.status[0] == forecast.OK).all()


def test_one_rank_is_set_apart_over_sizes_too():
    ranks, size = (each.ravel() for each in np.meshgrid([1.0, 2, 4, 8, 16], [1e5, 2e5, 4e5]))
    exchange = np.where(ranks > 1, 1e-7 * size / ranks + 0.01, 1e-5)
    scatter = np.exp(0.01 * np.random.default_rng(5).normal(size=(2, 15, 3)))
    values = np.stack([exchange, 1e-7 * size / ranks])[..., None] * scatter
    points = np.column_stack([ranks, size])
    fitted = fit_series(Series(("ranks", "size"), points, values, ("exchange", "work"), ("time", "time")))
    answer = fitted.predict(np.array([[1.0, 2e5], [8.0, 2e5], [64.0, 4e5]]))
    np.testing.assert_allclose(answer.value[0], [1e-5, 0.0125, 0.010625], rtol=0.2)
    assert "above ranks = 1" in fitted.formula(0)
    assert "above" not in fitted.formula(1)


@pytest.mark.parametrize("metric", ["mpi_time", "time"])
def test_time_in_mpi_is_a_time_of_messages(metric: str):
    made = Series(("ranks",), RANKS[:, None], np.ones((2, 7, 1)), ("main", "MPI_Send"), (metric, "time"))
    assert made.of_messages.tolist() == [metric == "mpi_time", True]


@pytest.mark.parametrize("kinds", [("messages", False), ("time", True)])
def test_other_zeros_are_no_boundary(kinds: tuple[str, bool]):
    """Counts have laws of their own, and a zero may be a time that no sample fell on."""
    name, drawn = kinds
    values = np.array([0, 0, 0, 0, 64.0])[None, :, None]
    worth = np.full(values.shape, 1.0 if drawn else np.nan)
    made = Series(("ranks",), 2.0 ** np.arange(1, 6)[:, None], values, ("exchange",), (name,), worth=worth)
    assert not fit_series(made).below


def counts(law, ranks: tuple[int, ...], sizes: tuple[int, ...] = (16, 32)) -> Series:
    """Bytes by a law of ranks and size."""
    points = np.array([(p, n) for p in ranks for n in sizes], dtype=float)
    return Series(("ranks", "size"), points, law(*points.T)[None, :, None], ("halo",), ("bytes_sent",))


@pytest.mark.parametrize(("last", "power"), [(1, 2 / 3), (2, 1 / 2)])
def test_counts_are_fitted_from_where_they_begin(last: int, power: float):
    made = counts(lambda p, n: (p > last) * 48 * n**2 / p**power, (1, 2, 4, 8, 16)[: 4 + (last > 1)])
    fitted = fit_series(made)
    assert fitted.formula(0).endswith(f"above ranks = {last}, 0 below")
    answer = fitted.predict(np.array([[last, 32.0], [32, 32], [64, 64]]))
    assert (answer.value[0, 0], answer.upper[0, 0]) == (0, 0)
    assert answer.value[0, 1:] == pytest.approx([48 * 32**2 / 32**power, 48 * 64**2 / 64**power])
    assert fitted.at_training(made.points)[0] == pytest.approx(made.values[0, :, 0])


def test_what_is_printed_of_two_sizes_has_both_beginnings():
    text = fit_levels(counts(lambda p, n: (p > 1) * 48 * n**2 / p ** (2 / 3), (1, 2, 4, 8))).formula(0)
    assert latex(text).count(r"\begin{cases}") == 3
    at = [eval(python(text, ("ranks", "size")), {"ranks": p, "size": n}) for p, n in ((1, 16), (8, 16), (8, 32))]
    assert at == pytest.approx([0, 12 * 16**2, 12 * 32**2], rel=1e-3)


@pytest.mark.parametrize(
    "law",
    [
        lambda p, n: 8 * n * (p - 1),
        lambda p, n: 8 * n**3 * (p - 1) / p**2,
        lambda p, n: 8 * n * np.log2(p),
        lambda p, n: 8.0 * n * (p > 1),
    ],
)
def test_a_law_that_is_nothing_on_one_rank_does_not_begin(law):
    assert not fit_series(counts(law, (1, 2, 4, 8, 16))).below


def test_what_begins_on_several_ranks_may_follow_a_side_or_a_node():
    """The third side of a grid is cut from eight ranks on, where a second node begins as well."""
    ranks = 2.0 ** np.arange(6)
    made = Series(("ranks",), ranks[:, None], ((ranks > 4) / ranks)[None, :, None], ("halo",), ("bytes_sent",))
    fitted, asked = fit_series(made), np.array([[64.0]])
    assert fitted.below
    keys = set(made.keys)
    doubtful = fit_rank_laws(made, keys, None, Called(), keys).among(fitted.predict(asked), asked)
    assert doubtful.lower[0, 0] <= 1 / 64
    assert doubtful.upper[0, 0] >= 3 / 64
    traced = Called(along={"halo": frozenset({"z of 3"})})
    assert not fit_rank_laws(made, keys, None, traced, keys).chance.any()


def test_counts_that_end_are_the_same_beside_counts_that_begin():
    """Misses that are none on eight ranks, as the data fit into the caches, next to bytes that begin on two."""
    ranks = np.array([1.0, 2, 4, 8, 16])
    rows = np.array([(ranks > 1) * 48e3 / ranks ** (2 / 3), [9e5, 4e5, 1e5, 0, 0]])
    kinds = (("halo", "solve"), ("bytes_sent", "loads_mem"))
    together = fit_series(Series(("ranks",), ranks[:, None], rows[:, :, None], *kinds))
    single = fit_series(Series(("ranks",), ranks[:, None], rows[1:, :, None], ("solve",), ("loads_mem",)))
    assert [part.rows.tolist() for part in together.below] == [[0]]
    assert not single.below
    again = Fitted.from_dict(json.loads(json.dumps(together.to_dict())))
    asked = np.array([[1.0], [4.0], [8.0], [32.0]])
    np.testing.assert_allclose(again.predict(asked).value, together.predict(asked).value, rtol=1e-9)
    np.testing.assert_allclose(together.predict(asked).value[1], single.predict(asked).value[0], rtol=1e-9)


def test_counts_that_scatter_have_a_function_from_where_they_begin():
    """Turns of a solver on two ranks and more, far off any function of them and of nothing on one."""
    ranks, sizes = np.repeat([1.0, 2, 4, 8], 3), np.tile([10.0, 14, 18], 4)
    turns = np.array([0.0, 0, 0, 319, 379, 448, 481, 397, 679, 352, 724, 781])
    points = np.column_stack([ranks, sizes])
    fitted = fit_series(Series(("ranks", "size"), points, turns[None, :, None], ("dot",), ("messages",)))
    answer = fitted.predict(np.array([[1.0, 18], [8, 18], [12, 18]]))
    assert answer.value[0, 0] == 0
    assert (answer.lower[0, 1:] < [781, 808]).all()
    assert (answer.upper[0, 1:] > [781, 808]).all()


def test_zeros_in_between_are_no_beginning():
    exact = np.where(RANKS == 8, 0.0, sent(RANKS))
    assert not _fit(RANKS[:, None], exact, ("ranks",)).below


def _table(folder: Path, third: str) -> Experiment:
    """Times alone of three kernels, the last of which takes none on one rank."""
    made = Experiment.create(folder, "late", ["ranks"])
    rng = np.random.default_rng(3)
    for ranks in RANKS:
        for rep in range(3):
            times = np.array([3 / ranks, 1 / ranks, float(sent(ranks))]) * np.exp(0.01 * rng.normal(size=3))
            rows = {"kernel": ["solve", "update", third], "rank": -1, "time": times}
            made.add(Run({"ranks": float(ranks)}, rep), pd.DataFrame(rows))
    return made


def test_messages_are_no_work_that_shares_memory(tmp_path):
    fit(_table(tmp_path / "e", "mpi"), platform="haswell-e5-2680v3").save(tmp_path / "m.json")
    model = Model.load(tmp_path / "m.json")
    answers = {each.kernel: each for each in model.predict(ranks=96, metrics=["time"]).answers}
    assert answers["mpi"].value == pytest.approx(sent(np.array(96.0)), rel=0.15)


def test_a_kernel_that_begins_on_two_ranks_can_be_stored(tmp_path):
    fit(_table(tmp_path / "e", "pack"), cores_per_domain=12, ranks_per_node=24).save(tmp_path / "m.json")
    assert Model.load(tmp_path / "m.json").predict(ranks=96, metrics=["time"]).answers


@pytest.mark.parametrize("fewest", [2, 4])
def test_a_tree_and_the_cut_sides_of_a_grid_are_the_same_at_powers_of_two(fewest: int, tmp_path: Path) -> None:
    """Bytes of a butterfly; the grid's sum goes on to 14 % more at 128 ranks, and was sure of it."""
    made = Experiment.create(tmp_path / "fft.exp", "fft", ["ranks"])
    for ranks in 2.0 ** np.arange(np.log2(fewest), 6):
        table = pd.DataFrame({"kernel": ["exchange"], "rank": [0], "bytes_sent": [2**28 * np.log2(ranks) / ranks]})
        made.add(Run({"ranks": ranks}), table)
    asked = np.array([128.0, 256.0])
    answer = fit(made).predict(ranks=asked.tolist()).table()
    answer = answer[(answer["metric"] == "bytes_sent") & (answer["kernel"] == "exchange")]
    for low, high, truth in zip(answer["lower"], answer["upper"], 2**28 * np.log2(asked) / asked, strict=True):
        assert 0.98 * low < truth < 1.02 * high
        assert high < 2.1 * low


@pytest.mark.parametrize("law", [lambda p, n: 15 * n**3 * np.log2(n) / p, lambda p, n: 7 * n**2.25 / p])
def test_three_powers_of_two_divide_work_rather_than_cut_a_grid(law) -> None:
    """A side over the ranks is a share of them at two, four and eight; half of each was said of sixteen."""
    points = np.array([(p, n) for p in (2.0, 4, 8) for n in (64.0, 128, 256)])
    fitted = fit_series(Series(("ranks", "n"), points, law(*points.T)[None, :, None], ("fft",), ("flops",)))
    assert "grid" not in fitted.formula(0)
    asked = np.array([[16.0, 256], [64, 128], [64, 256]])
    np.testing.assert_allclose(fitted.predict(asked).value[0], law(*asked.T), rtol=1e-3)
