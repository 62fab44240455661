"""Times of messages that no network describes: kernels with a time and no counts, where other kernels have counts.

    T(P, x) = a + b x^s + c log2 P

with x the work per rank, and s 1/2 or 2/3 for the surface of what a rank owns, 1 for its volume (Ding et al. 2018,
equation 4: constant, volume and tree of messages). There may be no constant. In place of log2 P a tree has ceil(log2 P)
whole steps, and one message to each other rank makes P - 1; in place of x^s, all but a rank's own share of a whole is
1 - 1/P. Where nodes are known, growth over them or a step beyond the first may be in place of the tree. A single rank
sends nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.core.experiment import WHOLE
from ranksight.core.records import dataclass
from ranksight.model.kernel_time.sums import Sums, fit_sums, forms, term, values_of
from ranksight.model.kernel_time.where import work_per_rank
from ranksight.model.laws.law import LAWS, MESSAGES, Law, LawTimes
from ranksight.model.laws.view import Asked, View
from ranksight.model.plaindata import Part
from ranksight.model.priors import RARE_TERM, REPEATED
from ranksight.model.quantity import Quantity
from ranksight.model.search.terms import Factor, on_a_grid
from ranksight.model.series.computation import COUNTED
from ranksight.model.series.domains import NOT_DESCRIBED, Domains
from ranksight.model.series.reducing import Series, located

TREE: Mapping[Factor, float] = {(0.0, 1.0, 0.0): 0.0, on_a_grid("ceil(log2(x))"): 0.0, on_a_grid("x - 1"): RARE_TERM}
"""How a collective operation grows with the ranks: as a tree, in whole steps, or one message to each other rank."""
SHARES = (0.5, 2 / 3, 1.0)
"""Powers of the work per rank that messages have: the edge of a face, the face of a volume, all of it."""
SCATTERED = on_a_grid("1 - 1/x")
"""What a rank sends of a whole that all hold a share of, as reductions of long messages do."""
CONTENDED: Mapping[Factor, float] = {
    (0.0, 1.0, 0.0): 0.0, (0.5, 0.0, 0.0): 0.0, (1.0, 0.0, 0.0): RARE_TERM, SCATTERED: RARE_TERM,
}  # fmt: skip
"""How it grows with the nodes, where these are known: a tree of them, cuts of the network that all messages pass, one
message to each other node, or the part of all partners that is on other nodes."""
BEYOND, NODES = "(beyond)", "(nodes)"
"""Further coordinates: 2 where messages leave a node and 1 where none does, and the nodes that the ranks use."""
STEPPED: Factor = (1.0, 0.0, 0.0)
"""How it goes with the first of them: an adapter's latency is added to each message, or not."""
FEWEST = 3
"""Numbers of ranks above one that a sum of three terms needs."""


@dataclass(frozen=True)
class Exchange(Part):
    """Functions of K kernels' times."""

    kernels: tuple[str, ...]
    parameters: tuple[str, ...]
    times: Sums
    domains: Domains = NOT_DESCRIBED  # how ranks fill nodes, where that is known

    def at(self, points: Array) -> Quantity:
        """Logarithms of the kernels' seconds (K, k) at `points` (k, m)."""
        return self.times.at(_places(points, self.parameters, self.domains))

    def applies(self, points: Array) -> Mask:
        """Where there are others to send to, (k,)."""
        return np.asarray(points[:, self.parameters.index("ranks")] > 1)

    def _fits(self) -> bool:
        columns = len(self.parameters) + 2 * bool(self.domains)
        same = len(self.times.measured) == len(self.kernels) and columns == self.times.points.shape[1]
        return same and "ranks" in self.parameters


def _places(points: Array, parameters: tuple[str, ...], domains: Domains) -> Array:
    """The points (k, m) with :data:`BEYOND` and :data:`NODES`, where nodes are known."""
    if not domains:
        return points
    nodes = domains.nodes(points[:, parameters.index("ranks")])
    return np.column_stack([points, 1.0 + (nodes > 1), nodes])


def fit_exchange(series: Series, domains: Domains = NOT_DESCRIBED) -> Exchange | None:
    """Learn the times of kernels without counts; None where no other kernel has counts, or too few ranks varied.

    `domains`: how ranks fill nodes; within one and beyond it are two regimes.
    """
    rows = series.rows
    counted = {kernel for kernel, name in rows if name in COUNTED and kernel != WHOLE}
    kernels = [kernel for kernel, name in rows if name == "time" and kernel != WHOLE and kernel not in counted]
    if not counted or not kernels or "ranks" not in series.parameters or not (series.points > 0).all():
        return None
    ranks = series.points[:, series.parameters.index("ranks")]
    several = ranks > 1
    if len(np.unique(ranks[several])) < FEWEST:
        return None
    part = series.at(several).select(np.array([rows[kernel, "time"] for kernel in kernels], dtype=np.intp))
    middle, error = located(part)
    some = (np.nan_to_num(middle) > 0).sum(axis=1) >= FEWEST
    if not some.any():
        return None
    work = work_per_rank(series)
    over = (*series.parameters, BEYOND, NODES) if domains else series.parameters
    tree = {term(over, {"ranks": factor}): odds for factor, odds in TREE.items()}
    if len(np.unique(domains.nodes(ranks[several]))) > 1:
        tree |= {term(over, {NODES: factor}): odds for factor, odds in CONTENDED.items()}
        tree[term(over, {BEYOND: STEPPED})] = 0.0
    powers = dict(zip(work.parameters, work.powers.tolist(), strict=True))
    surface = {
        term(over, {name: (power * share, 0.0, 0.0) for name, power in powers.items()}): 0.0
        for share in SHARES
        if work.powers.any()
    } | {term(over, {"ranks": SCATTERED}): RARE_TERM}
    middle, error = middle[some], np.hypot(error[some], REPEATED) * middle[some]
    places, known = _places(part.points, series.parameters, domains), len(over) - len(series.parameters)
    lone = (len(over) - 1,) if known else ()
    space = forms(over, tree, surface, bare=True)
    # No sum is zero where a time was measured, as growth over nodes alone is on one.
    possible = values_of(space.terms, space.members, places).sum(axis=1).min(axis=1) > 0
    space = replace(space, members=space.members[possible], prior=space.prior[possible])
    times = fit_sums(space, places, middle, np.nan_to_num(error), known, lone)
    return Exchange(tuple(np.array(kernels, dtype=object)[some]), series.parameters, times, domains)


class Messages(Law):
    """A constant, a surface or volume of the work per rank, and a tree of the ranks."""

    prior: ClassVar[float] = 0.5
    needs: ClassVar[str] = "a time without counts, where other kernels have counts; 3 rank counts above 1"
    formula: ClassVar[str] = "T = a + b x^s + c log2 P"
    source: ClassVar[str] = "Ding et al. 2018, equation 4"
    kind: ClassVar[type[Exchange]] = Exchange
    part: ClassVar[str] = "exchange"
    learns_from: ClassVar[tuple[str, ...]] = COUNTED

    def fit(self, view: View) -> Exchange | None:
        """Sums of terms of the kernels without counts."""
        return fit_exchange(view.series, view.domains)

    def at(self, learned: Exchange, asked: Asked) -> LawTimes:
        """Times of these kernels on several ranks."""
        time = learned.at(asked.points)
        answers = np.isfinite(time.centre) & learned.applies(asked.points)
        return LawTimes(learned.kernels, time, answers, ("",) * len(learned.kernels))


LAWS.register(MESSAGES)(Messages())
