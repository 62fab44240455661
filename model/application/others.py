"""T_others: the program's time outside of its kernels and messages.

    T_others = T_wall - sum_k T_k - T_imbalance - BF_comm T_comm

(Ding et al. 2018, equation 1): launch, start and end of MPI, input and output, halted cycles. It is a series of its
own, measured where both the program's time and its kernels' were, and has its own function. Where it is no more than
the error of the difference it is zero, with that error. Where kernels take longer than the program (inclusive timers,
kernels that overlap) their sum is not the program's time, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from ranksight.core.arrays import Array, Index, ratio
from ranksight.core.experiment import WHOLE
from ranksight.core.records import dataclass
from ranksight.model.kernel_time.sums import NO_SUMS, Sums, cut_off, fit_sums, forms, identified, term, values_of
from ranksight.model.plaindata import Part, Stored
from ranksight.model.priors import KERNELS_EXCESS, LATE_SLOPE, OTHERS_NEGLIGIBLE, RARE_TERM, REPEATED, WAITING_SCATTER
from ranksight.model.quantity import CENTRAL, EACH_END, TAIL
from ranksight.model.search.terms import Factor, Hypotheses
from ranksight.model.series.computation import RUNNING
from ranksight.model.series.domains import NOT_DESCRIBED, Domains
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.model.uncertainty.mixture import quantiles

LAUNCH: Mapping[Factor, float] = {(1.0, 0.0, 0.0): 0.0, (0.0, 1.0, 0.0): RARE_TERM, (0.5, 0.0, 0.0): RARE_TERM}
"""How start and end of a program go with the ranks: one after the other, rarely as a tree or between both. MPI's start
takes six times as long on 4,608 nodes of Summit as on 1,024 (SCREAM), halted time over 1 to 16 nodes grows in
proportion to them (SPEChpc)."""
SHARED: Factor = (-1.0, 0.0, 0.0)
"""What ranks have shares of, which is as rare; of cores that wait the share of everything else is known."""
NODES, REST = "(nodes)", "(rest)"
"""Further coordinates of T_others: the nodes that the ranks use, and the time of everything else, of which the system
takes a share."""
ADDED = 2
"""How many these are."""
LATE = "(beyond {})"
"""Names of still further ones, before these: nodes beyond some number of them."""
NONE_BEYOND = 1e-6
"""Their value where there are none, which is above zero."""
FILES: tuple[Factor, ...] = ((1.0, 0.0, 0.0), (2.0, 0.0, 0.0), (3.0, 0.0, 0.0))
"""How input and output grow with another parameter: lines, faces, volumes."""
TIMERS = 0.001
"""Share of the program's time that differences of timers miss by, without repetitions."""
ROUNDED = 1e-9
"""Share of the program's time below which a difference is rounding."""
SIGNIFICANT = 2.0
"""Standard errors from which on a difference is one."""
NORMAL = 1e6
"""Degrees of freedom at which Student's law is the normal one."""
MEDIAN_LOSS = float(np.sqrt(np.pi / 2))
"""Standard error of the median of many normal values over that of their mean, at most."""
COMPLETE = 0.98
"""Share of a configuration's kernels' time that has to be measured."""


