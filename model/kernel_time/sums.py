"""Times as sums of few known forms, each of which adds and none of which takes away:

    T(p) = a + sum_j c_j g_j(p),   a, c_j >= 0

as messages (a constant, a volume, a tree) and the start of a program (a constant, a term a rank). Which terms are there
is a hypothesis. With errors known from repetitions, the least-squares estimate of each has a Gaussian distribution, and
hypotheses are averaged by the Bayesian information criterion (Kass and Raftery 1995, Journal of the American
Statistical Association 90, 773); one whose estimate has a negative coefficient is left out, as another without that
term is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.core import special
from ranksight.core.errors import InputError
from ranksight.model.kernel_time.rates import unseen
from ranksight.model.plaindata import reading
from ranksight.model.search.terms import ONE, Factor, Hypotheses, hypotheses, values

Array = NDArray[np.float64]
Term = tuple[Factor, ...]

ENOUGH = 3.0
"""Standard errors above zero from which on cutting off at zero changes nothing."""
SINGULAR = 1e-9
"""Smallest over largest eigenvalue of scaled normal equations below which terms repeat each other."""


def term(parameters: Sequence[str], factors: Mapping[str, Factor]) -> Term:
    """The product of the factors of some of the parameters."""
    return tuple(factors.get(name, ONE) for name in parameters)


def forms(parameters: Sequence[str], *groups: Sequence[Term]) -> Hypotheses:
    """A constant, alone and with at most one term of each group; all sums have equal priors."""
    constant = term(parameters, {})
    found = []
    for picked in product(*((None, *group) for group in groups)):
        found.append((constant, *(each for each in picked if each is not None)))
    return hypotheses(found, [0.0] * len(found))


@dataclass(frozen=True)
class Sums:
    """Sums of K series over m parameters, under h hypotheses of q terms at most.

    Attributes
    ----------
    space : Hypotheses
    points : (n, m)
        Measured.
    coefficient : (K, h, q)
        Zero where a hypothesis has fewer terms.
    covariance : (K, h, q, q)
    weight : (K, h)
    """

    space: Hypotheses
    points: Array
    coefficient: Array
    covariance: Array
    weight: Array

    def at(self, points: Array) -> tuple[Array, Array]:
        """Mean and standard deviation (K, k) at `points` (k, m), with what no run shows."""
        design = _design(self.space, points)
        centre = np.einsum("hkq,Khq->Khk", design, self.coefficient)
        spread = np.einsum("hkq,Khqr,hkr->Khk", design, self.covariance, design)
        mean = np.einsum("Kh,Khk->Kk", self.weight, centre)
        square = np.einsum("Kh,Khk->Kk", self.weight, (centre - mean[:, None]) ** 2 + spread)
        own = unseen(np.log(points), np.log(self.points))
        return mean, np.sqrt(square + (mean * own) ** 2)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {
            "terms": self.space.terms.tolist(),
            "members": self.space.members.tolist(),
            "points": self.points.tolist(),
            "coefficient": self.coefficient.tolist(),
            "covariance": self.covariance.tolist(),
            "weight": self.weight.tolist(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Sums:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        with reading("'sums'"):
            terms, points, coefficient, covariance, weight = (
                np.array(content[name], dtype=np.float64)
                for name in ("terms", "points", "coefficient", "covariance", "weight")
            )
            members = np.array(content["members"], dtype=np.intp)
        good = terms.ndim == 3 and terms.shape[2] == 3 and members.ndim == 2 and points.ndim == 2 and len(points) > 0
        good = good and points.shape[1] == terms.shape[1] and coefficient.shape == (len(weight), *members.shape)
        good = good and covariance.shape == (*coefficient.shape, members.shape[1]) and weight.ndim == 2
        good = good and weight.shape[1:] == members.shape[:1] and members.size > 0
        good = good and members.min() >= -1 and members.max() < len(terms) and bool((points > 0).all())
        if not good or not all(np.isfinite(each).all() for each in (terms, points, coefficient, covariance, weight)):
            raise InputError("'sums' does not fit together", "fit the model again")
        return cls(Hypotheses(terms, members, np.zeros(len(members))), points, coefficient, covariance, weight)


def fit_sums(space: Hypotheses, points: Array, measured: Array, error: Array) -> Sums:
    """Fit the sums of `space`.

    Parameters
    ----------
    points : (n, m)
        Above zero.
    measured : (K, n)
        NaN where there is none; every row has one.
    error : (K, n)
        Standard errors; where the best hypothesis misses by more, all of them are larger by as much.
    """
    design = _design(space, points)
    scale = np.abs(design).max(axis=1)
    scale = np.where(scale > 0, scale, 1.0)
    scaled = design / scale[:, None]
    known = np.isfinite(measured)
    precision = np.where(known, 1 / np.maximum(error, 1e-300) ** 2, 0.0)
    typical = precision.max(axis=1)[:, None, None]
    normal = np.einsum("hnq,Kn,hnr->Khqr", scaled, precision, scaled) / typical[..., None]
    padded = (space.members < 0)[:, :, None] & np.eye(space.members.shape[1], dtype=bool)
    normal = normal + padded
    goal = np.einsum("hnq,Kn->Khq", scaled, precision * np.where(known, measured, 0.0)) / typical
    size = np.linalg.eigvalsh(normal)
    usable = size[..., 0] > SINGULAR * size[..., -1]
    normal = np.where(usable[..., None, None], normal, np.eye(normal.shape[-1]))
    inverse = np.linalg.inv(normal)
    held = np.einsum("Khqr,Khr->Khq", inverse, goal)
    missed = np.where(known, measured, 0.0)[:, None] - np.einsum("hnq,Khq->Khn", scaled, held) * known[:, None]
    misfit = (missed**2 * precision[:, None]).sum(axis=2)
    count = known.sum(axis=1)[:, None]
    left = np.maximum(count - space.sizes, 1)
    usable &= count >= space.sizes
    larger = np.maximum(np.where(usable, misfit / left, np.inf).min(axis=1, keepdims=True), 1.0)
    larger = np.where(np.isfinite(larger), larger, 1.0)
    real = (space.members >= 0).astype(np.float64)
    covariance = inverse * larger[..., None, None] / typical[..., None] * (real[:, :, None] * real[:, None, :])
    held, covariance, chance = _cut_off(held, covariance)
    usable &= (held >= -SINGULAR).all(axis=2)
    usable[~usable.any(axis=1), int(np.argmin(space.sizes))] = True
    score = -misfit / (2 * larger) - space.sizes / 2 * np.log(np.maximum(count, 2)) + space.prior + chance
    score = np.where(usable, score, -np.inf)
    weight = np.exp(score - score.max(axis=1, keepdims=True))
    weight = weight / weight.sum(axis=1, keepdims=True)
    covariance = covariance / (scale[:, :, None] * scale[:, None, :])
    held = np.where(usable[..., None], np.maximum(held, 0.0), 0.0)
    return Sums(space, points, held * real / scale, covariance, weight)


def _cut_off(held: Array, covariance: Array) -> tuple[Array, Array, Array]:
    """Estimates (K, h, q) and covariances with the most doubtful coefficient of each kept above zero, and ln of the
    probability that it is; moments of the truncated normal distribution."""
    variance = np.maximum(np.einsum("Khqq->Khq", covariance), 1e-300)
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


def _design(space: Hypotheses, points: Array) -> Array:
    """Values (h, n, q) of the terms of each hypothesis, zero where it has fewer."""
    table = np.concatenate([np.nan_to_num(values(space.terms, points)), np.zeros((1, len(points)))])
    return np.asarray(table[space.members].transpose(0, 2, 1))
