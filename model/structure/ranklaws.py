"""Volumes of messages that are sums of laws of the ranks.

How often a program sends and how much is decided by its algorithms, so a mean over ranks is a sum of few terms of the
ranks (:mod:`ranksight.model.structure.rankterms`), with coefficients g that are functions of the other parameters:

    f(ranks, size) = sum_i g_i(size) h_i(ranks),    g_i >= 0

A sum is accepted where it meets the counts to rounding, at every combination of the other parameters, and leaves at
least two numbers of ranks that it need not have met: as many as terms decide the coefficients, and no coefficient may
hang on one number of ranks alone. Programs do otherwise at some numbers of ranks: two ranks are a special case, and a
prime number of them cuts a domain into slabs thinner than a cut-off. Up to two are left out, each of which has to be
outweighed by another that the sum met, and the others show more different values than the sum has terms. Of several
sums the one with the fewest terms and exceptions is the answer, the others that are nearly as simple are within its
interval.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Index, Ints, Mask
from ranksight.model import priors
from ranksight.model.plaindata import Stored
from ranksight.model.series.keyed import Keyed
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.structure.coefficients import Coefficients
from ranksight.model.structure.gridlaw import EXACT
from ranksight.model.structure.halolaws import CLOSE, Found, find_margins
from ranksight.model.structure.rankterms import RANK_TERMS, SENT_TO, Halo, sums, term_values
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast

FEWEST = 4
"""Numbers of ranks, more than one each, from which sums are looked for."""
SPARE = 2
"""Numbers of ranks that a sum meets beyond those that its coefficients and exceptions take."""
EXCEPTIONS = 2
"""Numbers of ranks left out at most."""
NEARLY = 1.5
"""Difference of costs up to which a sum is nearly as simple."""
RIVALS = 4
"""Sums that are kept of a series at most."""
REGULAR = 1e-9
"""Determinant, terms over their largest values, from which on the ranks distinguish the terms."""


@dataclass(frozen=True)
class RankLaws(Stored, Keyed):
    """Sums of laws of s series."""

    parameters: tuple[str, ...]  # of the model
    kernels: tuple[str, ...]  # of the series
    metrics: tuple[str, ...]
    sums: tuple[tuple[tuple[tuple[str, int], ...], ...], ...]
    """Of each series the sums that fit, the simplest first: names of terms and the index of each one's coefficient."""
    coefficients: Coefficients  # the distinct ones
    scatter: tuple[float, ...]  # relative scatter of each series around its sums; 0 where they meet it to rounding

    def predict(self, points: Array, level: float = 0.9) -> Forecast:
        """Forecast the s series at `points` (k, m); away from whole ranks above one, where no law is, status DOMAIN."""
        points = np.atleast_2d(np.asarray(points, dtype=np.float64))
        ranks = points[:, self.parameters.index("ranks")]
        there = (ranks > 1) & (ranks == np.floor(ranks)) & (ranks < 2.0**40)
        terms = term_values(np.where(there, ranks, 1).astype(np.int64))
        names = {name: at for at, name in enumerate(RANK_TERMS)}
        given = self.coefficients.predict(points, self.parameters, level)
        shape = (len(self.kernels), len(points))
        value, lower, upper = (np.zeros(shape) for _ in range(3))
        status = np.full(shape, forecast.OK, dtype=np.intp)
        reason = np.full(shape, "", dtype=object)
        for row, each in enumerate(self.sums):
            for rank, one in enumerate(each):
                at, which = [names[name] for name, _ in one], [index for _, index in one]
                found = [(end[which] * terms[at]).sum(axis=0) for end in (given.value, given.lower, given.upper)]
                if rank == 0:
                    value[row], lower[row], upper[row] = found
                    for index in which:
                        bad = (given.status[index] != forecast.OK) & (status[row] == forecast.OK)
                        status[row] = np.where(bad, given.status[index], status[row])
                        reason[row] = np.where(bad, given.reason[index], reason[row])
                lower[row], upper[row] = np.fmin(lower[row], found[1]), np.fmax(upper[row], found[2])
        reach = float(special.ndtri((1 + level) / 2)) * np.array(self.scatter)[:, None] * value
        lower, upper = np.maximum(lower - reach, 0.0), upper + reach
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(upper > lower, upper / lower, 1.0)
        status, reason = forecast.judged_by_width(factor, status, reason)
        status[:, ~there] = forecast.DOMAIN
        form = np.ones(shape)
        return Forecast(value, lower, upper, status, reason, form, level)

    def formula(self, i: int) -> str:
        """The simplest sum of series `i`, as people read it."""
        parts = []
        for name, index in self.sums[i][0]:
            factor = self.coefficients.formula(index)
            parts.append(factor if name == "1" else f"({factor}) * {name}")
        several = len(self.sums[i])
        return " + ".join(parts) + (f" ({several} sums fit)" if several > 1 else "")

    def _fits(self) -> bool:
        every = [term for each in self.sums for one in each for term in one]
        return (
            "ranks" in self.parameters
            and all(each and all(each) for each in self.sums)
            and all(name in RANK_TERMS and 0 <= index < len(self.coefficients) for name, index in every)
            and len(self.kernels) == len(self.metrics) == len(self.sums) == len(self.scatter)
        )


