"""The forecast of all series, with those equations in it that carry some better than their functions do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ranksight.model.resource.resource import Parts
from ranksight.model.sharing.shared import Shared, Sharing
from ranksight.model.structure.functions import choose, rows_of
from ranksight.model.uncertainty.forecast import Forecast

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]
Better = Callable[[Forecast, Index, Index], Mask]
"""Where (r, k) a forecast is better than what the series are said to be: given that forecast, the rows of the series
and its own rows among the kernels of the equation, each (r,)."""


@dataclass(frozen=True)
class Refined:
    """The forecast of all series with times by the equations that carry them, and what these were made of.

    Attributes
    ----------
    said : Forecast
    parts : Parts or None
        Of the kernels of :attr:`Application.resources`.
    shared : tuple of (Sharing, Shared)
        Of the kernels of :attr:`Application.laws`.
    carried : tuple of ((r,) intp, (r, k) bool, r str)
        Rows, the configurations at which an equation gives them, and that equation's evidence.
    uneven : (k,) or None
        What the fullest rank has of whole units of work over the mean, where times are means.
    """

    said: Forecast
    parts: Parts | None = None
    shared: tuple[tuple[Sharing, Shared], ...] = ()
    carried: tuple[tuple[Index, Mask, tuple[str, ...]], ...] = ()
    uneven: Array | None = None


@dataclass
class Refining:
    """The forecast of all series while equations are taken into it, one after the other.

    Attributes
    ----------
    said : Forecast
        Of all series, as far as it has come.
    rows : mapping of (kernel, metric) to int
    carried
        See :class:`Refined`.
    """

    said: Forecast
    rows: Mapping[tuple[str, str], int]
    carried: list[tuple[Index, Mask, tuple[str, ...]]] = field(default_factory=list)

    def take(
        self, given: Forecast, kernels: tuple[str, ...], name: str, evidence: tuple[str, ...], better: Better
    ) -> None:
        """Take an equation's forecast of one metric, a row a kernel, where it is better."""
        mine = np.array([i for i, kernel in enumerate(kernels) if (kernel, name) in self.rows], dtype=np.intp)
        if not len(mine):
            return
        index = np.array([self.rows[kernels[i], name] for i in mine], dtype=np.intp)
        picked = rows_of(given, mine)
        where = better(picked, index, mine)
        self.said = choose(self.said, picked, index, where)
        self.carried.append((index, where, tuple(evidence[i] for i in mine)))
