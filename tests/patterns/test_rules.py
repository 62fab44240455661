"""Rules of communication against their definitions, and their recognition from a few numbers of ranks."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksight.comm.patterns.communicators import UNKNOWN, CommunicatorSize, communicator_sizes
from ranksight.comm.patterns.distances import Dissemination, Fraction, Hypercube, Offset, Shift
from ranksight.comm.patterns.grid import Cartesian
from ranksight.comm.patterns.recognition import Explanation, disagree, distinguishing_ranks, explain
from ranksight.comm.patterns.roles import Everyone, Root, Transpose, Tree
from ranksight.comm.patterns.rule import EdgeSet, Links, Rule, rule_from
from ranksight.comm.patterns.steps import Step
from ranksight.core.dims import dims_create
from ranksight.core.errors import InputError
from ranksight.model.messages.sharing import share_links

AXES = tuple(v for v in itertools.product((-1, 0, 1), repeat=3) if sum(map(abs, v)) == 1)
HALO = tuple(Step(v, False, False, True) for v in AXES)
TORUS = tuple(Step(v, True, True, False) for v in AXES)
BOX = tuple(Step(v, False, False, True) for v in itertools.product((-1, 0, 1), repeat=3) if any(v))
PROGRAMS: dict[str, tuple[Rule, ...]] = {
    "halo": HALO,
    "torus that skips itself": TORUS,
    "26 neighbours": BOX,
    "sweep": (Step((1, 0), False, False, True), Step((0, 1), False, False, True)),
    "ring": (Shift(1),),
    "both ways around": (Shift(1), Shift(-1)),
    "pipeline": (Offset(1),),
    "band": (Offset(1), Offset(-1), Offset(2), Offset(-2)),
    "hypercube": (Hypercube(),),
    "dissemination": (Dissemination(1),),
    "transpose": (Transpose(False),),
    "gather by hand": (Root(0, True),),
    "from the last rank": (Root(-1, False),),
    "everyone": (Everyone(1, 0, False),),
    "rows": (Everyone(2, 1, False),),
    "binary tree": (Tree(False, True), Tree(False, False)),
    "binomial tree": (Tree(True, True),),
    "halves": (Fraction(2, 1),),
    "ring and master": (Shift(1), Root(0, True)),
}


def edge_sets(rules: tuple[Rule, ...], ranks: tuple[int, ...]) -> list[EdgeSet]:
    found = []
    for p in ranks:
        links = Links.joined([rule.links(p) for rule in rules])
        found.append(EdgeSet.of(p, links.source, links.target))
    return found


def pairs(rule: Rule, p: int) -> set[tuple[int, int]]:
    links = rule.links(p)
    found = list(zip(links.source.tolist(), links.target.tolist()))
    assert len(found) == len(set(zip(found, links.round.tolist())))
    return set(found)


@pytest.mark.parametrize("p", [1, 2, 5, 8, 12, 16, 27])
def test_links_by_definition(p: int) -> None:
    everyone = range(p)
    assert pairs(Shift(2), p) == ({(r, (r + 2) % p) for r in everyone} if p > 2 else set())
    assert pairs(Offset(-1), p) == {(r, r - 1) for r in everyone if r > 0}
    bits = range(max(p - 1, 0).bit_length())
    assert pairs(Hypercube(), p) == {(r, r ^ 1 << k) for r in everyone for k in bits if r ^ 1 << k < p}
    assert pairs(Dissemination(-1), p) == {(r, (r - (1 << k)) % p) for r in everyone for k in bits}
    assert pairs(Root(0, False), p) == {(0, r) for r in everyone if r > 0}
    assert pairs(Root(-1, True), p) == {(r, p - 1) for r in everyone if r < p - 1}
    assert pairs(Tree(False, True), p) == {(r, (r - 1) // 2) for r in everyone if r > 0}
    assert pairs(Tree(True, False), p) == {(r - (r & -r), r) for r in everyone if r > 0}
    assert pairs(Everyone(1, 0, False), p) == {(r, s) for r in everyone for s in everyone if r != s}
    q = round(p**0.5)
    square = {(r, r % q * q + r // q) for r in everyone} if q * q == p else set()
    assert pairs(Transpose(True), p) == square
    assert pairs(Transpose(False), p) == {(r, s) for r, s in square if r != s}
    assert pairs(Fraction(2, 1), p) == ({(r, (r + p // 2) % p) for r in everyone} if p % 2 == 0 else set())


@pytest.mark.parametrize("p", [4, 6, 12, 36])
def test_lines_of_a_grid(p: int) -> None:
    x, y = dims_create(p, 2)
    place = {r: divmod(r, y) for r in range(p)}
    rows = {(r, s) for r in place for s in place if r != s and place[r][0] == place[s][0]}
    columns = {(r, s) for r in place for s in place if r != s and place[r][1] == place[s][1]}
    assert pairs(Everyone(2, 1, False), p) == rows
    assert pairs(Everyone(2, 0, False), p) == columns
    assert x * y == p


@given(st.integers(1, 60), st.tuples(*[st.integers(-1, 1)] * 3).filter(any), st.booleans(), st.booleans())
def test_steps_on_a_grid(p: int, vector: tuple[int, ...], periodic: bool, rising: bool) -> None:
    rule = Step(vector, periodic, rising, True)
    extents = dims_create(p, 3)[::-1] if rising else dims_create(p, 3)
    wanted = set()
    for r, place in enumerate(itertools.product(*(range(e) for e in extents))):
        there = [a + b for a, b in zip(place, vector)]
        if periodic:
            there = [a % e for a, e in zip(there, extents)]
        if all(0 <= a < e for a, e in zip(there, extents)):
            wanted.add((r, int(np.ravel_multi_index(there, extents))))
    assert pairs(rule, p) == wanted
    assert pairs(Step(vector, periodic, rising, False), p) == {(r, s) for r, s in wanted if r != s}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("measured", [(4, 9, 16, 25), (8, 12, 27), (2, 4, 8, 16)])
def test_what_is_reported_at_other_ranks_is_right(name: str, measured: tuple[int, ...]) -> None:
    """Wherever the explanations agree they are right; whether a program is known at 36 and 64 depends on the runs."""
    rules = PROGRAMS[name]
    said = explain(edge_sets(rules, measured))
    if name == "transpose" and measured == (8, 12, 27):
        assert said == (), "no square was measured"
        return
    for p in (36, 64):
        if disagree(said, p):
            truth = edge_sets(rules, (p,))[0].codes
            assert any(np.array_equal(one.codes(p), truth) for one in said), "the truth is among what is possible"
        else:
            assert np.array_equal(said[0].codes(p), edge_sets(rules, (p,))[0].codes)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in ("transpose", "halves")])
def test_enough_ranks_leave_one_answer(name: str) -> None:
    said = explain(edge_sets(PROGRAMS[name], (4, 8, 9, 12, 16, 27, 30)))
    for p in (36, 64, 100):
        assert not disagree(said, p)
        assert np.array_equal(said[0].codes(p), edge_sets(PROGRAMS[name], (p,))[0].codes)


def test_two_ranks_along_a_dimension_do_not_show_a_ring_from_a_line() -> None:
    said = explain(edge_sets(HALO, (1, 2, 4, 8)))
    assert disagree(said, 64)
    run = distinguishing_ranks(said, (1, 2, 4, 8), 64)
    assert run is not None
    more = explain(edge_sets(HALO, (1, 2, 4, 8, run)))
    assert len(more) < len(said)
    assert not disagree(explain(edge_sets(HALO, (1, 2, 4, 8, 27))), 64)


def test_what_no_rule_explains_is_not_explained() -> None:
    random = np.random.default_rng(7)
    assert (
        explain([EdgeSet.of(p, random.integers(0, p, 2 * p), random.integers(0, p, 2 * p)) for p in (8, 12, 16)]) == ()
    )
    assert explain([EdgeSet(p, np.zeros(0, dtype=np.int64)) for p in (2, 4)]) == ()
    broken = edge_sets(HALO, (8, 12, 27))
    broken[1] = EdgeSet(12, broken[1].codes[1:])
    assert explain(broken) == ()


@given(st.sampled_from(sorted(PROGRAMS)))
def test_rules_survive_their_file(name: str) -> None:
    for rule in PROGRAMS[name]:
        assert rule_from(rule.to_dict()) == rule


def test_steps_in_a_box_follow_its_edges_and_survive_their_file() -> None:
    grid = Cartesian(3, (False,) * 3, domain=(2.0, 1.5, 1.0))
    steps = Step.of_box(grid)
    for ranks in (8, 27, 32):
        assert Explanation(steps).codes(ranks).tolist() == sorted(a * ranks + b for a, b in grid.pairs(ranks))
    assert [rule_from(step.to_dict()) for step in steps] == list(steps)
    content = {name: value for name, value in HALO[0].to_dict().items() if name != "domain"}
    assert rule_from(content) == HALO[0], "files of earlier versions know no domains"


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"family": "shift"},
        {"family": "nothing", "by": 1},
        {"family": "shift", "by": "1"},
        {"family": "shift", "by": True},
        {"family": "shift", "by": 1 << 60},
        {"family": "step", "vector": [0, 0], "periodic": True, "rising": False, "own": True},
        {"family": "step", "vector": [1] * 9, "periodic": True, "rising": False, "own": True},
        {"family": "step", "vector": [1, "x"], "periodic": True, "rising": False, "own": True},
        {"family": "step", "vector": [1, 0], "periodic": True, "rising": False, "own": True, "domain": [1.0]},
        {"family": "step", "vector": [1, 0], "periodic": True, "rising": False, "own": True, "domain": [1.0, -2.0]},
        {"family": "everyone", "dimensions": 2, "axis": 5, "own": False},
    ],
)
def test_damaged_rules_are_refused(content: dict[str, object]) -> None:
    with pytest.raises(InputError):
        rule_from(content)


@pytest.mark.parametrize(("rule", "ranks"), [(Shift(1), 0), (Shift(1), 1 << 21), (Everyone(1, 0, False), 1 << 15)])
def test_too_many_links_are_refused(rule: Rule, ranks: int) -> None:
    with pytest.raises(InputError):
        rule.links(ranks)


def test_partners_that_are_no_ranks_are_refused() -> None:
    with pytest.raises(InputError):
        EdgeSet.of(4, np.array([0, 1]), np.array([1, 4]))


@pytest.mark.parametrize(
    ("seen", "wanted"),
    [
        ({4: [4], 8: [8]}, ["ranks"]),
        ({4: [4, 1], 8: [8, 1]}, ["ranks", "1"]),
        ({4: [0], 9: [0]}, ["0"]),
        ({4: [2], 12: [3], 16: [4]}, ["y of a 2-d grid"]),
        ({4: [2], 8: [4], 16: [8]}, ["ranks / 2"]),
        ({6: [6, 2], 12: [12, 2]}, ["ranks", "2"]),
    ],
)
def test_sizes_of_communicators(seen: dict[int, list[int]], wanted: list[str]) -> None:
    assert [size.text for size in communicator_sizes(seen)] == wanted


def test_lines_of_a_grid_explain_sizes_of_a_program_that_makes_one() -> None:
    seen = {8: [2, 4], 16: [4], 32: [4, 8]}
    assert {size.text for size in communicator_sizes(seen, grid=True)} == {"x of a 2-d grid", "y of a 2-d grid"}
    assert {size.text for size in communicator_sizes(seen)} == {"4", "ranks / 4"}


def test_sizes_without_an_equation() -> None:
    assert communicator_sizes({4: [3], 8: [5], 16: [11]}) == [UNKNOWN]


@pytest.mark.parametrize(
    ("size", "groups"),
    [
        (CommunicatorSize("ranks"), [0] * 8),
        (CommunicatorSize("constant", 2), [0, 0, 1, 1, 2, 2, 3, 3]),
        (CommunicatorSize("ranks /", 2), [0, 0, 0, 0, 1, 1, 1, 1]),
        (CommunicatorSize("x of a 2-d grid"), [0, 1, 0, 1, 0, 1, 0, 1]),  # 4 x 2 ranks
        (CommunicatorSize("y of a 2-d grid"), [0, 0, 1, 1, 2, 2, 3, 3]),
        (CommunicatorSize("x x z of a 3-d grid"), [0, 0, 1, 1, 0, 0, 1, 1]),
    ],
)
def test_ranks_of_a_communicator_are_those_of_a_line_of_the_grid(size, groups):
    assert size.groups(8).tolist() == groups
    assert set(np.bincount(size.groups(8))) == {size.at(8)}
    with pytest.raises(InputError):
        CommunicatorSize("elsewhere")


def test_an_explanation_reads_well() -> None:
    assert Explanation(HALO[:2]).text == "-x, -y on a 3-d grid"
    assert Explanation((Shift(1), Root(0, True))).text == "rank + 1 (mod ranks); all others to rank 0"


@pytest.mark.parametrize("once", [False, True])
def test_messages_that_no_rule_has_are_left_out(once: bool) -> None:
    """A ring of one rank sends to itself, which is not a link; at four ranks a single message follows no rule."""
    ring = Explanation((Shift(-1),))
    alone = pd.DataFrame({"rank": [0], "peer": [0], "count": [40], "bytes": [320]})
    shares, spread = share_links(alone, ring, 1, once)
    assert [count.sum() + size.sum() for count, size in shares] == [0.0]
    assert spread == 0.0
    rows = [(r, (r - 1) % 4, 40, 320) for r in range(4)] + [(0, 2, 1, 8)]
    shares, _ = share_links(pd.DataFrame(rows, columns=["rank", "peer", "count", "bytes"]), ring, 4, once)
    np.testing.assert_allclose(np.concatenate(shares[0]), [40, 320])
