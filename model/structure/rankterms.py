"""Terms of the ranks that sums over all ranks of a program have: steps of collectives, partners in lines of a grid.

A term is a mean over the ranks of what one kind of communication does: its total over the ranks p. What a program sends
is a sum of such kinds, so its coefficients are never negative. With x >= y >= z the sides of a process grid as
``MPI_Dims_create`` gives them, those of lines of the grid are multilinear in the sides: a row has x - 1 ranks besides
the one that sends. A binomial tree has as many steps as a rank's number has bits set, ones(ranks) over all of them;
recursive doubling and halving leave ranks out beyond the largest power of two, 2^floor(log2(ranks)) (Thakur et al.
2005), and have a partner for each step. A block that is transposed along a row is handed over but for 1/x of it. Rows
that sum parts of a vector by recursive doubling, and then transpose it, send 1 + log2(x) parts of 1/x (Hendrickson,
Leland and Plimpton 1995; the conjugate gradient of the NAS benchmarks). On lines that are coarsened by two half of the
ranks are at work from level to level (Briggs et al. 2000). Blocks dealt out in turn along both sides meet those of the
transposed matrix every lcm(x, y) (Choi et al. 1995). The halo of particles within a cut-off of a block is a margin
around it: a face of n/y by n/z grows to (n/y + 2c) (n/z + 2c) where what came along y and z is sent on, as with
exchanges in turn along x, y and z (Plimpton 1995). Hierarchical collectives work within groups of a fixed number of
ranks, such as those of a node, and then between the first of each, of which there are ceil(ranks / group).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import lru_cache, partial
from math import lcm, prod

import numpy as np

from ranksight.core.arrays import Array, Ints
from ranksight.core.dims import dims_create
from ranksight.model import priors
from ranksight.model.structure.rankterm import HALO_TERMS, Halo, RankTerm, Sides, doublings, steps


def coarsened(ranks: int) -> int:
    """Pairs of neighbours on lines of all ranks, of every second one of these, and so on."""
    return sum(-(-ranks >> k) - 1 for k in range(steps(ranks)))


GROUPS = (2, 4, 8, 16, 32)
"""Ranks of groups, such as those of a node, whose number shows in runs of few ranks."""

SMALL = 4
"""Ranks of a group up to which few runs distinguish sums of its terms and others."""


def in_groups(name: str) -> int:
    """Ranks of the groups that a term by its name is of; 0 for others."""
    return next((group for group in GROUPS if f"ceil(ranks / {group})" in name), 0)


def _grouped(group: int) -> list[RankTerm]:
    """What the first ranks of groups do: each, all but one, by the steps of a tree between them, each for each other,
    and for itself too; and what the others do, or hand over of their shares."""
    leaders = f"ceil(ranks / {group})"
    most = 2 if group <= SMALL else 1

    def number(s: Sides) -> int:
        return -(-s[0] // group)

    return [
        RankTerm(1, f"{leaders} / ranks", lambda s: number(s) / s[0], most),
        RankTerm(1, f"({leaders} - 1) / ranks", lambda s: (number(s) - 1) / s[0], most),
        RankTerm(1, f"{leaders} ceil(log2({leaders})) / ranks", lambda s: number(s) * steps(number(s)) / s[0], 1),
        RankTerm(1, f"{leaders} ({leaders} - 1) / ranks", lambda s: number(s) * (number(s) - 1) / s[0], 1),
        RankTerm(1, f"{leaders} {leaders} / ranks", lambda s: number(s) ** 2 / s[0], most),
        RankTerm(1, f"1 - {leaders} / ranks", lambda s: 1 - number(s) / s[0], most),
        RankTerm(1, f"(1 - {leaders} / ranks) / ranks", lambda s: (1 - number(s) / s[0]) / s[0], 1),
    ]


LIMITS = range(2, priors.PARTNERS_MOST)
"""Partners of a rank up to which it is looked for where they become no more: those of bands, stencils and groups."""


def _at_most(sides: Sides, most: int) -> float:
    return float(min(sides[0] - 1, most))


def _limited() -> list[RankTerm]:
    """Partners among all other ranks, up to a number."""
    return [RankTerm(1, f"min(ranks - 1, {most})", partial(_at_most, most=most), 1, limit=most) for most in LIMITS]


HALVING = "(2^floor(log2(ranks)) - 1) / ranks"
"""Parts of a vector that recursive halving sends, a half of what is left in each step."""


DOUBLED = "(floor(log2(ranks)) 2^floor(log2(ranks)) + 2 (ranks - 2^floor(log2(ranks)))) / ranks"
"""Messages of a reduction by recursive doubling, to which ranks beyond the power of two hand over, and which hands the
result back."""


def doubled(ranks: int) -> int:
    """Messages of all ranks in a reduction by recursive doubling."""
    full = 1 << doublings(ranks)
    return doublings(ranks) * full + 2 * (ranks - full)


@lru_cache(maxsize=4096)
def ones(ranks: int) -> int:
    """Bits set in the numbers of all ranks together."""
    if ranks < 2:
        return 0
    full = 1 << doublings(ranks)
    return doublings(ranks) * full // 2 + (ranks - full) + ones(ranks - full)


def _chain() -> list[RankTerm]:
    return [
        RankTerm(1, "1", lambda s: 1.0, 3),
        RankTerm(1, "ranks - 1", lambda s: s[0] - 1.0, 3),
        RankTerm(1, "1 / ranks", lambda s: 1 / s[0], 3),
        RankTerm(1, "(ranks - 1) / ranks", lambda s: 1 - 1 / s[0], 3),
        RankTerm(1, "ranks", lambda s: float(s[0])),
        RankTerm(1, "(ranks - 1) / ranks^2", lambda s: (s[0] - 1) / s[0] ** 2),
        RankTerm(1, "ceil(log2(ranks))", lambda s: float(steps(s[0]))),
        RankTerm(1, "ones(ranks) / ranks", lambda s: ones(s[0]) / s[0]),
        RankTerm(1, "2^floor(log2(ranks)) / ranks", lambda s: (1 << doublings(s[0])) / s[0]),
        RankTerm(1, "1 - 2^floor(log2(ranks)) / ranks", lambda s: 1 - (1 << doublings(s[0])) / s[0]),
        RankTerm(
            1, "floor(log2(ranks)) 2^floor(log2(ranks)) / ranks",
            lambda s: doublings(s[0]) * (1 << doublings(s[0])) / s[0],
        ),
        RankTerm(1, DOUBLED, lambda s: doubled(s[0]) / s[0], 1),
        RankTerm(1, "sum_k(ceil(ranks / 2^k) - 1) / ranks", lambda s: coarsened(s[0]) / s[0]),
        RankTerm(1, HALVING, lambda s: ((1 << doublings(s[0])) - 1) / s[0]),
    ]  # fmt: skip


ALL_AROUND: dict[tuple[int, bool], str] = {
    (d, periodic): f"{3**d} - " + " ".join(f"(3 - 2 [{name} > 1])" for name in "xyz"[:d])
    if periodic
    else " ".join(f"(3 - 2/{name})" for name in "xyz"[:d]) + " - 1"
    for d in (2, 3)
    for periodic in (True, False)
}
"""Names of the neighbours on a grid, those across edges and corners too, but for a rank itself."""


ONE_EACH = "(min({0}, 3) - 1)"
"""Neighbours in a ring, one of which is both on two ranks, where a rank sends once to each."""


def _once_around(d: int) -> str:
    return " ".join(f"min({name}, 3)" for name in "xyz"[:d]) + " - 1"


AROUND = {*ALL_AROUND.values(), *map(_once_around, (2, 3))}
"""Names of the neighbours all around, those met twice once or twice."""
ONCE = {text for d in (2, 3) for text in (_once_around(d), " + ".join(ONE_EACH.format(name) for name in "xyz"[:d]))}
"""Names of the neighbours on periodic grids of ranks that send once to each."""


RING_FACE = "[{0} > 1] {0} / ranks"
"""Faces towards the two neighbours in a ring, which only kernels have that send along single sides."""


CYCLIC = "lcm(x, y) (lcm(x, y) - 1) / ranks"
"""Partners of blocks that are dealt out in turn."""


def _grid(d: int) -> list[RankTerm]:
    names = "xyz"[:d]

    def total(text: str, of: Callable[[int, int], float], most: int = 2) -> RankTerm:
        """The sum over all sides of a function of a side and the ranks."""
        body = " + ".join(text.format(name) for name in names)
        return RankTerm(d, body, lambda s: sum(of(side, prod(s)) for side in s), most)

    terms = [
        total("1/{0}", lambda s, p: 1 / s, d),
        total("(1 - 1/{0})", lambda s, p: 1 - 1 / s, 3),
        total("[{0} > 1]", lambda s, p: float(s > 1), 3),
        total("{0} / ranks", lambda s, p: s / p, d),
        total("({0} - 1) / ranks", lambda s, p: (s - 1) / p, 3),
        total("[{0} > 1] {0} / ranks", lambda s, p: (s > 1) * s / p),
        total("({0} - 1)", lambda s, p: s - 1.0),
        total("ceil(log2({0}))", lambda s, p: float(steps(s))),
        RankTerm(d, ALL_AROUND[d, False], lambda s: prod(3 - 2 / side for side in s) - 1.0),
        RankTerm(d, ALL_AROUND[d, True], lambda s: float(3**d - prod(1 if side > 1 else 3 for side in s))),
        total(ONE_EACH, lambda s, p: min(s, 3) - 1.0),
        total(ONE_EACH + " {0} / ranks", lambda s, p: (min(s, 3) - 1) * s / p, 1),
        RankTerm(d, _once_around(d), lambda s: prod(min(side, 3) for side in s) - 1.0),
    ]
    single: list[tuple[str, Callable[[int, int], float], int]] = [
        ("1/{0}", lambda s, p: 1 / s, 2),
        ("1 - 1/{0}", lambda s, p: 1 - 1 / s, 3 if d == 2 else 2),
        ("({0} - 1) / ranks", lambda s, p: (s - 1) / p, 3 if d == 2 else 2),
        ("{0} - 1", lambda s, p: s - 1.0, 2),
        ("(1 - 1/{0}) / ranks", lambda s, p: (1 - 1 / s) / p, 2),
        ("[{0} > 1]", lambda s, p: float(s > 1), 2),
        ("ceil(log2({0}))", lambda s, p: float(steps(s)), 2),
        ("ceil(log2({0})) {0} / ranks", lambda s, p: steps(s) * s / p, 2),
        ("ones({0}) / {0}", lambda s, p: ones(s) / s, 2),
        ("(1 + ceil(log2({0}))) / {0}", lambda s, p: (1 + steps(s)) / s, 2),
        (RING_FACE, lambda s, p: (s > 1) * s / p, 2),
    ]
    for at, name in enumerate(names):
        for text, of, most in single:

            def one(s: Sides, at: int = at, of: Callable[[int, int], float] = of) -> float:
                return of(s[at], prod(s))

            terms.append(RankTerm(d, text.format(name), one, most))
    if d == 2:
        terms.append(RankTerm(2, "(x - 1) (y - 1) / ranks", lambda s: (s[0] - 1) * (s[1] - 1) / prod(s), 3))
        terms.append(RankTerm(2, CYCLIC, lambda s: lcm(*s) * (lcm(*s) - 1) / prod(s)))
    return terms


ENDS, RINGS = ("1 - 1/{0}", "({0} - 1) / ranks"), ("[{0} > 1]", RING_FACE)
"""Messages, and faces that they have, along a side of a grid that ends, and along one that is a ring."""


def turned_sides(sides: Sides) -> Sides:
    """The sides of a grid whose ranks lie along the last one where they can have one alone, as a prime number can:
    programs that look for the best shape themselves try that one last, or first."""
    return sides[::-1] if sum(side > 1 for side in sides) == 1 else sides


_ALONG: dict[str, Callable[[int, int], float]] = {
    ENDS[0]: lambda s, p: 1 - 1 / s,
    ENDS[1]: lambda s, p: (s - 1) / p,
    RINGS[0]: lambda s, p: float(s > 1),
    RINGS[1]: lambda s, p: (s > 1) * s / p,
}
"""Their values, of a side and the ranks."""


def _turned() -> list[RankTerm]:
    terms = []
    for at, (text, of) in itertools.product(range(2), _ALONG.items()):

        def one(s: Sides, at: int = at, of: Callable[[int, int], float] = of) -> float:
            return of(turned_sides(s)[at], prod(s))

        terms.append(RankTerm(2, text.format("xy"[at]), one, 2, True))
    return terms


def _walls(d: int) -> list[RankTerm]:
    """Those of domains that are periodic along some sides and end along the others, as a channel between walls."""
    terms = []
    for ring, end in zip(RINGS, ENDS, strict=True):
        for rings in itertools.product((True, False), repeat=d):
            if len(set(rings)) == 1:
                continue
            texts = [ring if each else end for each in rings]

            def value(s: Sides, texts: list[str] = texts) -> float:
                return sum(_ALONG[text](side, prod(s)) for text, side in zip(texts, s, strict=True))

            text = " + ".join(f"({text.format(name)})" for text, name in zip(texts, "xyz"[:d], strict=True))
            terms.append(RankTerm(d, text, value, 1))
    return terms


_EVERY = (
    *_chain(),
    *(term for group in GROUPS for term in _grouped(group)),
    *_limited(),
    *_grid(2),
    *_grid(3),
    *_turned(),
    *_walls(2),
    *_walls(3),
    *(term for ways in HALO_TERMS.values() for way in ways for term in way),
)
RANK_TERMS = {term.name: term for term in _EVERY}
"""All terms by their names, the simplest first."""
SENT_TO: dict[str, Halo] = {
    f"({' + '.join(text.format(name) for name in 'xyz'[:d])} on a {d}-d grid)": (d, periodic, False, once)
    for d in (2, 3)
    for text, periodic, once in (("[{0} > 1]", True, False), ("(1 - 1/{0})", False, False), (ONE_EACH, True, True))
} | {f"({text} on a {d}-d grid)": (d, periodic, True, False) for (d, periodic), text in ALL_AROUND.items()}
"""Terms of messages that go to each neighbour on a grid, and its kind."""


@lru_cache(maxsize=4096)
def _at(ranks: int) -> tuple[float, ...]:
    sides = {d: dims_create(ranks, d) for d in (1, 2, 3)}
    return tuple(term.value(sides[term.dimensions]) for term in RANK_TERMS.values())


def term_values(ranks: Ints) -> Array:
    """Values (t, n) of all terms at numbers of ranks (n,), each at least 1."""
    return np.array([_at(int(p)) for p in ranks], dtype=np.float64).reshape(len(ranks), len(RANK_TERMS)).T


@lru_cache(maxsize=1)
def sums() -> tuple[tuple[int, ...], ...]:
    """Sums of one, two and three terms (indices) that a program may send, each on one process grid."""
    terms = list(RANK_TERMS.values())
    members: dict[tuple[int, ...], None] = {}
    for size in (1, 2, 3):
        for d, lines in ((1, False), (2, False), (3, False), (2, True)):
            offered = [
                i
                for i, term in enumerate(terms)
                if term.most >= size and (term.dimensions == 1 or (term.dimensions, term.turned) == (d, lines))
            ]
            members.update(dict.fromkeys(itertools.combinations(offered, size)))
    return tuple(members)
