"""Kernels by size at every scale, and where one overtakes another (Ding et al. 2018, ranking over scale).

Between rank counts, times are interpolated in their logarithms. A kernel's time is known within its interval, here as a
log-normal law whose error is common to all rank counts, so that a kernel that is slower than modelled is so throughout;
the probability that a is larger than b at p ranks is then Phi((log T_a - log T_b) / sqrt(sigma_a^2 + sigma_b^2)). The
crossover is where it is one half, and its 90 % interval runs from where it is 5 % to where it is 95 %.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd

from ranksight.analysis.diagnosis.evidence import Evidence
from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask, log_ratio, ratio

MOST = 24
"""Kernels whose crossovers are reported: those with the largest share anywhere on the line."""
FINE = 32
"""Points between two rank counts of the line."""
LIGHT = 0.01
"""Share of the time that both kernels must have where they cross."""
ROUNDED = 1e-9
"""Part of a time within which it is the largest."""


def rankings(line: Evidence) -> pd.DataFrame:
    """Kernels by time at each rank count of `line`.

    Columns: ``ranks``, ``place`` (1 is the largest), ``kernel``, ``time`` (s on the wall, its messages among them),
    ``share`` (of the program's time); kernels whose time has no bounds are left out.
    """
    times = np.where(line.separate[:, None] & line.bounded, line.whole, np.nan)
    count, k = times.shape
    order = np.argsort(np.where(np.isfinite(times), -times, np.inf), axis=0, kind="stable")
    table = pd.DataFrame(
        {
            "ranks": np.repeat(line.ranks, count),
            "place": np.tile(np.arange(1, count + 1), k),
            "kernel": np.array(line.kernels, dtype=object)[order.T.reshape(-1)],
            "time": np.take_along_axis(times, order, 0).T.reshape(-1),
        }
    )
    table["share"] = table["time"] / np.repeat(np.where(line.total > 0, line.total, 1.0), count)
    ranked: pd.DataFrame = table.loc[np.isfinite(table["time"]) & (table["time"] > 0)]
    return ranked.reset_index(drop=True)


def crossovers(line: Evidence, level: float = 0.9) -> pd.DataFrame:
    """Where one kernel overtakes another along `line`.

    Columns: ``kernel`` overtakes ``over`` at ``ranks``, between ``lower`` and ``upper``, whole numbers of ranks, with
    probability `level` (NaN where the line ends before it is that sure); ``largest`` (whether it becomes the largest of
    all kernels there, those that only communicate and those whose time has no bounds among them) and ``share`` (of the
    program's time there), those that become the largest first. Where the time of one of them is known within its
    interval alone, it is reported only if the line ends with the order sure. A kernel takes part where it takes time
    and that time has bounds: one rank sends no messages.
    """
    columns = ["kernel", "over", "ranks", "lower", "upper", "largest", "share"]
    known = line.separate[:, None] & line.bounded & (line.whole > 0)
    index = np.flatnonzero(known.sum(axis=1) >= 2)
    if len(index) < 2:
        return pd.DataFrame(columns=columns)
    weight = np.where(known[index], ratio(line.whole[index], line.total), 0.0).max(axis=1)
    index = index[np.argsort(-weight, kind="stable")[:MOST]]
    ranks, times, spread, share, most = _fine(line, index, known[index], level)
    names = np.array(line.kernels, dtype=object)[index]
    sure: Mask = np.asarray(line.ok[index].all(axis=1))

    ahead = np.log(times)
    first, second = np.triu_indices(len(index), 1)
    difference = ahead[first] - ahead[second]
    deviation = difference / np.maximum(np.hypot(spread[first], spread[second]), 1e-9)
    sign = np.sign(difference)  # NaN where one of them takes no part: no crossing
    pair, place = np.nonzero((sign[:, :-1] * sign[:, 1:] < 0) | ((sign[:, :-1] == 0) & (sign[:, 1:] != 0)))
    heavy = np.minimum(share[first[pair], place], share[second[pair], place]) >= LIGHT
    rows = []
    for a, at in zip(pair[heavy], place[heavy], strict=True):
        up = difference[a, at + 1] > 0
        winner, loser = (first[a], second[a]) if up else (second[a], first[a])
        chance = np.nan_to_num(special.ndtr(deviation[a] if up else -deviation[a]), nan=0.5)
        part = difference[a, at] / (difference[a, at] - difference[a, at + 1])
        where = float(np.exp(np.log(ranks[at]) + part * (np.log(ranks[at + 1]) - np.log(ranks[at]))))
        below = np.flatnonzero(chance[: at + 1] <= (1 - level) / 2)
        above = np.flatnonzero(chance[at + 1 :] >= (1 + level) / 2)
        lower = float(np.floor(ranks[below[-1]])) if len(below) else np.nan
        upper = float(np.ceil(ranks[at + 1 + above[0]])) if len(above) else np.nan
        if not np.isfinite(upper) and not (sure[winner] and sure[loser]):
            continue
        top = bool(times[winner, at + 1] >= most[at + 1] * (1 - ROUNDED))
        rows.append((names[winner], names[loser], where, lower, upper, top, float(share[winner, at + 1])))
    table = pd.DataFrame(rows, columns=columns)
    return table.sort_values(["largest", "share"], ascending=False, kind="stable", ignore_index=True)


def clear(crossings: pd.DataFrame) -> pd.DataFrame:
    """The crossovers worth telling a reader.

    Two kernels are of one size where they cross anywhere as far as is known, or more than once without bounds.
    """
    names = crossings[["kernel", "over"]].to_numpy(dtype=str)
    pair = pd.Series([" ".join(sorted(sides)) for sides in names], index=crossings.index, dtype=str)
    ends = crossings[["lower", "upper"]].notna().sum(axis=1)
    return crossings[(ends == 2) | ((ends == 1) & ~pair.duplicated(keep=False))]


def _fine(line: Evidence, index: Index, known: Mask, level: float) -> tuple[Array, Array, Array, Array, Array]:
    """Ranks between the points of the line; times, standard deviations of their logarithms and shares of the kernels
    at `index`, NaN next to points where a kernel's time is not `known`; and the time of the largest of all kernels."""
    x = np.log(line.ranks)
    fine = np.unique(np.concatenate([np.linspace(a, b, FINE) for a, b in pairwise(x)]))

    def between(values: Array) -> Array:
        return np.stack([np.interp(fine, x, row) for row in values])

    def times_of(seconds: Array) -> Array:
        return np.exp(between(np.log(np.where(seconds > 0, seconds, np.nan))))

    low, high = (end[index] for end in line.whole_ends)
    wide = log_ratio(high, np.maximum(low, 1e-300))
    spread = np.nan_to_num(wide / (2 * float(special.ndtri((1 + level) / 2))), nan=1.0, posinf=1.0, neginf=1.0)
    times = times_of(np.where(known, line.whole[index], np.nan))
    largest = np.nan_to_num(times_of(line.whole[line.separate])).max(axis=0)
    return np.exp(fine), times, between(spread), times / np.exp(np.interp(fine, x, np.log(line.total))), largest
