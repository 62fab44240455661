"""What laws are fitted to: the measurements of an experiment and its machine, and what other laws learned from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.core.experiment import WHOLE, Experiment
from ranksight.model.laws.fits import Fits
from ranksight.model.laws.law import answerable, claims, part_of, refused, registered
from ranksight.model.resource.equation import Machine
from ranksight.model.resource.sampled_times import Sampled, settle
from ranksight.model.series.domains import Domains
from ranksight.model.series.reducing import Series, series_from_experiment
from ranksight.model.series.reduction import reduce
from ranksight.model.sharing.readings import Readings
from ranksight.model.structure.wholeunits import WholeUnits


@dataclass(frozen=True)
class View:
    """The measurements that laws of kernels' times are fitted to."""

    readings: Readings  # of the experiment, or of some of its configurations
    sampled: Sampled  # its series, means over ranks, and the samples behind them
    platform: Any  # a :class:`ranksight.platforms.Platform`; None where none is known
    machine: Machine | None  # the platform at the clock that the runs had
    domains: Domains | None  # memory domains of a node, and how ranks were placed
    units: WholeUnits | None = None  # whole units that the work comes in
    slowest: Mapping[str, Array] | None = None
    """mapping of kernel to (n,), or None: slowest over mean rank of the uneven kernels, where times are those of the
    slowest rank and cycles are means."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of :func:`ranksight.model.fitting.fit_series.fit_series`."""
    kernels: frozenset[str] = frozenset()  # all that were measured
    _learned: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, experiment: Experiment, platform: Any = None, domains: Domains | None = None) -> View:
        """The view of an experiment as it was measured, on a :class:`ranksight.platforms.Platform` or an unknown
        machine."""
        sampled = settle(experiment, series_from_experiment(experiment))
        machine = None if platform is None else Machine.of(platform)
        kernels = frozenset(sampled.series.kernels)
        return cls(Readings(experiment), sampled, platform, machine, domains, kernels=kernels)

    @property
    def series(self) -> Series:
        """All series, means over ranks."""
        return self.sampled.series

    def medians(self, metric: str, kernels: tuple[str, ...]) -> Array:
        """See :func:`medians`."""
        return medians(self.series, metric, kernels)

    @property
    def timed(self) -> tuple[str, ...]:
        """The kernels with a time; the whole program where no part of it was timed."""
        names = tuple(kernel for kernel, name in self.series.keys if name == "time")
        return tuple(kernel for kernel in names if kernel != WHOLE) or names

    def learned(self, name: str) -> Any:
        """What the law `name` learned from this view, once for all that ask; None where it does not apply."""
        laws = registered()
        if name not in laws:
            return None
        law, part = laws[name], part_of(name, laws[name])
        if part not in self._learned:
            with answerable(name, law, "fit"):
                result = law.fit(self)
                if result is not None:
                    if law.kind is None or not isinstance(result, law.kind):
                        raise refused(name, "what it learned is not of the class that its 'kind' names")
                    if self.kernels:
                        claims(name, result, self.kernels)
            self._learned[part] = result
        return self._learned[part]

    def fits(self) -> Fits:
        """What all laws learned."""
        result = {part_of(name, law): self.learned(name) for name, law in registered().items()}
        return Fits({part: learned for part, learned in result.items() if learned is not None})

    def among(self, keep: Mask, kernels: tuple[str, ...]) -> View:
        """The view of the configurations `keep` (n,) and of some kernels, of which nothing was learned yet."""
        series = self.series
        samples = {kernel: values[keep] for kernel, values in self.sampled.samples.items()}
        slowest = None if self.slowest is None else {name: values[keep] for name, values in self.slowest.items()}
        part = series.select(np.isin(np.array(series.kernels, dtype=object), (*kernels, WHOLE))).at(keep)
        part = part.select(np.flatnonzero(np.isfinite(part.values).any(axis=(1, 2))))
        readings = self.readings.among(series.points[keep])
        return replace(self, readings=readings, sampled=Sampled(part, samples), slowest=slowest, _learned={})


def medians(series: Series, metric: str, kernels: tuple[str, ...]) -> Array:
    """A metric of some kernels at all n configurations, medians over repetitions, (K, n); NaN where it was not
    measured."""
    rows = series.rows
    index = np.array([rows.get((kernel, metric), -1) for kernel in kernels], dtype=np.intp)
    result = reduce(series.values[index], "median", axis=2)
    return np.asarray(np.where(index[:, None] >= 0, result, np.nan))
