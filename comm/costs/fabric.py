"""The machine as a collective's steps see it: ranks dealt out to nodes, a link inside nodes and one between them.

A step is one of four patterns over ranks at a distance ``d``: every rank exchanges with its partner ``i xor d``, every
rank sends to ``i + d``, one level of a tree sends, or a root sends to many. What differs between them is how many pairs
of one node cross its border at the same time, and so share its link.

Where the shape of the network between nodes is known, a step takes no less than the bytes over the narrowest link that
they cross, and each switch beyond the first adds its latency (:mod:`ranksight.comm.costs.cuts`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from ranksight.comm.costs.cuts import cuts
from ranksight.comm.network import NetworkParameters, Piecewise
from ranksight.comm.topology.shape import End, Topology
from ranksight.core.arrays import Array, Ints, ratio
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass

DISTRIBUTIONS = ("block", "cyclic")
"""How ranks are dealt out to nodes: a node is filled before the next one is used, or the nodes take turns."""


@dataclass(frozen=True, slots=True)
class Fabric:
    """A network of two levels."""

    intra: NetworkParameters | None
    inter: NetworkParameters | None
    """Links inside a node and between nodes; one of them may be missing, and then all messages take the other."""
    ranks_per_node: int = 1  # ranks on a node; with 1 all messages go between nodes
    distribution: str = "block"  # one of :data:`DISTRIBUTIONS`
    topology: Topology | None = None  # of the network between nodes, where it is known

    def __post_init__(self) -> None:
        if self.ranks_per_node < 1:
            raise InputError(f"{self.ranks_per_node} ranks per node", "give 1 or more")
        if self.distribution not in DISTRIBUTIONS:
            raise InputError(f"no distribution is named {self.distribution!r}", f"known: {', '.join(DISTRIBUTIONS)}")
        if self.intra is None and self.inter is None:
            raise InputError("the network has neither parameters inside nor between nodes", "calibrate it")
        shape, link = self.topology, self.inter
        if shape is not None and link is not None:
            rate = None if shape.message_rate is None else shape.adapters * shape.message_rate
            known = replace(link, message_rate=link.message_rate or rate)
            if link.node_bandwidth is None:
                # One stream goes through one adapter.
                known = replace(known, contention=min(link.contention, 1.0 / shape.adapters))
            else:
                # What links carry of a message over what they carry on paper is the same on all of them.
                shape = replace(shape, link_bandwidth=link.node_bandwidth / shape.adapters)
            object.__setattr__(self, "inter", known)
            object.__setattr__(self, "topology", shape)

    @classmethod
    def flat(cls, link: NetworkParameters) -> Fabric:
        """A fabric in which all pairs of ranks have the same link, and no two share it."""
        return cls(None, link, 1)

    @classmethod
    def from_dict(cls, content: Mapping[str, object], ranks_per_node: int, where: str = "network") -> Fabric:
        """From a platform's ``[network]`` table with its ``intra`` and ``inter``.

        `content`: plain data; other entries, such as ``collectives``, are ignored. `where`: file and table, for
        messages. Raises InputError when a table is malformed, or there is none.
        """
        known = {level: content[level] for level in ("intra", "inter") if level in content}
        links = {level: NetworkParameters.from_dict(table, f"{where}.{level}") for level, table in known.items()}
        return cls(links.get("intra"), links.get("inter"), ranks_per_node)

    def at(self, end: End) -> Fabric:
        """The same with what is uncertain of the network's shape at one end."""
        return self if self.topology is None else replace(self, topology=self.topology.at(end))

    @property
    def reduction(self) -> float:
        """Seconds to combine one byte of two operands."""
        known = [link.reduction for link in (self.intra, self.inter) if link is not None and link.reduction > 0]
        return known[0] if known else 0.0

    @property
    def near(self) -> NetworkParameters:
        """The link inside a node; that between nodes where no other is known."""
        return self._either(self.intra, self.inter)

    @property
    def far(self) -> NetworkParameters:
        """The link between nodes; that inside a node where no other is known."""
        return self._either(self.inter, self.intra)

    def weight(self, size: ArrayLike) -> Array:
        """Bytes that links between nodes carry for each byte of a message, 1 or more.

        What a stream of messages of that size lacks to the bandwidth of its adapter, no other stream can have: headers,
        and the time between packets, take it on every link of the way.
        """
        size = np.asarray(size, dtype=float)
        if self.topology is None:
            return np.ones(size.shape)
        per_byte = ratio(self.far.occupied(size), size, 0.0)
        return np.maximum(self.far.part * per_byte * self.topology.node_bandwidth, 1.0)

    def switching(self, size: Array, hops: Ints | Array | int) -> Array:
        """Seconds that messages take in so many switches beyond those between neighbours; 0 where no shape is known.

        A message that waits for its receiver crosses them three times: asking, answered, and itself (Ino et al.,
        "LogGPS", PPoPP 2001). A latency that was measured by size has that already.
        """
        latency, limit = 0.0 if self.topology is None else self.topology.hop_latency, self.far.eager_limit
        if isinstance(latency, Piecewise):
            return np.asarray(hops * latency(size), dtype=float)
        crossings = 1.0 if limit is None else np.where(np.asarray(size) >= limit, 3.0, 1.0)
        return np.asarray(hops * crossings * latency, dtype=float)

    @property
    def inside(self) -> int:
        """Pairs of a node whose messages share its memory at the same time; 1 where its bandwidth is not described."""
        return self.ranks_per_node if self.intra is not None and self.intra.node_bandwidth is not None else 1

    @staticmethod
    def _either(link: NetworkParameters | None, other: NetworkParameters | None) -> NetworkParameters:
        found = link or other
        assert found is not None  # of a fabric without any none is made
        return found

    def nodes(self, ranks: ArrayLike) -> Ints:
        """Nodes that the ranks fill."""
        return np.asarray(-(-np.asarray(ranks, dtype=np.int64) // self.ranks_per_node))

    def node_of(self, rank: Ints, ranks: int) -> Ints:
        """The node of each rank, from 0, where there are `ranks`."""
        if self.distribution == "block":
            return np.asarray(rank // self.ranks_per_node)
        return np.asarray(rank % int(self.nodes(ranks)))

    def link(self, distance: int) -> NetworkParameters:
        """The link that a tree's message to so distant a rank takes."""
        return self.far if distance >= self.ranks_per_node else self.near

    def hops(self, size: ArrayLike, far: ArrayLike, near: ArrayLike) -> Array:
        """So many messages between nodes and inside, one after the other, ``far T_far + near T_near``; seconds."""
        size, far, near = np.broadcast_arrays(np.asarray(size, dtype=float), far, near)
        time = far * self.far.transfer_time(size) if bool(np.any(far > 0)) else np.zeros(size.shape)
        return np.asarray(time + near * self.near.transfer_time(size) if bool(np.any(near > 0)) else time)

    def _cut(self, pattern: str, ranks: ArrayLike, size: ArrayLike, distance: ArrayLike = 1) -> Array:
        """Least seconds of a step of `size` bytes by the narrowest link it crosses; 0 where no shape is known."""
        if self.topology is None:
            return np.zeros(np.broadcast_shapes(np.shape(ranks), np.shape(size), np.shape(distance)))
        placed = self.ranks_per_node, self.distribution
        per_byte, hops = cuts(self.topology, pattern, np.asarray(ranks), np.asarray(distance), *placed)
        size = np.asarray(size, dtype=float)
        start = self.far.transfer_time(size) - self.far.transfer.slope(size) * size
        wire = np.maximum(self.far.transfer.slope(size), per_byte * self.weight(size)) * size
        return np.asarray(np.where(hops > 0, start + wire + self.switching(size, hops - 1), 0.0))

    def _turns(self, ranks: Ints, size: ArrayLike, distance: ArrayLike, senders: ArrayLike) -> Array:
        """A step to `distance` where the nodes take turns: inside a node at multiples of their number alone."""
        inside = np.asarray(distance, dtype=np.int64) % self.nodes(ranks) == 0
        return self._slowest(size, np.where(inside, 0, senders), inside)

    def _slowest(self, size: ArrayLike, crossing: ArrayLike, inside: ArrayLike) -> Array:
        """Time of a step in which `crossing` pairs of a node cross its border and others, if `inside`, stay within."""
        size, crossing, inside = np.broadcast_arrays(
            np.asarray(size, dtype=float), np.asarray(crossing, dtype=float), np.asarray(inside, dtype=bool)
        )
        time = np.zeros(size.shape)
        if bool(np.any(crossing > 0)):
            time = np.where(crossing > 0, self.far.transfer_time(size, crossing), time)
        if bool(np.any(inside)):
            time = np.where(inside, np.maximum(time, self.near.transfer_time(size, self.inside)), time)
        return time

    def exchange(self, ranks: Ints, size: ArrayLike, distance: ArrayLike) -> Array:
        """Every rank exchanges `size` bytes with ``rank xor distance``; full duplex, seconds."""
        k, distance = self.ranks_per_node, np.asarray(distance)
        if self.distribution == "cyclic":
            return np.maximum(self._turns(ranks, size, distance, k), self._cut("exchange", ranks, size, distance))
        within = (k % (2 * np.maximum(distance, 1)) == 0) | (ranks <= k)
        time = self._slowest(size, np.where(within, 0, np.minimum(k, distance)), (k > distance) & (k > 1))
        return np.maximum(time, self._cut("exchange", ranks, size, distance))

    def shift(self, ranks: Ints, size: ArrayLike, distance: ArrayLike) -> Array:
        """Every rank sends `size` bytes to ``rank + distance`` (modulo the ranks) and receives as much; seconds."""
        k, ahead = self.ranks_per_node, np.asarray(distance, dtype=np.int64)
        if self.distribution == "cyclic":
            return np.maximum(self._turns(ranks, size, ahead, k), self._cut("shift", ranks, size, ahead))
        hops = np.minimum(ahead, np.maximum(ranks - ahead, 0))
        time = self._slowest(size, np.where(ranks <= k, 0, np.minimum(k, hops)), (k > hops) & (k > 1))
        return np.maximum(time, self._cut("shift", ranks, size, ahead))

    def level(self, ranks: Ints, size: ArrayLike, distance: ArrayLike) -> Array:
        """One level of a tree: ranks below `distance` send `size` bytes that far, one a node where they fill nodes in
        blocks; seconds."""
        k, distance = self.ranks_per_node, np.asarray(distance)
        if self.distribution == "cyclic":
            return self._turns(ranks, size, distance, np.minimum(-(-distance // self.nodes(ranks)), k))
        near = (distance < k) & (k > 1)
        far = (~near | (k % (2 * np.maximum(distance, 1)) != 0)) & (ranks > k)
        time = self._slowest(size, far.astype(int), near | (ranks <= k))
        return np.maximum(time, self._cut("level", ranks, size, distance))

    def ring(self, ranks: Ints, size: ArrayLike) -> Array:
        """``p - 1`` steps around a ring, each block passed on as it comes; seconds.

        A block's way crosses every node's border once, ``n T_far + (p - 1 - n) T_near``, and no link passes blocks
        faster than one an ``after``: the larger of the two. On one level it is ``(p - 1) T(m)``. Where nodes take turns
        every step of every rank crosses a border.
        """
        size, ranks = np.broadcast_arrays(np.asarray(size, dtype=float), ranks)
        if self.distribution == "cyclic":
            return np.asarray((ranks - 1) * self.shift(ranks, size, 1))
        nodes = self.nodes(ranks)
        several = nodes > 1
        crossing = np.where(several, np.minimum(nodes, ranks - 1), 0)
        time = self.hops(size, crossing, ranks - 1 - crossing)
        if bool(np.any(several)):
            time = np.where(several, np.maximum(time, (ranks - 1) * _between(self.far, size, True)), time)
        return np.maximum(time, (ranks - 1) * self._cut("shift", ranks, size))

    def after(self, ranks: Ints, size: ArrayLike, distance: ArrayLike) -> Array:
        """Time from one blocking send of a tree to its sender's next, where the first goes to `distance`; seconds."""
        size, distance, ranks = np.broadcast_arrays(np.asarray(size, dtype=float), np.asarray(distance), ranks)
        far = (distance >= self.ranks_per_node) & (ranks > self.ranks_per_node)
        if self.distribution == "cyclic":
            far = distance % self.nodes(ranks) != 0
        time = np.zeros(size.shape)
        if bool(np.any(far)):
            time = np.where(far, _between(self.far, size, True), time)
        if not bool(np.all(far)):
            time = np.where(far, time, _between(self.near, size, True))
        return time

    def fan(self, ranks: Ints, size: ArrayLike, peers: ArrayLike, in_turn: bool = False) -> Array:
        """One rank sends `size` bytes to each of `peers` others, one after the other; seconds.

        ``(n - 1) spacing(s) + T(s)``, LogGP's cost of a train of messages. Receiving from many costs the same. With
        `in_turn` the calls block, and from the eager limit on each waits for its message: ``n T(s)``.
        """
        k = self.ranks_per_node
        peers = np.asarray(peers, dtype=float)
        size, peers, ranks = np.broadcast_arrays(np.asarray(size, float), peers, ranks)
        near = np.minimum(peers, k - 1) if k > 1 else np.zeros(peers.shape)
        far = peers - near
        time = np.zeros(size.shape)
        if bool(np.any(far > 0)):
            train = np.maximum(far - 1, 0) * _between(self.far, size, in_turn) + self.far.transfer_time(size)
            time = time + np.where(far > 0, train, 0.0)
        if bool(np.any(near > 0)):
            link = self.near
            # After messages between nodes those inside follow in the same train; alone, the last one is waited for.
            step = _between(link, size, in_turn)
            last = np.where(far > 0, step, link.transfer_time(size))
            time = time + np.where(near > 0, np.maximum(near - 1, 0) * step + last, 0.0)
        return time

    def together(self, ranks: Ints, size: ArrayLike) -> Array:
        """Least seconds of messages of `size` bytes from every rank to every other at once, by the narrowest link."""
        return self._cut("all", ranks, size)

    def everyone(self, ranks: Ints, size: ArrayLike) -> Array:
        """Sum over ``d = 1 .. p - 1`` of :meth:`shift`: every rank meets every other once; seconds."""
        size, ranks = np.broadcast_arrays(np.asarray(size, float), ranks)
        return np.maximum(self._everyone(ranks, size), (ranks - 1) * self._cut("turns", ranks, size))

    def _everyone(self, ranks: Ints, size: Array) -> Array:
        """:meth:`everyone` on nodes that all have the same link to all others."""
        k = self.ranks_per_node
        if self.distribution == "cyclic":
            near = np.where(ranks > k, -(-ranks // self.nodes(ranks)), ranks) - 1
            time = np.where(
                near < ranks - 1, (ranks - 1 - near) * self._slowest(size, np.where(ranks > k, k, 0), False), 0.0
            )
            return np.asarray(time + np.where(near > 0, near * self._slowest(size, 0, near > 0), 0.0))
        several = np.asarray(ranks > k)
        time = (ranks - 1) * self._slowest(size, 0, ~several & (ranks > 1))
        if not several.any():  # one node, however many ranks it may hold
            return np.asarray(time)
        inner = np.where(several, np.maximum(ranks - 1 - 2 * (k - 1), 0), 0)
        if bool(np.any(inner > 0)):
            time = time + inner * self._slowest(size, np.where(inner > 0, k, 0), False)
        if k > 1:
            # Distances d and p - d near both ends cross the border d times; where they meet, each is counted once.
            at = np.arange(1, k).reshape((-1,) + (1,) * size.ndim)
            twice = np.where(several, np.clip(ranks - 1 - 2 * (at - 1), 0, 2), 0)
            crossing = np.where(twice > 0, at, 0)
            time = time + (twice * self._slowest(np.broadcast_to(size, crossing.shape), crossing, True)).sum(axis=0)
        return np.asarray(time)


def _between(link: NetworkParameters, size: Array, in_turn: bool) -> Array:
    """Time from one message to the next of a train; where calls block and wait, the whole message."""
    if not in_turn or link.eager_limit is None:
        return link.spacing(size)
    return np.where(size >= link.eager_limit, link.transfer_time(size), link.spacing(size))


def over_rounds(rounds: Ints, step: Callable[[int], Array]) -> Array:
    """Sum of ``step(j)`` over the rounds ``j = 0, 1, ...`` of each number of ranks, as many as `rounds` says."""
    parts = (np.where(j < rounds, step(j), 0.0) for j in range(int(rounds.max(initial=0))))
    return np.asarray(sum(parts, np.zeros(rounds.shape)))


def ceil_log2(ranks: ArrayLike) -> Ints:
    """Smallest `k` with ``2**k >= ranks``, exactly; 0 at one rank."""
    return np.asarray(np.frexp(np.maximum(np.asarray(ranks, dtype=np.int64), 1) - 1)[1], dtype=np.int64)


def floor_log2(ranks: ArrayLike) -> Ints:
    """Largest `k` with ``2**k <= ranks``, exactly."""
    return np.asarray(np.frexp(np.maximum(np.asarray(ranks, dtype=np.int64), 1))[1] - 1, dtype=np.int64)
