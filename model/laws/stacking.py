"""Candidate laws of kernels' times, weighted by how well each predicted the largest configurations when they were held
out.

Several laws predict a kernel's time: the counted equation, its cost per unit of work, the bandwidth that ranks share,
its own function. Each is learned again without the largest configurations, and predicts them. With S_kl the geometric
mean of the density that law l gave to the held-out times of kernel k, the weights are

    w_kl ~ pi_l S_kl,      pi_l ~ A prior_l + sum_k w_kl

as in stacking on the log score (Yao et al. 2018, Bayesian Analysis 13, 917), with a prior in place of an optimum over
few points, and pi shared by the kernels of the program. The answer is the mixture of all laws' distributions.
Between the measured configurations nothing is extrapolated: there S_kl is of the measured times themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array, Index, ratio
from ranksight.core.records import dataclass
from ranksight.model import priors
from ranksight.model.laws.law import LAWS, LawTimes
from ranksight.model.plaindata import Stored
from ranksight.model.priors import WORTH
from ranksight.model.quantity import EACH_END
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.model.uncertainty.mixture import quantiles

NORMAL = 30.0
"""Degrees of freedom of a law's distribution in the mixture."""
ROUNDS = 20


def places(kernels: Sequence[str], asked: Sequence[str]) -> Index:
    """Where each of `asked` stands in `kernels`, (K,); -1 where it does not."""
    row = {kernel: at for at, kernel in enumerate(kernels)}
    return np.array([row.get(kernel, -1) for kernel in asked], dtype=np.intp)


@dataclass(frozen=True)
class Weights(Stored):
    """Weights of the laws of each kernel."""

    kernels: tuple[str, ...]
    laws: tuple[str, ...]
    weight: Array  # (K, l)
    common: Array  # (l,): pi, for kernels that are not listed; a law that is not listed has its prior
    _sizes = "kernels:k laws:l weight:kl>=0 common:l!"

    def of(self, kernels: Sequence[str], laws: Sequence[str]) -> Array:
        """Weights (K, l) of some kernels and laws."""
        row = {kernel: at for at, kernel in enumerate(self.kernels)}
        column = {law: at for at, law in enumerate(self.laws)}
        rows = np.vstack([self.weight, self.common])[[row.get(name, len(row)) for name in kernels]]
        result = np.empty((len(kernels), len(laws)))
        for at, law in enumerate(laws):
            result[:, at] = rows[:, column[law]] if law in column else LAWS[law].prior
        return result

    def having(self, kernels: Sequence[str], weight: Mapping[str, Array]) -> Weights:
        """The same with other weights (K,) of some kernels, none for a law that is not among `weight`."""
        laws = tuple(dict.fromkeys((*self.laws, *weight)))
        rest = tuple(np.array(self.kernels, dtype=object)[places(kernels, self.kernels) < 0].tolist())
        theirs = np.stack([np.broadcast_to(weight.get(law, 0.0), len(kernels)) for law in laws], axis=1)
        common = Weights((), self.laws, np.zeros((0, len(self.laws))), self.common).of(("",), laws)[0]
        return Weights((*rest, *kernels), laws, np.concatenate([self.of(rest, laws), theirs]), common)

    def judged(self, kernels: Sequence[str], scores: Mapping[str, Array]) -> Weights:
        """The same where laws of some kernels have further logarithmic scores (K,), worth as much as one held-out set.
        Weights of kernels that no law has one of stay."""
        laws, table = tuple(scores), np.array(list(scores.values())).reshape(len(scores), -1).T
        rows = np.flatnonzero(np.isfinite(table).any(axis=1))
        if not len(rows):
            return self
        some, table = tuple(kernels[row] for row in rows.tolist()), table[rows]
        # A law that says nothing of some runs is no better than the worst that does.
        table = np.where(np.isfinite(table), table, np.nanmin(table, axis=1, keepdims=True))
        weight = self.of(some, laws) * np.exp(table - table.max(axis=1, keepdims=True))
        weight /= weight.sum(axis=1, keepdims=True)
        return self.having(some, dict(zip(laws, weight.T, strict=True)))

    def without(self, law: str) -> Weights:
        """The same weights of all other laws, and none of this one."""
        names = self.laws if law in self.laws else (*self.laws, law)
        missing = ((0, 0), (0, len(names) - len(self.laws)))
        keep = np.array([name != law for name in names])
        weight = np.pad(self.weight, missing) * keep
        total = weight.sum(axis=1, keepdims=True)
        return Weights(
            self.kernels, names, weight / np.where(total > 0, total, 1.0), np.pad(self.common, missing[1]) * keep
        )

    def __post_init__(self) -> None:
        # Of no kernels, a file holds an empty list.
        object.__setattr__(self, "weight", self.weight.reshape(len(self.kernels), len(self.laws)))

    def _fits(self) -> bool:
        return len(set(self.laws)) == len(self.laws)


PRIOR = Weights((), (), np.zeros((0, 0)), np.zeros(0))
"""Weights before anything was held out: every law's prior."""


