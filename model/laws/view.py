"""What laws are fitted to and asked: measurements and machine; what laws learned from them; configurations.

What laws learned is kept by the names of their parts, with what laws that are not installed learned. Laws are asked at
configurations, with the functions of all series there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.core.experiment import WHOLE, Experiment
from ranksight.core.log import log
from ranksight.core.records import dataclass
from ranksight.core.units import some_of
from ranksight.model.kernel_time.counted import Counted, Times
from ranksight.model.laws.law import (
    CONSTANT_CPI,
    COUNTED,
    LAWS,
    MACHINE,
    PLACES,
    LawTimes,
    answerable,
    checked,
    claims,
    installed,
    part_of,
    refused,
    registered,
    storable,
)
from ranksight.model.plaindata import Part, plain, reading
from ranksight.model.quantity import Quantity
from ranksight.model.resource.counters import Sampled, settle
from ranksight.model.resource.equation import NO_MACHINE, Machine, Parts, Resources
from ranksight.model.series.domains import NOT_DESCRIBED, Domains
from ranksight.model.series.reducing import Series, series_from_experiment
from ranksight.model.series.reduction import reduce
from ranksight.model.sharing.readings import Readings
from ranksight.model.structure.wholeunits import NO_UNITS, WholeUnits
from ranksight.model.uncertainty.forecast import Forecast


@dataclass(frozen=True)
class Fits(Part):
    """What laws learned."""

    learned: Mapping[str, Any] = field(default_factory=dict)  # by part (:attr:`ranksight.model.laws.law.Law.part`)
    missing: Mapping[str, Any] = field(default_factory=dict)  # the content of parts whose law is not installed

    def get(self, part: str) -> Any:
        """What is kept under a name; None where nothing is."""
        return self.learned.get(part)

    def by(self, name: str) -> Any:
        """What the law `name` learned; None where it learned nothing, or is not installed."""
        return self.learned.get(part_of(name, LAWS[name])) if self.learned and name in LAWS else None

    def kernels(self, name: str) -> tuple[str, ...]:
        """The kernels of which the law `name` learned something; none where :meth:`by` has nothing."""
        return getattr(self.by(name), "kernels", ())

    def having(self, **learned: Any) -> Fits:
        """The same with another content of some parts; None drops one."""
        parts = {**self.learned, **learned}
        return Fits({part: each for part, each in parts.items() if each is not None}, self.missing)

    def placed(self, placement: str | None, ranks_per_node: int | None) -> Fits:
        """The same with ranks placed in another way, of the laws that know of places."""
        result = {
            part: each.placed(placement, ranks_per_node) if hasattr(each, "placed") else each
            for part, each in self.learned.items()
        }
        return Fits(result, self.missing)

    def remarks(self, points: Array) -> tuple[str, ...]:
        """See :meth:`remark`."""
        return (self.remark(),)

    def remark(self) -> str:
        """What is to be known of laws that are not installed; empty where all are."""
        if not self.missing:
            return ""
        one = len(self.missing) == 1
        others = some_of([name for name, law in installed().items() if part_of(name, law) in self.learned])
        rest = f"{others} and the functions of time" if others else "the functions of time"
        return (
            f"{'law' if one else 'laws'} {some_of(sorted(self.missing))} of this model {'is' if one else 'are'} not "
            f"installed: kernels' times come from {rest}; install the package that registers {'it' if one else 'them'}"
        )

    def present(self) -> dict[str, Any]:
        """The content by part."""
        return {**self.learned, **self.missing}

    def to_dict(self) -> dict[str, Any]:
        """Plain data by part; that of laws that are not installed as it was read."""
        return {part: plain(each) for part, each in self.learned.items()} | dict(self.missing)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        learned, missing = {}, {}
        known = installed() if content else {}  # the packages installed are looked through for them
        laws = {part_of(name, law): (name, law) for name, law in known.items() if law.kind is not None}
        with reading("'laws'"):
            for part, each in content.items():
                if part in laws:
                    name, law = laws[part]
                    with answerable(name, law, f"{law.kind.__name__}.from_dict"):
                        learned[part] = law.kind.from_dict(each)
                else:
                    missing[str(part)] = each
        result = cls(learned, missing)
        if missing:
            log("%s", result.remark())
        return result

    def __bool__(self) -> bool:
        return bool(self.learned or self.missing)

    def _fits(self) -> bool:
        return True


@dataclass(frozen=True)
class View:
    """The measurements that laws of kernels' times are fitted to."""

    readings: Readings  # of the experiment, or of some of its configurations
    sampled: Sampled  # its series, means over ranks, and the samples behind them
    platform: Any  # a :class:`ranksight.platforms.Platform`; None where none is known
    machine: Machine  # the platform at the clock that the runs had
    domains: Domains  # memory domains of a node, and how ranks were placed
    units: WholeUnits = NO_UNITS  # whole units that the work comes in
    slowest: Mapping[str, Array] = field(default_factory=dict)
    """mapping of kernel to (n,): slowest over mean rank of the uneven kernels, where times are those of the
    slowest rank and cycles are means."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of :func:`ranksight.model.fitting.fit_series.fit_series`."""
    kernels: frozenset[str] = frozenset()  # all that were measured
    _learned: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, experiment: Experiment, platform: Any = None, domains: Domains = NOT_DESCRIBED) -> View:
        """The view of an experiment as it was measured, on a :class:`ranksight.platforms.Platform` or an unknown
        machine."""
        sampled = settle(experiment, series_from_experiment(experiment))
        machine = Machine.of(platform) if platform else NO_MACHINE
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
    def of_means(self) -> Series:
        """The same with times of the mean rank, as cycles are."""
        rows, values = self.series.rows, self.series.values.copy()
        for kernel, ratio in self.slowest.items():
            if (kernel, "time") in rows:
                values[rows[kernel, "time"]] /= ratio[:, None]
        return replace(self.series, values=values) if self.slowest else self.series

    @property
    def timed(self) -> tuple[str, ...]:
        """The kernels with a time; the whole program where no part of it was timed."""
        names = tuple(kernel for kernel, name in self.series.keys if name == "time")
        return tuple(kernel for kernel in names if kernel != WHOLE) or names

    @cached_property
    def known(self) -> frozenset[str]:
        """What laws may learn from (:attr:`ranksight.model.laws.law.Law.learns_from`)."""
        besides = {MACHINE: self.machine, PLACES: self.domains}
        return frozenset({*self.series.metrics, *(name for name, described in besides.items() if described)})

    def learned(self, name: str) -> Any:
        """What the law `name` learned from this view, once for all that ask; None where it does not apply."""
        laws = registered()
        if name not in laws:
            return None
        law, part = laws[name], part_of(name, laws[name])
        if law.learns_from and self.known.isdisjoint(law.learns_from):
            return None
        if part not in self._learned:
            with answerable(name, law, "fit"):
                result = law.fit(self)
                if result is not None:
                    if law.kind is None or not isinstance(result, law.kind):
                        raise refused(name, "what it learned is not of the class that its 'kind' names")
                    if self.kernels:
                        claims(name, result, self.kernels)
                    storable(name, law, result)
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
        slowest = {name: values[keep] for name, values in self.slowest.items()}
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


