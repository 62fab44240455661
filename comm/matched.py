"""Waiting in MPI from an event trace: sends matched with receives, collectives with themselves.

A receiver that is in its call before the sender has entered the send waits for a *late sender*:
``min(end of the receive, begin of the send) - begin of the receive``, if positive; a blocking sender waits likewise
for a *late receiver*. Who enters a collective of all ranks early waits until the last one enters.

Messages between two ranks with one tag do not overtake each other (MPI-4.1, section 3.5), so the n-th send matches the
n-th receive. Source: Geimer et al., "The Scalasca performance toolset architecture", CCPE 22 (2010) 702 (the patterns).

Limits. A receive that was posted ahead is matched where it is completed; when it was posted is not in the trace, so
late receivers are found for blocking receives only. Clocks of different machines must agree to better than the waits.
Collectives on part of the ranks cannot be distinguished from others of their size, and count no waiting.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ranksight.comm.costs.collective import OPERATIONS, operation_name
from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass

COLUMNS = ("rank", "thread", "kernel", "operation", "comm_size", "begin", "end", "bytes", "peer", "tag")
BLOCKING_SENDS = ("send", "ssend", "rsend", "sendrecv")
SENDS = ("send", "isend", "ssend", "issend", "bsend", "ibsend", "rsend", "irsend", "sendrecv", "sendrecv_replace")
RECEIVES = ("recv", "irecv", "mrecv", "imrecv", "sendrecv_recv", "sendrecv_replace_recv", "isendrecv_recv")


@dataclass(frozen=True, slots=True)
class Waiting:
    """What an event trace says of waiting."""

    calls: pd.DataFrame
    """``rank``, ``kernel``, ``operation``, ``calls``, ``seconds`` and of these ``late_sender``, ``late_receiver`` and
    ``collective``: seconds waited."""
    unmatched: int  # transfers without a partner: cut off by the trace's bound, or begun before it


def waiting(events: pd.DataFrame) -> Waiting:
    """Seconds that each rank waited, by kernel and operation.

    `events`: :data:`COLUMNS`, each rank's in the order in which it made them; a row with a peer is a transfer of the
    call before it (see :func:`ranksight.comm.tracer.events.tabulate_events`). Raises InputError when a column is
    missing, a call ends before it begins, or a transfer belongs to no call.
    """
    missing = [name for name in COLUMNS if name not in events.columns]
    if missing:
        raise InputError(f"the event table lacks the column {', '.join(missing)}")
    if bool((events["end"] < events["begin"]).any()):
        raise InputError("the event table holds a call that ends before it begins", "trace again")
    rows = events.sort_values(["rank", "thread"], kind="stable").reset_index(drop=True)
    rows["kind"] = rows["operation"].astype(str).map({name: operation_name(name) for name in set(rows["operation"])})
    is_call = rows["peer"].isna().to_numpy()
    # The call of a transfer is the last call before it on its thread.
    call = np.maximum.accumulate(np.where(is_call, np.arange(len(rows)), -1))
    place = rows[["rank", "thread"]].to_numpy()
    if len(rows) and bool((call < 0).any() or (place[call] != place).any()):
        raise InputError("the event table begins with a transfer: its call is missing", "trace from the start")
    waits = {name: np.zeros(len(rows)) for name in ("late_sender", "late_receiver", "collective")}
    unmatched = _messages(rows, is_call, call, waits)
    _collectives(rows, is_call, waits["collective"])
    calls = rows.loc[is_call, ["rank", "kernel", "operation"]].assign(
        calls=1,
        seconds=(rows["end"] - rows["begin"])[is_call],
        **{name: value[is_call] for name, value in waits.items()},
    )
    summed = calls.groupby(["rank", "kernel", "operation"], observed=True, sort=False).sum().reset_index()
    return Waiting(summed, unmatched)


def _messages(rows: pd.DataFrame, is_call: Mask, call: Index, waits: dict[str, Array]) -> int:
    """Add late senders and receivers to the calls that waited; the number of transfers without a partner."""
    moved = rows[~is_call]
    sides = []
    for kinds, source, target in ((SENDS, "rank", "peer"), (RECEIVES, "peer", "rank")):
        side = moved[moved["kind"].isin(kinds)]
        side = pd.DataFrame(
            {
                "source": side[source].astype(np.int64),
                "target": side[target].astype(np.int64),
                "tag": side["tag"].astype(np.int64),
                "comm_size": side["comm_size"],
                "call": call[side.index],
            }
        )
        keys = ["source", "target", "tag", "comm_size"]
        side["number"] = side.groupby(keys).cumcount()
        sides.append(side)
    both = sides[0].merge(sides[1], on=[*keys, "number"], suffixes=("_sent", "_received"))
    begin, end = rows["begin"].to_numpy(dtype=float), rows["end"].to_numpy(dtype=float)
    sent, received = both["call_sent"].to_numpy(), both["call_received"].to_numpy()
    # A call that completes several messages waits for the last of them.
    late = np.minimum(end[received], begin[sent]) - begin[received]
    np.maximum.at(waits["late_sender"], received, np.maximum(late, 0.0))
    kinds_of = rows["kind"].to_numpy()
    blocking = np.isin(kinds_of[sent], BLOCKING_SENDS) & np.isin(kinds_of[received], ("recv", "mrecv", "sendrecv"))
    late = np.where(blocking, np.minimum(end[sent], begin[received]) - begin[sent], 0.0)
    np.maximum.at(waits["late_receiver"], sent, np.maximum(late, 0.0))
    return len(sides[0]) + len(sides[1]) - 2 * len(both)


def _collectives(rows: pd.DataFrame, is_call: Mask, wait: Array) -> None:
    """Add the time until the last rank enters to the calls of collectives of all ranks."""
    ranks = rows["rank"].nunique()
    whole = is_call & rows["kind"].isin(OPERATIONS).to_numpy() & (rows["comm_size"] == ranks).to_numpy()
    calls = rows[whole]
    number = calls.groupby(["rank", "operation"], observed=True).cumcount()
    instance = calls.assign(number=number).groupby(["operation", "number"], observed=True)
    last = instance["begin"].transform("max")
    met = instance["rank"].transform("nunique") == ranks
    late = np.minimum(calls["end"], last) - calls["begin"]
    # A nonblocking collective does not wait where it is begun.
    stays = ~calls["operation"].astype(str).str.startswith("I")
    wait[calls.index] = np.where(met & stays, np.maximum(late, 0.0), 0.0)
