"""Shapes of networks between nodes: which links a message crosses, and what each of them carries a second.

Links that run in parallel between the same two parts of a network count as one with their bandwidths together, as under
adaptive routing, but where routing is static. Sources: Leiserson, IEEE Trans. Comp. C-34 (1985) 892 (fat tree);
Zahavi, J. Parallel Distrib. Comput. 72 (2012) 1423 (its static routing); Kim, Dally, Scott and Abts, ISCA
2008 (dragonfly); Dally and Towles, "Principles and Practices of Interconnection Networks", 2004, chapters 5 and 8
(torus, dimension order); Ajima et al., IEEE CLUSTER 2018 (Tofu D).
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import Literal

import numpy as np

from ranksight.comm.network import Piecewise
from ranksight.core.arrays import Array, Index, Ints
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass

KINDS = ("fat tree", "dragonfly", "torus")
EQUAL, ROUND_TRIP = SHARINGS = ("equal", "round trip")
"""How messages share a link: all equally, or in proportion to the inverse of their round trips (TCP's flow control)."""
UNKNOWN = (1.0, 4.7)
"""Taper where none is known: between a tree without blocking and the most blocking of published systems, 33:7 (Digital
Research Alliance of Canada, Narval)."""
End = Literal["middle", "fast", "slow"]
Taper = tuple[float, float]
Part = tuple[Index, Ints, Array]
"""Of one kind of links: messages that cross one, which, and B/s of each link."""


@dataclass(frozen=True, slots=True)
class Routes:
    """Links that messages cross: message ``message[i]`` crosses link ``link[i]``; ``capacity`` in B/s by link.

    ``load[i]``: bytes on that link for each byte of the message; 1 where not given.
    """

    message: Ints
    link: Ints
    capacity: Array
    load: Array | None = None

    def among(self, at: Index) -> Routes:
        """Those of the messages `at` (n,) alone, which are numbered as they are there."""
        number = np.full(int(max(self.message.max(initial=-1), at.max(initial=-1))) + 1, -1)
        number[at] = np.arange(len(at))
        kept = number[self.message] >= 0
        load = None if self.load is None else self.load[kept]
        return Routes(number[self.message[kept]], self.link[kept], self.capacity, load)

    def narrowest(self, volume: Array) -> Array:
        """Seconds that the busiest link of each message takes for all bytes that cross it, (e,).

        `volume` (e,): bytes of each message.
        """
        load = np.bincount(self.link, weights=volume[self.message], minlength=len(self.capacity)) / self.capacity
        seconds = np.zeros(len(volume))
        np.maximum.at(seconds, self.message, load[self.link])
        return seconds


@dataclass(frozen=True)
class Topology:
    """A network between nodes, numbered in the order in which jobs fill them."""

    kind: str  # of :data:`KINDS`
    extents: tuple[int, ...]
    """Fat tree: nodes below a switch of each level, rising, the last all nodes. Dragonfly: nodes of a router,
    routers of a group, groups. Torus: nodes along each dimension, the last varies fastest."""
    link_bandwidth: float  # B/s each way of a link, and of an adapter
    tapers: tuple[Taper, ...] = ()
    """Fat tree: of each level below the top, bandwidth of its nodes over that of its links up, ends of an interval.
    Dragonfly: of a group. Empty where not known."""
    adapters: int = 1  # of a node; its ranks share them
    message_rate: float | None = None  # messages a second of an adapter
    hop_latency: float | Piecewise = 0.0
    """Seconds of each switch beyond those between neighbours: a number, of one crossing, or as measured by size."""
    routing: str = ""
    """Dragonfly: ``minimal`` (one link between two groups carries their messages) or ``adaptive``. Fat tree: ``static``
    (the target's number decides which of the parallel links a message takes) or ``adaptive``, also where left out."""
    sharing: str = EQUAL  # of :data:`SHARINGS`
    name: str = ""
    end: End = "middle"  # which end of the tapers' intervals holds

    def __post_init__(self) -> None:
        def refuse(what: str, remedy: str) -> None:
            raise InputError(f"topology{f' {self.name}' if self.name else ''}: {what}", remedy)

        if self.kind not in KINDS:
            refuse(f"no kind is named {self.kind!r}", f"known: {', '.join(KINDS)}")
        if not self.extents or min(self.extents) < 1 or math.prod(self.extents) > 1 << 62:
            refuse(f"sizes {list(self.extents)}", "give whole numbers from 1")
        if self.kind == "fat tree" and any(
            b <= a or b % a for a, b in zip(self.extents, self.extents[1:], strict=False)
        ):
            refuse(f"switches of {list(self.extents)} nodes", "each level holds a whole number of those below")
        if self.kind == "dragonfly" and len(self.extents) != 3:
            refuse(f"sizes {list(self.extents)}", "give nodes of a router, routers of a group, and groups")
        if not 0 < self.link_bandwidth < math.inf:
            refuse(f"link_bandwidth is {self.link_bandwidth:g}", "a link carries bytes: give B/s above 0")
        for low, high in self.tapers:
            if not 0 < low <= high < math.inf:
                refuse(f"taper {low:g} to {high:g} leaves a cut without bandwidth", "give numbers above 0, rising")
        if self.tapers and len(self.tapers) != self._tapered:
            refuse(f"{len(self.tapers)} tapers for {self._tapered} cuts", "give one for each")
        slow = self.hop_latency if isinstance(self.hop_latency, float | int) else 0.0
        if self.adapters < 1 or slow < 0 or (self.message_rate is not None and not self.message_rate > 0):
            refuse("adapters, message_rate or hop_latency is out of range", "give numbers above 0")
        ways = {"fat tree": ("static", "adaptive"), "dragonfly": ("minimal", "adaptive"), "torus": ()}[self.kind]
        if self.routing not in ("", *ways):
            refuse(f"routing {self.routing!r}", f"{' or '.join(ways) or 'no routing is known'}; leave out the unknown")
        if self.sharing not in SHARINGS:
            refuse(f"sharing {self.sharing!r}", f"give {' or '.join(SHARINGS)}")

    @property
    def _tapered(self) -> int:
        return {"fat tree": len(self.extents) - 1, "dragonfly": 1, "torus": 0}[self.kind]

    @property
    def nodes(self) -> int:
        """Nodes that it holds."""
        return self.extents[-1] if self.kind == "fat tree" else math.prod(self.extents)

    @property
    def node_bandwidth(self) -> float:
        """Bytes a second of a node's adapters together, each way."""
        return self.adapters * self.link_bandwidth

    @property
    def uncertain(self) -> bool:
        """Whether a taper or the routing is an interval."""
        return any(low < high for low, high in self._tapers) or (self.kind == "dragonfly" and not self.routing)

    @property
    def _tapers(self) -> tuple[Taper, ...]:
        return self.tapers or (UNKNOWN,) * self._tapered

    @property
    def text(self) -> str:
        """In a few words, such as ``fat tree of 2,304 nodes, 24 a switch, taper 1 to 4.7``."""
        parts = {
            "fat tree": f"{self.extents[0]:,} a switch",
            "dragonfly": f"{self.extents[-1]:,} groups",
            "torus": " x ".join(map(str, self.extents)),
        }
        tapers = ", ".join(f"{a:.3g}" if a == b else f"{a:.3g} to {b:.3g}" for a, b in self._tapers)
        return f"{self.kind} of {self.nodes:,} nodes, {parts[self.kind]}" + (f", taper {tapers}" if tapers else "")

    def at(self, end: End) -> Topology:
        """The same network with every interval at one end."""
        return self if end == self.end else replace(self, end=end)

    def holds(self, nodes: int, what: str = "") -> None:
        """Raise InputError where it has fewer than `nodes` nodes."""
        if nodes > self.nodes:
            name = f"{self.kind} {self.name}".strip()
            raise InputError(
                f"the {name} holds {self.nodes:,} nodes, {what or 'the job'} needs {nodes:,}",
                "ask for fewer ranks or more ranks per node, or correct the topology's sizes",
            )

    @cached_property
    def _taper(self) -> tuple[float, ...]:
        if self.end == "middle":
            return tuple(math.sqrt(low * high) for low, high in self._tapers)
        return tuple(ends[self.end == "slow"] for ends in self._tapers)

    @property
    def _minimal(self) -> bool:
        return self.routing == "minimal" or (not self.routing and self.end == "slow")

    def hops(self, source: Ints, target: Ints) -> Ints:
        """Switches that a message passes beyond those between neighbours, (e,)."""
        if self.kind == "fat tree":
            levels = [source // n != target // n for n in self.extents[:-1]]
            return np.asarray(2 * np.sum([np.zeros(len(source), dtype=np.int64), *levels], axis=0), dtype=np.int64)
        if self.kind == "dragonfly":
            here, there = source // self.extents[0], target // self.extents[0]
            out, into = self._gateways(here, there)
            between = out >= 0
            found = np.where(between, 1 + (here != out) + (there != into), here != there)
            return np.asarray(found, dtype=np.int64)
        steps = sum((np.abs(way) for way in self._torus(source, target)), np.zeros(len(source), np.int64))
        return np.maximum(steps - 1, 0)

    def _gateways(self, here: Ints, there: Ints) -> tuple[Ints, Ints]:
        """Routers by which messages between routers leave their group and come into the other's; -1 within a group.

        The links of a group to the others are dealt out to its routers in the order of the groups (the absolute
        arrangement: Camarero, Vallejo and Beivide, ACM TACO 11 (2014) 39).
        """
        _, r, groups = self.extents
        own, other = here // r, there // r
        ports = [b - (b > a) for a, b in ((own, other), (other, own))]
        out, into = (a * r + port * r // max(groups - 1, 1) for a, port in zip((own, other), ports, strict=True))
        return np.where(own != other, out, -1), np.where(own != other, into, -1)

    def routes(self, source: Ints, target: Ints) -> Routes:
        """Links between nodes that messages cross, those of the nodes' own adapters first.

        `source`, `target` (e,): nodes of the sender and of the receiver. A message inside a node crosses none.
        """
        source, target = np.asarray(source, dtype=np.int64), np.asarray(target, dtype=np.int64)
        nodes = int(max(source.max(initial=-1), target.max(initial=-1))) + 1
        self.holds(nodes)
        apart = np.flatnonzero(source != target)
        own = np.full(nodes, self.node_bandwidth)
        make = {"fat tree": self._tree, "dragonfly": self._dragonfly, "torus": self._mesh}[self.kind]
        parts = [(apart, source[apart], own), (apart, target[apart], own), *make(source, target)]
        offset = np.cumsum([0, *(len(rates) for *_, rates in parts)])
        link = [of + begin for (_, of, _), begin in zip(parts, offset.tolist(), strict=False)]
        return Routes(*(np.concatenate(each) for each in ([p[0] for p in parts], link, [p[2] for p in parts])))

    def _tree(self, source: Ints, target: Ints) -> list[Part]:
        """Links up and down of each level; by static routing the target modulo their number is taken."""
        found = []
        for n, taper in zip(self.extents[:-1], self._taper, strict=True):
            at = np.flatnonzero(source // n != target // n)
            links = max(round(n * self.adapters / taper), 1) if self.routing == "static" else 1
            rates = np.full(self.nodes // n * links, n * self.node_bandwidth / taper / links)
            found += [(at, end[at] // n * links + target[at] % links, rates) for end in (source, target)]
        return found

    def _dragonfly(self, source: Ints, target: Ints) -> list[Part]:
        """Links out of and into each group; by minimal routing those between two groups, equally wide."""
        n, groups = self.extents[0] * self.extents[1], self.extents[2]
        near, far = source // n, target // n
        at, whole = np.flatnonzero(near != far), n * self.node_bandwidth / self._taper[0]
        rates = np.full(groups, whole)
        found = [(at, near[at], rates), (at, far[at], rates)]
        if self._minimal and groups > 1:
            pairs, of = np.unique(near[at] * groups + far[at], return_inverse=True)
            found.append((at, of.reshape(-1), np.full(len(pairs), whole / (groups - 1))))
        return found

    def _torus(self, source: Ints, target: Ints) -> list[Ints]:
        """Steps along each dimension, the shorter way around, with their sign."""
        here, there = (np.unravel_index(node, self.extents) for node in (source, target))
        ways = [(b - a) % extent for extent, a, b in zip(self.extents, here, there, strict=True)]
        return [np.where(way > n // 2, way - n, way) for n, way in zip(self.extents, ways, strict=True)]

    def _mesh(self, source: Ints, target: Ints) -> list[Part]:
        """Links of a torus, one dimension after the other: two of each node and dimension."""
        place, found = [np.array(axis) for axis in np.unravel_index(source, self.extents)], []
        for axis, way in enumerate(self._torus(source, target)):
            sign = np.sign(way)
            for step in range(int(np.abs(way).max(initial=0))):
                at = np.flatnonzero(np.abs(way) > step)
                node = np.ravel_multi_index(tuple(place), self.extents)[at]
                found.append((at, 2 * (node * len(place) + axis) + (sign[at] > 0)))
                place[axis] = np.where(np.abs(way) > step, (place[axis] + sign) % self.extents[axis], place[axis])
        rates = np.full(2 * self.nodes * len(place), self.link_bandwidth)
        whole = [np.concatenate([part[i] for part in found]) if found else source[:0] for i in (0, 1)]
        return [(whole[0], whole[1], rates)]
