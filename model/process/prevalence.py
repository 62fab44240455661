"""Means of a series along one coordinate, and how often they and covariances occur among series.

Means are sums of one to three terms x^i log2(x)^j, coefficients not negative. Work that is divided falls with powers
between those of surfaces and volumes of a domain, steeper ones where caches hold more with every rank; what grows are
trees (logarithms), surfaces, volumes, and their sums. Parts between which a short table cannot decide are all there:
how often each occurs is learned from whole curves.

Empirical Bayes by expectation maximisation (Dempster, Laird and Rubin 1977, *Journal of the Royal Statistical Society
B* 39, 1): with E_sh the evidence of hypothesis h for series s, weights are ``w_h ~ A prior_h + sum_s p_sh``, with
``p_sh ~ w_h E_sh``. ``python -m benchmarks prevalence`` learns the table of this folder from published curves and
writes it.
"""

from __future__ import annotations

import itertools
import tomllib
from dataclasses import replace
from functools import cached_property, lru_cache
from importlib import resources

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.records import dataclass
from ranksight.model import priors
from ranksight.model.process.covariance import PARTS, Turn
from ranksight.model.process.solve import KINDS
from ranksight.model.search.terms import (
    DOUBLING,
    LEVELLING,
    LIMITED,
    ONE,
    Factor,
    beyond_doubling,
    limited,
    values,
    write_term,
)
from ranksight.model.series.domains import Domains
from ranksight.model.spaces.default import GROWING, STEEP

POWER = PARTS.index("power")
FILE = "prevalence.toml"
COARSE = np.array(
    [(0.0, 0.0, 0.0, 0.003), (0.0, 0.0, 0.0, 0.03), (0.0, 0.15, 0.05, 0.03), (0.0, 0.0, 0.0, 0.1), (0.0, 0.4, 0.0, 0.3)]
)
"""Covariances that stand for all where means and odd runs are compared, in the order of their parts."""
NEAR = 0.01
"""Standard deviations below this are near to each other, whatever their ratio."""
SCATTERED, WILD = 0.03, 1.0
"""Scatter between jobs from which on a run may be odd, and departures or scatter by which values differ by factors:
none is odd among them."""
FEWEST = 3
"""Values below which none can be."""
WORK = ("held", "divided")
"""What the work of a rank is as their number grows."""


def power(exponent: float, logs: float = 0.0) -> Factor:
    """The term x^exponent log2(x)^logs."""
    return (exponent, logs, 0.0)


TWELFTHS = (24, 18, 16, 14, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)
FALLING = (*(power(-n / 12) for n in TWELFTHS), power(-1, 1), power(-1, 0.5))
SLOW = (power(1 / 12), power(1 / 6), power(0, 0.5))
"""Growth slower than the terms of Extra-P (:data:`ranksight.model.spaces.default.GROWING`)."""
RISING = (*SLOW, *GROWING, *STEEP)
DIVIDED = (power(-1), power(-2 / 3))
"""Volumes and surfaces of a divided domain, to which others are added."""
ADDED = (power(0, 1), power(0, 2), power(1 / 4), power(1 / 3), power(1 / 2), power(2 / 3), power(1), power(2))
ENDS = {ends: (limited(1.0, ends), limited(2.0, ends)) for ends in (-1.0, 1.0)}
"""Work that more than so many ranks or threads divide no further, as they are full or wait for something else; and what
grows until there are so many. Each two stand for one value that was measured and the next one (:func:`at_runs`)."""
SLOWER = (power(-2 / 3), power(-1 / 2), power(-1 / 3), power(-1, 0.5), power(-1, 1))


@lru_cache(maxsize=1)
def along_one() -> tuple[Array, Index]:
    """Terms (t, 1, 3) and the means (h, 3) that are sums of them; -1 pads."""
    single = [(ONE,), *((term,) for term in FALLING + RISING)]
    with_constant = [(ONE, term) for term in FALLING + RISING]
    pairs = list(itertools.product(DIVIDED, ADDED))
    pairs += [(power(-1), term) for term in SLOWER]
    growth = [(power(0, 1), term) for term in (power(1 / 2), power(1), power(2))]
    growth += [(power(1), power(2)), (power(1), power(3)), (power(2), power(3)), (power(1), power(1, 1))]
    levels = [(first, term) for first in (ONE, *DIVIDED) for term in LEVELLING]
    several = [*single, *with_constant, *levels, *pairs, *growth, *((ONE, *pair) for pair in pairs + growth)]
    several += [mean for term in DOUBLING for mean in ((term,), (ONE, term))]
    several += [mean for ends in ENDS.values() for mean in (ends, (ONE, *ends))]
    names = list(dict.fromkeys(term for mean in several for term in mean))
    members = np.full((len(several), 3), -1, dtype=np.intp)
    for row, mean in enumerate(several):
        members[row, : len(mean)] = [names.index(term) for term in mean]
    return np.array(names, dtype=np.float64)[:, None, :], members


