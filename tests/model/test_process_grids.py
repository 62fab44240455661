"""Counts on process grids whose sides do not grow as the ranks do: met exactly, and open where the points are."""

from __future__ import annotations

from collections.abc import Callable
from math import log2
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.comm.patterns.grid import Cartesian
from ranksight.core.dims import dims_create
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.laws.messages import TREE
from ranksight.model.search.gridterms import GRID_TERMS, grid_values
from ranksight.model.search.terms import ON_GRIDS, values, write_term
from ranksight.model.series.reducing import Series
from ranksight.model.structure.neighbourfit import dimensions_of
from ranksight.model.uncertainty.forecast import Forecast

Count = Callable[[int], float]


def fitted(count: Count, ranks: list[int], metric: str = "messages") -> Fitted:
    each = np.array([[[count(p)] for p in ranks]], dtype=np.float64)
    return fit_series(Series(("ranks",), np.array(ranks, dtype=np.float64)[:, None], each, ("k",), (metric,)))


def halo_2d(p: int) -> float:
    """Bytes of a halo of 96 points an edge, on a grid that ends."""
    x, y = dims_create(p, 2)
    return 80 * 96 * (2 * (1 - 1 / x) / y + 2 * (1 - 1 / y) / x)


def neighbours_3d(p: int) -> float:
    return 20 * sum(1 - 1 / side for side in dims_create(p, 3))


def surface_3d(p: int) -> float:
    """Work of a block of 48^3 points and of its six faces."""
    x, y, z = dims_create(p, 3)
    return 30 * 48**3 / p + 44 * 48**2 * (1 / (x * y) + 1 / (y * z) + 1 / (x * z)) + 900


def pencils(p: int) -> float:
    x, y = dims_create(p, 2)
    return 16 * 64**3 / p * ((1 - 1 / x) + (1 - 1 / y))


@pytest.mark.parametrize("count", [halo_2d, neighbours_3d, surface_3d, pencils])
@pytest.mark.parametrize("ranks", [[1, 2, 4, 8, 16], [2, 4, 6, 8, 12, 16]])
def test_counts_that_follow_the_sides_are_met_at_any_ranks(count: Count, ranks: list[int]) -> None:
    asked = [24, 32, 48, 96, 128]
    answer = fitted(count, ranks).predict(np.array(asked, dtype=np.float64)[:, None])
    assert (answer.status == 0).all()
    assert answer.value[0] == pytest.approx([count(p) for p in asked], rel=1e-3)


@pytest.mark.parametrize("count", [neighbours_3d, lambda p: 10 * log2(p) + 5, halo_2d])
def test_what_few_ranks_cannot_distinguish_is_in_the_interval(count: Count) -> None:
    answer = fitted(count, [1, 2, 4, 8]).predict(np.array([[64.0]]))
    assert answer.status[0, 0] != 0 or answer.lower[0, 0] <= count(64) <= answer.upper[0, 0]
    # Neighbours, trees and cut sides agree up to eight ranks: 1, 2 and 3 of them.
    assert answer.upper[0, 0] > 1.2 * answer.lower[0, 0]


def ghosted(p: int, d: int, n: float, layers: int) -> float:
    """Work on all cells of a block, with ghost layers on both sides where the domain is cut."""
    return 30 * float(np.prod([n / side + 2 * layers * (side > 1) for side in dims_create(p, d)]))


@pytest.mark.parametrize("ranks", [[1, 2, 4, 8, 12, 24, 48], [2, 4, 8, 16, 32, 64]])
@pytest.mark.parametrize(("d", "layers"), [(2, 1), (2, 3), (3, 1), (3, 2)])
def test_ghost_layers_exist_where_a_side_is_cut(d: int, layers: int, ranks: list[int]) -> None:
    answer = fitted(lambda p: ghosted(p, d, 120, layers), ranks, "instructions").predict(np.array([[96.0], [1024.0]]))
    assert (answer.status == 0).all()
    assert answer.value[0] == pytest.approx([ghosted(p, d, 120, layers) for p in (96, 1024)], rel=1e-6)


