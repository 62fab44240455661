"""The memory bandwidth that the ranks of a domain share (:mod:`ranksight.model.sharing.shared`)."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from ranksight.core.arrays import Mask
from ranksight.model.laws.law import BANDWIDTH, CACHE, LAWS, PLACES, Law, LawTimes
from ranksight.model.laws.together import BUSY, OCCUPIED
from ranksight.model.laws.view import Asked, View
from ranksight.model.series.sampling import means_of_samples
from ranksight.model.sharing.demand import BYTES_OF_MEMORY, Demand, loads_of
from ranksight.model.sharing.fit_sharing import fit_sharing
from ranksight.model.sharing.shared import READ, Shared, Sharing

UNDETERMINED = (
    "times alone inside one memory domain that do not fall as 1 / ranks do not show what further domains bring: "
    "measure fewer ranks as well, or count instructions"
)


class SharedBandwidth(Law):
    """Ranks compute side by side until the interface of their memory domain is full."""

    prior: ClassVar[float] = 0.4
    needs: ClassVar[str] = "instructions, time or cycles, memory traffic, and a platform or the cores of a domain"
    formula: ClassVar[str] = "T = contended(core, n bytes / bandwidth), n ranks in the fullest domain"
    source: ClassVar[str] = "docs/bandwidth.md"
    kind: ClassVar[type[Sharing]] = Sharing
    part: ClassVar[str] = "sharing"
    learns_from: ClassVar[tuple[str, ...]] = (PLACES,)
    counts: ClassVar[bool] = True
    shares: ClassVar[bool] = True

    def fit(self, view: View) -> Sharing | None:
        """What kernels need of memory, by their counted traffic, otherwise by the loads that memory served."""
        domains, platform = view.domains, view.platform
        over_ranks = means_of_samples(view.readings.experiment)
        demands = (BYTES_OF_MEMORY, *((Demand.on_memory(platform),) if platform and domains.limited else ()))
        each = (fit_sharing(view.readings, domains, view.units, of, over_ranks, **view.settings) for of in demands)
        return next(filter(None, each), None)

    def at(self, learned: Sharing, asked: Asked) -> LawTimes:
        """Times of the kernels that no shared cache's law has."""
        shared = learned.forecast(asked.points, asked.work_points)
        others = np.isin(np.array(learned.kernels, dtype=object), asked.fits.kernels(CACHE))
        answers = shared.answers & ~others[:, None]
        times = of_shared(learned, shared, answers)
        return replace(times, quantities={**times.quantities, READ: shared.reads, BUSY: shared.busy})


def of_shared(law: Sharing, shared: Shared, answers: Mask) -> LawTimes:
    """Times by the bandwidth of memory, or of a cache, that ranks share."""
    parts = {
        "execution": shared.execution,
        loads_of(law.resource): shared.transfer,
        "contention": shared.contention,
        "direct": shared.other,
    }
    return LawTimes(
        law.kernels,
        shared.time,
        answers,
        law.evidence,
        parts,
        {OCCUPIED: shared.occupied},
        undetermined=shared.undetermined,
        reason=UNDETERMINED,
    )


LAWS.register(BANDWIDTH)(SharedBandwidth())
