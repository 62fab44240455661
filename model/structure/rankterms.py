"""Terms of the ranks that sums over all ranks of a program have: steps of collectives, partners in lines of a grid.

A term is a mean over the ranks of what one kind of communication does: its total over the ranks p. What a program sends
is a sum of such kinds, so its coefficients are never negative. With x >= y >= z the sides of a process grid as
``MPI_Dims_create`` gives them, those of lines of the grid are multilinear in the sides: a row has x - 1 ranks besides
the one that sends. A binomial tree has as many steps as a rank's number has bits set, ones(ranks) over all of them;
recursive doubling leaves ranks out beyond the largest power of two, 2^floor(log2(ranks)) (Thakur et al. 2005). Blocks
dealt out in turn along both sides meet those of the transposed matrix every lcm(x, y) (Choi et al. 1995).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import lcm, prod

import numpy as np
from numpy.typing import NDArray

from ranksight.core.dims import dims_create

Array = NDArray[np.float64]
Sides = tuple[int, ...]


@dataclass(frozen=True)
class RankTerm:
    """A mean over the ranks.

    Attributes
    ----------
    dimensions : int
        Of the process grid.
    text : str
        As people read it; model files name it by this.
    value : callable
        Of the sides, the longest first.
    basic : bool
        Whether sums of three terms have it.
    """

    dimensions: int
    text: str
    value: Callable[[Sides], float]
    basic: bool = False


def steps(ranks: int) -> int:
    """Steps of a binomial tree that reaches all ranks, ceil(log2(ranks))."""
    return (ranks - 1).bit_length()


def doublings(ranks: int) -> int:
    """Steps of recursive doubling, floor(log2(ranks))."""
    return ranks.bit_length() - 1


@lru_cache(maxsize=4096)
def ones(ranks: int) -> int:
    """Bits set in the numbers of all ranks together."""
    if ranks < 2:
        return 0
    full = 1 << doublings(ranks)
    return doublings(ranks) * full // 2 + (ranks - full) + ones(ranks - full)


def _chain() -> list[RankTerm]:
    return [
        RankTerm(1, "1", lambda s: 1.0, True),
        RankTerm(1, "ranks - 1", lambda s: s[0] - 1.0, True),
        RankTerm(1, "1 / ranks", lambda s: 1 / s[0], True),
        RankTerm(1, "(ranks - 1) / ranks", lambda s: 1 - 1 / s[0], True),
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
    ]  # fmt: skip


def _grid(d: int) -> list[RankTerm]:
    names = "xyz"[:d]

    def total(text: str, of: Callable[[int, int], float], basic: bool = False) -> RankTerm:
        """The sum over all sides of a function of a side and the ranks."""
        body = " + ".join(text.format(name) for name in names)
        return RankTerm(d, body, lambda s: sum(of(side, prod(s)) for side in s), basic)

    found = [
        total("1/{0}", lambda s, p: 1 / s),
        total("(1 - 1/{0})", lambda s, p: 1 - 1 / s, True),
        total("[{0} > 1]", lambda s, p: float(s > 1), True),
        total("{0} / ranks", lambda s, p: s / p),
        total("({0} - 1) / ranks", lambda s, p: (s - 1) / p, True),
        total("[{0} > 1] {0} / ranks", lambda s, p: (s > 1) * s / p),
        total("({0} - 1)", lambda s, p: s - 1.0),
        total("ceil(log2({0}))", lambda s, p: float(steps(s))),
        RankTerm(
            d, " ".join(f"(3 - 2/{name})" for name in names) + " - 1", lambda s: prod(3 - 2 / side for side in s) - 1.0
        ),
    ]
    alone: list[tuple[str, Callable[[int, int], float], bool]] = [
        ("1/{0}", lambda s, p: 1 / s, False),
        ("1 - 1/{0}", lambda s, p: 1 - 1 / s, d == 2),
        ("({0} - 1) / ranks", lambda s, p: (s - 1) / p, d == 2),
        ("{0} - 1", lambda s, p: s - 1.0, False),
        ("[{0} > 1]", lambda s, p: float(s > 1), False),
        ("ceil(log2({0}))", lambda s, p: float(steps(s)), False),
        ("ceil(log2({0})) {0} / ranks", lambda s, p: steps(s) * s / p, False),
    ]
    for at, name in enumerate(names):
        for text, of, basic in alone:

            def one(s: Sides, at: int = at, of: Callable[[int, int], float] = of) -> float:
                return of(s[at], prod(s))

            found.append(RankTerm(d, text.format(name), one, basic))
    if d == 2:
        found.append(RankTerm(2, "(x - 1) (y - 1) / ranks", lambda s: (s[0] - 1) * (s[1] - 1) / prod(s), True))
        found.append(RankTerm(2, "lcm(x, y) (lcm(x, y) - 1) / ranks", lambda s: lcm(*s) * (lcm(*s) - 1) / prod(s)))
    return found


def _named() -> dict[str, RankTerm]:
    named: dict[str, RankTerm] = {}
    for term in (*_chain(), *_grid(2), *_grid(3)):
        text = term.text if term.dimensions == 1 else f"({term.text} on a {term.dimensions}-d grid)"
        named[text] = term
    return named


RANK_TERMS = _named()
"""All terms by their names, the simplest first."""


@lru_cache(maxsize=4096)
def _at(ranks: int) -> tuple[float, ...]:
    sides = {d: dims_create(ranks, d) for d in (1, 2, 3)}
    return tuple(term.value(sides[term.dimensions]) for term in RANK_TERMS.values())


def term_values(ranks: NDArray[np.int64]) -> Array:
    """Values (t, n) of all terms at numbers of ranks (n,), each at least 1."""
    return np.array([_at(int(p)) for p in ranks], dtype=np.float64).reshape(len(ranks), len(RANK_TERMS)).T


@lru_cache(maxsize=1)
def sums() -> tuple[tuple[int, ...], ...]:
    """Sums of one, two and three terms (indices) that a program may send, each on one process grid."""
    terms = list(RANK_TERMS.values())
    found: dict[tuple[int, ...], None] = {}
    for size, kept in ((1, (False, True)), (2, (False, True)), (3, (True,))):
        for d in (1, 2, 3):
            mine = [i for i, term in enumerate(terms) if term.dimensions in (1, d) and term.basic in kept]
            found.update(dict.fromkeys(itertools.combinations(mine, size)))
    return tuple(found)
