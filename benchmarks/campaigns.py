"""Campaigns replayed: a grid of runs that was measured in full, and policies that make some of them, one after another.

A policy starts from the same few cheap runs, may spend a part of what the whole grid cost, and is judged by the error
at a target outside of the grid. What a run costs (core-hours) is what it did cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from benchmarks.tasks import Array
from ranksight.errors import RanksightError
from ranksight.model.learning import model_of
from ranksight.model.model import Model
from ranksight.model.planning.candidates import Candidates
from ranksight.model.planning.choice import choose_runs
from ranksight.model.planning.cost import Cost
from ranksight.model.planning.goal import goal
from ranksight.model.planning.rules import Rule
from ranksight.model.series.series import Series

SHARES = (0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 1.0)
"""Parts of the whole grid's cost after which a campaign is judged."""
STEP = 2
"""Runs made before all is fitted and planned again."""
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
        The series that tells how long a run takes; the sum of all when None.
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

    def foretold(self, model: Model) -> Cost:
        """What runs cost as the model foretells it."""
        ranks = "ranks" in model.parameters
        rows = np.arange(len(model.fitted)) if self.timer is None else [model.fitted.kernels.index(self.timer)]

        def seconds(points: Array) -> Array:
            said = model.fitted.predict(points).value[rows]
            return np.nansum(said, axis=0, keepdims=True)

        return Cost(seconds, np.array([False]), "predicted time", 0 if ranks else None)

    def judged(self, model: Model) -> tuple[float, float]:
        """Relative error in percent at the target, and the ratio of the ends of the interval there."""
        row = model.fitted.kernels.index(self.kernel)
        said = model.fitted.predict(self.target)
        with np.errstate(all="ignore"):
            error = 100 * abs(float(said.value[row, 0]) / self.truth - 1)
            ratio = float(said.upper[row, 0] / said.lower[row, 0])
        return (error if np.isfinite(error) else np.inf), (ratio if np.isfinite(ratio) else np.inf)


Curve = list[tuple[float, float, float]]
"""At each of :data:`SHARES`: the share spent, the error in percent, and the ratio of the interval's ends."""
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
    """One line an axis through the smallest configuration, and one point beside them: Extra-P's sparse modelling.

    Ritter et al. 2020, *Learning cost-effective sampling strategies for empirical performance modeling*, IPDPS.
    """
    points = grid.series.points
    low = points.min(axis=0)
    on_line = (points == low).sum(axis=1) >= points.shape[1] - 1
    beside = [i for i in np.argsort(grid.cost, kind="stable") if not on_line[i]][:1]
    lines = [int(i) for i in np.argsort(grid.cost, kind="stable") if on_line[i]]
    return [*lines, *map(int, beside)]


def replay(grid: Grid, order: Order, seed: int = 0) -> Curve:
    """A campaign under a fixed order."""
    found = []
    total = grid.cost.sum()
    wanted = order(grid, seed)
    last: tuple[bytes, tuple[float, float]] | None = None
    for share in SHARES:
        made = grid.start.copy()
        spent = grid.cost[made].sum()
        for at in wanted:
            if not made[at] and spent + grid.cost[at] <= share * total * (1 + 1e-9):
                made[at] = True
                spent += grid.cost[at]
        if last is None or last[0] != made.tobytes():
            last = (made.tobytes(), grid.judged(grid.model(made)))
        found.append((spent / total, *last[1]))
    return found


def replay_plan(grid: Grid) -> Curve:
    """The same with the runs that :func:`ranksight.model.planning.choice.choose_runs` asks for, a campaign a budget.

    A plan is made for what is left of the budget, its first runs are made, all is fitted again, and so on until a plan
    asks for nothing.
    """
    total = grid.cost.sum()
    first = grid.model(grid.start)
    found: Curve = []
    for share in SHARES:
        made, barred, model = grid.start.copy(), np.zeros(len(grid.start), dtype=bool), first
        while asked := _asked(grid, model, made | barred, share * total - grid.cost[made].sum()):
            before = made.copy()
            for at in asked:
                # A run may turn out dearer than foretold; what does not fit is not made, and not asked for again.
                fits = grid.cost[made].sum() + grid.cost[at] <= share * total * (1 + 1e-9)
                (made if fits else barred)[at] = True
            if (made != before).any():
                model = grid.model(made)
        found.append((float(grid.cost[made].sum() / total), *grid.judged(model)))
    return found


def _asked(grid: Grid, model: Model, made: np.ndarray, left: float) -> list[int]:
    """Places of the runs that a plan within `left` core-hours asks for."""
    rest = np.flatnonzero(~made)
    if not len(rest) or not left > 0:
        return []
    rules = {name: Rule("any") for name in grid.series.parameters}
    offered = Candidates(grid.series.points[rest], rules, dict.fromkeys(grid.series.parameters, (0.0, 0.0)), ())
    try:
        choice = choose_runs(
            goal(model, grid.target, grid.series.metrics[0], grid.kernel),
            offered,
            grid.foretold(model),
            budget=left,
            most=STEP,
            worlds=WORLDS,
        )
    except RanksightError:
        return []
    places = {tuple(point): int(at) for at, point in zip(rest, grid.series.points[rest].tolist(), strict=True)}
    return [places[tuple(run.configuration.values())] for run in choice.runs]
