"""Four numbers of each kernel from its measured times: what a rank needs alone, and how the domain holds it up.

    core = exp(t_1) work + rho bytes / B_core + exp(t_4) T_min,    memory = bytes / (B_domain exp(t_2)),
    T = contended(core, memory, ranks in the fullest domain, exp(t_3))

t_1 is what a unit of work costs (cycles per instruction, where instructions are the work), t_2 how the kernel's
bandwidth differs from what the platform measured, t_3 the waiting penalty, t_4 what does not shrink with the work. All
but t_1 have a prior; the logarithm of time scatters by Student's law, so that a few configurations that are slow for
reasons of their own do not bend the rest (Lange, Little, Taylor 1989, JASA 84, 881). The modes are least squares
(:mod:`ranksight.model.resource.marquardt`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ranksight.core.arrays import Array, Index, Mask, ratio
from ranksight.core.records import dataclass
from ranksight.model import priors
from ranksight.model.resource.marquardt import derivatives, least_squares

CENTRE = np.array([0.0, 0.0, np.log(0.5), np.log(0.003)])
"""Centres of t before the data: bandwidth as measured on the platform, waiting of half a transfer, three thousandths of
the shortest time that do not shrink."""
WIDTH = np.array([np.inf, 0.15, 0.8, 1.5])
"""Standard deviations of t before the data; that of the bandwidth is :data:`ranksight.model.priors.BANDWIDTH`."""
LEAST = 0.003
"""Relative scatter of times below which none is believed."""
ROUNDS = 3
"""Times that the scatter is learned again from what the mode leaves."""
FOLLOW = 2
"""Parameters that follow the data closely: the cost of work, and bandwidth or penalty."""


@dataclass(frozen=True)
class Known:
    """What K kernels did at n configurations."""

    time: Array  # (K, n): seconds of the slowest rank, NaN where missing
    work: Array  # (K, n): work per rank
    transfer: Array  # (K, n): seconds that one core alone needs for the bytes
    domain: Array  # (K, n)
    """Seconds that the domain needs for one rank's bytes by the platform's bandwidth, or by the largest that was
    reached."""
    active: Index  # (n,)
    spread: float  # standard deviation of t_2 before the data: :data:`ranksight.model.priors.BANDWIDTH`


@dataclass(frozen=True)
class Learned:
    """The mode and its surroundings."""

    mode: Array  # (K, 4)
    covariance: Array  # (K, 4, 4)
    scatter: Array  # (K,): scale of the logarithm's law
    count: Index  # (K,): configurations


def times(mode: Array, work: Array, transfer: Array, domain: Array, floor: Array, active: Index) -> tuple[Array, Array]:
    """Times (K, k) and how busy the interface is, for `mode` (K, 4)."""
    cost, width, penalty, fixed = (np.exp(np.clip(mode[:, i, None], -700, 700)) for i in range(4))
    core = cost * work + transfer + fixed * floor
    return contended(core, domain / width, active[None, :], penalty)


def learn(known: Known) -> Learned:
    """Find the mode of every kernel."""
    good = (known.time > 0) & (known.work > 0) & np.isfinite(known.transfer) & (known.domain >= 0)
    time, work, transfer, domain = (
        np.where(good, each, 1.0) for each in (known.time, known.work, known.transfer, known.domain)
    )
    floor = np.where(good, known.time, np.inf).min(axis=1, keepdims=True)
    width = np.array([np.inf, known.spread, *WIDTH[2:]])
    least = np.where(good, known.active[None, :], np.iinfo(np.intp).max).argmin(axis=1)
    every = np.arange(len(time))
    core = np.maximum(time[every, least] - transfer[every, least], 0.02 * time[every, least])
    start = np.log(core / work[every, least])

    def apart(mode: Array, rows: Index) -> Array:
        predicted, _ = times(mode, work[rows], transfer[rows], domain[rows], floor[rows], known.active)
        return np.where(good[rows], np.log(time[rows]) - np.log(predicted), 0.0)

    def residuals(mode: Array, rows: Index) -> Array:
        """Residuals whose squares are minus twice the logarithm of the posterior, but for constants."""
        scaled = apart(mode, rows) / scatter[rows, None]
        tails = np.sign(scaled) * np.sqrt((priors.FREEDOM + 1) * np.log1p(scaled**2 / priors.FREEDOM))
        return np.concatenate([tails, (mode - CENTRE) / width], axis=1)

    scatter = np.full(len(time), 0.01)
    busiest = np.where(good, known.active * domain / time, 0.0).max(axis=1)
    mode = _grid(lambda mode: (residuals(mode, every) ** 2).sum(axis=1), start, busiest)
    low, high = np.full(mode.shape, -np.inf), np.full(mode.shape, np.inf)
    low[:, 0], high[:, 0] = start - 12.0, start + 3.0
    scatter = _scale(apart(mode, every), good)
    for _ in range(ROUNDS):
        mode = least_squares(residuals, mode, low, high)
        scatter = 0.5 * (scatter + _scale(apart(mode, every), good))
    residual, slope = derivatives(apart, mode, every, high)
    weight = good * (priors.FREEDOM + 1) / (priors.FREEDOM * scatter[:, None] ** 2 + residual**2)
    normal = np.einsum("kni,kn,knj->kij", slope, weight, slope) + np.diag(1 / width**2)
    # A kernel without traffic or with one configuration leaves directions that only the smallest numbers hold.
    covariance = np.asarray(np.linalg.inv(normal + 1e-9 * np.eye(4)), dtype=np.float64)
    return Learned(mode, covariance, scatter, good.sum(axis=1).astype(np.intp))


def _grid(cost: Callable[[Array], Array], start: Array, busiest: Array) -> Array:
    """The best of a coarse grid of bandwidths and penalties for each kernel, as steps get stuck at the law's edge.

    Bandwidths are the platform's, and a little above the largest rate that was reached.
    """
    best = np.tile(CENTRE, (len(start), 1))
    lowest = np.full(len(start), np.inf)
    reached = np.log(np.maximum(busiest, 1e-3))
    for width in (np.zeros(len(start)), reached, reached + 0.03, reached + 0.1):
        for penalty in (0.05, 0.2, 0.5, 1.0, 2.0):
            trial = np.tile(CENTRE, (len(start), 1))
            trial[:, 0], trial[:, 1], trial[:, 2] = start, width, np.log(penalty)
            costs = cost(trial)
            better = costs < lowest
            best, lowest = np.where(better[:, None], trial, best), np.where(better, costs, lowest)
    return best


def _scale(residual: Array, good: Mask) -> Array:
    """Scale of the scatter from the median of the residuals, of which the smallest are left out, as many as parameters
    follow the data (Street, Carroll, Ruppert 1988, The American Statistician 42, 152)."""
    size = np.sort(np.where(good, np.abs(residual), np.inf), axis=1)
    count = good.sum(axis=1)
    skipped = np.minimum(FOLLOW, count - 1)
    at = skipped + (count - skipped - 1) // 2
    return np.asarray(np.maximum(size[np.arange(len(size)), at] / 0.6745, LEAST))


def contended(core: Array, memory: Array, active: Index, penalty: Array) -> tuple[Array, Array]:
    """Time of a rank among `active` ones that share a memory interface, and the share of it that the interface is busy,
    after the multicore ECM model.

    A rank alone needs ``core`` seconds for its work; its memory traffic keeps the interface of the domain busy for
    ``memory`` of them. With n ranks the interface is busy for a share u(n) of the time, and who finds it busy waits a
    penalty p0 longer for each of the others:

        u(1) = memory / core,    T(n) = max(n memory, core + (n - 1) u(n - 1) p0),    u(n) = n memory / T(n)

    so that time grows slowly until the interface has no more to give and linearly from there on (Hofmann, Alappat,
    Hager, Fey, Wellein: "Bridging the Architecture Gap: Abstracting Performance-Relevant Properties of Modern Server
    Processors", Supercomputing Frontiers and Innovations 7(2), 2020, section 4). p0 is given as a multiple of
    ``memory``. Next to an idle interface the recursion can step back by a thousandth; no rank is taken to gain from
    more of them. `core`, `memory`, `penalty`: seconds alone, seconds of the interface, and p0 / memory. `active`: ranks
    that share the interface, 1 or more.
    """
    core, memory, active, penalty = np.broadcast_arrays(core, memory, active, penalty)
    core = np.maximum(core, memory)
    with np.errstate(invalid="ignore", divide="ignore"):
        busy = ratio(memory, core, 0.0)
        time = np.array(core, dtype=np.float64)
        answer, share = time.copy(), busy.copy()
        for n in range(2, int(active.max(initial=1)) + 1):
            time = np.maximum(time, np.maximum(n * memory, core + (n - 1) * busy * penalty * memory))
            busy = ratio(n * memory, time, 0.0)
            of_count = active == n
            answer, share = np.where(of_count, time, answer), np.where(of_count, busy, share)
    return answer, share
