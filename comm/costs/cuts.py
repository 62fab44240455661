"""Bytes over the narrowest link of a network, for the patterns that a collective's steps make."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ranksight.comm.topology.shape import Topology
from ranksight.core.arrays import Array, Ints

DISTANCES = 48
"""Distances looked at of those at which every rank meets every other; the rest is taken as the mean of these."""
MOST = 1 << 16
"""Ranks beyond which a network's links are loaded as they are by this many."""


def cuts(
    topology: Topology, pattern: str, ranks: Ints, distance: Ints, per_node: int, distribution: str
) -> tuple[Array, Array]:
    """Seconds a byte on the narrowest link of a step, and switches of its longest way from the first on; broadcast.

    `pattern`: ``exchange``, ``shift`` or ``level`` to `distance` (see :class:`ranksight.comm.costs.fabric.Fabric`),
    ``turns`` the mean of shifts to all distances, ``all`` the sum of all of these at once. Both are 0 where no message
    crosses nodes.
    """
    ranks, distance = np.broadcast_arrays(np.asarray(ranks, dtype=np.int64), np.asarray(distance, dtype=np.int64))
    places = np.stack([ranks.ravel(), distance.ravel()])
    each, back = np.unique(places, axis=1, return_inverse=True)
    found = [_cut(topology, pattern, int(p), int(d), per_node, distribution) for p, d in each.T]
    table = np.array(found).reshape(-1, 2)[back.reshape(-1)]
    return table[:, 0].reshape(ranks.shape), table[:, 1].reshape(ranks.shape)


@lru_cache(maxsize=4096)
def _cut(topology: Topology, pattern: str, ranks: int, distance: int, k: int, distribution: str) -> tuple[float, float]:
    topology.holds(-(-ranks // k), f"a job of {ranks:,} ranks, {k:,} a node,")
    if ranks > MOST and pattern in ("turns", "all"):  # as many bytes a rank cross each cut, in proportion
        scale = ranks / MOST if pattern == "all" else 1.0
        per_byte, hops = _cut(topology, pattern, MOST, distance, k, distribution)
        return per_byte * scale, hops
    source = np.arange(ranks)
    if pattern in ("turns", "all"):
        ahead = np.unique(np.linspace(1, ranks - 1, min(ranks - 1, DISTANCES)).astype(np.int64))
        each = [(source, (source + d) % ranks) for d in ahead.tolist()]
        if pattern == "turns":
            found = np.array([_loaded(topology, *pair, ranks, k, distribution) for pair in each])
            return float(found[:, 0].mean()), float(found[:, 1].max())
        sources, targets = (np.concatenate(part) for part in zip(*each, strict=True))
        per_byte, hops = _loaded(topology, sources, targets, ranks, k, distribution)
        return per_byte * (ranks - 1) / len(ahead), hops
    if pattern == "exchange":
        target = source ^ distance
    elif pattern == "level":
        source = source[: max(min(distance, ranks - distance), 0)]
        target = source + distance
    else:
        target = (source + distance) % ranks
    inside = target < ranks
    return _loaded(topology, source[inside], target[inside], ranks, k, distribution)


def _loaded(
    topology: Topology, source: Ints, target: Ints, ranks: int, k: int, distribution: str
) -> tuple[float, float]:
    """Of messages of one byte each: seconds on the busiest link, and switches of the longest way, from the first on."""
    nodes = -(-ranks // k)
    here, there = (each // k if distribution == "block" else each % nodes for each in (source, target))
    apart = here != there
    if not apart.any():
        return 0.0, 0.0
    here, there = here[apart], there[apart]
    busiest = topology.routes(here, there).narrowest(np.ones(len(here)))
    return float(busiest.max()), float(topology.hops(here, there).max()) + 1.0
