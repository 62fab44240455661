"""The forecast of all series, with kernels' times by the mixture of their laws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ranksight.core.arrays import Array, Index, Mask
from ranksight.model.application.laws import Terms
from ranksight.model.resource.equation import Parts
from ranksight.model.uncertainty.forecast import Forecast


@dataclass(frozen=True)
class Refined:
    """The forecast of all series with times by the laws that predict them, and what these are made of."""

    said: Forecast
    parts: Parts | None = None  # of the kernels of :attr:`Application.resources`
    methods: tuple[tuple[Index, Mask, NDArray[np.object_], Mask], ...] = ()
    """tuple of ((r,) intp, (r, k) bool, (r, k) object, (r, k) bool): rows, the configurations at which laws predict
    them, those laws, and where a function of time comes first."""
    uneven: Array | None = None  # (k,)
    """What the busiest rank has of whole units of work over the mean, where times are means."""
    terms: Terms | None = None  # CPI, blocking factor and clock of the kernels that an equation describes
    split: Mapping[str, Mapping[str, Array]] | None = None
    """mapping of str to {kernel: (k,)}: seconds of each part of the kernels' times."""
    taken: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)
    """mapping of str to {kernel: (k,)}: what the law that predicts a kernel's time takes it to do
    (:meth:`ranksight.model.application.laws.Laws.taken`)."""
