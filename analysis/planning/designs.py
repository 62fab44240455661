"""Ways to spend a budget on several runs together.

The best set of runs cannot be found by rating each run alone: two runs may show what neither does alone. Several
whole designs are made, and each is judged by what is expected after all of its runs:

- one run after another by narrowing per cost, and by narrowing alone (of these two the better is at most a constant
  factor from the best of all sets where worth has diminishing returns: Leskovec et al. 2007, *Cost-effective outbreak
  detection in networks*, KDD, section 3);
- rules of thumb that are hard to beat: the most expensive that fits first, and the cheapest first;
- one line an axis through the cheapest configuration, the cheapest first (Ritter et al. 2020, *Learning cost-effective
  sampling strategies for empirical performance modeling*, IPDPS).

A design's loss is ``width / width now + WORTH * cost / budget``: runs for the whole budget must be expected to take
:data:`WORTH` of the interval away. Runs whose leaving lowers the loss are left out, and so are runs without which the
interval would be hardly wider (:data:`GAIN`).

Where a parameter never varied, all begin with some of the cheapest runs that vary it, whatever they promise: what is
expected is expected under the hypotheses that fit so far, and none of them has that parameter.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ranksight.analysis.planning.prospect import Prospect
from ranksight.core.arrays import Array, Index
from ranksight.core.records import dataclass

WORTH = 0.01
"""Least part of the interval that runs for the whole budget must be expected to take away; a cheaper run is worth a
smaller part, in proportion."""
LEAST = 0.001
"""Least part that any run must be expected to take away: less is the chance of the outcomes drawn."""
GAIN = 0.1
"""Least part of the interval that a run is expected to take away, given the others, unless it varies what never was."""
EXPLORED = 0.3
"""Part of the budget for the cheapest runs that vary what never varied. At most half of a plan's runs do."""
SHORTLIST = 64
"""Candidates that are weighed again after every choice."""
ROUNDING = 1 + 1e-9


@dataclass(frozen=True)
class Means:
    """What may be run, what it costs, and how much of it."""

    price: Array  # (k,): expected core-hours of each candidate
    offered: Index  # (n,): candidates that the budget pays for
    budget: float
    most: int  # runs at most

    def spent(self, chosen: tuple[int, ...]) -> float:
        """Core-hours of candidates."""
        return float(self.price[list(chosen)].sum())

    def left(self, chosen: tuple[int, ...]) -> Index:
        """Candidates that the rest of the budget pays for, the cheapest first."""
        rest = self.offered[~np.isin(self.offered, chosen)]
        rest = rest[self.price[rest] <= (self.budget - self.spent(chosen)) * ROUNDING]
        return np.asarray(rest[np.argsort(self.price[rest], kind="stable")])


def best(now: Prospect, means: Means) -> Prospect:
    """What is expected after the design of least loss, whose runs come the cheapest first."""
    explored = now.after(_explored(now, means))
    # The order of runs matters for the discrepancy scale: all designs are judged in the same order.
    designs = [ordered(now, design(explored.fork(), means), means) for design in DESIGNS]
    return min((_needed(now, each, means, explored.chosen) for each in designs), key=lambda each: loss(each, means))


def ordered(now: Prospect, design: Prospect, means: Means) -> Prospect:
    """The design with its cheapest run first."""
    return now.after(tuple(sorted(design.chosen, key=lambda at: float(means.price[at]))))


def loss(prospect: Prospect, means: Means) -> float:
    """``width / width now + WORTH * cost / budget``."""
    return prospect.width + WORTH * means.spent(prospect.chosen) / means.budget


def _explored(now: Prospect, means: Means) -> tuple[int, ...]:
    """The cheapest candidates that vary what never varied; none where everything did."""
    training = now.goal.training
    never = np.ptp(training, axis=0) == 0
    offered = means.left(())
    some = offered[(now.points[offered][:, never] != training[0, never]).any(axis=1)]
    few = some[np.cumsum(means.price[some]) <= EXPLORED * means.budget]
    return tuple(few[: means.most // 2].tolist())


def _needed(now: Prospect, design: Prospect, means: Means, always: tuple[int, ...]) -> Prospect:
    """The design without the runs that are not worth their cost or gain less than :data:`GAIN`, the most
    expensive tried first; `always` stay."""
    for candidate in sorted(design.chosen, key=lambda at: -float(means.price[at])):
        if candidate in always:
            continue
        without = now.after(tuple(at for at in design.chosen if at != candidate))
        if loss(without, means) <= loss(design, means) or design.width > (1 - GAIN) * without.width:
            design = without
    return design


def _narrowing(per_cost: bool) -> Callable[[Prospect, Means], Prospect]:
    def design(prospect: Prospect, means: Means) -> Prospect:
        """Choose one run after another by what it is worth.

        Worth hardly grows by other runs (Leskovec et al. 2007, section 4: lazy evaluation); after the first choice only
        the best :data:`SHORTLIST` of those weighed for it are weighed again.
        """
        short: Index | None = None
        while len(prospect.chosen) < means.most and len(left := means.left(prospect.chosen)):
            left = left if short is None else left[np.isin(left, short)]
            if not len(left):
                break
            _, width = prospect.outlook(left)
            gain = (prospect.widths[-1] - width).mean(axis=1)
            score = gain / means.price[left] if per_cost else gain
            short = left[np.argsort(-score, kind="stable")[:SHORTLIST]] if short is None else short
            least = np.maximum(WORTH * means.price[left] / means.budget, LEAST) * prospect.widths[-1].mean()
            score = np.where(gain > least, score, -np.inf)
            at = int(np.argmax(score))
            if not np.isfinite(score[at]):
                break
            prospect.take(int(left[at]))
        return prospect

    return design


def _by_price(first: int, lines: bool = False) -> Callable[[Prospect, Means], Prospect]:
    def design(prospect: Prospect, means: Means) -> Prospect:
        """Choose the cheapest run (`first` 0) or the dearest (-1) one after another, of all or of `lines` along the
        axes through the cheapest corner."""
        points = np.concatenate([prospect.points, prospect.goal.training])
        fits = (prospect.points == points.min(axis=0)).sum(axis=1) >= (points.shape[1] - 1 if lines else 0)
        while len(prospect.chosen) < means.most:
            left = means.left(prospect.chosen)
            left = left[fits[left]]
            if not len(left):
                break
            prospect.take(int(left[first]))
        return prospect

    return design


DESIGNS = (_narrowing(True), _narrowing(False), _by_price(-1), _by_price(0), _by_price(0, lines=True))
