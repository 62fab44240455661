"""Counts and sizes of messages as functions of the parameters: by an exact law of the ranks, or as the search finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ranksight.comm.patterns.steps import Step
from ranksight.core.arrays import Array, Index
from ranksight.core.records import dataclass
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.messages.volume_laws import LAWS, find_laws, weight, weights
from ranksight.model.plaindata import Stored
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.structure.coefficients import Coefficients, certain
from ranksight.model.structure.levels import fit_levels
from ranksight.model.structure.ranklaws import NO_RANK_LAWS, RankLaws, fit_rank_laws
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.model.uncertainty.rows import choose, rows_of


@dataclass(frozen=True)
class Volumes(Stored):
    """Functions of s volumes."""

    parameters: tuple[str, ...]
    laws: tuple[str, ...]
    """Of the s volumes, of :data:`ranksight.model.messages.volume_laws.LAWS`; empty where a function of all parameters
    stands."""
    factors: Coefficients  # factor of each lawful volume, in order
    functions: Coefficients  # of the volumes without a law, in order: functions of all parameters
    rivals: tuple[tuple[str, ...], ...] = ()
    """Of each volume, laws that the runs followed as well: what they say elsewhere is within its interval."""
    most: int = 1  # largest number of ranks measured, where a law and its rivals say the same
    sums: RankLaws = NO_RANK_LAWS  # of the volumes without a law that are sums of laws, each named by its number

    def _fits(self) -> bool:
        free = {str(i) for i, law in enumerate(self.laws) if not law}
        return (
            len(self.factors) == len(self.laws) - len(free)
            and len(self.functions) == len(free)
            and not (free and isinstance(self.functions.held, np.ndarray))
            and {*self.laws, *(law for each in self.rivals for law in each)} <= {*LAWS, ""}
            and len(self.rivals) in (0, len(self.laws))
            and set(self.sums.kernels) <= free
        )

    def predict(self, points: Array) -> Forecast:
        """Forecast the s volumes at `points` (k, m)."""
        points = np.atleast_2d(np.asarray(points, dtype=np.float64))
        answer = certain(np.zeros((len(self.laws), len(points))))
        lawful, free = (np.flatnonzero([bool(law) == yes for law in self.laws]) for yes in (True, False))
        everywhere = np.ones((1, len(points)), dtype=bool)
        if len(free):
            answer = choose(answer, self.functions.predict(points, self.parameters), free, everywhere)
        if self.sums:
            rows = np.array([int(number) for number in self.sums.kernels], dtype=np.intp)
            forecasts = self.sums.among(rows_of(answer, rows), points)
            answer = choose(answer, forecasts, rows, forecasts.status != forecast.DOMAIN)
        if not len(lawful):
            return answer
        ranks = points[:, self.parameters.index("ranks")]
        scale = weights([self.laws[i] for i in lawful], ranks)
        forecasts = self.factors.predict(points, self.parameters)
        forecasts = replace(
            forecasts, value=forecasts.value * scale, lower=forecasts.lower * scale, upper=forecasts.upper * scale
        )
        return choose(answer, self._doubted(forecasts, scale, lawful, ranks), lawful, everywhere)

    def _doubted(self, forecasts: Forecast, scale: Array, lawful: Index, ranks: Array) -> Forecast:
        """The forecast with intervals as wide as the difference of laws that the runs cannot distinguish."""
        less, more = np.ones((2, *forecasts.value.shape))
        for row, i in enumerate(lawful.tolist()):
            others = self.rivals[i] if self.rivals else ()
            at_most = weight(self.laws[i], self.most) / weights(others, [self.most])
            ratio = weights(others, ranks) * at_most / scale[row]
            less[row], more[row] = ratio.min(axis=0, initial=1.0), ratio.max(axis=0, initial=1.0)
        factor = more / less
        wide = (factor > forecast.WIDEST) & (forecasts.status == forecast.OK)
        reason = forecasts.reason.astype(object)
        reason[wide] = [f"laws that fit the runs equally well differ by a factor of {x:.3g}" for x in factor[wide]]
        status = np.where(wide, forecast.WIDE, forecasts.status)
        return replace(
            forecasts, lower=forecasts.lower * less, upper=forecasts.upper * more, status=status, reason=reason
        )


def fit_volumes(
    parameters: tuple[str, ...],
    points: Array,
    values: Array,
    names: Sequence[tuple[str, str]],
    steps: Sequence[Step | None],
    **settings: Any,
) -> Volumes:
    """Find the law or the function of every volume.

    `points` (n, m): distinct configurations of the `parameters`, one of which is ``ranks``. `values` (s, n): NaN where
    a volume is missing. `names` (s of (str, str)): what each volume is of, for messages, and its metric, ``messages``
    or ``bytes_sent``. `steps`: the way that the messages of each go on a process grid, where there is one.
    `**settings`: of :func:`ranksight.model.fitting.fit_series.fit_series`.
    """
    at = parameters.index("ranks")
    others = tuple(name for name in parameters if name != "ranks")
    elsewhere = np.delete(points, at, axis=1)
    places, groups = np.unique(elsewhere, axis=0, return_inverse=True)
    groups = groups.reshape(-1)
    ranks = points[:, at].astype(np.int64)
    exact = [find_laws(ranks, groups, row, step) for row, step in zip(values, steps, strict=True)]
    laws = [next(iter(each), "") for each in exact]
    lawful = [i for i, law in enumerate(laws) if law]
    each = values[lawful] / weights([laws[i] for i in lawful], ranks)
    scaled = np.stack([reduce(each[:, groups == g], "mean", axis=1) for g in range(len(places))], axis=1)
    factors = Coefficients.fit(others, places, scaled, [names[i] for i in lawful], **settings)
    free = [i for i, law in enumerate(laws) if not law]
    functions, sums = Coefficients(np.empty(0)), NO_RANK_LAWS
    if free:
        kernels, metrics = zip(*(names[i] for i in free), strict=True)
        series = Series(parameters, points, values[free][:, :, None], kernels, metrics)
        functions = Coefficients(fit_levels(series, **settings) or fit_varied(series, **settings))
        numbered = replace(series, kernels=tuple(map(str, free)))
        sums = fit_rank_laws(numbered, set(numbered.keys), **settings)
    rivals = tuple(each[1:] for each in exact)
    return Volumes(parameters, tuple(laws), factors, functions, rivals, int(ranks.max()), sums)
