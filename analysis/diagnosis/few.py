"""How far verdicts rest on samples: the evidence of kernels drawn again and again as their samples may have fallen.

n samples of worth w give a value whose law, before anything else is known, is w times a gamma variate of shape n + 1/2
(Poisson counts with Jeffreys' prior). At configurations that were not measured a kernel has as many samples as in the
mean of those that were. A drawn time is no shorter than its work can take on the machine, as far as its samples allow:
no core retires more than W instructions a cycle, no level delivers more than its bandwidth, and what a kernel takes
beyond the waits of all its loads is execution.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ranksight.analysis.diagnosis.causes import REACH
from ranksight.analysis.diagnosis.counted import Counted
from ranksight.analysis.diagnosis.execution import WIDTH
from ranksight.core import special
from ranksight.core.arrays import Array
from ranksight.core.records import dataclass
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.resource.equation import LEVELS

if TYPE_CHECKING:
    from ranksight.analysis.diagnosis.evidence import Evidence

PLACES = (np.outer(np.arange(32), 5 ** np.arange(8)) % 32 + 0.5) / 32
"""Points (32, 8) of the unit cube at which samples are drawn: Korobov's lattice of 32 points with the generator 5."""
STORES = ("store_misses_l1", "store_misses_l2", "store_misses_l3")
SMALL = 0.05
"""Part of a kernel's time that memory stalls up to which its samples are not mentioned."""


def with_samples(evidence: Evidence, stored: Counted, fitted: Fitted) -> Evidence:
    """The evidence with the fewest samples behind it, and drawn as often as there are :data:`PLACES`, as its
    samples may have fallen."""
    kernels, points = evidence.kernels, evidence.points
    rows = fitted.rows

    def number(name: str, value: Array) -> Array:
        """Samples (K, k) of a metric of such values; infinite where it was not sampled."""
        index = np.array([rows.get((kernel, name), -1) for kernel in kernels], dtype=np.intp)
        usual = np.where(index >= 0, fitted.samples[index], np.inf)[:, None]
        with np.errstate(invalid="ignore"):
            each_worth = value / stored.worth_at(kernels, name, points)
        return np.asarray(np.where(np.isfinite(each_worth) & np.isfinite(usual), each_worth, usual), dtype=np.float64)

    unknown = np.full(evidence.computing.shape, np.nan)
    timed = np.fmin(number("time", evidence.computing), number("cycles", evidence.computing * evidence.frequency))
    counts = number("instructions", evidence.instructions)
    loads = np.stack([number(name, evidence.loads[at]) for at, name in enumerate(LEVELS)])
    stores = np.min([number(name, unknown) for name in STORES], axis=0)
    stalls = np.where(evidence.counted[:, None], number("stall_cycles", unknown), np.inf)
    waiting = np.nan_to_num(evidence.waiting)
    most = np.take_along_axis(loads[1:], waiting.argmax(axis=0)[None], 0)[0]
    stalled = evidence.factor * waiting.sum(axis=0) > SMALL * evidence.computing
    fewest = np.fmin(np.fmin(timed, counts), np.where(stalled, np.fmin(stalls, most), np.inf))
    if not np.isfinite(fewest).any():
        return evidence
    worth = np.stack([stored.worth_at(kernels, name, points) for name in LEVELS])
    behind = Samples(timed, counts, loads, stores, worth)
    return replace(evidence, samples=fewest, drawn=tuple(draws(evidence, behind)))


@dataclass(frozen=True)
class Samples:
    """Samples behind the values of K kernels at k configurations; infinite where a value was not sampled."""

    time: Array  # (K, k)
    instructions: Array  # (K, k)
    loads: Array  # (4, K, k): of what each level served
    stores: Array  # (K, k)
    worth: Array  # (4, K, k): what a sample of these loads is worth; NaN where it is not known


def draws(evidence: Evidence, samples: Samples) -> Iterator[Evidence]:
    """The evidence at lattice points of the law of its samples, :data:`PLACES`."""
    empty = (evidence.loads == 0) & np.isfinite(samples.worth)
    longest = evidence.computing * np.where(np.isfinite(samples.time), _longest(samples.time), 1.0)
    for time, cycle, count, store, *each in PLACES:  # the same for all kernels, which are judged one by one
        moved = evidence.loads * np.stack([_factor(n, at) for n, at in zip(samples.loads, each, strict=True)])
        first = special.gammaincinv(0.5, np.array(each))[:, None, None] * np.nan_to_num(samples.worth)
        one = replace(
            evidence,
            computing=evidence.computing * _factor(samples.time, time),
            cpi=evidence.cpi * _factor(samples.time, cycle),
            instructions=evidence.instructions * _factor(samples.instructions, count),
            loads=np.where(empty, first, moved),
            stores=evidence.stores * _factor(samples.stores, store),
        )
        yield _possible(one, longest)


def _factor(samples: Array, at: float) -> Array:
    """A value of so many samples is multiplied by this at one quantile of its law."""
    number = np.where(np.isfinite(samples), np.maximum(samples, 1e-12), 1.0)
    return np.where(np.isfinite(samples), special.gammaincinv(number + 0.5, at) / number, 1.0)


def _longest(number: Array) -> Array:
    """Upper end of the interval of a value of so many samples, over the value."""
    half_width = REACH / np.sqrt(np.maximum(number, 1e-12))
    return np.asarray(1 + half_width + half_width**2)


def _possible(drawn: Evidence, longest: Array) -> Evidence:
    """The draw moved to where its work can be done in its time, as far as the `longest` that its samples allow."""
    if drawn.ceilings is None:
        return drawn
    clock, ceilings = drawn.frequency, drawn.ceilings
    bytes_ = drawn.traffic / (ceilings.share(drawn.cores) * ceilings.slack[:, None])[1:, None, :]
    least = np.nan_to_num(np.fmax.reduce([*bytes_, drawn.instructions / (WIDTH * clock)], axis=0))
    computing = np.maximum(drawn.computing, np.minimum(least, longest))
    with np.errstate(invalid="ignore", divide="ignore"):
        beyond = (computing - drawn.longest) * clock / drawn.instructions
    return replace(drawn, computing=computing, cpi=np.where(drawn.cpi < beyond, beyond, drawn.cpi))