def fit_rank_laws(
    series: Series,
    names: Collection[tuple[str, str]],
    halos: Mapping[str, Collection[Halo]] | None = None,
    **settings: Any,
) -> RankLaws | None:
    """Find the sums of laws that series, means over all ranks, follow; None where none does, or too few ranks ran.

    `names` (collection of (kernel, metric)): series to look at. `halos` (mapping of str to collection of (dimensions,
    periodic)): kernels whose messages are known to go to each neighbour on grids, and these grids. `**settings`: of
    :func:`ranksight.model.fitting.fit_series.fit_series`, for the coefficients.
    """
    if "ranks" not in series.parameters:
        return None
    at = series.parameters.index("ranks")
    keys = series.keys
    rows = np.array([row for row, key in enumerate(keys) if key in names], dtype=np.intp)
    ranks = np.unique(series.points[:, at])
    ranks = ranks[(ranks > 1) & (ranks == np.floor(ranks))].astype(np.int64)
    if not len(ranks) or not len(rows):
        return None
    others = tuple(name for name in series.parameters if name != "ranks")
    places, group = np.unique(np.delete(series.points, at, axis=1), axis=0, return_inverse=True)
    values = np.full((len(rows), len(places), len(ranks)), np.nan)
    measured = reduce(series.values[rows], "median", axis=2)
    for n, (place, count) in enumerate(zip(group.reshape(-1), series.points[:, at], strict=True)):
        where = np.flatnonzero(ranks == count)
        if len(where):
            values[:, place, where[0]] = measured[:, n]
    found = _search(values, ranks)
    scatter = [0.0] * len(rows)
    near = {**(halos or {}), **_near(found, [keys[row] for row in rows])}
    for row, (kernel, name) in enumerate(keys[row] for row in rows):
        if name == "bytes_sent" and kernel in near and not _everywhere(found[row], values[row], ranks):
            margins, apart = find_margins(values[row], ranks, near[kernel])
            # A sum that left ranks out gives way to a halo that meets all of them.
            if margins and (not found[row] or apart <= CLOSE):
                found[row], scatter[row] = margins, apart
    lawful = [row for row, each in enumerate(found) if each]
    if not lawful:
        return None
    flat = np.concatenate([each.T for row in lawful for _, each in found[row]])
    owners = [keys[rows[row]] for row in lawful for one, _ in found[row] for _ in one]
    coefficients, index = Coefficients.distinct(others, places, flat, owners, **settings)
    numbers, texts = iter(index.tolist()), list(RANK_TERMS)
    said = tuple(tuple(tuple((texts[term], next(numbers)) for term in one) for one, _ in found[row]) for row in lawful)
    mine = [keys[rows[row]] for row in lawful]
    kernels, metrics = zip(*mine, strict=True)
    kept = tuple(scatter[row] for row in lawful)
    return RankLaws(series.parameters, kernels, metrics, said, coefficients, kept)


