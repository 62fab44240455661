"""The network that a program's messages are put on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.network import NetworkParameters


@dataclass(frozen=True)
class Network:
    """The network that messages are put on, as plain data of a platform's ``[network]`` table, and ranks on its nodes.

    Attributes
    ----------
    table : mapping
    ranks_per_node : int
    distribution : str
        How ranks are dealt out to nodes, one of :data:`ranksight.comm.costs.fabric.DISTRIBUTIONS`.
    """

    table: Mapping[str, Any]
    ranks_per_node: int
    distribution: str = "block"

    def fabric(self) -> Fabric:
        """Links inside and between nodes; InputError where the table describes none."""
        links = {
            name: NetworkParameters.from_dict(self.table[name], f"network.{name}")
            for name in ("intra", "inter")
            if isinstance(self.table.get(name), Mapping)
        }
        return Fabric(links.get("intra"), links.get("inter"), self.ranks_per_node, self.distribution)

    def placed(self, ranks_per_node: int | None, distribution: str | None) -> Network:
        """The same network with ranks placed in another way; as it is where no messages between nodes are described."""
        if "inter" not in self.table:
            return self
        return replace(
            self,
            ranks_per_node=self.ranks_per_node if ranks_per_node is None else ranks_per_node,
            distribution=self.distribution if distribution is None else distribution,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {
            "table": dict(self.table),
            "ranks_per_node": self.ranks_per_node,
            "distribution": self.distribution,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Network:
        """Rebuild from :meth:`to_dict`; KeyError, TypeError or ValueError where it is damaged."""
        return cls(dict(content["table"]), int(content["ranks_per_node"]), str(content.get("distribution", "block")))

    @property
    def choice(self) -> str:
        """The MPI library whose collective algorithms are taken: ``collectives`` of the table, or Open MPI."""
        return str(self.table.get("collectives", "openmpi-5.0"))