@pytest.mark.parametrize("order", [("ranks", "size"), ("size", "ranks")])
@pytest.mark.parametrize("d", [2, 3])
def test_ghost_layers_over_ranks_and_sizes(d: int, order: tuple[str, str]) -> None:
    places = [(p, n) for n in (48, 64, 96) for p in (1, 2, 4, 8)]
    points = np.array([place if order[0] == "ranks" else place[::-1] for place in places], dtype=np.float64)
    each = np.array([[[ghosted(p, d, n, 1)] for p, n in places]])
    answer = fit_series(Series(order, points, each, ("k",), ("instructions",))).predict(
        np.array([(27.0, 96.0), (512.0, 192.0)])[:, :: 1 if order[0] == "ranks" else -1]
    )
    assert (answer.status == 0).all()
    assert answer.value[0] == pytest.approx([ghosted(27, d, 96, 1), ghosted(512, d, 192, 1)], rel=1e-3)


@pytest.mark.parametrize("metric", ["messages", "instructions"])
@pytest.mark.parametrize(
    "count",
    [
        lambda p: 7e6 / p + 400 * p + 5e4,
        lambda p: 9e5 / p + 88 * log2(p),
        lambda p: 12.0 * (p - 1),
        lambda p: 8192.0 * p,
        lambda p: 60000 + 2000.0 * p,
        lambda p: 9 * 2**18 / p * log2(2**18 / p) + 77 * p,
    ],
)
def test_smooth_exact_counts_keep_their_narrow_intervals(metric: str, count: Count) -> None:
    answer = fitted(count, [1, 2, 4, 8, 16], metric).predict(np.array([[64.0], [256.0]]))
    assert (answer.status == 0).all()
    assert answer.value[0] == pytest.approx([count(64), count(256)], rel=1e-6)
    assert (answer.upper < 1.02 * answer.lower).all()


@pytest.mark.parametrize(
    ("count", "ends"),
    [
        (lambda p: 8192.0 * p, False),
        (lambda p: 8192.0 * p + 9e5 / p, False),
        (lambda p: 60000 + 2000.0 * p, True),
        (lambda p: 7.0 * (p - 1), True),
    ],
)
def test_what_goes_by_all_ranks_goes_to_no_partners(count: Count, ends: bool) -> None:
    """Partners are one less than the ranks; a rest that is as much as each of them would be chance."""
    answer = fitted(count, [1, 2, 3, 4, 6, 8], "instructions").predict(np.array([[64.0]]))
    assert answer.value[0, 0] == pytest.approx(count(64), rel=1e-6)
    assert answer.upper[0, 0] < 1.01 * count(64)
    assert (answer.lower[0, 0] < 0.6 * count(64)) == ends


def test_nothing_at_one_rank_is_no_reason_to_refuse_the_rest() -> None:
    answer = fitted(lambda p: 12.0 * (p - 1), [1, 2, 4, 8]).predict(np.array([[16.0]]))
    assert answer.status[0, 0] == 0
    assert answer.value[0, 0] == pytest.approx(12 * 15, rel=1e-6)
    # Neighbours all around are all others up to eight ranks.
    assert answer.lower[0, 0] <= 12 * 9 * (1 + 1e-3)


def test_what_several_ranks_do_and_one_does_not_goes_on() -> None:
    answer = fitted(lambda p: 6.0 if p == 1 else 8.0, [1, 2, 4, 8]).predict(np.array([[16.0], [64.0]]))
    assert (answer.status == 0).all()
    assert (answer.lower <= 8).all()
    assert (answer.upper >= 8).all()


@pytest.mark.parametrize("ranks", [[2, 4, 8], [2, 4, 8, 16]])
@pytest.mark.parametrize("count", [lambda p: 252 - 248 / p, lambda p: 2**20 * (1 / p - 1 / p**2)])
def test_what_all_ranks_but_one_do_is_inside(count: Count, ranks: list[int]) -> None:
    answer = fitted(count, ranks).predict(np.array([[16.0], [32.0], [64.0]]))
    true = np.array([count(p) for p in (16, 32, 64)])
    assert ((answer.lower[0] <= true * (1 + 1e-6)) & (true <= answer.upper[0] * (1 + 1e-6))).all()


