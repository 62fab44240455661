"""Volumes of messages that are sums of laws of the ranks.

How often a program sends and how much is decided by its algorithms, so a mean over ranks is a sum of few terms of the
ranks (:mod:`ranksight.model.structure.rankterms`), with coefficients g that are functions of the other parameters:

    f(ranks, size) = sum_i g_i(size) h_i(ranks),    g_i >= 0

A sum is proven where it meets the counts to rounding, at every combination of the other parameters, and leaves at
least two numbers of ranks that it need not have met: as many as terms decide the coefficients, no coefficient may hang
on one number of ranks alone, and the ranks show more different values than the sum has terms. Programs do otherwise at
some numbers of ranks: two ranks are a special case, and a prime number of them cuts a domain into slabs thinner than a
cut-off. Up to two are left out, each of which has to be outweighed by another that the sum met. Of terms that stand
alone in a sum, as those of recursive doubling and of walls, it is the fewest ranks or none. One rank, which has nobody
to send to, may be left out in addition, and says nothing where it counted nothing.

Whoever has had more partners with every rank may have no more beyond the runs, as a stencil has at 27 ranks: what goes
to all others may end there, too, and the interval has that.

Where no sum is proven, all that meet the counts and one number of ranks more than they have terms are rivals. With
coefficients c of which any order of magnitude is as likely as another, rivals of basis H have odds of

    exp(-cost) / (sqrt(det(H' H)) prod_i c_i)

so that a term that is hardly there speaks for the others. The answer is the likeliest sum, and the interval has all
but the unlikely ones: of the rivals, or of the proven sums that are nearly as simple. Counts of few units are met by
some sum whatever they are, what a sum that leaves the largest run out says of more ranks is open, and a function that
was searched for may meet all of them, too; the interval then has that of this function as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ranksight.comm.patterns.grid import Cartesian, longer_sides
from ranksight.core.arrays import Array, Index, Ints, Mask, log_ratio
from ranksight.core.dims import MOST_RANKS
from ranksight.core.records import dataclass
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.quantity import EACH_END, TAIL
from ranksight.model.search.terms import last_partners
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.structure.called import Called, as_along_others, by_rules, on_same_sides
from ranksight.model.structure.coefficients import Coefficients, weighted_quantile
from ranksight.model.structure.gridlaw import EXACT
from ranksight.model.structure.halolaws import CLOSE, Found, find_margins, margin_reach
from ranksight.model.structure.improving import Key, Structure
from ranksight.model.structure.ranksums import SHOWN, by_chance, different, find_costs, of_edges
from ranksight.model.structure.rankterm import Halo
from ranksight.model.structure.rankterms import RANK_TERMS, SENT_TO, term_values
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.model.uncertainty.rows import choose, rows_of


@dataclass(frozen=True)
class RankLaws(Structure):
    """Sums of laws of s series."""

    parameters: tuple[str, ...]  # of the model
    kernels: tuple[str, ...]  # of the series
    metrics: tuple[str, ...]
    sums: tuple[tuple[tuple[tuple[str, int], ...], ...], ...]
    """Of each series the sums that fit, the likeliest first: names of terms and the index of each one's coefficient."""
    coefficients: Coefficients  # the distinct ones
    scatter: tuple[float, ...]  # relative scatter of each series around its sums; 0 where they meet it to rounding
    odds: tuple[tuple[float, ...], ...]  # of the sums of each series
    chance: Mask  # (s,): whether some sum may have met the counts by chance
    growing: Array  # (s,): ranks up to which each of them had more partners, where these may end; 0 where they do not
    _sizes = "kernels:s metrics:s sums:s scatter:s odds:s chance:s growing:s>=0"

    def predict(self, points: Array) -> Forecast:
        """Forecast the s series at `points` (k, m); away from whole ranks above one, where no law is, status DOMAIN."""
        points = np.atleast_2d(np.asarray(points, dtype=np.float64))
        ranks = points[:, self.parameters.index("ranks")]
        whole = (ranks > 1) & (ranks == np.floor(ranks)) & (ranks <= MOST_RANKS)
        terms = term_values(np.where(whole, ranks, 1).astype(np.int64))
        ended = {most: _ended(terms, ranks, most) for most in set(self.growing.tolist())}
        names = {name: at for at, name in enumerate(RANK_TERMS)}
        parts = self.coefficients.predict(points, self.parameters)
        shape = (len(self.kernels), len(points))
        value, lower, upper = (np.zeros(shape) for _ in range(3))
        status = np.full(shape, forecast.OK, dtype=np.intp)
        reason = np.full(shape, "", dtype=object)
        for row, each in enumerate(self.sums):
            ends = np.zeros((3, len(each), len(points)))
            for rival, one in enumerate(each):
                at, which = [names[name] for name, _ in one], [index for _, index in one]
                least = ended[self.growing[row]]
                for end, part, of in zip(
                    ends, (parts.value, parts.lower, parts.upper), (terms, least, terms), strict=True
                ):
                    end[rival] = (part[which] * of[at]).sum(axis=0)
            odds = np.broadcast_to(np.array(self.odds[row])[:, None], ends.shape[1:])
            value[row] = ends[0, 0]
            lower[row] = np.fmin(weighted_quantile(ends[1:2], odds[None], EACH_END)[0], ends[1, 0])
            upper[row] = np.fmax(weighted_quantile(ends[2:], odds[None], 1 - EACH_END)[0], ends[2, 0])
            for _, index in each[0]:
                bad = (parts.status[index] != forecast.OK) & (status[row] == forecast.OK)
                status[row] = np.where(bad, parts.status[index], status[row])
                reason[row] = np.where(bad, parts.reason[index], reason[row])
        reach = TAIL * np.array(self.scatter)[:, None] * value
        if reach.any():
            further = margin_reach(np.where(whole, ranks, 1).astype(np.int64)) * value
            reach = np.where(reach > 0, np.fmax(reach, further), reach)
        lower, upper = np.maximum(lower - reach, 0.0), upper + reach
        by_sums = Forecast(value, lower, upper, status, reason, np.ones(shape)).judged()
        by_sums.status[:, ~whole] = forecast.DOMAIN
        return by_sums

    def improved(self, answer: Forecast, fitted: Fitted, points: Array, exact: Collection[Key]) -> Forecast:
        """Sums of terms of the ranks, wherever these are whole."""
        index = fitted.indices(self.keys)
        by_sums = self.among(rows_of(answer, index), points, np.array([key in exact for key in self.keys], dtype=bool))
        return choose(answer, by_sums, index, by_sums.status != forecast.DOMAIN)

    def among(self, others: Forecast, points: Array, near: Mask | bool = False) -> Forecast:
        """The forecast of the s series, within whose intervals those of `others` are where sums met by chance.

        `near` (s,): series whose values are those of `others`, laws of neighbours that no run distinguishes from sums.
        """
        own_forecast = self.predict(points)
        between = own_forecast.status == forecast.DOMAIN
        by_neighbours = np.broadcast_to(near, len(self.kernels))
        doubted = (self.chance | by_neighbours)[:, None] & ~between
        lower = np.where(doubted, np.fmin(own_forecast.lower, others.lower), own_forecast.lower)
        upper = np.where(doubted, np.fmax(own_forecast.upper, others.upper), own_forecast.upper)
        value = np.where(by_neighbours[:, None], others.value, own_forecast.value)
        status = np.where(by_neighbours[:, None] & ~between, others.status, own_forecast.status)
        reason = np.where(by_neighbours[:, None] & ~between, others.reason, own_forecast.reason)
        return replace(own_forecast, value=value, lower=lower, upper=upper, status=status, reason=reason).judged()

    def longer_sides(self, kernels: Sequence[str], ranks: Array, most: int) -> dict[int, Array]:
        """How many times as many ranks the side that grows most has at `ranks` (k,) as at the `most` traced, by the
        index of those kernels whose messages go to each neighbour on grids, cut along more sides than one."""
        rows, grown = self.rows, dict[int, Array]()
        for at, kernel in enumerate(kernels):
            row = rows.get((kernel, "messages"))
            sums = [[("", 0)]] if row is None or self.chance[row] else self.sums[row]
            dimensions = {SENT_TO.get(one[0][0], (1,))[0] if len(one) == 1 else 1 for one in sums}
            if len(longer := longer_sides([Cartesian(d, (False,) * d) for d in dimensions], most, ranks)):
                grown[at] = longer
        return grown

    def with_rivals(self, fitted: Fitted, exact: Collection[Key], measured: Array) -> RankLaws:
        """The same where functions that meet all counts of series, those in `exact`, are rivals: which differ from the
        sums on more ranks, at the other parameters as `measured` (n, m).

        At powers of two up to 64 log2(ranks) and the cut sides of a grid in three dimensions are the same.
        """
        rows = np.array([row for row, key in enumerate(self.keys) if key in exact], dtype=np.intp)
        if not len(rows):
            return self
        points = np.repeat(np.unique(measured, axis=0), len(SHOWN), axis=0)
        points[:, self.parameters.index("ranks")] = np.resize(SHOWN, len(points))
        functions, sums = (
            fitted.predict(points).value[fitted.indices(self.keys)[rows]],
            self.predict(points).value[rows],
        )
        differ = (np.abs(log_ratio(functions, sums)) > DIFFERENT).any(axis=1)
        return replace(self, chance=self.chance | np.isin(np.arange(len(self.chance)), rows[differ]))

    def formula(self, i: int) -> str:
        """The simplest sum of series `i`, as people read it."""
        parts = []
        for name, index in self.sums[i][0]:
            factor = self.coefficients.formula(index)
            plain = factor if _is_one(factor) else f"({factor})"
            parts.append(factor if name == "1" else f"{plain} * {name if _is_one(name) else f'({name})'}")
        several = len(self.sums[i])
        return " + ".join(parts) + (f" ({several} sums fit)" if several > 1 else "")

    def _fits(self) -> bool:
        every = [term for each in self.sums for one in each for term in one]
        return (
            "ranks" in self.parameters
            and all(each and all(each) for each in self.sums)
            and all(name in RANK_TERMS and 0 <= index < len(self.coefficients) for name, index in every)
            and [len(each) for each in self.sums] == [len(each) for each in self.odds]
            and all(0 < odds < np.inf for each in self.odds for odds in each)
        )


