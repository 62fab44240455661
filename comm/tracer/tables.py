"""From the traces of all ranks to the tables of an experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ranksight.comm.tracer.callsites import CallSites
from ranksight.comm.tracer.gathering import named
from ranksight.comm.tracer.rawfile import RankTrace, ThreadTables
from ranksight.core.experiment import MESSAGE_COLUMNS, WHOLE
from ranksight.core.records import dataclass
from ranksight.core.units import format_si

SENDING = "spc"
"""Kinds of operations whose calls are messages and whose bytes are sent: point to point, one-sided, collective."""

_SPAWNS = ("Comm_spawn", "Comm_spawn_multiple")
_SPAWNED = {"spawned": "messages", "spawned_peers": "peers", "spawned_ranks": "ranks"}
_KEYS = ["kernel", "rank", "operation", "comm_size", "size_class"]
WHOLE_METRICS = (
    "wall_time", "compute_time", "mpi_time", "compute_cpu_time", "cpu_time",
    "memory_peak", "memory_pss", "memory_pss_before",
)  # fmt: skip
METRICS = (*WHOLE_METRICS, "messages", "bytes_sent")
"""What the counters hold: the first for the whole program, messages, bytes_sent and mpi_time for every kernel too."""

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class TraceTables:
    """What one run's traces say."""

    messages: pd.DataFrame
    """:data:`ranksight.core.experiment.MESSAGE_COLUMNS` and ``kind`` (see :mod:`ranksight.comm.tracer.operations`);
    `size_class` is the upper bound in bytes of a power-of-two class, 0 for calls without bytes; `peers` counts distinct
    ranks."""
    peers: pd.DataFrame
    """``kernel``, ``rank``, ``operation``, ``comm_size``, ``size_class``, ``peer`` (rank in MPI_COMM_WORLD, -1 outside
    it), ``count``, ``bytes``."""
    phases: pd.DataFrame
    """Computation between two MPI calls: ``rank``, ``thread``, ``before`` and ``after`` (the kernels that made the two
    calls), ``seconds``, ``cpu_seconds``."""
    ranks: pd.DataFrame
    """One row a rank: ``rank``, ``ended``, ``threads``, ``init_time`` (of MPI_Init), and the metrics of the whole
    program."""
    counters: pd.DataFrame  # ``kernel``, ``rank`` and metrics, as :class:`ranksight.core.reading.Reading` wants them
    notes: tuple[str, ...]  # as :class:`ranksight.core.reading.Reading` has them
    warnings: tuple[str, ...]  # likewise
    spawned: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """Of processes that the ranks started, where there are any: tables ``spawned`` (as `messages`), ``spawned_peers``
    and ``spawned_ranks``, with the column ``world``; ranks and peers are those of the process's own world."""


def tabulate(traces: Sequence[RankTrace]) -> TraceTables:
    """Tables of one run from the traces of its ranks and, in tables of their own, of the processes that they started.

    Times are ticks of the rank's clock times its own seconds per tick. ``compute_time`` of the whole program is the
    time between MPI calls of the thread that called MPI_Init, from the return of MPI_Init to the entry of MPI_Finalize,
    and ``wall_time`` = ``compute_time`` + ``mpi_time`` there; ``compute_cpu_time`` is the processor time of the same
    stretches, which other processes on the same cores do not lengthen. A kernel's ``mpi_time`` is that of all threads.
    """
    worlds = {trace.world: [each for each in traces if each.world == trace.world] for trace in traces}
    tables = _of_world(worlds.pop(""))
    started = {world: _of_world(each) for world, each in worlds.items()}
    spawned = {
        name: pd.concat([getattr(each, of).assign(world=world) for world, each in started.items()], ignore_index=True)
        for name, of in _SPAWNED.items()
        if started
    }
    notes = [f"{note}, in world {world}" for world, each in started.items() for note in each.notes]
    warnings = _spawns(traces, tables.messages, spawned.get("spawned"))
    return replace(tables, notes=(*tables.notes, *notes), warnings=warnings, spawned=spawned)