def at_runs(terms: Array, members: Index, x: Array, shown: Array | None = None) -> tuple[Array, Index, Index]:
    """Terms (t', m, 3), means (h', q) and which of `members` (h, q) each is, (h',), of values at `x` (n,): means of
    :data:`ENDS` with every end between one value and the next of those that `shown` (k,) are measured at, all of `x`
    where it is not given.

    ``a / min(x, x_k) + b / min(x, x_k+1)``, a and b not negative, is ``c / x`` up to x_k and constant from x_k+1 on, at
    what c / x has somewhere between: all laws ``max(c / x, d)`` that cross there. Those that grow are ``min(c x, d)``.
    Two values at least show either side: one alone is in a regime of its own
    (:data:`ranksight.model.process.solve.KINDS`).
    """
    ends = ending(terms, members)
    distinct = np.unique(x)
    between = np.searchsorted(distinct, distinct if shown is None else np.unique(shown))[1:-1]
    steps = np.stack([between[:-1], between[1:]])
    moved = np.repeat(members[ends, None], steps.shape[1], axis=1)
    for power, pair in ENDS.items():
        for step, end in zip(steps, pair, strict=True):
            place = np.flatnonzero((terms[:, 0] == end).all(axis=1))
            moved = np.where(np.isin(moved, place), len(terms) + step[:, None], moved)
        of_values = np.zeros((len(distinct), *terms.shape[1:]))
        of_values[:, 0] = [limited(value, power) for value in distinct.tolist()]
        terms = np.concatenate([terms, of_values])
    every = np.concatenate([members[~ends], moved.reshape(-1, members.shape[1])])
    return terms, every, np.concatenate([np.flatnonzero(~ends), np.repeat(np.flatnonzero(ends), steps.shape[1])])


def ending(terms: Array, members: Index) -> Mask:
    """Which means `members` (..., q) fall or grow along a coordinate up to a number alone."""
    ends = terms[:, 0, 2] == LIMITED
    return np.asarray(((members >= 0) & ends[members]).any(axis=-1))


def doubling(terms: Array, members: Index) -> Mask:
    """Which means `members` (..., q) double with every step of a coordinate, or so."""
    doubles = np.asarray((terms[..., 2] > 0).any(axis=1))
    return np.asarray(((members >= 0) & doubles[members]).any(axis=-1))


def offered_at(terms: Array, members: Index, points: Array) -> Mask:
    """Which means `members` (h, q) may hold of values measured at `points` (n, m)."""
    return np.asarray(~((members >= 0) & beyond_doubling(terms, points)[members]).any(axis=1))


def divided(terms: Array, members: Index) -> Mask:
    """Which means `members` (..., q) fall along a coordinate: it divides their work."""
    falls = np.asarray((terms[..., 0] < 0).any(axis=1))
    return np.asarray(((members >= 0) & falls[members]).any(axis=-1))


def of_free_power(terms: Array, members: Index) -> Mask:
    """Which means `members` (..., q) may have another exponent than listed: one term that falls. Caches and iterations
    make any; what grows alone grows as an algorithm does."""
    return np.asarray(((members >= 0).sum(axis=-1) == 1) & divided(terms, members))


@lru_cache(maxsize=1)
def in_domains() -> tuple[Array, Index]:
    """Terms (t, 2, 3) of x ranks, y of which share a memory domain, and means (2 h, 3): those f(x) of
    :func:`along_one`, and each with a cost per work that follows the ranks of a domain and stays when it is full.

    That is f(y) where the work of a rank stays, and f(y) y / x where ranks divide it. Within one domain both are f(x).
    """
    terms, members = along_one()
    count = len(terms)
    whole, shared, full = (np.zeros((count, 2, 3)) for _ in range(3))
    whole[:, 0] = shared[:, 1] = full[:, 1] = terms[:, 0]
    full[:, 1, 0] += 1
    full[:, 0, 0] = -1
    moved = np.where(divided(terms, members)[:, None], members + 2 * count, members + count)
    return np.concatenate([whole, shared, full]), np.concatenate([members, np.where(members < 0, -1, moved)])


def coordinates(points: Array, domains: Domains | None) -> Array:
    """What terms are functions of, at `points` (k, d): these, or ranks (k, 1) and those that share a domain, (k, 2)."""
    return np.stack([points[:, 0], domains.active(points[:, 0])], axis=1) if domains else points


