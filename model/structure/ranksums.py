"""The sums of terms of the ranks that meet counts, what they cost, and whether some would meet any.

All sums of one to three terms (:mod:`ranksight.model.structure.rankterms`) are solved at once, with every choice of
ranks left out.
"""

from __future__ import annotations

import itertools

import numpy as np

from ranksight.core.arrays import Array, Index, Ints, Mask
from ranksight.core.records import dataclass
from ranksight.model import priors
from ranksight.model.plaindata import rounded
from ranksight.model.structure.gridlaw import EXACT
from ranksight.model.structure.halolaws import Found
from ranksight.model.structure.rankterms import CYCLIC, RANK_TERMS, sums, term_values
from ranksight.model.structure.sumkinds import (
    corners,
    cut_edges,
    grouped,
    rare_sums,
)

FEWEST = 2
"""Numbers of ranks, more than one each, from which sums are looked for."""
SPARE = 2
"""Numbers of ranks that a proven sum meets beyond those that its coefficients and exceptions take."""
EXCEPTIONS = 2
"""Numbers of ranks, more than one each, left out at most."""
NEARLY = 1.5
"""Difference of costs up to which a sum is nearly as simple."""
OPEN = 3.0
"""Cost of a sum that is not proven, and the difference of costs up to which it has rivals."""
RIVALS = 12
"""Sums that are kept of a series at most, different ones at :data:`SHOWN`."""
SHOWN = (12, 16, 24, 27, 32, 48, 64, 100, 125, 256, 512)
"""Numbers of ranks at which sums are compared."""
MOST = 2.0**53
"""Totals up to which they are whole numbers to rounding."""
RARELY = 0.05
"""Number of sums that meet the values by chance up to which none does."""
LEAST = 1e-3
"""Smallest share of the largest value that a coefficient's odds are of."""
WHOLE = 0.05
"""How far a power of the size may be from that of the sides."""
OF_BLOCKS = 10.0
"""How many times as likely as others sums are that see the size as edges of blocks alone, with a side each; and others
as those with corners that grow."""
REGULAR = 1e-9
"""Determinant, terms over their largest values, from which on the ranks distinguish the terms."""


