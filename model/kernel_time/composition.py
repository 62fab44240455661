"""Which level of the memory hierarchy serves a kernel's loads, as its working set changes.

A kernel's loads are one composition: a constant part n_l0 per unit of work at each level, and a stream of amplitude a
whose working set is b x, with x the work per rank. The share of the stream that misses a cache of capacity C is

    m(x) = 1 / (1 + (C / (b x))^p)

so that level l serves n_l / w = n_l0 + a (m_{l-1} - m_l), with m_0 = 1 and m_4 = 0. All levels share a, b and p: what
leaves one level arrives at the next, at the capacity of the machine. A cache that cores share offers each of them the
capacity over the cores of its domain, or over the ranks at work; both are hypotheses. b and p are searched on a grid;
for each of its points the amplitudes are non-negative least squares in closed form; the best points of all kernels are
refined together. Miss shares of this form are stack distance distributions of one scale (Mattson et al. 1970, IBM
Systems Journal 9, 78).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksight.core.arrays import Array, Index
from ranksight.core.records import dataclass
from ranksight.model import priors
from ranksight.model.plaindata import Stored
from ranksight.model.resource.marquardt import least_squares

SHARPNESS_LIMITS = (0.5, 16.0)
"""Smallest and largest p of the refinement."""
REACH = 2.0
"""e-folds of b up to which the refinement goes from a point of the grid."""
AT_ONCE = 256
"""Kernels whose grids are in memory together."""
PER_FOLD = 2.0
"""Points of the grid of b per e-fold."""
BEYOND = 3.0
"""e-folds beyond the measured steps up to which a step is searched."""
FLOOR = 1e-3
"""Relative error of a composition that is never reached below: what counters of real processors are good for."""
KEPT = 12
"""Hypotheses kept of each kernel."""


@dataclass(frozen=True)
class Caches(Stored):
    """Capacities that a rank has of each cache."""

    sizes: Array  # (3,): bytes of an instance
    shared_by: Array  # (3,): cores that share an instance
    latencies: Array  # (4,): cycles of a load served by each level and by memory
    doubt: float = 0.0  # deviation of the logarithm of the capacity that takes effect on a machine without runs
    _sizes = "sizes:3>0 shared_by:3>0 latencies:4>0"

    def __bool__(self) -> bool:
        return bool(self.sizes.any())

    def capacities(self, active: Array) -> Array:
        """Bytes (2, 3, k) that a rank has where `active` (k,) ranks work in its domain: an even share of the cores, and
        of the ranks at work."""
        even = np.broadcast_to(self.sizes / self.shared_by, (len(active), 3))
        working = self.sizes / np.minimum(self.shared_by, np.maximum(active, 1.0)[:, None])
        return np.stack([even, working]).transpose(0, 2, 1)

    @classmethod
    def of(cls, platform: Any, latencies: Array) -> Caches:
        """Of a :class:`ranksight.platforms.Platform`. A level that a machine lacks is as large as the one before."""
        caches = list(platform.caches)[:3]
        if not caches:
            return NO_CACHES
        caches += [caches[-1]] * (3 - len(caches))
        sizes, shared = ([float(getattr(cache, name)) for cache in caches] for name in ("capacity", "shared_by"))
        return cls(np.array(sizes), np.array(shared), latencies)


NO_CACHES = Caches(np.zeros(3), np.ones(3), np.ones(4))
"""Of an unknown machine, or one without."""


@dataclass(frozen=True)
class Composition(Stored):
    """Hypotheses of one kernel's loads by level, h of them."""

    constant: Array  # (h, 4): n_l0 per unit of work
    amplitude: Array  # (h,): a
    scale: Array  # (h,): ln b
    sharpness: Array  # (h,): p
    shared: Index  # (h,): which of :meth:`Caches.capacities`
    weight: Array  # (h,)
    error: Array  # (h,): root mean square error relative to the latency-weighted sum
    _sizes = "constant:h4! amplitude:h! scale:h! sharpness:h! shared:h>=0 weight:h! error:h!"

    def per_work(self, x: Array, capacities: Array) -> Array:
        """Loads of each level per unit of work (h, 4, k) at ln x (k,) with `capacities` (2, 3, k)."""
        shares = _shares(self.scale, self.sharpness, x, capacities[self.shared])
        return np.asarray(self.constant[:, :, None] + self.amplitude[:, None, None] * shares)

    def _fits(self) -> bool:
        return 1 <= len(self.weight) <= KEPT and bool((self.shared <= 1).all())


_PARTS = ("constant", "amplitude", "scale", "sharpness", "shared", "weight", "error")


