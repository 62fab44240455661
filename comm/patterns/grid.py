"""Cartesian process grids: how many neighbours each rank has in each direction, at any number of ranks.

Programs on structured grids place their ranks on a d-dimensional grid. What a rank packs, sends and unpacks follows the
number of its neighbours in each direction, 0, 1 or 2 at corners, edges and faces of the process grid. This law is known
for every number of ranks once the grid is, while a smooth function of the number of ranks can only approach it:
the mean number of neighbours is 1, 2 and 3 at 2, 4 and 8 ranks on a three-dimensional grid, as log2 of the ranks is,
and 4 at 32 ranks, not 5.

Few ranks do not decide the grid: with two ranks along a dimension a ring is a line, and grids of two and three
dimensions are the same below eight ranks. :func:`cartesian_grids` gives all grids that fit.

Programs that know the edges of their domain cut a long one into slabs before they cut it along other sides. Bytes along
two directions have the ratio of the faces of a block, and so show the ratio of its edges. A long box that few ranks cut
along two sides only is the same as a plane until more ranks cut its third side: both are kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from ranksight.core.arrays import Array, Ints, Mask
from ranksight.core.dims import EQUAL, dims_create, factorisations, least_surface, least_surfaces
from ranksight.core.errors import InputError

RINGS = ("others", "peers", "shift")
"""What a program sends along a periodic dimension of few ranks; see :class:`Cartesian`."""


@dataclass(frozen=True, slots=True)
class Cartesian:
    """A rule that places ranks on a grid, rank numbers in row-major order as ``MPI_Cart_create`` has them.

    Attributes
    ----------
    dimensions : int
    periodic : tuple of bool
        For each dimension whether its ends are neighbours.
    rising : bool
        Whether the extents rise, as where a program numbers ranks along its longest dimension first;
        ``MPI_Dims_create`` gives falling ones.
    ring : str
        Neighbours of a rank in a periodic dimension of one and of two ranks, one of :data:`RINGS`. ``others``: none
        and two, a rank sends both ways but not to itself. ``peers``: none and one, every other rank is sent to once.
        ``shift``: two and two, a rank sends both ways whoever is there. From three ranks on each has two.
    domain : tuple of float
        Edges of the domain, where blocks of the least surface decide the extents
        (:func:`ranksight.core.dims.least_surface`); empty where ``MPI_Dims_create`` does.
    """

    dimensions: int
    periodic: tuple[bool, ...]
    rising: bool = False
    ring: str = "others"
    domain: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.domain) not in (0, self.dimensions) or not all(0 < edge < np.inf for edge in self.domain):
            raise InputError(f"there is no domain of {self.dimensions} dimensions with edges {self.domain}")
        if self.dimensions < 1 or len(self.periodic) != self.dimensions or self.ring not in RINGS:
            raise InputError(
                f"there is no grid of {self.dimensions} dimensions with {len(self.periodic)} periodicities "
                f"and {self.ring!r} neighbours"
            )

    def extents(self, ranks: int) -> tuple[int, ...]:
        """Ranks along each dimension."""
        if self.domain:
            return least_surface(ranks, self.domain, self.rising)
        found = dims_create(ranks, self.dimensions)
        return found[::-1] if self.rising else found

    def neighbours(self, ranks: int) -> Ints:
        """Number of neighbours of every rank in every dimension, (ranks, dimensions)."""
        sides = self.sides(ranks)
        return np.asarray(sides[:, : self.dimensions] + sides[:, self.dimensions :], dtype=np.int64)

    def sides(self, ranks: int) -> Ints:
        """Whether every rank has a lower and an upper neighbour in every dimension, (ranks, 2 x dimensions): 0 or 1."""
        extents = self.extents(ranks)
        place = np.stack(np.unravel_index(np.arange(ranks), extents), axis=1)
        around = np.array([self._around(extent, ring) for extent, ring in zip(extents, self.periodic, strict=True)])
        lower, upper = (place > 0) | around, (place < np.array(extents) - 1) | around
        return np.concatenate([lower, upper], axis=1).astype(np.int64)

    def _around(self, extent: int, ring: bool) -> bool:
        """Whether every rank of a dimension sends both ways."""
        return ring and (extent > 2 or self.ring == "shift" or (extent == 2 and self.ring == "others"))

    @property
    def surface(self) -> Cartesian:
        """The grid for counting faces with a neighbour: a neighbour in both directions has two of them."""
        return replace(self, ring="others") if self.ring == "peers" else self

    def faces(self, ranks: int) -> Array:
        """Face of a block towards its neighbours in every dimension, (dimensions,).

        A block is cut along all other dimensions: 1 / (y z) is its face in x, in faces of the whole domain; where its
        edges are known, in faces of their product.
        """
        faces = np.array(self.extents(ranks), dtype=np.float64) / ranks
        return faces * np.prod(self.domain) / np.array(self.domain) if self.domain else faces

    def pairs(self, ranks: int) -> set[tuple[int, int]]:
        """Ordered pairs of distinct ranks that are neighbours."""
        along = _pairs(self.extents(ranks), self.periodic)
        return set().union(*along)

    def classes(self, ranks: int) -> tuple[Ints, Ints]:
        """Distinct rows of :meth:`neighbours` and how many ranks have each, without listing the ranks.

        Returns
        -------
        (k, dimensions) and (k,) arrays
        """
        rows: list[tuple[int, ...]] = [()]
        counts = [1]
        for extent, ring in zip(self.extents(ranks), self.periodic, strict=True):
            kinds = {2: extent} if self._around(extent, ring) else _line(extent)
            pairs = [(row, count, n, c) for row, count in zip(rows, counts, strict=True) for n, c in kinds.items()]
            rows = [(*row, n) for row, _, n, _ in pairs]
            counts = [count * c for _, count, _, c in pairs]
        return np.array(rows, dtype=np.int64), np.array(counts, dtype=np.int64)

    @property
    def text(self) -> str:
        """As people read it: ``3-d grid``, ``2-d grid, periodic in x``."""
        axes = "".join(axis for axis, ring in zip("xyz", self.periodic, strict=False) if ring)
        how = "" if not axes else ", periodic" if all(self.periodic) else f", periodic in {' and '.join(axes)}"
        if self.domain:
            edges = " x ".join(f"{edge:.3g}" for edge in self.domain)
            return f"{self.dimensions}-d grid{how}, blocks of least surface in {edges}"
        return f"{self.dimensions}-d grid{how}{', extents rising' if self.rising else ''}"


def _line(extent: int) -> dict[int, int]:
    """Ranks with 0, 1 and 2 neighbours on a line of `extent` ranks."""
    if extent == 1:
        return {0: 1}
    return {1: 2, 2: extent - 2} if extent > 2 else {1: 2}


MOST_DIMENSIONS = 3
NEAR = 0.02
"""Relative difference up to which a ratio of edges is taken for that of small whole numbers."""
SMALL = 6
"""Largest denominator of such a ratio."""
EDGES = tuple(2.0 ** (k / 2) for k in range(-6, 7))
"""Edges that are tried along a dimension that no run cuts, in those of another."""
BOX = 0.6
"""Standard deviation of the ratio of a domain's edges, in powers of two: one in ten is above two or below a half."""
FINE = 1 / 64
"""Step in which edges that no bytes show are tried, in powers of two."""
UNEVEN = 1.5
"""Ratio up to which the bytes of messages along one dimension are those of faces of blocks."""
RANGE = 5
"""Edges that represent a range of them."""
LEAST = 0.07
"""Share of all domains below which those that fit are left out: they would be outside of the prediction interval."""
SHOWN = (12, 16, 18, 24, 27, 32, 36, 48, 64, 96, 128, 256)
"""Numbers of ranks at which domains are compared: of those that are cut into the same grids the simplest is kept."""
Sent = Collection[tuple[int, int]] | Mapping[tuple[int, int], float]


