"""LogGP parameters from timings of messages.

Timings are a table ``op, bytes, duration`` (s), one row a measurement; `op` is one of

============ =====================================================================================
pingpong     half a round trip: ``T(s) = o_s(s) + L + o_r(s) + s G(s)``
isend        time inside MPI_Isend: ``o_s(s)``
send         time inside a blocking MPI_Send: ``o_s(s)`` below the eager limit, where it jumps
recv         time inside an MPI_Recv whose message has already come: ``o_r(s)`` below the eager limit
gap          time of a further message when many are sent in a row: ``g(s)``
reduce       time to combine two operands in memory
============ =====================================================================================

Sources: Alexandrov et al., "LogGP", SPAA 1995; Kielmann, Bal and Verstoep, "Fast measurement of LogP parameters",
IPDPS 2000 workshops, LNCS 1800, 1176 (parameters by size; which measurement shows which).
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ranksight.comm.network import NetworkParameters, Piecewise
from ranksight.comm.segments import SMALLEST, Fit, fit_pieces
from ranksight.comm.sizes import SizeTable, summarise
from ranksight.core.errors import InputError
from ranksight.core.units import format_si

OPERATIONS = ("pingpong", "isend", "send", "recv", "gap", "reduce")
JUMP = 2.0
"""A blocking send that waits for its receiver takes at least this many times as long as one that does not."""


def fit_loggp(timings: pd.DataFrame) -> NetworkParameters:
    """Fit L, o_s, o_r, g and G, piecewise over the message size.

    `timings`: columns ``op``, ``bytes`` and ``duration``; see the module. Raises InputError when the table lacks a
    column, a ping-pong, or holds unknown operations or durations that are not positive; InsufficientError when there
    are too few sizes for one piece.

    Returns
    -------
    NetworkParameters
        With 95 % intervals: of each piece's intercept and slope by bootstrap over sizes, of overheads and gap at the
        smallest size, of the latency from the bootstraps of its three terms. What the timings do not determine is None
        and named in the notes; a latency is never negative.
    """
    missing = [name for name in ("op", "bytes", "duration") if name not in timings.columns]
    if missing:
        raise InputError(f"the timings lack the column {', '.join(missing)}", "give op, bytes and duration")
    unknown = sorted(set(timings["op"].astype(str)) - set(OPERATIONS))
    if unknown:
        raise InputError(f"the timings hold the unknown operation {unknown[0]!r}", f"known: {', '.join(OPERATIONS)}")
    tables = {str(name): summarise(group) for name, group in timings.groupby("op", observed=True, sort=False)}
    if "pingpong" not in tables:
        raise InputError("the timings hold no ping-pong", "every other parameter rests on it; measure or import one")
    notes: list[str] = []
    intervals: dict[str, tuple[float, float]] = {}
    transfer = fit_pieces(tables["pingpong"])
    eager = _eager_limit(tables.get("send"))
    limit = _eager_limit(tables.get("recv")) or eager
    for piece in range(len(transfer.starts)):
        intervals[f"alpha[{piece}]"] = transfer.interval(piece, 0)
        intervals[f"G[{piece}]"] = transfer.interval(piece, 1)
        if intervals[f"G[{piece}]"][0] <= 0:
            start = format_si(transfer.function.first[piece], "B")
            notes.append(f"G from {start} on is not distinguishable from 0")
    sending = _sending(tables, eager, notes)
    receiving = _receiving(tables, limit, notes)
    for name, fit, op in (("o_s", sending, "isend"), ("o_r", receiving, "recv")):
        if fit is not None:
            least = float(tables[op if op in tables else "send"].size[0])
            low, high = np.quantile(fit.draws_at(least), [0.025, 0.975])
            intervals[name] = (float(low), float(high))
    latency = _latency(tables["pingpong"], transfer, sending, receiving, intervals, notes)
    smallest, largest = tables["pingpong"].size[[0, -1]]
    span = f"{format_si(smallest, 'B')} to {format_si(largest, 'B')}"
    notes.append(f"measured from {span}; beyond these sizes the last piece continues")
    return NetworkParameters(
        transfer.function,
        None if sending is None else _level(sending.function, None),
        None if receiving is None else _level(receiving.function, limit),
        latency,
        _gap(tables.get("gap"), intervals, notes),
        _reduction(tables.get("reduce")),
        eager_limit=eager,
        intervals=intervals,
        notes=tuple(notes),
    )


def _eager_limit(table: SizeTable | None) -> int | None:
    """First size at which a blocking send (or a late receive) jumps: from there on it waits for the other side."""
    if table is None or len(table) < 2 * SMALLEST:
        return None
    function = fit_pieces(table, draws=1).function
    breaks = np.array(function.first[1:], dtype=float)
    if not len(breaks):
        return None
    jumps = function(breaks) / np.maximum(function(breaks - 1), 1e-12)
    return int(breaks[int(jumps.argmax())]) if jumps.max() >= JUMP else None


def _sending(tables: dict[str, SizeTable], eager: int | None, notes: list[str]) -> Fit | None:
    table = tables.get("isend")
    if table is None and (send := tables.get("send")) is not None:
        table = send if eager is None else send.take(send.size < eager)
    if table is None or len(table) < SMALLEST:
        notes.append("o_s is not identifiable: no send was timed")
        return None
    return fit_pieces(table)


def _receiving(tables: dict[str, SizeTable], limit: int | None, notes: list[str]) -> Fit | None:
    table = tables.get("recv")
    if table is not None and limit is not None:
        table = table.take(table.size < limit)
        notes.append(f"o_r is known below {format_si(limit, 'B')}; beyond, a receive is the transfer")
    if table is None or len(table) < SMALLEST:
        notes.append("o_r is not identifiable: no receive of a message that had already come was timed")
        return None
    return fit_pieces(table)


def _latency(
    table: SizeTable,
    transfer: Fit,
    sending: Fit | None,
    receiving: Fit | None,
    intervals: dict[str, tuple[float, float]],
    notes: list[str],
) -> float | None:
    """``L = T(s) - o_s(s) - o_r(s)`` at the smallest size, where ``s G`` is least; None where it is not
    identifiable."""
    if sending is None or receiving is None:
        notes.append("L is not identifiable without both overheads: T(s) is kept whole")
        return None
    size = float(table.size[0])
    terms = (transfer, sending, receiving)
    wire = transfer.function(size) - size * transfer.function.slope(size)
    value = float(wire - sending.function(size) - receiving.function(size))
    draws = [fit.draws_at(size) for fit in terms]
    slope = transfer.draws[:, int(transfer.function.piece(size)), 1]
    low, high = np.quantile(draws[0] - size * slope - draws[1] - draws[2], [0.025, 0.975])
    if value <= 0 or low <= 0:
        notes.append(
            f"L is not identifiable: half a round trip less both overheads is {format_si(value, 's')}, "
            f"interval {format_si(float(low), 's')} to {format_si(float(high), 's')}; T(s) is kept whole"
        )
        return None
    intervals["latency"] = (float(low), float(high))
    return value


def _level(function: Piecewise, until: int | None) -> Piecewise:
    """Let an overhead that is known below a size stay at its value there."""
    if until is None or function.first[-1] >= until:
        return function
    value = float(function(until - 1))
    return Piecewise((*function.first, until), (*function.alpha, value), (*function.beta, 0.0))


def _gap(table: SizeTable | None, intervals: dict[str, tuple[float, float]], notes: list[str]) -> Piecewise | None:
    if table is None or len(table) < SMALLEST:
        notes.append("g is not identifiable: no train of messages was timed")
        return None
    fit = fit_pieces(table)
    low, high = np.quantile(fit.draws_at(float(table.size[0])), [0.025, 0.975])
    intervals["gap"] = (float(low), float(high))
    return fit.function


def _reduction(table: SizeTable | None) -> float:
    """Seconds a byte at the largest sizes timed, where the cost of the call itself is lost in that of the data."""
    if table is None:
        return 0.0
    return float(np.median((table.time / np.maximum(table.size, 1.0))[-3:]))