def test_a_time_follows_no_grid() -> None:
    found = fitted(halo_2d, [2, 4, 8, 16, 32], "time")
    assert not np.isin(found.terms[..., 2], -1.0 - np.arange(len(GRID_TERMS))).any()


def test_counts_over_ranks_and_sizes_follow_the_sides() -> None:
    def count(p: float, n: float) -> float:
        x, y = dims_create(int(p), 2)
        return 44 * n * n / p + 62 * n * (1 / x + 1 / y) + 500

    points = np.array([[p, n] for p in (1, 2, 4, 8, 16) for n in (16, 24, 32)], dtype=np.float64)
    each = np.array([[[count(p, n)] for p, n in points]])
    asked = np.array([[32, 48], [64, 32], [128, 24]], dtype=np.float64)
    answer = fit_varied(Series(("ranks", "size"), points, each, ("k",), ("instructions",))).predict(asked)
    assert (answer.status == 0).all()
    assert answer.value[0] == pytest.approx([count(p, n) for p, n in asked], rel=1e-6)


def test_a_face_that_looks_constant_at_few_ranks_is_within_the_interval() -> None:
    """The faces of a block are as long at 2, 4 and 8 ranks, and shorter at 16."""

    def count(p: float, n: float) -> float:
        x, y = dims_create(int(p), 2)
        return 6040 * n * (x + y - 2) / p + 21080 * (2 - 1 / x - 1 / y)

    points = np.array([[p, n] for p in (2, 4, 8) for n in (16, 24, 32)], dtype=np.float64)
    each = np.array([[[count(p, n)] for p, n in points]])
    asked = np.array([[16, 32], [64, 48]], dtype=np.float64)
    answer = fit_varied(Series(("ranks", "size"), points, each, ("k",), ("instructions",))).predict(asked)
    true = np.array([count(p, n) for p, n in asked])
    assert ((answer.lower[0] <= true * (1 + 1e-3)) & (true <= answer.upper[0] * (1 + 1e-3))).all()


def test_work_and_reductions_that_grow_apart_with_the_size_are_met_with_three_sizes() -> None:
    def count(p: float, n: float) -> float:
        return float(14 * n**3 / p + 66 * n**2 / np.sqrt(p))

    points = np.array([[p, n] for p in (1, 2, 4, 8, 16) for n in (16, 24, 32)], dtype=np.float64)
    each = np.array([[[count(p, n)] for p, n in points]])
    answer = fit_varied(Series(("ranks", "size"), points, each, ("k",), ("instructions",))).predict(
        np.array([[64.0, 48.0]])
    )
    assert answer.value[0, 0] == pytest.approx(count(64, 48), rel=1e-6)
    assert answer.lower[0, 0] <= count(64, 48) <= answer.upper[0, 0]


def test_collectives_grow_with_the_steps_of_a_tree() -> None:
    ranks = np.array([[2.0], [5.0], [12.0], [64.0]])
    for factor, steps in zip(TREE, (np.log2(ranks), np.ceil(np.log2(ranks)), ranks - 1), strict=True):
        assert values(np.array(factor)[None, None], ranks) == pytest.approx(steps.T)


def test_work_that_one_rank_deals_out_is_shared_by_the_others() -> None:
    """A single rank does it itself; counts are means over the ranks that have it."""

    def count(p: float, n: float) -> float:
        return 400 * n * n / max(p - 1, 1)

    points = np.array([[p, n] for p in (1, 2, 4, 8) for n in (2, 4, 6)], dtype=np.float64)
    each = np.array([[[count(p, n)] for p, n in points]])
    asked = np.array([[16, 6], [27, 6], [64, 8]], dtype=np.float64)
    answer = fit_varied(Series(("ranks", "size"), points, each, ("k",), ("instructions",))).predict(asked)
    assert answer.value[0] == pytest.approx([count(p, n) for p, n in asked], rel=1e-3)