@lru_cache(maxsize=1024)
def _pairs(extents: tuple[int, ...], periodic: tuple[bool, ...]) -> tuple[frozenset[tuple[int, int]], ...]:
    """Ordered pairs of distinct ranks that are neighbours along each dimension."""
    ranks = int(np.prod(extents))
    place = np.stack(np.unravel_index(np.arange(ranks), extents), axis=1)
    along: list[frozenset[tuple[int, int]]] = []
    for d, ring in enumerate(periodic):
        found: set[tuple[int, int]] = set()
        for step in (-1, 1) if extents[d] > 1 else ():
            there = place.copy()
            there[:, d] += step
            inside = np.full(ranks, True) if ring else (there[:, d] >= 0) & (there[:, d] < extents[d])
            there[:, d] %= extents[d]
            peer = np.ravel_multi_index(tuple(there.T), extents)
            found.update(zip(np.flatnonzero(inside).tolist(), peer[inside].tolist(), strict=True))
        along.append(frozenset(found))
    return tuple(along)


def cartesian_grids(edge_sets: Sequence[tuple[int, Sent]]) -> dict[Cartesian, float]:
    """All grids whose neighbours are exactly the pairs of distinct ranks that exchange messages, and their weights.

    Pairs of a rank with itself decide nothing but :attr:`Cartesian.ring`: a program may copy what it has for itself,
    and send to itself for other reasons.

    Parameters
    ----------
    edge_sets : sequence of (ranks, pairs)
        For each run its number of ranks and the pairs (sender, receiver), or the bytes of a message by pair.

    Returns
    -------
    dict of Cartesian to float
        The fewest dimensions first; empty where no grid fits or no two ranks exchange messages. Extents rise where
        falling ones explain nothing, and follow the edges of the domain where neither does and bytes show these. Each
        of these grids has weight 1. A domain that :func:`_boxes` adds to others has the share of the boxes with the
        edges shown that are cut as the runs were.
    """
    wanted = [(ranks, {pair for pair in pairs if pair[0] != pair[1]}) for ranks, pairs in sorted(edge_sets, key=_ranks)]
    if not any(pairs for _, pairs in wanted) or any(len(pairs) > 2 * MOST_DIMENSIONS * p for p, pairs in wanted):
        return {}
    alone = {ranks: all((rank, rank) in pairs for rank in range(ranks)) for ranks, pairs in edge_sets}
    found: dict[Cartesian, float] = {}
    for rising in (False, True):
        candidates = [
            Cartesian(dimensions, periodic, rising)
            for dimensions in range(1 + rising, MOST_DIMENSIONS + 1)
            for periodic in itertools.product((False, True), repeat=dimensions)
        ]
        fitting = [grid for grid in candidates if all(grid.pairs(ranks) == pairs for ranks, pairs in wanted)]
        if fitting:
            found = dict.fromkeys(fitting, 1.0) | _boxes(fitting, wanted, edge_sets)
            break
    found = found or dict.fromkeys(_of_domains(wanted, edge_sets), 1.0)
    return {replace(grid, ring=ring): weight for grid, weight in found.items() for ring in _rings(grid, alone)}