def learn_weights(kernels: tuple[str, ...], scores: Mapping[str, Array]) -> Weights:
    """Weights from the logarithmic scores (K,) of each law, NaN where a law did not predict a kernel.

    Kernels to which the same laws apply share pi: what holds of kernels with counters says nothing of messages.
    """
    laws = tuple(scores)
    table = np.stack([scores[law] for law in laws], axis=1)
    prior = np.array([LAWS[law].prior for law in laws])
    prior = prior / prior.sum()
    known = np.isfinite(table)
    weight = np.broadcast_to(prior, table.shape).copy()
    common = prior
    patterns, group = np.unique(known, axis=0, return_inverse=True)
    largest = 0
    for at, pattern in enumerate(patterns):
        rows = np.flatnonzero(np.asarray(group).reshape(-1) == at)
        if not pattern.any():
            continue
        each, share = _shared(table[np.ix_(rows, pattern)], prior[pattern] / prior[pattern].sum())
        weight[rows] = 0.0
        weight[np.ix_(rows, pattern)] = each
        if len(rows) > largest:
            largest, common = len(rows), prior.copy()
            common[pattern] = share * prior[pattern].sum()
    return Weights(kernels, laws, weight, common)


def _shared(score: Array, prior: Array) -> tuple[Array, Array]:
    """Weights (K, l) of laws with scores (K, l), and pi (l,)."""
    share, weight = prior, np.zeros(score.shape)
    for _ in range(ROUNDS):
        each = score + np.log(share)
        weight = np.exp(each - each.max(axis=1, keepdims=True))
        weight = weight / weight.sum(axis=1, keepdims=True)
        share = (WORTH * prior + weight.sum(axis=0)) / (WORTH + len(score))
    return weight, share


def log_score(law: LawTimes, kernels: tuple[str, ...], truth: Array) -> Array:
    """Mean logarithm (K,) of the density that a law gave to ln of `truth` (K, k), NaN where it gave none; nothing is
    asked where `truth` is zero, as a message's time on one rank is."""
    truth = np.where(truth > 0, truth, np.nan)
    result = np.full(len(kernels), np.nan)
    rows = places(law.kernels, kernels)
    centre, down, up = (part[rows] for part in (law.time.centre, law.time.down, law.time.up))
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = np.log(truth) - centre
    down, up = np.hypot(down, priors.REPEATED), np.hypot(up, priors.REPEATED)
    t = gap / np.where(gap < 0, down, up)
    nu = priors.FREEDOM
    constant = special.gammaln((nu + 1) / 2) - special.gammaln(nu / 2) - 0.5 * np.log(nu * np.pi)
    density = constant - (nu + 1) / 2 * np.log1p(t**2 / nu) + np.log(2 / (down + up))
    known = np.isfinite(density) & law.answers[rows] & (rows >= 0)[:, None]
    wanted = np.isfinite(truth).sum(axis=1)
    # Of a law that predicts only some of what was held out nothing is known.
    full = (known.sum(axis=1) == wanted) & (wanted > 0)
    result[full] = np.where(known, density, 0.0).sum(axis=1)[full] / wanted[full]
    return result


def mix(kernels: tuple[str, ...], laws: Mapping[str, LawTimes], weights: Array) -> tuple[Forecast, Array]:
    """The mixture of the laws with `weights` (K, l, k), a row a kernel, and the weight of each law there, (l, K, k)."""
    names = tuple(laws)
    count = next(iter(laws.values())).time.centre.shape[1]
    shape = (len(names), len(kernels), count)
    centre, down, up = np.zeros(shape), np.ones(shape), np.ones(shape)
    share = np.zeros(shape)
    for at, law in enumerate(laws.values()):
        rows = places(law.kernels, kernels)
        use = law.answers[rows] & (rows >= 0)[:, None]
        for target, part in zip((centre, down, up), (law.time.centre, law.time.down, law.time.up), strict=True):
            target[at] = np.where(use, part[rows], target[at])
        share[at] = np.where(use, weights[:, at], 0.0)
    total = share.sum(axis=0)
    known = total > 0
    share = share / np.where(known, total, 1.0)
    free = np.full(shape, NORMAL)
    middle = quantiles((0.5,), share, centre, np.hypot((down + up) / 2, forecast.ROUNDING), free)[0]
    low = quantiles((EACH_END,), share, centre, np.hypot(down, forecast.ROUNDING), free)[0]
    high = quantiles((1 - EACH_END,), share, centre, np.hypot(up, forecast.ROUNDING), free)[0]
    average = (share * centre).sum(axis=0)
    between = (share * (centre - average) ** 2).sum(axis=0)
    within = (share * ((down + up) / 2) ** 2).sum(axis=0)
    form = ratio(between, between + within, 0.0)
    value, lower, upper = (np.where(known, np.exp(part), np.nan) for part in (middle, low, high))
    status = np.where(known, forecast.OK, forecast.NO_DATA)
    reason = np.where(known, "", forecast.REASONS[forecast.NO_DATA]).astype(object)
    return Forecast(value, np.fmin(lower, value), np.fmax(upper, value), status, reason, form).judged(), share
