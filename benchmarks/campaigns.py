"""Campaigns replayed: a grid of runs that was measured in full, and policies that make some of them, one after another.

A policy starts from the same few cheap runs, may spend a part of what the whole grid cost, and is judged by the error
at a target outside of the grid. What a run costs (core-hours) is what it did cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from benchmarks.tasks import Array
from ranksight.analysis.planning.candidates import Candidates
from ranksight.analysis.planning.choice import choose_runs
from ranksight.analysis.planning.cost import LEVEL, Cost
from ranksight.analysis.planning.goal import goal
from ranksight.analysis.planning.values import Rule
from ranksight.core.errors import InsufficientError
from ranksight.model.fit import model_of
from ranksight.model.fitted_model import Model
from ranksight.model.series.reducing import Series

SHARES = (0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 1.0)
"""Parts of the whole grid's cost after which a campaign is judged."""
FARTHEST = float(np.log(10.0))
"""What an answer counts for, in logarithms, that is farther off than ten times either way, or none."""
WORLDS = 24
"""Outcomes drawn: half of the default, as hundreds of plans are made."""


@dataclass(frozen=True)
class Grid:
    """A program measured at all points.

    Attributes
    ----------
    name : str
    series : Series
        Everything measured; the first parameter is the ranks.
    cost : (n,)
        Core-hours of each configuration.
    start : (n,) bool
        The runs that every policy has from the beginning.
    target : (1, m)
    truth : float
        Measured (or true) there.
    kernel : str
        Whose value is planned for and judged.
    timer : str or None
        The series with the duration of a run; the sum of all when None.
    known : dict
        Models fitted so far, by the runs made.
    """

    name: str
    series: Series
    cost: Array
    start: np.ndarray
    target: Array
    truth: float
    kernel: str
    timer: str | None = None
    known: dict[bytes, Model] = field(default_factory=dict)

    def model(self, made: np.ndarray) -> Model:
        """What the runs made teach; campaigns over the same series share what was fitted."""
        key = made.tobytes()
        if key not in self.known:
            self.known[key] = model_of(self.series.at(made), self.name)
        return self.known[key]

    def predicted(self, model: Model) -> Cost:
        """The cost of runs as the model predicts it."""
        ranks = "ranks" in model.parameters
        rows = np.arange(len(model.fitted)) if self.timer is None else [model.fitted.kernels.index(self.timer)]

        def seconds(points: Array) -> tuple[Array, Array]:
            said = model.fitted.predict(points).at(LEVEL)
            median, upper = (np.nansum(part[rows], axis=0) for part in (said.value, said.upper))
            return median, upper

        return Cost(seconds, "predicted time", (0,) if ranks else ())

    def judged(self, made: np.ndarray) -> Standing:
        """What the runs made show about the target."""
        model = self.model(made)
        row = model.fitted.kernels.index(self.kernel)
        said = model.fitted.predict(self.target)
        value, low, high = (float(part[row, 0]) for part in (said.value, said.lower, said.upper))
        with np.errstate(all="ignore"):
            error = 100 * abs(value / self.truth - 1)
            ratio = high / low
            off = abs(float(np.log(value / self.truth)))
        return Standing(
            float(self.cost[made].sum() / self.cost.sum()),
            error if np.isfinite(error) else np.inf,
            ratio if np.isfinite(ratio) else np.inf,
            min(off, FARTHEST) if np.isfinite(off) else FARTHEST,
            low <= self.truth <= high,
        )


@dataclass(frozen=True)
class Standing:
    """Where a campaign stands after a part of the whole grid's cost.

    Attributes
    ----------
    spent : float
        Part that was made use of.
    error : float
        At the target, in percent.
    ratio : float
        Of the ends of the interval there.
    off : float
        Logarithm of the ratio of predicted to true, its size, :data:`FARTHEST` at most.
    inside : bool
        Whether the truth is in the interval.
    """

    spent: float
    error: float
    ratio: float
    off: float
    inside: bool


