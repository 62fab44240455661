"""Messages of collectives and grids at any number of ranks: counted by walking the algorithms, rank for rank."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

from ranksight.core.dims import dims_create
from ranksight.core.errors import InputError
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.messages.volumes import Volumes, fit_volumes
from ranksight.model.series.reducing import Series
from ranksight.model.structure.called import Called
from ranksight.model.structure.ranklaws import NO_RANK_LAWS, RankLaws, fit_rank_laws
from ranksight.model.structure.rankterms import RANK_TERMS, term_values
from ranksight.model.structure.traced import lines_of


def tree(p: int) -> int:
    """A reduction along a binomial tree over every prefix of the ranks: rank r sends once for each bit set in it."""
    return sum(bin(rank).count("1") for rank in range(p))


def doubling(p: int) -> int:
    """Recursive doubling: ranks beyond the largest power of two hand their part over and get the result."""
    among = 1
    while 2 * among <= p:
        among *= 2
    sent, far = 2 * (p - among), 1
    while far < among:
        sent, far = sent + among, 2 * far
    return sent


def dissemination(p: int) -> int:
    """Every rank sends 2^k ranks ahead as long as that is not around all of them."""
    far, sent = 1, 0
    while far < p:
        far, sent = 2 * far, sent + p
    return sent


def rows(p: int) -> int:
    """Along the rows of a grid everyone gets 3 from the first of its row; the first column hands 5 down."""
    x, y = dims_create(p, 2)
    return sum(3 * (i > 0) + 5 * (i == 0 and j > 0) for i in range(x) for j in range(y))


def torus(p: int) -> int:
    """Six neighbours on a periodic grid, none along an uncut side; slabs of five and seven ranks need two hops."""
    sides = dims_create(p, 3)
    return p * sum(2 * (1 + (side in (5, 7))) for side in sides if side > 1)


def wrapped(p: int) -> int:
    """Faces with margins of a periodic cube of 840 cells a side; ranks send to themselves along uncut sides."""
    x, y, z = (840 // side + 40 for side in dims_create(p, 3))
    return p * 2 * (x * y + y * z + z * x)


def neighbours(p: int, periodic: bool, cells: int | None = None) -> int:
    """All around, across edges and corners too, none of them a rank itself; or the cells that they get."""
    sides, found = dims_create(p, 3), 0
    for at in itertools.product(*map(range, sides)):
        for step in itertools.product((-1, 0, 1), repeat=3):
            to = [a + s for a, s in zip(at, step, strict=True)]
            if periodic:
                to = [a % side for a, side in zip(to, sides, strict=True)]
            if tuple(to) != at and all(0 <= a < side for a, side in zip(to, sides, strict=True)):
                flat = [cells // side for s, side in zip(step, sides, strict=True) if not s] if cells else []
                found += prod(flat)
    return found


def counted(
    ranks: Sequence[int], law: Callable[[int], float], called: Called | None = None, name: str = "messages"
) -> RankLaws:
    """The laws of a metric of one kernel."""
    points = np.array(ranks, dtype=float)[:, None]
    series = Series(("ranks",), points, np.array([law(p) for p in ranks])[None, :, None], ("k",), (name,))
    return fit_rank_laws(series, set(series.keys), None, called)


def met(p: int, d: int) -> int:
    """Ranks met all around on a periodic grid, each once."""
    sides = dims_create(p, d)
    rank = np.arange(p).reshape(sides)
    around = itertools.product((-1, 0, 1), repeat=d)
    return len({int(np.roll(rank, step, axis=tuple(range(d))).ravel()[0]) for step in around}) - 1


@pytest.mark.parametrize(("d", "ranks"), [(3, (1, 2, 4, 8, 16)), (3, (6, 12, 24, 48)), (2, (1, 4, 9, 16))])
def test_neighbours_that_are_met_twice_count_once(d: int, ranks: Sequence[int]) -> None:
    laws = counted(ranks, lambda p: met(p, d))
    assert laws
    assert laws.predict(np.array([[27.0], [64.0], [100.0]])).value[0] == pytest.approx(
        [met(p, d) for p in (27, 64, 100)]
    )


def test_faces_of_neighbours_that_are_met_twice() -> None:
    def law(p: int) -> float:
        return 64 * sum((min(side, 3) - 1) * side for side in dims_create(p, 3)) / p

    said = counted((1, 2, 4, 8, 16), law, None, "bytes_sent").predict(np.array([[32.0], [64.0]]))
    assert said.value[0] == pytest.approx([law(32), law(64)])


@pytest.mark.parametrize("ranks", [(1, 2, 4, 8, 16), (1, 3, 9, 27)])
def test_partners_become_no_more(ranks: Sequence[int]) -> None:
    laws = counted(ranks, lambda p: 5.0 * min(p - 1, 6), Called())
    assert laws
    assert laws.formula(0) == "5 * (min(ranks - 1, 6))"
    said = laws.predict(np.array([[64.0]]))
    assert (said.lower[0, 0], said.value[0, 0], said.upper[0, 0]) == pytest.approx((30, 30, 30))


def test_what_goes_to_all_others_may_end_beyond_the_runs() -> None:
    """In a twentieth of the cases partners end below 64 / 4.55 ranks after 8; operations of all ranks never do. No block
    of a grid has all others as neighbours on 16 ranks, and few bands and groups are wider."""
    ranks = (1, 2, 3, 5, 8)
    laws = counted(ranks, lambda p: 3.0 * (p - 1), Called())
    said = laws.predict(np.array([[8.0], [12.0], [32.0]]))
    assert said.value[0] == pytest.approx([21, 33, 93])
    assert said.lower[0] == pytest.approx([21, 33, 3 * (64 / 4.55 - 1)])
    assert said.upper[0] == pytest.approx([21, 33, 93])
    sure = counted(ranks, lambda p: 3.0 * (p - 1), Called(together=frozenset({"k"})))
    assert sure.predict(np.array([[32.0]])).lower[0] == pytest.approx([93])
    many = counted((*ranks, 16), lambda p: 3.0 * (p - 1), Called())
    assert many.predict(np.array([[512.0]])).lower[0] == pytest.approx([3 * 511])


def test_what_all_ranks_send_equally_is_no_tree_and_no_group() -> None:
    """In a binomial tree, and between the first ranks of groups, some send what others do not."""
    ranks = (1, 2, 4, 8)
    either = counted(ranks, lambda p: 5.0 * np.log2(p), Called())
    equal = counted(ranks, lambda p: 5.0 * np.log2(p), Called(even=frozenset({("k", "messages")})))
    assert any("ones(" in name for one in either.sums[0] for name, _ in one)
    assert not any("ones(" in name for one in equal.sums[0] for name, _ in one)
    assert len(equal.sums[0]) < len(either.sums[0])


@pytest.mark.parametrize("name", ["visits", "instructions"])
@pytest.mark.parametrize("ranks", [(1, 2, 4, 8), (6, 12, 24, 48)])
def test_what_is_done_for_neighbours_or_for_all_others_is_in_the_interval(name: str, ranks: Sequence[int]) -> None:
    """Up to eight ranks all others are neighbours; 48 ranks show what those of a stencil are."""
    asked = np.array([[16.0], [96.0]])
    for once in (False, True):
        done = [1e3 * (met(p, 3) if once else p - 1) for p in ranks]
        points = np.array(ranks, dtype=float)[:, None]
        said = fit_series(Series(("ranks",), points, 500.0 + np.array(done)[None, :, None], ("pack",), (name,)))
        answer = said.predict(asked)
        true = 500 + 1e3 * np.array([met(int(p), 3) if once else p - 1 for p in asked[:, 0]])
        assert (answer.lower[0] <= true * (1 + 1e-9)).all()
        assert (true <= answer.upper[0] * (1 + 1e-9)).all()
        if ranks[-1] > 27:
            assert answer.value[0] == pytest.approx(true)


@pytest.mark.parametrize("ranks", [(1, 3, 9, 27), (1, 5, 25), (6, 12, 24, 48), (1, 2, 3, 5, 7)])
def test_messages_to_all_others_at_any_numbers_of_ranks(ranks: Sequence[int]) -> None:
    """A grid of prime numbers of ranks is a row, and blocks dealt out in turn meet all others there."""
    laws = counted(ranks, lambda p: p - 1.0)
    assert laws.formula(0).startswith("1 * (ranks - 1)")
    assert laws.predict(np.array([[16.0]])).value[0] == pytest.approx([15])
    assert laws.predict(np.array([[16.0]])).lower[0, 0] > 1


@pytest.mark.parametrize("periodic", [True, False])
def test_neighbours_across_edges_and_corners(periodic: bool) -> None:
    ranks, cells = range(2, 9), 840
    points = np.array([[p, cells] for p in ranks], dtype=float)
    values = np.array([[neighbours(p, periodic, n) / p for p in ranks] for n in (None, cells)])
    names = (("main: Send",) * 2, ("messages", "bytes_sent"))
    law = fit_rank_laws(Series(("ranks", "size"), points, values[:, :, None], *names), set(zip(*names, strict=True)))
    assert law
    assert set(law.metrics) == {"messages", "bytes_sent"}
    said = law.predict(np.array([[p, float(cells)] for p in (16, 27, 64)]))
    for metric, n in (("messages", None), ("bytes_sent", cells)):
        true = [neighbours(p, periodic, n) / p for p in (16, 27, 64)]
        assert said.value[law.metrics.index(metric)] == pytest.approx(true, rel=0.01)


def late(p: int) -> int:
    """All pairs, but two ranks repeat by the clock."""
    return 739 if p == 2 else 7 * p * (p - 1) + 12


def series(total: Callable[[int], float], ranks: Sequence[int], sizes: tuple[float, ...] = (32.0,)) -> Series:
    """Mean over ranks of what a function counts, times the size cubed."""
    points = np.array([[p, n] for n in sizes for p in ranks], dtype=float)
    values = np.array([total(int(p)) / p * (n / sizes[0]) ** 3 if p > 1 else np.nan for p, n in points])
    return Series(("ranks", "size"), points, values[None, :, None], ("main: Send",), ("messages",))


@pytest.mark.parametrize("total", [tree, doubling, dissemination, rows, torus, wrapped, late])
def test_ranks_not_measured_send_what_the_algorithm_does(total: Callable[[int], float]) -> None:
    law = fit_rank_laws(series(total, range(1, 9)), {("main: Send", "messages")})
    assert law
    asked = [12, 16, 24, 32, 128]
    for each in (law, RankLaws.from_dict(law.to_dict())):
        said = each.predict(np.array([[p, 32.0] for p in asked]))
        assert said.value[0] == pytest.approx([total(p) / p for p in asked])
        assert (said.lower[0] <= said.value[0]).all()
        assert (said.value[0] <= said.upper[0]).all()
    assert law.formula(0)


def channel(p: int) -> int:
    """Periodic along the two longest sides, between walls along the third."""
    x, y, z = dims_create(p, 3)
    return p * 2 * ((x > 1) + (y > 1)) + 2 * x * y * (z - 1)


@pytest.mark.parametrize("total", [doubling, channel])
def test_five_numbers_of_ranks_leave_the_truth_in_the_interval(total: Callable[[int], float]) -> None:
    law = fit_rank_laws(series(total, (1, 2, 4, 6, 8)), {("main: Send", "messages")})
    said = law.predict(np.array([[p, 32.0] for p in (12, 16, 27, 32, 64)]))
    true = np.array([total(p) / p for p in (12, 16, 27, 32, 64)])
    assert (said.lower[0] <= true * (1 + 1e-9)).all()
    assert (true <= said.upper[0] * (1 + 1e-9)).all()
    assert (said.upper[0] < 2.1 * true).all()


def test_coefficients_are_functions_of_the_size() -> None:
    given = series(rows, range(2, 9), (32.0, 48.0, 64.0))
    law = fit_rank_laws(given, {("main: Send", "messages")})
    assert law
    said = law.predict(np.array([[16.0, 64.0], [16.0, 96.0]]))
    assert said.value[0] == pytest.approx([rows(16) / 16 * 8, rows(16) / 16 * 27], rel=1e-3)


def test_what_no_sum_meets_is_not_claimed() -> None:
    chance = np.random.default_rng(1).uniform(1, 2, 9)
    assert fit_rank_laws(series(lambda p: 100 * chance[p], range(1, 9)), {("main: Send", "messages")}) is NO_RANK_LAWS


@pytest.mark.parametrize("total", [tree, doubling, dissemination, rows, torus])
def test_powers_of_two_leave_rivals_that_hold_the_truth(total: Callable[[int], float]) -> None:
    law = fit_rank_laws(series(total, (2, 4, 8)), {("main: Send", "messages")})
    assert law
    assert len(law.sums[0]) > 1 or law.chance[0]
    asked = np.array([[p, 32.0] for p in (16, 32, 64)])
    anything = replace(law.predict(asked), lower=np.zeros((1, 3)), upper=np.full((1, 3), 1e9))
    said = law.among(anything, asked)
    true = np.array([total(p) / p for p in (16, 32, 64)])
    assert (said.lower[0] <= true * (1 + 1e-9)).all()
    assert (true <= said.upper[0] * (1 + 1e-9)).all()


def counts(values: dict[int, tuple[float, float]]) -> Series:
    """Messages and bytes of one kernel by ranks."""
    found = np.array(list(values.values()), dtype=float).T
    return Series(("ranks",), np.array([list(values)], dtype=float).T, found[..., None], ("cg",) * 2, SENT)


SENT = ("messages", "bytes_sent")
BOTH = {("cg", name) for name in SENT}


def cg(p: int, steps: int = 15, length: int = 7000) -> tuple[float, float]:
    """Conjugate gradients on a 2-d grid: vectors and two numbers are summed along rows, then vectors transposed."""
    x = dims_create(p, 2)[0]
    doublings = (x - 1).bit_length()
    return steps * (1 + 3 * doublings), steps * (8 * length / x * (1 + doublings) + 16 * doublings)


@pytest.mark.parametrize("ranks", [(2, 4, 8), (2, 4, 8, 16)])
def test_conjugate_gradients_on_a_grid(ranks: tuple[int, ...]) -> None:
    law = fit_rank_laws(counts({p: cg(p) for p in ranks}), BOTH)
    assert law
    assert law.chance.all()  # two different values show no law
    asked = np.array([[16.0], [32.0], [64.0]])
    said = law.predict(asked)
    for row, name in enumerate(law.metrics):
        true = np.array([cg(int(p))[SENT.index(name)] for p in asked[:, 0]])
        assert (said.lower[row] <= true * 1.01).all()
        assert (true <= said.upper[row] * 1.01).all()
        if len(ranks) == 4:
            assert said.value[row] == pytest.approx(true, rel=0.01)


def test_one_rank_that_counts_proves_a_sum() -> None:
    """A reduction of a number for each rank, and of one: 12 p + 40 bytes, on one rank as well."""
    law = fit_rank_laws(counts({p: (10, 12.0 * p + 40) for p in (1, 2, 4, 8)}), BOTH, called=Called(frozenset({"cg"})))
    assert law
    assert not law.chance.any()
    said = law.predict(np.array([[16.0], [65536.0]]))
    row = law.metrics.index("bytes_sent")
    assert said.value[row] == pytest.approx([12 * 16 + 40, 12 * 65536 + 40])
    assert said.upper[row] == pytest.approx(said.lower[row])


def test_messages_go_to_no_more_neighbours_than_partners() -> None:
    """Around a ring every rank sends as often as there are others, to one; 27 neighbours are as many up to 8 ranks."""
    ring = counts({p: (2 * (p - 1), 800.0 * (p - 1)) for p in (2, 4, 8)})
    said = {}
    for name, called in (("unknown", None), ("ring", Called(ranks=8, partners={"cg": 1.0}))):
        law = fit_rank_laws(ring, BOTH, called=called)
        assert law
        row = law.metrics.index("messages")
        said[name] = law.predict(np.array([[64.0]]))
        assert said[name].lower[row, 0] <= 126 <= said[name].upper[row, 0] * (1 + 1e-9)
    assert said["unknown"].lower[row, 0] < 40
    assert said["ring"].lower[row, 0] == pytest.approx(126)


def test_bytes_of_small_units_may_be_met_by_chance() -> None:
    """Three totals of a few units are met by some sum; three of many are not."""
    few = fit_rank_laws(counts({2: (8, 8), 4: (10, 10), 8: (16, 16)}), BOTH)
    assert few
    assert few.chance.all()
    many = {p: (4.0, 100003.0 + 17 * (p - 1)) for p in (2, 4, 8)}
    law = fit_rank_laws(counts(many), BOTH)
    assert law
    assert not law.chance[law.metrics.index("bytes_sent")]


def test_no_coefficient_hangs_on_one_number_of_ranks() -> None:
    """Only eight ranks cut a third side: what they have beyond the others may be anything."""

    def total(p: int) -> float:
        return 4.0 * p + (9.0 if p == 8 else 0.0)

    law = fit_rank_laws(series(total, range(2, 9)), {("main: Send", "messages")})
    assert law
    assert all("z" not in name for name, _ in law.sums[0][0])
    assert law.predict(np.array([[64.0, 32.0]])).value[0, 0] == pytest.approx(4.0)


def test_leaving_the_largest_run_out_is_not_sure() -> None:
    """What eight ranks have beyond the others may be there on sixteen, too."""
    keys = {("main: Send", "messages")}
    for at, doubted in ((8, True), (7, False)):
        law = fit_rank_laws(series(lambda p, at=at: 4.0 * p + 9.0 * (p == at), range(2, 9)), keys)
        assert law is not None
        assert law.chance.all() == doubted


def test_recursive_halving_leaves_ranks_out() -> None:
    """Powers of two do not show whether all ranks halve: where each has a partner for every step both may be."""
    sent = {p: (np.log2(p), 1024.0 * (p - 1) / p) for p in (2, 4, 8)}
    halving = 1024.0 * 7 / 12
    for partners, inside in ((3.0, True), (1.0, False)):
        law = fit_rank_laws(counts(sent), BOTH, None, Called(ranks=8, partners={"cg": partners}))
        assert law is not None
        said = law.predict(np.array([[12.0]]))
        row = law.metrics.index("bytes_sent")
        assert (said.lower[row, 0] <= halving * (1 + 1e-9)) == inside
        assert said.upper[row, 0] >= 1024.0 * 11 / 12 * (1 - 1e-9)


def test_communicators_of_a_row_show_the_side() -> None:
    """1, 2, 2 and 4 ranks of 1, 2, 4 and 8 are rows of a plane; three ranks of each group are none."""
    rows = {p: {dims_create(p, 2)[0]} for p in (1, 2, 4, 8)}
    columns = {p: {dims_create(p, 2)[1]} for p in (1, 2, 4, 8)}
    lines = lines_of({"row": rows, "column": columns, "team": {1: {1}, 2: {2}, 4: {3}, 8: {3}}})
    assert lines == {"row": frozenset({"x of 2"}), "column": frozenset({"y of 2", "y of 3"})}
    # Along a column messages are (y - 1) / y a rank, which few ranks cannot tell from others of that size.
    sent = {p: (1 - 1 / dims_create(p, 2)[1], 64.0) for p in (2, 4, 8, 16)}
    law = fit_rank_laws(counts(sent), BOTH, None, Called(lines={"cg": lines["column"]}))
    assert law is not None
    said = law.predict(np.array([[27.0]]))
    assert said.value[law.metrics.index("messages"), 0] == pytest.approx(1 - 1 / 3)


def test_calls_in_a_row_need_not_go_by_its_length() -> None:
    """Three calls at 2, 4 and 8 ranks were a tree's steps over the side y, (1 + log2(y)) / y, half of them on 64."""
    law = counted((1, 2, 4, 8), lambda p: 3.0, Called(lines={"k": frozenset({"y of 2", "y of 3"})}))
    assert law.formula(0) == "3"
    assert law.predict(np.array([[64.0]])).lower[0, 0] == pytest.approx(3)