def _of_world(traces: Sequence[RankTrace]) -> TraceTables:
    """Tables of ranks with one MPI_COMM_WORLD."""
    places, operations, kinds = CallSites(), dict[str, int](), dict[str, str]()
    rows, peers, phases = list[dict[str, Array]](), list[dict[str, Array]](), list[dict[str, Array]]()
    known: dict[tuple[tuple[str, str], ...], Array] = {}
    for trace in traces:
        if trace.operations not in known:
            kinds.update(trace.operations)
            known[trace.operations] = np.array(
                [operations.setdefault(name, len(operations)) for name, _ in trace.operations]
            )
        for number, thread in enumerate(trace.threads):
            row = _rows(trace, thread, places, known[trace.operations])
            rows.append(row)
            peers.append(_peers(thread, row))
            phases.append(_phases(trace, number, thread, places, row))
    names = {"site": places.kernels(), "operation": (None, np.array(list(operations), dtype=object))}
    keyed = _stack(peers, names).groupby([*_KEYS, "peer"], observed=True)[["count", "bytes"]].sum().reset_index()
    messages = _stack(rows, names).groupby(_KEYS, observed=True)[["count", "bytes", "seconds"]].sum().reset_index()
    distinct = keyed.groupby(_KEYS, observed=True)["peer"].nunique().rename("peers").reset_index()
    messages = messages.merge(distinct, on=_KEYS, how="left")
    messages["peers"] = messages["peers"].fillna(0).astype(np.int64)
    messages = messages[list(MESSAGE_COLUMNS)]
    messages["kind"] = messages["operation"].map(kinds).astype("category")
    stretches = _stack(phases, {"before": names["site"], "after": names["site"]})
    stretches = stretches.groupby(["rank", "thread", "before", "after"], observed=True).sum().reset_index()
    ranks = pd.DataFrame([_whole(trace) for trace in traces])
    return TraceTables(
        messages=messages,
        peers=keyed,
        phases=stretches,
        ranks=ranks,
        counters=_counters(messages, ranks),
        notes=_notes(traces),
        warnings=(),
    )


def _rows(trace: RankTrace, thread: ThreadTables, places: CallSites, numbers: Array) -> dict[str, Array]:
    table = thread.records[1:]
    key = table["key"]
    level = (key >> np.uint64(48)).astype(np.int64)
    return {
        "site": places.sites(trace, table["pc"]),
        "rank": np.full(table.size, trace.head["rank"], dtype=np.int32),
        "operation": numbers[(key >> np.uint64(32) & np.uint64(0xFFFF)).astype(np.int64)],
        "comm_size": (key & np.uint64(0xFFFFFFFF)).astype(np.int64),
        "size_class": np.where(level == 0, 0, np.left_shift(1, np.clip(level - 1, 0, 62))),
        "count": table["count"].astype(np.int64),
        "bytes": table["bytes"].astype(np.int64),
        "seconds": table["inside"] * trace.tick,
    }


def _peers(thread: ThreadTables, row: dict[str, Array]) -> dict[str, Array]:
    table = thread.peers[1:]
    whose = table["record"].astype(np.int64) - 1
    kept = whose >= 0  # peers of what found no place among the records
    keys = {name: row[name][whose[kept]] for name in ("site", "rank", "operation", "comm_size", "size_class")}
    return {
        **keys,
        "peer": table["peer"][kept].astype(np.int32),
        "count": table["count"][kept].astype(np.int64),
        "bytes": table["bytes"][kept].astype(np.int64),
    }


def _phases(
    trace: RankTrace, number: int, thread: ThreadTables, places: CallSites, row: dict[str, Array]
) -> dict[str, Array]:
    """What lies between two calls: records that say from where they were reached. Calls without a message count too."""
    kept = thread.records["before"][1:] != 0
    table = thread.records[1:][kept]
    return {
        "rank": row["rank"][kept],
        "thread": np.full(table.size, number, dtype=np.int32),
        "before": places.sites(trace, table["before"]),
        "after": row["site"][kept],
        "seconds": table["compute"] * trace.tick,
        "cpu_seconds": _with_processor(table) * (trace.tick if trace.head["cpu_mode"] else np.nan),
    }


def _stack(parts: list[dict[str, Array]], names: dict[str, tuple[Array | None, Array]]) -> pd.DataFrame:
    """One table of many; columns of numbers become the names they stand for, ``site`` becomes ``kernel``."""
    frame = pd.DataFrame({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})
    for column, (sites, text) in names.items():
        if column in frame:
            numbers = frame[column].to_numpy()
            found = text[numbers if sites is None else np.searchsorted(sites, numbers)]
            frame["kernel" if column == "site" else column] = pd.Categorical(found)
    return frame.drop(columns="site", errors="ignore")


def _with_processor(records: Array) -> Array:
    """Ticks between MPI calls in which the thread had a processor, per record.

    The processor's clock is read only where it costs little, so that what was lost since its last reading may have been
    lost inside short MPI calls: more than the stretch itself was not lost in it.
    """
    return np.asarray(np.maximum(records["compute"].astype(np.int64) - records["lost"], 0))


