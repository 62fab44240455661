"""The terms of a search at the points of its series: listed, or products of one factor a parameter.

Both are products over axes: a list has one axis, whose factors are the terms themselves; products have an axis for each
parameter. Term ``sum_j d_j prod_(i<j) len_i`` has factor d_j of axis j. All questions are asked for arrays of term
numbers; -1 stands for no term and is answered like term 0, for callers to mask.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.records import dataclass
from ranksight.model.search.gridterms import GRID_TERMS
from ranksight.model.search.terms import GRID_ODDS, Factor, beyond_doubling, values

AHEAD = 8.0
"""How far out growth is looked at when it is judged: as far as small runs are usually extrapolated at once."""


@dataclass(frozen=True)
class _Axis:
    """Factors of w parameters at n points, scaled to at most one in size."""

    exponents: Array  # (f, w, 3): see :mod:`ranksight.model.search.terms`
    shape: Array  # (f, n)
    norm: Array  # (f,)
    usable: Mask  # (f,)
    order: Array  # (f,)
    ahead: Array  # (f, 1 + m)
    kinds: Index  # (f, w): a number for what each is of a parameter; zero for none
    grows: Index  # (f, w): the same of what grows
    powers: Array  # (f, w): NaN where there is a logarithm or a rate

    @classmethod
    def of(cls, exponents: Array, points: Array, corners: Array) -> _Axis:
        """Evaluate factors at points (n, w), and ahead at `corners` (1 + m, w)."""
        at = values(exponents, points)
        usable = np.isfinite(at).all(axis=1) & (np.abs(at).max(axis=1, initial=0.0) > 0)
        shape = np.where(usable[:, None], at, 0.0)
        norm = np.where(usable, np.abs(shape).max(axis=1, initial=0.0), 1.0)
        ahead = values(exponents, corners)
        # A parameter that counts doublings is as much larger where it has that many more of them.
        doubles = (exponents[..., 2] > 0).any(axis=1)
        most = corners[:1]
        ahead[doubles] = values(exponents[doubles], most + np.log2(AHEAD) * (corners > most))
        ahead /= norm[:, None]
        single, kind = np.unique(exponents.reshape(-1, 3), axis=0, return_inverse=True)
        kinds = np.where((single == 0).all(axis=1), 0, 1 + np.arange(len(single)))[kind.reshape(exponents.shape[:2])]
        grows = np.where(_rank(exponents) > 0, kinds, 0)
        powers = np.where((exponents[..., 1:] == 0).all(axis=-1), exponents[..., 0], np.nan)
        order = _rank(exponents).sum(axis=1)
        return cls(exponents, shape / norm[:, None], norm, usable, order, ahead, kinds, grows, powers)


@dataclass(frozen=True)
class Basis:
    """Terms at n points, scaled to at most one in size.

    `divisor` is the parameter that counts ranks, which divide work; None where that is not known and any may.
    """

    axes: tuple[_Axis, ...]
    divisor: int | None = None

    @classmethod
    def listed(cls, terms: Array, points: Array) -> Basis:
        """Terms (t, m, 3) given one by one, at points (n, m)."""
        return cls((_Axis.of(terms, points, _corners(points)),))

    @classmethod
    def products(
        cls, factors: tuple[Factor, ...], points: Array, divisor: int | None = None, grids: bool = False
    ) -> Basis:
        """Products of one factor a parameter at points (n, m); the first factor is one, so that term 0 is the constant.
        Those of process `grids` have a value along the ranks alone."""
        single, corners = np.array(factors, dtype=np.float64)[:, None, :], _corners(points)
        axes = tuple(_Axis.of(single, points[:, a : a + 1], corners[:, a : a + 1]) for a in range(points.shape[1]))
        for a, axis in enumerate(axes):
            if not grids or a != divisor:
                axis.usable[single[:, 0, 2] < 0] = False
        return cls(axes, divisor)

    def counting(self, points: Array, ranks: int | None) -> Basis:
        """The same without terms that double along a parameter that counts no doublings at points (n, m), as the one at
        `ranks` never does: it counts ranks."""
        each = [points] if len(self.axes) == 1 else [points[:, a : a + 1] for a in range(points.shape[1])]
        axes = []
        for a, (axis, x) in enumerate(zip(self.axes, each, strict=True)):
            doubles = (axis.exponents[..., 2] > 0).any(axis=1) if a == ranks else beyond_doubling(axis.exponents, x)
            axes.append(replace(axis, usable=axis.usable & ~doubles))
        return Basis(tuple(axes), self.divisor)

    def _each(self, terms: Index, of: Callable[[_Axis], NDArray[Any]]) -> list[NDArray[Any]]:
        """What `of` says of the factor that terms (...) have on each axis."""
        rest, factors = np.maximum(terms, 0), []
        for axis in self.axes:
            rest, digit = np.divmod(rest, len(axis.norm))
            factors.append(of(axis)[digit])
        return factors

    def _product(self, terms: Index, of: Callable[[_Axis], Array]) -> Array:
        first, *others = self._each(terms, of)
        for other in others:
            first = first * other
        return np.asarray(first)

    def shape(self, terms: Index) -> Array:
        """Terms (...) at the points (..., n), divided by their norms; zero for terms that have no value somewhere."""
        return self._product(terms, lambda axis: axis.shape)

    def norm(self, terms: Index) -> Array:
        """Largest size (...) of terms at the points."""
        return self._product(terms, lambda axis: axis.norm)

    def usable(self, terms: Index) -> Mask:
        """Whether terms (...) have a value everywhere and are not zero everywhere."""
        return np.asarray(np.all(self._each(terms, lambda axis: axis.usable), axis=0))

    def order(self, terms: Index) -> Array:
        """Rank (...) by growth when all parameters grow together, rate, then power, then logarithm; positive for terms
        that grow."""
        return np.asarray(np.sum(self._each(terms, lambda axis: axis.order), axis=0))

    def factors_of(self, terms: Index) -> Index:
        """Number of the factor that terms (...) have along each parameter (..., m); zero for none."""
        return np.concatenate(self._each(terms, lambda axis: axis.kinds), axis=-1)

    def grows(self, terms: Index) -> Index:
        """The same of factors that grow; zero for none and for decay."""
        return np.concatenate(self._each(terms, lambda axis: axis.grows), axis=-1)

    def powers(self, terms: Index) -> Array:
        """Powers (..., m) of terms; NaN where they have a logarithm or a rate."""
        return np.concatenate(self._each(terms, lambda axis: axis.powers), axis=-1)

    def ahead(self, terms: Index) -> Array:
        """Terms (...) at the largest values of all parameters, and with each of them :data:`AHEAD` times larger (...,
        1 + m), scaled as :meth:`shape`."""
        return self._product(terms, lambda axis: axis.ahead)

    def dimensions(self, terms: Index) -> Index:
        """Dimensions of the process grid that terms (...) are of; 0 for none."""
        return np.array([0, *(each.dimensions for each in GRID_TERMS)], dtype=np.intp)[self._numbers(terms)]

    def grid_odds(self, terms: Index) -> Array:
        """Logarithms of the odds of terms (...) of a process grid, 1, :data:`ranksight.model.search.terms.GRID_ODDS`;
        0 of others."""
        return np.array([0.0, *GRID_ODDS])[self._numbers(terms)]

    def _numbers(self, terms: Index) -> Index:
        """Number, from one, of the term of process grids that terms (...) are of; 0 for none."""
        listed, place = np.unique(np.maximum(terms, 0), return_inverse=True)
        number = np.maximum(-self.decode(listed)[:, :, 2], 0).max(axis=1).astype(np.intp)
        return np.asarray(np.where(number <= len(GRID_TERMS), number, 0)[place.reshape(terms.shape)])

    def on_grid(self, terms: Index) -> Mask:
        """Which terms (...) are of a process grid."""
        return self.dimensions(terms) > 0

    def decode(self, terms: Index) -> Array:
        """Terms (...) as exponents (..., m, 3), see :mod:`ranksight.model.search.terms`."""
        return np.concatenate(self._each(terms, lambda axis: axis.exponents), axis=-2)


def _rank(exponents: Array) -> Array:
    """Rank (...) of factors (..., 3) by growth: rate, then power, then logarithm."""
    return np.asarray(np.maximum(exponents[..., 2], 0.0) * 1e6 + exponents[..., 0] * 1e3 + exponents[..., 1])


def _corners(points: Array) -> Array:
    """The largest values of all parameters, and with each of them larger (1 + m, m)."""
    most = points.max(axis=0, initial=1.0) if len(points) else np.ones(points.shape[1])
    return np.concatenate([most[None], most[None] * (1 + (AHEAD - 1) * np.eye(len(most)))])
