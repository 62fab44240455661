"""The time of a kernel whose ranks share a memory interface, after the multicore ECM model.

A rank alone needs ``core`` seconds for its work; its memory traffic keeps the interface of the domain busy for
``memory`` of them. With n ranks the interface is busy for a share u(n) of the time, and who finds it busy waits a
penalty p0 longer for each of the others:

    u(1) = memory / core,    T(n) = max(n memory, core + (n - 1) u(n - 1) p0),    u(n) = n memory / T(n)

so that time grows slowly until the interface has no more to give and linearly from there on (Hofmann, Alappat, Hager,
Fey, Wellein: "Bridging the Architecture Gap: Abstracting Performance-Relevant Properties of Modern Server Processors",
Supercomputing Frontiers and Innovations 7(2), 2020, section 4). p0 is given as a multiple of ``memory``. Next to an
idle interface the recursion can step back by a thousandth; no rank is taken to gain from more of them.
"""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array, Index


def contended(core: Array, memory: Array, active: Index, penalty: Array) -> tuple[Array, Array]:
    """Time of a rank among `active` ones, and the share of it that the interface is busy.

    Parameters
    ----------
    core, memory, penalty : broadcastable arrays
        Seconds alone, seconds of the interface, and p0 / memory.
    active : int array
        Ranks that share the interface, 1 or more.

    Returns
    -------
    time, busy : arrays of the common shape
    """
    core, memory, active, penalty = np.broadcast_arrays(core, memory, active, penalty)
    core = np.maximum(core, memory)
    with np.errstate(invalid="ignore", divide="ignore"):
        busy = np.where(core > 0, memory / np.where(core > 0, core, 1.0), 0.0)
        time = np.array(core, dtype=np.float64)
        answer, share = time.copy(), busy.copy()
        for n in range(2, int(active.max(initial=1)) + 1):
            time = np.maximum(time, np.maximum(n * memory, core + (n - 1) * busy * penalty * memory))
            busy = np.where(time > 0, n * memory / np.where(time > 0, time, 1.0), 0.0)
            here = active == n
            answer, share = np.where(here, time, answer), np.where(here, busy, share)
    return answer, share
