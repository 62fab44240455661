"""Terms and hypotheses: the functions that a search can choose, as numbers.

A *factor* of one parameter x is ``x**i * log2(x)**j * 2**(e * x)``, the triple (i, j, e). Where e is below zero the
parameter is the number of ranks, and the factor the term number -e of a process grid (:data:`GRID_TERMS`), which grows
as ``x**i * log2(x)**j``; numbers after the last of these are of :data:`LEVELLING`, :data:`SHIFTED` and
:func:`limited`. A *term* is the product of one factor a parameter, an (m, 3) array; the constant is all zeros. A
*hypothesis* is a sum of terms with free coefficients. Nothing here is ever a string that is evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import product

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.records import dataclass
from ranksight.model import priors
from ranksight.model.quantity import EACH_END
from ranksight.model.search.gridterms import GRID_TERMS, GridTerm, grid_values

DIVIDING = ("ranks", "nodes", "p", "processes")
"""Parameters that divide work and add neighbours."""


Factor = tuple[float, float, float]

ONE: Factor = (0.0, 0.0, 0.0)
ON_GRIDS: tuple[Factor, ...] = tuple((each.power, each.log, -1.0 - at) for at, each in enumerate(GRID_TERMS))
"""The factors of process grids."""
SORTED: Factor = (-1.0, 1.0, 0.0)
"""A share that is sorted or transformed."""
LEVELS = (1.0, 1 / 2, 1 / 3)
"""Powers a with which growth levels off: what others have of everything, neighbours on a grid whose domain ends."""
LEVELLING: tuple[Factor, ...] = tuple((0.0, 0.0, -1.0 - len(GRID_TERMS) - at) for at in range(len(LEVELS)))
"""The factors ``1 - x^-a`` of each of these powers, zero below one."""
DOUBLING: tuple[Factor, ...] = (
    *((0.0, 0.0, rate) for rate in (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0)),
    (1.0, 0.0, 1.0),
)
"""The factors ``2^(e x)`` and ``x 2^x`` of a parameter that counts doublings: levels of refinement, each of which makes
2, 4 or 8 of a cell (p4est, multigrid); the scale of a graph of 2^scale vertices (Graph500); the depth of a search. What
doubles less often than with every one of them is looked for where each one was measured: sizes have longer steps, and
every few values of a size lie on some doubling in several of its units."""
STEPS, JUMP, RANGE = 2.0, 6.0, 60.0
"""Factor between steps of a parameter below which it may count doublings: what is doubled itself has steps that double.
Doublings up to the last value from the one before, and at the last, up to which such a factor has a say: one that is
next to nothing at all values but the last would say that this one is another."""
SHIFTS: tuple[tuple[float, float], ...] = tuple(product((1.0, 2.0, -1.0, -2.0), (2.0, 3.0, 4.0)))
SHIFTED: tuple[Factor, ...] = tuple(
    (power, 0.0, -1.0 - len(GRID_TERMS) - len(LEVELS) - at) for at, (_, power) in enumerate(SHIFTS)
)
"""The factors ``(x + shift)^power`` of each of these pairs, which grow as ``x^power``: points of an element of order x
and work on them, nodes of a grid of x cells, cells with a layer of ghosts on each side, or without those at the edge.
"""
NUMBERED = len(GRID_TERMS) + len(LEVELS) + len(SHIFTS) + 1
"""Factors that are known by a number; the last is :func:`limited`."""


LIMITED = -float(NUMBERED)
"""The last part of a factor that is :func:`limited`."""


def limited(most: float, power: float) -> Factor:
    """The factor ``min(x, most)^power``: more than `most` of x divide nothing any further, or add nothing; of a `most`
    below zero ``max(x, -most)^power``, the same of the inverse of x."""
    return power, most, LIMITED


GRIDDED: Mapping[Factor, GridTerm] = dict(zip(ON_GRIDS, GRID_TERMS, strict=True))
"""Their terms."""


GRID_ODDS = np.array(
    [
        priors.FORMS["process grid"] * (each.dimensions > 1) + priors.FORMS["one side"] * each.one_side
        for each in GRID_TERMS
    ]
)
"""Logarithms of the odds of each grid term, 1, against one of the ranks alone."""
SAME = 1e-9
"""Relative difference of values of a term that are the same."""


def on_a_grid(text: str) -> Factor:
    """The factor of process grids whose term has this text, of the fewest dimensions where several have it."""
    return ON_GRIDS[[each.text for each in GRID_TERMS].index(text)]


EACH_OTHER: tuple[Factor, ...] = ((1.0, 0.0, 0.0), on_a_grid("x - 1"))
"""What goes by the number of ranks, or of all others."""


def ghosted(dimensions: int) -> tuple[Factor, ...]:
    """The factors of a block's ghost layers along the sides that are cut: faces, edges, corner."""
    return tuple(on_a_grid(text) for text in GHOSTS[dimensions])