@dataclass(frozen=True)
class DoubtfulSum(Stored):
    """T_others where the noise of the program's time exceeds it in some runs: sums of terms by least squares.

    h sums of at most q terms, with coefficients that are not negative, and normal errors of n differences that may be
    below zero; each sum has the weight of its likelihood. Where no sum meets the differences within their errors, they
    are as much larger as the best misses them, and other differences are missed by as much.
    """

    terms: Array  # (t, m, 3): exponents of all terms
    members: Index  # (h, q): terms of each sum, -1 where it has fewer
    prior: Array  # (h,): logarithms of the odds of the sums
    points: Array  # (n, m)
    measured: Array  # (n,): seconds
    error: Array  # (n,): their standard errors
    freedom: float  # repetitions beyond the first, which these were learned from
    _sizes = "terms:tm3 members:hq prior:h points:nm measured:n error:n>0 freedom:>0"

    @cached_property
    def _fitted(self) -> tuple[Array, Array, Array, Array]:
        """Weights (h,), coefficients (h, q), their covariances (h, q, q) and how far each misses, as a share, (h,)."""
        design = values_of(self.terms, self.members, self.points)
        real = (self.members >= 0) & design.any(axis=2)
        goal, weighted = self.measured / self.error, design / self.error
        scale = np.where(real, np.abs(weighted).max(axis=2), 1.0)
        usable = identified(weighted / scale[..., None], real)
        real &= usable[:, None]
        scaled = np.where(real[..., None], weighted / scale[..., None], 0.0)
        normal = scaled @ scaled.swapaxes(1, 2) + np.eye(real.shape[1]) * (~real)[..., None]
        covariance = np.asarray(np.linalg.inv(normal), dtype=np.float64)
        coefficients = (covariance @ (scaled @ goal)[..., None])[..., 0]
        mask = real[:, :, None] & real[:, None, :]
        coefficients, covariance, chance = (
            each[0, 0] for each in cut_off(coefficients[None, None], (covariance * mask)[None, None])
        )
        coefficients = np.maximum(coefficients, 0.0) * real
        met = np.einsum("hq,hqn->hn", coefficients, scaled)
        misfit = ((goal - met) ** 2).sum(axis=1)
        free = np.maximum(len(goal) - real.sum(axis=1), 1)
        excess = max(float((misfit / free)[usable].min()), 1.0)
        score = np.where(usable, self.prior - misfit / excess / 2 + chance, -np.inf)
        weight = np.exp(score - score.max())
        covariance *= excess / (scale[:, :, None] * scale[:, None, :])
        missed = np.sqrt(max(excess - 1, 0.0) * ratio(free, (met**2).sum(axis=1), 0.0))
        return weight / weight.sum(), coefficients / scale, covariance, missed

    def at(self, points: Array) -> Forecast:
        """T_others at `points` (k, m), one row."""
        weight, coefficients, covariance, missed = self._fitted
        new = values_of(self.terms, self.members, points)
        centre = np.einsum("hq,hqk->hk", coefficients, new)
        share = np.hypot(REPEATED, missed)[:, None]
        spread = np.sqrt(np.maximum(np.einsum("hqk,hqr,hrk->hk", new, covariance, new), 0.0) + (share * centre) ** 2)
        weights = np.broadcast_to(weight[:, None], centre.shape)
        freedom = np.full(centre.shape, self.freedom)
        low, value, high = quantiles((EACH_END, 0.5, 1 - EACH_END), weights, centre, spread, freedom)
        value, low, high = (np.maximum(each, 0.0)[None] for each in (value, low, high))
        return Forecast.settled(value, low, high, form=1.0)

    def _fits(self) -> bool:
        return bool(self.members.min() >= -1 and self.members.max() < len(self.terms))


@dataclass(frozen=True)
class Others(Part):
    """T_others over the parameters.

    `times`: its function, of nothing where it is negligible. `scatter`: root mean square of what is left, as a share of
    the program's time.
    """

    scatter: float
    times: Sums = NO_SUMS
    doubtful: DoubtfulSum | None = None  # its function where noise exceeds it at some configurations
    jobs: float = 0.0  # standard deviation of its logarithm from job to job, beyond that of its function
    domains: Domains = NOT_DESCRIBED  # how ranks fill nodes, where that is known
    begins: tuple[float, ...] = ()  # nodes from which on it may grow
    lone_error: float = np.nan
    """Standard error, as a share of everything else, of none on one rank; NaN where there is some."""

    def at(self, points: Array, total: Array, ranks: Array) -> Forecast:
        """T_others at `points` (k, m), one row; `total` (k,): what everything else takes. `ranks` (k,) fill nodes."""
        places = _places(points, _nodes(self.domains, ranks), total, self.begins)
        if self.doubtful is not None:
            return self.doubtful.at(places[:, : self.doubtful.points.shape[1]])
        if not self.times:
            half = TAIL * self.scatter * np.nan_to_num(total)[None]
            return Forecast.settled(np.zeros((1, len(points))), -half, half)
        # Time that adds is positive, so that its logarithm is what is normal.
        time = self.times.at(places[:, : self.times.points.shape[1]])
        ends = time.wider(np.hypot(self.jobs, self._unseen(places))).interval(CENTRAL)
        none = (ranks == 1) & np.isfinite(self.lone_error)
        reach = TAIL * np.nan_to_num(self.lone_error * total)
        value, low, high = (np.where(none, side * reach, end) for side, end in zip((0, -1, 1), ends, strict=True))
        return Forecast.settled(value, low, high)

    def _unseen(self, places: Array) -> Array:
        """Standard deviation of the logarithm (k,) over more nodes than one, where all runs were inside of one."""
        most = self.times.points[:, -2].max() if self.times.known else 0.0
        return LATE_SLOPE * np.log(places[:, -2]) if self.jobs and most == 1 else np.zeros(len(places))

    def _fits(self) -> bool:
        return 0 <= self.scatter < 1 and self.jobs >= 0 and len(self.times.measured) <= 1