def test_what_no_other_side_can_have_is_unlikely() -> None:
    """Of eight ranks alone two lie along z, whose bytes could be of more kinds than along x and y."""
    points = np.array([(p, n) for p in (1, 2, 4, 8) for n in (16, 24, 32)], dtype=float)
    sides = np.array([dims_create(int(p), 3) for p in points[:, 0]]).T
    values = 64 * points[:, 1] ** 2 * (sides - 1) / points[:, 0]
    kernels, metrics = ("along_x", "along_y", "along_z"), ("bytes_sent",) * 3
    along = {f"along_{side}": frozenset({f"{side} of 3"}) for side in "xyz"}

    def kinds(rows: list[int]) -> list[set[str]]:
        chosen = [kernels[row] for row in rows], [metrics[row] for row in rows]
        some = Series(("ranks", "size"), points, values[rows][:, :, None], *map(tuple, chosen))
        laws = fit_rank_laws(some, set(some.keys), None, Called(along=along))
        return [{re.sub("[xyz]", "s", name) for ((name, _),) in each} for each in laws.sums]

    alone = kinds([2])[0]
    of_x, of_y, of_z = kinds([0, 1, 2])
    assert of_x == of_y == of_z
    assert of_z < alone


def test_two_plateaus_are_no_tree() -> None:
    """Three to eight ranks take two or three steps of a tree; with two ranks as an exception nothing else shows it."""
    keys = {("main: Send", "messages")}
    assert fit_rank_laws(series(lambda p: p * (14 + 3 * (p > 4)), range(1, 9)), keys) is NO_RANK_LAWS
    special = series(lambda p: p * (8 + 3 * (p - 1).bit_length() + 3 * (p == 2)), [*range(1, 9), 16])
    law = fit_rank_laws(special, keys)
    assert law
    assert law.predict(np.array([[64.0, 32.0]])).value[0, 0] == pytest.approx(26.0)


