"""MPI's calls that communicate or wait, as names without ``MPI_``: what bounds a stretch of computation.

Calls that only ask (ranks, sizes, tests, probes without waiting) are left out: how often a program asks repeats in no
two runs, and what it computes around them belongs to the next call that communicates.
"""

from __future__ import annotations

_COLLECTIVE = (
    "Barrier", "Bcast", "Gather", "Gatherv", "Scatter", "Scatterv", "Allgather", "Allgatherv", "Alltoall", "Alltoallv",
    "Alltoallw", "Reduce", "Allreduce", "Reduce_scatter", "Reduce_scatter_block", "Scan", "Exscan",
    "Neighbor_allgather", "Neighbor_allgatherv", "Neighbor_alltoall", "Neighbor_alltoallv", "Neighbor_alltoallw",
)  # fmt: skip
_POINT_TO_POINT = (
    "Send", "Bsend", "Ssend", "Rsend", "Recv", "Mrecv", "Sendrecv", "Sendrecv_replace", "Probe", "Mprobe",
)  # fmt: skip
POSTING = (
    "Isend", "Ibsend", "Issend", "Irsend", "Irecv", "Imrecv", "Isendrecv", "Isendrecv_replace", "Start", "Startall",
    "Put", "Get", "Accumulate", "Get_accumulate", "Rput", "Rget",
)  # fmt: skip
"""Calls that start a transfer and return at once."""
COMPLETING = ("Wait", "Waitall", "Waitany", "Waitsome")
"""Calls that end when transfers that were started have ended."""
_SYNCHRONISING = (
    "Win_fence", "Win_post", "Win_start", "Win_complete", "Win_wait", "Win_lock", "Win_unlock", "Win_lock_all",
    "Win_unlock_all", "Win_flush", "Win_flush_all",
)  # fmt: skip

CALLS: tuple[str, ...] = (
    *_COLLECTIVE,
    *(f"I{name.lower()}" for name in _COLLECTIVE),
    *_POINT_TO_POINT,
    *POSTING,
    *COMPLETING,
    *_SYNCHRONISING,
)
END = "Finalize"
"""What bounds the last stretch."""
