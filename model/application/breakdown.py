"""What is predicted of a program: its series, and what its time is made of, part by part and kernel by kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ranksight.core.arrays import Array, Index, Mask
from ranksight.model.application.equation_terms import NO_TERMS, Terms
from ranksight.model.application.exchanged import Exchanged
from ranksight.model.resource.equation import LEVELS
from ranksight.model.uncertainty.forecast import NO_ROWS, Forecast

PARTS = ("execution", *LEVELS, "contention", "direct", "imbalance", "communication")
"""What an application's time is made of; ``contention`` is what sharing the bandwidth of memory or a cache adds,
``direct`` the time of kernels that have no counters, and what grows with the ranks in addition to such a law."""


@dataclass(frozen=True)
class Refined:
    """The forecast of all series with times by the laws that predict them, and what these are made of."""

    said: Forecast
    uneven: Array  # (k,)
    """What the busiest rank has of whole units of work over the mean, where times are means; 1 elsewhere."""
    methods: tuple[tuple[Index, Mask, NDArray[np.object_], Mask], ...] = ()
    """tuple of ((r,) intp, (r, k) bool, (r, k) object, (r, k) bool): rows, the configurations at which laws predict
    them, those laws, and where a function of time comes first."""
    terms: Terms = NO_TERMS  # CPI, blocking factor and clock of the kernels that an equation describes
    split: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)
    """mapping of str to {kernel: (k,)}: seconds of each part of the kernels' times."""
    taken: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)
    """mapping of str to {kernel: (k,)}: what the law that predicts a kernel's time takes it to do, NaN where it does
    not say: metrics, and the part of the time that its memory domain is at work
    (:data:`ranksight.model.laws.together.BUSY`)."""
    sums: Mapping[tuple[str, str], Forecast] = field(default_factory=dict)
    """Of each kernel and metric of messages, the sum of its operations' functions, one row each."""
    remarks: tuple[str, ...] = ()  # what is to be said of totals that differ from the sums of their parts


@dataclass(frozen=True)
class Breakdown:
    """Time of the whole application at k configurations, and what it is made of."""

    total: Forecast  # one row
    kernels: tuple[str, ...]  # all K kernels that have a time, then those that only send messages
    each: Mapping[str, Array]
    """mapping of str to (K, k): seconds per rank of each of :data:`PARTS` in each kernel; a kernel that calls MPI holds
    its messages' time."""
    busiest: Array  # (k,): what the slowest rank takes over the sum of the kernels' times, as these were measured
    terms: Terms = NO_TERMS  # CPI, blocking factor and clock of the kernels that an equation describes
    others: Forecast = NO_ROWS  # seconds outside of all kernels and messages, one row where they are known
    exchanged: Exchanged | None = None  # times of operations and BF_comm; None where no network is described
    taken: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)
    """As of :class:`Refined`."""

    def at(self, level: float) -> Breakdown:
        """The same with central intervals of probability `level`."""
        exchanged = self.exchanged
        return replace(
            self,
            total=self.total.at(level),
            terms=self.terms.at(level),
            others=self.others.at(level),
            exchanged=None if exchanged is None else exchanged.at(level),
        )

    @property
    def parts(self) -> dict[str, Array]:
        """Seconds of each of :data:`PARTS` over all kernels, and of ``others``, each (k,)."""
        seconds = {name: values.sum(axis=0) for name, values in self.each.items()}
        seconds["others"] = np.zeros_like(self.total.value[0]) + self.others.value.sum(axis=0)
        return seconds

    @property
    def computing(self) -> Array:
        """Seconds of the program without imbalance and communication, (k,)."""
        parts = self.parts
        return np.asarray(self.total.value[0] - parts["imbalance"] - parts["communication"])

    @property
    def by_kernel(self) -> Array:
        """Seconds of each kernel with all its parts, (K, k)."""
        return np.asarray(sum(self.each.values()), dtype=np.float64)
