"""The terms of a search at the points of its series: listed, or products of one factor an axis.

Both answer for arrays of term numbers; -1 stands for no term and is answered like term 0, for callers to mask.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.model.search.terms import Factor, values


class Basis(Protocol):
    """Terms at n points, scaled to at most one in size."""

    def shape(self, terms: Index) -> Array:
        """Terms (...) at the points (..., n), divided by their norms; zero for terms that have no value somewhere."""
        ...

    def norm(self, terms: Index) -> Array:
        """Largest size (...) of terms at the points."""
        ...

    def usable(self, terms: Index) -> Mask:
        """Whether terms (...) have a value everywhere and are not zero everywhere."""
        ...

    def order(self, terms: Index) -> Array:
        """Rank (...) by growth when all parameters grow together; positive for terms that grow."""
        ...

    def grows(self, terms: Index) -> Array:
        """What terms (...) do along each axis (..., m): a number for each growing factor, zero for none and for
        decay."""
        ...

    def factors_of(self, terms: Index) -> Index:
        """Number of the factor that terms (...) have along each axis (..., m); zero for none."""
        ...

    def ahead(self, terms: Index) -> Array:
        """Terms (...) at the largest values of all parameters, and with each of them :data:`AHEAD` times larger (...,
        1 + m).

        Scaled as :meth:`shape`.
        """
        ...

    def axes(self, terms: Index) -> Index:
        """Number of axes (...) on which terms have a factor."""
        ...

    def decode(self, terms: Index) -> Array:
        """Terms (t,) as exponents (t, m, 3), see :mod:`ranksight.model.search.terms`."""
        ...


AHEAD = 8.0
"""How far out growth is looked at when it is judged: as far as small runs are usually extrapolated at once."""


def _corners(points: Array) -> Array:
    """The largest values of all parameters, and with each of them larger (1 + m, m)."""
    most = points.max(axis=0, initial=1.0) if len(points) else np.ones(points.shape[1])
    return np.concatenate([most[None], most[None] * (1 + (AHEAD - 1) * np.eye(len(most)))])


def _rank(terms: Array) -> Array:
    """Rank (t,) of terms (t, m, 3): rate, then power, then logarithm."""
    total = terms.sum(axis=1)
    rate = np.maximum(terms[:, :, 2], 0.0).sum(axis=1)
    return np.asarray(rate * 1e6 + total[:, 0] * 1e3 + total[:, 1])


def _scaled(terms: Array, points: Array) -> tuple[Array, Array, Mask]:
    at = values(terms, points)
    usable = np.isfinite(at).all(axis=1) & (np.abs(at).max(axis=1, initial=0.0) > 0)
    shape = np.where(usable[:, None], at, 0.0)
    norm = np.where(usable, np.abs(shape).max(axis=1, initial=0.0), 1.0)
    return shape / norm[:, None], norm, usable


@dataclass(frozen=True)
class Listing:
    """Terms (t, m, 3) given one by one."""

    terms: Array
    _shape: Array
    _norm: Array
    _usable: Mask
    _order: Array
    _grows: Array
    _factors: Index
    _ahead: Array

    @classmethod
    def of(cls, terms: Array, points: Array) -> Listing:
        """Evaluate terms at points (n, m)."""
        factors, number = np.unique(terms.reshape(-1, 3), axis=0, return_inverse=True)
        grows = (_rank(factors[:, None, :]) > 0) * (1.0 + np.arange(len(factors)))
        number = number.reshape(terms.shape[:2])
        none = np.flatnonzero((factors == 0).all(axis=1))
        codes = np.where(np.isin(number, none), 0, number + 1)
        shape, norm, usable = _scaled(terms, points)
        ahead = values(terms, _corners(points)) / norm[:, None]
        if (terms[..., 2] > 0).any():
            # Who asks for exponentials expects growth that no range shows.
            ahead[:] = np.nan
        return cls(terms, shape, norm, usable, _rank(terms), grows[number], codes, ahead)

    def shape(self, terms: Index) -> Array:
        """See :class:`Basis`."""
        return np.asarray(self._shape[terms])

    def norm(self, terms: Index) -> Array:
        """See :class:`Basis`."""
        return np.asarray(self._norm[terms])

    def usable(self, terms: Index) -> Mask:
        """See :class:`Basis`."""
        return np.asarray(self._usable[terms])

    def order(self, terms: Index) -> Array:
        """See :class:`Basis`."""
        return np.asarray(self._order[terms])

    def grows(self, terms: Index) -> Array:
        """See :class:`Basis`."""
        return np.asarray(self._grows[terms])

    def factors_of(self, terms: Index) -> Index:
        """See :class:`Basis`."""
        return np.asarray(self._factors[terms])

    def ahead(self, terms: Index) -> Array:
        """See :class:`Basis`."""
        return np.asarray(self._ahead[terms])

    def axes(self, terms: Index) -> Index:
        """See :class:`Basis`."""
        return np.asarray((self._factors[terms] > 0).sum(axis=-1))

    def decode(self, terms: Index) -> Array:
        """See :class:`Basis`."""
        return np.asarray(self.terms[terms])


@dataclass(frozen=True)
class Products:
    """Products of one factor an axis: number ``sum_j f_j len(factors)^j`` has factor f_j on axis j.

    The first factor is one, so that number 0 is the constant. `divisor` is the axis of the ranks, which divide work;
    None where that is not known and any may.
    """

    factors: tuple[Factor, ...]
    parameters: int
    _shape: Array
    _norm: Array
    _usable: Mask
    _order: Array
    _ahead: Array
    divisor: int | None = None

    @classmethod
    def of(
        cls, factors: tuple[Factor, ...], points: Array, divisor: int | None = None, grids: bool = False
    ) -> Products:
        """Evaluate factors on every axis of points (n, m); those of process `grids` have a value along the ranks
        alone."""
        m = points.shape[1]
        single = np.array(factors, dtype=np.float64)[:, None, :]
        parts = [_scaled(single, points[:, axis : axis + 1]) for axis in range(m)]
        shape, norm = np.stack([part[0] for part in parts]), np.stack([part[1] for part in parts])
        usable = np.stack([part[2] for part in parts])
        aside = np.array([not grids or axis != divisor for axis in range(m)])
        usable &= ~(aside[:, None] & (single[:, 0, 2] < 0)[None, :])
        corners = _corners(points)
        ahead = np.stack([values(single, corners[:, axis : axis + 1]) for axis in range(m)]) / norm[:, :, None]
        return cls(factors, m, shape, norm, usable, _rank(single), ahead, divisor)

    def digits(self, terms: Index) -> list[Index]:
        """Factor of each axis of terms (...)."""
        rest, found = np.maximum(terms, 0), []
        for _ in range(self.parameters):
            rest, digit = np.divmod(rest, len(self.factors))
            found.append(digit)
        return found

    def shape(self, terms: Index) -> Array:
        """See :class:`Basis`."""
        result: Array | None = None
        for axis, digit in enumerate(self.digits(terms)):
            here = self._shape[axis][digit]
            result = here if result is None else result * here
        assert result is not None
        return result

    def norm(self, terms: Index) -> Array:
        """See :class:`Basis`."""
        return np.asarray(np.prod([self._norm[a][d] for a, d in enumerate(self.digits(terms))], axis=0))

    def usable(self, terms: Index) -> Mask:
        """See :class:`Basis`."""
        return np.asarray(np.all([self._usable[a][d] for a, d in enumerate(self.digits(terms))], axis=0))

    def order(self, terms: Index) -> Array:
        """See :class:`Basis`."""
        return np.asarray(np.sum([self._order[d] for d in self.digits(terms)], axis=0))

    def grows(self, terms: Index) -> Array:
        """See :class:`Basis`."""
        number = (self._order > 0) * np.arange(len(self.factors), dtype=np.float64)
        return np.stack([number[d] for d in self.digits(terms)], axis=-1)

    def factors_of(self, terms: Index) -> Index:
        """See :class:`Basis`."""
        return np.stack(self.digits(terms), axis=-1)

    def ahead(self, terms: Index) -> Array:
        """See :class:`Basis`."""
        return np.asarray(np.prod([self._ahead[a][d] for a, d in enumerate(self.digits(terms))], axis=0))

    def axes(self, terms: Index) -> Index:
        """See :class:`Basis`."""
        return np.asarray(np.sum([d > 0 for d in self.digits(terms)], axis=0))

    def decode(self, terms: Index) -> Array:
        """See :class:`Basis`."""
        every = np.array(self.factors, dtype=np.float64)
        return np.stack([every[d] for d in self.digits(terms)], axis=1)
