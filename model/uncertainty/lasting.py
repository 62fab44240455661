"""Departures that last: how far beyond a value what its function missed is still missed.

No form is the truth, and what remains between function and values beyond their noise is a process of its own
(Kennedy and O'Hagan 2001, *Journal of the Royal Statistical Society B* 63, 425). In logarithms it is taken as a
Gaussian process over that of the one parameter,

    cov(r(x), r(x')) = v (q R(|ln x - ln x'|) + (1 - q) [x = x']),   R(d) = sum_l p_l exp(-d / L_l),

with v the variance around the function, q the part of it that noise does not explain, and R a mixture of
Ornstein-Uhlenbeck correlations of the lengths :data:`LENGTHS`, the first of which, zero, lasts nowhere. Each hypothesis
is carried on by the conditional mean of its own departures (Rasmussen and Williams, *Gaussian Processes for Machine
Learning*, 2006, eq. 2.25). Its variance is left as it is: what a few values tell of lengths is little. How likely each
length is, series tell together by what they say of their own largest values left out
(:mod:`ranksight.model.uncertainty.drift`). Of several parameters, whose grids tell functions by many values each,
nothing is carried on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from ranksight.core.errors import InputError
from ranksight.model.plaindata import from_gaps, reading, rounded, with_gaps
from ranksight.model.search.search import Found
from ranksight.model.series.noise import Location
from ranksight.model.uncertainty import prior
from ranksight.model.uncertainty.forecast import Carried

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

LENGTHS = np.array([0.0, 0.5, 1.0, 2.0, 4.0])
"""E-folds of the parameter."""
NOWHERE = 0.4
"""How likely departures are to last nowhere, before the data; all other lengths are as likely as each other."""
PSEUDO = 5.0
"""Series that this counts for."""
LEAST = 0.02
"""Part of the variance below which nothing is carried on."""


def before() -> Array:
    """How likely each length is before the data."""
    others = len(LENGTHS) - 1
    return np.array([NOWHERE, *[(1 - NOWHERE) / others] * others])


@dataclass(frozen=True)
class Lasting:
    """Departures of s series from their functions at n points.

    Attributes
    ----------
    points : (n, m)
    logs : (s, n)
        Logarithms of the values; NaN where there is none.
    part : (s,)
        Part of the variance around the function that noise does not explain; zero where nothing is carried on.
    chance : (s, l)
        How likely departures last so long (:data:`LENGTHS`).
    axis : (s,) intp
        The parameter that was varied.
    ended : (s,)
        How likely growth ended before the last value (:mod:`ranksight.model.uncertainty.late`).
    full : (s,)
        How likely times have hit a ceiling (:mod:`ranksight.model.uncertainty.ceiling`).
    """

    points: Array
    logs: Array
    part: Array
    chance: Array
    axis: NDArray[np.intp]
    ended: Array
    full: Array

    @classmethod
    def of(cls, points: Array, location: Location, positive: Mask, found: Found, noise: Array) -> Lasting:
        """What is known before any length is; `noise` (s,) is the variance of values from noise alone."""
        use = (location.repeats > 0) & positive[:, None] & (points[:, 0] > 0)
        # What is zero somewhere has no logarithm there, and what it has elsewhere tells too little.
        use &= (np.where(use, location.values, 1.0) > 0).all(axis=1, keepdims=True)
        logs = np.log(np.where(use, location.values, np.nan))
        around = (found.weight * np.where(found.weight > 0, found.variance, 0.0)).sum(axis=1)
        good = np.isfinite(around) & (around > 0)
        part = np.clip(1 - noise / np.where(good, around, 1.0), 0.0, 1.0)
        part = np.where(good, np.where(np.isnan(location.variance), 1.0, part), 0.0)
        _, chance, axis, ended, full = _nothing(len(logs))
        return cls(points, logs, part, chance, axis, ended, full)

    @classmethod
    def join(cls, parts: Sequence[Lasting | None], sizes: Sequence[int], order: NDArray[np.intp]) -> Lasting | None:
        """Series of several, of so many each, in another order; of those that are None nothing is carried on."""
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
        given = [
            part or cls(points, logs[at], *_nothing(size))
            for at, (part, size) in enumerate(zip(parts, sizes, strict=True))
        ]
        rest = (np.concatenate([getattr(each, name) for each in given])[order] for name in _BY_SERIES)
        return cls(points, np.concatenate(logs)[order], *rest)

    def select(self, rows: NDArray[np.intp]) -> Lasting:
        """The same of some series."""
        return Lasting(self.points, self.logs[rows], *(getattr(self, name)[rows] for name in _BY_SERIES))

    def told(self, density: Array, drift: Array, law: Array | None) -> tuple[Lasting, Array, Array]:
        """How long departures last, told by values left out.

        Parameters
        ----------
        density : (s, g, l)
            Their log-densities for each drift and length, all zero where none was left out.
        drift : (g,)
            Law of drift before the data.
        law : (l,), optional
            How likely the lengths are, where the first batch of series told it already.

        Returns
        -------
        Lasting, law (l,), and log-densities (s, g) for each drift
        """
        some = np.asarray(density.any(axis=(1, 2)))[:, None]
        by_length = some * logsumexp(density, axis=1, b=drift[:, None])
        law = learn(by_length) if law is None else law
        return replace(self, chance=prior.posterior(by_length, law)), law, some * logsumexp(density, axis=2, b=law)

    def carried(self, at: Array, points: Array) -> Carried | None:
        """What goes on at `points` (k, m); `at` (t, n) are the terms at the points of the values."""
        known = np.isfinite(self.logs)
        rows = np.flatnonzero((self.part > LEAST) & known.any(axis=1))
        if not len(rows):
            return None
        here, known = self.select(rows), known[rows]
        among = np.where(known[:, :, None] & known[:, None, :], here._alike(self.points), 0.0)
        diagonal = np.arange(len(self.points))
        among[:, diagonal, diagonal] = 1.0
        across = np.where(known[:, None, :], here._alike(points), 0.0)
        return Carried(at, self.logs, rows, among, np.swapaxes(across, 1, 2))

    def _alike(self, points: Array) -> Array:
        """Correlation (s, k, n) of the departures at `points` with those known."""
        found = np.zeros((len(self.part), len(points), len(self.points)))
        for axis in np.unique(self.axis):
            with np.errstate(divide="ignore", invalid="ignore"):
                apart = np.abs(np.log(points[:, axis, None]) - np.log(self.points[:, axis]))
            apart = np.where(np.isfinite(apart), apart, np.inf)
            each = np.exp(-apart / np.maximum(LENGTHS, 1e-9)[:, None, None])
            rows = self.axis == axis
            found[rows] = self.part[rows, None, None] * np.tensordot(self.chance[rows], each, axes=1)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {
            "points": self.points.tolist(),
            "logs": with_gaps(rounded(self.logs, 13)),
            "part": rounded(self.part, 9).tolist(),
            "chance": rounded(self.chance, 9).tolist(),
            "axis": self.axis.tolist(),
            "ended": rounded(self.ended, 9).tolist(),
            "full": rounded(self.full, 9).tolist(),
        }

    @classmethod
    def from_dict(cls, content: Any, series: int, parameters: int) -> Lasting:
        """Rebuild from :meth:`to_dict`, for so many series; damaged content raises InputError."""
        with reading("'lasting'"):
            points, part, chance, ended, full = (
                np.array(content[name], dtype=np.float64) for name in ("points", "part", "chance", "ended", "full")
            )
            logs = from_gaps(content["logs"])
            if not series:
                logs, chance = logs.reshape(0, len(points)), chance.reshape(0, len(LENGTHS))
            axis = np.array(content["axis"], dtype=np.float64)
        if (
            points.ndim != 2
            or points.shape[1] != parameters
            or not np.isfinite(points).all()
            or logs.shape != (series, len(points))
            or np.isinf(logs).any()
            or chance.shape != (series, len(LENGTHS))
            or any(each.shape != (series,) or not ((each >= 0) & (each <= 1)).all() for each in (part, ended, full))
            or not ((chance >= 0) & (chance <= 1)).all()
            or not (chance.sum(axis=1) <= 1 + 1e-6).all()
            or axis.shape != (series,)
            or not np.isin(axis, np.arange(parameters)).all()
        ):
            raise InputError("'lasting' does not fit together", "fit the model again")
        return cls(points, logs, part, chance, axis.astype(np.intp), ended, full)


_BY_SERIES = ("part", "chance", "axis", "ended", "full")


def _nothing(series: int) -> tuple[Array, Array, NDArray[np.intp], Array, Array]:
    """What is known of series of which nothing is carried on, in the order of :data:`_BY_SERIES`."""
    none = np.zeros(series)
    return none, np.tile(before(), (series, 1)), np.zeros(series, dtype=np.intp), none, none


def learn(density: Array) -> Array:
    """How likely each length is (l,), from log-densities (s, l) of values left out; zero where none was."""
    return prior.learn(density, before(), PSEUDO)
