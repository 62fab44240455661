"""Time in MPI split into transfer, waiting and the rest, from totals a rank.

No trace is needed. A rank that enters a collective operation early waits there for the last; the last one waits for
nobody. So over the ranks of one operation the *least* time is the operation's own, and what others spend beyond it is
waiting:

    own      = min over ranks of t
    waiting  = t - own                         (a rank)
    transfer = min(own, cost on the network)   (all of own where no costs are given; 0 where an operation has none)
    rest     = own - transfer                  (overheads of the library, of the tool, contention)

so that ``t = transfer + waiting + rest`` for every rank.

Limits. The least time over ranks is an upper bound of the own time: if no rank is last every time (the late rank
changes from call to call), everyone waits now and then, the minimum holds part of the waiting, and the split
understates it; with one rank late throughout it is exact. Ranks with different work in the operation itself (the root
of a gather, more neighbours) count as waiting. Point-to-point waiting is separated from transfer by the network's
cost only. An event trace, with matched sends and receives, has none of these limits (Geimer et al., "The Scalasca
performance toolset architecture", CCPE 22 (2010) 702; that late senders appear in minimum and maximum over ranks:
Calotoiu et al. 2013, section 4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ranksight.core.errors import InputError
from ranksight.core.run import Run

if TYPE_CHECKING:
    import pandas as pd

BY_CLOCK = (("compute_time", "compute_cpu_time"), ("wall_time", "cpu_time"))
"""Times by the clock and the processor times of the same stretches."""
HINDERED = 1.1
"""Time by the clock over processor time from which ranks had no cores of their own."""


def shares_cores(run: Run, counters: pd.DataFrame | None) -> bool:
    """Whether ranks of a run had to wait for cores: its times hold the scheduler's waiting.

    They had where they were more than the cores, or where they took longer by the clock than by their processor time,
    between MPI calls or in all, because others used the cores. MPI libraries poll while they wait; where one sleeps
    instead, its waiting cannot be separated from the scheduler's.
    """
    if run.crowded:
        return True
    if counters is None:
        return False
    pairs = [pair for pair in BY_CLOCK if set(pair) <= set(counters.columns)]
    sums = [counters[[*pair]].dropna().sum() for pair in pairs]
    return any(took > HINDERED * worked > 0 for took, worked in sums)


def split(messages: pd.DataFrame, transfer: ArrayLike | None = None) -> pd.DataFrame:
    """Split each rank's time in each operation.

    One row a kernel x operation x communicator size (x run) x rank: ``seconds``, ``transfer``, ``waiting``, ``rest``.
    Raises InputError when a column is missing, times are negative, or a row is reduced over ranks already.

    Parameters
    ----------
    messages : DataFrame
        ``kernel``, ``rank``, ``operation``, ``comm_size`` and ``seconds`` (``run`` where there are several runs);
        rows of one rank that differ in size class alone are summed.
    transfer : array_like, optional
        Seconds that each row costs on the network; NaN where the operation has no cost, its own time is then rest.
    """
    missing = [name for name in ("kernel", "rank", "operation", "comm_size", "seconds") if name not in messages.columns]
    if missing:
        raise InputError(f"the message table lacks the column {', '.join(missing)}")
    if bool((messages["rank"] < 0).any()):
        raise InputError("the message table is reduced over ranks: waiting is not known", "import times of each rank")
    if bool((messages["seconds"] < 0).any()):
        raise InputError("the message table holds a negative time")
    # Without costs, transfer cannot be separated from the rest: all that is not waiting is transfer.
    known = np.full(len(messages), np.inf) if transfer is None else np.nan_to_num(np.asarray(transfer, dtype=float))
    if known.shape != (len(messages),):
        raise InputError(f"{known.size} costs are given for {len(messages)} rows")
    keys = [*(["run"] if "run" in messages.columns else []), "kernel", "operation", "comm_size"]
    rows = messages[[*keys, "rank", "seconds"]].assign(transfer=known)
    sums = rows.groupby([*keys, "rank"], observed=True, sort=False)[["seconds", "transfer"]].sum().reset_index()
    own = sums.groupby(keys, observed=True)["seconds"].transform("min").to_numpy()
    moved = np.minimum(sums["transfer"].to_numpy(), own)
    return sums.assign(transfer=moved, waiting=sums["seconds"].to_numpy() - own, rest=own - moved)