def texts_of(terms: Array, members: Index) -> list[str]:
    """Means (h, q) over terms (t, m, 3) as people read them, such as ``1 + x^(-1)``."""
    names = ("x", "y")[: terms.shape[1]]
    texts = [write_term(term, names) or "1" for term in terms]
    return [" + ".join(texts[at] for at in mean if at >= 0) for mean in members.tolist()]


@dataclass(frozen=True)
class Prevalence:
    """Logarithms of the weights of means (h,), sums of `terms` (t, m, 3), `members` (h, q) of them; of costs per work
    that follow the ranks of a memory domain, for each of :data:`WORK`, (2,); of covariances (g,) with their scales (g,
    4); of the kinds of runs (3,); and how often laws turn. Minus infinity for means that do not occur."""

    terms: Array
    members: Index
    means: Array
    filling: Array
    covariances: Array
    scales: Array
    kinds: Array
    turn: Turn
    whole_turn: Turn  # of whole programs over nodes

    @cached_property
    def coarse(self) -> Prevalence:
        """Few covariances that stand for all: each weighs what is nearer to it than to the others."""
        near = np.log(COARSE + NEAR)[:, None] - np.log(self.scales + NEAR)
        nearest = (near**2).sum(axis=2).argmin(axis=0)
        weight = np.bincount(nearest, np.exp(self.covariances), len(COARSE))
        return replace(self, covariances=np.log(np.maximum(weight, 1e-12)), scales=COARSE)

    @cached_property
    def in_domains(self) -> Prevalence:
        """The same where it is known which ranks share a memory domain."""
        falls = divided(self.terms, self.members).astype(np.intp)
        terms, members = in_domains()
        # A number that divides work to the end is itself a domain's, of a size that is not known.
        share = np.where(ending(self.terms, self.members), 0.0, np.exp(self.filling)[falls])
        with np.errstate(divide="ignore"):
            means = np.concatenate([self.means + np.log1p(-share), self.means + np.log(share)])
        return replace(self, terms=terms, members=members, means=means)

    def over(self, x: Array, domains: Domains | None, shown: Array | None = None) -> tuple[Prevalence, Index, Array]:
        """The table where `domains` are known, or not; the means (h, q) that occur; and terms (t, n) at `x` (n,).

        `shown` (k,): those of `x` that were measured, all where it is not given.
        """
        table, points = self.in_domains if domains else self, coordinates(x[:, None], domains)
        terms, members, which = at_runs(table.terms, table.members, x, shown)
        means = table.means[which] - np.log(np.bincount(which)[which])
        means = np.where(offered_at(terms, members, points), means, -np.inf)
        table = replace(table, terms=terms, members=members, means=means)
        return table, table.members[table.occurring], values(table.terms, points)

    def odd(self, u: Array) -> tuple[Index, Index, Array]:
        """Kind, place and log weight, each (k,), of what one run at `u` (n, 1) may be; the first is none."""
        count = len(u)
        if count < FEWEST:
            return np.zeros(1, dtype=np.intp), np.zeros(1, dtype=np.intp), np.zeros(1)
        kind = np.array([0, *[1] * count, 2])
        place = np.array([0, *range(count), int(u[:, 0].argmin())])
        return kind, place, self.kinds[kind] - np.log(np.where(kind == 1, count, 1))

    @staticmethod
    def of_most(odds: Array, kind: Index, most: Array) -> Array:
        """Log weights (s, k) of runs of a `kind` (k,), the first usual, with `odds` (k,) where nothing was repeated.

        A median is slow if most of its repetitions are, `most` (s, k) of them independent of each other.
        """
        return np.asarray(odds[0] + (odds - odds[0]) * np.where(kind == 1, most, 1))

    @cached_property
    def joint(self) -> Array:
        """Logarithm of the weight (h, g) of the means that occur under each covariance: only the exponent of a single
        term may be another than listed."""
        single = of_free_power(self.terms, self.members[self.occurring])
        return np.asarray(self.means[self.occurring][:, None] + self.under(single))

    def under(self, single: Mask) -> Array:
        """Logarithm of the weight (..., g) of the covariances of means, some of which may have other exponents than
        listed, (...)."""
        free = self.scales[:, POWER] > 0
        listed = self.covariances - special.logsumexp(self.covariances[~free])
        return np.where(single[..., None], self.covariances, np.where(free, -np.inf, listed))

    @property
    def with_odd(self) -> Mask:
        """Under which covariances (g,) one run may be odd. Where runs do not scatter a curve of another form would be
        taken for it, and where they differ by factors any of them would."""
        return np.asarray((self.scales[:, -1] >= SCATTERED) & (self.scales[:, -1] < WILD))

    @property
    def occurring(self) -> Index:
        """The means that occur."""
        return np.flatnonzero(np.isfinite(self.means))

    def of(self, evidence: Array) -> Array:
        """Posterior weights (s, h, g) of hypotheses with `evidence` (s, h, g)."""
        joint = evidence + self.means[:, None] + self.covariances
        total = special.logsumexp(joint.reshape(len(joint), -1), axis=1)
        return np.asarray(np.exp(joint - np.where(np.isfinite(total), total, 0.0)[:, None, None]))

    def updated(self, evidence: Array, worth: float, rounds: int) -> Prevalence:
        """The prevalence among series with `evidence` (s, h, g), where this one counts for `worth` series."""
        first = np.exp(self.means), np.exp(self.covariances)
        table = self
        for _ in range(rounds):
            share = table.of(evidence)
            count = worth + share.sum()
            with np.errstate(divide="ignore"):  # of means that do not occur
                means = np.log((worth * first[0] + share.sum(axis=(0, 2))) / count)
            covariances = np.log((worth * first[1] + share.sum(axis=(0, 1))) / count)
            table = replace(table, means=means, covariances=covariances)
        return table


