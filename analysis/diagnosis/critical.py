"""The critical path and what ranks wait for, over numbers of ranks: one replay of the predicted messages each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ranksight.analysis.diagnosis.network import ReplayedNetwork, prepared
from ranksight.comm.replay.path import critical_path
from ranksight.comm.replay.replayed import CAUSES, Replayed
from ranksight.core.arrays import Array
from ranksight.core.errors import RanksightError
from ranksight.core.records import dataclass

if TYPE_CHECKING:
    from ranksight.model.fitted_model import Model

MOST_CELLS = 1 << 18
"""Ranks times calls of all steps up to which a number of ranks is replayed: a second."""
MOST_RANKS = 4096
"""Ranks up to which a page replays the program; laying out the calls of more takes minutes."""
COMPUTATION = "computation"
"""Name of what kernels compute where the order of calls is assumed."""


@dataclass(frozen=True)
class PathShares:
    """Parts of the program's time at k numbers of ranks."""

    points: Array  # (k, m): configurations that were replayed
    ranks: Array  # (k,)
    time: Array  # (k,): seconds of the replayed program
    compute: Mapping[str, Array]  # (k,): parts of the critical path that kernels compute, those of most first
    messages: Mapping[str, Array]  # (k,): parts of it in messages, by the kernel that makes them
    waits: Mapping[str, Array]  # (k,): parts of the time that ranks wait by cause, mean over ranks
    assumed: bool  # whether the order of calls is assumed
    left_out: Mapping[float, str]  # numbers of ranks that were not replayed, with the reason
    last: ReplayedNetwork  # the program at the last of the points


def path_shares(model: Model, points: Array, computing: Array) -> PathShares | None:
    """Replay the program at `points` (k, m), which differ in ranks; None where none of them can be.

    `computing` (k,): seconds that a rank computes in the mean.
    """
    communication = model.equation.communication
    if not communication.messages or not model.equation.network:
        return None
    at = list(model.parameters).index("ranks")
    replayed, compute, messages, waits, times = [], [], [], [], []
    left_out: dict[float, str] = {}
    assumed = False
    last: ReplayedNetwork
    several = points[:, at] > 1
    for point, mean in zip(points[several], computing[several].tolist(), strict=True):
        if point[at] > MOST_RANKS:
            left_out[float(point[at])] = f"a report replays up to {MOST_RANKS:,} ranks"
            continue
        try:
            network = prepared(model, point, mean=mean)
            if (cells := network.cells) > MOST_CELLS:
                left_out[float(point[at])] = f"{cells:,} calls are too many to replay in a report"
                continue
            result = network.replayed
            last = network
        except RanksightError as error:
            left_out[float(point[at])] = str(error)
            continue
        path = critical_path(result)
        assumed |= network.made.assumed
        replayed.append(point)
        times.append((result.time, network.made.times))
        # Without an event trace all computation is before the calls of one kernel.
        compute.append({COMPUTATION: sum(path.compute.values())} if network.made.assumed else path.compute)
        messages.append(path.messages)
        waits.append(_by_cause(result))
    if not replayed:
        return None
    seconds, repeats = np.array(times).T
    chosen = np.array(replayed)
    return PathShares(
        chosen,
        chosen[:, at],
        seconds * repeats,
        _parts(compute, seconds),
        _parts(messages, seconds),
        _parts(waits, seconds),
        assumed,
        left_out,
        last,
    )


def _by_cause(result: Replayed) -> dict[str, float]:
    """Seconds that ranks wait by cause, mean over ranks."""
    seconds = dict.fromkeys(CAUSES, 0.0)
    for (_, cause), of_ranks in result.waits.items():
        seconds[cause] += float(of_ranks.mean())
    return seconds


def _parts(each: list[dict[str, float]], seconds: Array) -> dict[str, Array]:
    """Parts of the `seconds` (k,) by name, those of most first; what is nothing everywhere is left out."""
    names = dict.fromkeys(name for one in each for name in one)
    whole = np.where(seconds > 0, seconds, np.inf)
    parts = {name: np.array([one.get(name, 0.0) for one in each]) / whole for name in names}
    return dict(sorted(((name, part) for name, part in parts.items() if part.any()), key=lambda item: -item[1].max()))