def fit_compositions(loads: Array, x: Array, capacities: Array, latencies: Array) -> list[Composition]:
    """Hypotheses of every kernel's loads by level, weighted by how well they fit.

    Parameters
    ----------
    loads : (K, 4, n)
        Loads of each level per unit of work; NaN counts as none.
    x : (n,)
        ln of the work per rank.
    capacities : (2, 3, n)
    latencies : (4,)
        Cycles: errors count as they matter for the waiting time.
    """
    loads = np.nan_to_num(loads)
    waiting = np.einsum("l,kln->kn", latencies, loads)
    squares = (latencies[:, None] / np.where(waiting > 0, waiting, 1.0)[:, None]) ** 2
    scale, sharpness, shared = _grid(x, capacities)
    shares = _shares(scale, sharpness, x, capacities[shared])
    grid = _Hypotheses(scale, sharpness, shared, shares)
    pieces = range(0, len(loads), AT_ONCE)
    return [
        composition
        for at in pieces
        for composition in _fit(grid, loads[at : at + AT_ONCE], squares[at : at + AT_ONCE], x, capacities)
    ]


@dataclass(frozen=True)
class _Hypotheses:
    """The grid: of each hypothesis ln b, p, which capacities, and the share (4, n) of the stream by level."""

    scale: Array
    sharpness: Array
    shared: Index
    shares: Array


def _fit(grid: _Hypotheses, loads: Array, squares: Array, x: Array, capacities: Array) -> list[Composition]:
    """Hypotheses of kernels that one set of arrays holds; `squares` (K, 4, n) weigh the squares of errors."""
    count, n = len(loads), len(x)
    q, y, s = (part.swapaxes(0, 1) for part in (squares, loads, grid.shares))
    turned = s.swapaxes(1, 2)
    total, served = q.sum(axis=2)[..., None], (q * y).sum(axis=2)[..., None]
    sums = _Sums(total, served, q @ turned, q @ turned**2, (q * y) @ turned)
    constant, amplitude = sums.least_squares()
    around = (q * y**2).sum(axis=(0, 2))[:, None]
    # A stream that moves nothing within the runs is none that they can show.
    error = np.where(amplitude > 0, np.sqrt(np.maximum(sums.squares(constant, amplitude) + around, 0.0) / n), np.inf)
    # Columns: the points of the grid, the refined ones with each kind of capacity, no stream.
    rows = np.arange(count)
    every = {
        "constant": [constant.transpose(1, 2, 0)],
        "amplitude": [amplitude],
        **{name: [np.broadcast_to(getattr(grid, name), error.shape)] for name in ("scale", "sharpness", "shared")},
        "error": [error],
    }

    def add(**parts: Array) -> None:
        for name, part in parts.items():
            every[name].append(part[:, None])

    for which in range(len(capacities)):
        errors_of = np.where(grid.shared == which, error, np.inf)
        best = errors_of.argmin(axis=1)
        some = np.flatnonzero(np.isfinite(errors_of[rows, best]))
        start = np.stack([grid.scale[best], grid.sharpness[best]], axis=1)
        refined = _Refinement(loads[some], squares[some], x, capacities[which])
        start[some] = refined.best(start[some])
        refined_at, height, rest = refined.at(start[some], np.arange(len(some)))
        levels, heights, errors = np.zeros((count, 4)), np.zeros(count), np.full(count, np.inf)
        levels[some], heights[some], errors[some] = refined_at, height, np.sqrt((rest**2).sum(axis=1) / n)
        kind = np.full(count, which)
        add(constant=levels, amplitude=heights, scale=start[:, 0], sharpness=start[:, 1], shared=kind, error=errors)
    # No stream: every level serves a constant number of loads per unit of work.
    still = (served / total)[..., 0].T
    still_error = np.sqrt((squares * (still[:, :, None] - loads) ** 2).sum(axis=(1, 2)) / n)
    none = np.zeros(count)
    add(constant=still, amplitude=none, scale=none, sharpness=none + 1, shared=none.astype(np.intp), error=still_error)
    parts = {name: np.concatenate(part, axis=1) for name, part in every.items()}
    # All streams share the prior of there being one.
    streams = np.isfinite(parts["error"][:, :-1]).sum(axis=1)
    prior = np.full(parts["error"].shape, np.log(priors.NO_STREAM))
    prior[:, :-1] = np.log((1 - priors.NO_STREAM) / np.maximum(streams, 1))[:, None]
    fit = -0.5 * n * np.log(parts["error"] ** 2 + FLOOR**2) + prior
    parts["weight"] = np.exp(fit - fit.max(axis=1, keepdims=True))
    order = np.argsort(np.where(np.isfinite(parts["error"]), -parts["weight"], np.inf), axis=1, kind="stable")
    result = []
    for at in range(count):
        selected = order[at, : min(KEPT, streams[at] + 1)]
        one = {name: part[at, selected] for name, part in parts.items()}
        one["weight"] = one["weight"] / one["weight"].sum()
        result.append(Composition(**one))
    return result


