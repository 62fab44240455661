"""Which level of the memory hierarchy serves a kernel's loads, as its working set changes.

A kernel's loads are one composition: a constant part n_l0 per unit of work at each level, and a stream of amplitude a
whose working set is b x, with x the work per rank. The share of the stream that misses a cache of capacity C is

    m(x) = 1 / (1 + (C / (b x))^p)

so that level l serves n_l / w = n_l0 + a (m_{l-1} - m_l), with m_0 = 1 and m_4 = 0. All levels share a, b and p: what
leaves one level arrives at the next, at the capacity of the machine. A cache that cores share offers each of them the
capacity over the cores of its domain, or over the ranks at work; both are hypotheses. b and p are searched on a grid;
for each of its points the amplitudes are non-negative least squares in closed form; the best point is refined with
lmfit. Miss shares of this form are stack distance distributions of one scale (Mattson et al. 1970, IBM Systems Journal
9, 78).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ranksight.model import priors
from ranksight.model.plaindata import Stored

if TYPE_CHECKING:
    import lmfit

Array = NDArray[np.float64]

SHARPEST = 16.0
"""Largest p of the refinement."""
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
    """Capacities that a rank has of each cache.

    Attributes
    ----------
    sizes : (3,)
        Bytes of an instance.
    shared_by : (3,)
        Cores that share an instance.
    latencies : (4,)
        Cycles of a load served by each level and by memory.
    """

    sizes: Array
    shared_by: Array
    latencies: Array

    def capacities(self, active: Array) -> Array:
        """Bytes (2, 3, k) that a rank has where `active` (k,) ranks work in its domain: an even share of the cores, and
        of the ranks at work."""
        even = np.broadcast_to(self.sizes / self.shared_by, (len(active), 3))
        working = self.sizes / np.minimum(self.shared_by, np.maximum(active, 1.0)[:, None])
        return np.stack([even, working]).transpose(0, 2, 1)

    @classmethod
    def of(cls, platform: Any, latencies: Array) -> Caches | None:
        """Of a :class:`ranksight.platforms.Platform`; None where it has no cache. A level that a machine lacks is as
        large as the one before."""
        held = list(platform.caches)[:3]
        if not held:
            return None
        held += [held[-1]] * (3 - len(held))
        sizes, shared = ([float(getattr(cache, name)) for cache in held] for name in ("capacity", "shared_by"))
        return cls(np.array(sizes), np.array(shared), latencies)

    def _fits(self) -> bool:
        parts = (self.sizes, self.shared_by, self.latencies)
        return [part.shape for part in parts] == [(3,), (3,), (4,)] and all((part > 0).all() for part in parts)


@dataclass(frozen=True)
class Composition(Stored):
    """Hypotheses of one kernel's loads by level, h of them.

    Attributes
    ----------
    constant : (h, 4)
        n_l0 per unit of work.
    amplitude, scale, sharpness : (h,)
        a, ln b and p.
    shared : (h,) int
        Which of :meth:`Caches.capacities`.
    weight : (h,)
    error : (h,)
        Root mean square error relative to the latency-weighted sum.
    """

    constant: Array
    amplitude: Array
    scale: Array
    sharpness: Array
    shared: NDArray[np.intp]
    weight: Array
    error: Array

    def per_work(self, x: Array, capacities: Array) -> Array:
        """Loads of each level per unit of work (h, 4, k) at ln x (k,) with `capacities` (2, 3, k)."""
        shares = _shares(self.scale, self.sharpness, x, capacities[self.shared])
        return np.asarray(self.constant[:, :, None] + self.amplitude[:, None, None] * shares)

    def _fits(self) -> bool:
        parts = {name: getattr(self, name) for name in _PARTS}
        count = len(self.weight)
        return (
            1 <= count <= KEPT
            and all(part.shape == ((count, 4) if name == "constant" else (count,)) for name, part in parts.items())
            and all(np.isfinite(part).all() for part in parts.values())
            and bool(((self.shared >= 0) & (self.shared <= 1)).all())
        )


_PARTS = ("constant", "amplitude", "scale", "sharpness", "shared", "weight", "error")


def fit_composition(loads: Array, x: Array, capacities: Array, latencies: Array) -> Composition:
    """Hypotheses of one kernel's loads by level, weighted by how well they fit.

    Parameters
    ----------
    loads : (4, n)
        Loads of each level per unit of work; NaN counts as none.
    x : (n,)
        ln of the work per rank.
    capacities : (2, 3, n)
    latencies : (4,)
        Cycles: errors count as they matter for the waiting time.
    """
    loads = np.nan_to_num(loads)
    waiting = latencies @ loads
    each = latencies[:, None] / np.where(waiting > 0, waiting, 1.0)
    scale, sharpness, shared = _grid(x, capacities)
    shares = _shares(scale, sharpness, x, capacities[shared])
    constant, amplitude = _amplitudes(loads, shares, each)
    # A stream that moves nothing within the runs is none that they can show.
    moves = amplitude > 0
    constant, amplitude, scale, sharpness = (part[moves] for part in (constant, amplitude, scale, sharpness))
    shared = shared[moves]
    still = _still(loads, each)
    held = Composition(constant, amplitude, scale, sharpness, shared, amplitude, amplitude)
    error = _error(held, loads, x, capacities, each)
    if len(error):
        for which in np.unique(shared).tolist():
            best = int(np.argmin(np.where(held.shared[: len(error)] == which, error[: len(held.shared)], np.inf)))
            refined = _refined(held, best, loads, x, capacities, each)
            held, error = _joined(held, refined), np.append(error, _error(refined, loads, x, capacities, each))
    alone = _error(still, loads, x, capacities, each)
    n = len(x)
    fit = -0.5 * n * np.log(np.append(error, alone) ** 2 + FLOOR**2)
    # All streams share the prior of there being one.
    none = priors.NO_STREAM
    prior = np.append(np.full(len(error), np.log((1 - none) / max(len(error), 1))), np.log(none))
    weight = np.exp(fit + prior - (fit + prior).max())
    every = _joined(held, still)
    kept = np.argsort(-weight, kind="stable")[:KEPT]
    weight = weight[kept] / weight[kept].sum()
    return Composition(
        every.constant[kept],
        every.amplitude[kept],
        every.scale[kept],
        every.sharpness[kept],
        every.shared[kept],
        weight,
        np.append(error, alone)[kept],
    )


def _grid(x: Array, capacities: Array) -> tuple[Array, Array, NDArray[np.intp]]:
    """ln b, p and which capacities, one a hypothesis."""
    low = float(np.log(capacities.min()) - x.max()) - BEYOND
    high = float(np.log(capacities.max()) - x.min()) + BEYOND
    places = np.linspace(low, high, max(2, int(np.ceil((high - low) * PER_FOLD))))
    both = (0, 1) if not np.allclose(capacities[0], capacities[1]) else (0,)
    mesh = np.array([(b, p, c) for b in places for p in priors.SHARPNESS for c in both])
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


def _amplitudes(loads: Array, shares: Array, each: Array) -> tuple[Array, Array]:
    """Non-negative n_l0 (h, 4) and a (h,) of least squares with weights `each` (4, n)."""
    squares = each**2
    total = squares.sum(axis=1)
    y0 = (squares * loads).sum(axis=1) / total
    s0 = (squares * shares).sum(axis=2) / total
    free = np.ones(shares.shape[:2], dtype=bool)
    constant, amplitude = np.zeros(shares.shape[:2]), np.zeros(len(shares))
    for _ in range(len(loads) + 1):
        # Where n_l0 is free it is the mean of what the stream leaves; where it would be negative it is held at zero.
        y = np.where(free[..., None], loads - y0[:, None], loads)
        s = np.where(free[..., None], shares - s0[..., None], shares)
        power = (squares * s * s).sum(axis=(1, 2))
        with np.errstate(invalid="ignore", divide="ignore"):
            amplitude = np.where(
                power > 1e-12 * (squares * shares**2).sum(axis=(1, 2)), (squares * s * y).sum(axis=(1, 2)) / power, 0.0
            )
        amplitude = np.maximum(np.nan_to_num(amplitude), 0.0)
        constant = np.where(free, y0 - amplitude[:, None] * s0, 0.0)
        if not (constant < 0).any():
            break
        free &= constant >= 0
    return np.maximum(constant, 0.0), amplitude


def _error(held: Composition, loads: Array, x: Array, capacities: Array, each: Array) -> Array:
    rest = (held.per_work(x, capacities) - loads) * each
    return np.asarray(np.sqrt((rest**2).sum(axis=1).mean(axis=1)))


def _still(loads: Array, each: Array) -> Composition:
    """No stream: every level serves a constant number of loads per unit of work."""
    constant = (each**2 * loads).sum(axis=1) / (each**2).sum(axis=1)
    one = np.zeros(1)
    return Composition(constant[None], one, one, one + 1, np.zeros(1, dtype=np.intp), one + 1, one)


def _refined(held: Composition, best: int, loads: Array, x: Array, capacities: Array, each: Array) -> Composition:
    """The best hypothesis with b and p between the points of the grid."""
    one = np.array([best])

    def at(parameters: lmfit.Parameters) -> Composition:
        scale, sharpness = (np.array([float(parameters[name])]) for name in ("scale", "sharpness"))
        shares = _shares(scale, sharpness, x, capacities[held.shared[one]])
        constant, amplitude = _amplitudes(loads, shares, each)
        return Composition(constant, amplitude, scale, sharpness, held.shared[one], amplitude, amplitude)

    def residual(parameters: lmfit.Parameters) -> Array:
        return np.asarray(((at(parameters).per_work(x, capacities)[0] - loads) * each).ravel())

    import lmfit  # takes as long as the rest of a prediction

    start = lmfit.Parameters()
    start.add("scale", float(held.scale[best]), min=float(held.scale[best]) - 2, max=float(held.scale[best]) + 2)
    start.add("sharpness", float(held.sharpness[best]), min=0.5, max=SHARPEST)
    return at(lmfit.minimize(residual, start, method="least_squares", max_nfev=200).params)


def _joined(first: Composition, second: Composition) -> Composition:
    return Composition(*(np.concatenate([getattr(first, name), getattr(second, name)]) for name in _PARTS))
