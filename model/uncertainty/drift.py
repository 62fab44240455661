"""Drift: how far a program leaves its function per step of extrapolation, learned from its own largest configurations.

A function that holds in the measured range need not hold beyond it (caches, switches, contention). The largest value of
a parameter is left out, the rest is fitted again, and the density of what was measured there is computed with an
additional relative standard deviation ``tau ln(x / x_max)``. The law of tau over the series of a metric is estimated
by expectation maximisation on a grid (Robbins' empirical Bayes; Laird 1978, *Journal of the American Statistical
Association* 73, 805), and every series gets its posterior mean of tau.

What strays little from its function within the range strays little beyond it: tau is counted in multiples of each
series' own scatter around its functions, as the amplitude of a discrepancy is one inside and outside of the data
(Kennedy and O'Hagan 2001, *Journal of the Royal Statistical Society B* 63, 425).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ranksight.core.metrics import Kind
from ranksight.model.search.offer import Offer
from ranksight.model.search.prevalence import of, shifted
from ranksight.model.search.search import Found, evidence, keep
from ranksight.model.search.terms import values
from ranksight.model.series.noise import SMALLEST, Location, behaviours
from ranksight.model.series.poisson import HALF
from ranksight.model.uncertainty import prior
from ranksight.model.uncertainty.discrepancy import configuration_variance
from ranksight.model.uncertainty.forecast import components
from ranksight.model.uncertainty.lasting import LENGTHS, Lasting

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

GRID = np.array([0.0, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.45, 0.7, 1.0])
EXPECTED = 0.15
"""Scale of the law of tau before the data, for what is not deterministic, in exponents."""
COUNTED = 0.03
"""The same of what is deterministic: counts are exact, but their forms need not be."""
USUAL = 0.03
"""Scatter around functions, relative, with which series drift as expected."""
STEADIEST = 0.003
"""Scatter below which a series is not believed to keep to its function any better."""
JITTER = 1e-3
"""Scatter around functions, relative, from which on counts do not follow them."""
CHANCE = 2.0
"""Times the variance of samples up to which values are taken to scatter as samples do."""
PSEUDO = 20.0
"""Series that the law before the data counts for."""
LEAST_POINTS = 4


@dataclass(frozen=True)
class LeftOut:
    """What s series say of their largest values of a parameter, left out.

    Attributes
    ----------
    density : (s, g, l)
        Log-densities of these values for every tau of the grid, in units of the series' pace, and every length that
        departures last (:data:`ranksight.model.uncertainty.lasting.LENGTHS`); zero where none is left out.
    rows : (r,) intp
        Series of which some are.
    found : Found or None
        What the others of these r series were met by.
    missed : (s,)
        Mean logarithm of these values over what the others foretell; NaN where none is left out.
    """

    density: Array
    rows: NDArray[np.intp]
    found: Found | None
    missed: Array


def before(kind: Kind) -> Array:
    """Law of tau on the grid before the data: half-t with three degrees of freedom, a share of exact functions
    included."""
    scale = EXPECTED if kind in ("time", "other", "ratio", "state") else COUNTED
    step = np.gradient(GRID)
    law = step / (1 + (GRID / scale) ** 2) ** 2
    return np.asarray(law / law.sum())


def expected_drift(kind: Kind) -> float:
    """Drift before the data, per e-fold of a parameter (:func:`before`)."""
    return float(before(kind) @ GRID)


def pace(weight: Array, variance: Array, repeated: Mask, metrics: tuple[str, ...], samples: Array) -> Array:
    """How much faster than usual (s,) series leave their functions: as many times as they scatter around them more.

    What was never repeated scatters by its noise, which nothing tells from departures, or lies on its function by luck:
    it has the usual pace. So have counts that lie on their functions; those that do not follow no such law exactly, and
    drift up to as much as what is measured. What samples scatter by is no departure, up to twice its variance, and of
    counts that were sampled nothing is told.

    Parameters
    ----------
    weight, variance : (s, c)
        Of the hypotheses kept (:class:`ranksight.model.search.search.Found`).
    repeated : (s,) bool
    metrics : tuple of str
    samples : (s,)
        Behind the value of a configuration; infinite where there are none.
    """
    kinds = behaviours(metrics, samples)
    counted = kinds == "requirement"
    around = (weight * np.where(weight > 0, variance, 0.0)).sum(axis=1)
    scatter = np.sqrt(np.maximum(around - CHANCE / np.maximum(samples, HALF), 0.0))
    inexact = np.minimum(np.hypot(1.0, scatter / JITTER), EXPECTED / COUNTED)
    inexact = np.where(kinds == "sampled", 1.0, inexact)
    return np.where(
        counted | (kinds == "sampled"), inexact, np.where(repeated, np.hypot(STEADIEST, scatter) / USUAL, 1.0)
    )


def held_out(points: Array, present: Mask, axis: int) -> tuple[Mask, Array]:
    """Which points have a series' largest value of a parameter, and how far they lie beyond the next largest.

    Returns
    -------
    held : (s, n) bool
        All false for series that leave too little.
    distance : (s,)
        ``ln(largest / next largest)``.
    """
    x = points[:, axis]
    largest = np.where(present, x, -np.inf).max(axis=1, initial=-np.inf)
    held = present & (x[None, :] == largest[:, None])
    rest = present & ~held
    second = np.where(rest, x, -np.inf).max(axis=1, initial=-np.inf)
    # What is left must tell forms apart along this axis, or their ambiguity would be taken for drift.
    values = np.unique(x)
    left = (rest[:, :, None] & (x[:, None] == values[None, :])[None]).any(axis=1).sum(axis=1)
    least = LEAST_POINTS if points.shape[1] == 1 else LEAST_POINTS - 1
    use = (rest.sum(axis=1) >= LEAST_POINTS + points.shape[1] - 1) & (left >= least) & (second > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.where(use, np.log(largest / np.where(use, second, 1.0)), 0.0)
    return held & use[:, None], distance


def leave_out(
    space: Offer,
    points: Array,
    location: Location,
    positive: Mask,
    kind: Kind,
    v0: Array,
    d0: Array,
    shift: Array,
    axis: int,
    pace: Array,
) -> LeftOut:
    """Leave the largest values along a parameter out; `pace` (s,) is that of :func:`pace`."""
    held, distance = held_out(points, location.repeats > 0, axis)
    # What is zero has no logarithm to compare.
    held &= np.where(held, location.values, 0.0) > 0
    use = np.flatnonzero(held.any(axis=1) & positive)
    lengths = len(LENGTHS) if points.shape[1] == 1 else 1
    result = np.zeros((len(held), len(GRID), lengths))
    missed = np.full(len(held), np.nan)
    if not len(use):
        return LeftOut(result, use, None, missed)
    mine, held = location.part(use), held[use]
    rest = replace(mine, repeats=np.where(held, 0.0, mine.repeats))
    problem, screened = space.screen(points, rest, positive[use], kind)
    score = shifted(evidence(screened, problem.count, v0[use], d0[use]), of(shift, use))
    found = keep(problem, screened, score, v0[use], d0[use], kept=8)
    if not (found.members >= 0).any():
        return LeftOut(result, use, None, missed)
    log_y = np.log(np.where(held, mine.values, 1.0))
    total = np.zeros((len(use), len(GRID), lengths))
    apart = np.zeros(len(use))
    known = Lasting.of(points, rest, positive[use], found, configuration_variance(rest, kind))
    for n, length in itertools.product(np.flatnonzero(held.any(axis=0)), range(lengths)):
        rows = np.flatnonzero(held[:, n])
        lasting = replace(known, chance=np.broadcast_to(np.arange(len(LENGTHS)) == length, known.chance.shape) * 1.0)
        told = foretold(found, points[n : n + 1], positive[use], lasting if length else None)
        share, centre, spread, freedom = (part[:, rows, 0].T for part in told)
        if not length:
            with np.errstate(invalid="ignore", divide="ignore"):
                apart[rows] += log_y[rows, n] - (share * centre).sum(axis=1) / share.sum(axis=1)
        added = GRID[None, :] * (pace * distance)[use][rows, None]
        total[rows, :, length] += _log_density(log_y[rows, n], (share, centre, spread, freedom), added)
    # Values left out together share their drift: they count as one.
    count = np.maximum(held.sum(axis=1), 1)
    result[use], missed[use] = total / count[:, None, None], apart / count
    return LeftOut(result, use, found, missed)


def _log_density(y: Array, mixture: tuple[Array, Array, Array, Array], added: Array) -> Array:
    """Log-density (r, g) of y (r,) under mixtures of Student's t, each as much wider as `added` (r, g).

    `mixture` is share, centre, scale and freedom, (r, c) each.
    """
    share, centre, scale, freedom = (part[:, :, None] for part in mixture)
    wide = np.sqrt(np.maximum(scale, SMALLEST) ** 2 + added[:, None, :] ** 2)
    z = (y[:, None, None] - centre) / wide
    density = (
        gammaln((freedom + 1) / 2)
        - gammaln(freedom / 2)
        - np.log(freedom * np.pi) / 2
        - np.log(wide)
        - (freedom + 1) / 2 * np.log1p(z * z / freedom)
    )
    with np.errstate(divide="ignore"):
        density = density + np.log(share)
    peak = density.max(axis=1, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        together = peak + np.log(np.exp(density - peak).sum(axis=1, keepdims=True))
    return np.asarray(np.maximum(together[:, 0], -700.0))


def foretold(
    found: Found, points: Array, positive: Mask, lasting: Lasting | None = None
) -> tuple[Array, Array, Array, Array]:
    """Components (:func:`ranksight.model.uncertainty.forecast.components`) of what was found at `points`."""
    occurring = np.unique(found.members[found.members >= 0])
    terms = found.basis.decode(occurring)
    return components(
        values(terms, points),
        np.where(found.members >= 0, np.searchsorted(occurring, found.members), -1),
        weight=found.weight,
        coefficients=found.coefficients,
        root=found.root,
        variance=found.variance,
        freedom=found.freedom,
        positive=positive,
        carried=None if lasting is None else lasting.carried(values(terms, lasting.points), points),
    )


def learn(density: Array, kind: Kind, values: int) -> Array:
    """Law of tau on the grid, from log-densities (s, g) of the values left out.

    Where a parameter took too few values (`values`) for what is left to tell forms apart, all series miss by the same
    ambiguity: together they count as one.
    """
    return prior.learn(density, before(kind), PSEUDO, 1.0 if values <= LEAST_POINTS else None)


def posterior(density: Array, law: Array) -> Array:
    """Mean of tau (s,), over the series' pace, under the law and each series' own density."""
    return np.asarray(prior.posterior(density, law) @ GRID)
