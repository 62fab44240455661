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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, Self

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask
from ranksight.model.kernel_time.rates import JITTER, unseen
from ranksight.model.kernel_time.rates import Hypotheses as Departures
from ranksight.model.plaindata import Stored, reading
from ranksight.model.search.terms import ONE, Factor, Hypotheses, hypotheses, values

Term = tuple[Factor, ...]

ENOUGH = 3.0
"""Standard errors above zero from which on cutting off at zero changes nothing."""
SINGULAR = 1e-9
"""Smallest over largest eigenvalue of scaled normal equations below which terms repeat each other."""
ITERATIONS = 4
"""Steps of Gauss and Newton's iteration."""
LEAST = 0.05
"""Share of what was measured that a sum is at least, while it is sought."""


def term(parameters: Sequence[str], factors: Mapping[str, Factor]) -> Term:
    """The product of the factors of some of the parameters."""
    return tuple(factors.get(name, ONE) for name in parameters)


def forms(parameters: Sequence[str], *groups: Mapping[Term, float]) -> Hypotheses:
    """A constant, alone and with at most one term of each group, which says the logarithm of the odds of each term."""
    constant = term(parameters, {})
    found, prior = [], []
    for picked in product(*(((), *group) for group in groups)):
        found.append((constant, *filter(None, picked)))
        prior.append(sum(group.get(each, 0.0) for group, each in zip(groups, picked, strict=True)))
    return hypotheses(found, prior)