def rounds(p: int) -> float:
    """Messages of a rank in forty reductions over all, by recursive doubling."""
    return 40.0 * (p - 1).bit_length()


def test_steps_of_a_tree_are_whole() -> None:
    """At 4, 8 and 12 ranks they are met by a straight line, too."""
    asked = [24, 48, 96, 192]
    answer = fitted(rounds, [4, 8, 12]).predict(np.array(asked, dtype=np.float64)[:, None])
    assert answer.value[0] == pytest.approx([rounds(p) for p in asked], rel=1e-3)


def test_between_powers_of_two_a_tree_has_two_heights() -> None:
    said = fitted(rounds, [2, 4, 8, 16]).predict(np.array([[24.0], [64.0]]))
    assert said.lower[0, 0] <= 40 * log2(24) < rounds(24) <= said.upper[0, 0]
    assert said.value[0, 1] == pytest.approx(rounds(64), rel=1e-3)


def test_terms_are_those_of_the_sides() -> None:
    x, y, z = dims_create(12, 3)
    assert (x, y, z) == (3, 2, 2)
    held = {each.text: value for each, value in zip(GRID_TERMS, grid_values(np.array([12.0]))[:, 0], strict=True)}
    assert held["(1 - 1/x) + (1 - 1/y) + (1 - 1/z)"] == pytest.approx(2 / 3 + 1 / 2 + 1 / 2)
    assert held["(x + y + z) / ranks"] == pytest.approx(1 / 4 + 1 / 6 + 1 / 6)
    assert held["[s > 1]".replace("s", "x") + " + [y > 1] + [z > 1]"] == 3


@pytest.mark.parametrize("number", range(len(GRID_TERMS)))
def test_terms_grow_as_they_say(number: int) -> None:
    near, far = grid_values(np.array([2.0**18, 2.0**24]))[number]
    each = GRID_TERMS[number]
    said = 2.0 ** (6 * each.power) * (24 / 18) ** each.log
    assert far / near == pytest.approx(said, rel=0.03)


def test_terms_have_no_value_where_no_ranks_are() -> None:
    assert np.isnan(grid_values(np.array([0.0, -3.0, np.nan, np.inf]))).all()
    term = np.array(ON_GRIDS[3])[None, None]
    assert values(term, np.array([[16.0]]))[0, 0] == pytest.approx(1 / 2)
    assert write_term(term[0], ("ranks",)) == "(1/x + 1/y on a 2-d grid)"


def test_a_model_file_names_no_grid_that_is_not_known() -> None:
    content = fitted(halo_2d, [1, 2, 4, 8, 16]).to_dict()
    assert Fitted.from_dict(content).predict(np.array([[64.0]])).value[0, 0] == pytest.approx(halo_2d(64))
    content["terms"] = [[[0.0, 0.0, -1e6]] for _ in content["terms"]]
    with pytest.raises(InputError, match="does not fit together"):
        Fitted.from_dict(content)


def test_blocks_with_what_surrounds_them_are_met() -> None:
    # A polynomial in log2 of the ranks meets 1, 2, 4 and 8 as well.
    def count(p: int) -> float:
        x, y, z = dims_create(p, 3)
        return 56 * ((12 / x + 2) * (12 / y + 2) + (12 / y + 2) * (12 / z + 2) + (12 / x + 2) * (12 / z + 2))

    answer = fitted(count, [1, 2, 4, 8], "bytes_sent").predict(np.array([[32.0], [64.0]]))
    assert answer.value[0] == pytest.approx([count(32), count(64)], rel=1e-3)


