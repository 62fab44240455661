"""What bounds a kernel: shares of its time by cause, and the verdict where one cause stands out.

A kernel's time on the wall is what its mean rank computes, what the busiest rank computes beyond that, and its
messages. What it computes is execution or waiting for a level of memory. Two things show the waiting: the stalls that
are left when execution is known (:mod:`ranksight.analysis.diagnosis.execution`), and the time that the bytes through a
level take at the bandwidth of that level, which no faster execution can undercut (roofline; Williams, Waterman and
Patterson, CACM 52 (2009) 65). The larger of both counts.

Memory stalls a kernel by bandwidth or by latency. With traffic B bytes at bandwidth b and t the time stalled: if B / b
is more than half of t, more loads in flight could not halve it, and bandwidth binds; if it is less, they could, and
latency binds (Little's law).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ranksight.analysis.diagnosis.execution import LONGEST, Execution, execution
from ranksight.analysis.diagnosis.outside import CLOCKS
from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask, ratio
from ranksight.core.records import dataclass
from ranksight.model.resource.counters import CONTRADICT
from ranksight.model.resource.equation import LEVELS

if TYPE_CHECKING:
    from ranksight.analysis.diagnosis.evidence import Evidence


CAUSES = ("compute", "L2", "L3", "memory", "communication", "imbalance", "unknown")
"""What a kernel's time is spent for; ``unknown`` is time of kernels whose counters do not show it."""
VERDICTS = ("compute-bound", "cache-bound", "memory-bound", "latency-bound", "communication-bound", "imbalance-bound",
            "undecided")  # fmt: skip
COMPUTE, CACHE, MEMORY, LATENCY, COMMUNICATION, IMBALANCE, UNDECIDED = range(7)
MOST_USED = 1.05
"""Part of a level's bandwidth that a kernel can be seen to use."""
SURE = 0.9
"""Probability from which a verdict is given."""
REACH = float(special.ndtri((1 + SURE) / 2))
"""Standard deviations of a normal law from its middle to the ends that hold as much of it."""
NETWORK = 1.3
"""Factor either way within which the time of messages is known from LogGP parameters."""
ONE_BY_ONE = 2.0
"""Loads in flight below which a kernel waits for one load after the other."""
MOST = 100.0
"""Times its value that the upper end of a kernel's time is looked at, where the interval is open."""


@dataclass(frozen=True)
class Causes:
    """Shares of K kernels' time at k configurations, and verdicts."""

    share: Array  # (7, K, k): of each of :data:`CAUSES`; `share` sums to one, `low` and `high` hold with 90 %
    low: Array  # (7, K, k)
    high: Array  # (7, K, k)
    verdict: Index  # (K, k): index into :data:`VERDICTS`
    level: Index  # (K, k): 0, 1, 2 for L2, L3 and memory: the level that stalls the kernel most
    used: Array  # (3, K, k)
    """Bytes through each level at its bandwidth, over the kernel's computing time; NaN where unknown."""
    flight: Array  # (K, k)
    """Loads in flight at `level`: cycles that its loads would wait alone over those that they stall the kernel."""
    chance: Array  # (K, k): probability of the verdict's side, execution or memory; NaN where another cause leads
    ahead: Array  # (K, k): probability that memory takes more of the computing time than execution, whatever else leads