def _everywhere(found: Found, values: Array, ranks: Ints) -> bool:
    """Whether the first sum that fits (g, n) values meets them at all numbers of ranks."""
    if not found:
        return False
    terms, coefficients = found[0]
    missed = np.abs(coefficients @ term_values(ranks)[list(terms)] - values)
    return bool((np.nan_to_num(missed) <= EXACT * np.nanmax(np.abs(values))).all())


def _near(found: list[Found], keys: list[tuple[str, str]]) -> dict[str, list[Halo]]:
    """Kernels whose messages go to each neighbour on a grid by a sum found, and the kinds of these grids."""
    texts = list(RANK_TERMS)
    near: dict[str, list[Halo]] = {}
    for each, (kernel, name) in zip(found, keys, strict=True):
        single = [texts[one[0]] for one, _ in each if len(one) == 1] if name == "messages" else []
        if kinds := [SENT_TO[text] for text in single if text in SENT_TO]:
            near[kernel] = kinds
    return near


def _search(values: Array, ranks: Ints) -> list[Found]:
    """The sums that meet each series.

    `values` (s, g, n): at g combinations of the other parameters and n numbers of ranks; NaN where nothing was
    measured. `ranks` (n,).
    """
    every = sums()
    cost = np.full((*values.shape[:2], len(every)), np.inf)
    kept = np.ones((*cost.shape, values.shape[2]), dtype=bool)
    known = np.isfinite(values)
    decided = known.sum(axis=2) >= FEWEST
    simple = np.full(values.shape[:2], np.inf)
    for pattern in np.unique(known[decided], axis=0):
        which = decided & (known == pattern).all(axis=2)
        for size in (1, 2, 3):
            # What one term meets needs no more of them.
            rows = np.argwhere(which & (simple + NEARLY >= priors.RANK_SUMS["term"] * size))
            solver = _Solver.over(ranks[pattern], size)
            if solver is None or not len(rows):
                continue
            for part in np.array_split(rows, -(-len(rows) // 256)):
                s, g = part.T
                found, ways = solver.solve(values[s, g][:, pattern])
                at = solver.place
                cost[s[:, None], g[:, None], at] = found
                full = np.zeros((*ways.shape, len(pattern)), dtype=bool)
                full[..., pattern] = solver.kept[ways]
                kept[s[:, None], g[:, None], at] = full
                simple[s, g] = np.fmin(simple[s, g], found.min(axis=1))
    met = np.where(decided[..., None], cost, 0.0).sum(axis=1) / np.maximum(decided.sum(axis=1), 1)[:, None]
    met[~decided.any(axis=1)] = np.inf
    answer: list[Found] = []
    for row, each in enumerate(met):
        best = [h for h in np.argsort(each, kind="stable")[:RIVALS].tolist() if each[h] <= each.min() + NEARLY]
        mine = [every[h] for h in best if np.isfinite(each[h])]
        answer.append([(one, _coefficients(one, values[row], kept[row, :, h], decided[row], ranks))
                       for one, h in zip(mine, best, strict=False)])  # fmt: skip
    return answer


def _coefficients(one: tuple[int, ...], values: Array, kept: Mask, decided: Mask, ranks: Ints) -> Array:
    """Coefficients (g, q) of a sum for values (g, n) at those ranks that it keeps; NaN where they are not decided."""
    basis = term_values(ranks)[list(one)].T
    found = np.full((len(values), len(one)), np.nan)
    for g in np.flatnonzero(decided):
        here = kept[g] & np.isfinite(values[g])
        found[g] = np.linalg.lstsq(basis[here], values[g, here], rcond=None)[0]
    return found


@dataclass(frozen=True)
class _Solver:
    """All sums of a size over n numbers of ranks, in each of e ways to leave some of these out."""

    place: Index  # (h,): where each is among all sums
    basis: Array  # (h, n, q): its terms, each over its largest value
    inverse: Array  # (h, e, q, n): from values to coefficients; zero where ranks are left out
    kept: Mask  # (e, n): ranks that are not left out
    sound: Mask  # (h, e): whether no coefficient hangs on one number of ranks
    cost: Array  # (h, e)

    @classmethod
    def over(cls, ranks: Ints, size: int) -> _Solver | None:
        """All sums of `size` terms; None where too few ranks are known."""
        n = len(ranks)
        most = min(EXCEPTIONS, (n - size - SPARE) // 2)
        if most < 0:
            return None
        out = [drop for e in range(most + 1) for drop in itertools.combinations(range(n), e)]
        kept = np.ones((len(out), n), dtype=bool)
        for row, drop in enumerate(out):
            kept[row, list(drop)] = False
        every = sums()
        place = np.array([at for at, one in enumerate(every) if len(one) == size], dtype=np.intp)
        members = np.array([every[at] for at in place], dtype=np.intp)
        values = term_values(ranks)
        largest = values.max(axis=1, keepdims=True)
        basis = np.moveaxis((values / np.where(largest > 0, largest, 1.0))[members], 1, 2)
        masked = basis[:, None] * kept[None, :, :, None]
        gram = np.einsum("henq,henr->heqr", masked, masked)
        regular = np.linalg.det(gram) > REGULAR
        safe = np.where(regular[..., None, None], gram, np.eye(size))
        inverse = np.einsum("heqr,henr->heqn", np.linalg.inv(safe), masked)
        leverage = np.einsum("henq,heqn->hen", masked, inverse)
        sound = regular & (leverage < 1 - EXACT).all(axis=2)
        # Any terms meet as many plateaus as they are: where ranks are left out, the others have to show one more.
        same = np.tril((np.abs(basis[:, :, None] - basis[:, None]) <= EXACT).all(axis=3), -1)
        before = (same[:, None] & kept[None, :, None]).any(axis=3)
        sound &= ((~before & kept).sum(axis=2) > size) | (size == 1) | kept.all(axis=1)
        terms = list(RANK_TERMS.values())
        grid = np.array([max(terms[i].dimensions for i in one) - 1 for one in members])
        costs = priors.RANK_SUMS
        left = np.array([sum(costs["other ranks" if at else "fewest ranks"] for at in drop) for drop in out])
        cost = costs["term"] * size + costs["dimension"] * grid[:, None] + left[None]
        return cls(place, basis, inverse, kept, sound, cost)

    def solve(self, values: Array) -> tuple[Array, Index]:
        """Costs (r, h) of all sums for values (r, n), infinite where a sum does not meet them, and of the ways to leave
        ranks out the one (r, h) that costs least."""
        cost = np.full((len(values), len(self.place)), np.inf)
        way = np.zeros(cost.shape, dtype=np.intp)
        bound = EXACT * np.abs(values).max(axis=1)[:, None, None]
        for e in np.argsort(self.cost[0], kind="stable").tolist():
            found = np.einsum("hqn,rn->rhq", self.inverse[:, e], values)
            missed = np.abs(np.einsum("hnq,rhq->rhn", self.basis, found) - values[:, None]) * self.kept[e]
            # A coefficient of nothing is a term too many, one below nothing none that a program has.
            met = (missed <= bound).all(axis=2) & (found > bound).all(axis=2) & self.sound[:, e] & np.isinf(cost)
            cost, way = np.where(met, self.cost[:, e], cost), np.where(met, e, way)
        return cost, way