GHOSTS: Mapping[int, tuple[str, ...]] = {
    2: ("([x > 1] x + [y > 1] y) / ranks", "[x > 1] [y > 1]"),
    3: (
        "([x > 1] x + [y > 1] y + [z > 1] z) / ranks",
        "[x > 1] [y > 1] / z + [x > 1] [z > 1] / y + [y > 1] [z > 1] / x",
        "[x > 1] [y > 1] [z > 1]",
    ),
}
"""Texts of the terms of :func:`ghosted`."""


@dataclass(frozen=True)
class Hypotheses:
    """What a search space offers."""

    terms: Array  # (t, m, 3): distinct terms
    members: Index  # (h, q): terms of each hypothesis, padded with -1 at the end; the fastest growing last
    prior: Array  # (h,): logarithm of the weight of each hypothesis before the data, up to a constant

    def __post_init__(self) -> None:
        if self.terms.ndim != 3 or self.terms.shape[2] != 3 or len(self.members) != len(self.prior):
            raise ValueError("terms must be (t, m, 3) and every hypothesis needs a prior")


def hypotheses(members: Sequence[Sequence[tuple[Factor, ...]]], prior: Sequence[float]) -> Hypotheses:
    """Collect hypotheses given as sequences of terms (one factor a parameter) into arrays; equal ones are merged."""
    index: dict[tuple[Factor, ...], int] = {}
    seen: dict[tuple[int, ...], float] = {}
    for terms, weight in zip(members, prior, strict=True):
        ordered = sorted(
            {index.setdefault(term, len(index)): term for term in terms}.items(), key=lambda item: growth(item[1])
        )
        key = tuple(number for number, _ in ordered)
        seen[key] = max(weight, seen.get(key, -np.inf))
    width = max(map(len, seen))
    table = np.full((len(seen), width), -1, dtype=np.intp)
    for row, key in enumerate(seen):
        table[row, : len(key)] = key
    return Hypotheses(np.array(list(index), dtype=np.float64), table, np.array(list(seen.values()), dtype=np.float64))


def growth(term: tuple[Factor, ...]) -> tuple[float, float, float]:
    """Order of growth of a term when all parameters grow together: rate, exponent, power of the logarithm."""
    return sum(max(f[2], 0.0) for f in term), sum(f[0] for f in term), sum(f[1] for f in term)


def log_terms(terms: Array, points: Array) -> tuple[Array, Array]:
    """Logarithm of the size of terms (..., m, 3) at `points` (n, m), and their sign, (..., n).

    The logarithm is -inf where the term is zero (a logarithm at one), NaN where it has no value (a logarithm or a
    negative or fractional power at or below zero). The sign is -1 where a logarithm to an odd power lies below one.
    """
    shape = (*terms.shape[:-2], len(points))
    size = np.zeros(shape)
    sign = np.ones(shape)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for axis in range(points.shape[1]):
            x = points[:, axis]
            # Zero to a positive power is zero; a logarithm or a negative power of zero has no value.
            natural = np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), np.where(x == 0, -np.inf, np.nan))
            binary = natural / np.log(2.0)
            logs = np.log(np.abs(binary))
            i, j, e = (terms[..., axis, part, None] for part in range(3))
            number = -e[..., 0]
            if (gridded := number > 0).any():
                with_sides = np.log(_numbered(x, terms[..., axis, :][gridded]))
                # How a term grows is of no account for its value, but levelling ones may be multiplied by powers.
                levels = (number > len(GRID_TERMS)) & (number <= len(GRID_TERMS) + len(LEVELS))
                on_grid = (gridded & ~levels)[..., None]
                i, j, e = np.where(on_grid, 0.0, i), np.where(on_grid, 0.0, j), np.where(gridded[..., None], 0.0, e)
                size[gridded] += with_sides
            power = np.where(i != 0, i * natural, 0.0)
            size += np.where(power == np.inf, np.nan, power) + np.where(e != 0, e * x * np.log(2.0), 0.0)
            size += np.where(j != 0, j * np.where((j != 0) & (x > 0), logs, np.nan), 0.0)
            sign = np.where((j % 2 == 1) & (binary < 0), -sign, sign)
    return size, sign


