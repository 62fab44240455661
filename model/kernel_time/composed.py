"""Cycles as instructions and waiting for loads, of kernels whose loads were counted and whose stalls were not.

    c = r(u) (i CPI_exec + BF_mem W_m),    W_m = sum_(l >= m) n_l l_l,    0 <= BF_mem <= 1

CPI_exec and BF_mem are learned together from the cycles of the runs, by least squares of relative errors. The loads of
each level are one composition (:mod:`ranksight.model.kernel_time.composition`), so that a working set that leaves a
cache beyond the runs changes the cycles there; its hypotheses are averaged by how well they meet loads and cycles. From
which level m on loads are waited for is a kind of work (:mod:`ranksight.model.kernel_time.perwork`): those of the
levels before it were hidden in the runs. Where the loads of these change beyond the runs, as a working set sinks into
the next cache, no run shows whether they are: cycles are then uncertain by what they would wait with the same BF_mem.
What is left is a rate r close to one, by whose evidence the kinds are averaged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranksight.core.arrays import Array, Index, log
from ranksight.core.metrics import LEVELS
from ranksight.model.kernel_time.composition import Composition
from ranksight.model.plaindata import Stored
from ranksight.model.priors import REPEATED
from ranksight.model.quantity import Quantity

KINDS = tuple(f"waiting from {name} on" for name in LEVELS)
"""Kinds of work, m of them."""
LEAST_CPI = 1 / 8
"""Cycles of an instruction without waiting, at least: no core completes more than eight a cycle."""


@dataclass(frozen=True)
class Composed(Stored):
    """CPI_exec and BF_mem of r kernels by m kinds of work, with the h hypotheses of a composition each (absent ones of
    weight 0)."""

    rows: Index  # (r,): among all kernels
    execution: Array  # (r, m, h): CPI_exec
    blocking: Array  # (r, m, h): BF_mem
    weight: Array  # (r, m, h)
    x: Array  # (n,): ln work per rank of the runs
    hidden: Array  # (r, m, h, n): cycles of loads there that are not waited for, of an instruction

    def at(
        self, compositions: list[Composition], x: Array, capacities: Array, latencies: Array
    ) -> tuple[list[Quantity], Array]:
        """ln of cycles per instruction, without r, (r, k) by each kind, and what part of them are waiting for each
        level, (m, 4, r, k).

        `compositions` (r of them): loads per instruction; `x` (k,): ln work per rank; `capacities` (2, 3, k);
        `latencies` (4, k).
        """
        shape = len(KINDS), len(self.rows), len(x)
        centre, deviation, waits = np.empty(shape), np.empty(shape), np.empty((len(KINDS), 4, *shape[1:]))
        nearest = np.abs(x[:, None] - self.x).argmin(axis=1)
        for at, composition in enumerate(compositions):
            cycles, hidden = levels_of(composition, x, capacities, latencies)
            parts = (self.execution, self.blocking, self.weight, self.hidden)
            execution, blocking, weight, before = (part[at, :, : cycles.shape[1]] for part in parts)
            waiting = blocking[..., None, None] * cycles
            unseen = blocking[..., None] * np.abs(hidden - before[..., nearest])
            total = execution[..., None] + waiting.sum(axis=2)
            logs = np.log(total)
            centre[:, at] = np.einsum("mh,mhk->mk", weight, logs)
            squares = (logs - centre[:, at, None]) ** 2 + (unseen / total) ** 2
            square = np.einsum("mh,mhk->mk", weight, squares)
            deviation[:, at] = np.sqrt(square)
            waits[:, :, at] = np.einsum("mh,mhlk->mlk", weight, waiting / total[:, :, None])
        return [Quantity(*each) for each in zip(centre, deviation, deviation, strict=True)], waits

    def _fits(self) -> bool:
        shape = self.weight.shape
        numbers = (self.execution, self.blocking, self.weight)
        return (
            self.execution.shape == self.blocking.shape == shape
            and shape[:2] == (len(self.rows), len(KINDS))
            and self.hidden.shape == (*shape, len(self.x))
            and bool(np.isfinite(self.hidden).all() and np.isfinite(self.x).all() and len(self.x) > 0)
            and len(shape) == 3
            and all(bool(np.isfinite(part).all() and (part >= 0).all()) for part in numbers)
            and bool((self.execution[self.weight > 0] > 0).all())
        )


def levels_of(composition: Composition, x: Array, capacities: Array, latencies: Array) -> tuple[Array, Array]:
    """Cycles that loads of an instruction wait at each level, by each kind and hypothesis, (m, h, 4, k), and the sum of
    those that they do not, (m, h, k)."""
    waited = (np.arange(4) >= np.arange(len(KINDS))[:, None])[:, None, :, None]
    cycles = composition.per_work(x, capacities) * latencies
    return waited * cycles, (~waited * cycles).sum(axis=2)


def learn_composed(
    rows: Index, compositions: list[Composition], cpi: Array, x: Array, capacities: Array, latencies: Array
) -> Composed:
    """Learn CPI_exec and BF_mem of the kernels `rows` from their cycles per instruction `cpi` (r, n), NaN where
    missing; other parameters as of :meth:`Composed.at`, at n configurations."""
    most = max(len(each.weight) for each in compositions)
    execution, blocking, weight = np.zeros((3, len(rows), len(KINDS), most))
    every = np.zeros((*weight.shape, len(x)))
    for at, composition in enumerate(compositions):
        known = np.isfinite(cpi[at])
        waiting, hidden = levels_of(composition, x, capacities, latencies)
        core, blocked, misfit = _least_squares(waiting[..., known].sum(axis=2), cpi[at, known])
        fit = -0.5 * known.sum() * np.log(misfit + REPEATED**2) + log(composition.weight)
        share = np.exp(fit - fit.max(axis=1, keepdims=True))
        share = share / share.sum(axis=1, keepdims=True)
        for part, values in ((execution, core), (blocking, blocked), (weight, share), (every, hidden)):
            part[at, :, : values.shape[1]] = values
    return Composed(rows, execution, blocking, weight, x, every)


def _least_squares(waiting: Array, cpi: Array) -> tuple[Array, Array, Array]:
    """CPI_exec and BF_mem (m, h) of waiting (m, h, n) and CPI (n,), and mean squares of relative errors (m, h); least
    squares with BF_mem from 0 to 1 and CPI_exec from :data:`LEAST_CPI` on."""
    one, other = 1 / cpi, waiting / cpi
    aa, ab, bb = (one**2).sum(), (one * other).sum(axis=2), (other**2).sum(axis=2)
    a, b = one.sum(), other.sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        blocked = (aa * b - ab * a) / (aa * bb - ab**2)
        blocked = np.clip(np.where(aa * bb - ab**2 > 1e-9 * aa * bb, blocked, 0.0), 0.0, 1.0)
        execution = np.maximum((a - ab * blocked) / aa, LEAST_CPI)
        # With a bound of execution, the waiting that is best next to it.
        bounded = np.clip(np.nan_to_num((b - ab * execution) / bb), 0.0, 1.0)
    blocked = np.where(execution > LEAST_CPI, blocked, bounded)
    misfit = ((execution[..., None] * one + blocked[..., None] * other - 1) ** 2).mean(axis=2)
    return execution, blocked, misfit