def causes_of(evidence: Evidence) -> Causes:
    """Shares and verdicts of what is known.

    Where the data are insufficient for a kernel's time, a verdict stands only if both ends of its interval give it too,
    and none stands where the interval is no more than the value of other configurations;
    where counts or times were sampled, only if it is sure over all that their samples may mean. Where a kernel has no
    sample, so that its time is assumed, only messages and imbalance can be the verdict.
    """
    causes = _judge(evidence)
    if evidence.drawn:
        causes = pooled(causes, [_judge(each) for each in evidence.drawn])
    causes = _without_balance(evidence, _without_cycles(evidence, causes))
    beyond = over_the_roof(evidence, causes) | too_long(evidence, causes) | evidence.halted | evidence.files
    # An assumed time does not tell execution from memory, but it may be small compared with messages and imbalance.
    imputed = np.zeros(beyond.shape, dtype=bool) if evidence.imputed is None else evidence.imputed
    beyond |= imputed & ~np.isin(causes.verdict, (COMMUNICATION, IMBALANCE))
    causes = replace(
        causes, verdict=np.where(beyond, UNDECIDED, causes.verdict), chance=np.where(beyond, np.nan, causes.chance)
    )
    known = evidence.ok & ~imputed
    if known.all():
        return causes
    # A kernel that only communicates does so however long it takes.
    ends = [np.clip(np.nan_to_num(end), 0.0, MOST * evidence.computing) for end in (evidence.low, evidence.high)]
    least, most = (_judge(replace(evidence, computing=end)) for end in ends)
    stands = (least.verdict == causes.verdict) & (most.verdict == causes.verdict)
    stands &= ((evidence.low > 0) | evidence.calls) & evidence.sufficient
    # Counters of which one must be wrong say nothing of causes either.
    stands &= np.array([[CONTRADICT not in str(text) for text in row] for row in evidence.reason], dtype=bool)
    return replace(causes, verdict=np.where(known | stands, causes.verdict, UNDECIDED))


def _without_cycles(evidence: Evidence, causes: Causes) -> Causes:
    """The same with the time of halted cores, and of functions of files, as unknown: cycles are all that execution and
    memory take, at the lowest clock as many times the part of the time."""
    halted, files = evidence.halted, evidence.files
    if not (halted.any() or files.any()):
        return causes
    share, low, high = causes.share.copy(), causes.low.copy(), causes.high.copy()
    busy = share[[0, 1, 2, 3, 6]].sum(axis=0)
    cycles = busy * (1.0 if evidence.running is None else np.nan_to_num(evidence.running))
    inner = share[:4].sum(axis=0)
    share[:4] *= np.where(halted, np.minimum(ratio(cycles, inner, 0.0), 1.0), 1.0)
    low[:4] = np.where(halted, 0.0, low[:4])
    high[:4] = np.where(halted, np.maximum(np.minimum(high[:4], CLOCKS * cycles), share[:4]), high[:4])
    share[4], low[4], high[4] = (np.where(files, 0.0, each[4]) for each in (share, low, high))
    share[6] = np.where(halted | files, 1 - share[:6].sum(axis=0), share[6])
    low[6], high[6] = (np.where(halted | files, share[6], each[6]) for each in (low, high))
    return replace(causes, share=share, low=low, high=high)


def _without_balance(evidence: Evidence, causes: Causes) -> Causes:
    """The same with the imbalance that has no answer as unknown: it may be all that the kernel computes."""
    if evidence.balanced is None or evidence.balanced.all():
        return causes
    share, low, high = causes.share.copy(), causes.low.copy(), causes.high.copy()
    open_ = ~evidence.balanced & (share[5] > 0)
    low[5] = np.where(open_, 0.0, low[5])
    high[5] = np.where(open_, 1 - share[4], high[5])
    share[6] = np.where(open_, share[6] + share[5], share[6])
    high[6] = np.where(open_, np.maximum(high[6], share[6]), high[6])
    share[5] = np.where(open_, 0.0, share[5])
    verdict = np.where(open_ & (causes.verdict == IMBALANCE), UNDECIDED, causes.verdict)
    return replace(causes, share=share, low=low, high=high, verdict=verdict)


def seconds_of(evidence: Evidence, causes: Causes) -> Array:
    """Seconds a rank that each of :data:`CAUSES` takes of each kernel, (7, K, k): all tables and figures divide the
    time so, and what lies outside of kernels is :attr:`Evidence.others`."""
    return np.nan_to_num(causes.share) * np.nan_to_num(evidence.whole)


