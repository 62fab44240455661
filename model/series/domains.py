"""Where ranks sit on a node and how many share a domain's memory bandwidth, or a cache."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ranksight.core.arrays import Array, Index, ratio
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass
from ranksight.model.plaindata import Stored, known

PLACEMENTS = ("compact", "scattered")
"""``compact`` fills one domain after the other, ``scattered`` deals the ranks of a node out over all of its domains."""


@dataclass(frozen=True)
class Domains(Stored):
    """The ccNUMA domains of a node, or the instances of a cache that cores share, and how ranks are placed on them."""

    cores: int  # cores of a domain
    count: int  # domains of a node
    ranks_per_node: int  # ranks that fill a node before the next one is used
    placement: str = "compact"  # one of :data:`PLACEMENTS`
    core: tuple[float, float] = (0.0, 0.0)
    domain: tuple[float, float] = (0.0, 0.0)
    """Bandwidth in B/s of one core and of a full domain, for reads alone and for as many reads as writes; 0 where no
    platform gives it and the measured curve must."""
    _sizes = "core:2>=0 domain:2>=0"

    def __post_init__(self) -> None:
        if self.placement not in PLACEMENTS:
            raise InputError(f"no placement is named {self.placement!r}", f"known: {', '.join(PLACEMENTS)}")
        if self.cores < 1 or self.count < 1 or self.ranks_per_node < 1:
            raise InputError(
                f"{self.count} domains of {self.cores} cores with {self.ranks_per_node} ranks a node",
                "each is 1 or more",
            )

    def __bool__(self) -> bool:
        """Whether it is known which cores share a domain (:data:`NOT_DESCRIBED`)."""
        return self.count < _ENDLESS

    @property
    def limited(self) -> bool:
        """Whether a platform gives the bandwidths."""
        return min(*self.core, *self.domain) > 0

    @classmethod
    def of(cls, platform: Any, placement: str = "compact", ranks_per_node: int | None = None) -> Domains:
        """Of a :class:`ranksight.platforms.Platform`; a rank on every core where `ranks_per_node` is not given."""
        cores = int(platform.layout.cores_per_domain)
        core = (platform.bandwidth(1), platform.bandwidth(1, "update"))
        full = (platform.bandwidth(cores), platform.bandwidth(cores, "update"))
        # The highest point of a measured curve is what the domain can give.
        full = tuple(
            max([one, *(value for _, value in platform.memory.scaling.get(name, ()))])
            for one, name in zip(full, ("read", "update"), strict=True)
        )
        most = ranks_per_node or int(platform.cores)
        return cls(cores, int(platform.domains), most, placement, core, (float(full[0]), float(full[1])))

    @classmethod
    def of_cache(cls, platform: Any, cache: Any, node: Domains) -> Domains:
        """The instances of a `cache` (:class:`ranksight.platforms.platform.Cache`), with ranks placed as on `node`."""
        known = cache.bandwidth_shared is not None
        core, full = ((float(x if known else 0.0),) * 2 for x in (cache.bandwidth, cache.bandwidth_shared))
        count = max(1, -(-int(platform.cores) // int(cache.shared_by)))
        return cls(int(cache.shared_by), count, node.ranks_per_node, node.placement, core, full)

    @classmethod
    def inferred(cls, cores: int, placement: str = "compact", ranks_per_node: int | None = None) -> Domains:
        """Domains of `cores` cores whose bandwidth is not known: it is inferred from the measured curve of one.

        Without `ranks_per_node` all ranks are taken to share one node.
        """
        if cores < 1:
            raise InputError(f"a domain of {cores} cores", "give the cores of a ccNUMA domain, 1 or more")
        most = ranks_per_node or (1 << 20) * cores
        return cls(cores, max(1, -(-most // cores)), most, placement)

    def placed(self, placement: str | None, ranks_per_node: int | None) -> Domains:
        """The same node with ranks placed in another way."""
        if not self:
            return self
        return replace(self, **known(placement=placement, ranks_per_node=ranks_per_node))

    @property
    def filled(self) -> bool:
        """Whether a rank is on every core, as where nobody says how many ranks a node takes."""
        return self.ranks_per_node == self.cores * self.count

    def nodes(self, ranks: Array) -> Array:
        """Nodes that so many ranks use."""
        return np.asarray(np.ceil(np.maximum(ranks, 1) / self.ranks_per_node), dtype=np.float64)

    def active(self, ranks: Array) -> Index:
        """Ranks in the fullest domain, which is the last to be done; more ranks than cores share them evenly."""
        on_node = np.minimum(np.maximum(np.ceil(ranks), 1), self.ranks_per_node)
        spread = np.ceil(on_node / self.count)
        if self.placement == "compact":
            spread = np.maximum(np.minimum(on_node, self.cores), spread)
        return np.asarray(spread, dtype=np.intp)

    @property
    def filling(self) -> int:
        """The fewest ranks that make a domain as full as it gets."""
        full = int(self.active(np.array([self.ranks_per_node]))[0])
        return min(full, self.ranks_per_node) if self.placement == "compact" else (full - 1) * self.count + 1

    def bandwidths(self, reads: Array) -> tuple[Array, Array]:
        """Bandwidth of a core and of a full domain for traffic of which `reads` (a share) is read, where
        :attr:`limited`.

        Reads alone and reads with as many writes were measured; between them times add up: of n bytes, those of the
        write stream and as many of the read stream move at the rate of the second, the rest at that of the first.
        """
        mixed = 2 * (1 - np.clip(reads, 0.5, 1.0))
        core, domain = (1 / ((1 - mixed) / pair[0] + mixed / pair[1]) for pair in (self.core, self.domain))
        return core, domain


_ENDLESS = 1 << 40
NOT_DESCRIBED = Domains(1, _ENDLESS, _ENDLESS)
"""Where nobody says which cores share a domain: each has one of its own, on a single node."""


def needs(domains: Domains, reads: Array, writes: Array) -> tuple[Array, Array]:
    """Seconds that a core alone, and that a domain, needs for the traffic of one rank.

    Without a platform only the traffic itself is known: nothing for the core, and bytes for seconds of the domain.
    """
    total = reads + writes
    share = ratio(reads, total, 1.0)
    if not domains.limited:
        return np.zeros_like(total), total
    core, domain = domains.bandwidths(share)
    return total / core, total / domain