NO_RANK_LAWS = RankLaws((), (), (), (), Coefficients(np.empty(0)), (), (), np.empty(0, dtype=bool), np.empty(0))

DIFFERENT = 1e-3
"""Logarithm of the ratio of two laws from which on they are different ones."""
OTHERS = "ranks - 1"
"""Term of what goes to every other rank: what goes by all ranks goes to no partners, which would be one less."""


def _ended(terms: Array, ranks: Array, most: float) -> Array:
    """Values (t, k) of terms where partners may have become no more beyond the `most` ranks of the runs
    (:func:`ranksight.model.search.terms.last_partners`); of all terms where `most` is 0."""
    last = last_partners(most) if most > 1 else np.inf
    least = terms.copy()
    least[list(RANK_TERMS).index(OTHERS)] -= np.fmax(ranks - last, 0.0)
    return least


def _is_one(text: str) -> bool:
    """Whether a text is one factor: without blanks, or in brackets that begin and end it."""
    depths = list(itertools.accumulate((sign == "(") - (sign == ")") for sign in text))
    return " " not in text or (text.startswith("(") and 0 not in depths[:-1])


def fit_rank_laws(
    series: Series,
    names: Collection[tuple[str, str]],
    halos: Mapping[str, Collection[Halo]] | None = None,
    called: Called | None = None,
    begun: Collection[Key] = (),
    busiest: Collection[Key] = (),
    **settings: Any,
) -> RankLaws:
    """Find the sums of laws that series, means over all ranks, follow; of none where too few ranks ran.

    `names` (collection of (kernel, metric)): series to look at. `halos`: kernels whose messages are known to go to each
    neighbour on grids, and of which halos these are. `called`: what traces show of their messages. `begun`: series with
    functions that begin on several ranks. `busiest`: series of the largest rank's values. `**settings`: of
    :func:`ranksight.model.fitting.fit_series.fit_series`, for the coefficients.
    """
    if "ranks" not in series.parameters:
        return NO_RANK_LAWS
    at = series.parameters.index("ranks")
    keys = series.keys
    rows = np.array([row for row, key in enumerate(keys) if key in names], dtype=np.intp)
    ranks = np.unique(series.points[:, at])
    ranks = ranks[(ranks >= 1) & (ranks == np.floor(ranks))].astype(np.int64)
    if not len(ranks) or not len(rows):
        return NO_RANK_LAWS
    places, values = _by_ranks(series, rows, ranks)
    wanted = [keys[row] for row in rows]
    calls = np.array([name != "bytes_sent" for _, name in wanted])
    once = np.array([key in busiest or key[1] == "peers" for key in wanted])
    cost, shown, proven = find_costs(values, ranks, calls, once)
    traced = called or Called()
    cost, lawful = by_rules(cost, wanted, traced)
    cost, offered = on_same_sides(cost, wanted, traced, int(ranks.max()))
    cost = as_along_others(cost, wanted)
    sizes = places[:, 0] if places.shape[1] == 1 and (places > 0).all() else None
    # How often something is sent says nothing of the size of blocks.
    seen = [sizes if name == "bytes_sent" else None for _, name in wanted]
    each = [
        different(one, sure, row, counted, ranks, size)
        for one, sure, row, counted, size in zip(cost, proven, values, shown, seen, strict=True)
    ]
    laws, odds = [sums for sums, _ in each], [weights for _, weights in each]
    chance = np.array([by_chance(*each, ranks) for each in zip(cost, proven, values, shown, offered, strict=True)])
    chance &= lawful.all(axis=1) & ~np.array([of_edges(each, size) for each, size in zip(laws, seen, strict=True)])
    # What begins on several ranks may follow a side that fewer do not cut, or begin on a second node.
    chance |= np.array([key in begun and not traced.placed(key[0]) for key in wanted])
    scatter = [0.0] * len(rows)
    several = ranks > 1
    values, ranks = values[:, :, several], ranks[several]
    by_sums, by_traces = _near(laws, [keys[row] for row in rows]), halos or {}
    near = {
        kernel: list(dict.fromkeys([*by_sums.get(kernel, ()), *by_traces.get(kernel, ())]))
        for kernel in dict.fromkeys([*by_sums, *by_traces])
    }
    for row, (kernel, name) in enumerate(keys[row] for row in rows):
        if name == "bytes_sent" and kernel in near and not _everywhere(laws[row], values[row], ranks):
            margins, beside = find_margins(values[row], ranks, near[kernel])
            # A sum that left ranks out gives way to a halo that meets all of them.
            if margins and (not laws[row] or beside <= CLOSE):
                laws[row], scatter[row], odds[row] = margins, beside, np.ones(len(margins))
    met = [row for row, each in enumerate(laws) if each]
    if not met:
        return NO_RANK_LAWS
    sums, lawful_keys = [laws[row] for row in met], [wanted[row] for row in met]
    coefficients, formulas = _with_coefficients(series, places, sums, lawful_keys, **settings)
    kernels, metrics = zip(*lawful_keys, strict=True)
    return RankLaws(
        series.parameters,
        kernels,
        metrics,
        formulas,
        coefficients,
        scatter=tuple(scatter[row] for row in met),
        odds=tuple(tuple(odds[row].tolist()) for row in met),
        chance=chance[met],
        growing=np.array([ranks.max() if called and called.to_all(kernel) else 0.0 for kernel in kernels]),
    )