def find_costs(values: Array, ranks: Ints, calls: Mask, once: Mask) -> tuple[Array, Mask, Mask]:
    """Costs (s, h) of all sums, infinite where a series does not follow one, the ranks (s, g, h, n) kept for each, and
    whether it is proven (s, h).

    `values` (s, g, n): at g combinations of the other parameters and n numbers of ranks; NaN where nothing was
    measured. `ranks` (n,). `calls` (s,): which series count messages; `once` (s,): which count whom the busiest rank
    meets, of whom none twice.
    """
    every = sums()
    cost = np.full((*values.shape[:2], len(every)), np.inf)
    shown = np.ones((*cost.shape, values.shape[2]), dtype=bool)
    proven = np.ones((len(values), len(every)), dtype=bool)
    known = np.isfinite(values)
    decided = _decided(values, ranks)
    simple = np.full(values.shape[:2], np.inf)
    for pattern in np.unique(known[decided], axis=0):
        which = decided & (known == pattern).all(axis=2)
        for size in (1, 2, 3):
            # What one term meets needs no more of them.
            rows = np.argwhere(which & (simple + NEARLY >= priors.RANK_SUMS["term"] * (size - 1)))
            solver = _Solver.over(ranks[pattern], size)
            if solver is None or not len(rows):
                continue
            for part in np.array_split(rows, -(-len(rows) // 256)):
                s, g = part.T
                costs, ways = solver.solve(values[s, g][:, pattern])
                at = solver.place
                cost[s[:, None], g[:, None], at] = costs
                full = np.zeros((*ways.shape, len(pattern)), dtype=bool)
                full[..., pattern] = solver.kept[ways]
                shown[s[:, None], g[:, None], at] = full
                np.logical_and.at(proven, (s[:, None], at), solver.proves[np.arange(len(at)), ways])
                # Few kernels work in groups.
                usual = costs[:, ~grouped()[at]]
                simple[s, g] = np.fmin(simple[s, g], usual.min(axis=1, initial=np.inf))
    met = np.where(decided[..., None], cost, 0.0).sum(axis=1) / np.maximum(decided.sum(axis=1), 1)[:, None]
    met[~decided.any(axis=1)] = np.inf
    # Who sends to each of many ranks is rare, or once to who is met twice, and a tree is usual.
    met -= priors.RARE_TERM * calls[:, None] * rare_sums()[once.astype(np.intp)]
    return met, shown, proven


def different(
    cost: Array, proven: Mask, values: Array, counted: Mask, ranks: Ints, sizes: Array | None = None
) -> tuple[Found, Array]:
    """The sums nearly as simple as the simplest, one of those that are the same at :data:`SHOWN`, and their odds.

    `cost` and `proven` (h,), `values` (g, n), `counted` (g, h, n). `sizes` (g,): edge of the domain, where one
    parameter says it.
    """
    decided = _decided(values, ranks)
    every, least = sums(), cost.min()
    if not np.isfinite(least):
        return [], np.ones(0)
    order = np.argsort(cost, kind="stable")
    near = order[cost[order] <= least + (NEARLY if proven[order[0]] else OPEN)]
    shown = term_values(np.array(SHOWN))
    distinct: dict[bytes, tuple[tuple[int, ...], Array]] = {}
    odds: dict[bytes, float] = {}
    for h in near.tolist():
        one = every[h]
        coefficients = _coefficients(one, values, counted[:, h], decided, ranks)
        predicted = coefficients[decided] @ shown[list(one)]
        same = rounded(predicted / np.nanmax(np.abs(values[decided]), axis=1, keepdims=True), 5).tobytes()
        if same in distinct or len(distinct) < RIVALS:
            distinct.setdefault(same, (one, coefficients))
            more = 1.0 if sizes is None else _with_size(one, coefficients, sizes)
            odds[same] = odds.get(same, 0.0) + more * float(np.exp(least - cost[h]))
    likely = sorted(distinct, key=lambda same: -odds[same])
    return [distinct[same] for same in likely], np.array([odds[same] for same in likely])


def _with_size(one: tuple[int, ...], coefficients: Array, sizes: Array) -> float:
    """How many times as likely as others a sum is by how its coefficients (g, q) go with the `sizes` (g,).

    Sums of the edges of blocks, size/x, size/y and size/z to whole powers, and none of the size alone, are likely.
    Messages across corners are of few cells whatever the size, so that one length to neighbours all around does not
    grow with it.
    """
    known = np.isfinite(coefficients).all(axis=1) & (coefficients > 0).all(axis=1)
    if known.sum() < 2:
        return 1.0
    edges = cut_edges()[list(one)]
    logs, at = np.log(coefficients[known]), np.log(sizes[known])
    powers = (at - at.mean()) @ (logs - logs.mean(axis=0)) / ((at - at.mean()) ** 2).sum()
    if (powers[corners()[list(one)]] > WHOLE).any():
        return 1 / OF_BLOCKS
    return OF_BLOCKS if bool((np.abs(powers - edges) <= WHOLE).all()) else 1.0


def of_edges(laws: Found, sizes: Array | None) -> bool:
    """Whether the only sum has coefficients that go by a whole power of the `sizes` (g,) each, to rounding and of
    different ones: as a header and a face do, and no other terms that meet the counts of some ranks would."""
    if sizes is None or len(laws) != 1 or len(laws[0][0]) < 2:
        return False
    coefficients = laws[0][1][np.isfinite(laws[0][1]).all(axis=1)]
    known = sizes[np.isfinite(laws[0][1]).all(axis=1)]
    if len(known) <= 2 or not (coefficients > 0).all():
        return False
    logs = np.log(coefficients / coefficients[0]) / np.log(known / known[0]).clip(min=EXACT)[:, None]
    powers = np.round(logs[-1])
    met = np.abs(coefficients - coefficients[0] * (known / known[0])[:, None] ** powers) <= EXACT * coefficients
    return bool(met.all() and len(set(powers.tolist())) == len(powers))


def by_chance(cost: Array, proven: Mask, values: Array, counted: Mask, offered: Mask, ranks: Ints) -> bool:
    """Whether some sum would have met the values (g, n) whatever they are, or the simplest leaves the largest run out,
    and with it what more ranks may do.

    `counted` (g, h, n): ranks that are not left out of each sum. `offered` (h,): the sums that are looked at.

    Totals over ranks are multiples of a unit. A value that is met beyond those that decide the coefficients is one of
    as many as there are units in the largest total, and every sum of so many terms, of costs (h,), tries it.
    """
    least = int(np.argmin(cost))
    if not np.isfinite(cost[least]):
        return False
    decided = _decided(values, ranks)
    known = np.isfinite(values[decided])
    last = known.shape[1] - 1 - known[:, ::-1].argmax(axis=1)
    if not np.take_along_axis(counted[decided, least], last[:, None], axis=1).all():
        return True
    if proven[least]:
        return False
    size = len(sums()[least])
    rate = 1.0
    for row in values[decided]:
        known = np.isfinite(row)
        totals = (row * ranks)[known]
        whole = totals.max() < MOST and np.abs(totals - np.round(totals)).max() <= EXACT * totals.max()
        unit = np.gcd.reduce(np.round(totals).astype(np.int64)) if whole else 0
        # What repeats says that one side decides, and nothing of how.
        more = max(len(np.unique(rounded(row[known], 9))) - size, 0)
        rate = min(rate, max(unit / totals.max(), EXACT) ** more)
    tried = sum(len(one) == size for one in itertools.compress(sums(), offered))
    return bool(rate * max(tried, 1) > RARELY)


def _decided(values: Array, ranks: Ints) -> Mask:
    """Which series (...) of values (..., n) are known at enough ranks."""
    return np.asarray((np.isfinite(values) & (ranks > 1)).sum(axis=-1) >= FEWEST)


def _coefficients(one: tuple[int, ...], values: Array, counted: Mask, decided: Mask, ranks: Ints) -> Array:
    """Coefficients (g, q) of a sum for values (g, n) at those ranks that it keeps; NaN where they are not decided."""
    basis = term_values(ranks)[list(one)].T
    coefficients = np.full((len(values), len(one)), np.nan)
    for g in np.flatnonzero(decided):
        known = counted[g] & np.isfinite(values[g])
        coefficients[g] = np.linalg.lstsq(basis[known], values[g, known], rcond=None)[0]
    return coefficients


@dataclass(frozen=True)
class _Solver:
    """All sums of a size over n numbers of ranks, in each of e ways to leave some of these out."""

    place: Index  # (h,): where each is among all sums
    basis: Array  # (h, n, q): its terms, each over its largest value
    inverse: Array  # (h, e, q, n): from values to coefficients; zero where ranks are left out
    kept: Mask  # (e, n): ranks that are not left out
    usable: Mask  # (h, e): whether the ranks decide the coefficients
    proves: Mask  # (h, e): whether a sum that meets all values is proven
    volume: Array  # (h, e): logarithm of the root of the determinant of the terms' products
    cost: Array  # (h, e)

    @classmethod
    def over(cls, ranks: Ints, size: int) -> _Solver | None:
        """All sums of `size` terms; None where too few ranks are known."""
        several = np.flatnonzero(ranks > 1)
        most = min(EXCEPTIONS, (len(several) - size) // 2)
        out = [drop for e in range(most + 1) for drop in itertools.combinations(several.tolist(), e)]
        out += [(*np.flatnonzero(ranks == 1).tolist(), *drop) for drop in out] if len(several) < len(ranks) else []
        kept = np.ones((len(out), len(ranks)), dtype=bool)
        for row, drop in enumerate(out):
            kept[row, list(drop)] = False
        left = (~kept[:, several]).sum(axis=1)
        spare = kept.sum(axis=1) - size - left
        possible = spare >= np.where(left > 0, SPARE, 1)
        if not possible.any():
            return None
        kept, spare, left = kept[possible], spare[possible], left[possible]
        every = sums()
        place = np.array([at for at, one in enumerate(every) if len(one) == size], dtype=np.intp)
        members = np.array([every[at] for at in place], dtype=np.intp)
        values = term_values(ranks)
        largest = values.max(axis=1, keepdims=True)
        basis = np.moveaxis((values / np.where(largest > 0, largest, 1.0))[members], 1, 2)
        masked = basis[:, None] * kept[None, :, :, None]
        gram = np.einsum("henq,henr->heqr", masked, masked)
        determinant = np.linalg.det(gram)
        regular = determinant > REGULAR
        safe = np.where(regular[..., None, None], gram, np.eye(size))
        inverse = np.einsum("heqr,henr->heqn", np.linalg.inv(safe), masked)
        leverage = np.einsum("henq,heqn->hen", masked, inverse)
        # Any terms meet as many different values as they are: the ranks have to show one more.
        same = np.tril((np.abs(basis[:, :, None] - basis[:, None]) <= EXACT).all(axis=3), -1)
        before = (same[:, None] & kept[None, :, None]).any(axis=3)
        different = ((~before & kept).sum(axis=2) > size) | ((size == 1) & (left == 0))
        proves = regular & (spare >= SPARE) & different & (leverage < 1 - EXACT).all(axis=2)
        terms, costs = list(RANK_TERMS.values()), priors.RANK_SUMS
        # Partners are shown to become no more by ranks that a sum meets, and no number hangs on one of these alone.
        limit = np.array([max(terms[i].limit for i in one) for one in members])
        numbers = limit > 0
        proves &= ~numbers[:, None] | ((ranks - 1 > limit[:, None]).sum(axis=1) > 1)[:, None]
        grid = np.array([max(terms[i].dimensions for i in one) - 1 for one in members])
        first = kept[:, several[0]]
        others = costs["fewest ranks"] * ~first + costs["other ranks"] * (left - ~first)
        others += costs["fewest ranks"] * (~kept).sum(axis=1) - costs["fewest ranks"] * left
        varying = np.array([sum(terms[i].name != "1" for i in one) for one in members])
        single = np.array([sum(terms[i].one_side for i in one) for one in members])
        cyclic = np.array([sum(terms[i].text == CYCLIC for i in one) for one in members])
        of_terms = costs["term"] * (varying + numbers) + costs["dimension"] * grid + costs["side"] * single
        cost = (of_terms + costs["cyclic"] * cyclic)[:, None] + others[None]
        volume = 0.5 * np.log(np.where(regular, determinant, 1.0))
        usable = regular & (proves | (left == 0)) & (~numbers[:, None] | (left == 0))
        # What is special enough to stand alone has no exceptions but two ranks: with some it would be anything.
        special = np.array([any(terms[i].most == 1 for i in one) for one in members])
        usable &= ~special[:, None] | (left <= ~first)
        return cls(place, basis, inverse, kept, usable, proves, volume, cost)

    def solve(self, values: Array) -> tuple[Array, Index]:
        """Costs (r, h) of all sums for values (r, n), infinite where a sum does not meet them, and of the ways to leave
        ranks out the one (r, h) that costs least."""
        cost = np.full((len(self.place), len(values)), np.inf)
        way = np.zeros(cost.shape, dtype=np.intp)
        scale = np.abs(values).max(axis=1)
        for e in np.argsort(self.cost[0], kind="stable").tolist():
            coefficients = self.inverse[:, e] @ values.T
            # A coefficient of nothing is a term too many, one below nothing none that a program has.
            possible = (coefficients > EXACT * scale).all(axis=1) & self.usable[:, e, None]
            h = np.flatnonzero(possible.any(axis=1))
            missed = np.abs(self.basis[h] @ coefficients[h] - values.T) * self.kept[e][:, None]
            met = possible[h] & (missed <= EXACT * scale).all(axis=1)
            share = np.log(np.clip(coefficients[h] / np.where(scale > 0, scale, 1.0), LEAST, 1.0)).sum(axis=1)
            open_cost = np.where(self.proves[h, e, None], 0.0, OPEN + share + self.volume[h, e, None])
            each = np.where(met, self.cost[h, e, None] + open_cost, np.inf)
            better = each < cost[h]
            cost[h], way[h] = np.where(better, each, cost[h]), np.where(better, e, way[h])
        return cost.T, way.T
