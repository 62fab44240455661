"""Times as sums of few known forms, each of which adds and none of which takes away:

    T(p) = (a + sum_j c_j g_j(p)) exp(d(p)),   a, c_j >= 0

as messages (a constant, a volume, a tree) and the start of a program (a constant, a term a rank). Which terms are there
is a hypothesis. So is the departure d of the true law from such a sum, a Gaussian process over the logarithms of the
parameters with the hypotheses of a rate (:mod:`ranksight.model.kernel_time.rates`): none, an unknown power, a slow
change, noise between configurations. Given both, coefficients have a Gaussian distribution around their generalised
least-squares estimate. Hypotheses are averaged by the likelihood of the departure and the Bayesian information
criterion of the coefficients (Kass and Raftery 1995, Journal of the American Statistical Association 90, 773). One
whose estimate has a negative coefficient is left out, as another without that term is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask, log, ratio
from ranksight.core.records import dataclass
from ranksight.model.kernel_time.hypotheses import Hypotheses as Departures
from ranksight.model.kernel_time.hypotheses import covariance_of_regimes, prior_of_regimes, variance_of_regimes
from ranksight.model.kernel_time.rates import JITTER
from ranksight.model.plaindata import Stored
from ranksight.model.process.covariance import beyond, unseen, within
from ranksight.model.process.posterior import turned
from ranksight.model.process.prevalence import learned
from ranksight.model.quantity import EACH_END, TAIL, Quantity
from ranksight.model.search.terms import ONE, Factor, Hypotheses, hypotheses, values
from ranksight.model.uncertainty.mixture import Components, quantile, quantiles

Term = tuple[Factor, ...]

ENOUGH = 3.0
"""Standard errors above zero from which on cutting off at zero changes nothing."""
SINGULAR = 1e-9
"""Smallest over largest eigenvalue of scaled normal equations below which terms repeat each other."""
ROUNDING = 1e-12
"""Part of the normal equations that keeps terms apart that steps have made one."""
ITERATIONS = 8
"""Steps of Gauss and Newton's iteration."""
AT_ONCE = 100_000
"""Values of terms, under all hypotheses, of the series that are fitted at once."""
LIGHTEST = 1e-4
"""Weight of a hypothesis over the largest below which it moves no quantile."""
FAR = 40.0
"""Standard deviations from which on a normal law is on one side."""
NORMAL = 1e6
"""Degrees of freedom at which Student's law is the normal one."""


def term(parameters: Sequence[str], factors: Mapping[str, Factor]) -> Term:
    """The product of the factors of some of the parameters."""
    return tuple(factors.get(name, ONE) for name in parameters)


def forms(parameters: Sequence[str], *groups: Mapping[Term, float], bare: bool = False) -> Hypotheses:
    """A constant, alone and with at most one term of each group, which says the logarithm of the odds of each term;
    where `bare`, these terms without a constant as well."""
    constant = term(parameters, {})
    members: list[tuple[Term, ...]] = []
    prior: list[float] = []
    for picked in product(*(((), *group) for group in groups)):
        chosen = tuple(filter(None, picked))
        sums = [(constant, *chosen), *([chosen] if bare and chosen else [])]
        members += sums
        prior += [sum(group.get(each, 0.0) for group, each in zip(groups, picked, strict=True))] * len(sums)
    return hypotheses(members, prior)