def _grid(x: Array, capacities: Array) -> tuple[Array, Array, Index]:
    """ln b, p and which capacities, one a hypothesis."""
    low = float(np.log(capacities.min()) - x.max()) - BEYOND
    high = float(np.log(capacities.max()) - x.min()) + BEYOND
    places = np.linspace(low, high, max(2, int(np.ceil((high - low) * PER_FOLD))))
    sharing = (0, 1) if not np.allclose(capacities[0], capacities[1]) else (0,)
    mesh = np.array([(b, p, c) for b in places for p in priors.SHARPNESS for c in sharing])
    return mesh[:, 0], mesh[:, 1], mesh[:, 2].astype(np.intp)


def _shares(scale: Array, sharpness: Array, x: Array, capacities: Array) -> Array:
    """Share (h, 4, k) of a stream that each level serves; `capacities` (h, 3, k)."""
    full = (scale[:, None] + x)[:, None] - np.log(capacities)
    missed = 1 / (1 + np.exp(np.clip(-sharpness[:, None, None] * full, -700, 700)))
    # A larger cache misses no more than a smaller one.
    missed = np.minimum.accumulate(missed, axis=1)
    ends = np.ones((len(scale), 1, len(x)))
    edges = np.concatenate([ends, missed, 0 * ends], axis=1)
    return np.asarray(edges[:, :-1] - edges[:, 1:])


@dataclass(frozen=True)
class _Sums:
    """Weighted sums over configurations, levels first: of the weights and the loads (4, ...), of the shares, of their
    squares and of their products with the loads (4, ...)."""

    weights: Array
    loads: Array
    shares: Array
    powers: Array
    products: Array

    def least_squares(self) -> tuple[Array, Array]:
        """Non-negative n_l0 (4, ...) and a (...)."""
        free = np.ones(self.shares.shape, dtype=bool)
        power, product = self.shares**2 / self.weights, self.shares * self.loads / self.weights
        least = 1e-12 * self.powers.sum(axis=0)
        for _ in range(len(free) + 1):
            # Where n_l0 is free it is the mean of what the stream leaves; where it would be negative it is held at 0.
            moved = (self.powers - free * power).sum(axis=0)
            with np.errstate(invalid="ignore", divide="ignore"):
                amplitude = (self.products - free * product).sum(axis=0) / moved
            amplitude = np.maximum(np.nan_to_num(np.where(moved > least, amplitude, 0.0)), 0.0)
            constant = np.where(free, (self.loads - amplitude * self.shares) / self.weights, 0.0)
            if not (constant < 0).any():
                break
            free &= constant >= 0
        return np.maximum(constant, 0.0), amplitude

    def squares(self, constant: Array, amplitude: Array) -> Array:
        """Sums of squared errors (...) but for those of the loads themselves."""
        crossed = constant * amplitude * self.shares - constant * self.loads - amplitude * self.products
        return np.asarray((constant**2 * self.weights + amplitude**2 * self.powers + 2 * crossed).sum(axis=0))


@dataclass(frozen=True)
class _Refinement:
    """Squared errors of m kernels with ln b and p between the points of the grid."""

    loads: Array  # (m, 4, n): of one kernel each, and weights of squared errors
    squares: Array  # (m, 4, n)
    x: Array  # (n,)
    capacities: Array  # (3, n)

    def at(self, point: Array, rows: Index) -> tuple[Array, Array, Array]:
        """n_l0 (r, 4), a (r,) and weighted errors (r, 4 n) of the kernels `rows` (r,) at ln b and p (r, 2)."""
        q, y = self.squares[rows], self.loads[rows]
        capacities = np.broadcast_to(self.capacities, (len(point), 3, len(self.x)))
        shares = _shares(point[:, 0], point[:, 1], self.x, capacities)
        sums = _Sums(*(part.sum(axis=2).T for part in (q, q * y, q * shares, q * shares**2, q * shares * y)))
        constant, amplitude = sums.least_squares()
        rest = (constant.T[..., None] + amplitude[:, None, None] * shares - y) * np.sqrt(q)
        return constant.T, amplitude, rest.reshape(len(point), 4 * len(self.x))

    def best(self, start: Array) -> Array:
        """ln b and p (m, 2) of least squares."""
        low, high = start + np.array([-REACH, 0.0]), start + np.array([REACH, 0.0])
        low[:, 1], high[:, 1] = SHARPNESS_LIMITS
        return least_squares(lambda point, rows: self.at(point, rows)[2], start, low, high)
