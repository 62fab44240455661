"""How far verdicts rest on samples: the evidence of kernels at the ends of what their samples tell.

A value of n samples of worth w lies between ``w max(n - z sqrt(n), 0)`` and ``w (n + z sqrt(n) + z^2)``, with z the
normal quantile of the verdicts' probability; where none fell that is up to three. At configurations that were not
measured a kernel has as many samples as in the mean of those that were.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ranksight.model.diagnosis.causes import SURE
from ranksight.model.diagnosis.counted import Counted
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.resource.resource import LEVELS

if TYPE_CHECKING:
    from ranksight.model.diagnosis.evidence import Evidence

Array = NDArray[np.float64]
STORES = ("store_misses_l1", "store_misses_l2", "store_misses_l3")
SMALL = 0.05
"""Part of a kernel's time that memory may hold up without its samples being worth a word."""
REACH = float(ndtri((1 + SURE) / 2))


def with_samples(evidence: Evidence, kept: Counted, fitted: Fitted) -> Evidence:
    """The evidence with the fewest samples behind it, and tilted to the ends of what samples tell."""
    kernels, points = evidence.kernels, evidence.points
    rows = {key: i for i, key in enumerate(zip(fitted.kernels, fitted.metrics, strict=True))}

    def number(name: str, value: Array) -> Array:
        """Samples (K, k) of a metric of such values; infinite where it was not sampled."""
        index = np.array([rows.get((kernel, name), -1) for kernel in kernels], dtype=np.intp)
        usual = np.where(index >= 0, fitted.samples[index], np.inf)[:, None]
        with np.errstate(invalid="ignore"):
            here = value / kept.worth_at(kernels, name, points)
        return np.asarray(np.where(np.isfinite(here) & np.isfinite(usual), here, usual), dtype=np.float64)

    unknown = np.full(evidence.computing.shape, np.nan)
    timed = np.fmin(number("time", evidence.computing), number("cycles", evidence.computing * evidence.frequency))
    counts = number("instructions", evidence.instructions)
    loads = np.stack([number(name, evidence.loads[at]) for at, name in enumerate(LEVELS)])
    stores = np.min([number(name, unknown) for name in STORES], axis=0)
    stalls = np.where(evidence.counted[:, None], number("stall_cycles", unknown), np.inf)
    waiting = np.nan_to_num(evidence.waiting)
    most = np.take_along_axis(loads[1:], waiting.argmax(axis=0)[None], 0)[0]
    held = evidence.factor * waiting.sum(axis=0) > SMALL * evidence.computing
    fewest = np.fmin(np.fmin(timed, counts), np.where(held, np.fmin(stalls, most), np.inf))
    if not np.isfinite(fewest).any():
        return evidence
    worth = np.stack([kept.worth_at(kernels, name, points) for name in LEVELS])
    ends = []
    for side in (-1.0, 1.0):
        moved = evidence.loads * np.stack([_end(each, side) for each in loads])
        none = (evidence.loads == 0) & np.isfinite(worth) & (side > 0)
        end = replace(
            evidence,
            computing=evidence.computing * _end(timed, side),
            instructions=evidence.instructions * _end(counts, -side),
            loads=np.where(none, REACH**2 * np.nan_to_num(worth), moved),
            stores=evidence.stores * _end(stores, side),
        )
        ends.append(end)
    return replace(evidence, samples=fewest, tilted=tuple(ends))


def _end(samples: Array, side: float) -> Array:
    """What a value of so many samples is multiplied by at one end of what they tell."""
    number = np.where(np.isfinite(samples), np.maximum(samples, 1e-12), 1.0)
    apart = REACH / np.sqrt(number)
    end = 1 + apart + apart**2 if side > 0 else np.maximum(1 - apart, 0.0)
    return np.where(np.isfinite(samples), end, 1.0)