def unlearned(scales: Array, several: float = priors.SEVERAL) -> Prevalence:
    """The prevalence before any curve: means of `several` terms rarer than others, covariances equally likely."""
    terms, members = along_one()
    means = np.where((members >= 0).sum(axis=1) > 1, -several, 0.0)
    kinds = np.full(len(KINDS), -np.log(len(KINDS)))
    even = np.full(len(scales), -np.log(len(scales)))
    filling = np.full(len(WORK), np.log(0.5))
    return Prevalence(
        terms, members, means - special.logsumexp(means), filling, even, scales, kinds, *2 * (Turn(0.0, 0.0, 0.0, 0.0),)
    )


@lru_cache(maxsize=1)
def learned() -> Prevalence:
    """The table of this folder."""
    content = tomllib.loads(resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8"))
    terms, members = along_one()
    weights = content["means"]
    with np.errstate(divide="ignore"):
        means = np.log(np.array([weights.get(text, 0.0) for text in texts_of(terms, members)]))
    table = np.array(content["covariances"])
    kinds = np.log(np.array([content["runs"][name] for name in KINDS]))
    scales, weight = table[:, :-1], np.log(table[:, -1] / table[:, -1].sum())
    kinds -= special.logsumexp(kinds)
    turns = (Turn(**content[name]) for name in ("turn", "whole_turn"))
    filling = np.log([content["domains"][name] for name in WORK])
    return Prevalence(terms, members, means - special.logsumexp(means), filling, weight, scales, kinds, *turns)


def written(prevalence: Prevalence, source: str) -> str:
    """The text of the table; `source` says what it was learned from."""
    terms, members = prevalence.terms, prevalence.members
    table = np.column_stack([prevalence.scales, np.exp(prevalence.covariances)])
    filling = zip(WORK, np.exp(prevalence.filling).tolist(), strict=True)
    rows = zip(texts_of(terms, members), np.exp(prevalence.means).tolist(), strict=True)
    return "\n".join(
        [
            f"# Written by `python -m benchmarks prevalence` from {source}.",
            "# Standard deviations of ln y: local departure, slope after an e-fold, exponent, jobs; the weight.",
            "covariances = [",
            *(f"  [{', '.join(f'{number:.4g}' for number in row)}]," for row in table.tolist()),
            "]",
            "",
            "# What one run of a series is.",
            "[runs]",
            *(f"{name} = {weight:.4g}" for name, weight in zip(KINDS, np.exp(prevalence.kinds).tolist(), strict=True)),
            "",
            "# How often cost per work follows the ranks of a known memory domain, by what a rank's work is.",
            "[domains]",
            *(f"{name} = {weight:.4g}" for name, weight in filling),
            "",
            "# How often a law is another one beyond its runs where they scatter by 3 %; the power of the scatter in",
            "# its odds; the share of its slope that is lost; and the standard deviation of the change of its slope.",
            "[turn]",
            *(f"{name} = {number:.4g}" for name, number in prevalence.turn._asdict().items()),
            "",
            "# The same of whole programs over nodes, from published curves alone.",
            "[whole_turn]",
            *(f"{name} = {number:.4g}" for name, number in prevalence.whole_turn._asdict().items()),
            "",
            "[means]",
            *(f'"{text}" = {weight:.4g}' for text, weight in rows if weight > 0),
            "",
        ]
    )
