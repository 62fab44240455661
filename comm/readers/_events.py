"""Calls of a trace in their order, kept by readers in addition to the sums: phases need the order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from ranksight.core import limits


class EventLog:
    """Collects calls; the table has the columns of the tracer's, and what was counted since the call before.

    `counted`: name of the metric of :meth:`add`'s last argument: ``flops`` or ``instructions``.
    """

    def __init__(self, counted: str) -> None:
        self._counted = counted
        self._rows: list[tuple[int, str, str, int, float, float, float, float]] = []
        self.lost = False

    def add(
        self,
        rank: int,
        kernel: str,
        operation: str,
        comm_size: int,
        size: float,
        begin: float = float("nan"),
        end: float = float("nan"),
        counted: float = float("nan"),
    ) -> None:
        """Keep one call of `size` bytes, with what was counted since the rank's call before."""
        if self.lost or len(self._rows) >= limits.EVENTS_ORDERED:
            # The first ones alone would look like a shorter run.
            self.lost, self._rows = True, []
            return
        self._rows.append((rank, kernel, operation, comm_size, size, begin, end, counted))

    def tables(self) -> dict[str, pd.DataFrame]:
        """The table ``events`` in the order of ranks and calls; empty where there were too many, or none."""
        if not self._rows:
            return {}
        names = ("rank", "kernel", "operation", "comm_size", "bytes", "begin", "end", self._counted)
        frame = pd.DataFrame(self._rows, columns=list(names)).sort_values("rank", kind="stable", ignore_index=True)
        kinds: dict[str, Any] = {"rank": np.int32, "kernel": "category", "operation": "category"}
        frame = frame.astype({**kinds, "comm_size": np.int64})
        return {"events": frame.dropna(axis=1, how="all")}

    @property
    def notes(self) -> tuple[str, ...]:
        """That nothing was kept, where it was not."""
        if not self.lost:
            return ()
        return (f"more than {limits.EVENTS_ORDERED} calls: their order is not kept, only their sums",)
