"""What all sections of the report draw on, computed once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from pathlib import Path

import numpy as np

from ranksight.analysis.expectations.checking import Result, check
from ranksight.analysis.expectations.document import Study
from ranksight.analysis.planning.choice import Choice, plan
from ranksight.analysis.planning.cost import Cost, cost_of
from ranksight.core.errors import RanksightError
from ranksight.core.experiment import WHOLE, Experiment
from ranksight.core.places import places
from ranksight.core.records import dataclass
from ranksight.model.energy.prices import Prices
from ranksight.model.fitted_model import Model
from ranksight.platforms import Platform
from ranksight.reports.answer import answer
from ranksight.reports.grid import Grid, grid
from ranksight.reports.ideal import THRESHOLD, Ideal, Loss, Recommended, ideal, losses, recommended
from ranksight.reports.measured import Measured, measured
from ranksight.reports.sweep import Sweep, place, sufficient
from ranksight.reports.traffic import Traffic, traffic
from ranksight.reports.unpredicted import Unpredicted, unpredicted

MOST_SERIES = 12_000
"""Series that the page shows one by one; kernels beyond them, the smallest, are in its tables only."""


@dataclass(frozen=True)
class Context:
    """Model, what was measured, and the question that the report answers."""

    model: Model
    sweep: Sweep  # from what was measured to the target
    experiments: Sequence[Experiment] = ()  # fitted to, and held against
    platform: Platform | None = None
    model_file: Path | None = None
    study: Study | None = None  # what is expected; held against the first experiment
    commands: Callable[[Sequence[Mapping[str, float]], int], list[str]] | None = None
    """Gives the command lines that measure some configurations so many times."""
    threshold: float = THRESHOLD  # least efficiency, ideal time over predicted time, of the recommended rank count
    origin: Mapping[str, str] = field(default_factory=dict)
    """Where the report comes from, by a word: who wrote it and when, what command was measured."""
    live: bool = False  # whether a server answers the page's questions
    prices: Prices | None = None  # of machine time and electricity, where they are stated
    where: tuple[str, ...] = ()  # words of a command line that say on which machine ranks are, and how they are placed

    @cached_property
    def measured(self) -> Measured | None:
        """What the experiments measured."""
        return measured(self.model, self.experiments)

    @cached_property
    def places(self) -> dict[str, str]:
        """Source file, and line where it is known, of kernels."""
        return places(self.experiments)

    @cached_property
    def ideal(self) -> Ideal | None:
        """Ideal scaling, where the sweep is along ranks."""
        return ideal(self.sweep)

    @cached_property
    def recommended(self) -> Recommended | None:
        """The largest rank count that is efficient enough."""
        return recommended(self.sweep, self.ideal, self.threshold, self.cost)

    @cached_property
    def cost(self) -> Cost | None:
        """Cost of runs; None where no duration is known."""
        try:
            return cost_of(self.model, self.experiments[0] if self.experiments else None)
        except RanksightError:
            return None

    @cached_property
    def grid(self) -> Grid | None:
        """The model's answers around the sweep."""
        return grid(self.sweep)

    @cached_property
    def losses(self) -> list[Loss]:
        """What keeps the program from it."""
        return [] if self.ideal is None else losses(self.sweep, self.ideal)

    @cached_property
    def traffic(self) -> Traffic | None:
        """Messages over the sweep."""
        return traffic(self.sweep)

    @cached_property
    def unpredicted(self) -> list[Unpredicted]:
        """What has no answer at the target."""
        return unpredicted(self.sweep, self.first_run)

    @cached_property
    def expectations(self) -> Result | None:
        """What came of the expectations."""
        if self.study is None:
            return None
        varied = np.ptp(self.model.training, axis=0) > 0
        names = [name for name, yes in zip(self.model.parameters, varied, strict=True) if yes]
        free = {name: [self.sweep.target[name]] for name in names if name not in self.study.hold}
        return check(self.study, self.experiments[0], targets=free)

    @cached_property
    def plan(self) -> Choice | None:
        """What ``plan`` lists for the target; None where nothing can be planned."""
        sweep, model = self.sweep, self.model
        if not sweep.timed:
            return None
        first = self.experiments[0] if self.experiments else None
        repetitions = 1 if first is None else max((run.repetition for run in first.runs), default=0) + 1
        try:
            return plan(model, first, sweep.points[-1:], metric="time", level=sweep.level, repetitions=repetitions)
        except RanksightError:
            return None

    @cached_property
    def answer(self) -> str:
        """The answer in one sentence."""
        return answer(self.sweep, self.ideal, self.losses, self.first_run)

    @property
    def first_run(self) -> str:
        """The first run of the plan, where the program's time is not predicted; empty otherwise."""
        if not self.sweep.timed or sufficient(self.sweep.total) or self.plan is None or not self.plan.runs:
            return ""
        return ", ".join(place(name, value) for name, value in self.plan.runs[0].configuration.items())

    @cached_property
    def kernels(self) -> list[str]:
        """All kernels: the whole program first where it has metrics, then by their time at the target."""
        broken = self.sweep.breakdown
        times = dict(zip(broken.kernels, broken.by_kernel[:, -1].tolist(), strict=True))
        names = list(dict.fromkeys([*self.model.fitted.kernels, *broken.kernels]))
        shares: dict[str, float] = {}
        for name, share in zip(self.model.fitted.kernels, np.nan_to_num(self.model.shown_shares), strict=True):
            shares[name] = max(shares.get(name, 0.0), share)
        return sorted(names, key=lambda name: (name != WHOLE, -(times.get(name) or 0.0), -shares.get(name, 0.0), name))

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Number of each kernel with a place of its own on the page, by which the page links to it."""
        count = Counter(self.model.fitted.kernels)
        before = np.cumsum([count[name] for name in self.kernels])
        return {name: at for at, name in enumerate(self.kernels[: int(np.searchsorted(before, MOST_SERIES, "right"))])}
