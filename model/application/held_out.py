"""Fit the laws of kernels' times, and weight them by what they predict of configurations that were held out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.core.experiment import WHOLE
from ranksight.core.log import log
from ranksight.model.application.bulk_synchronous import Application
from ranksight.model.application.exchange import fit_exchange
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.kernel_time.composition import Caches
from ranksight.model.kernel_time.counted import COUNTS
from ranksight.model.kernel_time.learn_counted import learn_counted
from ranksight.model.kernel_time.stacking import COST, PRIOR, Weights, learn_weights, log_score
from ranksight.model.priors import HELD_OUT_DEEPEST, HELD_OUT_REST
from ranksight.model.resource.blocking import fit_resources
from ranksight.model.resource.equation import LEVELS, Machine
from ranksight.model.resource.sampled_times import Sampled
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.series.sampling import means_of_samples
from ranksight.model.sharing.caches import find_shared_cache
from ranksight.model.sharing.demand import Demand, shared_cache
from ranksight.model.sharing.domains import Domains
from ranksight.model.sharing.fit_sharing import fit_sharing
from ranksight.model.sharing.readings import Readings
from ranksight.model.structure.functions import Functions
from ranksight.model.structure.wholeunits import WholeUnits

MOST = 64
"""Kernels that are held out, those of most time: the weights that so many share are known from them."""
MOST_INSIDE = 2_000
"""Kernels beyond which weights between the runs are not looked for."""


@dataclass(frozen=True)
class KernelLaws:
    """What the laws of kernels' times are fitted to."""

    readings: Readings  # of the experiment, or of some of its configurations
    sampled: Sampled  # its series, and the samples behind them
    platform: Any
    machine: Machine | None  # the platform at the clock that the runs had
    domains: Domains | None
    units: WholeUnits | None
    slowest: Mapping[str, Array] | None
    """mapping of kernel to (n,), or None: slowest over mean rank of the uneven kernels, where times are those of the
    slowest rank and cycles are means."""
    settings: Mapping[str, Any]  # of :func:`ranksight.model.fitting.fit_series.fit_series`

    def fit(self) -> Application:
        """All laws that the data support."""
        series, platform, domains, machine = self.sampled.series, self.platform, self.domains, self.machine
        how = self.settings.get("over_repetitions", "auto")
        latencies = None if machine is None else np.array(machine.latencies)
        # A cost per unit of work that nobody counted is a function of the parameters, which is a law already.
        counting = domains is not None or not set(COUNTS).isdisjoint(series.metrics)
        counted = (
            None
            if not counting
            else learn_counted(
                series,
                latencies,
                1.0 if machine is None else machine.frequency,
                None if platform is None or latencies is None else Caches.of(platform, latencies),
                domains,
                64.0 if platform is None else float(platform.line),
            )
        )
        resources = None
        if machine is not None:
            split = () if counted is None else np.array(counted.kernels, dtype=object)[counted.split]
            rest = series.select(~np.isin(np.array(series.kernels, dtype=object), split))
            over = "median" if how == "auto" else how
            if len(rest):
                resources = fit_resources(
                    rest,
                    machine,
                    self.sampled.samples,
                    slowest=self.slowest,
                    **{**self.settings, "over_repetitions": over},
                )
        sharing = cached = cache = None
        if platform is not None and domains is not None and domains.domain is not None:
            cache = find_shared_cache(series, platform, domains)
        if domains is not None:
            over_ranks = means_of_samples(self.readings.experiment)
            sharing = fit_sharing(self.readings, domains, self.units, None, over_ranks, **self.settings)
            if sharing is None and platform is not None and domains.domain is not None:
                lines = Demand.on_memory(platform)
                sharing = fit_sharing(self.readings, domains, self.units, lines, over_ranks, **self.settings)
            demand = None if platform is None else Demand.on(platform)
            if demand is not None:
                instances = Domains.of_cache(platform, shared_cache(platform), domains)
                cached = fit_sharing(self.readings, instances, self.units, demand, over_ranks, **self.settings)
        exchange = fit_exchange(series)
        return Application(resources, sharing=sharing, cached=cached, cache=cache, counted=counted, exchange=exchange)

    def weights(self) -> Weights:
        """Weights of the laws, from the largest values of one parameter held out in turn.

        Where the user stated how times depend on the parameters, a cost per unit of work does not compete.
        """
        stated = self.settings.get("iterations") is not None or self.settings.get("space", "default") != "default"
        series = self.sampled.series
        kernels = tuple(
            kernel
            for kernel, name in series.keys
            if name == "time" and (kernel != WHOLE or set(series.kernels) == {WHOLE})
        )
        if len(kernels) > MOST:
            spent = np.nansum(_times(series, kernels), axis=1)
            heaviest = set(np.argsort(-spent, kind="stable")[:MOST].tolist())
            kernels = tuple(kernel for at, kernel in enumerate(kernels) if at in heaviest)
        total: dict[str, list[Array]] = {}
        for depth, keep in enumerate(self._splits() if kernels else [], start=1):
            for law, score in self._scores(kernels, keep).items():
                total.setdefault(law, []).append(depth * score)
        if not total:
            return PRIOR.without(COST) if stated else PRIOR
        count = max(len(scores) for scores in total.values())
        scores = {
            law: np.sum(scores, axis=0) if len(scores) == count else np.full(len(kernels), np.nan)
            for law, scores in total.items()
        }
        found = learn_weights(kernels, scores)
        shown = ", ".join(f"{law} {share:.2f}" for law, share in zip(found.laws, found.common, strict=True))
        log("weights of the laws after %d held-out sets: %s", count, shown)
        return found.without(COST) if stated else found

    def _splits(self) -> list[Mask]:
        """Configurations to keep (n,), each time without more of the largest values of a parameter."""
        series = self.sampled.series
        names = list(series.parameters)
        varied = [at for at in range(len(names)) if len(np.unique(series.points[:, at])) > HELD_OUT_REST]
        if not varied:
            return []
        first = names.index("ranks") if "ranks" in names and names.index("ranks") in varied else varied[0]
        levels = np.unique(series.points[:, first])
        deepest = min(HELD_OUT_DEEPEST, len(levels) - HELD_OUT_REST)
        return [series.points[:, first] < levels[-depth] for depth in range(1, deepest + 1)]

    def _scores(self, kernels: tuple[str, ...], keep: Mask) -> dict[str, Array]:
        """Logarithmic score (K,) of each law that was fitted to the configurations `keep`."""
        series = self.sampled.series
        samples = {kernel: values[keep] for kernel, values in self.sampled.samples.items()}
        slowest = None if self.slowest is None else {name: values[keep] for name, values in self.slowest.items()}
        part = series.select(np.isin(np.array(series.kernels, dtype=object), (*kernels, WHOLE))).at(keep)
        part = part.select(np.flatnonzero(np.isfinite(part.values).any(axis=(1, 2))))
        readings = self.readings.among(series.points[keep])
        laws = replace(self, readings=readings, sampled=Sampled(part, samples), slowest=slowest).fit()
        wanted = np.isin(np.array(part.metrics, dtype=object), ("time", "loads", *LEVELS, *COUNTS))
        fitted = fit_varied(part.select(wanted), **self.settings)
        functions = Functions(fitted)
        away = series.points[~keep]
        truth = _times(series, kernels)[:, ~keep]
        found = laws.laws_at(functions.predict(away), functions, away)
        return {name: log_score(law, kernels, truth) for name, law in found.laws.items()}


def inside_weights(application: Application, functions: Functions, series: Series) -> Weights | None:
    """Weights of the laws between the runs: by how well each meets the measured times. None without several laws."""
    kernels = tuple(kernel for kernel, name in functions.rows if name == "time")
    if not kernels or len(kernels) > MOST_INSIDE or application.counted is None:
        return None
    found = application.laws_at(functions.predict(series.points), functions, series.points)
    truth = _times(series, kernels)
    return learn_weights(kernels, {name: log_score(law, kernels, truth) for name, law in found.laws.items()})


def _times(series: Series, kernels: tuple[str, ...]) -> Array:
    """Measured times of `kernels`, (K, n)."""
    rows = series.rows
    return reduce(series.values[[rows[kernel, "time"] for kernel in kernels]], "median", axis=2)