def _numbered(x: Array, factors: Array) -> Array:
    """Values (k, n) of the factors (k, 3) that are known by a number, at x (n,)."""
    numbers = -factors[:, 2].astype(np.intp) - 1
    table = np.empty((len(numbers), len(x)))
    level = numbers - len(GRID_TERMS)
    shifted = level - len(LEVELS)
    grids, levels, ends = level < 0, (level >= 0) & (shifted < 0), numbers == NUMBERED - 1
    if grids.any():
        table[grids] = grid_values(x)[numbers[grids]]
    table[levels] = np.maximum(1 - np.maximum(x, 1.0) ** -np.array(LEVELS)[level[levels], None], 0.0)
    if (far := (shifted >= 0) & ~ends).any():
        shift, power = np.array(SHIFTS)[shifted[far]].T[..., None]
        table[far] = np.where(x + shift >= 0, np.abs(x + shift) ** power, np.nan)
    if ends.any():
        power, most = factors[ends, :2].T[..., None]
        above = np.where(x > 0, x, 1.0)
        table[ends] = np.where(
            x > 0, np.where(most > 0, np.minimum(above, most), np.maximum(above, -most)) ** power, np.nan
        )
    return table


def values(terms: Array, points: Array) -> Array:
    """Values of terms (..., m, 3) at points (n, m): (..., n); NaN where a term has no value."""
    size, sign = log_terms(terms, points)
    with np.errstate(over="ignore"):
        return np.asarray(sign * np.exp(size))


def of_inverses(terms: Array, divided: Mask) -> Array:
    """Terms (t, m, 3) with the opposite powers along the axes that are `divided` (m,): those of the inverse."""
    power = np.where(divided[:, None] & (np.arange(3) == 0), -1.0, 1.0)
    inverse = np.asarray(terms * power + 0.0)  # and no power of -0
    # A limit of the inverse is one of the parameter from the other side.
    limits = divided & (terms[..., 2] == LIMITED)
    inverse[..., 1] = np.where(limits, -1 / np.where(limits, terms[..., 1], 1.0), inverse[..., 1])
    return inverse


def beyond_doubling(terms: Array, points: Array) -> Mask:
    """Which terms (..., m, 3) double along a parameter that, at points (n, m), counts no doublings (:data:`STEPS`), or
    double too often to have a say (:data:`JUMP`, :data:`RANGE`)."""
    rates = np.maximum(terms[..., 2], 0.0)
    if not rates.any() or not len(points):
        return np.zeros(terms.shape[:-2], dtype=bool)
    distinct = [np.unique(x) for x in points.T]
    steps = [np.diff(x) if len(x) > 1 else np.zeros(1) for x in distinct]
    uneven = np.array([each.max() >= STEPS * each.min() for each in steps])
    jump, last = np.array([each[-1] for each in steps]), np.array([x[-1] for x in distinct])
    single = np.array([each.min() <= 1 for each in steps])
    steep = (rates > 0) & (uneven | (rates * jump > JUMP) | (rates * last > RANGE) | ((rates < 1) & ~single))
    return np.asarray(steep.any(axis=-1))


def last_partners(most: float) -> float:
    """Ranks beyond which a rank that had all others of `most` ranks as partners has no more of them in a twentieth of
    the cases, the lower end of a 90 % interval; infinite where that is rarer.

    What goes to all others, and loops over all ranks, never end. With the probability pi partners are those of bands,
    stencils and groups. From two ranks up to the widest, L, they end at a number n of these in proportion to 1 / n^2:
    most have a few neighbours, and twice as many are half as likely. Where they became more up to m ranks, they end
    within the next ones up to n with the probability

        pi (S(m) - S(n)) / (pi S(m) + 1 - pi),    S(n) = (1/n - 1/L) / (1/2 - 1/L)
    """
    ends, widest = priors.PARTNERS_END, 1 / priors.PARTNERS_MOST
    beyond = max(1 / max(most, 2.0) - widest, 0.0) / (1 / 2 - widest)
    left = beyond - EACH_END * (beyond + (1 - ends) / ends)
    return 1 / (left * (1 / 2 - widest) + widest) if left > 0 else np.inf