@dataclass(frozen=True)
class Sums(Stored):
    """Sums of K series over m parameters, under h hypotheses of q terms at most."""

    terms: Array  # (t, m, 3): exponents of all terms
    members: Index  # (h, q): terms of each sum, -1 where it has fewer
    prior: Array  # (h,): logarithms of the odds of the sums
    points: Array  # (n, m): measured
    measured: Array  # (K, n): NaN where nothing was
    error: Array  # (K, n): standard errors
    known: int = 0  # last columns of the points that are known of each, as times of other parts: no sum departs along
    lone: tuple[int, ...] = ()
    """Columns of the points, numbers of nodes or ranks, where one and several may be of two regimes
    (:mod:`ranksight.model.kernel_time.hypotheses`)."""
    _sizes = "terms:tm3! members:hq prior:h! points:nm>0 measured:kn error:kn"

    def __bool__(self) -> bool:
        return bool(len(self.measured))

    @cached_property
    def _departures(self) -> Departures:
        """Hypotheses of how the true law departs from a sum."""
        return Departures.over(((True,) * (self.points.shape[1] - self.known) + (False,) * self.known,))

    def _covariance(self, first: Array, second: Array) -> Array:
        """Covariance (s, a, b) of departures and regimes between points (a, m) and (b, m)."""
        places = [np.log(each) - self._origin for each in (first, second)]
        total = self._departures.covariance(*places)
        ends = [place[:, : place.shape[1] - self.known] for place in places]
        for column in self.lone:
            within = [each[:, column] <= 1 for each in (first, second)]
            total = _each_with(covariance_of_regimes(ends[0], within[0], ends[1], within[1]), total)
        return total

    def _variance(self, points: Array) -> Array:
        """Variance (s, k) of departures, regimes and noise between configurations at `points` (k, m)."""
        total = self._departures.variance(np.log(points) - self._origin)
        for column in self.lone:
            total = _each_with(variance_of_regimes(points[:, column] <= 1), total)
        return total

    @cached_property
    def _prior(self) -> Array:
        """Logarithms of the prior weights of departures and regimes, (s,)."""
        total = log(self._departures.prior)
        for column in self.lone:
            total = _each_with(log(prior_of_regimes(self.points[:, column] <= 1)), total)
        return np.asarray(total)

    @cached_property
    def _origin(self) -> Array:
        """Where unknown powers are anchored: the centre of the measured logarithms."""
        return np.asarray(np.log(self.points).mean(axis=0))

    @cached_property
    def _fitted(self) -> tuple[tuple[Index, Index, _Fit], ...]:
        """Series under all hypotheses, many at a time: which they are, and the points that they all have."""
        design = values_of(self.terms, self.members, self.points)
        departures = self._covariance(self.points, self.points)
        variances = np.tile(self._departures.noise**2, len(departures) // len(self._departures.noise))
        real = self.members >= 0
        prior = self._prior[:, None] + self.prior
        step = max(1, AT_ONCE // (len(departures) * design.size))
        fits = []
        for rows, known in _same(np.isfinite(self.measured), step):
            measured = self.measured[np.ix_(rows, known)]
            share = self.error[np.ix_(rows, known)] / measured
            noise = share[:, None] ** 2 + variances[:, None] + JITTER
            covariance = departures[:, known[:, None], known] + np.eye(len(known)) * noise[..., None]
            relative = design[..., known] / measured[:, None, None]
            fits.append((rows, known, _fit(relative, covariance, real, prior)))
        return tuple(fits)

    def at(self, points: Array) -> Quantity:
        """Times (K, k) at `points` (k, m), with what no run shows; the sum may turn beyond the runs, as all laws may
        (:class:`ranksight.model.process.covariance.Turn`)."""
        count = len(points)
        every = np.concatenate([points, within(points, self.points)])
        new = values_of(self.terms, self.members, every)
        cross, variance = self._covariance(every, self.points), self._variance(every)
        free = [np.log(each[:, : each.shape[1] - self.known]) for each in (points, self.points)]
        distance, turn = beyond(*free), learned().turn
        middle, down, up = (np.empty((len(self.measured), count)) for _ in range(3))
        for rows, known, fit in self._fitted:
            often = turn.probability(self._scatter(fit))
            step = max(1, AT_ONCE // (len(rows) * len(cross) * len(self.members)))
            for first in range(0, count, step):
                part = np.arange(count)[first : first + step]
                asked = np.concatenate([part, count + part])
                parts = fit.at(new[..., asked], cross[:, asked][..., known], variance[:, asked])
                straight = Components(*(each[..., : len(part)] for each in parts))
                widened = turned(straight, parts.centre[..., len(part) :], distance[part], often, turn)
                place = rows[:, None], part
                middle[place], down[place], up[place] = ends(straight, widened)
        return Quantity(middle, down, up).wider(unseen(*free))

    def _scatter(self, fit: _Fit) -> Array:
        """Standard deviation (K,) of the logarithm of what configurations scatter around their sum by, beyond the
        errors of what was measured."""
        noise = np.tile(self._departures.noise**2, fit.weight.shape[1] // len(self._departures.noise))
        return np.asarray(np.sqrt(fit.weight.sum(axis=2) @ noise))

    def _fits(self) -> bool:
        columns, known = range(self.points.shape[1]), np.isfinite(self.measured)
        good = self.members.size > 0 and len(self.points) > 0
        good = good and self.known in columns and all(column in columns for column in self.lone)
        good = good and self.members.min() >= -1 and self.members.max() < len(self.terms)
        good = good and bool(known.any(axis=1).all())
        return good and bool((self.measured[known] > 0).all() and (self.error[known] >= 0).all())


NO_SUMS = Sums(np.zeros((0, 0, 3)), np.zeros((0, 0), dtype=np.intp), np.zeros(0), *np.zeros((3, 0, 0)))
"""Of nothing."""


def _each_with(regimes: Array, departures: Array) -> Array:
    """Every one of `regimes` (r, ...) added to every one of `departures` (s, ...), as (r s, ...)."""
    return np.asarray((regimes[:, None] + departures).reshape(-1, *departures.shape[1:]))


def _same(known: Mask, most: int) -> Iterator[tuple[Index, Index]]:
    """Rows of `known` (K, n) that are the same, `most` of them at a time, and where they are true."""
    patterns, group = np.unique(known, axis=0, return_inverse=True)
    for at, pattern in enumerate(patterns):
        rows = np.flatnonzero(np.ravel(group) == at)
        for first in range(0, len(rows), most):
            yield rows[first : first + most], np.flatnonzero(pattern)


@dataclass(frozen=True)
class _Fit:
    """K series under h sums and s departures."""

    relative: Array  # (K, s, h, q, n): values of the terms over those of the sum
    inverse: Array  # (K, s, n, n): of the covariance of departures and errors
    left: Array  # (K, s, h, n): logarithms of what was measured over the sum
    coefficient: Array  # (K, s, h, q)
    covariance: Array  # (K, s, h, q, q)
    weight: Array  # (K, s, h)

    def at(self, new: Array, cross: Array, variance: Array) -> Components:
        """All hypotheses (c, K, k) where terms have the values `new` (h, q, k), and departures the covariance `cross`
        (s, k, n) with those measured and `variance` (s, k)."""
        gain = cross @ self.inverse
        departure = np.exp(self.left @ gain.swapaxes(2, 3))
        centre = (self.coefficient[..., None, :] @ new)[..., 0, :] * departure
        departed = np.maximum(variance - (gain * cross).sum(axis=3), 0.0)
        *count, terms, points = self.relative.shape
        moved = self.relative.reshape(*count[:2], -1, points) @ gain.swapaxes(2, 3)
        slope = new * departure[..., None, :] - centre[..., None, :] * moved.reshape(*count, terms, -1)
        spread = ((self.covariance @ slope) * slope).sum(axis=3) + centre**2 * departed[:, :, None]
        weight = np.where(self.weight > LIGHTEST * self.weight.max(axis=(1, 2), keepdims=True), self.weight, 0.0)
        used = np.broadcast_to(weight[..., None], centre.shape) * (centre > 0)
        parts = used, log(centre), np.sqrt(ratio(spread, centre**2, 0.0)), np.full(centre.shape, NORMAL)
        return Components(*(np.moveaxis(part, 0, 2).reshape(-1, len(weight), centre.shape[3]) for part in parts))


def ends(straight: Components, widened: Components) -> tuple[Array, Array, Array]:
    """Medians of mixtures of normal laws (c, ...) if they go on, and the deviations to either side: second moments, as
    a hypothesis far off counts by its distance and not by its probability alone; and where they may turn, those to the
    ends of the 90 % interval."""
    weight, centre, spread, _ = straight
    middle = quantile(0.5, *straight)
    weight, off = weight / weight.sum(axis=0), np.where(weight > 0, centre - middle, 0.0)
    z = ratio(off, spread, np.sign(off) * FAR)
    cross = off * spread * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    square = spread**2 + off**2
    up, down = (2 * (weight * (square * special.ndtr(side * z) + side * cross)).sum(axis=0) for side in (1, -1))
    low, high = quantiles((EACH_END, 1 - EACH_END), *widened)
    up, down = (np.sqrt(np.maximum(each, 0.0)) for each in (up, down))
    return middle, np.maximum(down, (middle - low) / TAIL), np.maximum(up, (high - middle) / TAIL)


def fit_sums(
    space: Hypotheses, points: Array, measured: Array, error: Array, known: int = 0, lone: tuple[int, ...] = ()
) -> Sums:
    """Fit the sums of `space`.

    `points` (n, m): above zero; the last `known` columns are known of each, as times of other parts. `measured` (K, n):
    NaN where there is none, or none above zero; every row has one. `error` (K, n): standard errors. `lone`: columns of
    the points, numbers of nodes or ranks, of which one may be of another regime than several.
    """
    positive = np.where(measured > 0, measured, np.nan)
    return Sums(space.terms, space.members, space.prior, points, positive, error, known, lone)


def _fit(relative: Array, covariance: Array, real: Mask, prior: Array) -> _Fit:
    """Least squares of logarithms at terms that are `relative` (K, h, q, n) to what was measured, those that are `real`
    (h, q), under each covariance (K, s, n, n), with the logarithms of the odds of both, `prior` (s, h).

    Gauss and Newton's iteration, from a sum of equal terms. After each step the sum as a whole is moved
    to where it meets the values best, which logarithms are linear in.
    """
    real = (real & relative.any(axis=3))[:, None]
    count, sizes = relative.shape[3], real.sum(axis=3)
    inverse = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
    level = (inverse.sum(axis=2) / inverse.sum(axis=(2, 3))[..., None])[..., None]
    padded = (~real)[..., None] & np.eye(real.shape[3], dtype=bool)
    scale = np.where(real, np.abs(relative[:, None]).max(axis=4), 1.0)
    scaled = relative[:, None] / scale[..., None]
    # A sum that is nothing where something was measured does not meet it, whatever its coefficients.
    usable = identified(scaled, real) & np.all((scaled > 0).any(axis=-2), axis=-1)
    shape = (*inverse.shape[:2], *relative.shape[1:])
    coefficients = np.broadcast_to(1.0 * real, shape[:-1])
    for _ in range(ITERATIONS):
        fitted = np.maximum((np.maximum(coefficients, 0.0)[..., None, :] @ scaled)[..., 0, :], SINGULAR)
        fitted = fitted * np.exp(-(np.log(fitted) @ level))
        slope, goal = scaled / fitted[..., None, :], 1 - np.log(fitted)
        turned = (slope.reshape(*shape[:2], -1, count) @ inverse).reshape(shape)
        normal = turned @ slope.swapaxes(3, 4)
        typical = np.einsum("Kshqq->Ksh", normal)[..., None, None]
        normal = np.where(usable[..., None, None], normal / typical + padded, np.eye(real.shape[3]))
        normal = normal + ROUNDING * np.eye(real.shape[3])
        coefficients = np.linalg.solve(normal, (turned / typical) @ goal[..., None])[..., 0]
    spread = np.linalg.inv(normal) / typical
    left = goal - (coefficients[..., None, :] @ slope)[..., 0, :]
    misfit = ((left @ inverse) * left).sum(axis=3)
    coefficients, spread, chance = cut_off(coefficients, spread * (real[..., :, None] & real[..., None, :]))
    usable = usable & (coefficients >= -SINGULAR).all(axis=3)
    simplest = np.arange(sizes.shape[2]) == sizes.argmin(axis=2)[..., None]
    usable |= simplest & ~usable.any(axis=2, keepdims=True)
    determinant = np.linalg.slogdet(covariance)[1]
    score = prior - (misfit + determinant[..., None] + sizes * np.log(max(count, 2))) / 2 + chance
    score = np.where(usable, score, -np.inf)
    weight = np.exp(score - score.max(axis=(1, 2), keepdims=True))
    coefficients = np.maximum(coefficients, 0.0) * real
    fitted = np.maximum((coefficients[..., None, :] @ scaled)[..., 0, :], SINGULAR)
    spread = spread / (scale[..., :, None] * scale[..., None, :])
    weight = weight / weight.sum(axis=(1, 2), keepdims=True)
    at_sum = relative[:, None] / fitted[..., None, :]
    return _Fit(at_sum, inverse, -np.log(fitted), coefficients / scale, spread, weight)


def identified(scaled: Array, real: Mask) -> Mask:
    """Sums (...) whose coefficients follow from the values: of terms (..., q, n) in units of their largest value those
    that are `real` (..., q) are no more than the values, and none is a combination of others."""
    padded = (~real)[..., None] & np.eye(real.shape[-1], dtype=bool)
    size = np.linalg.eigvalsh(scaled @ scaled.swapaxes(-1, -2) + padded)
    return np.asarray((size[..., 0] > SINGULAR * size[..., -1]) & (real.sum(axis=-1) <= scaled.shape[-1]))


def cut_off(coefficients: Array, covariance: Array) -> tuple[Array, Array, Array]:
    """Estimates (K, s, h, q) and covariances with the most doubtful coefficient of each kept above zero, and ln of the
    probability that it is; moments of the truncated normal distribution."""
    variance = np.maximum(np.einsum("Kshqq->Kshq", covariance), 1e-300)
    sure = np.where(variance > 1e-299, coefficients / np.sqrt(variance), np.inf)
    at = sure.argmin(axis=3)[..., None]
    z, variance_of = (np.take_along_axis(each, at, axis=3)[..., 0] for each in (sure, variance))
    below = np.isfinite(z) & (z < ENOUGH)
    z = np.where(below, z, 0.0)
    # The density over the probability above zero, from logarithms as both may vanish.
    ratio = np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - special.log_ndtr(z))
    moved = np.where(below, np.sqrt(variance_of) * ratio, 0.0)
    left = np.where(below, np.clip(1 - ratio * (ratio + z), 0.0, 1.0), 1.0)
    column = np.take_along_axis(covariance, at[..., None], axis=4)[..., 0]
    coefficients = coefficients + column * (moved / variance_of)[..., None]
    covariance = (
        covariance - (column[..., :, None] * column[..., None, :]) * ((1 - left) / variance_of)[..., None, None]
    )
    return coefficients, covariance, np.where(below, special.log_ndtr(z), 0.0)


def values_of(terms: Array, members: Index, points: Array) -> Array:
    """Values (h, q, n) of the terms of each sum, zero where it has fewer."""
    table = np.concatenate([np.nan_to_num(values(terms, points)), np.zeros((1, len(points)))])
    return np.asarray(table[members])