def _nodes(domains: Domains, ranks: Array) -> Array:
    return domains.nodes(ranks) if domains else np.ones(len(ranks))


def _places(points: Array, nodes: Array, rest: Array, begins: tuple[float, ...]) -> Array:
    """The points (k, m) with the nodes beyond `begins`, :data:`NODES`, and :data:`REST`, which is above zero."""
    beyond = [np.maximum(nodes - first, NONE_BEYOND) for first in begins]
    return np.column_stack([points, *beyond, nodes, np.maximum(np.nan_to_num(rest), np.finfo(float).tiny)])


def fit_others(
    series: Series, wall: Array, factor: Array, messages: Array, domains: Domains = NOT_DESCRIBED
) -> Others | None:
    """Learn T_others.

    None where the program's time or its kernels' was not measured in one run, or kernels take longer than the program.
    `wall` (n, r): seconds of the program in the runs of `series`. `factor` (n,): slowest rank over the sum of the
    kernels' times at each configuration. `messages` (n,): seconds of messages that no kernel's time holds. `domains`:
    how ranks fill nodes.
    """
    parts = [at for at, (kernel, name) in enumerate(series.keys) if name == "time" and kernel != WHOLE]
    if not parts:
        return None
    kernels = series.values[parts]
    usual = reduce(reduce(kernels, "median", axis=2), "max", axis=1)
    complete = np.where(np.isfinite(kernels), usual[:, None, None], 0.0).sum(axis=0) >= COMPLETE * usual.sum()
    rest = wall - np.nansum(kernels, axis=0) * factor[:, None] - messages[:, None]
    rest = np.where(complete, rest, np.nan)
    known = np.isfinite(rest).any(axis=1)
    if not known.any():
        return None
    middle, whole = np.full(len(rest), np.nan), np.full(len(rest), np.nan)
    middle[known], whole[known] = np.nanmedian(rest[known], axis=1), np.nanmedian(wall[known], axis=1)
    share = middle[known] / whole[known]
    waiting = RUNNING in series.kernels
    error = _errors(rest, np.nan_to_num(whole), np.maximum(np.nan_to_num(middle), 0.0), waiting)
    noise = SIGNIFICANT * error[known] / whole[known]
    if (share < -np.maximum(KERNELS_EXCESS, noise)).any():
        return None
    scatter = min(float(np.sqrt(np.mean(share**2))), 0.5)
    scatter = scatter if scatter > ROUNDED else 0.0
    if (np.abs(share) <= np.maximum(OTHERS_NEGLIGIBLE, noise)).all() or (share <= np.maximum(0.0, noise)).all():
        return Others(scatter)
    if not (series.points > 0).all():
        return None
    ranked = "ranks" in series.parameters
    ranks = series.points[:, series.parameters.index("ranks")] if ranked else np.full(len(rest), np.inf)
    nodes = _nodes(domains, ranks) if ranked else np.ones(len(rest))
    # Starts on further nodes go on while those before them are at work: they may show from any number of nodes on
    # beyond which two were run.
    begins = tuple(np.unique(nodes)[1:-2].tolist()) if waiting else ()
    space = _hypotheses(series.parameters, series.points, waiting, nodes if domains else None, begins)
    places = _places(series.points, nodes, np.maximum(whole - middle, TIMERS * whole), begins)
    added = ADDED + len(begins)
    # One rank waits for nobody, and one node for no other.
    lone = [series.parameters.index("ranks")] if ranked and not waiting else []
    lone += [len(series.parameters) + len(begins)] if ranked and domains else []
    several = (ranks > 1)[known]
    lone_error, used = np.nan, middle
    if several.any() and not several.all() and (share <= noise)[~several].all():
        # What there is on several ranks alone is waiting for each other.
        lone_error, used = float(noise[~several].max()) / SIGNIFICANT, middle.copy()
        used[np.flatnonzero(known)[~several]] = np.nan
    if not waiting and (share > noise)[several | np.isnan(lone_error)].all():
        times = fit_sums(space, places, used[None], error[None], added, tuple(lone))
        return Others(scatter, times, domains=domains, lone_error=lone_error)
    space = _without_constant(space)
    if waiting:
        times = fit_sums(space, places, middle[None], error[None], added, tuple(lone))
        return Others(scatter, times, jobs=WAITING_SCATTER, domains=domains, begins=begins)
    freedom = float(np.maximum(np.isfinite(rest).sum(axis=1) - 1, 0).sum()) or NORMAL
    sums = DoubtfulSum(space.terms, space.members, space.prior, places[known], middle[known], error[known], freedom)
    return Others(scatter, doubtful=sums)


