"""The table of verdicts: one row a kernel and configuration, with the figures behind it and what a change would give.

A part of the time that a resource takes is halved with that resource twice as fast; what another resource needs at
least is not undercut: with execution twice as fast, bytes still take their time at the bandwidth of their level.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ranksight.analysis.diagnosis.causes import CAUSES, UNDECIDED, VERDICTS, Causes, over_the_roof, too_long
from ranksight.analysis.diagnosis.evidence import Evidence
from ranksight.core.arrays import Array, Index, ratio
from ranksight.core.experiment import WHOLE

_PERCENT = np.array([f"{percent}%" for percent in range(101)], dtype=object)
FEW = 100.0
"""Samples below which a verdict states how many it rests on."""
CHANGED = {
    "execution": "with execution twice as fast",
    "caches": "with L2 and L3 twice as fast",
    "memory": "with memory twice as fast",
    "network": "with messages twice as fast",
    "balance": "with ranks in balance",
}
"""How the changes are described whose gain is estimated."""
CHANGES = tuple(CHANGED)
LEVEL_NAMES = ("L2", "L3", "memory")
OVER = (
    "its bytes take {used:.2g} times its time at the bandwidth of {level}: the time, the bytes or the platform is wrong"
)
"""Reason of a kernel that moves more than a level delivers."""
LONG = "CPI {cpi:.2g} is more than execution takes, and loads by cache level do not explain the rest"
"""Reason of a kernel that waits for what was not counted."""
OUTSIDE = "waits outside of computation and memory"
"""How the reasons of kernels begin that wait for files, devices or other programs."""
HALTED = OUTSIDE + ": cycles fill {part:.0%} of its time"
"""Reason of a kernel that has far fewer cycles than its time."""
FILES = OUTSIDE + ": a function of MPI that handles files"
"""Reason of a kernel that is a function of files."""
REST_UNKNOWN = "loads by cache level or stalls would show the rest"
"""Reason of a kernel whose counters bound no more of its time than any level of memory may take."""


def savings(causes: Causes, computing: Array, whole: Array) -> Array:
    """Part of each kernel's time that each of :data:`CHANGES` saves, (5, K, k).

    `computing` and `whole` (K, k): seconds of the mean rank's computing, and of all parts.
    """
    share = causes.share
    busy = ratio(computing, whole, 0.0)
    floor = np.nan_to_num(np.fmax.reduce(np.minimum(causes.used, 1.0), axis=0)) * busy
    inner = share[[0, 1, 2, 3, 6]].sum(axis=0)
    execution = np.minimum(share[0] / 2, np.maximum(inner - floor, 0.0))
    return np.stack([execution, (share[1] + share[2]) / 2, share[3] / 2, share[4] / 2, share[5]])


def table(evidence: Evidence, causes: Causes) -> pd.DataFrame:
    """Verdicts of all kernels at all configurations, the largest kernels of each configuration first.

    One column a parameter, then ``kernel``; ``time``, ``lower``, ``upper`` (s a rank on the wall, and the interval),
    ``share`` (of the program's time); ``verdict``, ``chance`` (of the verdict's side against the other, NaN where
    messages or imbalance lead), ``level`` (that stalls the kernel most, where memory does); the shares of the
    kernel's time ``compute``, ``L2``, ``L3``, ``memory``, ``communication``, ``imbalance``, ``unknown`` and for each
    ``<cause>_low`` and ``<cause>_high`` (90 %); ``cpi``, ``bf_mem``, ``in_flight`` (loads in flight at the level),
    ``bandwidth_used`` (part of a rank's bandwidth of the level; of memory's where none stalls it); ``change`` and
    ``saves`` (what helps most, and the part of the kernel's time that it saves), ``saves_<change>`` for each change;
    ``status`` (``ok``, or ``insufficient`` data for the time), ``reason`` (why undecided or not predicted),
    ``evidence`` (the source of the parts).
    """
    count, k = evidence.computing.shape
    whole = evidence.whole
    sums = evidence.total
    saved = savings(causes, evidence.mean, whole)
    cycles = evidence.computing * evidence.frequency
    with np.errstate(invalid="ignore", divide="ignore"):
        cpi = np.where(evidence.instructions > 0, cycles / evidence.instructions, np.nan)
        share = ratio(whole, sums, 0.0)
    verdict = causes.verdict
    low, high = evidence.whole_ends
    columns: dict[str, object] = {
        name: np.repeat(evidence.points[:, at], count) for at, name in enumerate(evidence.parameters)
    }

    def flat(values: NDArray[np.generic]) -> NDArray[np.generic]:
        return values.T.reshape(-1)

    columns["kernel"] = np.tile(np.array(evidence.kernels, dtype=object), k)
    columns |= {"time": flat(whole), "lower": flat(low), "upper": flat(high)}
    columns |= {"share": flat(share), "verdict": np.array(VERDICTS, dtype=object)[flat(verdict)]}
    columns |= {"chance": flat(causes.chance)}
    stalled = causes.share[1:4].sum(axis=0) > 0
    names = np.array(LEVEL_NAMES, dtype=object)[causes.level]
    columns["level"] = flat(np.where(stalled, names, ""))
    for at, name in enumerate(CAUSES):
        columns |= {name: flat(causes.share[at])}
        columns |= {f"{name}_low": flat(causes.low[at]), f"{name}_high": flat(causes.high[at])}
    columns |= {"cpi": flat(cpi), "bf_mem": flat(evidence.blocking), "in_flight": flat(causes.flight)}
    level = np.where(stalled, causes.level, 2)
    columns["bandwidth_used"] = flat(np.take_along_axis(causes.used, level[None], 0)[0])
    columns["change"] = np.array(CHANGES, dtype=object)[flat(saved.argmax(axis=0))]
    columns["saves"] = flat(saved.max(axis=0))
    columns |= {f"saves_{name}": flat(saved[at]) for at, name in enumerate(CHANGES)}
    columns["status"] = np.where(flat(evidence.ok), "ok", "insufficient").astype(object)
    columns["reason"] = flat(_reasons(evidence, causes, verdict))
    columns["evidence"] = flat(_sources(evidence))
    rows = pd.DataFrame(columns)
    rows = rows[rows["kernel"] != WHOLE] if len(evidence.kernels) > 1 else rows
    place = np.repeat(np.arange(k), count)[rows.index]
    order = np.lexsort((-rows["time"].to_numpy(), place))
    return rows.iloc[order].reset_index(drop=True)


def _sources(evidence: Evidence) -> NDArray[np.object_]:
    """What each kernel's parts were inferred from (K, k), with the number of samples where they are few."""
    sources = np.repeat(np.array(evidence.source, dtype=object)[:, None], len(evidence.points), axis=1)
    if evidence.samples is not None:
        for at, to in zip(*np.nonzero(evidence.samples < FEW), strict=True):
            sources[at, to] = f"{sources[at, to]}, fewest samples: {evidence.samples[at, to]:.2g}"
    return sources


def _reasons(evidence: Evidence, causes: Causes, verdict: Index) -> NDArray[np.object_]:
    """Why a kernel is undecided: the largest cause and the next, or what was not counted."""
    reason = np.where(evidence.ok | (verdict == UNDECIDED), evidence.reason, "").astype(object)
    open_ = (verdict == UNDECIDED) & evidence.ok
    if evidence.imputed is not None:
        open_ &= ~evidence.imputed
    bare = open_ & (causes.share[6] > 0.5)
    without = "no platform was given to fit" if evidence.ceilings is None else "loads by cache level were not counted"
    reason = np.where(bare, without, reason)
    beyond = open_ & over_the_roof(evidence, causes)
    if beyond.any():
        used = np.nan_to_num(causes.used[:, beyond])
        levels = np.array(LEVEL_NAMES, dtype=object)[used.argmax(axis=0)]
        pairs = zip(used.max(axis=0), levels, strict=True)
        reason[beyond] = [OVER.format(used=most, level=level) for most, level in pairs]
    long = open_ & ~bare & ~beyond & too_long(evidence, causes)
    if long.any():
        cpi = (evidence.computing * evidence.frequency)[long] / evidence.instructions[long]
        reason[long] = [LONG.format(cpi=each) for each in cpi]
    halted = open_ & evidence.halted
    if halted.any() and evidence.running is not None:
        reason[halted] = [HALTED.format(part=part) for part in evidence.running[halted]]
    reason = np.where(open_ & evidence.files, FILES, reason)
    rest = open_ & ~bare & ~beyond & ~long & ~halted & ~evidence.files
    if rest.any():
        order = np.argsort(-causes.share[:6], axis=0)[:2]
        ends = [np.take_along_axis(end[:6], order, 0)[:, rest] for end in (causes.low, causes.high)]
        low, high = (_PERCENT[np.clip(np.round(100 * end), 0, 100).astype(np.intp)] for end in ends)
        ranges = np.where(low == high, low, low + " to " + high)
        one, other = np.array(CAUSES, dtype=object)[order[:, rest]] + " (" + ranges + ")"
        reason[rest] = one + " or " + other
        lacking = rest & (causes.share[CAUSES.index("unknown")] > causes.high[1:4].max(axis=0))
        reason[lacking] = one[lacking[rest]] + f"; {REST_UNKNOWN}"
    if evidence.samples is not None:
        few = open_ & (evidence.samples < FEW)
        counts = [f", from {number:.2g} samples" for number in evidence.samples[few]]
        reason[few] = reason[few] + np.array(counts, dtype=object)
    return reason