Curve = list[Standing]
"""At each share."""
Order = Callable[[Grid, int], list[int]]


def cheapest(grid: Grid, seed: int) -> list[int]:
    """The cheapest run first."""
    return np.argsort(grid.cost, kind="stable").tolist()


def largest(grid: Grid, seed: int) -> list[int]:
    """The dearest run first, of those that the budget still allows."""
    return np.argsort(-grid.cost, kind="stable").tolist()


def at_random(grid: Grid, seed: int) -> list[int]:
    """In any order."""
    return np.random.default_rng(seed).permutation(len(grid.cost)).tolist()


def sparse(grid: Grid, seed: int) -> list[int]:
    """One line an axis through the smallest configuration, and one further point: Extra-P's sparse modelling.

    Ritter et al. 2020, *Learning cost-effective sampling strategies for empirical performance modeling*, IPDPS.
    """
    points = grid.series.points
    low = points.min(axis=0)
    on_line = (points == low).sum(axis=1) >= points.shape[1] - 1
    further = [i for i in np.argsort(grid.cost, kind="stable") if not on_line[i]][:1]
    lines = [int(i) for i in np.argsort(grid.cost, kind="stable") if on_line[i]]
    return [*lines, *map(int, further)]


def replay(grid: Grid, order: Order, seed: int = 0, shares: tuple[float, ...] = SHARES) -> Curve:
    """A campaign under a fixed order, in which each run is made that what is left pays for."""
    found: Curve = []
    total = grid.cost.sum()
    wanted = order(grid, seed)
    last: bytes | None = None
    for share in shares:
        made = grid.start.copy()
        spent = grid.cost[made].sum()
        for at in wanted:
            if not made[at] and spent + grid.cost[at] <= share * total * (1 + 1e-9):
                made[at] = True
                spent += grid.cost[at]
        found.append(found[-1] if last == made.tobytes() else grid.judged(made))
        last = made.tobytes()
    return found


def replay_plan(grid: Grid, shares: tuple[float, ...] = SHARES) -> Curve:
    """The same with the runs that :func:`ranksight.analysis.planning.choice.choose_runs` asks for, a campaign a budget.

    A plan is made for what is left of the budget, the cheaper half of its runs is made, all is fitted again, and so on
    until a plan asks for nothing.
    """
    total = grid.cost.sum()
    found: Curve = []
    for share in shares:
        made, barred = grid.start.copy(), np.zeros(len(grid.start), dtype=bool)
        while asked := _asked(grid, made, barred, share * total - grid.cost[made].sum()):
            for at in asked:
                # A run may cost more than predicted; what does not fit is not made, and not asked for again.
                fits = grid.cost[made].sum() + grid.cost[at] <= share * total * (1 + 1e-9)
                (made if fits else barred)[at] = True
        found.append(grid.judged(made))
    return found


def _asked(grid: Grid, made: np.ndarray, barred: np.ndarray, left: float) -> list[int]:
    """Places of the cheaper half of the runs that a plan within `left` core-hours asks for."""
    rest = np.flatnonzero(~(made | barred))
    if not len(rest) or not left > 0:
        return []
    model = grid.model(made)
    rules = {name: Rule("any") for name in grid.series.parameters}
    offered = Candidates(grid.series.points[rest], rules, dict.fromkeys(grid.series.parameters, (0.0, 0.0)), ())
    try:
        choice = choose_runs(
            goal(model, grid.target, grid.series.metrics[0], grid.kernel),
            offered,
            grid.predicted(model),
            budget=left,
            worlds=WORLDS,
        )
    except InsufficientError:
        return []
    places = {tuple(point): int(at) for at, point in zip(rest, grid.series.points[rest].tolist(), strict=True)}
    asked = [places[tuple(run.configuration.values())] for run in choice.runs]
    return asked[: (len(asked) + 1) // 2]
