"""The cost of a message and of a byte: times of messages that were counted, where no network is described.

    T = a + o m + G B,     a, o, G >= 0

with m messages and B bytes of a rank (Hockney 1994; LogGP's o and G, Alexandrov et al. 1995). Where neighbours are all
there, or a matrix decides the partners, the counts say so and no function of the ranks does. Which of the three parts
there are is a hypothesis, weighed by its marginal likelihood.
"""

from __future__ import annotations

from functools import cached_property
from itertools import product
from typing import ClassVar

import numpy as np

from ranksight.core.arrays import Array, Mask, log, ratio
from ranksight.core.experiment import WHOLE
from ranksight.core.records import dataclass
from ranksight.model.kernel_time.sums import NORMAL, ends
from ranksight.model.laws.law import LAWS, Law, LawTimes
from ranksight.model.laws.view import Asked, View
from ranksight.model.plaindata import Stored
from ranksight.model.priors import REPEATED
from ranksight.model.process.covariance import beyond
from ranksight.model.process.posterior import turned
from ranksight.model.process.prevalence import learned
from ranksight.model.quantity import Quantity
from ranksight.model.series.computation import waiting
from ranksight.model.series.reducing import located
from ranksight.model.uncertainty.mixture import Components

COUNTED = ("messages", "bytes_sent")
FEWEST = 3
"""Configurations with messages that a kernel needs."""
ASSUMED = 2.0
"""Degrees of freedom of the scatter that is assumed before times were seen."""
RIDGE = 1e-9
"""Part of the normal equations that keeps parts apart that are in proportion."""
PARTS: Mask = np.array([used for used in product((False, True), repeat=3) if any(used)], dtype=bool)
"""Which of a, o and G there are in each hypothesis, (h, 3)."""


@dataclass(frozen=True)
class MessageCosts(Stored):
    """What K kernels were measured to take at n configurations, with what they sent."""

    kernels: tuple[str, ...]
    points: Array  # (n, m)
    time: Array  # (K, n): seconds; NaN where nothing was sent
    error: Array  # (K, n): relative standard errors
    sent: Array  # (K, 2, n): :data:`COUNTED`; 0 where it was not counted
    _sizes = "kernels:k points:nm>0 time:kn error:kn sent:k2n>=0"

    @cached_property
    def _fitted(self) -> tuple[Array, Array, Array, Array]:
        """Coefficients (K, h, 3), their covariances (K, h, 3, 3), scatter (K, h) and weights (K, h), by least squares
        of relative differences."""
        known = np.isfinite(self.time)
        parts = np.concatenate([np.ones((len(known), 1, known.shape[1])), self.sent], axis=1)
        design = np.where(known[:, None], parts / np.where(known, self.time, 1.0)[:, None], 0.0)
        some: Mask = np.asarray((design > 0).any(axis=2))
        real = PARTS[None] & some[:, None]
        scale = np.where(real, design.max(axis=2)[:, None], 1.0)
        scaled = np.where(real[..., None], design[:, None] / scale[..., None], 0.0)
        normal = scaled @ scaled.swapaxes(2, 3) + np.eye(3) * np.where(real, RIDGE, 1.0)[..., None]
        inverse = np.linalg.inv(normal)
        costs = (inverse @ scaled.sum(axis=3)[..., None])[..., 0]
        left = known[:, None] - np.einsum("khq,khqn->khn", costs, scaled)
        count, size = known.sum(axis=1)[:, None], real.sum(axis=2)
        before = np.hypot(np.nanmean(np.where(known, self.error, np.nan), axis=1), REPEATED)[:, None] ** 2
        square = (left**2).sum(axis=2) + ASSUMED * before
        freedom = count - size + ASSUMED
        score = -freedom / 2 * np.log(square) - size * np.log(count) / 2
        usable = (costs >= -RIDGE).all(axis=2) & (real == PARTS).all(axis=2) & (freedom > ASSUMED)
        score = np.where(usable, score, -np.inf)
        best = score.max(axis=1, keepdims=True)
        weight = np.exp(score - np.where(np.isfinite(best), best, 0.0))
        variance = square / np.maximum(freedom, 1.0)
        covariance = inverse * variance[..., None, None] / (scale[..., None] * scale[..., None, :])
        costs = np.maximum(costs, 0.0) / scale
        total = weight.sum(axis=1, keepdims=True)
        return costs, covariance, np.sqrt(variance), ratio(weight, total, 0.0)

    def at(self, points: Array, messages: Quantity, sent: Quantity) -> Quantity:
        """Logarithms of seconds (K, k) at `points` (k, m), where kernels send so many messages and bytes, (K, k) each;
        the cost may turn beyond the runs, as all laws may."""
        costs, covariance, scatter, weight = self._fitted
        counts = [np.exp(np.where(np.isfinite(each.centre), each.centre, -np.inf)) for each in (messages, sent)]
        parts = np.stack([np.ones_like(counts[0]), *counts], axis=1)
        spent = costs[..., None] * parts[:, None]
        time = spent.sum(axis=2)
        logs, runs = np.log(points), np.log(self.points)
        nearest = np.square(logs[:, None] - runs).sum(axis=2).argmin(axis=1)
        then = np.concatenate([np.ones((len(costs), 1, len(points))), self.sent[..., nearest]], axis=1)
        used_both = np.einsum("hq,hr->hqr", PARTS, PARTS)
        unsure = np.einsum("kqi,khqr,kri->khi", parts, covariance * used_both, parts)
        unsure = np.sqrt(ratio(np.maximum(unsure, 0.0), time**2, 0.0))
        # Costs are not negative: the time grows by no more than the part that grows most, nor less than another.
        grown = np.where((parts > 0) & (then > 0), log(parts / np.where(then > 0, then, 1.0)), np.nan)[:, None]
        most, least = (end.reduce(np.where(PARTS[..., None], grown, np.nan), axis=2) for end in (np.fmax, np.fmin))
        unsure = np.fmin(unsure, (most - least) / 2 + scatter[..., None])
        spread = np.hypot(unsure, scatter[..., None])
        used = np.broadcast_to(weight[..., None], time.shape) * (time > 0)
        each = (used, log(time), spread, np.full(time.shape, NORMAL))
        straight = Components(*(np.moveaxis(part, 1, 0) for part in each))
        near = np.moveaxis(log((costs[..., None] * then[:, None]).sum(axis=2)), 1, 0)
        turn, scattered = learned().turn, np.sqrt((weight * scatter**2).sum(axis=1))
        widened = turned(straight, near, beyond(logs, runs), turn.probability(scattered), turn)
        # Messages and their bytes are more or fewer together.
        share = [(weight[..., None] * ratio(spent[:, :, q], time, 0.0)).sum(axis=1) for q in (1, 2)]
        down, up = (
            sum(part * np.nan_to_num(getattr(one, side)) for part, one in zip(share, (messages, sent), strict=True))
            for side in ("down", "up")
        )
        return Quantity(*ends(straight, widened)).wider(down, up)

    def _fits(self) -> bool:
        known = np.isfinite(self.time)
        return bool(known.any(axis=1).all() and (self.time[known] > 0).all())


