"""What is expected of an answer after runs that are not made yet, whichever they are."""

from __future__ import annotations

from copy import copy

import numpy as np

from ranksight.analysis.planning.belief import Belief
from ranksight.analysis.planning.goal import REACH, Goal
from ranksight.analysis.planning.worlds import Worlds
from ranksight.core import special
from ranksight.core.arrays import Array, Index


class Prospect:
    """The goal's interval after runs, one after another, expected over outcomes drawn from what is believed now.

    Parameters
    ----------
    points : (k, m)
        Candidates.
    worlds : int
        Outcomes drawn for every series; the same for every order of runs, so that orders are compared in the same
        worlds.

    Attributes
    ----------
    chosen : tuple of int
        Candidates run so far.
    widths : tuple of (t,)
        Half-widths of the goal's interval in logarithms, before any run and after each.
    helps : tuple of str
        The kernel that gained most by each run, and its metric where it is another than the goal's.
    beyond : (t,)
        How many times farther the uncertainty of a series reaches than an answer may.
    """

    def __init__(self, goal: Goal, points: Array, worlds: int) -> None:
        self.goal, self.points = goal, points
        every = np.concatenate([points, goal.targets])
        self._worlds = [
            Worlds(Belief.of(source.fitted, source.rows, every, goal.training), len(goal.targets), worlds, seed=number)
            for number, source in enumerate(goal.sources)
        ]
        spread = [each.spread() for each in self._worlds]
        self._first, self._first_form = (np.concatenate([each[part] for each in spread]) for part in (0, 1))
        self._start_form = np.concatenate([source.form for source in goal.sources])
        self._reach = np.concatenate([source.share * source.ends.mean(axis=0) for source in goal.sources])
        self._ratio = np.ones(self._reach.shape)
        most = REACH / float(special.ndtri((1 + goal.now.level) / 2))
        self.beyond = np.maximum(self._first / most, 1.0).max(axis=0, initial=1.0)
        self._names = [
            source.fitted.kernels[row]
            + ("" if source.fitted.metrics[row] == goal.metric else f": {source.fitted.metrics[row]}")
            for source in goal.sources
            for row in source.rows
        ]
        self.chosen: tuple[int, ...] = ()
        self.helps: tuple[str, ...] = ()
        self.widths: tuple[Array, ...] = (goal.width(),)
        # What was asked in this state, by all forks that are still in it.
        self._asked: dict[bytes, tuple[Array, Array]] = {}

    def fork(self) -> Prospect:
        """The same, to go on in another way."""
        other = copy(self)
        other._worlds = [each.fork() for each in self._worlds]
        return other

    @property
    def width(self) -> float:
        """Half-width now, the mean over the targets, in that before any run."""
        first = float(self.widths[0].mean())
        return float(self.widths[-1].mean()) / first if first > 0 else 0.0

    def outlook(self, candidates: Index) -> tuple[Array, Array]:
        """Widths (k, g, t) of the series after each of the candidates, in those before any run, and the goal's half
        (k, t)."""
        if (known := self._asked.get(candidates.tobytes())) is not None:
            return known
        each = [worlds.outlook(candidates) for worlds in self._worlds]
        # (g, k, t) to (k, g, t), so that every candidate has the goal's width.
        spread, form = (np.moveaxis(np.concatenate([part[at] for part in each]), 1, 0) for at in (0, 1))
        with np.errstate(all="ignore"):
            ratio = np.minimum(np.where(self._first > 0, spread / self._first, 1.0), 1.0)
        found = self._asked[candidates.tobytes()] = ratio, self.goal.width(ratio, self._shares_of_form(form))
        return found

    def _shares_of_form(self, form: Array) -> Array:
        """The share of form (k, g, t) that the engine will report, whose odds change as those of the worlds, `form`, do
        from the present."""
        of_form = self._start_form * np.where(self._first_form > 0, form / np.maximum(self._first_form, 1e-300), 1.0)
        known = 1 - self._first_form
        scatter = (1 - self._start_form) * np.where(known > 0, (1 - form) / np.maximum(known, 1e-300), 1.0)
        total = of_form + scatter
        return np.where(total > 0, of_form / np.where(total > 0, total, 1.0), self._start_form)

    def take(self, candidate: int) -> None:
        """Run a candidate."""
        ratio, width = self.outlook(np.array([candidate]))
        for each in self._worlds:
            each.choose(candidate)
        better = (self._reach * (self._ratio - ratio[0])).mean(axis=1)
        self.helps = (*self.helps, self._names[int(np.argmax(better))])
        self.chosen = (*self.chosen, candidate)
        self.widths = (*self.widths, np.minimum(width[0], self.widths[-1]))
        self._ratio = ratio[0]
        self._asked = {}

    def after(self, candidates: tuple[int, ...]) -> Prospect:
        """What is expected after these runs, in this order; this one stays as it is."""
        other = self.fork()
        for candidate in candidates:
            other.take(candidate)
        return other