def without_ranks(terms: Array, parameters: Sequence[str]) -> Index:
    """The term without the number of ranks (t,) for each of `terms` that is one of these times others: its index, or
    that after the last where it is not among them; -1 for terms that are none."""
    rest = np.full(len(terms), -1, dtype=np.intp)
    if "ranks" in parameters:
        axis = list(parameters).index("ranks")
        for at in np.flatnonzero((terms[:, axis] == EACH_OTHER[0]).all(axis=1)).tolist():
            term = terms[at].copy()
            term[axis] = ONE
            same = np.flatnonzero((terms == term).all(axis=(1, 2)))
            rest[at] = same[0] if len(same) else len(terms)
    return rest


def ended_values(terms: Array, points: Array, parameters: Sequence[str], largest: Array, leading: Index) -> Array:
    """Values (t, k) of terms at `points` (k, m) where sides of a process grid are cut no further than in the runs.

    A term of one side that is the same on half of the most ranks measured as there may follow a side that was not cut
    in between, or work that no more ranks share: on more ranks it stays as it is. Where a term of all sides of such a
    grid is among the `leading` ones (indices) of the series and changed in between, the program has that grid. What is
    done for each other rank may end with the partners (:func:`last_partners`). `largest` (m,): values measured.
    """
    beyond = values(terms, points)
    axis = list(parameters).index("ranks") if "ranks" in parameters else 0
    further = points[:, axis] > largest[axis]
    if "ranks" not in parameters or not further.any():
        return beyond
    each = np.flatnonzero((terms[:, axis] == np.array(EACH_OTHER)[:, None]).all(axis=2).any(axis=0))
    last = points[further]
    last[:, axis] = np.fmin(last[:, axis], last_partners(largest[axis]))
    beyond[np.ix_(each, further)] = values(terms[each], last)
    numbers = -terms[:, axis, 2]
    gridded = np.flatnonzero((numbers > 0) & (numbers <= len(GRID_TERMS)))
    if not len(gridded):
        return beyond
    near, half = points[further], points[further]
    near[:, axis], half[:, axis] = largest[axis], max(largest[axis] // 2, 1.0)
    at_most, before = values(terms[gridded], near), values(terms[gridded], half)
    same = (np.abs(at_most - before) <= SAME * np.abs(at_most)).all(axis=1)
    of_grid = [GRID_TERMS[int(number) - 1] for number in numbers[gridded]]
    dimensions, one_side = (np.array([getattr(each, name) for each in of_grid]) for name in ("dimensions", "one_side"))
    shown = dimensions[~same & ~one_side & np.isin(gridded, leading)]
    may_end = same & one_side & ~np.isin(dimensions, shown)
    beyond[np.ix_(gridded[may_end], further)] = at_most[may_end]
    return beyond


def write_term(term: Array, parameters: Sequence[str]) -> str:
    """Write a term as people read it: ``size^(3/2) * log2(ranks)``; the constant is the empty string."""
    parts = []
    for (i, j, e), name in zip(term, parameters, strict=True):
        if e == LIMITED:
            most = f"{abs(j):g}" if j == round(j) else f"{abs(j):.3g}"
            parts.append(f"{'min' if j > 0 else 'max'}({name}, {most})" + ("" if i == 1 else f"^{_exponent(i)}"))
            continue
        if e < 0:
            parts.append(_numbered_text(int(-e) - 1, name))
            continue
        if i:
            parts.append(name if i == 1 else f"{name}^{_exponent(i)}")
        if j:
            parts.append(f"log2({name})" + ("" if j == 1 else f"^{_exponent(j)}"))
        if e:
            parts.append(f"2^({'' if e == 1 else _exponent(e) + ' '}{name})")
    return " * ".join(parts)


def _numbered_text(number: int, name: str) -> str:
    if (shifted := number - len(GRID_TERMS) - len(LEVELS)) >= 0:
        shift, power = SHIFTS[shifted]
        return f"({name} {'+' if shift > 0 else '-'} {abs(shift):g})^{_exponent(power)}"
    if number >= len(GRID_TERMS):
        return f"(1 - {name}^{_exponent(-LEVELS[number - len(GRID_TERMS)])})"
    grid = GRID_TERMS[number]
    if grid.dimensions == 1:  # the one side is all ranks
        return f"({_SIDE.sub(lambda _: name, grid.text)})"
    return f"({grid.text} on a {grid.dimensions}-d grid)"


_SIDE = re.compile(r"\bx\b")
"""The side of a process grid of one dimension in the text of a term."""


def _exponent(value: float) -> str:
    near = Fraction(float(value)).limit_denominator(6)
    if abs(float(near) - value) < 1e-9:
        return str(near) if near.denominator == 1 and near >= 0 else f"({near})"
    return f"{value:.2f}" if value >= 0 else f"({value:.2f})"