@dataclass(frozen=True)
class Sums(Stored):
    """Sums of K series over m parameters, under h hypotheses of q terms at most.

    Attributes
    ----------
    terms : (t, m, 3)
        Exponents of all terms.
    members : (h, q) int
        Terms of each sum, -1 where it has fewer.
    prior : (h,)
        Logarithms of the odds of the sums.
    points : (n, m)
        Measured.
    measured, error : (K, n)
        NaN where nothing was measured; standard errors.
    """

    terms: Array
    members: Index
    prior: Array
    points: Array
    measured: Array
    error: Array

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError.

        Files up to schema version 4 hold coefficients in place of what was measured, which stand for it.
        """
        if "coefficient" not in content:
            return super().from_dict(content)
        with reading("'sums'"):
            points, members = np.array(content["points"], dtype=np.float64), np.array(content["members"], dtype=np.intp)
            coefficient, covariance, weight = (
                np.array(content[name], dtype=np.float64) for name in ("coefficient", "covariance", "weight")
            )
            if coefficient.shape != (len(weight), *members.shape) or weight.shape != coefficient.shape[:2]:
                raise ValueError("its coefficients are not those of its terms")
            design = _design(np.array(content["terms"], dtype=np.float64), members, points)
            centre = np.einsum("hnq,Khq->Khn", design, coefficient)
            spread = np.einsum("hnq,Khqr,hnr->Khn", design, covariance, design)
            mean = np.einsum("Kh,Khn->Kn", weight, centre)
            square = np.einsum("Kh,Khn->Kn", weight, (centre - mean[:, None]) ** 2 + spread)
            kept = {name: content[name] for name in ("terms", "members", "points")}
            before = np.zeros(len(members))
            return super().from_dict({**kept, "prior": before, "measured": mean, "error": np.sqrt(square)})

    @cached_property
    def _departures(self) -> Departures:
        """Hypotheses of how the true law departs from a sum."""
        return Departures.over(((True,) * self.points.shape[1],))

    @cached_property
    def _origin(self) -> Array:
        """Where unknown powers are anchored: the centre of the measured logarithms."""
        return np.asarray(np.log(self.points).mean(axis=0))

    @cached_property
    def _fitted(self) -> tuple[_Fit, ...]:
        """Each series under all hypotheses."""
        design = _design(self.terms, self.members, self.points)
        places = np.log(self.points) - self._origin
        departures = self._departures.covariance(places, places)
        real = self.members >= 0
        found = []
        for measured, error in zip(self.measured, self.error, strict=True):
            known = np.flatnonzero(np.isfinite(measured))
            share = error[known] / measured[known]
            covariance = (
                departures[:, known[:, None], known]
                + np.eye(len(known)) * (share**2 + self._departures.noise[:, None] ** 2 + JITTER)[:, None]
            )
            relative = design[:, known] / measured[known, None]
            found.append(_fit(relative, covariance, real, np.log(self._departures.prior)[:, None] + self.prior))
        return tuple(found)

    def at(self, points: Array) -> tuple[Array, Array]:
        """Mean and standard deviation (K, k) at `points` (k, m), with what no run shows."""
        new = _design(self.terms, self.members, points)
        places = np.log(points) - self._origin
        measured = np.log(self.points) - self._origin
        cross, variance = self._departures.covariance(places, measured), self._departures.variance(places)
        mean, square = np.empty((2, len(self.measured), len(points)))
        for row, fit in enumerate(self._fitted):
            known = np.isfinite(self.measured[row])
            mean[row], square[row] = fit.at(new, cross[..., known], variance)
        own = unseen(np.log(points), np.log(self.points))
        return mean, np.sqrt(square + (mean * own) ** 2)

    def _fits(self) -> bool:
        good = self.terms.ndim == 3 and self.terms.shape[2] == 3 and self.members.ndim == 2 and self.members.size > 0
        good = good and self.points.ndim == 2 and self.points.shape[1] == self.terms.shape[1] and len(self.points) > 0
        good = good and self.measured.ndim == 2 and self.measured.shape[1] == len(self.points)
        good = good and self.error.shape == self.measured.shape and bool((self.points > 0).all())
        good = good and self.members.min() >= -1 and self.members.max() < len(self.terms)
        good = good and self.prior.shape == (len(self.members),) and bool(np.isfinite(self.prior).all())
        known = np.isfinite(self.measured)
        good = good and bool(np.isfinite(self.terms).all() and np.isfinite(self.points).all())
        good = good and bool(known.any(axis=1).all())
        return good and bool((self.measured[known] > 0).all() and (self.error[known] >= 0).all())


@dataclass(frozen=True)
class _Fit:
    """One series under h sums and s departures.

    Attributes
    ----------
    relative : (s, h, n, q)
        Values of the terms over those of the sum.
    inverse : (s, n, n)
        Of the covariance of departures and errors.
    left : (s, h, n)
        Logarithms of what was measured over the sum.
    coefficient, covariance : (s, h, q), (s, h, q, q)
    weight : (s, h)
    """

    relative: Array
    inverse: Array
    left: Array
    coefficient: Array
    covariance: Array
    weight: Array

    def at(self, new: Array, cross: Array, variance: Array) -> tuple[Array, Array]:
        """Mean and variance (k,) where terms have the values `new` (h, k, q), and departures the covariance `cross`
        (s, k, n) with those measured and `variance` (s, k)."""
        gain = cross @ self.inverse
        departure = self.left @ gain.transpose(0, 2, 1)
        centre = np.einsum("hkq,shq->shk", new, self.coefficient) * np.exp(departure)
        departed = np.maximum(variance - np.einsum("skn,skn->sk", gain, cross), 0.0)
        slope = new * np.exp(departure)[..., None] - centre[..., None] * (gain[:, None] @ self.relative)
        spread = np.einsum("shkq,shqr,shkr->shk", slope, self.covariance, slope) + centre**2 * departed[:, None]
        mean = np.einsum("sh,shk->k", self.weight, centre)
        return mean, np.einsum("sh,shk->k", self.weight, (centre - mean) ** 2 + spread)


def fit_sums(space: Hypotheses, points: Array, measured: Array, error: Array) -> Sums:
    """Fit the sums of `space`.

    Parameters
    ----------
    points : (n, m)
        Above zero.
    measured : (K, n)
        NaN where there is none, or none above zero; every row has one.
    error : (K, n)
        Standard errors.
    """
    return Sums(space.terms, space.members, space.prior, points, np.where(measured > 0, measured, np.nan), error)


def _fit(relative: Array, covariance: Array, real: Mask, prior: Array) -> _Fit:
    """Least squares of logarithms at terms that are `relative` (h, n, q) to what was measured, those that are `real`
    (h, q), under each covariance (s, n, n), with the logarithms of the odds of both, `prior` (s, h).

    Gauss and Newton's iteration, from a sum that meets all that was measured.
    """
    real = real & relative.any(axis=1)
    count, sizes = relative.shape[1], real.sum(axis=1)
    inverse = np.asarray(np.linalg.inv(covariance), dtype=np.float64)
    padded = (~real)[:, :, None] & np.eye(real.shape[1], dtype=bool)
    scaled = relative / np.where(real, np.abs(relative).max(axis=1), 1.0)[:, None]
    size = np.linalg.eigvalsh(scaled.swapaxes(1, 2) @ scaled + padded)
    usable = (size[:, 0] > SINGULAR * size[:, -1]) & (sizes <= count)
    fitted = np.ones((len(inverse), *relative.shape[:2]))
    for _ in range(ITERATIONS):
        slope, goal = relative / fitted[..., None], 1 - np.log(fitted)
        scale = np.where(real, np.abs(slope).max(axis=2), 1.0)
        slope = slope / scale[:, :, None]
        turned = inverse[:, None] @ slope
        normal = slope.swapaxes(2, 3) @ turned
        typical = np.einsum("shqq->sh", normal)[..., None, None]
        normal = np.where(usable[:, None, None], normal / typical + padded, np.eye(real.shape[1]))
        spread = np.linalg.inv(normal) / typical
        held = (spread @ (turned.swapaxes(2, 3) @ goal[..., None]))[..., 0]
        fitted = np.maximum(np.einsum("hnq,shq->shn", relative, np.maximum(held, 0.0) / scale), LEAST)
    left = goal - (slope @ held[..., None])[..., 0]
    misfit = np.einsum("shn,snm,shm->sh", left, inverse, left)
    held, spread, chance = _cut_off(held, spread * (real[:, :, None] & real[:, None, :]))
    usable = usable & (held >= -SINGULAR).all(axis=2)
    usable[:, int(np.argmin(sizes))] |= ~usable.any(axis=1)
    determinant = np.linalg.slogdet(covariance)[1]
    score = prior - (misfit + determinant[:, None] + sizes * np.log(max(count, 2))) / 2 + chance
    weight = np.exp(np.where(usable, score, -np.inf) - score[usable].max())
    held = np.maximum(held, 0.0) * real / scale
    fitted = np.maximum(np.einsum("hnq,shq->shn", relative, held), LEAST)
    spread = spread / (scale[..., :, None] * scale[..., None, :])
    return _Fit(relative / fitted[..., None], inverse, -np.log(fitted), held, spread, weight / weight.sum())


def _cut_off(held: Array, covariance: Array) -> tuple[Array, Array, Array]:
    """Estimates (s, h, q) and covariances with the most doubtful coefficient of each kept above zero, and ln of the
    probability that it is; moments of the truncated normal distribution."""
    variance = np.maximum(np.einsum("shqq->shq", covariance), 1e-300)
    sure = np.where(variance > 1e-299, held / np.sqrt(variance), np.inf)
    at = sure.argmin(axis=2)[..., None]
    z, own = (np.take_along_axis(each, at, axis=2)[..., 0] for each in (sure, variance))
    below = np.isfinite(z) & (z < ENOUGH)
    z = np.where(below, z, 0.0)
    # The density over the probability above zero, from logarithms as both may vanish.
    ratio = np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - special.log_ndtr(z))
    moved = np.where(below, np.sqrt(own) * ratio, 0.0)
    kept = np.where(below, np.clip(1 - ratio * (ratio + z), 0.0, 1.0), 1.0)
    column = np.take_along_axis(covariance, at[..., None], axis=3)[..., 0]
    held = held + column * (moved / own)[..., None]
    covariance = covariance - (column[..., :, None] * column[..., None, :]) * ((1 - kept) / own)[..., None, None]
    return held, covariance, np.where(below, special.log_ndtr(z), 0.0)


def _design(terms: Array, members: Index, points: Array) -> Array:
    """Values (h, n, q) of the terms of each sum, zero where it has fewer."""
    table = np.concatenate([np.nan_to_num(values(terms, points)), np.zeros((1, len(points)))])
    return np.asarray(table[members].transpose(0, 2, 1))
