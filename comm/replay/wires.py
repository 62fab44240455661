"""What each message of a set that is under way together costs on the network, by LogGPS.

A message leaves its sender after ``o_s``, one every ``max(o_s, g(0))``; it arrives ``T(s) - o_s - o_r - s G`` and its
bytes later, and takes its receiver ``o_r``. From the eager limit on it leaves when the receiver has asked for it.
Its bytes take ``s G``, or longer where messages share links (:mod:`ranksight.comm.topology.sharing`).
Source: Ino, Fujimoto and Hagihara, "LogGPS", PPoPP 2001.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.network import NetworkParameters, Piecewise
from ranksight.comm.topology.shape import ROUND_TRIP, Routes, Topology
from ranksight.comm.topology.sharing import shared_seconds
from ranksight.core.arrays import Array, Ints, Mask, ratio
from ranksight.core.records import dataclass


@dataclass(frozen=True)
class Wires:
    """Costs of e messages between e pairs of ranks, in seconds."""

    source: Ints  # (e,): sending and receiving ranks
    target: Ints
    size: Array  # (e,): bytes
    before: Array  # (e,): from when the sender begins to send until this message of its is on its way
    busy: Array  # (e,): of these the processor's time for this message
    latency: Array  # (e,): until its first byte arrives
    wire: Array  # (e,): until its last byte has
    after: Array  # (e,): the receiver's time for it
    waits: Mask  # (e,): whether it waits until its receiver asks for it
    apart: Mask  # (e,): whether it goes between nodes


def places_of(fabric: Fabric, ranks: int, places: Ints | None = None) -> Ints:
    """The node of each rank: as `places` states, otherwise as the fabric deals them out."""
    return fabric.node_of(np.arange(ranks), ranks) if places is None else places


def wires(fabric: Fabric, source: Ints, target: Ints, size: Array, nodes: Ints) -> Wires:
    """Costs of messages that ranks begin to send together.

    `nodes` (P,): node of each rank.
    """
    costs = unshared(fabric, source, target, size, nodes)
    # Links are shared from when the first byte arrives.
    return replace(costs, wire=costs.wire + Links.of(fabric, costs, nodes).longer(costs.latency + costs.before))


def unshared(fabric: Fabric, source: Ints, target: Ints, size: Array, nodes: Ints) -> Wires:
    """The same where no other message is on their links."""
    here, there = nodes[source], nodes[target]
    apart = here != there
    each = np.zeros((5, len(source)))
    waits = np.zeros(len(source), dtype=bool)
    for way, link in ((apart, fabric.far), (~apart, fabric.near)):
        if not way.any():
            continue
        s = size[way]
        zero = np.zeros(s.shape)
        sent = zero if link.send_overhead is None else link.send_overhead(s)
        taken = zero if link.receive_overhead is None else link.receive_overhead(s)
        # What a message takes longer than one in a stream does is no traffic: it passes while others do.
        bytes_ = np.minimum(link.transfer.slope(s) * s, link.occupied(s))
        start = np.maximum(link.transfer(s) - bytes_ - sent - taken, 0.0)
        # What the gap has beyond that of an empty message is its bytes', which share the link.
        gap = 0.0 if link.gap is None else float(link.gap(0.0))
        each[:, way] = sent, start, bytes_, taken, np.maximum(sent, gap)
        if link.eager_limit is not None:
            waits[way] = s >= link.eager_limit
    busy, latency, wire, after, step = each
    if fabric.topology is not None and apart.any():
        hops = fabric.topology.hops(here[apart], there[apart])
        latency[apart] += fabric.switching(size[apart], hops)
    # Messages of one sender leave one after the other, in the order given.
    order = np.argsort(source, kind="stable")
    first = np.flatnonzero(np.diff(source[order], prepend=-1))
    gone = np.cumsum(step[order]) - step[order]
    earlier = np.empty(len(source))
    earlier[order] = gone - np.repeat(gone[first], np.diff(np.append(first, len(order))))
    return Wires(source, target, size, earlier + busy, busy, latency, wire, after, waits, apart)


@dataclass(frozen=True)
class Links:
    """Adapters, links and memory that e messages share."""

    routes: Routes
    volume: Array  # (e,): bytes that each has on links
    limit: Array  # (e,): B/s of each alone
    seconds: Array  # (e,): of its bytes alone
    part: Array | None  # (e,): in proportion to which messages share a link; equally where None

    @classmethod
    def of(cls, fabric: Fabric, costs: Wires, nodes: Ints) -> Links:
        """Those of messages that cost so much :func:`unshared`."""
        here, there, size = nodes[costs.source], nodes[costs.target], costs.size
        if not len(size):
            nothing = np.zeros(0)
            return cls(Routes(nothing.astype(np.int64), nothing.astype(np.int64), nothing), *(nothing,) * 3, None)
        routes, first = _routes(fabric, here, there)
        volume = np.where(here != there, size * _weight(fabric, size), size)
        limit, seconds = ratio(volume, costs.wire, np.inf), np.maximum(costs.wire, volume / first)
        return cls(routes, volume, limit, seconds, _part(fabric, here, there))

    def longer(self, begin: Array, volume: Array | None = None) -> Array:
        """Seconds that bytes take longer than alone where they begin then, (e,).

        `volume` (e,): bytes on links, 0 for messages that are not sent; of all where not given.
        """
        if not len(self.volume):
            return np.zeros(0)
        shared = shared_seconds(self.routes, self.volume if volume is None else volume, self.limit, begin, self.part)
        return np.maximum(shared - self.seconds, 0.0)


def _part(fabric: Fabric, here: Ints, there: Ints) -> Array | None:
    """The inverse of messages' round trips, where these decide how links are shared."""
    shape = fabric.topology
    if shape is None or shape.sharing != ROUND_TRIP:
        return None
    trip = np.full(len(here), float(fabric.near.transfer(0.0)))
    apart = here != there
    hops = shape.hops(here[apart], there[apart])
    trip[apart] = float(fabric.far.transfer(0.0)) + fabric.switching(np.zeros(len(hops)), hops)
    return ratio(np.ones(len(trip)), trip, 1.0)


