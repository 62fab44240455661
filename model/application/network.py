"""The network that a program's messages are put on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ranksight.comm.costs.collective import OPERATIONS
from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.costs.selection import TABLES, Selector, algorithms_of, forced, selector, stated
from ranksight.comm.network import NetworkParameters
from ranksight.comm.topology.described import from_dict, to_dict
from ranksight.comm.topology.shape import Topology
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass
from ranksight.model.application.comm_blocking import LIBRARY, STATED
from ranksight.model.plaindata import Some, known
from ranksight.model.priors import ALGORITHMS

USUAL = "openmpi-5.0"
"""The library whose algorithms are taken where none is stated."""


@dataclass(frozen=True)
class Network(Some):
    """The network that messages are put on, as plain data of a platform's ``[network]`` table, and ranks on its nodes;
    false where none is described.

    `distribution`: how ranks are dealt out to nodes, one of :data:`ranksight.comm.costs.fabric.DISTRIBUTIONS`.
    """

    table: Mapping[str, Any]
    ranks_per_node: int
    distribution: str = "block"

    def fabric(self) -> Fabric:
        """Links inside and between nodes; InputError where the table describes none.

        Where only messages between nodes are described, every rank is taken to have a node of its own.
        """
        links = {
            name: NetworkParameters.from_dict(self.table[name], f"network.{name}")
            for name in ("intra", "inter")
            if isinstance(self.table.get(name), Mapping)
        }
        between_only = "inter" in links and "intra" not in links
        per_node = 1 if between_only and not self.topology else self.ranks_per_node
        return Fabric(links.get("intra"), links.get("inter"), per_node, self.distribution, self.topology)

    @property
    def topology(self) -> Topology | None:
        """Shape of the network between nodes; None where the table has none. InputError where it is damaged."""
        return from_dict(self.table["topology"]) if "topology" in self.table else None

    def shaped(self, topology: Topology) -> Network:
        """The same network with another shape between nodes."""
        return replace(self, table={**self.table, "topology": to_dict(topology)})

    @property
    def node(self) -> float:
        """Ranks that fill a node; 0 where messages between nodes are not described apart."""
        return float(self.ranks_per_node) if "inter" in self.table else 0.0

    def placed(self, ranks_per_node: int | None, distribution: str | None) -> Network:
        """The same network with ranks placed in another way; as it is where no messages between nodes are described."""
        if "inter" not in self.table:
            return self
        return replace(self, **known(ranks_per_node=ranks_per_node, distribution=distribution))

    def algorithms(self) -> dict[str, str]:
        """Algorithms of collectives as the table's ``algorithms`` states them; InputError where one is not known."""
        table = self.table.get("algorithms", {})
        if not isinstance(table, Mapping):
            raise InputError("[network.algorithms] is not a table", 'write allreduce = "ring"')
        return stated({str(name): str(kind) for name, kind in table.items()}, "[network.algorithms]")

    def stating(self, algorithms: Mapping[str, str]) -> Network:
        """The same network with these algorithms of collectives, besides those stated already."""
        return replace(self, table={**self.table, "algorithms": {**self.algorithms(), **algorithms}})

    def choice(self, kind: str = "", way: str = STATED) -> Selector:
        """The choice of collective algorithms: as the table states it, else Open MPI's.

        `kind` and `way`: an operation and one of its :meth:`ways`, which it takes instead.
        """
        if way.startswith(LIBRARY):
            return selector(way.removeprefix(LIBRARY))
        algorithms = self.algorithms() | ({kind: way} if way != STATED else {})
        rules = selector(str(self.table.get("collectives", USUAL)))
        return forced(algorithms, rules) if algorithms else rules

    def ways(self, kind: str) -> dict[str, float]:
        """Hypotheses of the algorithm of a kind of operations, and their prior weights; see
        :mod:`ranksight.model.application.comm_blocking`."""
        if kind not in OPERATIONS or "collectives" in self.table or kind in self.algorithms():
            return {STATED: 1.0}
        groups = {
            "default": (STATED,),
            "libraries": tuple(LIBRARY + name for name in TABLES if name != USUAL),
            "algorithms": tuple(name for name in algorithms_of(kind) if name != "hierarchical"),
        }
        return {way: ALGORITHMS[group] / len(ways) for group, ways in groups.items() for way in ways}


NO_NETWORK = Network({}, 1 << 30)
"""Where no network is described: all ranks share a node."""