def _whole(trace: RankTrace) -> dict[str, Any]:
    head, main = trace.head, trace.threads[0]
    ticks, running = int(main.records["compute"].sum()), int(_with_processor(main.records).sum())
    wall = head["final_begin"] - head["init_end"]
    if trace.ended != "finalize" and main.state["depth"] == 0:  # the stretch that no MPI call ended
        last = max(head["final_begin"] - main.state["last_end"], 0)
        ticks, running = ticks + last, running + last
    compute = min(ticks, wall)
    return {
        "rank": head["rank"],
        "ended": trace.ended,
        "threads": len(trace.threads),
        "init_time": (head["init_end"] - head["init_begin"]) * trace.tick,
        "wall_time": wall * trace.tick,
        "compute_time": compute * trace.tick,
        "mpi_time": (wall - compute) * trace.tick,
        "compute_cpu_time": min(running, wall) * trace.tick if head["cpu_mode"] else np.nan,
        "cpu_time": (head["final_cpu"] - head["init_cpu"]) * 1e-9,
        "memory_peak": float(head["peak_end"]) or np.nan,
        "memory_pss": float(head["pss_end"]) or np.nan,
        "memory_pss_before": float(head["pss_before"]) or np.nan,
    }


def _counters(messages: pd.DataFrame, ranks: pd.DataFrame) -> pd.DataFrame:
    sending = messages["kind"].isin(list(SENDING))
    parts = messages.assign(
        messages=messages["count"].where(sending, 0).astype(float),
        bytes_sent=messages["bytes"].where(sending, 0).astype(float),
        mpi_time=messages["seconds"].where(~messages["operation"].isin(["Init", "Finalize"]), 0.0),
    )
    columns = ["messages", "bytes_sent", "mpi_time"]
    kernels = parts.groupby(["kernel", "rank"], observed=True)[columns].sum().reset_index()
    kernels["kernel"] = kernels["kernel"].astype(object)
    whole = ranks[["rank", *WHOLE_METRICS]].copy()
    sums = parts.groupby("rank")[["messages", "bytes_sent"]].sum()
    whole[["messages", "bytes_sent"]] = sums.reindex(whole["rank"]).fillna(0.0).to_numpy()
    whole.insert(0, "kernel", WHOLE)
    return pd.concat([whole, kernels], ignore_index=True).astype({"rank": "int32"})


def _spawns(traces: Sequence[RankTrace], messages: pd.DataFrame, spawned: pd.DataFrame | None) -> tuple[str, ...]:
    """Which processes the ranks started: those that were traced are in tables of their own, others in none."""
    spawns = messages[messages["operation"].isin(_SPAWNS) & (messages["count"] > 0)]
    if spawns.empty and spawned is None:
        return ()
    kernels = ", ".join(dict.fromkeys(map(str, spawns["kernel"])))
    start = f"{kernels} starts processes by {spawns['operation'].iloc[0]}"
    traced = {trace.world: trace.head["size"] for trace in traces}
    ranks = traced.pop("")
    started = [each for trace in traces for each in trace.started]
    missing = sum(processes for world, processes in started if world not in traced)
    warnings = []
    if spawned is not None:
        sending = spawned[spawned["kind"].isin(list(SENDING))]
        count = sum(traced.values())
        warnings.append(
            f"{start}, {count} besides the {ranks} ranks of this run: their {sending['count'].sum():,} messages of "
            f"{format_si(float(sending['bytes'].sum()), 'B')} are in the table spawned, and in no model"
        )
    if missing or not started:
        which = f", {missing} of" if spawned is not None else ""
        warnings.append(f"{start},{which} which are not traced: their messages, times and memory are missing")
    return tuple(warnings)


def _notes(traces: Sequence[RankTrace]) -> tuple[str, ...]:
    notes = []
    unusual = [(trace.head["rank"], trace.ended) for trace in traces if trace.ended != "finalize"]
    for ended in dict.fromkeys(ended for _, ended in unusual):
        which = named([rank for rank, how in unusual if how == ended])
        notes.append(f"{which} ended by {ended} without MPI_Finalize: a call under way then is missing")
    for name in ("records", "peers", "events"):
        dropped = sum(thread.state[f"{name}_dropped"] for trace in traces for thread in trace.threads)
        if dropped:
            notes.append(f"{dropped} calls found no place in a full table of {name} and are not in it")
    return tuple(notes)