def test_terms_are_means_over_whole_ranks() -> None:
    values = term_values(np.arange(1, 200))
    assert np.isfinite(values).all()
    assert (values >= 0).all()
    names = list(RANK_TERMS)
    bits = [tree(p) / p for p in range(1, 200)]
    assert values[names.index("ones(ranks) / ranks")] == pytest.approx(bits)


def test_damaged_laws_are_refused() -> None:
    law = fit_rank_laws(series(tree, range(1, 9)), {("main: Send", "messages")})
    assert law
    content = law.to_dict()
    damaged: list[dict[str, Any]] = [{"sums": [[[["none", 0]]]]}, {"sums": [[[["ranks", 99]]]]}, {"sums": []}]
    for damage in [*damaged, {"coefficients": None}]:
        with pytest.raises(InputError, match="damaged|does not fit"):
            RankLaws.from_dict({**content, **damage})


def particles(p: int, edge: int, cut: float = 1.7) -> float:
    """Particles of a lattice that ranks send: those within a cut-off of a face, with what came along sides before."""
    sides = dims_create(p, 3)[::-1]

    def planes(low: float, high: float) -> int:
        return int(np.floor(2 * high - 1e-9) - np.floor(2 * low - 1e-9))

    sent = 0
    for place in np.ndindex(*sides):
        ends = [(edge * at / side, edge * (at + 1) / side) for at, side in zip(place, sides, strict=True)]
        for d, side in enumerate(sides):
            low, high = ends[d]
            # Along an uncut side there is a margin as well, which nobody else sends.
            if side > 1:
                face = [planes(*ends[other]) for other in range(3) if other != d]
                sent += (planes(low, low + cut) + planes(high - cut, high)) * face[0] * face[1]
            ends[d] = (low - cut, high + cut)
    return 4.0 * sent


