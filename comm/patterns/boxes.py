"""Domains whose blocks of least surface fit who sends to whom: boxes with edges.

Programs that know the edges of their domain cut a long one into slabs before they cut it along other sides. Bytes along
two directions have the ratio of the faces of a block, and so show the ratio of its edges. A long box that few ranks cut
along two sides only is the same as a plane until more ranks cut its third side: both are kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from ranksight.comm.patterns.grid import MOST_DIMENSIONS, Cartesian, pairs_along
from ranksight.core.arrays import Array, Ints, Mask
from ranksight.core.dims import EQUAL, factorisations, least_surfaces
from ranksight.core.records import dataclass

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
"""The pairs (sender, receiver) of a run, or the bytes of a message by pair."""
Runs = Sequence[tuple[int, Sent]]
Wanted = Sequence[tuple[int, set[tuple[int, int]]]]
"""Ranks of each run, and the pairs of distinct ranks that exchange messages."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """A domain of some dimensions and periodicity as runs cut it."""

    periodic: tuple[bool, ...]
    ways: dict[int, list[tuple[int, ...]]]  # for each run all extents whose neighbours are the pairs of ranks seen
    shown: list[dict[int, float]]
    """Edges along the dimensions that are cut in the run with the most cuts, by :func:`_edges`, one for each of its
    ways; those without any are left out."""
    rest: list[dict[int, float]]  # the same of all other runs
    even: bool  # whether messages along each dimension are about as long there, as faces of blocks are

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


def _cut(wanted: Wanted, edge_sets: Runs, fewest: int) -> Iterator[_Cut]:
    """Every dimension from the `fewest` and periodicity in which some extents fit each of the runs."""
    sent = {ranks: pairs for ranks, pairs in edge_sets if isinstance(pairs, Mapping)}
    for dimensions in range(fewest, MOST_DIMENSIONS + 1):
        for periodic in itertools.product((False, True), repeat=dimensions):
            ways: dict[int, list[tuple[int, ...]]] = {}
            for ranks, pairs in reversed(wanted):  # most grids fail at the most ranks
                every = factorisations(ranks, dimensions)
                ways[ranks] = [way for way in every if set().union(*pairs_along(way, periodic)) == pairs]
                if not ways[ranks]:
                    break
            if not all(ways.values()):
                continue
            known = {
                ranks: [_edges(way, periodic, sent[ranks]) for way in ways[ranks]] for ranks in ways if ranks in sent
            }
            most = max(known, key=lambda p: _cuts(ways[p][0]), default=0)
            rest = [edges for ranks, each in known.items() if ranks != most for edges in each]
            along = pairs_along(ways[most][0], periodic) if known else ()
            lengths = [[sent[most][pair] for pair in pairs] for pairs in along if pairs]
            even = all(max(each) <= UNEVEN * min(each) for each in lengths)
            yield _Cut(periodic, ways, [edges for edges in known.get(most, ()) if edges], rest, even)


def of_domains(wanted: Wanted, edge_sets: Runs) -> Iterator[Cartesian]:
    """Grids of domains whose edges have the ratios that bytes show in the run with the most cuts."""
    for cut in _cut(wanted, edge_sets, 2):
        dimensions = len(cut.periodic)
        domains = {domain for edges in cut.shown for domain in _domains(edges, dimensions, cut.certain(edges))}
        if domains:
            yield from _distinct(sorted(domains, key=_simplicity), cut)


def boxes(fitting: Sequence[Cartesian], wanted: Wanted, edge_sets: Runs) -> dict[Cartesian, float]:
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
    means = {d: [sent[pair] for pair in pairs] for d, pairs in enumerate(pairs_along(extents, periodic)) if pairs}
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
