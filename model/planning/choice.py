"""The next runs worth their core-hours, chosen one after another.

Each candidate's worth is how much the goal's interval is expected to narrow, given the runs chosen before it. Two
orders are made, one by narrowing per cost and one by narrowing alone; the better of the two within the budget is at
most a constant factor from the best of all sets where worth has diminishing returns (Leskovec et al. 2007,
*Cost-effective outbreak detection in networks*, KDD, section 3). A small part of the budget explores: worth is expected
under the forms that fit so far, and many cheap runs show what none of them has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ranksight.errors import InsufficientError
from ranksight.model.planning.belief import Belief
from ranksight.model.planning.candidates import Candidates
from ranksight.model.planning.cost import Cost
from ranksight.model.planning.goal import REACH, Goal
from ranksight.model.planning.worlds import Worlds
from ranksight.model.uncertainty.forecast import OK, WIDE, Forecast

Array = NDArray[np.float64]

WORTH = 0.02
"""Least part of the interval that runs for the whole budget must be expected to take away; a cheaper run is worth a
smaller part, in proportion."""
LEAST = 0.002
"""Least part that any run must be expected to take away: less is the chance of the outcomes drawn."""
EXPLORED = 0.1
"""Part of the budget for the cheapest runs, whatever they promise: a belief foresees the forms that it holds, no
other. At most half of the runs of a plan explore."""
AS_GOOD = 0.5
"""Part of the narrowing without regard to cost that the order by narrowing per cost must reach, to be preferred."""
WORLDS = 48

RUNS, BUDGET, WORTHLESS, NOTHING = "runs", "budget", "worth", "candidates"
"""Why a plan ends: as many runs as were asked for, what is left of the budget pays for none, no other run is worth its
cost, all that could be run is planned."""


@dataclass(frozen=True)
class PlannedRun:
    """One run to make.

    Attributes
    ----------
    configuration : mapping of str to float
    repetitions : int
    seconds : float
        Of one run under all collectors.
    core_hours : float
        Of all repetitions.
    factor : (t,)
        Expected ratio of the interval's ends to its middle at each target after this run and those before it, such as
        1.2 for +-20 %.
    helps : str
        The kernel that gains most, and its metric where it is another than the goal's.
    why : str
        What it does that the runs before it do not, such as ``farther in ranks`` (:func:`_why`).
    """

    configuration: Mapping[str, float]
    repetitions: int
    seconds: float
    core_hours: float
    factor: Array
    helps: str
    why: str = ""


@dataclass(frozen=True)
class Choice:
    """Runs in the order in which they are worth making.

    Attributes
    ----------
    goal : Goal
    candidates : Candidates
    cost : Cost
    runs : tuple of PlannedRun
    budget : float
        Core-hours that were allowed.
    target_cost : float
        Core-hours of running all targets once instead.
    after : Forecast
        What the goal's answer is expected to look like then, one row.
    ended : str
        Why no more runs are planned: :data:`RUNS`, :data:`BUDGET`, :data:`WORTHLESS` or :data:`NOTHING`.
    """

    goal: Goal
    candidates: Candidates
    cost: Cost
    runs: tuple[PlannedRun, ...]
    budget: float
    target_cost: float
    after: Forecast
    ended: str

    @property
    def core_hours(self) -> float:
        """Of all runs together."""
        return float(sum(run.core_hours for run in self.runs))


def choose_runs(
    goal: Goal,
    candidates: Candidates,
    cost: Cost,
    *,
    budget: float | None = None,
    most: int = 5,
    repetitions: int = 1,
    worlds: int = WORLDS,
) -> Choice:
    """Choose runs.

    Parameters
    ----------
    goal : Goal
    candidates : Candidates
    cost : Cost
    budget : float, optional
        Core-hours; what running the targets instead would cost, as often, when not given.
    most : int
        Runs at most.
    repetitions : int
        Of each run.
    worlds : int
        Outcomes drawn for every series.

    Raises
    ------
    InsufficientError
        When no candidate's cost can be told, or none is within the budget.
    """
    price = cost.core_hours(candidates.points, repetitions)
    target_cost = float(np.sum(cost.core_hours(goal.targets, repetitions)))
    known = np.isfinite(price) & (price > 0)
    if not known.any():
        raise InsufficientError("the cost of no run can be told", "measure a first few configurations with their time")
    if budget is None:
        budget = target_cost if np.isfinite(target_cost) and target_cost > 0 else float(price[known].max())
    within = np.flatnonzero(known & (price <= budget * (1 + 1e-9)))
    if not len(within):
        instead = f"running the target itself costs {target_cost:.3g}" if target_cost <= price[known].min() else ""
        raise InsufficientError(
            f"the cheapest run costs {price[known].min():.3g} core-hours, the budget is {budget:.3g}",
            instead or "give more with --budget, or smaller configurations by rules and limits",
        )
    ways = [_Search(goal, candidates.points, price, worlds).run(within, budget, most, per) for per in (True, False)]
    cheap, strong = ways
    first = strong.widths[0].mean()
    enough = first - cheap.widths[-1].mean() >= AS_GOOD * (first - strong.widths[-1].mean())
    best = cheap if enough else strong
    runs = []
    seconds = cost.seconds(candidates.points).sum(axis=0)
    names = list(candidates.rules)
    made = goal.training
    for at, width, helps in zip(best.chosen, best.widths[1:], best.helps, strict=True):
        configuration = dict(zip(names, map(float, candidates.points[at]), strict=True))
        said = _after(goal, best.widths[0], width, best.beyond)
        with np.errstate(all="ignore"):
            factor = np.where(said.lower[0] > 0, np.sqrt(said.upper[0] / said.lower[0]), np.exp(width))
        factor = np.where(np.isfinite(factor), factor, np.exp(width))
        why = _why(names, made, candidates.points[at])
        made = np.concatenate([made, candidates.points[at][None]])
        runs.append(PlannedRun(configuration, repetitions, float(seconds[at]), float(price[at]), factor, helps, why))
    after = _after(goal, best.widths[0], best.widths[-1], best.beyond)
    return Choice(goal, candidates, cost, tuple(runs), budget, target_cost, after, best.ended)


def _why(names: list[str], made: Array, point: Array) -> str:
    """What a run at `point` (m,) tells that those `made` (n, m) do not: values farther out, new values between, or
    values that never stood together."""
    for what, mask in (
        ("farther in", (point > made.max(axis=0)) | (point < made.min(axis=0))),
        ("new", ~(made == point).any(axis=0)),
    ):
        if mask.any():
            return f"{what} {' and '.join(name for name, hit in zip(names, mask, strict=True) if hit)}"
    return f"{' and '.join(names)} together"


def _after(goal: Goal, before: Array, width: Array, beyond: Array) -> Forecast:
    """The answer now with its interval narrowed in the ratio of half-widths (t,); where it has no ends, the width.

    Where there is no answer, widths are counted from :data:`REACH`, though what is known reaches `beyond` (t,) times
    as far: they narrow as much less.
    """
    now = goal.now
    # Parts without an answer are not in the ends that are told.
    short = (now.status[0] != OK) & (now.status[0] != WIDE)
    width = np.where(short, np.minimum(width * beyond, before), width)
    with np.errstate(all="ignore"):
        ratio = np.where(before > 0, width / before, 1.0)
        down, up = np.log(now.value / now.lower), np.log(now.upper / now.value)
    down, up = (np.where(short, np.clip(end, before, np.maximum(before, REACH)), end) for end in (down, up))
    down = np.where(np.isfinite(down), down * ratio, width)
    up = np.where(np.isfinite(up), up * ratio, width)
    return replace(now, lower=now.value * np.exp(-down), upper=now.value * np.exp(up))


class _Search:
    """Greedy choice for one goal."""

    def __init__(self, goal: Goal, points: Array, price: Array, worlds: int) -> None:
        self.goal = goal
        self.price = price
        self.points = points
        t = len(goal.targets)
        every = np.concatenate([points, goal.targets])
        self.worlds = [
            Worlds(Belief.of(source.fitted, source.rows, every, goal.training), t, worlds, seed=number)
            for number, source in enumerate(goal.sources)
        ]
        self.half = np.concatenate([source.half for source in goal.sources])
        self.first = np.concatenate([each.spread() for each in self.worlds])
        most = REACH / float(ndtri((1 + goal.now.level) / 2))
        self.beyond = np.maximum(self.first / most, 1.0).max(axis=0, initial=1.0)
        self.names = [
            source.fitted.kernels[row]
            + ("" if source.fitted.metrics[row] == goal.metric else f": {source.fitted.metrics[row]}")
            for source in goal.sources
            for row in source.rows
        ]
        self.chosen: list[int] = []
        self.helps: list[str] = []
        self.widths = [goal.width(self.half)]
        self.spent = 0.0
        self.now = self.half
        self.ended = RUNS

    def run(self, within: NDArray[np.intp], budget: float, most: int, per_cost: bool) -> _Search:
        """Explore, then choose until the budget is spent or nothing is worth it."""
        for candidate in self._cheapest(within, EXPLORED * budget)[: most // 2].tolist():
            self._take(candidate, *self._outlook(np.array([candidate])), 0)
        self._narrow(within[~np.isin(within, self.chosen)], budget, most, per_cost)
        return self

    def _cheapest(self, within: NDArray[np.intp], budget: float) -> NDArray[np.intp]:
        """The cheapest candidates within a budget, of those that vary what never varied if anything never did."""
        training = self.goal.training
        never = np.ptp(training, axis=0) == 0
        new = (self.points[within][:, never] != training[0, never]).any(axis=1)
        some = within[new] if never.any() else within
        cheap = some[np.argsort(self.price[some], kind="stable")]
        return np.asarray(cheap[np.cumsum(self.price[cheap]) <= budget])

    def _narrow(self, left: NDArray[np.intp], budget: float, most: int, per_cost: bool) -> None:
        """Choose one run after another by what it is worth."""
        while len(self.chosen) < most:
            if not len(left):
                self.ended = NOTHING
                break
            left = left[self.price[left] <= (budget - self.spent) * (1 + 1e-9)]
            if not len(left):
                self.ended = BUDGET
                break
            after, width = self._outlook(left)
            gain = (self.widths[-1] - width).mean(axis=1)
            score = gain / self.price[left] if per_cost else gain
            least = np.maximum(WORTH * self.price[left] / budget, LEAST) * self.widths[-1].mean()
            score = np.where(gain > least, score, -np.inf)
            best = int(np.argmax(score))
            if not np.isfinite(score[best]):
                self.ended = WORTHLESS
                break
            candidate = int(left[best])
            self._take(candidate, after, width, best)
            left = left[left != candidate]

    def _outlook(self, candidates: NDArray[np.intp]) -> tuple[Array, Array]:
        """Half-widths (k, g, t) of the series after each candidate, and the goal's (k, t)."""
        outlook = np.concatenate([each.outlook(candidates) for each in self.worlds])
        with np.errstate(all="ignore"):
            ratio = np.where(self.first[:, None] > 0, outlook / self.first[:, None], 1.0)
        # (g, k, t) to (k, g, t), so that the goal's width is told for every candidate.
        after = np.moveaxis(self.half[:, None] * np.minimum(ratio, 1.0), 1, 0)
        return after, self.goal.width(after)

    def _take(self, candidate: int, after: Array, width: Array, at: int) -> None:
        """Choose a candidate, the `at`-th of those whose outlook is given."""
        for each in self.worlds:
            each.choose(candidate)
        better = (self.now - after[at]).mean(axis=1)
        self.helps.append(self.names[int(np.argmax(better))])
        self.chosen.append(candidate)
        self.widths.append(np.minimum(width[at], self.widths[-1]))
        self.now = after[at]
        self.spent += float(self.price[candidate])
