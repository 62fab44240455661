"""Find the rules of a communication pattern from its edges at a few numbers of ranks.

An *explanation* is a set of rules of one family (one process grid, one set of distances ...) whose links together are
exactly those of every run. Small runs often have several explanations: with two ranks along a dimension a ring is a
line. All of them are kept, the simplest first. Where they disagree at the number of ranks asked for, the answer is not
known, and :func:`distinguishing_ranks` returns the run that would decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

from ranksight.comm.patterns.rule import FAMILIES, EdgeSet, Links, Rule
from ranksight.comm.patterns.steps import Step
from ranksight.core.arrays import Ints
from ranksight.core.records import dataclass
from ranksight.core.valuerules import infer

MOST_EXPLANATIONS = 12
"""Explanations that are kept at most."""
FACES = 6
ASKED = (*range(2, 33), 36, 48, 49, 54, 60, 64, 72, 96, 100, 120, 128)
"""Numbers of ranks at which explanations that agree are one."""
TRIED = 512.0
"""Ranks up to which runs are tried that may decide, of those up to the ranks asked for."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Rules that together are the communication pattern."""

    rules: tuple[Rule, ...]

    def links(self, ranks: int) -> list[Links]:
        """Links of each rule."""
        return [_links(rule, ranks) for rule in self.rules]

    def codes(self, ranks: int) -> Ints:
        """All links, sorted, each once; see :class:`~ranksight.comm.patterns.rule.EdgeSet`."""
        return _union(self.rules, ranks)

    @property
    def text(self) -> str:
        """The rules, as people read them; steps on one grid together."""
        grids: dict[str, list[str]] = {}
        for rule in self.rules:
            way, on, grid = rule.text.partition(" on a ")
            grids.setdefault(on + grid, []).append(way)
        return "; ".join((", " if grid else "; ").join(ways) + grid for grid, ways in grids.items())


FEW = 256
"""Ranks up to which links are kept: the same rules are asked again for many kernels."""


@lru_cache(maxsize=8192)
def _small(rule: Rule, ranks: int) -> Links:
    return rule.links(ranks)


def _links(rule: Rule, ranks: int) -> Links:
    return _small(rule, ranks) if ranks <= FEW else rule.links(ranks)


@lru_cache(maxsize=8192)
def _small_union(rules: tuple[Rule, ...], ranks: int) -> Ints:
    return _joined(rules, ranks)


def _union(rules: Iterable[Rule], ranks: int) -> Ints:
    return _small_union(tuple(rules), ranks) if ranks <= FEW else _joined(rules, ranks)


def _joined(rules: Iterable[Rule], ranks: int) -> Ints:
    parts = [_links(rule, ranks).codes(ranks) for rule in rules]
    return np.unique(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)


def explain(edge_sets: Sequence[EdgeSet]) -> tuple[Explanation, ...]:
    """All explanations of what was seen, the simplest first; none where no world explains every run.

    `edge_sets`: one for each number of ranks; those without any link say that there is none.
    """
    return _explained(tuple((edges.ranks, edges.codes.tobytes()) for edges in edge_sets))


@lru_cache(maxsize=64)
def _explained(sent: tuple[tuple[int, bytes], ...]) -> tuple[Explanation, ...]:
    """The explanations of runs' ranks and links: several operations of a program go the same ways."""
    edge_sets = [EdgeSet(ranks, np.frombuffer(codes, dtype=np.int64)) for ranks, codes in sent]
    if not any(edges.codes.size for edges in edge_sets):
        return ()
    found: dict[frozenset[Rule], Explanation] = {}
    for family in sorted((FAMILIES[name] for name in FAMILIES), key=lambda kind: kind.order):
        for world in family.propose(edge_sets):
            for rules in _covers(world, edge_sets):
                found.setdefault(frozenset(rules), Explanation(rules))
    # More rules than a grid has faces are a strange way to say what one rule says.
    best = sorted(found.values(), key=lambda e: (len(e.rules) > FACES, e.rules[0].order))
    # Where steps along axes explain all, diagonals on some other grid that happen to do so too are far-fetched.
    if any(_straight(one) for one in best):
        best = [one for one in best if _straight(one) or one.rules[0].family != "step"]
    return distinct_explanations(best)[:MOST_EXPLANATIONS] or _mixed(edge_sets)