def _weight(fabric: Fabric, size: Array) -> Array:
    """Bytes on links for each byte of a message; see :meth:`ranksight.comm.costs.fabric.Fabric.weight`."""
    if fabric.topology is not None:
        return fabric.weight(size)
    link = fabric.far
    return np.maximum(link.part * ratio(link.occupied(size), size, 0.0) * _carried(link), 1.0)


def _carried(link: NetworkParameters) -> float:
    """Bytes a second of a node's adapter, as messages show it."""
    stream = link.transfer if link.gap is None else link.gap
    slope = link.contention * stream.beta[-1]
    return link.node_bandwidth or (1.0 / slope if slope > 0 else 1e30)


def _routes(fabric: Fabric, here: Ints, there: Ints) -> tuple[Routes, Array]:
    """Links that messages cross: those between nodes, and a node's memory where its bandwidth is described; and B/s
    (e,) of the first of each message, an adapter or that memory, which a message alone is timed with."""
    nodes = int(max(here.max(), there.max())) + 1
    shape, link = fabric.topology, fabric.far
    if shape is None:
        shape = Topology("fat tree", (nodes,), _carried(link))
    routes = shape.routes(here, there)
    if link.opposite > 0:
        # Each byte takes as much of the links of the way back.
        both = shape.routes(np.concatenate([here, there]), np.concatenate([there, here]))
        load = np.where(both.message < len(here), 1.0, link.opposite)
        routes = Routes(both.message % len(here), both.link, both.capacity, load)
    memory = fabric.near.node_bandwidth if fabric.intra is not None else None
    first = np.where(here != there, shape.node_bandwidth, np.inf if memory is None else memory)
    if memory is None:
        return routes, first
    inside = np.flatnonzero(here == there)
    within = Routes(
        np.concatenate([routes.message, inside]),
        np.concatenate([routes.link, here[inside] + len(routes.capacity)]),
        np.concatenate([routes.capacity, np.full(nodes, memory)]),
        None if routes.load is None else np.concatenate([routes.load, np.ones(len(inside))]),
    )
    return within, first


def slower(fabric: Fabric, latency: float = 0.0, overhead: float = 0.0, bandwidth: float = 1.0) -> Fabric:
    """The same network with so many seconds more latency and overhead between nodes, and `bandwidth` times as much.

    A message that waits for its receiver takes three times the latency (:meth:`.Fabric.switching`). Where no node has
    several ranks described apart, all messages are between nodes.
    """

    def changed(link: NetworkParameters | None) -> NetworkParameters | None:
        if link is None:
            return None

        def more(function: Piecewise, seconds: float) -> Piecewise:
            alpha = tuple(a + seconds for a in function.alpha)
            return replace(function, alpha=alpha, beta=tuple(b / bandwidth for b in function.beta))

        none = Piecewise((0,), (0.0,), (0.0,))
        transfer = more(link.transfer, latency + 2 * overhead)
        if latency and link.eager_limit is not None:
            transfer = _raised(transfer, 2 * latency, link.eager_limit)
        change: dict[str, object] = {"transfer": transfer}
        if overhead:
            change["send_overhead"] = _raised(link.send_overhead or none, overhead)
            change["receive_overhead"] = _raised(link.receive_overhead or none, overhead)
        if link.gap is not None:
            change["gap"] = more(link.gap, 0.0)
        if link.node_bandwidth is not None:
            change["node_bandwidth"] = link.node_bandwidth * bandwidth
        return replace(link, **change)  # type: ignore[arg-type]

    shape = fabric.topology
    shape = None if shape is None else replace(shape, link_bandwidth=shape.link_bandwidth * bandwidth)
    if fabric.inter is None:
        return replace(fabric, intra=changed(fabric.intra), topology=shape)
    return replace(fabric, inter=changed(fabric.inter), topology=shape)


def _raised(function: Piecewise, seconds: float, begin: int = 0) -> Piecewise:
    """The function with so many seconds more from a size on."""
    first = sorted({*function.first, begin})
    at = [int(function.piece(size)) for size in first]
    alpha = tuple(function.alpha[n] + seconds * (size >= begin) for n, size in zip(at, first, strict=True))
    return Piecewise(tuple(first), alpha, tuple(function.beta[n] for n in at))
