"""Counts and sizes of messages as functions of the parameters: by an exact law of the ranks, or as the search finds.

Counts and sizes of messages are decided by the program, not by chance: a block is n / ranks long, the face of a block
on a process grid of x by y by z ranks n^2 / (x y). Such a law is taken where it holds at every run to rounding; what
follows none of them is left to the search for functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from ranksight.comm.patterns.steps import Step
from ranksight.core.arrays import Array, Index, Ints
from ranksight.core.dims import dims_create
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass
from ranksight.model.fitting.varied import fit_varied
from ranksight.model.plaindata import Stored
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.structure.coefficients import Coefficients, certain
from ranksight.model.structure.levels import fit_levels
from ranksight.model.structure.ranklaws import NO_RANK_LAWS, RankLaws, fit_rank_laws
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.model.uncertainty.rows import choose, rows_of

EXACT = 1e-6
"""Relative difference of rounding."""

_LAWS: dict[str, Callable[[int], float]] = {
    "constant": lambda p: 1.0,
    "ranks": float,
    "ranks - 1": lambda p: float(max(p - 1, 1)),
    "1 / ranks": lambda p: 1.0 / p,
    "log2(ranks)": lambda p: float(np.log2(max(p, 2))),
    "1 / sqrt(ranks)": lambda p: p**-0.5,
    "1 / ranks^(2/3)": lambda p: p ** (-2.0 / 3.0),
}
_FACES: dict[str, int] = {}
"""Dimensions of the grid of each law that goes by one."""


def _named(dimensions: int, axes: str) -> str:
    return f"1 / ({' '.join(axes)}) of a {dimensions}-d grid"


for _d, _axes in ((3, "yz"), (3, "xz"), (3, "xy"), (3, "x"), (3, "y"), (3, "z"), (2, "x"), (2, "y")):

    def _face(p: int, d: int = _d, axes: str = _axes) -> float:
        extents = dims_create(p, d)
        return 1.0 / float(np.prod([extents["xyz".index(axis)] for axis in axes]))

    _LAWS[_named(_d, _axes)] = _face
    _FACES[_named(_d, _axes)] = _d
LAWS = tuple(_LAWS)


@lru_cache(maxsize=8192)
def weight(law: str, ranks: int) -> float:
    """Value of a law at a number of ranks; InputError where there is no such law."""
    if law not in _LAWS:
        raise InputError(f"there is no law {law!r}", "fit the model again")
    return _LAWS[law](max(ranks, 1))


def weights(laws: Sequence[str], ranks: Array | Ints | Sequence[int]) -> Array:
    """Values (l, n) of laws at numbers of ranks (n,)."""
    return np.array([[weight(law, int(p)) for p in ranks] for law in laws]).reshape(len(laws), len(ranks))


def across(step: Step) -> str:
    """The law of a block's face towards a neighbour: what is cut along the axes that the step does not go.

    A block of n^3 / (x y z) has n^2 / (y z) towards its neighbour in x, n / z towards the one in x and y.
    """
    axes = "xyz"[: len(step.vector)]
    axes = axes[::-1] if step.rising else axes
    still = sorted(axis for axis, way in zip(axes, step.vector, strict=True) if not way)
    return _named(len(axes), "".join(still)) if still else "constant"


def find_law(ranks: Ints, groups: Ints, values: Array) -> str:
    """The first of :func:`find_laws`, empty where the series follows none."""
    return next(iter(find_laws(ranks, groups, values)), "")


def find_laws(ranks: Ints, groups: Ints, values: Array, step: Step | None = None) -> tuple[str, ...]:
    """Every law that a series follows exactly, the likeliest first.

    Few numbers of ranks are met by several: at 2, 4 and 8 the face across the first axis of a three-dimensional grid is
    halved each time, as n / ranks is, and at 64 it is twice as large. Laws other than ``constant`` need three numbers
    of ranks: two are met by too many.

    Parameters
    ----------
    ranks, groups : (n,)
        Number of ranks of each run, and which runs share all other parameters.
    values : (n,)
        NaN where the series is missing.
    step : Step, optional
        The way that the messages go on a process grid. Grids of other dimensions are then no law, and where the face
        :func:`across` it is one, it is the only one.
    """
    known = np.isfinite(values)
    if not known.any():
        return ()
    ranks, groups, values = ranks[known], groups[known], values[known]
    several = max(len(np.unique(ranks[groups == g])) for g in np.unique(groups))
    if several < 2:
        return ()
    tried = [law for law in LAWS if step is None or _FACES.get(law, len(step.vector)) == len(step.vector)]
    exact = [law for law in (tried if several > 2 else LAWS[:1]) if _follows(law, ranks, groups, values)]
    if "constant" in exact:
        return ("constant",)
    if step is not None and across(step) in exact:
        return (across(step),)
    return tuple(exact)


def _follows(law: str, ranks: Ints, groups: Ints, values: Array) -> bool:
    scaled = values / weights([law], ranks)[0]
    parts = (scaled[groups == g] for g in np.unique(groups))
    return all(float(np.ptp(part)) <= EXACT * float(np.abs(part).max()) for part in parts)


@dataclass(frozen=True)
class Volumes(Stored):
    """Functions of s volumes."""

    parameters: tuple[str, ...]
    laws: tuple[str, ...]
    """Of the s volumes, of :data:`ranksight.model.messages.volumes.LAWS`; empty where a function of all parameters
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
