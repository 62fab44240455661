"""What else grows with the ranks where domains get no fuller: messages, imbalance, work that every rank repeats.

The law of shared bandwidth knows of nothing that grows from one full domain to many. Over the configurations whose
fullest domain is as full as it ever was, measured times T follow those of the law, L, and what adds to them:

    ln T = ln L + s + b ln(P / P_0) + ln(1 + a h) + noise,    h = g(P) L_0 / (g(P_0) L),

with P_0 the most ranks measured, a what was added there in parts of the law's time, g = 1, log2 P, sqrt P or P, and b a
drift. What adds to a part that shrinks as 1 / P grows against it as P g(P), which no slope over few runs says. s and b
are normal and are integrated over in closed form; a and g are taken through a grid and weighed by the evidence of the
times, so that all forms that the runs cannot distinguish are in the interval, which is a quantile of the mixture.

Times alone, from one domain that may have been full from the first run on, do not show whether work is divided: a full
interface, a serial part and weak scaling look the same. Times on several domains are then not predicted.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.records import dataclass
from ranksight.model import priors
from ranksight.model.plaindata import Stored
from ranksight.model.quantity import TAIL, Quantity
from ranksight.model.uncertainty.mixture import UNKNOWN, quantiles

FORMS = (np.ones_like, np.log2, np.sqrt, np.positive)
"""g."""
LEAST = 0.01
"""Scatter below which none is believed of a few times."""
MINOR = 1e-4
"""Weight below which a component is left out, in that of the largest."""
NORMAL = 1e6
"""Degrees of freedom of what is normal."""
FEW = 9
"""Numbers of ranks whose quantiles bracket those at many."""
PIECE = 300_000
"""Components x configurations worked on at once."""


@dataclass(frozen=True)
class Beyond(Stored):
    """What K kernels do beyond the ranks measured, from their n configurations with the fullest domains."""

    active: int  # ranks in the fullest domain
    ranks: Array  # (n,)
    nodes: Array  # (n,)
    law: Array  # (K, n): times by the law
    left: Array  # (K, n): logarithm of the measured over those times
    scatter: Array  # (K,): of the logarithm around the law
    guessed: Mask  # (K,): kernels of which it is unknown how their work is divided
    whole: Mask  # (K,): those that are whole programs
    _sizes = "active:>=1 ranks:n>=1 nodes:n>=1 law:kn left:kn scatter:k! guessed:k whole:k"

    def take(self, times: Quantity, ranks: Array, nodes: Array, active: Index) -> Quantity:
        """The times (K, k) of the law, with what else grows; their 90 % interval is that of the mixture."""
        rows, where = np.flatnonzero(self.known), np.flatnonzero(active == self.active)
        if not len(rows) or not len(where):
            return times
        at = np.ix_(rows, where)
        low, middle, high = self._added(np.exp(times.centre[at]), ranks[where], nodes[where])
        centre, down, up = times.centre.copy(), times.down.copy(), times.up.copy()
        centre[at] += middle
        down[at], up[at] = np.hypot(down[at], (middle - low) / TAIL), np.hypot(up[at], (high - middle) / TAIL)
        return Quantity(centre, down, up)

    @cached_property
    def known(self) -> Mask:
        """Kernels (K,) known at two numbers of ranks and more."""
        ranks = np.where(np.isfinite(self.left), self.ranks, np.nan)
        with np.errstate(invalid="ignore"):
            return np.asarray(np.fmax.reduce(ranks, axis=1) > np.fmin.reduce(ranks, axis=1))

    @cached_property
    def _learned(self) -> _Learned:
        """What the times say of every kernel of :attr:`known`."""
        at = self.known
        return _Learned.of(self.ranks, self.nodes, self.law[at], self.left[at], self.scatter[at])

    def _added(self, law: Array, ranks: Array, nodes: Array) -> Array:
        """Quantiles (3, T, k) of 5, 50 and 95 % of ln of time over `law` (T, k), of the kernels of :attr:`known`."""
        learned = self._learned
        several = self.whole[self.known] & (np.maximum(learned.nodes.max(axis=1), nodes.max()) > 1)
        weight = learned.weight(several)
        probabilities = (0.05, 0.5, 0.95)
        # Quantiles are smooth in the ranks: those at some numbers bracket those at the others.
        few = _spread_out(ranks)
        rest = np.setdiff1d(np.arange(len(ranks)), few)
        result = np.empty((3, *law.shape))
        result[..., few] = learned.quantiles(probabilities, weight, law[:, few], ranks[few])
        if len(rest):
            x = np.log(ranks)
            basis = np.polynomial.chebyshev.chebvander(2 * (x - x.min()) / np.ptp(x) - 1, len(few) - 2)
            start = result[..., few] @ np.linalg.pinv(basis[few]).T @ basis[rest].T
            result[..., rest] = learned.quantiles(probabilities, weight, law[:, rest], ranks[rest], start)
        return result

    def _fits(self) -> bool:
        return bool((self.law[np.isfinite(self.left)] > 0).all())


_ADDED = np.geomspace(0.003, 30.0, 25)
"""Grid of a, with a uniform prior."""
_SIZES = np.concatenate([[0.0], _ADDED])


def _grown(ranks: Array) -> Array:
    """g of each form, (h, ...) for `ranks` (...)."""
    return np.array([form(ranks) for form in FORMS])


def _spread_out(ranks: Array) -> Index:
    """Some of many numbers of ranks (k,) that are spread out over them; all where they are few."""
    x = np.log(ranks)
    if len(ranks) < 3 * FEW or not np.ptp(x) > 0:
        return np.arange(len(ranks))
    wanted = x.min() + np.ptp(x) * (1 - np.cos(np.pi * np.arange(FEW) / (FEW - 1))) / 2
    return np.unique(np.abs(x - wanted[:, None]).argmin(axis=1))


@dataclass(frozen=True)
class _Learned:
    """What T kernels say of c hypotheses: sizes a (s) and forms (h), in this order."""

    last: Array  # (T,): most ranks of a kernel
    nodes: Array  # (T, n): nodes of its configurations
    law: Array  # (T,): time by the law at the first
    size: Array  # (h, T): g where a kernel had most ranks
    evidence: Array  # (T, c): logarithm of the likelihood but for what is the same of all hypotheses
    mean: Array  # (T, c, 2): of s and b
    cover: Array  # (T, 2, 2): their covariance

    @classmethod
    def of(cls, ranks: Array, nodes: Array, law: Array, left: Array, scatter: Array) -> _Learned:
        """From times by the law and the logarithm of the measured over them, (T, n)."""
        known, rows = np.isfinite(left), np.arange(len(law))
        most = np.where(known, ranks, 0.0).argmax(axis=1)
        last, law_at_most = ranks[most], law[rows, most]
        size = _grown(last)
        x = np.where(known, np.log(ranks / last[:, None]), 0.0)
        grown = _grown(ranks)[:, None, :] / np.maximum(size, 1e-300)[..., None]
        h = np.where(known, grown * law_at_most[:, None] / np.where(known, law, 1.0), 0.0)
        y = np.where(known, left, 0.0)
        z = y - np.log1p(_SIZES[:, None, None, None] * h)
        z = np.moveaxis(z.reshape(-1, *y.shape), 0, 1)
        square, count = (z * z).sum(axis=2), known.sum(axis=1)
        moments = np.stack([z.sum(axis=2), np.einsum("tcn,tn->tc", z, x)], axis=2)
        crossed = np.array([[count, x.sum(axis=1)], [x.sum(axis=1), (x * x).sum(axis=1)]])
        noise = np.maximum(scatter, LEAST) ** 2
        before = np.diag([1 / priors.BEYOND_LEVEL**2, 1 / priors.DRIFT**2])
        cover = np.linalg.inv(np.moveaxis(crossed / noise, 2, 0) + before)
        moment = moments / noise[:, None, None]
        mean = np.einsum("tci,tij->tcj", moment, cover)
        evidence = -0.5 * (square / noise[:, None] - (mean * moment).sum(axis=2))
        return cls(last, np.where(known, nodes, 1.0), law_at_most, size, evidence, mean, cover)

    def weight(self, several: Mask) -> Array:
        """Weights (T, c) of the hypotheses, without the minor ones; `several` (T,) marks whole programs on several
        nodes."""
        nothing = np.array(priors.NOTHING_ADDS)[several.astype(np.intp)][:, None]
        before = np.concatenate([nothing, np.repeat((1 - nothing) / len(_ADDED), len(_ADDED), axis=1)], axis=1)
        before = np.repeat(before / len(FORMS), len(FORMS), axis=1)
        weight = self.evidence + np.log(before)
        weight = np.exp(weight - weight.max(axis=1, keepdims=True))
        weight = np.where(weight > MINOR, weight, 0.0)
        return np.asarray(weight / weight.sum(axis=1, keepdims=True))

    def quantiles(
        self, probabilities: tuple[float, ...], weight: Array, law: Array, ranks: Array, start: Array = UNKNOWN
    ) -> Array:
        """Quantiles (p, T, k) of mixtures with `weight` (T, c) of the hypotheses at `ranks` (k,), looked for from
        `start` (p, T, k) on."""
        result = np.empty((len(probabilities), *law.shape))
        start = np.broadcast_to(start, result.shape)
        # Kernels with as many hypotheses next to each other, as many as memory takes.
        count = (weight > 0).sum(axis=1)
        order = np.argsort(count, kind="stable")
        while len(order):
            size = max(1, PIECE // (len(ranks) * int(count[order[0]])))
            some, order = order[:size], order[size:]
            which = np.argsort(-weight[some], axis=1, kind="stable")[:, : int(count[some].max())]
            centre, spread = self.at(some, which, law[some], ranks)
            result[:, some] = quantiles(
                probabilities,
                np.broadcast_to(np.take_along_axis(weight[some], which, axis=1).T[..., None], centre.shape),
                centre,
                spread,
                np.full(centre.shape, NORMAL),
                start[:, some],
            )
        return result

    def at(self, some: Index, which: Index, law: Array, ranks: Array) -> tuple[Array, Array]:
        """Centres and spreads (d, r, k) of hypotheses `which` (r, d) of the kernels `some` (r,).

        `law` (r, k): times by the law where it is asked, at `ranks` (k,).
        """
        size, form = np.unravel_index(which.T, (len(_SIZES), len(FORMS)))
        ahead = np.log(ranks / self.last[some, None])
        grown = _grown(ranks)[:, None, :] / np.maximum(self.size[:, some], 1e-300)[..., None]
        grown = grown * self.law[some, None] / law
        mean = self.mean[some, which.T]
        growth = np.log1p(_SIZES[size][..., None] * grown[form, np.arange(len(some))])
        at = np.stack([np.ones_like(ahead), ahead], axis=1)
        spread = np.sqrt(np.einsum("tik,tij,tjk->tk", at, self.cover[some], at))
        centre = mean[..., :1] + mean[..., 1:] * ahead + growth
        return centre, np.broadcast_to(spread, centre.shape)
