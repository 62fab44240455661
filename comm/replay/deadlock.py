"""The error of a program whose ranks wait for each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ranksight.comm.replay.deliver import Exchange, Sorted
from ranksight.comm.replay.program import Call, Program
from ranksight.core.arrays import Array, Index
from ranksight.core.errors import InputError


def deadlock(
    program: Program,
    channels: Sequence[Exchange],
    needed: Callable[[int, Call], tuple[Sorted, Array]],
    held: Mapping[int, Index],
) -> InputError:
    """Who waits for whom, from the first rank that waits around the cycle.

    Parameters
    ----------
    needed
        Messages that a call waits for in a step by rank, and when each is sent or asked for; infinite where it is not.
    held
        Ranks that wait in the call of that number.
    """
    calls = program.calls
    place = {int(rank): at for at, ranks in held.items() for rank in ranks}
    rank, seen, chain = min(place), list[int](), dict[int, str]()
    while rank in place and rank not in seen:
        seen.append(rank)
        at = place[rank]
        step, call = at // len(calls), calls[at % len(calls)]
        name = call.operation or call.what
        if call.what == "collective":
            assert call.groups is not None
            group = np.flatnonzero(call.groups == call.groups[rank])
            other = next(int(one) for one in group if place.get(int(one)) != at)
        else:
            one = channels[call.channel].costs
            mine, there = (one.target, one.source) if call.what == "receive" else (one.source, one.target)
            _, known = needed(step, call)
            other = int(there[np.flatnonzero((mine == rank) & ~np.isfinite(known))[0]])
        chain[rank] = f"rank {rank} waits for rank {other} in {name} of {call.kernel}"
        rank = other
    cycle = seen[seen.index(rank) :] if rank in seen else seen
    words = ", ".join(chain[one] for one in cycle[:4])
    more = f", and {len(cycle) - 4} more ranks up to rank {max(cycle)}" if len(cycle) > 4 else ""
    ended = "" if rank in seen else ", which has made all of its calls"
    return InputError(
        f"the replay deadlocks: {words}{more}{ended}",
        "messages from eager_limit on wait for their receiver: order sends and receives, or use MPI_Sendrecv",
    )
