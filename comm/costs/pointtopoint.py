"""Point-to-point messages.

Source: Alexandrov et al., "LogGP", SPAA 1995; Ino et al., "LogGPS", PPoPP 2001 (rendezvous waits for the receiver).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ranksight.comm.costs.fabric import Fabric
from ranksight.core.arrays import Array

SENDS = (
    *("send", "isend", "ssend", "issend", "bsend", "ibsend", "rsend", "irsend"),
    *("sendrecv", "sendrecv_replace", "isendrecv", "isendrecv_replace", "psend"),
    *("put", "rput", "accumulate", "raccumulate"),
)
"""Operations that carry a message: its time is counted here."""
FETCHES = ("get", "rget", "get_accumulate", "rget_accumulate", "fetch_and_op", "compare_and_swap")
"""One-sided operations that ask for data: an empty message there, the data back."""
NEIGHBOURS = tuple(f"{form}neighbor_{name}" for form in ("", "i") for name in ("allgather", "allgatherv"))
NEIGHBOURS += tuple(f"{form}neighbor_{name}" for form in ("", "i") for name in ("alltoall", "alltoallv", "alltoallw"))
"""Collectives among neighbours: messages to each of them, posted together."""
RECEIVES = (
    *("recv", "irecv", "mrecv", "imrecv", "precv", "sendrecv_recv", "sendrecv_replace_recv", "isendrecv_recv"),
    *("probe", "iprobe", "mprobe", "improbe", "start", "startall", "request_free", "cancel", "parrived", "pready"),
    *("wait", "waitall", "waitany", "waitsome", "test", "testall", "testany", "testsome", "request_get_status"),
)
"""Operations that end or prepare a message counted elsewhere: counting them as well would count it twice."""


def message(size: Array, ranks: ArrayLike, fabric: Fabric) -> Array:
    """``T(s)`` of one message between ranks whose place is not known: between nodes where there are several; 0 at one
    rank, whose messages to itself go over no network."""
    ranks = np.asarray(ranks)
    several = ranks > fabric.ranks_per_node
    return fabric.hops(size, several & (ranks > 1), ~several & (ranks > 1))