@dataclass(frozen=True, slots=True)
class _Cut:
    """A domain of some dimensions and periodicity as runs cut it.

    Attributes
    ----------
    periodic : tuple of bool
    ways : dict
        For each run all extents whose neighbours are the pairs of ranks seen.
    shown : list of dict
        Edges along the dimensions that are cut in the run with the most cuts, by :func:`_edges`, one for each of its
        ways; those without any are left out.
    rest : list of dict
        The same of all other runs.
    even : bool
        Whether messages along each dimension are about as long there, as faces of blocks are.
    """

    periodic: tuple[bool, ...]
    ways: dict[int, list[tuple[int, ...]]]
    shown: list[dict[int, float]]
    rest: list[dict[int, float]]
    even: bool

    def fits(self, domains: Array, rising: bool) -> Mask:
        """Which of the domains (n, d) are cut in one of the ways of each run."""
        found = np.full(len(domains), True)
        for ranks, ways in self.ways.items():
            into = least_surfaces(ranks, domains, rising)
            found &= (into[:, None] == np.array(ways)).all(axis=2).any(axis=1)
        return found

    def certain(self, edges: Mapping[int, float]) -> bool:
        """Whether another run shows the same edges."""
        return any(_agree(edges, other) for other in self.rest)


def _cut(
    wanted: Sequence[tuple[int, set[tuple[int, int]]]], edge_sets: Sequence[tuple[int, Sent]], fewest: int
) -> Iterator[_Cut]:
    """Every dimension from the `fewest` and periodicity in which some extents fit each of the runs."""
    sent = {ranks: pairs for ranks, pairs in edge_sets if isinstance(pairs, Mapping)}
    for dimensions in range(fewest, MOST_DIMENSIONS + 1):
        for periodic in itertools.product((False, True), repeat=dimensions):
            ways: dict[int, list[tuple[int, ...]]] = {}
            for ranks, pairs in reversed(wanted):  # most grids fail at the most ranks
                every = factorisations(ranks, dimensions)
                ways[ranks] = [way for way in every if set().union(*_pairs(way, periodic)) == pairs]
                if not ways[ranks]:
                    break
            if not all(ways.values()):
                continue
            known = {
                ranks: [_edges(way, periodic, sent[ranks]) for way in ways[ranks]] for ranks in ways if ranks in sent
            }
            most = max(known, key=lambda p: _cuts(ways[p][0]), default=0)
            rest = [edges for ranks, each in known.items() if ranks != most for edges in each]
            along = _pairs(ways[most][0], periodic) if known else ()
            lengths = [[sent[most][pair] for pair in pairs] for pairs in along if pairs]
            even = all(max(each) <= UNEVEN * min(each) for each in lengths)
            yield _Cut(periodic, ways, [edges for edges in known.get(most, ()) if edges], rest, even)


