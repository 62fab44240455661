"""The terms of a search at the points of its series: listed, or products of one factor an axis.

Both answer for arrays of term numbers; -1 stands for no term and is answered like term 0, for callers to mask.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ranksight.model.terms import Factor, values

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]


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
        """What terms (...) do along each axis (..., m): a number for each growing factor, zero for none and for decay."""
        ...

    def decode(self, terms: Index) -> Array:
        """Terms (t,) as exponents (t, m, 3), see :mod:`ranksight.model.terms`."""
        ...


def _rank(terms: Array) -> Array:
    """Rank (t,) of terms (t, m, 3): rate, then power, then logarithm."""
    total = terms.sum(axis=1)
    return np.asarray(total[:, 2] * 1e6 + total[:, 0] * 1e3 + total[:, 1])


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

    @classmethod
    def of(cls, terms: Array, points: Array) -> Listing:
        """Evaluate terms at points (n, m)."""
        factors, number = np.unique(terms.reshape(-1, 3), axis=0, return_inverse=True)
        grows = (_rank(factors[:, None, :]) > 0) * (1.0 + np.arange(len(factors)))
        return cls(terms, *_scaled(terms, points), _rank(terms), grows[number.reshape(terms.shape[:2])])

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

    def decode(self, terms: Index) -> Array:
        """See :class:`Basis`."""
        return np.asarray(self.terms[terms])


@dataclass(frozen=True)
class Products:
    """Products of one factor an axis: number ``sum_j f_j len(factors)^j`` has factor f_j on axis j.

    The first factor is one, so that number 0 is the constant.
    """

    factors: tuple[Factor, ...]
    parameters: int
    _shape: Array
    _norm: Array
    _usable: Mask
    _order: Array

    @classmethod
    def of(cls, factors: tuple[Factor, ...], points: Array) -> Products:
        """Evaluate factors on every axis of points (n, m)."""
        m = points.shape[1]
        single = np.array(factors, dtype=np.float64)[:, None, :]
        parts = [_scaled(single, points[:, axis : axis + 1]) for axis in range(m)]
        shape, norm, usable = (np.stack([part[at] for part in parts]) for at in range(3))
        return cls(factors, m, shape, norm, usable, _rank(single))

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

    def axes(self, terms: Index) -> Index:
        """Number of axes (...) on which terms have a factor other than one."""
        return np.asarray(np.sum([d > 0 for d in self.digits(terms)], axis=0))

    def decode(self, terms: Index) -> Array:
        """See :class:`Basis`."""
        every = np.array(self.factors, dtype=np.float64)
        return np.stack([every[d] for d in self.digits(terms)], axis=1)
