"""Ranks that share a cache: how many did in the runs, and how many will.

With n ranks on an instance of S bytes each has S / n of it, while the loads that it serves were counted at the numbers
of ranks measured. More ranks to an instance than ever were may find that it no longer holds what they work on, and no
count has seen that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.errors import InputError
from ranksight.model.series import Series
from ranksight.model.sharing.demand import loads_of, shared_cache
from ranksight.model.sharing.domains import Domains
from ranksight.platforms import Platform
from ranksight.units import format_si

Array = NDArray[np.float64]

SERVED = 0.01
"""Share of a kernel's loads from which on a cache's share matters to it."""


@dataclass(frozen=True)
class SharedCache:
    """The outermost cache that cores share.

    Attributes
    ----------
    name : str
    size : float
        Bytes of an instance that its cores can use.
    domains : Domains
        Its instances on a node, and how ranks are placed.
    most : int
        Most ranks that shared an instance in the runs.
    kernels : tuple of str
        Kernels of whose loads it served :data:`SERVED` or more.
    """

    name: str
    size: float
    domains: Domains
    most: int
    kernels: tuple[str, ...]

    def remark(self, ranks: Array) -> str:
        """What people are told where more of `ranks` (k,) share an instance than did in the runs; else nothing."""
        asked = int(self.domains.active(ranks).max(initial=1))
        if asked <= self.most:
            return ""
        which = ", ".join(self.kernels[:3]) + (f" and {len(self.kernels) - 3} more" if len(self.kernels) > 3 else "")
        whole, then, now = (format_si(self.size / sharing, "B") for sharing in (1, asked, self.most))
        return (
            f"{asked} ranks share an {self.name} of {whole}, {then} each; in the runs {self.most} did, {now} each: "
            f"what it holds of {which} then was not seen, and times may lie above; measure as many on a node"
        )

    def placed(self, placement: str | None, ranks_per_node: int | None) -> SharedCache:
        """The same cache with ranks placed in another way."""
        return replace(self, domains=self.domains.placed(placement, ranks_per_node))

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {
            "name": self.name,
            "size": self.size,
            "domains": self.domains.to_dict(),
            "most": self.most,
            "kernels": list(self.kernels),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> SharedCache:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        try:
            size, most = float(content["size"]), int(content["most"])
            kernels, domains = tuple(map(str, content["kernels"])), Domains.from_dict(content["domains"])
            name = str(content["name"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"'caches' is damaged: {error}", "fit the model again") from error
        if not (0 < size < np.inf and domains.cores > 1 and most >= 1 and kernels):
            raise InputError("'caches' does not fit together", "fit the model again")
        return cls(name, size, domains, most, kernels)


def find_shared_cache(series: Series, platform: Platform, domains: Domains) -> SharedCache | None:
    """The outermost shared cache and the kernels that it serves; None where nothing tells.

    Simulated counts have caches that nobody shares, and say nothing of this.

    Parameters
    ----------
    series : Series
        Loads by level, as they were counted.
    platform : Platform
        The machine measured.
    domains : Domains
        How ranks were placed.
    """
    cache = shared_cache(platform)
    if cache is None or "ranks" not in series.parameters:
        return None
    name, instances = loads_of(cache.name), Domains.of_cache(platform, cache, domains)
    if series.provenance.get(name, "").startswith("simulated"):
        return None
    rows = {key: i for i, key in enumerate(zip(series.kernels, series.metrics, strict=True))}
    kernels = []
    for kernel in dict.fromkeys(series.kernels):
        if (kernel, name) in rows and (kernel, "loads") in rows:
            by_cache, every = (np.nansum(series.values[rows[kernel, which]]) for which in (name, "loads"))
            if every > 0 and by_cache >= SERVED * every:
                kernels.append(kernel)
    if not kernels:
        return None
    ranks = series.points[:, series.parameters.index("ranks")]
    most = int(instances.active(ranks).max(initial=1))
    return SharedCache(cache.name, float(cache.capacity), instances, most, tuple(kernels))