def test_counts_that_no_function_meets_open_faster() -> None:
    # Whole cells a side, 9, 4, 2: what is left of each halving, 4/9, is nearly a power of the ranks up to eight.
    def cells(p: int) -> float:
        return 3.0 * np.prod([9 // side for side in dims_create(p, 3)])

    near, exact = (fitted(count, [1, 2, 4, 8], "visits") for count in (cells, lambda p: 2187 / p))
    width = [np.log(a.upper / a.lower)[0, 0] for a in (each.predict(np.array([[16.0]])) for each in (near, exact))]
    assert width[0] > 1.5 * width[1]


def test_kernels_of_a_program_share_its_process_grid() -> None:
    # Up to eight ranks the shorter side of a grid of two dimensions is the middle one of three; the others show which.
    points = np.array([[p, n] for p in (1, 2, 3, 4, 6, 8) for n in (40, 56, 80)], dtype=np.float64)

    def side(p: float, n: float) -> float:
        return 6000 + 1080 * n / dims_create(int(p), 2)[1]

    def edges(p: float, n: float) -> float:
        x, y = dims_create(int(p), 2)
        return 5760 + 1440 * n * (1 / x + 1 / y)

    def said(*counts: Callable[[float, float], float]) -> tuple[float, float]:
        each = np.array([[[count(p, n)] for p, n in points] for count in counts])
        names = tuple(f"k{at}" for at in range(len(counts)))
        answer = fit_varied(Series(("ranks", "size"), points, each, names, ("instructions",) * len(counts))).predict(
            np.array([[36.0, 80.0]])
        )
        return answer.value[0, 0], answer.upper[0, 0] / answer.lower[0, 0]

    alone, together = said(side), said(side, edges, edges)
    assert alone[1] > 1.5
    assert together == (pytest.approx(side(36, 80), rel=1e-3), pytest.approx(1.0, abs=1e-2))


def test_a_traced_grid_is_that_of_kernels_too(tmp_path: Path) -> None:
    """Up to nine ranks the shorter side of a plane's grid is the middle one of a box's: who sends to whom decides."""
    made = Experiment.create(tmp_path / "plane.exp", "plane", ["ranks"])
    for p in (1, 2, 4, 8, 9):
        y = dims_create(p, 2)[1]
        counted = pd.DataFrame([("edge", rank, 4000.0 / y) for rank in range(p)], columns=["kernel", "rank", "visits"])
        pairs = sorted(Cartesian(2, (False, False)).pairs(p))
        peers = pd.DataFrame(pairs, columns=["rank", "peer"]).assign(operation="Isend", count=1, bytes=1)
        made.add(Run({"ranks": p}, 0, "counted"), counted, tables={"peers": peers} if len(peers) else {})
    assert set(dimensions_of(made)) == {2}
    found = fit(made).predict(ranks=256, kernels=["edge"]).table()
    assert found["value"].tolist() == pytest.approx([4000 / 16], rel=1e-3)
    assert (found["upper"] / found["lower"]).tolist() == pytest.approx([1.0], abs=0.05)


def test_a_side_that_no_run_cuts_further_may_be_work_that_no_more_ranks_share() -> None:
    """Counts that fall up to four ranks and are the same on eight go on to fall, or have ended."""
    points = np.array([[p, n] for p in (1, 2, 4, 8) for n in (16, 24, 32)], dtype=np.float64)

    def answer(*counts: Callable[[float, float], float]) -> Forecast:
        each = np.array([[[count(p, n)] for p, n in points] for count in counts])
        names = tuple(f"k{at}" for at in range(len(counts)))
        made = Series(("ranks", "size"), points, each, names, ("instructions",) * len(counts))
        return fit_varied(made).predict(np.array([[16.0, 32.0]]))

    def shared(p: float, n: float) -> float:
        return 1e6 * n**3 / p + 2e6 * n**2 / min(p, 4)

    said = answer(shared)
    assert said.lower[0, 0] <= shared(16, 32) * (1 + 1e-6)
    assert said.upper[0, 0] >= shared(16, 32) * (1 - 1e-6)
    plain = answer(lambda p, n: 1e6 * n**3 / p + 3e5 * n**2)
    assert plain.upper[0, 0] < 1.02 * plain.lower[0, 0]
