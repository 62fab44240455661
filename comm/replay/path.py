"""The critical path of a replayed program: the way back from the last rank's end over what decided each time."""

from __future__ import annotations

import numpy as np

from ranksight.comm.replay.replayed import Replayed
from ranksight.core.arrays import Array
from ranksight.core.records import dataclass


@dataclass(frozen=True)
class Path:
    """What the critical path is made of."""

    compute: dict[str, float]  # seconds of computation on it, by kernel
    messages: dict[str, float]  # seconds of calls of MPI on it, by the kernel that makes them
    of_ranks: Array  # (P,): seconds of it that each rank spends
    latencies: float  # messages between nodes on it: seconds of time for each second of latency
    overhead: float  # seconds of the processors for messages on it
    wire: float  # seconds of their bytes on it
    changes: int  # how often it goes from a rank to another

    @property
    def time(self) -> float:
        """Seconds of all of it."""
        return sum(self.compute.values()) + sum(self.messages.values())


def critical_path(found: Replayed) -> Path:
    """Follow the path back from the rank that ends last."""
    calls = found.program.calls
    rank, at = int(np.argmax(found.end)), found.program.steps * len(calls) - 1
    compute, messages = dict.fromkeys(found.program.kernels, 0.0), dict.fromkeys(found.program.kernels, 0.0)
    of_ranks, parts, changes = np.zeros(found.program.ranks), np.zeros(3), 0
    while at >= 0:
        call = calls[at % len(calls)]
        back = found.repeats(at) * len(calls)
        before, source = int(found.number[at - back, rank]) + back, int(found.origin[at - back, rank])
        seconds = found.made(at, rank) - found.made(before, source)
        kind = compute if call.what == "compute" else messages
        kind[call.kernel] += seconds
        of_ranks[rank] += seconds
        parts += found.parts[:, at - back, rank]
        changes += source != rank
        rank, at = source, before
    latencies, overhead, wire = parts.tolist()
    return Path(compute, messages, of_ranks, latencies, overhead, wire, changes)
