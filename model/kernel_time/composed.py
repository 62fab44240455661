"""Cycles as instructions and waiting for loads, of kernels whose loads were counted and whose stalls were not.

    c = r(u) (i CPI_exec x^a + BF_mem x^b W_m),    W_m = sum_(l >= m) n_l l_l,    0 <= BF_mem x^b <= 1

with x the work per rank over that in the middle of the runs. CPI_exec and BF_mem are rates and change as rates do
(:mod:`ranksight.model.kernel_time.rates`): by powers a and b, which are hypotheses, none of them as likely as any. The
levels of both are learned together from the cycles of the runs, by least squares of relative errors. The loads of each
level are one composition (:mod:`ranksight.model.kernel_time.composition`), so that a working set that leaves a cache
beyond the runs changes the cycles there. From which level m on loads are waited for is a hypothesis too: those of the
levels before it were hidden in the runs. Where the loads of these change beyond the runs, as a working set sinks into
the next cache, no run shows whether they are: cycles are then uncertain by what they would wait with the same BF_mem.
All hypotheses are averaged by how well they meet loads and cycles. What is left is a rate r close to one.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ranksight.core.arrays import Array, Index, log
from ranksight.core.records import dataclass
from ranksight.model.kernel_time.composition import Composition
from ranksight.model.plaindata import Stored
from ranksight.model.priors import RATE_SLOPE, REPEATED
from ranksight.model.quantity import Quantity

LEAST_CPI = 1 / 8
"""Cycles of an instruction without waiting, at least: no core completes more than eight a cycle."""
LEADING = 64
"""Hypotheses of largest weight that cycles are predicted by."""
STEPS = np.linspace(-2.0, 2.0, 9)
"""Powers of rates, in units of :data:`~ranksight.model.priors.RATE_SLOPE`."""


@dataclass(frozen=True)
class Composed(Stored):
    """CPI_exec and BF_mem of r kernels under h hypotheses each (absent ones of weight 0)."""

    rows: Index  # (r,): among all kernels
    execution: Array  # (r, h): CPI_exec at x = 1
    blocking: Array  # (r, h): BF_mem there
    weight: Array  # (r, h)
    powers: Array  # (r, h, 2): a and b
    first: Index  # (r, h): m, the level from which on loads are waited for
    member: Index  # (r, h): of the hypotheses of each composition
    x: Array  # (n,): ln work per rank of the runs
    hidden: Array  # (r, h, n): cycles of loads there that are not waited for, of an instruction
    _sizes = "rows:r execution:rh>0 blocking:rh>=0 weight:rh>=0 powers:rh2! first:rh>=0 member:rh>=0 x:n! hidden:rhn!"

    def at(
        self, compositions: list[Composition], x: Array, capacities: Array, latencies: Array
    ) -> tuple[Quantity, Array]:
        """ln of cycles per instruction, without r, (r, k), and what part of them are waiting for each level, (4, r, k).

        `compositions` (r of them): loads per instruction; `x` (k,): ln work per rank; `capacities` (2, 3, k);
        `latencies` (4, k).
        """
        shape = len(self.rows), len(x)
        centre, deviation, waits = np.empty(shape), np.empty(shape), np.empty((4, *shape))
        nearest = np.abs(x[:, None] - self.x).argmin(axis=1)
        for at, composition in enumerate(compositions):
            every = (composition.per_work(x, capacities) * latencies)[self.member[at]]
            cycles, hidden = _waited(every, self.first[at])
            rate = np.exp(self.powers[at][..., None] * (x - self.x.mean()))
            blocked = np.minimum(self.blocking[at][:, None] * rate[:, 1], 1.0)
            waiting = blocked[:, None] * cycles
            unseen = blocked * np.abs(hidden - self.hidden[at][:, nearest])
            total = self.execution[at][:, None] * rate[:, 0] + waiting.sum(axis=1)
            weight, logs = self.weight[at], np.log(total)
            centre[at] = weight @ logs
            deviation[at] = np.sqrt(weight @ ((logs - centre[at]) ** 2 + (unseen / total) ** 2))
            waits[:, at] = np.einsum("h,hlk->lk", weight, waiting / total[:, None])
        return Quantity(centre, deviation, deviation), waits

    def _fits(self) -> bool:
        return len(self.x) > 0


def _waited(cycles: Array, first: Index) -> tuple[Array, Array]:
    """Cycles (h, 4, k) of loads of the levels from `first` (h,) on, and the sum of those before, (h, k)."""
    waited = (np.arange(4) >= first[:, None])[..., None]
    return cycles * waited, (cycles * ~waited).sum(axis=1)


def learn_composed(
    rows: Index, compositions: list[Composition], cpi: Array, x: Array, capacities: Array, latencies: Array
) -> Composed:
    """Learn CPI_exec and BF_mem of the kernels `rows` from their cycles per instruction `cpi` (r, n), NaN where
    missing; other parameters as of :meth:`Composed.at`, at n configurations."""
    shape = len(rows), LEADING
    execution, blocking, weight = np.ones(shape), np.zeros(shape), np.zeros(shape)
    powers, hidden = np.zeros((*shape, 2)), np.zeros((*shape, len(x)))
    first, member = np.zeros(shape, dtype=np.intp), np.zeros(shape, dtype=np.intp)
    for at, composition in enumerate(compositions):
        known = np.isfinite(cpi[at])
        cycles = composition.per_work(x, capacities) * latencies
        learned = _leading(cycles[..., known], cpi[at, known], (x - x.mean())[known], log(composition.weight))
        for part, values in zip((execution, blocking, weight, powers, first, member), learned, strict=True):
            part[at, : len(values)] = values
        hidden[at] = _waited(cycles[member[at]], first[at])[1]
    return Composed(rows, execution, blocking, weight, powers, first, member, x, hidden)


def _leading(cycles: Array, cpi: Array, logs: Array, prior: Array) -> tuple[Array, Array, Array, Array, Index, Index]:
    """CPI_exec, BF_mem, their weights, powers, first levels and compositions, (c,) each, of the c likeliest of all
    hypotheses.

    `cycles` (g, 4, n) of loads and CPI (n,) at n configurations, `logs` (n,): ln x, `prior` (g,): of the compositions.
    """
    powers, odds = _powers()
    waiting = cycles[:, ::-1].cumsum(axis=1)[:, ::-1].swapaxes(0, 1)  # of each level and those after it
    execution, blocked, misfit = _least_squares(waiting, cpi, np.exp(powers[:, None] * logs))
    fit = -0.5 * len(cpi) * np.log(misfit + REPEATED**2)
    score = fit + prior[:, None, None] + odds[:, None] + odds
    best = np.argsort(-score, axis=None, kind="stable")[:LEADING]
    first, member, core, stall = np.unravel_index(best, score.shape)
    weight = np.exp(score.flat[best] - score.max())
    changes = np.stack([powers[core], powers[stall]], axis=-1)
    return execution.flat[best], blocked.flat[best], weight / weight.sum(), changes, first, member


@cache
def _powers() -> tuple[Array, Array]:
    """Powers that a rate may follow work per rank with, and the logarithms of their odds: none is as likely as all
    others, which are normal."""
    share = np.exp(-(STEPS**2) / 2)
    share /= 2 * share.sum()
    share[len(STEPS) // 2] += 0.5
    return RATE_SLOPE * STEPS, np.log(share)


def _least_squares(waiting: Array, cpi: Array, change: Array) -> tuple[Array, Array, Array]:
    """CPI_exec and BF_mem (m, g, p, p) of waiting (m, g, n) and CPI (n,), and mean squares of relative errors (m, g, p,
    p), where the first and the second change as any of `change` (p, n); least squares with BF_mem from 0 to 1 in all
    runs and CPI_exec from :data:`LEAST_CPI` on."""
    one, other = change / cpi, waiting[:, :, None] * change / cpi
    aa, a = (one**2).sum(axis=1)[:, None], one.sum(axis=1)[:, None]
    ab = np.einsum("an,mgbn->mgab", one, other)
    bb, b = (other**2).sum(axis=3)[:, :, None], other.sum(axis=3)[:, :, None]
    most = 1 / change.max(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        blocked = (aa * b - ab * a) / (aa * bb - ab**2)
        blocked = np.clip(np.where(aa * bb - ab**2 > 1e-9 * aa * bb, blocked, 0.0), 0.0, most)
        execution = np.maximum((a - ab * blocked) / aa, LEAST_CPI)
        # With a bound of execution, the waiting that is best next to it.
        bounded = np.clip(np.nan_to_num((b - ab * execution) / bb), 0.0, most)
    blocked = np.where(execution > LEAST_CPI, blocked, bounded)
    squares = aa * execution**2 + bb * blocked**2 + 2 * ab * execution * blocked - 2 * (a * execution + b * blocked)
    return execution, blocked, np.maximum(squares + len(cpi), 0.0) / len(cpi)