def test_halos_of_particles_grow_by_the_cut_off() -> None:
    points = np.array([[p, n] for n in (8, 10, 12) for p in range(1, 9)], dtype=float)
    values = np.array(
        [[torus(int(p)) / p for p, _ in points], [particles(int(p), int(n)) / p for p, n in points]]
    )  # fmt: skip
    values[:, points[:, 0] == 1] = np.nan
    given = Series(("ranks", "size"), points, values[..., None], ("md: Send",) * 2, ("messages", "bytes_sent"))
    law = fit_rank_laws(given, {("md: Send", "messages"), ("md: Send", "bytes_sent")})
    assert law
    row = law.metrics.index("bytes_sent")
    asked = [(16, 12), (32, 12), (64, 12), (8, 16)]
    said = law.predict(np.array(asked, dtype=float))
    measured = np.array([particles(p, n) / p for p, n in asked])
    assert said.value[row] == pytest.approx(measured, rel=0.1)
    assert (said.lower[row] <= measured).all()
    assert (measured <= said.upper[row]).all()
    assert "halo by rising sides" in law.formula(row)


def test_halos_may_go_once_to_a_rank_that_is_met_twice() -> None:
    """Two ranks along a side do not show whether they send one message to each other or two: three do."""
    points = np.array([[p, n] for n in (8, 10, 12) for p in range(1, 9) if p not in (3, 5, 6, 7)], dtype=float)

    def sent(p: int, n: float, bytes_too: bool) -> float:
        sides, total = dims_create(int(p), 3), 0.0
        extended = [n / side for side in sides]
        for at, side in enumerate(sides):
            face = prod(length for other, length in enumerate(extended) if other != at) if bytes_too else 1.0
            total += (side > 1) * (1 + (side > 2)) * face
            extended[at] += 3.0
        return 100 * total

    values = np.array([[sent(p, n, part) for p, n in points] for part in (False, True)])
    values[:, points[:, 0] == 1] = np.nan
    given = Series(("ranks", "size"), points, values[..., None], ("md: Send",) * 2, ("messages", "bytes_sent"))
    kinds = {"md: Send": [(3, False, False, False), (3, True, False, True)]}
    law = fit_rank_laws(given, {("md: Send", "messages"), ("md: Send", "bytes_sent")}, kinds)
    assert law is not None
    row = law.metrics.index("bytes_sent")
    asked = np.array([[27.0, 12.0], [64.0, 12.0]])
    said, true = law.predict(asked), np.array([sent(int(p), n, True) for p, n in asked])
    assert (said.lower[row] <= true * (1 + 1e-3)).all()
    assert (true <= said.upper[row] * (1 + 1e-3)).all()


