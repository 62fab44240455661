"""What a replay gives: when ranks end, what they wait for, and what decided each time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from ranksight.comm.replay.program import Program
from ranksight.core.arrays import Array
from ranksight.core.records import dataclass

CAUSES = ("late sender", "late receiver", "collective")
"""Why a rank waits: the message is not sent yet; nobody has asked for it yet; others have not entered yet."""


@dataclass(frozen=True)
class Replayed:
    """A program that was replayed: its first steps one by one, the others as the last of these repeated."""

    program: Program
    end: Array  # (P,): when each rank has made its last call, seconds
    waits: Mapping[tuple[str, str], Array]
    """Seconds (P,) that ranks wait, by kernel and one of :data:`CAUSES`."""
    period: float  # seconds of each step that was not replayed itself
    after: Array = field(repr=False)  # (n, P): when each rank has made its n-th call
    origin: NDArray[np.int32] = field(repr=False)  # (n, P): rank whose call before decided that
    number: NDArray[np.int32] = field(repr=False)  # (n, P): number of that call; the way begins when it is made
    parts: NDArray[np.float32] = field(repr=False)  # (3, n, P) of the way, :data:`.deliver.PARTS`

    @property
    def time(self) -> float:
        """Seconds until the last rank has ended."""
        return float(self.end.max())

    @property
    def waiting(self) -> Array:
        """Seconds that each rank waits, (P,)."""
        return np.asarray(sum(self.waits.values(), np.zeros(self.program.ranks)))

    @property
    def communication(self) -> Array:
        """Seconds of each rank that are no computation, (P,)."""
        return np.asarray(self.end - self.program.computing)

    def repeats(self, at: int) -> int:
        """Steps from the call of that number back to the one that was replayed for it."""
        calls = len(self.program.calls)
        return max((at - len(self.after)) // calls + 1, 0)

    def made(self, at: int, rank: int) -> float:
        """When a rank has made the call of that number; 0 before the first."""
        if at < 0:
            return 0.0
        back = self.repeats(at)
        return float(self.after[at - back * len(self.program.calls), rank]) + back * self.period