class CostPerMessage(Law):
    """A constant, and what a message and a byte cost."""

    prior: ClassVar[float] = 0.45
    needs: ClassVar[str] = "a time, and messages or bytes sent, without counted computation; 3 configurations that send"
    formula: ClassVar[str] = "T = a + o m + G B"
    source: ClassVar[str] = "Hockney, Parallel Computing 20 (1994) 389"
    kind: ClassVar[type[MessageCosts]] = MessageCosts
    asks: ClassVar[tuple[str, ...]] = COUNTED
    learns_from: ClassVar[tuple[str, ...]] = COUNTED

    def fit(self, view: View) -> MessageCosts | None:
        """The times of kernels that send, with what they sent."""
        series = view.series
        rows, messages = series.rows, waiting(series) - {WHOLE}
        kernels = [
            kernel
            for kernel, name in rows
            if name == "time" and kernel in messages and any((kernel, count) in rows for count in COUNTED)
        ]
        if not kernels or not (series.points > 0).all():
            return None
        middle, error = located(series)
        nothing = np.zeros(len(series.points))
        sent = np.array(
            [
                [middle[rows[kernel, name]] if (kernel, name) in rows else nothing for name in COUNTED]
                for kernel in kernels
            ]
        )
        index = series.indices([(kernel, "time") for kernel in kernels])
        time, sent = middle[index], np.nan_to_num(sent)
        time = np.where((time > 0) & (sent > 0).any(axis=1), time, np.nan)
        some = np.isfinite(time).sum(axis=1) >= FEWEST
        if not some.any():
            return None
        chosen = tuple(np.array(kernels, dtype=object)[some])
        return MessageCosts(chosen, series.points, time[some], np.nan_to_num(error[index][some]), sent[some])

    def at(self, learned: MessageCosts, asked: Asked) -> LawTimes:
        """Times where messages or bytes are known."""
        messages, sent = (asked.values(name, learned.kernels) for name in COUNTED)
        time = learned.at(asked.points, messages, sent)
        known = (np.isfinite(messages.centre) | np.isfinite(sent.centre)) & np.isfinite(time.centre)
        return LawTimes(learned.kernels, time, known, ("",) * len(learned.kernels))


LAWS.register("cost per message")(CostPerMessage())
