"""How Score-P counts the bytes of collectives, turned into what a rank hands over.

Score-P records what a rank sends to all ranks and receives from all: of an allreduce of ``m`` bytes on ``n`` ranks
``n m``, in newer versions, which leave out the rank itself, ``(n - 1) m``. Which of the two a file holds shows in the
numbers: of one version all are multiples of ``n``, of the other all of ``n - 1``.
"""

from __future__ import annotations

from collections.abc import Iterable

REPLICATED = ("allgather", "allgatherv", "allreduce")
"""Collectives whose bytes sent are one rank's contribution times the ranks that get it."""
NOTE = "bytes of bcast, allgather, allreduce and scan are one rank's; Score-P counts those sent to all"


def counts_itself(samples: Iterable[tuple[str, float, float, int]]) -> bool:
    """Whether the rank itself is among those sent to; as in older versions where the samples do not show it.

    `samples` (iterable of (str, float, float, int)): operation, bytes sent and received in one call, ranks of its
    communicator.

    Notes
    -----
    The root of a broadcast receives from itself or not. Of an allreduce or allgather one of ``n`` and ``n - 1``
    divides the bytes into whole elements, the other mostly not: the divisor that leaves the larger power of two, up
    to 8 B, gets the vote.
    """
    votes = 0
    for operation, sent, received, ranks in samples:
        if operation == "bcast" and sent > 0:
            votes += 1 if received > 0 else -1
        elif operation in REPLICATED and sent > 0 and ranks > 2:
            with_itself, without = _element(sent / ranks), _element(sent / (ranks - 1))
            votes += (with_itself > without) - (with_itself < without)
    return votes >= 0


def _element(size: float) -> int:
    """Largest of 8, 4, 2 and 1 B that divides a size; 0 where none does."""
    return next((element for element in (8, 4, 2, 1) if size % element == 0), 0)


def handed_over(operation: str, sent: float, received: float, ranks: int, itself: bool) -> float:
    """Bytes of one rank's contribution, as message tables have them, from bytes sent and received."""
    others = ranks if itself else max(ranks - 1, 1)
    if operation == "bcast":
        return received if received > 0 else sent / others
    if operation in REPLICATED:
        return sent / others
    if operation in ("scan", "exscan"):
        # Rank i sends to those after it and receives from those before it, itself twice or not at all.
        return (sent + received) / (ranks + 1 if itself else others)
    return max(sent, received) if operation in ("scatter", "scatterv") else sent
