"""How memory traffic changes with the ranks of a domain, apart from how it changes with the work.

Two things move the bytes that a kernel reads per unit of its work. One goes on with every further rank, on any domain:
smaller working sets are held better by caches, which shows in what is written back as well as in what is read, and what
every rank reads besides its own share (halos, replicated tables) adds up. The other ends where a domain is full and
begins anew on the next: cores that find the memory interface busy claim the lines they overwrite without reading them
(Intel's SpecI2M: Laukemann, Gruber, Hager, Oryspayev, Wellein, "CloverLeaf on Intel Multi-Core CPUs: A Case Study in
Write-Allocate Evasion", 2023), or share a cache with more others. With b_r and b_w bytes read and written, w work per
rank, P ranks and n of them in a domain of N cores, the two say

    domain:  ln(b_r / w) = a_r + g ln w + c_1 (n - 1)/(N - 1) + c_2 ln n / ln N,    ln(b_w / w) = a_w + g ln w
    ranks:   ln(b_r / w) = a_r + g ln w + d (P - 1)/(max P - 1),  d >= 0,            ln(b_w / w) = a_w + g ln w

Runs on one domain cannot distinguish them where reads grow. Both are then averaged, weighted by how well they fit.
"""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.records import dataclass
from ranksight.model import priors

NOISE = 0.01
"""Relative scatter of counted traffic, at least."""
FEWEST = 4
"""Different numbers of ranks in a domain needed to determine c_1 and c_2."""


@dataclass(frozen=True)
class Occupancy:
    """What the ranks of a domain do to the reads of K kernels.

    `effect` (K, 2): c_1 and c_2; zeros where the measurements cannot determine them. `belief` (K,): probability that it
    is the domain, not the ranks, that changes the reads.
    """

    effect: Array
    belief: Array


def shapes(active: Index, cores: int) -> Array:
    """The two functions of the ranks in a domain, (k, 2)."""
    n, most = np.minimum(active, cores).astype(np.float64), max(cores, 2)
    return np.stack([(n - 1) / (most - 1), np.log(n) / np.log(most)], axis=1)


def factor(effect: Array, active: Index, cores: int) -> Array:
    """What the domain multiplies the reads by, for kernels with `effect` (K, 2) at k configurations, (K, k)."""
    return np.asarray(np.exp(effect @ shapes(active, cores).T), dtype=np.float64)


def occupancy(reads: Array, writes: Array, work: Array, ranks: Array, active: Index, cores: int) -> Occupancy:
    """Learn what the ranks of a domain do to the reads.

    `reads`, `writes`, `work` (K, n): means per rank, NaN where missing; `writes` all NaN where only the sum was
    counted. `ranks`, `active` (n,).
    """
    count = len(reads)
    if len(np.unique(np.minimum(active, cores))) < FEWEST:
        return Occupancy(np.zeros((count, 2)), np.ones(count))
    with np.errstate(invalid="ignore", divide="ignore"):
        target = np.log(np.concatenate([reads, writes], axis=1) / np.tile(work, 2))
        logs = np.log(work)
    good = np.isfinite(target)
    logs = np.where(np.isfinite(logs), logs - np.nanmean(np.where(np.isfinite(logs), logs, 0.0)), 0.0)
    n = reads.shape[1]
    first = np.concatenate([np.ones(n), np.zeros(n)])
    domain = np.concatenate([shapes(active, cores), np.zeros((n, 2))])
    further = np.concatenate([(ranks - 1) / max(ranks.max() - 1, 1), np.zeros(n)])[:, None]
    common = np.stack(
        [np.broadcast_to(first, (count, 2 * n)), np.broadcast_to(1 - first, (count, 2 * n)), np.tile(logs, 2)], axis=2
    )

    def with_columns(extra: Array) -> Array:
        return np.concatenate([common, np.broadcast_to(extra, (count, *extra.shape))], axis=2)

    by_domain, cost_domain = _solve(with_columns(domain), target, good)
    by_ranks, cost_ranks = _solve(with_columns(further), target, good)
    _, cost_plain = _solve(common, target, good)
    cost_ranks = np.where(by_ranks[:, 3] < 0, cost_plain, cost_ranks)
    known = good[:, :n].sum(axis=1) >= FEWEST
    belief = 1 / (1 + np.exp(np.clip(0.5 * (cost_domain - cost_ranks), -50, 50)))
    return Occupancy(np.where(known[:, None], by_domain[:, 3:], 0.0), np.where(known, belief, 1.0))


def _solve(design: Array, target: Array, good: Mask) -> tuple[Array, Array]:
    """Coefficients under the prior, and minus twice the logarithm of the evidence, but for what all designs share."""
    weight = good / NOISE**2
    precision = np.array([1e-6, 1e-6, *[1 / priors.TRAFFIC**2] * (design.shape[2] - 2)])
    left = np.einsum("ksi,ks,ksj->kij", design, weight, design) + np.diag(precision)
    right = np.einsum("ksi,ks,ks->ki", design, weight, np.where(good, target, 0.0))
    solved = np.linalg.solve(left, right[..., None])[..., 0]
    misfit = (weight * (np.where(good, target, 0.0) - np.einsum("ksi,ki->ks", design, solved)) ** 2).sum(axis=1)
    # Scatter beyond the least is the data's own: a misfit is measured by its size, not by the least.
    scale = np.maximum(misfit / np.maximum(good.sum(axis=1), 1), 1.0)
    _, volume = np.linalg.slogdet(left)
    cost = misfit / scale + good.sum(axis=1) * np.log(scale)
    return solved, cost + (precision * solved**2)[:, 2:].sum(axis=1) + volume - np.log(precision[2:]).sum()
