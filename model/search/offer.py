"""What a search space offers to a fit: a way to solve its hypotheses on series."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ranksight.core.arrays import Array, Mask
from ranksight.core.metrics import Kind
from ranksight.model.search.basis import Basis
from ranksight.model.search.problem import Problem, pose
from ranksight.model.search.screening import Screened, screen
from ranksight.model.search.terms import Hypotheses
from ranksight.model.series.noise import Location


class Offer(ABC):
    """A search space over a number of parameters."""

    parameters: int

    @property
    @abstractmethod
    def load(self) -> int:
        """Numbers held a series while its hypotheses are solved."""

    @abstractmethod
    def screen(self, points: Array, location: Location, positive: Mask, kind: Kind) -> tuple[Problem, Screened]:
        """Solve hypotheses on series.

        Parameters
        ----------
        points : (n, m)
        location : Location
            Values of s series at the points.
        positive : (s,) bool
            Series whose function must stay above zero.
        kind : str
            Kind of their metric.
        """


class Listed(Offer):
    """Hypotheses that are the same for all series."""

    def __init__(self, hypotheses: Hypotheses) -> None:
        self.hypotheses = hypotheses
        self.parameters = hypotheses.terms.shape[1]

    @property
    def load(self) -> int:
        """Numbers held a series."""
        return len(self.hypotheses.members)

    def screen(self, points: Array, location: Location, positive: Mask, kind: Kind) -> tuple[Problem, Screened]:
        """Solve all hypotheses on all series."""
        problem = pose(Basis.listed(self.hypotheses.terms, points), points, location, positive, kind)
        return problem, screen(self.hypotheses, problem)
