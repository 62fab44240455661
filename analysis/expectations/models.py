"""Models of functions in generated search spaces: fitted in groups that share a space, read back one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ranksight.analysis.expectations.document import Study
from ranksight.core import special
from ranksight.core.arrays import Array, Mask
from ranksight.core.records import dataclass
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.search.growth import NONE, Growth, leading
from ranksight.model.search.terms import values as values_of
from ranksight.model.series.noise import locate
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.spaces.rulers import Ruler, offer, ruler, terms, wider
from ranksight.model.uncertainty.forecast import FEW_POINTS, NO_DATA

Key = tuple[str, str]
LITTLE = 0.9
"""Adjusted R2 below which a model explains so little that a wider space is tried."""
HALF = 0.5
"""Share of the out-of-sample error to which a wider space has to bring it, unless the narrower one was at its end."""
LARGEST_EXPONENT = 128.0
MATTERS = 0.05
"""Share of the value, the largest at any configuration measured or asked for, below which a summand is no growth."""
FALLS = -1 / 8
"""Power with which values fall, half the smallest step of a ruler, from which on terms that fall are searched."""
CERTAIN = 0.975
"""Probability that a summand has the sign that was fitted, below which it is no growth."""


@dataclass(frozen=True)
class Model:
    """The model of one function and metric: a row of a fit."""

    fitted: Fitted
    row: int
    space: tuple[Growth, ...]  # terms that were searched
    widened: bool  # whether the generated space had to be widened, its upper boundary being the best of it
    points: Array  # (n, m): what was measured
    values: Array  # (n, r): NaN where missing
    how: str  # how repetitions become one value
    ahead: Array  # (k, m): configurations that are asked for

    @property
    def formula(self) -> str:
        """The function with its coefficients."""
        return self.fitted.formula(self.row)

    @property
    def adjusted_r2(self) -> float:
        """Adjusted coefficient of determination of relative errors; NaN for a constant.

        Of a term without a constant, too: against the mean, as for the others.
        """
        fitted = float(self.fitted.adjusted_r2[self.row])
        if fitted == fitted or self.empty or not self.growth().orders:
            return fitted
        place = locate(self.values[None], self.how)
        repeated = place.repeats[0] > 0
        unit = place.scale[0, repeated].max()
        weight = (unit / place.scale[0, repeated]) ** 2
        value = place.values[0, repeated] / unit
        count = int(repeated.sum())
        mean = (weight * value).sum() / weight.sum()
        total = (weight * (value - mean) ** 2).sum() / (count - 1)
        left = (weight * (value - self.at(self.points[repeated]) / unit) ** 2).sum() / (count - 1)
        return float(1 - left / total) if total > 0 else fitted

    @property
    def out_of_sample(self) -> float:
        """Relative root-mean-square leave-one-out error."""
        return float(self.fitted.press[self.row])

    @property
    def present(self) -> Array:
        """The configurations (k, m) where the function was measured."""
        return np.asarray(self.points[~np.isnan(self.values).all(axis=1)])

    @property
    def settings(self) -> dict[str, int]:
        """Number of values of each parameter where the function was measured."""
        names = self.fitted.parameters
        return {name: len(np.unique(self.present[:, axis])) for axis, name in enumerate(names)}

    @property
    def empty(self) -> bool:
        """Whether there are too few values for any function."""
        return int(self.fitted.status[self.row]) in (FEW_POINTS, NO_DATA) or not self.fitted.weight[self.row, 0] > 0

    def growth(self, hypothesis: int = 0) -> Growth:
        """The growth of a hypothesis in the limit, stripped to its leading term."""
        return leading(self._growths(self._used(hypothesis), hypothesis))

    def relevant(self, hypothesis: int = 0, certain: bool = False) -> Growth:
        """The same of the terms that matter at the configurations asked for.

        Terms that are less than :data:`MATTERS` of the value wherever it was measured or is asked for are no growth: a
        rest of 10 instructions next to 500,000 / p is none at 1000 ranks. Nor are, with `certain`, terms whose
        coefficient may as well be zero.
        """
        used = self._used(hypothesis)
        if not used.any():
            return Growth()
        terms = self.fitted.terms[self.fitted.members[self.row, hypothesis][used]]
        each = self.fitted.coefficient[self.row, hypothesis][used, None]
        size = np.abs(each * values_of(terms, np.concatenate([self.present, self.ahead])))
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.nan_to_num(size / np.nansum(size, axis=0)).max(axis=1)
        used[used] = share >= MATTERS
        if certain:
            used &= self._certain(hypothesis)
        return leading(self._growths(used, hypothesis))

    def _used(self, hypothesis: int) -> Mask:
        members = self.fitted.members[self.row, hypothesis]
        return np.asarray((members >= 0) & (self.fitted.coefficient[self.row, hypothesis] != 0))

    def _growths(self, used: Mask, hypothesis: int) -> list[Growth]:
        """Of the terms in use; a constant where there is none."""
        terms = self.fitted.terms[self.fitted.members[self.row, hypothesis][used]]
        return [Growth.of_term(term, self.fitted.parameters) for term in terms] or [Growth()]

    def _certain(self, hypothesis: int) -> Mask:
        """Whether each coefficient of a hypothesis differs from zero by more than its error."""
        root, variance = self.fitted.root[self.row, hypothesis], float(self.fitted.variance[self.row, hypothesis])
        error = np.sqrt(variance * (root**2).sum(axis=1))
        reach = float(special.stdtrit(max(float(self.fitted.freedom[self.row, hypothesis]), 1.0), CERTAIN))
        return np.asarray(~(np.abs(self.fitted.coefficient[self.row, hypothesis]) < reach * error))

    def alternatives(self) -> list[tuple[float, int]]:
        """Posterior weight and number of every hypothesis kept."""
        weights = self.fitted.weight[self.row]
        return [(float(w), c) for c, w in enumerate(weights) if w > 0]

    def at(self, points: Array) -> Array:
        """Values (k,) of the leading hypothesis."""
        return np.asarray(one(self.fitted, self.row).at_training(points)[0])


def one(fitted: Fitted, row: int) -> Fitted:
    """One series of a fit."""
    rows = slice(row, row + 1)
    names = ("members", "weight", "coefficient", "root", "variance", "freedom", "press", "adjusted_r2", "count")
    more = ("status", "positive", "trained", "drift", "within", "repetitions", "noisy", "unaffected")
    arrays = {name: getattr(fitted, name)[rows] for name in (*names, *more)}
    return replace(
        fitted,
        kernels=fitted.kernels[rows],
        metrics=fitted.metrics[rows],
        below=(),
        **arrays,
    )


def fit_models(
    series: Series, around: Mapping[Key, Growth], study: Study, ahead: Array, rulers: Mapping[str, Ruler] | None = None
) -> dict[Key, Model]:
    """Fit functions, each in the space around a growth.

    Where the best term of a generated space is its upper boundary, or no term explains much, the space is widened
    beyond, by exponentials too where that is not enough, so that what grows faster than the boundary is named and not
    taken for it. Where values fall along a parameter, generated spaces hold what falls. A wider space is believed where
    it finds something outside of the narrower one that predicts better.

    `around`: what the spaces are generated around. `ahead` (k, m): configurations that are asked for. `rulers`: terms
    of parameters for which the study has none.
    """
    rulers, rows = {**(rulers or {}), **study.rulers}, series.rows
    groups: dict[tuple[Growth, tuple[str, ...]], list[Key]] = {}
    falls = _falls(series, study.how)
    for key, growth in around.items():
        falling = zip(series.parameters, falls[rows[key]], strict=True)
        # A ruler of what is expected to fall has the terms already, and the user's own is the user's.
        along = tuple(name for name, yes in falling if yes and growth[name] >= NONE and name not in rulers)
        groups.setdefault((growth, along), []).append(key)
    models: dict[Key, Model] = {}
    for (growth, along), keys in groups.items():
        space = terms(growth, series.parameters, rulers, study.depth, along)
        models |= _fit(series, keys, growth, space, study.how, False, ahead)
        for exponential in (False, True):
            # Next to what falls, growth explains so little of the values that its absence is not seen in that.
            short = [key for key in keys if along or models[key].widened or _short(models[key], growth, rulers)]
            known = set(series.parameters) <= set(rulers)
            if not short or known or (exponential and not _countable(series)):
                break
            space = wider(growth, series.parameters, rulers, study.depth, exponential, along)
            tried = _fit(series, short, growth, space, study.how, True, ahead)
            models |= {key: model for key, model in tried.items() if _better(model, models[key], growth, rulers)}
    return models


def _falls(series: Series, over_repetitions: str) -> Mask:
    """Along which parameters (s, m) series fall, by the power of each that meets their values best."""
    points, none = series.points, np.zeros((len(series), series.points.shape[1]), dtype=bool)
    if (points <= 0).any():
        return none
    values = reduce(series.values, "median" if over_repetitions == "auto" else over_repetitions, axis=2)
    known = np.isfinite(values) & (values > 0)
    logs = np.column_stack([np.ones(len(points)), np.log(points)])
    value = np.log(np.where(known, values, 1.0))
    normal = np.einsum("sn,ni,nj->sij", known.astype(np.float64), logs, logs)
    slope = np.linalg.pinv(normal) @ np.einsum("sn,ni,sn->si", known.astype(np.float64), logs, value)[:, :, None]
    return np.asarray(slope[:, 1:, 0] < FALLS)


def _short(model: Model, around: Growth, rulers: Mapping[str, Ruler]) -> bool:
    """Whether the space seems too narrow: its boundary is the best of it, or nothing in it explains much."""
    return not model.empty and (_bounded(model, around, rulers) or model.adjusted_r2 < LITTLE)


def _bounded(model: Model, around: Growth, rulers: Mapping[str, Ruler]) -> bool:
    """Whether the best is at the upper boundary of the ruler around an expectation along a parameter, or beyond."""
    best = model.growth()
    names = (name for name in model.fitted.parameters if name not in rulers)
    return any(best[name] > NONE and best[name] >= ruler(around[name])[-1] for name in names)


def _better(wide: Model, narrow: Model, around: Growth, rulers: Mapping[str, Ruler]) -> bool:
    """Whether a wider space is believed: it finds what the narrower one has not, and that predicts better."""
    share = 1.0 if _bounded(narrow, around, rulers) else HALF
    return wide.growth() not in narrow.space and wide.out_of_sample < share * narrow.out_of_sample


def _countable(series: Series) -> bool:
    """Whether a parameter is small enough for exponentials: 2^x is a number that something could take."""
    return bool((np.abs(series.points).max(axis=0) <= LARGEST_EXPONENT).any())


def _fit(
    series: Series,
    keys: Sequence[Key],
    growth: Growth,
    space: tuple[Growth, ...],
    how: str,
    widened: bool,
    ahead: Array,
) -> dict[Key, Model]:
    rows = series.rows
    chosen = np.array([rows[key] for key in keys], dtype=np.intp)
    fitted = fit_series(
        series.select(chosen),
        space=offer(space, series.parameters, growth),
        over_repetitions=how,
    )
    return {
        key: Model(fitted, at, space, widened, series.points, series.values[row], how, ahead)
        for at, (key, row) in enumerate(zip(keys, chosen, strict=True))
    }
