"""What traces show of the messages of kernels, and the sums of terms of the ranks that this leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache

import numpy as np

from ranksight.comm.patterns.recognition import MOST_EXPLANATIONS, Explanation
from ranksight.comm.patterns.roles import Everyone
from ranksight.comm.patterns.steps import Step
from ranksight.core.arrays import Array, Mask, ratio
from ranksight.core.records import dataclass
from ranksight.model import priors
from ranksight.model.structure.gridlaw import EXACT
from ranksight.model.structure.improving import Key
from ranksight.model.structure.ranksums import NEARLY, OPEN, SHOWN
from ranksight.model.structure.rankterm import RankTerm
from ranksight.model.structure.rankterms import RANK_TERMS, RING_FACE, sums, term_values
from ranksight.model.structure.sumkinds import (
    fewest_partners,
    grouped,
    limits,
    of_sides,
    one_kind,
    partner_counts,
    shown_groups,
    turned,
    uneven,
)

CALLS = frozenset({"visits", "peers"})
"""Metrics that go by the ranks as messages do: how often each partner is met, and how many there are."""
NEAR = 0.05
"""Share of its partners that a rank may have none of, as where a message is empty."""


@dataclass(frozen=True)
class Called:
    """What traces show of the messages of kernels, or of their operations."""

    together: frozenset[str] = frozenset()  # those all of whose messages are operations of all ranks
    ranks: int = 1  # the most ranks of a run whose partners are known
    partners: Mapping[str, float] = field(default_factory=dict)  # mean number of ranks that a rank sends to there
    along: Mapping[str, frozenset[str]] = field(default_factory=dict)  # the sides of a grid of those that send by some
    groups: Mapping[str, int] = field(default_factory=dict)  # ranks of the groups that communicators show
    lines: Mapping[str, frozenset[str]] = field(default_factory=dict)  # sides of a grid that communicators lie along
    even: frozenset[tuple[str, str]] = frozenset()  # those, and metrics, of which all ranks have the same in all runs
    rules: Mapping[str, tuple[Explanation, ...]] = field(default_factory=dict)  # that may be behind their partners
    collective: frozenset[str] = frozenset()  # those all of whose messages are collective operations, of any ranks
    transposing: frozenset[str] = frozenset()  # those that are together and cut slabs of a domain along another side
    irregular: frozenset[str] = frozenset()  # those whose partners data decide
    uneven: frozenset[str] = frozenset()  # those of these where data decide how often to send to each, too
    drawn: frozenset[str] = frozenset()  # those whose partners are drawn, to whom all ranks send as much

    def placed(self, kernel: str) -> bool:
        """Whether the sides of a grid, or the groups, that a kernel sends along are known."""
        return kernel in self.along or kernel in self.lines or kernel in self.groups

    def to_all(self, kernel: str) -> bool:
        """Whether all others may be the partners of a rank of a kernel, and no operation of all ranks makes them so."""
        fewest = (1 - NEAR) * (self.ranks - 1)
        return kernel not in self.together and self.partners.get(kernel, np.inf) >= fewest


def by_rules(cost: Array, keys: Sequence[tuple[str, str]], called: Called) -> tuple[Array, Mask]:
    """Costs (s, h) of the sums, and those of one term that rules of who sends to whom leave for the messages of series
    (s, h); all of a series whose rules say nothing.

    As many messages to each partner are a term where all that may explain the partners have one for how many there
    are, and the counts meet some of them. A program that exchanges with all in a line, or with neighbours, along one
    side does so along the others. Where nothing shows which, all in a line are not rare.
    """
    adjusted, offered = cost.copy(), np.ones(cost.shape, dtype=bool)
    single = np.array([one[0] if len(one) == 1 else -1 for one in sums()])
    sides = [term.sides for term in RANK_TERMS.values()]
    shown = {family for known in called.rules.values() if len(known) == 1 for family in _on_sides(known[0])}
    for row, (kernel, name) in enumerate(keys):
        explanations = called.rules.get(kernel, ())
        explanations = tuple(one for one in explanations if _on_sides(one) & shown) or explanations
        if name != "messages" or not 0 < len(explanations) < MOST_EXPLANATIONS:
            continue
        # Rules without a meaning at some numbers of ranks would be ones that programs refuse to run on.
        terms = [_terms_of(each) for each in explanations if _anywhere(each)]
        if along := called.along.get(kernel):
            terms = [frozenset(term for term in each if sides[term] in along) for each in terms]
        usable = np.isin(single, list(frozenset().union(*terms))) & np.isfinite(cost[row])
        if terms and all(terms) and usable.any():
            offered[row] = usable
            in_line = [_terms_of(one) for one in explanations if Everyone.family in _on_sides(one)]
            adjusted[row, np.isin(single, list(frozenset().union(*in_line)))] += priors.RARE_TERM
    return np.where(offered, adjusted, np.inf), offered


def as_along_others(cost: Array, keys: Sequence[Key]) -> Array:
    """Costs (s, h) of the sums with those less likely along one side of a grid that no series of the same metric can
    have along another, where some series leave fewer than others."""
    terms, every = list(RANK_TERMS.values()), sums()
    kinds = np.array([_kind(terms[one[0]]) if len(one) == 1 else "" for one in every], dtype=object)
    single = np.flatnonzero(kinds != "")
    adjusted, near = cost.copy(), cost[:, single] <= cost.min(axis=1, keepdims=True) + OPEN
    candidates = [set(kinds[single[each]]) if np.isfinite(cost[row]).any() else set() for row, each in enumerate(near)]
    simplest = cost.argmin(axis=1)
    for name in {name for _, name in keys}:
        rows = [row for row, key in enumerate(keys) if key[1] == name]
        along_sides = [candidates[row] for row in rows if kinds[simplest[row]]]
        for row in rows:
            fewer = [each for each in along_sides if each < candidates[row]]
            if kinds[simplest[row]] and fewer:
                adjusted[row, ~np.isin(kinds, list(set().union(*fewer)))] -= np.log(priors.FOREIGN_GRID)
    return adjusted


def _kind(term: RankTerm) -> str:
    """What a term is of one side of a grid, whichever that is; empty for other terms."""
    return term.text.translate(dict.fromkeys(map(ord, "xyz"), "s")) if term.one_side else ""


def _on_sides(explanation: Explanation) -> set[str]:
    """Families of the rules along sides of a grid."""
    return {
        rule.family
        for rule in explanation.rules
        if (isinstance(rule, Step) and len(rule.vector) > 1) or (isinstance(rule, Everyone) and rule.dimensions > 1)
    }


@lru_cache(maxsize=256)
def _partners(explanation: Explanation) -> tuple[float, ...]:
    """Mean numbers of partners of a rank at :data:`ranksums.SHOWN`."""
    return tuple(explanation.codes(ranks).size / ranks for ranks in SHOWN)


def _anywhere(explanation: Explanation) -> bool:
    """Whether a rule has partners at all numbers of ranks."""
    return min(_partners(explanation)) > 0


def _terms_of(explanation: Explanation) -> frozenset[int]:
    """Terms that are the number of partners of a rank times a factor, at :data:`ranksums.SHOWN`."""
    partners = np.array(_partners(explanation))
    each = ratio(term_values(np.array(SHOWN)), partners)
    steady = np.isfinite(each).all(axis=1) & (np.ptp(each, axis=1) <= EXACT * each.max(axis=1)) & (each[:, 0] > 0)
    # Partners up to a number are others where there are fewer of them.
    steady &= [term.limit == 0 for term in RANK_TERMS.values()]
    return frozenset(np.flatnonzero(steady).tolist())


def on_same_sides(cost: Array, keys: Sequence[tuple[str, str]], called: Called, most: int = 1) -> tuple[Array, Mask]:
    """Costs (s, h) of the sums with what is known of the sides that series may go by, and which of them (s, h) these
    leave, where communicators show them.

    No messages go to more neighbours than a rank has partners. That partners become no more shows in runs of up to
    `most` ranks, more than these partners, and is nothing that operations of all ranks do. What is sent within or
    between groups of ranks goes by these, where a sum of them meets it. Groups without a communicator of their own, as
    where the first rank of each node does what the others do not, are rivals by a single term, where runs of up to
    `most` ranks have several. Counts that are the same on all ranks are no binomial tree's, and no group's.

    Bytes go by the sides of the process grid along which the kernel's messages go: faces of a plane are the same at 2,
    4 and 8 ranks, and no constant. They go by none where these are collective operations of all ranks. Messages and
    bytes of a kernel that sends along some sides of a grid alone go by these. So does, where a sum meets it, what is
    sent in communicators that have as many ranks as a side.
    """
    terms, every = list(RANK_TERMS.values()), sums()
    sides = [{terms[term].sides for term in one} - {""} for one in every]
    constant = every.index((list(RANK_TERMS).index("1"),))
    adjusted, offered = cost.copy(), np.ones(cost.shape, dtype=bool)
    fewest = fewest_partners(called.ranks)
    needed = np.array([max(fewest[term] for term in one) for one in every])
    for row, (kernel, name) in enumerate(keys):
        adjusted[row, needed > (1 + NEAR) * called.partners.get(kernel, np.inf)] = np.inf
        adjusted[row, (limits() >= most - 1) | ((limits() > 0) & (kernel in called.together))] = np.inf
        of_groups = grouped()
        if kernel in called.groups:
            adjusted[row, of_groups & ~grouped(called.groups[kernel])] = np.inf
            if np.isfinite(adjusted[row, of_groups]).any():
                offered[row] = of_groups
        else:
            shown = shown_groups(most) & (kernel not in called.together)
            # How many ranks a group has is one more number that meets the counts.
            adjusted[row, of_groups] += np.where(shown, priors.RANK_SUMS["term"], np.inf)[of_groups]
        if (kernel, name) in called.even:
            adjusted[row, uneven()] = np.inf
        if kernel not in called.along:
            adjusted[row, of_sides((RING_FACE,))[1] | turned()] = np.inf
        if kernel in called.together:
            adjusted[row, [bool(each) for each in sides]] = np.inf
        elif along := called.along.get(kernel):
            lines = np.array([bool(each) and each <= along for each in sides])
            offered[row] = lines & (partner_counts() if name != "bytes_sent" else one_kind())
            adjusted[row, ~offered[row]] = np.inf
        elif along := called.lines.get(kernel):
            # How often a line is called together need not go by its length; how much is sent then does.
            lines = np.array([bool(each) and each <= along for each in sides])
            lines[constant] = name != "bytes_sent"
            if np.isfinite(adjusted[row, lines]).any():
                offered[row] = lines
        elif name == "bytes_sent" and (kernel, "messages") in keys:
            calls = cost[keys.index((kernel, "messages"))]
            near = np.flatnonzero(calls <= calls.min() + NEARLY) if np.isfinite(calls.min()) else ()
            shared = set().union(*(sides[h] for h in near)) if all(sides[h] for h in near) else set()
            foreign = np.array([bool(shared) and not (each and each <= shared) for each in sides])
            adjusted[row] -= np.log(priors.FOREIGN_GRID) * foreign
    return adjusted - np.log(priors.FOREIGN_GRID) * ~offered, offered
