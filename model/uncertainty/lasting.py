"""Correlated residuals: how far beyond a value what its function missed is still missed.

No form is the truth, and what remains between function and values beyond their noise is a process of its own
(Kennedy and O'Hagan 2001, *Journal of the Royal Statistical Society B* 63, 425). In logarithms it is a Gaussian process
over that of the one parameter,

    cov(r(x), r(x')) = v (q R(|ln x - ln x'|) + (1 - q) [x = x']),   R(d) = exp(-d / L),

with L :data:`ranksight.model.priors.CORRELATION_LENGTH`, v the variance around the function and q
the part of it that noise does not explain. Each hypothesis goes on by the conditional mean of its own residuals
(Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 2006, eq. 2.25). Its variance is left as it is: what
a few values say of lengths is little. Functions of several parameters, whose grids have many values each, have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.model import priors
from ranksight.model.plaindata import Stored
from ranksight.model.search.screening import Found
from ranksight.model.series.noise import Location
from ranksight.model.uncertainty.forecast import Carried

LEAST = 0.02
"""Part of the variance below which residuals are noise."""


@dataclass(frozen=True)
class Lasting(Stored):
    """Correlated residuals of s series at n points."""

    points: Array  # (n, m)
    logs: Array  # (s, n): logarithms of the values; NaN where there is none
    part: Array  # (s,)
    """Part of the variance around the function that noise does not explain; zero where residuals are noise."""
    axis: Index  # (s,): the parameter that was varied

    @classmethod
    def of(cls, points: Array, location: Location, positive: Mask, forms: Found, noise: Array) -> Lasting:
        """Residuals of the hypotheses found; `noise` (s,) is the variance of values from noise alone."""
        use = (location.repeats > 0) & positive[:, None] & (points[:, 0] > 0)
        # What is zero somewhere has no logarithm there, and what it has elsewhere says too little.
        use &= (np.where(use, location.values, 1.0) > 0).all(axis=1, keepdims=True)
        logs = np.log(np.where(use, location.values, np.nan))
        around = forms.around
        good = np.isfinite(around) & (around > 0)
        part = np.clip(1 - noise / np.where(good, around, 1.0), 0.0, 1.0)
        part = np.where(good, np.where(np.isnan(location.variance), 1.0, part), 0.0)
        return cls(points, logs, part, np.zeros(len(logs), dtype=np.intp))

    @classmethod
    def join(cls, parts: Sequence[Lasting | None], sizes: Sequence[int], order: Index) -> Lasting | None:
        """Series of several, of so many each, in another order; those that are None have no correlated residuals."""
        some = [part for part in parts if part is not None]
        if not some:
            return None
        points, places = np.unique(np.concatenate([part.points for part in some]), axis=0, return_inverse=True)
        place = iter(np.split(places.reshape(-1), np.cumsum([len(part.points) for part in some])[:-1]))
        logs = []
        for part, size in zip(parts, sizes, strict=True):
            logs.append(np.full((size, len(points)), np.nan))
            if part is not None:
                logs[-1][:, next(place)] = part.logs
        present = [
            part or cls(points, logs[at], np.zeros(size), np.zeros(size, dtype=np.intp))
            for at, (part, size) in enumerate(zip(parts, sizes, strict=True))
        ]
        rest = (np.concatenate([getattr(each, name) for each in present])[order] for name in ("part", "axis"))
        return cls(points, np.concatenate(logs)[order], *rest)

    def select(self, rows: Index) -> Lasting:
        """The same of some series."""
        return Lasting(self.points, self.logs[rows], self.part[rows], self.axis[rows])

    def carried(self, at: Array, points: Array) -> Carried | None:
        """What goes on at `points` (k, m); `at` (t, n) are the terms at the points of the values."""
        known = np.isfinite(self.logs)
        rows = np.flatnonzero((self.part > LEAST) & known.any(axis=1))
        if not len(rows):
            return None
        lasting, known = self.select(rows), known[rows]
        among = np.where(known[:, :, None] & known[:, None, :], lasting._correlation(self.points), 0.0)
        diagonal = np.arange(len(self.points))
        among[:, diagonal, diagonal] = 1.0
        across = np.where(known[:, None, :], lasting._correlation(points), 0.0)
        return Carried(at, self.logs, rows, among, np.swapaxes(across, 1, 2))

    def _correlation(self, points: Array) -> Array:
        """Correlation (s, k, n) of the residuals at `points` with those known."""
        correlation = np.zeros((len(self.part), len(points), len(self.points)))
        for axis in np.unique(self.axis):
            with np.errstate(divide="ignore", invalid="ignore"):
                distance = np.abs(np.log(points[:, axis, None]) - np.log(self.points[:, axis]))
            distance = np.where(np.isfinite(distance), distance, np.inf)
            rows = self.axis == axis
            each = priors.CORRELATED * np.exp(-distance / priors.CORRELATION_LENGTH)
            correlation[rows] = self.part[rows, None, None] * each
        return correlation

    def _fits(self) -> bool:
        s, n = len(self.part), len(self.points)
        return (
            self.points.ndim == 2
            and bool(np.isfinite(self.points).all())
            and self.logs.shape in ((s, n), (0,))
            and not np.isinf(self.logs).any()
            and bool(((self.part >= 0) & (self.part <= 1)).all())
            and self.axis.shape == self.part.shape == (s,)
        )

    def of_series(self, series: int, parameters: int) -> bool:
        """Whether it is of so many series over so many parameters."""
        known = np.isin(self.axis, np.arange(parameters)).all()
        return len(self.part) == series and self.points.shape[1] == parameters and bool(known)
