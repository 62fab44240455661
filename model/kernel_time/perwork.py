"""Quantities of kernels as work times a rate: cycles as instructions times CPI, stalls as waiting times BF_mem.

    ln y(x) = ln w(x) + ln r_w(u(x))

What counts as the work w is a hypothesis as well: instructions, floating-point operations (which waiting cannot raise),
the work per rank itself, or nothing. Each has a rate (:mod:`ranksight.model.kernel_time.rates`); as all of them
predict the same y, their marginal likelihoods compare, and the answers are averaged by posterior weight.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ranksight.core import special
from ranksight.core.arrays import Array
from ranksight.core.records import dataclass
from ranksight.model.kernel_time.rates import Rates
from ranksight.model.plaindata import Some
from ranksight.model.quantity import Quantity, mix


@dataclass(frozen=True)
class PerWork(Some):
    """A quantity of K kernels per unit of each of a kinds of work."""

    names: tuple[str, ...]  # of the kinds of work
    prior: Array  # (a, K)
    """Logarithms of their prior weights; minus infinity, stored as NaN, where a kernel does not have one."""
    rates: tuple[Rates, ...]  # one a kind, of K kernels each
    _sizes = "names:a prior:ak rates:a"

    @classmethod
    def learn(
        cls,
        names: tuple[str, ...],
        prior: Array,
        logs: Array,
        error: Array,
        works: Array,
        inputs: Array,
        variants: tuple[tuple[bool, ...], ...],
    ) -> PerWork:
        """Learn the rates of ln y = `logs` (K, n), with standard errors `error` (K, n), per ln w = `works` (a, K,
        n)."""
        error = np.where(np.isfinite(logs), error, 0.0)
        rates = tuple(Rates(inputs, logs - work, error, variants) for work in works)
        # Only a kind of work that was counted wherever y was can be compared with the others.
        full = np.isfinite(logs)[None] & ~np.isfinite(works)
        return cls(names, np.where(full.any(axis=2), np.nan, prior), rates)

    @cached_property
    def weights(self) -> Array:
        """Posterior weights of the kinds of work, (a, K)."""
        prior = np.where(np.isfinite(self.prior), self.prior, -np.inf)
        each = prior + np.stack([rate.evidence for rate in self.rates])
        total = special.logsumexp(each, axis=0)  # -inf where no kind of work was counted: no weight is more than 0
        return np.asarray(np.exp(each - np.where(np.isfinite(total), total, 0.0)))

    def at(self, works: list[Quantity], inputs: Array) -> Quantity:
        """ln y (K, k) at `inputs` (k, d), where the kinds of work are `works`."""
        parts = []
        for work, rate in zip(works, self.rates, strict=True):
            mean, spread = rate.at(inputs)
            parts.append(work.moved(mean).wider(spread))
        return mix(parts, np.broadcast_to(self.weights[..., None], (len(parts), *parts[0].centre.shape)))

    def _fits(self) -> bool:
        shapes = {rate.values.shape for rate in self.rates}
        return len(shapes) < 2 and all(kernels == self.prior.shape[1] for kernels, _ in shapes)


NOT_COUNTED = PerWork((), np.zeros((0, 0)), ())
"""Where nothing was counted that a quantity could be per unit of, or the quantity itself was not."""
