"""The application's time from its phases.

    PET(p) = sum over phases of  TE_i(p) W_i(p),    TE_i = computation + communication of one occurrence

Calls that belong to no phase that repeats count with weight one, so that the sum holds the whole run.

Source: Panadero et al. 2015, equation 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ranksight.analysis.phases.messages import Messages
from ranksight.analysis.phases.power import Power
from ranksight.analysis.phases.weights import RULES, Weight, admits
from ranksight.core.errors import InputError
from ranksight.model.plaindata import from_gaps, reading, with_gaps

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """Time of a phase at any rank count.

    Attributes
    ----------
    number : int
        From 1, in order of occurrence.
    label : str
    weight : Weight
    powers : tuple of Power
        Seconds of computation of each group of ranks; the longest counts.
    communication : (float, float)
        ``c_1 + c_2 log2 p`` seconds in MPI; NaN where they are not known.
    distant : float
        Largest rank count that a distant point stands for; 0 without one.
    """

    number: int
    label: str
    weight: Weight
    powers: tuple[Power, ...]
    communication: tuple[float, float]
    distant: float = 0.0

    def computation(self, ranks: ArrayLike) -> Array:
        """Seconds of computation of one occurrence."""
        found: Array = np.max([power.at(ranks) for power in self.powers], axis=0)
        return found

    def interval(self, ranks: ArrayLike, level: float) -> tuple[Array, Array]:
        """Interval of :meth:`computation`; NaN where two rank counts define it."""
        both = [power.interval(ranks, level) for power in self.powers]
        return np.max([low for low, _ in both], axis=0), np.max([high for _, high in both], axis=0)

    def waiting(self, ranks: ArrayLike) -> Array:
        """Seconds in MPI of one occurrence."""
        start, each = self.communication
        found: Array = start + each * np.log2(np.asarray(ranks, dtype=np.float64))
        return found


@dataclass(frozen=True)
class Times:
    """PET at k rank counts.

    Attributes
    ----------
    ranks : (k,)
    computation, communication : (n, k)
        Seconds of each phase in the whole run.
    lower, upper : (k,)
        Interval of the sum, phases erring together; NaN where two rank counts define a phase.
    """

    ranks: Array
    computation: Array
    communication: Array
    lower: Array
    upper: Array

    @property
    def total(self) -> Array:
        """PET, (k,); communication that is not known is left out."""
        found: Array = self.computation.sum(axis=0) + np.nan_to_num(self.communication).sum(axis=0)
        return found


@dataclass(frozen=True)
class Pet:
    """A program's phases as far as predictions need them.

    Attributes
    ----------
    workload : mapping of str to float
        Parameters beside the ranks, to which it holds.
    measured : tuple of float
        Rank counts.
    phases : tuple of PhaseTime
    clock : str
        ``measured`` or ``simulated`` computation.
    coverage : float
        Share of the run's time in phases that repeat, at the largest rank count measured.
    network : str
        Where the time in MPI comes from: ``measured``, the name of the network's platform, or empty: not known.
    messages : Messages or None
        What puts the phases' messages on that network.
    """

    workload: Mapping[str, float]
    measured: tuple[float, ...]
    phases: tuple[PhaseTime, ...]
    clock: str
    coverage: float
    network: str
    messages: Messages | None = None

    def at(self, ranks: ArrayLike, level: float = 0.9) -> Times:
        """PET at `ranks`.

        Raises
        ------
        InputError
            When a rank count is not one that the program admits, as its weights tell.
        """
        p = np.atleast_1d(np.asarray(ranks, dtype=np.float64))
        if not (np.isfinite(p).all() and (p >= 1).all()):
            raise InputError(f"{p[~(p >= 1)][:1]} is no number of ranks", "ranks are whole numbers from 1")
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

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        return {
            "workload": dict(self.workload),
            "measured": list(self.measured),
            "clock": self.clock,
            "coverage": self.coverage,
            "network": self.network,
            "messages": None if self.messages is None else self.messages.to_dict(),
            "phases": [
                {
                    "number": phase.number,
                    "label": phase.label,
                    "weight": phase.weight.to_dict(),
                    "powers": [{name: with_gaps(x) for name, x in asdict(power).items()} for power in phase.powers],
                    "communication": with_gaps(phase.communication),
                    "distant": phase.distant,
                }
                for phase in self.phases
            ],
        }

    @classmethod
    def from_dict(cls, content: Any) -> Pet:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        with reading("'phases'"):
            phases = []
            for given in content["phases"]:
                weight = Weight(**given["weight"])
                numbers = (weight.intercept, weight.slope, weight.r2)
                if weight.rule not in RULES or not all(isinstance(x, (int, float)) and x == x for x in numbers):
                    raise ValueError("a weight is damaged")
                powers = tuple(_power(each) for each in given["powers"])
                first, second = from_gaps(given["communication"]).reshape(2).tolist()
                if not powers:
                    raise ValueError("a phase has no time")
                number, label, distant = int(given["number"]), str(given["label"]), float(given["distant"])
                phases.append(PhaseTime(number, label, weight, powers, (first, second), distant))
            workload = {str(name): float(value) for name, value in content["workload"].items()}
            measured = tuple(float(p) for p in content["measured"])
            clock, network, coverage = str(content["clock"]), str(content["network"]), float(content["coverage"])
            messages = Messages.from_dict(content["messages"]) if content.get("messages") else None
            return cls(workload, measured, tuple(phases), clock, coverage, network, messages)


def _power(given: Mapping[str, Any]) -> Power:
    numbers = dict(zip(given, from_gaps(list(given.values())).tolist(), strict=True))
    return Power(**{**numbers, "count": int(given["count"])})