def _of_domains(
    wanted: Sequence[tuple[int, set[tuple[int, int]]]], edge_sets: Sequence[tuple[int, Sent]]
) -> Iterator[Cartesian]:
    """Grids of domains whose edges have the ratios that bytes show in the run with the most cuts."""
    for cut in _cut(wanted, edge_sets, 2):
        dimensions = len(cut.periodic)
        domains = {domain for edges in cut.shown for domain in _domains(edges, dimensions, cut.certain(edges))}
        if domains:
            yield from _distinct(sorted(domains, key=_simplicity), cut)


def _boxes(
    fitting: Sequence[Cartesian],
    wanted: Sequence[tuple[int, set[tuple[int, int]]]],
    edge_sets: Sequence[tuple[int, Sent]],
) -> dict[Cartesian, float]:
    """Domains whose blocks of least surface fit as the `fitting` grids do and that are cut differently at more ranks.

    A box of edges 2 : 1.5 : 1 is cut into 2, 2 x 2 and 4 x 2 ranks, as a plane is, and into 3 x 3 x 3. Bytes show the
    edges along the dimensions that are cut. The logarithm of one that is not is normally distributed around the mean of
    these, with :data:`BOX`. The weight of the boxes is the share of them that is cut as the runs were; boxes with less
    than :data:`LEAST` are left out.
    """
    found: dict[Cartesian, float] = {}
    cuts = list(_cut(wanted, edge_sets, max(2, min(grid.dimensions for grid in fitting))))
    rising = fitting[0].rising
    mostly = [cut for cut in cuts if len(set(cut.periodic)) == 1]  # in all dimensions or none
    for cut in mostly or cuts:
        dimensions = len(cut.periodic)
        edges = cut.shown[-1] if cut.shown else {}  # of several orders that with the edge not shown last
        if not edges or not cut.even or (len(edges) == dimensions and not cut.certain(edges)):
            continue
        domains, shares = _unknown(edges, dimensions)
        theirs = [_shown(grid) for grid in fitting if grid.periodic == cut.periodic[: grid.dimensions]]
        same = np.array(theirs, dtype=np.int64).reshape(-1, len(SHOWN), MOST_DIMENSIONS)
        into = _into(domains, rising)[:, None]
        unlike = (into != same[:, :, :dimensions]).any(axis=(2, 3)).all(axis=1)
        weight = np.where(unlike & cut.fits(domains, rising), shares, 0.0)
        if weight.sum() < LEAST:
            continue
        # Each is taken for the share up to it: the largest edge that fits is the most usual one.
        at = np.searchsorted(np.cumsum(weight), np.linspace(0, weight.sum() * (1 - EQUAL), RANGE + 1)[1:])
        for one, count in zip(*np.unique(at, return_counts=True), strict=True):
            grid = Cartesian(dimensions, cut.periodic, rising, domain=tuple(domains[one].tolist()))
            found[grid] = float(weight.sum()) * int(count) / RANGE
    return found


def _unknown(edges: Mapping[int, float], dimensions: int) -> tuple[Array, Array]:
    """Domains (n, dimensions) with the `edges` and any along at most one more dimension, in rising order, and the share
    (n,) of each in all of them."""
    known = {d: _simple(ratio, EQUAL) for d, ratio in edges.items()}
    if len(known) == dimensions:
        return np.array([[known[d] for d in range(dimensions)]]), np.ones(1)
    powers = np.log2(list(known.values()))
    # Many boxes have edges of small whole ratios, and are cut on the verge.
    every = np.unique([*(powers.mean() + np.arange(-4.0, 4.0, FINE)), *np.add.outer(powers, np.arange(-3.0, 4.0)).flat])
    share = np.gradient(every) * np.exp(-0.5 * ((every - powers.mean()) / BOX) ** 2)
    columns = [np.full(len(every), known[d]) if d in known else 2.0**every for d in range(dimensions)]
    return np.stack(columns, axis=1), share / share.sum()


