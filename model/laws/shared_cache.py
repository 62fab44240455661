"""The bandwidth of a cache that cores share: the law of shared bandwidth, with its instances in place of domains."""

from __future__ import annotations

from typing import ClassVar

from ranksight.model.laws.law import CACHE, LAWS, LawTimes
from ranksight.model.laws.shared_bandwidth import SharedBandwidth, of_shared
from ranksight.model.laws.view import Asked, View
from ranksight.model.series.domains import Domains
from ranksight.model.series.sampling import means_of_samples
from ranksight.model.sharing.demand import Demand, shared_cache
from ranksight.model.sharing.fit_sharing import fit_sharing
from ranksight.model.sharing.shared import Sharing


class SharedCacheBandwidth(SharedBandwidth):
    """Ranks compute side by side until the cache that they share gives no more."""

    needs: ClassVar[str] = "instructions, time or cycles, traffic to a cache that cores share, and a platform"
    formula: ClassVar[str] = "T = contended(core, n bytes / bandwidth), n ranks at the fullest instance"
    part: ClassVar[str] = "cached"

    def fit(self, view: View) -> Sharing | None:
        """What kernels need of the cache."""
        domains, platform = view.domains, view.platform
        if not platform or not (demand := Demand.on(platform)).cache:
            return None
        instances = Domains.of_cache(platform, shared_cache(platform), domains)
        over_ranks = means_of_samples(view.readings.experiment)
        return fit_sharing(view.readings, instances, view.units, demand, over_ranks, **view.settings)

    def at(self, learned: Sharing, asked: Asked) -> LawTimes:
        """Times of the kernels that the cache serves."""
        shared = learned.forecast(asked.points, asked.work_points)
        return of_shared(learned, shared, shared.answers)


LAWS.register(CACHE)(SharedCacheBandwidth())
