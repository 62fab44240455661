"""Models of functions: what explains the measurements, with weights, and how each of it grows.

Times are modelled as :func:`ranksight.model.fitting.fit_series.fit_series` models them for every other verb, so that a
verdict does not contradict what is predicted. Counts, exponentials and spaces of the user's own are searched in a space
that is generated around the expectation, in groups that share one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from ranksight.analysis.expectations.document import Study
from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.records import dataclass
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.process.posterior import NORMAL
from ranksight.model.process.prevalence import SLOW, learned
from ranksight.model.process.solve import dividing, divisions
from ranksight.model.search.growth import NONE, Growth, leading
from ranksight.model.search.terms import of_inverses
from ranksight.model.search.terms import values as values_of
from ranksight.model.series.noise import behaviour, locate
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.spaces.rulers import Ruler, offer, ruler, terms, wider
from ranksight.model.uncertainty.forecast import FEW_POINTS, NO_DATA

Key = tuple[str, str]
LITTLE = 0.9
"""Adjusted R2 below which a model explains so little that a wider space is tried."""
HALF = 0.5
"""Share of the out-of-sample error to which a wider space has to bring it, unless the narrower one was at its end; and
another function than expected, to violate that."""
LARGEST_EXPONENT = 128.0
MATTERS = 0.05
"""Share of the value, the largest at any configuration measured or asked for, below which a summand is no growth."""
FALLS = -1 / 8
"""Power with which values fall, half the smallest step of a ruler, from which on terms that fall are searched."""
SLOWEST = max(power for power, *_ in SLOW)
QUARTER = 0.25
"""Step of the powers of a logarithm, as of the rulers around expectations."""
CERTAIN = 0.975
"""Probability that a summand has the sign that was fitted, below which it is no growth."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """How one of the functions that explain the measurements grows, stripped to its leading term."""

    weight: float
    growth: Growth  # in the limit
    relevant: Growth  # of the terms that matter at the configurations asked for
    certain: Growth  # of those of them whose coefficient differs from zero


@dataclass(frozen=True)
class Model:
    """The model of one function and metric: a row of a fit."""

    fitted: Fitted
    row: int
    explanations: tuple[Explanation, ...]  # the leading one first
    space: tuple[Growth, ...]  # terms that were searched
    widened: bool  # whether the generated space had to be widened, its upper boundary being the best of it
    points: Array  # (n, m): what was measured
    values: Array  # (n, r): NaN where missing
    how: str  # how repetitions become one value
    ahead: Array  # (k, m): configurations that are asked for
    prior: Mapping[Growth, float] = field(default_factory=dict)  # how often times grow like that, where it is known

    def expecting(self, growth: Growth) -> tuple[Explanation, ...]:
        """The explanations, the likeliest first, for one who takes a growth to be as likely as all others together
        before anything was measured: who wrote a function knows more of it than how often functions grow like that."""
        often = self.prior.get(growth, 0.0)
        if not 0 < often < 1:
            return self.explanations
        more = [each.weight * ((1 - often) / often if each.growth == growth else 1.0) for each in self.explanations]
        weighed = zip(self.explanations, (np.array(more) / sum(more)).tolist(), strict=True)
        return tuple(sorted((replace(each, weight=weight) for each, weight in weighed), key=lambda each: -each.weight))

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
        used = self.fitted.members[self.row, 0]
        if not self.fitted.terms[used[used >= 0]].any():
            return float("nan")
        if fitted == fitted or self.empty or not self.growth.orders:
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
        return np.asarray(self.points[_present(self.values)])

    @property
    def settings(self) -> dict[str, int]:
        """Number of values of each parameter where the function was measured."""
        names = self.fitted.parameters
        return {name: len(np.unique(self.present[:, axis])) for axis, name in enumerate(names)}

    @property
    def empty(self) -> bool:
        """Whether there are too few values for any function."""
        return int(self.fitted.status[self.row]) in (FEW_POINTS, NO_DATA) or not self.fitted.weight[self.row, 0] > 0

    @property
    def growth(self) -> Growth:
        """In the limit, of what explains the measurements best."""
        return self.explanations[0].growth

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
    """Fit functions: times as they are predicted, what else there is each in the space around a growth.

    Where the best term of a generated space is its upper boundary, or no term explains much, the space is widened
    beyond, by exponentials too where that is not enough, so that what grows faster than the boundary is named and not
    taken for it. Where values fall along a parameter, generated spaces hold what falls. A wider space is believed where
    it finds something outside of the narrower one that predicts better.

    `around`: what the spaces are generated around. `ahead` (k, m): configurations that are asked for. `rulers`: terms
    of parameters for which the study has none.
    """
    rulers, rows = {**(rulers or {}), **study.rulers}, series.rows
    groups: dict[tuple[Growth, tuple[str, ...]], list[Key]] = {}
    models = _predicted(series, _timed(series, around, study), study.how, ahead)
    falls = _falls(series, study.how)
    for key, growth in around.items():
        if key in models:
            continue
        falling = zip(series.parameters, falls[rows[key]], strict=True)
        # A ruler of what is expected to fall has the terms already, and the user's own is the user's.
        along = tuple(name for name, yes in falling if yes and growth[name] >= NONE and name not in rulers)
        groups.setdefault((growth, along), []).append(key)
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
    best = model.growth
    names = (name for name in model.fitted.parameters if name not in rulers)
    return any(best[name] > NONE and best[name] >= ruler(around[name])[-1] for name in names)


def _better(wide: Model, narrow: Model, around: Growth, rulers: Mapping[str, Ruler]) -> bool:
    """Whether a wider space is believed: it finds what the narrower one has not, and that predicts better."""
    share = 1.0 if _bounded(narrow, around, rulers) else HALF
    return wide.growth not in narrow.space and wide.out_of_sample < share * narrow.out_of_sample


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
        key: Model(fitted, at, _searched(fitted, at, points), space, widened, series.points, values, how, ahead)
        for at, (key, values) in enumerate(zip(keys, series.values[chosen], strict=True))
        for points in [np.concatenate([series.points[_present(values)], ahead])]
    }


def _searched(fitted: Fitted, row: int, points: Array) -> tuple[Explanation, ...]:
    """The hypotheses of a search that explain a row of a fit, with what matters of them at some points (k, m)."""
    explanations = []
    for hypothesis, weight in enumerate(fitted.weight[row]):
        members, coefficient = fitted.members[row, hypothesis], fitted.coefficient[row, hypothesis]
        used = (members >= 0) & (coefficient != 0)
        if not weight > 0:
            continue
        terms = fitted.terms[members[used]]
        size = np.abs(coefficient[used, None] * values_of(terms, points))
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.nan_to_num(size / np.nansum(size, axis=0))
        matters = share.max(axis=1, initial=0.0) >= MATTERS
        root, variance = fitted.root[row, hypothesis][used], float(fitted.variance[row, hypothesis])
        error = np.sqrt(variance * (root**2).sum(axis=1))
        reach = float(special.stdtrit(max(float(fitted.freedom[row, hypothesis]), 1.0), CERTAIN))
        certain = matters & ~(np.abs(coefficient[used]) < reach * error)
        every = np.ones(len(terms), dtype=bool)
        explanations.append(
            Explanation(float(weight), *(_growth(terms[of], fitted.parameters) for of in (every, matters, certain)))
        )
    return tuple(explanations)


def _growth(terms: Array, parameters: tuple[str, ...]) -> Growth:
    """The leading growth of terms (t, m, 3); a constant where there are none."""
    return leading([Growth.of_term(term, parameters) for term in terms] or [Growth()])


def _timed(series: Series, around: Mapping[Key, Growth], study: Study) -> list[Key]:
    """The functions whose times are searched as all verbs search them: not in terms of the user's own, and not for
    exponentials."""
    rows, sampled = series.rows, series.sampled
    return [
        key
        for key, growth in around.items()
        if not study.rulers
        and behaviour(key[1], bool(sampled[rows[key]])) == "time"
        and not any(order.rate for _, order in growth.orders)
    ]


def _predicted(series: Series, keys: Sequence[Key], how: str, ahead: Array) -> dict[Key, Model]:
    """Models of times by what predicts them, where there is a process (:mod:`ranksight.model.process`) of them."""
    if not keys:
        return {}
    rows = series.rows
    chosen = np.array([rows[key] for key in keys], dtype=np.intp)
    fitted = fit_series(series.select(chosen), over_repetitions=how)
    models = {}
    for process in fitted.processes:
        share = process.shares(np.concatenate([series.points, ahead]))
        terms = _with_logarithms(of_inverses(process.terms, dividing(process.points)), series.points, ahead)
        prior = _prior(process.points, series.points, ahead, series.parameters)
        certain = process.certainties() >= float(special.stdtrit(NORMAL, CERTAIN))
        for place, row in enumerate(process.rows.tolist()):
            values = series.values[chosen[row]]
            asked = np.concatenate([_present(values), np.ones(len(ahead), dtype=bool)])
            matters = share[place][..., asked].max(axis=2) >= MATTERS
            parts = np.stack([process.members[place] >= 0, matters, matters & certain[place]], axis=1)
            growths = _weighed(process.weight[place], process.members[place], parts, terms, series.parameters)
            models[keys[row]] = Model(fitted, row, growths, (), False, series.points, values, how, ahead, prior)
    return models


def _prior(runs: Array, points: Array, ahead: Array, parameters: tuple[str, ...]) -> Mapping[Growth, float]:
    """How often times grow with one parameter in each way, before any is measured at `runs` (n, 1)."""
    if runs.shape[1] > 1:
        return {}
    table, members, _ = learned().over(divisions(runs, runs)[:, 0], None)
    terms = _with_logarithms(of_inverses(table.terms, dividing(runs)), points, ahead)
    prior: dict[Growth, float] = {}
    for mean, weight in zip(members, np.exp(table.means[table.occurring]).tolist(), strict=True):
        growth = _growth(terms[mean[mean >= 0]], parameters)
        prior[growth] = prior.get(growth, 0.0) + weight
    total = sum(prior.values())
    return {growth: weight / total for growth, weight in prior.items()}


def _with_logarithms(terms: Array, points: Array, ahead: Array) -> Array:
    """Terms (t, m, 3) with powers of a logarithm for powers that are slower than all growth that anybody expects, which
    stand for these: those of the same slope in the middle of where the function was measured and is asked for."""
    low, high = points.min(axis=0), np.concatenate([points, ahead]).max(axis=0)
    middle = np.log(np.maximum(low * high, 1.0)) / 2
    slow = (terms[..., 0] > 0) & (terms[..., 0] <= SLOWEST) & (terms[..., 1:] == 0).all(axis=-1)
    logarithm = np.maximum(np.round(terms[..., 0] * middle / QUARTER), 1.0) * QUARTER
    powers = np.stack([np.zeros(slow.shape), logarithm, np.zeros(slow.shape)], axis=-1)
    return np.where(slow[..., None], powers, terms)


def _weighed(
    weight: Array, members: Index, parts: Mask, terms: Array, parameters: tuple[str, ...]
) -> tuple[Explanation, ...]:
    """Growths of the hypotheses (c,) of a process, the likeliest first: of all of their `members` (c, q), terms of
    `terms`, of those that matter, and of those of these that are certain, `parts` (c, 3, q)."""
    total: dict[tuple[Growth, ...], float] = {}
    for each, used, some in zip(weight.tolist(), members, parts, strict=True):
        if each > 0:
            growths = tuple(_growth(terms[used[of]], parameters) for of in some)
            total[growths] = total.get(growths, 0.0) + each
    heaviest = sorted(total.items(), key=lambda each: -each[1])
    return tuple(Explanation(share, *growths) for growths, share in heaviest)


def _present(values: Array) -> Mask:
    """Where a function was measured, (n,), by its values (n, r)."""
    return np.asarray(~np.isnan(values).all(axis=1))