def _judge(evidence: Evidence) -> Causes:
    """Shares and verdicts of values as they are."""
    # Without a machine any clock will do, as only parts of the time are asked for.
    f = evidence.frequency if np.isfinite(evidence.frequency) else 1.0
    slack = np.ones(3) if evidence.ceilings is None else evidence.ceilings.slack[1:]
    stall_cycles, error = _counted_stalls(evidence)
    instructions = np.where(np.isfinite(evidence.frequency), evidence.instructions, np.nan)
    longest, least_wait = evidence.longest * f, evidence.minimum_wait
    known = execution(
        evidence.computing * f, instructions, longest, evidence.cpi, least_wait, stall_cycles * f, error * f
    )
    counted = (np.isfinite(stall_cycles) | np.isfinite(instructions)) & (evidence.computing > 0)

    computing, whole = evidence.mean, evidence.whole
    busy = ratio(computing, whole, 0.0)
    fill = ratio(seconds_of_bytes(evidence) * evidence.having, computing)
    exposed = evidence.waiting
    # Top-down levels without loads by level: all stalls count as those of memory.
    bare = np.isfinite(evidence.stalled) & ~np.isfinite(exposed).any(axis=0)
    exposed[2] = np.where(bare, evidence.stalled * evidence.computing, exposed[2])
    exposed = exposed * evidence.having
    # Where its own stalls were counted, bytes that pass while a kernel executes stall it only if they take most of the
    # time.
    stalls = _Stalls.of(known, fill, slack, counted, np.isfinite(stall_cycles) & evidence.counted[:, None])
    part = _levels(exposed, fill, stalls.share)
    rest = np.where(counted, np.maximum(stalls.share - part.sum(axis=0), 0.0), 1 - part.sum(axis=0))
    run = np.where(counted, 1 - stalls.share, 0.0)

    messages, imbalance = (ratio(seconds, whole, 0.0) for seconds in (evidence.communication, evidence.lost))
    share = np.stack([run * busy, *(part * busy), messages, imbalance, rest * busy])
    low, high = share.copy(), share.copy()
    low[0], high[0] = np.where(counted, 1 - stalls.high, 0.0) * busy, (1 - stalls.low) * busy
    each = ratio(part, stalls.share, part)
    low[1:4], high[1:4] = each * stalls.low * busy, each * stalls.high * busy
    low[4], high[4] = share[4] / NETWORK, np.minimum(share[4] * NETWORK, 1.0)
    low, high = np.minimum(low, share), np.maximum(high, share)

    level = np.argmax(part, axis=0)
    take = level[None]
    weighted = np.take_along_axis(part, take, 0)[0] * computing
    flight = ratio(np.take_along_axis(exposed, take, 0)[0], weighted)
    verdict, chance, ahead = _decide(known, stalls, share, low, high, counted, rest * busy)
    side = verdict == CACHE  # memory's side; which of its kinds is decided here
    busyness = ratio(np.take_along_axis(fill, take, 0)[0] * computing, weighted) * slack[level]
    verdict = np.where(side & (level == 2), np.where(busyness < 0.5, LATENCY, MEMORY), verdict)
    verdict = np.where(side & (level < 2) & (flight < ONE_BY_ONE) & ~(busyness >= 0.5), LATENCY, verdict)
    return Causes(share, low, high, verdict.astype(np.intp), level, fill, flight, chance, ahead)


