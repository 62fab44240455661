"""Slabs that may become pencils, transposes along rows and columns, and partners that are drawn."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ranksight.comm.patterns.distances import Shift
from ranksight.comm.patterns.recognition import Explanation, explain
from ranksight.comm.patterns.rule import EdgeSet
from ranksight.core.dims import dims_create
from ranksight.core.errors import InputError
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.series.reducing import Series
from ranksight.model.structure.called import Called
from ranksight.model.structure.functions import Functions
from ranksight.model.structure.met import find_missed
from ranksight.model.structure.ranklaws import fit_rank_laws
from ranksight.model.structure.slabs import NO_SLABS, find_slabs
from ranksight.model.uncertainty.forecast import Forecast

POINTS = np.array(list(itertools.product((2.0, 4.0, 8.0), (16.0, 24.0, 32.0))))
RING = {"halo": (Explanation((Shift(1), Shift(-1))),)}


def series(**values: tuple[np.ndarray, np.ndarray]) -> Series:
    """Messages and bytes of kernels."""
    each = [column for pair in values.values() for column in pair]
    keys = [(kernel, name) for kernel in values for name in ("messages", "bytes_sent")]
    return Series(("ranks", "size"), POINTS, np.array(each)[:, :, None], *zip(*keys, strict=True))


def opened(given: Series, rules: dict[str, tuple[Explanation, ...]], transposing: set[str], ranks: float) -> Forecast:
    """What slabs answer at a number of ranks, for a value of 1 that is certain."""
    slabs = find_slabs(given, rules, transposing)
    points, one = np.array([[ranks, 32.0]]), np.ones((len(given.keys), 1))
    return slabs.improved(Forecast.settled(one, one, one), fit_series(given), points, ())


def halo() -> Series:
    """A ring of slabs with faces of size^2."""
    ranks, size = POINTS.T
    return series(halo=(20.0 + 0 * ranks, 160 * size**2))


def test_a_row_of_slabs_may_become_pencils() -> None:
    answer = opened(halo(), RING, {"fft"}, 16.0)
    # Neighbours along a second side, and faces of 4 x 4 pencils.
    assert (answer.lower[:, 0].tolist(), answer.upper[:, 0].tolist()) == ([1.0, 0.5], [2.0, 1.0])
    assert (answer.value == 1).all()


@pytest.mark.parametrize("ranks", [8.0, 13.0])
def test_there_are_no_pencils_within_the_runs_nor_on_a_prime_number(ranks: float) -> None:
    answer = opened(halo(), RING, {"fft"}, ranks)
    assert (answer.lower == 1).all()
    assert (answer.upper == 1).all()


def test_what_intervals_are_open_for_is_said_where_they_are() -> None:
    slabs = find_slabs(halo(), RING, {"fft"})
    assert "from slabs to pencils, as transforms do: the intervals of messages and bytes of halo" in slabs.remark(
        np.array([[8.0, 32.0], [16.0, 32.0]])
    )
    assert slabs.remark(np.array([[8.0, 32.0], [13.0, 32.0]])) == ""


def test_two_exchanges_take_the_place_of_one_transpose() -> None:
    ranks, size = POINTS.T
    given = series(fft=(6.0 + 0 * ranks, 96 * size**3 / ranks), sizes=(6.0 + 0 * ranks, 48.0 + 0 * ranks))
    answer = opened(given, {}, {"fft", "sizes"}, 12.0)
    # What does not shrink with the ranks is no block.
    assert answer.upper[:, 0].tolist() == [2.0, 2.5, 1.0, 1.0]
    assert (answer.lower == 1).all()


def test_what_goes_around_all_ranks_is_no_slab() -> None:
    ranks, size = POINTS.T
    given = series(halo=(2 * (ranks - 1), 16 * size * (ranks - 1)))
    assert find_slabs(given, RING, {"fft"}) is NO_SLABS
    assert find_slabs(halo(), {"halo": ()}, {"fft"}) is NO_SLABS


def test_a_row_of_ranks_in_a_program_without_transposes_stays_one() -> None:
    """A ring, or a rod that is cut along its length: what was counted exactly goes on exactly."""
    assert find_slabs(halo(), RING, ()) is NO_SLABS


def lines(axis: int) -> tuple[Explanation, ...]:
    """What explains that all exchange along one side of a 2-d grid on 2, 4 and 8 ranks."""
    sets = []
    for p in (2, 4, 8):
        at = np.unravel_index(np.arange(p), dims_create(p, 2))
        same = at[1 - axis][:, None] == at[1 - axis]
        source, target = np.nonzero(same & ~np.eye(p, dtype=bool))
        sets.append(EdgeSet.of(p, source, target))
    return explain([each for each in sets if each.codes.size])


def test_transposes_along_rows_are_as_those_along_columns() -> None:
    """With two ranks a row everyone is a neighbour; along columns of four it shows who is sent to."""
    sides = np.array([dims_create(int(p), 2) for p in POINTS[:, 0]], dtype=float)
    ranks, size = POINTS.T
    given = series(
        **{
            f"along {at}": (2 * (sides[:, at] - 1), 32 * size**3 * (1 - 1 / sides[:, at]) / ranks)
            for at in range(2)
        }
    )  # fmt: skip
    called = Called(ranks=8, rules={f"along {at}": lines(at) for at in range(2)})
    assert len(called.rules["along 0"]) == 1 < len(called.rules["along 1"])
    law = fit_rank_laws(given, set(given.keys), None, called)
    for p in (12, 16, 64):
        answer = law.predict(np.array([[float(p), 32.0]]))
        x, y = dims_create(p, 2)
        true = [[2 * (s - 1), 32 * 32**3 * (1 - 1 / s) / p] for s in (x, y)]
        assert answer.value[:, 0] == pytest.approx(np.ravel(true), rel=1e-6)
        assert (answer.upper[:, 0] <= 4 * answer.lower[:, 0]).all()


def test_what_goes_around_a_ring_to_all_is_met_though_there_are_two_neighbours() -> None:
    ranks, size = POINTS.T
    given = series(halo=(2 * (ranks - 1), 16 * size * (ranks - 1)))
    law = fit_rank_laws(given, set(given.keys), None, Called(ranks=8, partners={"halo": 1.75}, rules=RING))
    assert law.predict(np.array([[64.0, 32.0]])).value[:, 0] == pytest.approx([2 * 63, 16 * 32 * 63])


def test_what_drawn_partners_get_stays_and_lawless_counts_go_on() -> None:
    ranks, _ = POINTS.T
    drawn, grown = np.where(ranks == 2, 80.0, 30.0), np.where(ranks == 8, 800.0, 400.0)
    given = series(drawn=(drawn, drawn), matrix=(grown, grown))
    wrong = np.full((4, len(POINTS)), 30.0)
    wrong[2:] = grown[0]
    missed = find_missed(given, wrong, set(given.keys), {("drawn", "messages"), ("drawn", "bytes_sent")})
    now = Forecast.settled(np.full((4, 1), 5.0), np.full((4, 1), 4.0), np.full((4, 1), 6.0))
    most = Forecast.settled(*[np.array([[30.0], [30.0], [400.0], [400.0]])] * 3)
    answer = missed.opened(now, most, np.array([4.0]))
    assert answer.value[:, 0].tolist() == [30.0, 30.0, 5.0, 5.0]
    # Twice as much at 8 ranks as at 4 is four times as much at 32.
    assert answer.upper[2:, 0] == pytest.approx([3200 * 1.01] * 2)
    assert (answer.lower[2:, 0] == 4).all()


def test_damaged_slabs_are_refused() -> None:
    given = halo()
    functions = Functions(fit_series(given), slabs=find_slabs(given, RING, {"fft"}))
    content = functions.structures()
    assert Functions.with_structures(functions.fitted, content).slabs.keys == given.keys
    content["slabs"]["faces"] = [True]
    with pytest.raises(InputError):
        Functions.with_structures(functions.fitted, content)


def test_a_run_whose_side_is_longer_than_that_of_more_ranks_is_answered() -> None:
    """Three ranks stand in one row, eight make a cube: within the runs nothing is open for more of a row."""
    points = np.array(list(itertools.product(np.arange(1.0, 9.0), (16.0, 24.0))))
    sides = np.array([dims_create(int(p), 3) for p in points[:, 0]])
    sent = 20 * (1 - 1 / sides).sum(axis=1)
    given = Series(("ranks", "size"), points, sent[None, :, None], ("halo",), ("messages",))
    laws = fit_rank_laws(given, set(given.keys), None, Called(ranks=8, partners={"halo": 3.0}))
    assert laws.longer_sides(["halo"], np.array([3.0]), 8)
    functions = Functions(fit_series(given), laws=laws, irregular=given.keys, traced=8)
    assert functions.predict(points[2:]).value[0] == pytest.approx(sent[2:])