def _by_ranks(series: Series, rows: Index, ranks: Ints) -> tuple[Array, Array]:
    """The values (g, m - 1) of the other parameters, and medians (s, g, n) of `rows` there at numbers of `ranks`."""
    at = series.parameters.index("ranks")
    places, group = np.unique(np.delete(series.points, at, axis=1), axis=0, return_inverse=True)
    values = np.full((len(rows), len(places), len(ranks)), np.nan)
    measured = reduce(series.values[rows], "median", axis=2)
    for n, (place, count) in enumerate(zip(group.reshape(-1), series.points[:, at], strict=True)):
        where = np.flatnonzero(ranks == count)
        if len(where):
            values[:, place, where[0]] = measured[:, n]
    # One rank that sends nothing says nothing.
    values[:, :, ranks == 1] = np.where(values[:, :, ranks == 1] > 0, values[:, :, ranks == 1], np.nan)
    return places, values


def _with_coefficients(
    series: Series, places: Array, laws: Sequence[Found], keys: Sequence[tuple[str, str]], **settings: Any
) -> tuple[Coefficients, tuple[tuple[tuple[tuple[str, int], ...], ...], ...]]:
    """The distinct coefficients of sums of laws as functions of the other parameters, and the sums in terms of them."""
    others = tuple(name for name in series.parameters if name != "ranks")
    flat = np.concatenate([each.T for sums in laws for _, each in sums])
    owners = [key for key, sums in zip(keys, laws, strict=True) for one, _ in sums for _ in one]
    coefficients, index = Coefficients.distinct(others, places, flat, owners, **settings)
    numbers, texts = iter(index.tolist()), list(RANK_TERMS)
    formulas = tuple(tuple(tuple((texts[term], next(numbers)) for term in one) for one, _ in sums) for sums in laws)
    return coefficients, formulas


def _everywhere(laws: Found, values: Array, ranks: Ints) -> bool:
    """Whether the first sum that fits (g, n) values meets them at all numbers of ranks."""
    if not laws:
        return False
    terms, coefficients = laws[0]
    missed = np.abs(coefficients @ term_values(ranks)[list(terms)] - values)
    return bool((np.nan_to_num(missed) <= EXACT * np.nanmax(np.abs(values))).all())


def _near(laws: list[Found], keys: list[tuple[str, str]]) -> dict[str, list[Halo]]:
    """Kernels whose messages go to each neighbour on a grid by a sum found, and the kinds of these grids."""
    texts = list(RANK_TERMS)
    near: dict[str, list[Halo]] = {}
    for each, (kernel, name) in zip(laws, keys, strict=True):
        single = [texts[one[0]] for one, _ in each if len(one) == 1] if name == "messages" else []
        if kinds := [SENT_TO[text] for text in single if text in SENT_TO]:
            near[kernel] = kinds
    return near