Slowest = Callable[[tuple[str, ...]], tuple[Array, Array]]
"""Of kernels, slowest over mean rank and the standard deviation of its logarithm, (K, k) each."""


@dataclass(frozen=True)
class Asked:
    """Configurations at which laws predict kernels' times."""

    parameters: tuple[str, ...]
    points: Array  # (k, m)
    rows: Mapping[tuple[str, str], int]  # of (kernel, metric): the rows of :attr:`functions` and :attr:`counts`
    functions: Forecast  # every series there, by its function
    counts: Forecast  # the same where counts are taken: of the busiest rank, where work comes in whole units
    work_points: Array  # (k, m): those configurations
    fits: Fits
    slowest: Slowest | None = None  # where times are those of slowest ranks and cycles are means

    @property
    def timed(self) -> tuple[str, ...]:
        """The kernels with a time."""
        return tuple(kernel for kernel, name in self.rows if name == "time")

    def values(self, metric: str, kernels: tuple[str, ...]) -> Quantity:
        """A metric of some kernels by its functions, (K, k); NaN where there is none."""
        return self.counts.quantity(np.array([self.rows.get((kernel, metric), -1) for kernel in kernels]))

    @cached_property
    def counted(self) -> Times:
        """Times by the counted equation and the cost per unit of work, which was learned, of slowest ranks where times
        are those."""
        learned: Counted = self.fits.by(COUNTED)
        result = learned.at(self.points, self.counts, self.rows, self.work_points)
        return result if self.slowest is None else result.times(*self.slowest(learned.kernels))

    @cached_property
    def parts(self) -> Parts:
        """Times by the equation of constant CPI, which was learned, of slowest ranks where times are those."""
        learned: Resources = self.fits.by(CONSTANT_CPI)
        result = learned.parts(self.work_points, self.counts, self.rows)
        if self.slowest is None or not learned.averaged.any():
            return result
        ratio, deviation = self.slowest(learned.kernels)
        averaged = learned.averaged[:, None]
        return result.times(np.where(averaged, ratio, 1.0), np.where(averaged, deviation, 0.0))

    def predicted(self) -> dict[str, LawTimes]:
        """What every registered law predicts, by name."""
        timed, result = {*self.timed, WHOLE}, {}
        for name, law in registered().items():
            learned = self.fits.by(name)
            if learned is None and law.kind is not None:
                continue
            with answerable(name, law, "at"):
                times = law.at(learned, self)
                if times is not None:
                    known = timed if learned is None else {*timed, *learned.kernels}
                    result[name] = checked(name, times, known, len(self.points))
        return result