def _counted_stalls(evidence: Evidence) -> tuple[Array, Array]:
    """Seconds of stalls and their error of kernels whose counters or top-down levels give them; NaN for the others."""
    each = evidence.broken.each
    memory = np.maximum(sum((each[name] for name in LEVELS[1:]), each[LEVELS[0]]), 0.0)
    if evidence.ceilings is not None:
        # Where another law than the equation predicts the time, that time is divided as the equation has it.
        latency = evidence.ceilings.latency[:, None, None]
        waiting = np.maximum(np.nan_to_num(evidence.loads * latency).sum(axis=0) * evidence.factor, 0.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = waiting / (waiting + evidence.instructions * evidence.cpi)
        memory = np.where((each["direct"] > 0) & np.isfinite(share), share * evidence.computing, memory)
    stalls = np.where(evidence.counted[:, None], memory, evidence.stalled * evidence.computing)
    return stalls, np.nan_to_num(stalls * ratio(evidence.factor_error, evidence.factor, 0.0))


def seconds_of_bytes(evidence: Evidence) -> Array:
    """Seconds that the bytes through L2, L3 and memory take at the bandwidth of a rank, (3, K, k): as the platform
    describes it, or as ranks were measured to share it where that is less."""
    if evidence.ceilings is None:
        bounds = np.full((3, *evidence.computing.shape), np.nan)
    else:
        bounds = evidence.traffic / evidence.ceilings.share(evidence.cores)[1:, None, :]
    return np.where(evidence.shared > 0, np.fmax(bounds, evidence.shared), bounds)


@dataclass(frozen=True)
class _Stalls:
    """Share of memory stalls in the computing time of each kernel, (K, k)."""

    share: Array  # (K, k)
    low: Array  # (K, k)
    high: Array  # (K, k)
    """As measured execution leaves them, and no less than bytes take, with the ends of their interval."""
    floor: Array  # (K, k): what the bytes of the busiest level take
    least: Array  # (K, k): the least that they may take
    wide: Array  # (K, k): factor either way within which that level's bandwidth is known

    @classmethod
    def of(cls, known: Execution, fill: Array, slack: Array, counted: Mask, stalled: Mask) -> _Stalls:
        """From the part of the time that each level's bytes fill (3, K, k), known to a factor `slack` (3,).

        `counted` and `stalled` (K, k): whether anything determines execution, and whether its own stalls do.
        """
        floor, least, most = (
            np.nan_to_num(np.fmax.reduce(np.minimum(fill * factor, 1.0), axis=0))
            for factor in (1.0, 1 / slack[:, None, None], slack[:, None, None])
        )
        middle, down, up = (known.quantile(p) for p in (0.5, (1 - SURE) / 2, (1 + SURE) / 2))
        hidden = stalled & (floor <= 0.5)
        share, low, high = (
            np.maximum(one, np.where(hidden, 0.0, other))
            for one, other in (
                (np.where(counted, 1 - middle, 0.0), floor),
                (np.where(counted, 1 - up, 0.0), least),
                (np.where(counted, 1 - down, 1.0), most),
            )
        )
        return cls(share, low, high, floor, least, slack[np.nan_to_num(fill, nan=-1.0).argmax(axis=0)])


def over_the_roof(evidence: Evidence, causes: Causes) -> Mask:
    """Kernels and configurations (K, k) at which more bytes pass through a level than it delivers in the kernel's time.

    The time, the bytes or the bandwidth is then wrong, and which of them is not known.
    """
    if evidence.ceilings is None:
        return np.zeros(evidence.computing.shape, dtype=bool)
    known = np.where(evidence.ceilings.certain[1:], 1.0, evidence.ceilings.slack[1:])[:, None, None]
    return np.asarray((np.nan_to_num(causes.used) > MOST_USED * known).any(axis=0))


def too_long(evidence: Evidence, causes: Causes) -> Mask:
    """Kernels and configurations (K, k) that would execute for longer than code does, where no stalls were counted.

    Page walks, locks and calls of the system are in no count of loads by level.
    """
    f = evidence.frequency if np.isfinite(evidence.frequency) else np.nan
    with np.errstate(invalid="ignore", divide="ignore"):
        least = causes.low[0] * evidence.whole * f / evidence.instructions
    known = evidence.counted[:, None] | np.isfinite(evidence.stalled)
    return np.asarray(~known & (least > LONGEST))


def _levels(exposed: Array, fill: Array, stalls: Array) -> Array:
    """Share of each level (3, K, k) in the memory stalls: as its loads wait, and no less than its bytes take.

    Where loads by level were not counted, what bytes do not explain stays open.
    """
    full = np.nan_to_num(np.minimum(fill, 1.0))
    counted = np.isfinite(exposed).any(axis=0)
    wait = np.where(np.isfinite(exposed), exposed, 0.0)
    total = wait.sum(axis=0)
    part = wait / np.where(total > 0, total, 1.0) * stalls
    # Bytes pass through the levels before the busiest one while that one is waited for: only it stalls by them.
    top = np.arange(3)[:, None, None] == full.argmax(axis=0)[None]
    most = np.where(top, np.maximum(part, np.minimum(full, stalls)), 0.0)
    others = np.where(top, 0.0, part)
    left = stalls - most.sum(axis=0)
    size = others.sum(axis=0)
    shrunk = np.where(size > left, others * left / np.where(size > 0, size, 1.0), others)
    return np.asarray(np.where(counted, most + shrunk, np.minimum(np.where(top, full, 0.0), stalls)))


NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
"""Gauss-Hermite quadrature over a standard normal error."""


def _memory_leads(known: Execution, floor: Array, wide: Array) -> Array:
    """Probability that memory takes more of the computing time than execution does.

    Execution takes a share x, memory 1 - x or what its bytes take, whichever is more: it leads where x < max(1/2, F).
    F is known to a factor `wide` with 90 %.
    """
    deviation = np.log(wide) / REACH
    chance = np.zeros_like(floor)
    for node, weight in zip(NODES, WEIGHTS / WEIGHTS.sum(), strict=True):
        chance += weight * known.below(np.clip(floor * np.exp(node * deviation), 0.5, 1.0))
    return chance


def _decide(
    known: Execution, stalls: _Stalls, share: Array, low: Array, high: Array, counted: Mask, unknown: Array
) -> tuple[Index, Array, Array]:
    """The side that leads: execution, memory (as CACHE), communication, imbalance, or none; and how likely."""
    ahead = _memory_leads(known, stalls.floor, stalls.wide)
    behind = 1 - ahead
    memory = share[1:4].sum(axis=0)
    inner_high = np.maximum(np.maximum(high[0], np.minimum(high[1:4].sum(axis=0), 1.0)), unknown)
    verdict = np.full(memory.shape, UNDECIDED, dtype=np.intp)
    for at, row in ((COMMUNICATION, 4), (IMBALANCE, 5)):
        other = 9 - row
        leads = (low[row] > inner_high) & (low[row] > high[other])
        # Two parts of a sum known as one: where computing in all is less, it is less however it divides.
        leads |= (low[row] > share[[0, 1, 2, 3, 6]].sum(axis=0)) & (low[row] > high[other])
        verdict = np.where(leads, at, verdict)
    outer = np.maximum(high[4], high[5])
    busy = share[[0, 1, 2, 3, 6]].sum(axis=0)
    free = verdict == UNDECIDED
    wins = free & counted & (ahead >= SURE) & (low[1:4].sum(axis=0) > outer) & (memory > unknown)
    # Bytes at full bandwidth show memory without a count of instructions.
    ahead, behind = np.where(counted, ahead, stalls.least > 0.5), np.where(counted, behind, 0.0)
    wins |= free & ~counted & (ahead > 0) & (stalls.least * busy > outer)
    verdict = np.where(wins, CACHE, verdict)
    verdict = np.where(free & (behind >= SURE) & (low[0] > outer), COMPUTE, verdict)
    chance = np.where(verdict == COMPUTE, behind, np.where(verdict == CACHE, ahead, np.nan))
    return verdict, chance, ahead


def pooled(causes: Causes, drawn: Sequence[Causes]) -> Causes:
    """Causes of values that were sampled, by those of many draws of what the samples may mean.

    Shares lie as far apart as in nine tenths of the draws. A verdict stands where its side leads in the mean of the
    draws with :data:`SURE` and they agree on its kind: most of them, and for latency, which is a verdict only where
    bandwidth cannot bind, as many as are sure.
    """
    verdicts, ahead = np.stack([each.verdict for each in drawn]), np.stack([each.ahead for each in drawn])
    low, high = np.quantile([each.share for each in drawn], [(1 - SURE) / 2, (1 + SURE) / 2], axis=0)
    outside = (verdicts == COMMUNICATION) | (verdicts == IMBALANCE)
    by_memory = np.isin(verdicts, (CACHE, MEMORY, LATENCY))
    executes, waits = causes.verdict == COMPUTE, np.isin(causes.verdict, (CACHE, MEMORY, LATENCY))
    side = np.where(executes, 1 - ahead, np.where(waits, ahead, verdicts == causes.verdict))
    # A draw whose side is sure and that is undecided all the same has other causes as large.
    lost = (outside | ((verdicts == UNDECIDED) & (side >= SURE))) & (executes | waits)
    chance = np.where(lost, 0.0, side).mean(axis=0)
    same = (verdicts == causes.verdict).sum(axis=0) / np.maximum(by_memory.sum(axis=0), 1)
    verdict = np.where(waits & (same < np.where(causes.verdict == LATENCY, SURE, 0.5)), UNDECIDED, causes.verdict)
    verdict = np.where(chance >= SURE, verdict, UNDECIDED)
    return replace(
        causes,
        low=np.minimum(causes.low, low),
        high=np.maximum(causes.high, high),
        verdict=verdict,
        chance=np.where((verdict != UNDECIDED) & (executes | waits), chance, np.nan),
    )
