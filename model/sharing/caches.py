"""Ranks that share a cache: whether it holds what they work on, where more of them share it than did in the runs.

Which level serves a load was counted at the numbers of ranks measured. What an instance has to hold is what all of its
n ranks work on, F = n w; the working set w of a kernel's rank is not counted, but goes with its loads, as each turn of
its loops works through the same data, so that F is known but for a factor that is the kernel's own. Of the loads that
the cache or memory serve, memory serves a part m(F), which rises where F outgrows the cache.

With more ranks to an instance than were measured, functions of the ranks and the size have not seen what that does. In
strong scaling on one instance F stays as it is, and nothing changes. F may lie among those that larger problems on
fewer ranks had: m(F) is then at most what was counted there. Beyond the largest F that was measured the cache may hold
no more than that one, of size C then. One that throws out at random, gone through again and again, sends the part mu of
the rest to memory

    mu = 1 - exp(-mu F / C),    F / C = -ln(1 - mu) / mu

between the part of the best replacement, 1 - C/F, and that of the least recently used, 1. Times open upwards as far.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.core.records import dataclass
from ranksight.core.units import format_si, some_of
from ranksight.model.plaindata import Part
from ranksight.model.resource.equation import LEVELS
from ranksight.model.series.computation import cores
from ranksight.model.series.domains import NOT_DESCRIBED, Domains
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.sharing.demand import loads_of, shared_cache
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.platforms import Platform

SERVED = 0.01
"""Share of a kernel's loads, at a configuration, from which on a cache's share matters to it."""
LOST = np.linspace(0, 1, 2001)[1:-1]
"""Grid of mu."""
WORTH = 0.05
"""Part of the loads that the cache or memory serve from which on a note says that they may go to memory."""


@dataclass(frozen=True)
class SharedCache(Part):
    """The outermost cache that cores share."""

    name: str
    size: float  # bytes of an instance that its cores can use
    domains: Domains  # its instances on a node, and how ranks are placed
    most: int  # most ranks that shared an instance in the runs
    kernels: tuple[str, ...]  # K kernels of whose loads it served :data:`SERVED` or more
    demand: Array  # (K, n): F at each configuration, rising, as loads of all ranks on an instance
    memory: Array  # (K, n): m(F) there, rising
    outer: Array  # (K,): largest part of a kernel's loads that the cache and memory served
    _sizes = "size:>0 most:>=1 kernels:k demand:kn>0 memory:kn>=0 outer:k>=0"

    def spilled(self, predicted: Forecast, rows: Mapping[tuple[str, str], int], ranks: Array) -> tuple[Array, Mask]:
        """Loads of a rank (K, k) that memory may serve beyond the least it was seen to, as more ranks share the cache
        than ever did, and where they are a part worth naming.

        `predicted`: of the functions, at k configurations. `rows` (mapping of (kernel, metric) to int). `ranks` (k,).
        """
        every = predicted.value[[rows[kernel, "loads"] for kernel in self.kernels]]
        every, active = np.where(every > 0, every, 0.0), self.domains.active(ranks)
        asked = np.where(every > 0, active * every, self.demand[:, :1])
        ratio = np.maximum(asked / self.demand[:, -1:], 1.0)
        mu = np.interp(ratio, -np.log1p(-LOST) / LOST, LOST, left=0.0)
        most = 1 - (1 - self._part(asked)) * (1 - mu)
        part = np.where(active > self.most, most - self.memory[:, :1], 0.0)
        return part * self.outer[:, None] * every, part > WORTH

    def _part(self, asked: Array) -> Array:
        """m at F = `asked` (K, k): between the two nearest measured, linear in ln F, and beyond them as at the last."""
        x, at = np.log(self.demand), np.log(np.clip(asked, self.demand[:, :1], self.demand[:, -1:]))
        above = np.minimum((at[:, :, None] > x[:, None, :]).sum(axis=2), x.shape[1] - 1)
        below = np.maximum(above - 1, 0)
        (x0, y0), (x1, y1) = (
            (np.take_along_axis(x, side, 1), np.take_along_axis(self.memory, side, 1)) for side in (below, above)
        )
        weight = np.divide(at - x0, x1 - x0, out=np.ones_like(at), where=x1 > x0)
        return np.asarray(y0 + (y1 - y0) * weight)

    def remark(self, ranks: Array, exceeded: Mask) -> str:
        """The note on kernels that may find the cache too small, `exceeded` (K, k); empty where there are none."""
        names = [self.kernels[at] for at in np.flatnonzero(exceeded.any(axis=1))]
        if not names:
            return ""
        asked = int(self.domains.active(ranks).max(initial=1))
        whole, then, now = (format_si(self.size / sharing, "B") for sharing in (1, asked, self.most))
        return (
            f"{asked} ranks share an {self.name} of {whole}, {then} each; in the runs {self.most} did, {now} each. "
            f"Whether it holds the data of {some_of(names)} was not measured, so intervals include loads from memory; "
            "measure as many ranks on a node"
        )

    def _fits(self) -> bool:
        parts = all((part <= 1).all() for part in (self.memory, self.outer))
        return bool(self.demand.size) and parts and self.domains.cores > 1 and loads_of(self.name) in LEVELS


NO_CACHE = SharedCache("", 1.0, NOT_DESCRIBED, 1, (), np.empty((0, 0)), np.empty((0, 0)), np.empty(0))


def find_shared_cache(series: Series, platform: Platform, domains: Domains) -> SharedCache:
    """The outermost shared cache and the kernels that it serves; None where there is none or its use is unknown.

    Simulated counts have caches that nobody shares, and say nothing of this.

    `series`: loads by level, as they were counted. `platform`: the machine measured. `domains`: how ranks were placed.
    """
    cache = shared_cache(platform)
    if cache is None or "ranks" not in series.parameters:
        return NO_CACHE
    name, instances = loads_of(cache.name), Domains.of_cache(platform, cache, domains)
    if series.provenance.get(name, "").startswith("simulated"):
        return NO_CACHE
    rows = series.rows
    counted = [
        kernel
        for kernel in dict.fromkeys(series.kernels)
        if all((kernel, metric) in rows for metric in ("loads", name, "loads_mem"))
    ]
    if not counted:
        return NO_CACHE
    values = reduce(series.values, "median", axis=2)
    every, near, far = (values[[rows[kernel, metric] for kernel in counted]] for metric in ("loads", name, "loads_mem"))
    active = instances.active(cores(series.points, series.parameters))
    known = (every > 0) & np.isfinite(near + far) & (near + far > 0)
    selected = np.flatnonzero((known & (near >= SERVED * every)).any(axis=1))
    if not len(selected):
        return NO_CACHE
    # What was not counted stands where the largest was, and adds nothing.
    asked = np.where(known, active * every, -np.inf)[selected]
    order = np.argsort(asked, axis=1)
    asked = np.take_along_axis(asked, order, 1)
    part = np.take_along_axis(np.where(known, far / np.where(known, near + far, 1.0), 0.0)[selected], order, 1)
    missing = np.isneginf(asked)
    first = np.take_along_axis(asked, missing.sum(axis=1)[:, None], 1)
    asked, part = np.where(missing, first, asked), np.clip(part, 0.0, 1.0)
    rising = np.maximum.accumulate(np.where(missing, 0.0, part), axis=1)
    falling = np.minimum.accumulate(np.where(missing, 1.0, part)[:, ::-1], axis=1)[:, ::-1]
    most = np.where(known, (near + far) / np.where(known, every, 1.0), 0.0).max(axis=1)[selected]
    return SharedCache(
        cache.name,
        float(cache.capacity),
        instances,
        int(active.max(initial=1)),
        tuple(counted[at] for at in selected),
        asked,
        np.where(missing, falling, (rising + falling) / 2),
        np.clip(most, 0.0, 1.0),
    )