def test_tables_of_messages_know_sums_of_laws() -> None:
    given = series(tree, range(2, 9))
    found = fit_volumes(given.parameters, given.points, given.values[..., 0], [("main: Send #0", "messages")], [None])
    assert found.sums
    for each in (found, Volumes.from_dict(found.to_dict())):
        said = each.predict(np.array([[16.0, 32.0], [100.0, 32.0]]))
        assert said.value[0] == pytest.approx([tree(16) / 16, tree(100) / 100])
        assert each.sums
        assert "ones(ranks) / ranks" in each.sums.formula(0)
    with pytest.raises(InputError, match="'volumes' does not fit together"):
        Volumes.from_dict({**found.to_dict(), "sums": {**found.to_dict()["sums"], "kernels": ["7"]}})


def test_one_length_to_neighbours_all_around_does_not_grow_with_the_size() -> None:
    """Across corners go few cells: where primes show slabs alone, bytes with a power of the size are of faces."""
    points = np.array([(p, n) for p in (1, 2, 3, 5, 7) for n in (16, 24, 32)], dtype=float)
    values = 8 * points[:, 1] ** 2 * (points[:, 0] - 1) / points[:, 0]
    series = Series(("ranks", "size"), points, values[None, :, None], ("k",), ("bytes_sent",))
    laws = fit_rank_laws(series, set(series.keys), None, Called())
    said = laws.predict(np.array([[10.0, 32.0], [14.0, 32.0], [14.0, 64.0]]))
    assert (said.status == 0).all()
    true = np.array([8 * 32**2 * 9 / 10, 8 * 32**2 * 13 / 14, 8 * 64**2 * 13 / 14])
    assert ((said.lower[0] <= true) & (true <= said.upper[0])).all()


@pytest.mark.parametrize("most", [26, 1000])
def test_work_for_all_others_may_end_with_the_partners(most: int) -> None:
    points = np.array([(p, n) for p in (1, 2, 4, 8) for n in (16, 24, 32)], dtype=float)

    def work(p: np.ndarray, n: np.ndarray) -> np.ndarray:
        return 50 * n**3 / p + 3e3 * np.minimum(p - 1, most)

    values = work(*points.T)[None, :, None]
    said = fit_series(Series(("ranks", "size"), points, values, ("k",), ("instructions",)))
    asked = np.array([[16.0, 32.0], [32, 32], [32, 64]])
    answer, true = said.predict(asked), work(*asked.T)
    assert (answer.status == 0).all()
    assert ((answer.lower[0] <= true) & (true <= answer.upper[0])).all()
