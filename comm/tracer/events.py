"""The event trace: every MPI call and every transfer, where one was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ranksight.comm.tracer.callsites import CallSites
from ranksight.comm.tracer.rawfile import NO_PEER, RankTrace, ThreadTables

Array = NDArray[Any]


def has_events(traces: Sequence[RankTrace]) -> bool:
    """Whether any rank kept events."""
    return any(thread.events.size for trace in traces for thread in trace.threads)


def tabulate_events(traces: Sequence[RankTrace], origin: int | None = None) -> pd.DataFrame:
    """Events of all ranks in the order in which each rank made them.

    Columns: ``rank``, ``thread``, ``kernel``, ``operation``, ``comm_size``, ``begin`` and ``end`` (seconds after the
    earliest return from MPI_Init, or `origin` ns, by the machines' monotonic clocks: exact within a machine only),
    ``bytes``, ``peer`` (rank in MPI_COMM_WORLD, -1 outside it) and ``tag``, both missing for the calls themselves. A
    transfer follows the call that made it or, for posted receives, completed it; its times are that call's end.
    """
    places = CallSites()
    if origin is None:
        origin = min((trace.head["init_mono"] for trace in traces), default=0)
    parts = [
        _events(trace, number, thread, places, origin)
        for trace in traces
        for number, thread in enumerate(trace.threads)
    ]
    frame = pd.concat(parts, ignore_index=True)
    sites, kernels = places.kernels()
    frame["site"] = pd.Categorical(kernels[np.searchsorted(sites, frame["site"].to_numpy())])
    frame["operation"] = frame["operation"].astype("category")
    return frame.rename(columns={"site": "kernel"})


def _events(trace: RankTrace, number: int, thread: ThreadTables, places: CallSites, origin: int) -> pd.DataFrame:
    event = thread.events
    record = thread.records[event["record"]]
    kept = event["record"] > 0
    event, record = event[kept], record[kept]
    names = np.array([name for name, _ in trace.operations], dtype=object)
    start = (trace.head["init_mono"] - origin) * 1e-9

    def seconds(ticks: Array) -> Array:
        # Differences first: ticks themselves pass what a float holds exactly.
        after: Array = ticks.astype(np.int64) - np.int64(trace.head["init_end"])
        return start + after * trace.tick

    call = event["peer"] == NO_PEER
    return pd.DataFrame(
        {
            "rank": np.int32(trace.head["rank"]),
            "thread": np.int32(number),
            "site": places.sites(trace, record["pc"]),
            "operation": names[(record["key"] >> np.uint64(32) & np.uint64(0xFFFF)).astype(np.int64)],
            "comm_size": (record["key"] & np.uint64(0xFFFFFFFF)).astype(np.int64),
            "begin": seconds(event["begin"]),
            "end": seconds(event["end"]),
            "bytes": event["bytes"].astype(np.int64),
            "peer": pd.arrays.IntegerArray(event["peer"].astype(np.int32), call),
            "tag": pd.arrays.IntegerArray(event["tag"].astype(np.int32), call.copy()),
        }
    )
