"""The application's time from its phases.

    PET(p) = sum over phases of  TE_i(p) W_i(p),    TE_i = computation + communication of one occurrence

Calls that belong to no phase that repeats count with weight one, so that the sum holds the whole run.

Source: Panadero et al. 2015, equation 4.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from ranksight.analysis.phases.messages import Messages
from ranksight.analysis.phases.power import Power
from ranksight.analysis.phases.weights import RULES, Weight, admits
from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass
from ranksight.model.plaindata import Stored


@dataclass(frozen=True)
class PhaseTime(Stored):
    """Time of a phase at any rank count."""

    number: int  # from 1, in order of occurrence
    label: str
    weight: Weight
    powers: tuple[Power, ...]  # seconds of computation of each group of ranks; the longest counts
    communication: tuple[float, float]  # ``c_1 + c_2 log2 p`` seconds in MPI; NaN where they are not known
    distant: float = 0.0  # largest rank count that a distant point stands for; 0 without one

    def computation(self, ranks: ArrayLike) -> Array:
        """Seconds of computation of one occurrence."""
        return np.asarray(np.max([power.at(ranks) for power in self.powers], axis=0))

    def interval(self, ranks: ArrayLike, level: float) -> tuple[Array, Array]:
        """Interval of :meth:`computation`; NaN where two rank counts define it."""
        intervals = [power.interval(ranks, level) for power in self.powers]
        return np.max([low for low, _ in intervals], axis=0), np.max([high for _, high in intervals], axis=0)

    def waiting(self, ranks: ArrayLike) -> Array:
        """Seconds in MPI of one occurrence."""
        start, each = self.communication
        return np.asarray(start + each * np.log2(np.asarray(ranks, dtype=np.float64)))

    def _fits(self) -> bool:
        return bool(self.powers)


@dataclass(frozen=True)
class Times:
    """PET at k rank counts."""

    ranks: Array  # (k,)
    computation: Array  # (n, k): seconds of each phase in the whole run
    communication: Array  # (n, k)
    lower: Array  # (k,): interval of the sum, phases erring together; NaN where two rank counts define a phase
    upper: Array  # (k,)

    @property
    def total(self) -> Array:
        """PET, (k,); communication that is not known is left out."""
        return np.asarray(self.computation.sum(axis=0) + np.nan_to_num(self.communication).sum(axis=0))


@dataclass(frozen=True)
class Pet(Stored):
    """A program's phases as far as predictions need them."""

    workload: Mapping[str, float]  # parameters other than the ranks, and the values to which it applies
    measured: tuple[float, ...]  # rank counts
    phases: tuple[PhaseTime, ...]
    clock: str  # ``measured`` or ``simulated`` computation
    coverage: float  # share of the run's time in phases that repeat, at the largest rank count measured
    network: str
    """Where the time in MPI comes from: ``measured``, the name of the network's platform, or empty: not known."""
    messages: Messages | None = None  # what puts the phases' messages on that network

    def at(self, ranks: ArrayLike, level: float = 0.9) -> Times:
        """PET at `ranks`. Raises InputError when a rank count is not one that the program admits, by its weights."""
        p = np.atleast_1d(np.asarray(ranks, dtype=np.float64))
        if not (np.isfinite(p).all() and (p >= 1).all()):
            raise InputError(f"{p[~(p >= 1)][:1]} is not a number of ranks", "ranks are whole numbers from 1")
        for rule in dict.fromkeys(phase.weight.rule for phase in self.phases):
            bad = p[~admits(p, rule)]
            if len(bad):
                forth, back = RULES[rule]
                near = [float(np.round(back(edge(forth(bad[0]))))) for edge in (np.floor, np.ceil)]
                raise InputError(
                    f"{bad[0]:g} ranks: the program was seen to run on {rule} only",
                    f"nearest: {near[0]:g} and {near[1]:g}",
                )
        weights = np.array([phase.weight.at(p) for phase in self.phases])
        computation = weights * np.array([phase.computation(p) for phase in self.phases])
        communication = weights * np.array([phase.waiting(p) for phase in self.phases])
        if self.messages is not None:
            known = {phase.number: at for at, phase in enumerate(self.phases)}
            communication = np.zeros_like(computation)
            for number, seconds in self.messages.times(p, self.workload, level).items():
                if number in known:
                    communication[known[number]] += seconds
        bounds = np.array([phase.interval(p, level) for phase in self.phases])
        lower, upper = (weights * bounds[:, side] for side in (0, 1))
        inside = np.nan_to_num(communication).sum(axis=0)
        return Times(p, computation, communication, lower.sum(axis=0) + inside, upper.sum(axis=0) + inside)