def _straight(explanation: Explanation) -> bool:
    return all(isinstance(rule, Step) and rule.straight for rule in explanation.rules)


def distinct_explanations(explanations: Sequence[Explanation]) -> tuple[Explanation, ...]:
    """The explanations without those that say the same as a simpler one at every number of ranks that is tried."""
    if len(explanations) < 2:
        return tuple(explanations)
    kept: dict[bytes, Explanation] = {}
    for one in explanations:
        kept.setdefault(b"|".join(one.codes(p).tobytes() for p in ASKED), one)
    return tuple(kept.values())


def _covers(world: Sequence[Rule], edge_sets: Sequence[EdgeSet]) -> list[tuple[Rule, ...]]:
    """Choices of the world's rules that are exactly what was seen: all that fit, and as few as will do."""
    kept = [rule for rule in world if _fits(rule, edge_sets)]
    if not kept or any(len(_union(kept, edges.ranks)) != edges.codes.size for edges in edge_sets):
        return []
    fewer = list(kept)
    for rule in reversed(kept):
        rest = [other for other in fewer if other is not rule]
        if rest and all(len(_union(rest, edges.ranks)) == edges.codes.size for edges in edge_sets):
            fewer = rest
    return [tuple(kept)] if len(fewer) == len(kept) else [tuple(kept), tuple(fewer)]


def _fits(rule: Rule, edge_sets: Sequence[EdgeSet]) -> bool:
    """Whether all links of a rule were seen in every run, and any in one."""
    some = False
    for edges in edge_sets:
        codes = _links(rule, edges.ranks).codes(edges.ranks)
        some |= bool(codes.size)
        if codes.size > edges.codes.size * 64:
            return False
        at = np.minimum(np.searchsorted(edges.codes, codes), edges.codes.size - 1)  # those seen are sorted
        if not (edges.codes[at] == codes).all():
            return False
    return some


def _mixed(edge_sets: Sequence[EdgeSet]) -> tuple[Explanation, ...]:
    """Rules of several worlds: at each step the one that explains most of what is left."""
    fitting: dict[Rule, None] = {}
    for family in sorted((FAMILIES[name] for name in FAMILIES), key=lambda kind: kind.order):
        for world in family.propose(edge_sets):
            fitting.update(dict.fromkeys(rule for rule in world if rule not in fitting and _fits(rule, edge_sets)))
    left = {edges.ranks: edges.codes for edges in edge_sets}
    chosen: list[Rule] = []
    while any(codes.size for codes in left.values()):
        gains = [
            sum(np.isin(codes, _links(rule, p).codes(p)).sum() / max(codes.size, 1) for p, codes in left.items())
            for rule in fitting
        ]
        if not gains or max(gains) <= 0:
            return ()
        rule = list(fitting)[int(np.argmax(gains))]
        chosen.append(rule)
        left = {p: np.setdiff1d(codes, _links(rule, p).codes(p)) for p, codes in left.items()}
    return (Explanation(tuple(chosen)),)


def disagree(explanations: Sequence[Explanation], ranks: int) -> bool:
    """Whether the explanations differ at a number of ranks."""
    if len(explanations) < 2:
        return False
    first = explanations[0].codes(ranks)
    return any(not np.array_equal(first, other.codes(ranks)) for other in explanations[1:])


def distinguishing_ranks(explanations: Sequence[Explanation], measured: Iterable[int], asked: int) -> int | None:
    """Number of ranks whose run would decide which explanation holds at `asked`; None where none tried does.

    The smallest at which explanations that differ at `asked` differ as well, or at least some of them. It follows the
    rule of the ranks measured, as the program may refuse others.
    """
    groups: dict[bytes, Explanation] = {}
    for one in explanations:
        groups.setdefault(one.codes(asked).tobytes(), one)
    known, best, most = set(measured), None, 1
    ruled = infer(np.array(sorted(known), dtype=np.float64)).values(2.0, min(TRIED, float(asked)))
    for ranks in map(int, ruled):
        distinct = len({one.codes(ranks).tobytes() for one in groups.values()})
        if ranks not in known and distinct > most:
            best, most = ranks, distinct
        if most == len(groups):
            break
    return best
