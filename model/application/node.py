"""More ranks on a node than it has cores: what the ranks of a core take longer.

With r ranks on a core of t hardware threads its instructions take between r / t and r times as long: r where threads of
a core gain nothing from each other, and not less than r / t, as no thread is faster than a core alone. Both ends are in
the interval, their geometric mean is the value. Beyond the hardware threads, ranks take turns by the scheduler and wait
in messages for ranks that do not run: no law of these runs holds there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass
from ranksight.core.units import in_full
from ranksight.model.plaindata import Part, Some
from ranksight.model.quantity import Quantity, product
from ranksight.model.series.computation import cores
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast

NODES = "nodes"
"""Parameter that says on how many nodes the ranks are."""
CROWDED = "{ranks} ranks and threads on a node of {threads} hardware threads: ask for more nodes or fewer ranks"


@dataclass(frozen=True)
class Node(Some, Part):
    """Cores of a node, and ranks on them; a rank of several threads counts as many. False for :data:`NO_NODE`."""

    name: str  # of the platform
    cores: int
    threads: int  # hardware threads of a core
    ranks: int  # ranks that fill a node before the next one is used
    most: int  # largest number of ranks that a node had in the runs
    _sizes = "cores:>0 threads:>0 ranks:>0 most:>0"

    @classmethod
    def of(cls, platform: Any, ranks: int, points: Array, parameters: Sequence[str]) -> Node:
        """The node of a :class:`ranksight.platforms.Platform` with `ranks` ranks a node, and runs at `points` (n, m).

        Raises InputError where these are more ranks than it has hardware threads.
        """
        threads = int(platform.layout.threads_per_core)
        node = cls(platform.name, int(platform.cores), threads, ranks, 1)
        most = int(node.here(points, parameters).max(initial=1))
        holds(node.name, node.cores, threads, max(most, ranks))
        return replace(node, most=most)

    def placed(self, placement: str | None, ranks_per_node: int | None) -> Node:
        """The same node with so many ranks; InputError where it has too few hardware threads."""
        if not ranks_per_node or not self:
            return self
        holds(self.name, self.cores, self.threads, ranks_per_node)
        return replace(self, ranks=ranks_per_node)

    def here(self, points: Array, parameters: Sequence[str]) -> Array:
        """Ranks on the fullest node at `points` (k, m), (k,)."""
        every = cores(points, parameters)
        if NODES in parameters:
            return np.asarray(np.ceil(every / np.maximum(points[:, list(parameters).index(NODES)], 1.0)))
        return np.asarray(np.minimum(every, self.ranks), dtype=np.float64)

    def slower(self, points: Array, parameters: Sequence[str]) -> tuple[Array, Array, Mask]:
        """Least and largest factor of computation at `points` (k, m), and where ranks have no hardware thread each."""
        on_node = self.here(points, parameters)
        ranks_per_core = np.maximum(on_node / max(self.cores, self.most), 1.0)
        return np.maximum(ranks_per_core / self.threads, 1.0), ranks_per_core, on_node > self.cores * self.threads

    def longer(self, times: Forecast, points: Array, parameters: Sequence[str]) -> Forecast:
        """Kernels' `times` (s, k) on cores of their own, where cores are shared."""
        least, most, crowded = self.slower(points, parameters)
        if not (most > 1).any():
            return times
        slower = Quantity.of_ends(np.sqrt(least * most), least, most)
        unshared = Quantity.of_ends(times.value, times.lower, times.upper)
        shared = times.having(product([unshared, slower]))
        status, reason = times.status.copy(), times.reason.astype(object)
        for k in np.flatnonzero(crowded):
            ranks = in_full(self.here(points, parameters)[k])
            status[:, k] = forecast.DOMAIN
            reason[:, k] = CROWDED.format(ranks=ranks, threads=self.cores * self.threads)
        return replace(shared, status=status, reason=reason)


NO_NODE = Node("", 1, 1, 1, 1)
"""Where no platform names the cores of a node."""


def holds(name: str, cores_of_node: int, threads: int, ranks: int) -> None:
    """Raise InputError where a node of the machine `name` has fewer hardware threads than `ranks`."""
    if ranks > cores_of_node * threads:
        per_core = "" if threads == 1 else f" of {threads} hardware threads"
        raise InputError(
            f"{ranks} ranks a node are more than {name} has: {cores_of_node} cores{per_core}",
            f"give at most --ranks-per-node {cores_of_node * threads}, or the platform that the ranks run on",
        )