def _errors(rest: Array, whole: Array, middle: Array, waiting: bool) -> Array:
    """Standard errors (n,) of the rest (n, r), from how it repeats.

    It scatters as a share of itself where the kernels' scatter is in both times, and as a share of the program's time
    where they were measured apart; the more likely of the two holds. Without repetitions timers miss :data:`TIMERS`,
    and the rest differs by :data:`~ranksight.model.priors.WAITING_SCATTER` from job to job where it is `waiting`.
    """
    count = np.isfinite(rest).sum(axis=1)
    several = (count > 1) & (whole > 0)
    freedom = np.where(several, count - 1, 0)
    if not freedom.sum():
        return np.asarray(WAITING_SCATTER * middle if waiting else TIMERS * whole)
    squares = np.zeros(len(rest))
    squares[several] = np.nanvar(rest[several], axis=1) * count[several]
    best, errors = -np.inf, TIMERS * whole
    for basis in (whole, np.maximum(middle, OTHERS_NEGLIGIBLE * whole)):
        positive = np.where(basis > 0, basis, 1.0)
        variance = max(float((squares / positive**2).sum() / freedom.sum()), 1e-12)
        likely = -(freedom * np.log(positive)).sum() - freedom.sum() / 2 * np.log(variance)
        if likely > best:
            best, errors = likely, np.sqrt(variance) * basis
    loss = np.where(count > 2, MEDIAN_LOSS, 1.0)
    return np.asarray(np.hypot(errors, REPEATED * middle) * loss / np.sqrt(np.maximum(count, 1)))


def _hypotheses(
    names: tuple[str, ...], points: Array, waiting: bool, nodes: Array | None, begins: tuple[float, ...]
) -> Hypotheses:
    """A constant, with a term of the ranks, of another parameter that varied, or of both.

    Cores that are `waiting` do so for the system, which takes a share of everything else, and for processes on other
    nodes where `nodes` (n,) are known, from the first or any of `begins` on. What nobody measured of the work, or ranks
    wait for each other as they share it, is a share of everything else too.
    """
    varied = {name for name, column in zip(names, points.T, strict=True) if len(np.unique(column)) > 2}
    late = [LATE.format(first) for first in begins]
    over = (*names, *late, NODES, REST)
    launched, growing = "ranks", "ranks" in varied
    if waiting and nodes is not None:
        launched, growing = NODES, len(np.unique(nodes)) > 1
    starts = dict(LAUNCH) if waiting else {**LAUNCH, SHARED: RARE_TERM}
    launch = {term(over, {launched: factor}): odds for factor, odds in starts.items() if growing}
    if nodes is not None and launched != NODES and len(np.unique(nodes)) > 1:
        launch[term(over, {NODES: (1.0, 0.0, 0.0)})] = 0.0
    for name in late if growing else ():
        launch[term(over, {name: (1.0, 0.0, 0.0)})] = 0.0
    files = {term(over, {name: factor}): 0.0 for name in names if name in varied - {"ranks"} for factor in FILES}
    shared = {term(over, {REST: (1.0, 0.0, 0.0)}): -RARE_TERM if waiting else RARE_TERM}
    return forms(over, launch, files, shared)


def _without_constant(space: Hypotheses) -> Hypotheses:
    """The sums, and each without its constant as well: where noise hides whether there is one, or there is none."""
    bare = space.members.copy()
    bare[:, 0] = -1
    several = (bare >= 0).any(axis=1)
    members = np.concatenate([space.members, bare[several]])
    return Hypotheses(space.terms, members, np.concatenate([space.prior, space.prior[several]]))