def _shown(grid: Cartesian) -> tuple[tuple[int, ...], ...]:
    """The grid's extents at :data:`SHOWN`, of :data:`MOST_DIMENSIONS` dimensions."""
    return tuple((*grid.extents(ranks), *(1,) * (MOST_DIMENSIONS - grid.dimensions)) for ranks in SHOWN)


def _into(domains: Array, rising: bool) -> Ints:
    """Extents of domains (n, d) at s numbers of ranks, :data:`SHOWN`, (n, s, d)."""
    return np.stack([least_surfaces(ranks, domains, rising) for ranks in SHOWN], axis=1)


def _distinct(domains: Sequence[tuple[float, ...]], cut: _Cut) -> Iterator[Cartesian]:
    """Grids of the domains that are cut in one of the ways of each run; of those that are the same at :data:`SHOWN` the
    first."""
    edges = np.array(domains)
    seen = set()
    for rising in (False, True):
        fits = np.flatnonzero(cut.fits(edges, rising))
        for at, cut_into in zip(fits.tolist(), map(bytes, _into(edges[fits], rising)), strict=True):
            if cut_into not in seen:
                seen.add(cut_into)
                yield Cartesian(len(cut.periodic), cut.periodic, rising, domain=domains[at])


def _simplicity(domain: tuple[float, ...]) -> tuple[int, tuple[float, ...]]:
    return len(set(domain)), domain


def _cuts(extents: tuple[int, ...]) -> int:
    return sum(n > 1 for n in extents)


def _edges(
    extents: tuple[int, ...], periodic: tuple[bool, ...], sent: Mapping[tuple[int, int], float]
) -> dict[int, float]:
    """Edge of the domain along each dimension that is cut, in that of the first; empty where fewer than two are.

    Blocks have faces as the bytes of messages along each dimension. A block's edge is its volume over its face, so that
    the domain's goes as ranks over bytes.
    """
    means = {d: [sent[pair] for pair in pairs] for d, pairs in enumerate(_pairs(extents, periodic)) if pairs}
    if len(means) < 2 or any(sum(each) <= 0 for each in means.values()):
        return {}
    edges = {d: extents[d] / float(np.mean(each)) for d, each in means.items()}
    return {d: edge / next(iter(edges.values())) for d, edge in edges.items()}


def _agree(first: Mapping[int, float], second: Mapping[int, float]) -> bool:
    """Whether the edges that two runs show are the same: those of one without a margin around its blocks."""
    common = [d for d in first if d in second]
    ratios = [first[d] / second[d] for d in common]
    return len(common) > 1 and max(ratios) <= (1 + NEAR) * min(ratios)


def _domains(edges: Mapping[int, float], dimensions: int, certain: bool) -> Iterator[tuple[float, ...]]:
    """Domains with `edges` along the dimensions that a run cuts.

    Where no other run shows the same edges, blocks have a margin or may have one, and the true edges are any of
    :data:`EDGES` besides. Nothing is known of a dimension that is not cut: its edge is that of another, or one of
    :data:`EDGES`.
    """
    edge = {d: _simple(ratio) for d, ratio in edges.items()}
    held = {d: [ratio] if certain or ratio == 1 else sorted({ratio, *EDGES}) for d, ratio in edge.items()}
    others = sorted({*edge.values(), *(factor * unit for factor in EDGES for unit in edge.values())})
    yield from itertools.product(*(held.get(d, others) for d in range(dimensions)))


def _simple(ratio: float, close: float = NEAR) -> float:
    """A ratio, or that of small whole numbers that it is close to."""
    near = Fraction(ratio).limit_denominator(SMALL) if ratio >= 1 else 1 / Fraction(1 / ratio).limit_denominator(SMALL)
    return float(near) if abs(float(near) - ratio) <= close * ratio else ratio


def _ranks(edges: tuple[int, Collection[tuple[int, int]]]) -> int:
    return edges[0]


def _rings(grid: Cartesian, alone: dict[int, bool]) -> tuple[str, ...]:
    """Choices of :attr:`Cartesian.ring` that fit; `alone` has the runs and whether every rank sends to itself there."""
    if not any(grid.periodic):
        return RINGS[:1]
    expected = {
        ranks: any(ring and n == 1 for ring, n in zip(grid.periodic, grid.extents(ranks), strict=True))
        for ranks in alone
    }
    if not any(expected.values()):
        return RINGS
    return RINGS[2:] if expected == alone else RINGS[:2]
