"""Cartesian process grids: how many neighbours each rank has in each direction, at any number of ranks.

Programs on structured grids place their ranks on a d-dimensional grid. What a rank packs, sends and unpacks follows the
number of its neighbours in each direction, 0, 1 or 2 at corners, edges and faces of the process grid. This law is known
for every number of ranks once the grid is, while a smooth function of the number of ranks can only approach it:
the mean number of neighbours is 1, 2 and 3 at 2, 4 and 8 ranks on a three-dimensional grid, as log2 of the ranks is,
and 4 at 32 ranks, not 5.

Few ranks do not decide the grid: with two ranks along a dimension a ring is a line, and grids of two and three
dimensions are the same below eight ranks. :func:`cartesian_grids` gives all grids that fit.

Programs that know the edges of their domain cut a long one into slabs before they cut it along other sides. Bytes along
two directions have the ratio of the faces of a block, and so show the ratio of its edges.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from ranksight.core.arrays import Array, Ints
from ranksight.core.dims import dims_create, factorisations, least_surface, least_surfaces
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


def cartesian_grids(edge_sets: Sequence[tuple[int, Sent]]) -> tuple[Cartesian, ...]:
    """All grids whose neighbours are exactly the pairs of distinct ranks that exchange messages.

    Pairs of a rank with itself decide nothing but :attr:`Cartesian.ring`: a program may copy what it has for itself,
    and send to itself for other reasons.

    Parameters
    ----------
    edge_sets : sequence of (ranks, pairs)
        For each run its number of ranks and the pairs (sender, receiver), or the bytes of a message by pair.

    Returns
    -------
    tuple of Cartesian
        The fewest dimensions first; empty where no grid fits or no two ranks exchange messages. Extents rise where
        falling ones explain nothing, and follow the edges of the domain where neither does and bytes show these.
    """
    wanted = [(ranks, {pair for pair in pairs if pair[0] != pair[1]}) for ranks, pairs in sorted(edge_sets, key=_ranks)]
    if not any(pairs for _, pairs in wanted) or any(len(pairs) > 2 * MOST_DIMENSIONS * p for p, pairs in wanted):
        return ()
    alone = {ranks: all((rank, rank) in pairs for rank in range(ranks)) for ranks, pairs in edge_sets}
    falling, rising = (
        [
            Cartesian(dimensions, periodic, rising)
            for dimensions in range(1 + rising, MOST_DIMENSIONS + 1)
            for periodic in itertools.product((False, True), repeat=dimensions)
        ]
        for rising in (False, True)
    )
    for candidates in (falling, rising, _of_domains(wanted, edge_sets)):
        fitting = [grid for grid in candidates if all(grid.pairs(ranks) == pairs for ranks, pairs in wanted)]
        if fitting:
            return tuple(replace(grid, ring=ring) for grid in fitting for ring in _rings(grid, alone))
    return ()


def _of_domains(
    wanted: Sequence[tuple[int, set[tuple[int, int]]]], edge_sets: Sequence[tuple[int, Sent]]
) -> Iterator[Cartesian]:
    """Grids of domains whose edges have the ratios that bytes show in the run with the most cuts."""
    sent = {ranks: pairs for ranks, pairs in edge_sets if isinstance(pairs, Mapping)}
    for dimensions in range(2, MOST_DIMENSIONS + 1):
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
            domains = {
                domain
                for edges in known.get(most, ())
                if edges
                for domain in _domains(edges, dimensions, any(_agree(edges, other) for other in rest))
            }
            if domains:
                yield from _distinct(sorted(domains, key=_simplicity), periodic, ways)


def _distinct(
    domains: Sequence[tuple[float, ...]], periodic: tuple[bool, ...], ways: Mapping[int, Sequence[tuple[int, ...]]]
) -> Iterator[Cartesian]:
    """Grids of the domains that are cut in one of the `ways` of each run; of those alike at :data:`SHOWN` the first."""
    edges = np.array(domains)
    seen = set()
    for rising in (False, True):
        fits = np.full(len(edges), True)
        for ranks, every in ways.items():
            cut = least_surfaces(ranks, edges, rising)
            fits &= (cut[:, None] == np.array(every)).all(axis=2).any(axis=1)
        shown = np.concatenate([least_surfaces(ranks, edges[fits], rising) for ranks in SHOWN], axis=1)
        for at, alike in zip(np.flatnonzero(fits).tolist(), map(bytes, shown), strict=True):
            if alike not in seen:
                seen.add(alike)
                yield Cartesian(len(periodic), periodic, rising, domain=domains[at])


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


def _simple(ratio: float) -> float:
    """A ratio, or that of small whole numbers that it is close to."""
    near = Fraction(ratio).limit_denominator(SMALL) if ratio >= 1 else 1 / Fraction(1 / ratio).limit_denominator(SMALL)
    return float(near) if abs(float(near) - ratio) <= NEAR * ratio else ratio


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
