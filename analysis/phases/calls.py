"""The calls of one configuration's runs, with what each rank computed before each of them.

Calls come from an event trace. Their computation is the time since the call before, in processor time where the tracer
has it for calls from the same places, as ranks that share a core also wait for each other between calls. Where
counters were dumped between calls (``callgrind-intervals``), instructions and loads of the same stretches are added.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ranksight.core import limits
from ranksight.core.arrays import Array, Ints, Mask
from ranksight.core.errors import InputError, InsufficientError
from ranksight.core.experiment import Experiment, Run
from ranksight.core.records import dataclass
from ranksight.core.tables import open_table
from ranksight.counters.collectors.callgrind_intervals import INTERVALS
from ranksight.counters.mpi_calls import CALLS, COMPLETING, END, POSTING

Workload = tuple[tuple[str, float], ...]
EVENTS = "events"
LOADS = ("loads_l1", "loads_l2", "loads_l3", "loads_mem")
COUNTED = ("instructions", "flops", *LOADS)
"""Counts of a stretch of computation that may be known in addition to its time."""
_BOUNDS = frozenset((*CALLS, END))
_GATHERED = frozenset((*POSTING, *COMPLETING))
_NEEDED = ("rank", "kernel", "operation", "bytes")


@dataclass(frozen=True)
class Calls:
    """Calls of all ranks at one configuration."""

    configuration: Mapping[str, float]
    table: pd.DataFrame
    """``rank``, ``kernel``, ``operation``, ``bytes``, ``computation`` (s before the call), ``communication`` (s in it),
    ``token`` (which token of its rank's sequence) and those of :data:`COUNTED` that are known; rows in the order of
    rank and time."""
    notes: tuple[str, ...] = ()  # what of the runs could not be used, and why
    shared: bool = False  # whether ranks shared cores, so that times in MPI are those of waiting for a core too

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return int(self.configuration["ranks"])

    @property
    def workload(self) -> Workload:
        """The parameters other than the ranks."""
        return tuple((name, float(value)) for name, value in self.configuration.items() if name != "ranks")

    def has(self, name: str) -> bool:
        """Whether `name` is known of every stretch."""
        return name in self.table and bool(self.table[name].notna().all())

    def sequences(self) -> tuple[list[tuple[str, str]], list[tuple[int, Ints, Array]]]:
        """Distinct tokens (kernel and operation); and of each rank its number, its tokens' places there, and its work.

        Work is what was computed before each token: instructions, or else time.
        """
        names = self.table[["kernel", "operation"]].astype(str)
        codes = names.groupby(["kernel", "operation"], sort=False).ngroup().to_numpy()
        tokens = [(kernel, operation) for kernel, operation in names.drop_duplicates().itertuples(index=False)]
        work = self.table["instructions" if self.has("instructions") else "computation"].to_numpy(dtype=np.float64)
        rank, token = self.table["rank"].to_numpy(), self.table["token"].to_numpy()
        sequences = []
        for begin, end in rank_rows(rank):
            first = np.flatnonzero(begins(token[begin:end]))
            sums = np.add.reduceat(np.nan_to_num(work[begin:end]), first)
            sequences.append((int(rank[begin]), codes[begin:end][first].astype(np.int64), sums))
        return tokens, sequences


def begins(values: NDArray[Any]) -> Mask:
    """Where (n,) a run of equal values begins."""
    return np.concatenate([[True], values[1:] != values[:-1]])[: len(values)]


def rank_rows(rank: NDArray[Any]) -> list[tuple[int, int]]:
    """First row and the row after the last of each rank, of rows in the order of ranks."""
    return list(itertools.pairwise([*np.flatnonzero(begins(rank)).tolist(), len(rank)]))


def traced(experiment: Experiment) -> dict[tuple[float, ...], list[Run]]:
    """Runs that hold an event trace, by configuration."""
    runs_of: dict[tuple[float, ...], list[Run]] = {}
    for run in experiment.runs:
        if (experiment.path / "runs" / run.id / f"{EVENTS}.parquet").is_file():
            runs_of.setdefault(run.point(experiment.parameters), []).append(run)
    return runs_of


def read_calls(experiment: Experiment, runs: Sequence[Run]) -> Calls:
    """Calls of one configuration from its traced `runs`; times are medians over repetitions that make the same calls.

    Raises InputError when a trace lacks a column or a rank; InsufficientError when a trace was cut off at its bound, or
    holds no call that communicates.
    """
    tables, notes = [], list[str]()
    for run in runs:
        cut = next((note for note in run.notes if "full table of events" in note), None)
        if cut is not None:
            raise InsufficientError(f"run {run.id}: {cut}", "trace a shorter run: fewer steps or iterations")
        rows = _rows(experiment.path / "runs" / run.id / f"{EVENTS}.parquet")
        if rows > limits.EVENTS:
            raise InsufficientError(
                f"run {run.id} traced {rows} events, more than the {limits.EVENTS} that are read",
                "trace a shorter run: fewer steps or iterations",
            )
        events = experiment.table(run, EVENTS)
        if events is not None:
            tables.append(_calls(events, experiment.table(run, "phases"), run))
    if not tables:
        raise InsufficientError("no event trace was measured", "measure with --collector pmpi-events")
    table = tables[0]
    same = [other for other in tables if _same(table, other)]
    if len(same) < len(tables):
        notes.append(f"{runs[0].id}: {len(tables) - len(same)} repetitions make other calls and are left out")
    for name in ("computation", "communication"):
        table[name] = np.median([other[name].to_numpy() for other in same], axis=0)
    configuration = dict(runs[0].configuration)
    table, note = _with_counts(experiment, table, configuration)
    notes += [note] if note else []
    return Calls(configuration, _tokens(table), tuple(notes), runs[0].crowded)


def _rows(file: Path) -> int:
    with open_table(file) as source:
        return int(source.metadata.num_rows)


def _calls(events: pd.DataFrame, stretches: pd.DataFrame | None, run: Run) -> pd.DataFrame:
    """Calls that communicate, of each rank's first thread, with the computation since the one before."""
    missing = [name for name in _NEEDED if name not in events.columns]
    if missing:
        raise InputError(f"the event trace of run {run.id} lacks {', '.join(missing)}", "measure the run again")
    chosen = np.ones(len(events), dtype=bool)
    if "thread" in events:
        chosen &= events["thread"].to_numpy() == 0
    if "peer" in events:
        chosen &= events["peer"].isna().to_numpy()
    calls = events[chosen].copy()
    ranks = calls["rank"].to_numpy()
    count, stated = len(np.unique(ranks)), run.configuration["ranks"]
    if count != stated:
        raise InputError(f"the event trace of run {run.id} holds {count} of {stated:g} ranks", "measure the run again")
    starts = begins(ranks)
    if "begin" in calls and "end" in calls:
        begin, end = calls["begin"].to_numpy(dtype=float), calls["end"].to_numpy(dtype=float)
        before = np.concatenate([[0.0], end[:-1]])
        gap = np.maximum(begin - np.where(starts, 0.0, before), 0.0)
        calls["computation"] = gap * _busy(calls, starts, stretches)
        calls["communication"] = np.maximum(end - begin, 0.0)
    else:
        calls["computation"], calls["communication"] = np.nan, np.nan
    # What lies before a call that does not communicate belongs to the next one that does.
    bounds = calls["operation"].isin(_BOUNDS).to_numpy()
    after = np.concatenate([[0], np.cumsum(bounds)[:-1]])
    key = pd.MultiIndex.from_arrays([ranks, after])
    added = [name for name in ("computation", *COUNTED) if name in calls]
    sums = calls[added].groupby(key, sort=False).sum(min_count=1)
    table = calls[bounds].copy()
    table[added] = sums.reindex(pd.MultiIndex.from_arrays([ranks[bounds], after[bounds]])).to_numpy()
    # Finalising takes what it takes once: it is not part of a phase.
    table.loc[table["operation"].astype(str) == END, "communication"] = 0.0
    if table.empty or set(table["operation"].astype(str)) == {END}:
        raise InsufficientError(f"run {run.id} makes no call that communicates: it has no phases")
    columns = ["rank", "kernel", "operation", "bytes", "communication", *added]
    return table[columns].astype({"kernel": str, "operation": str, "bytes": float}).reset_index(drop=True)


def _busy(calls: pd.DataFrame, starts: Mask, stretches: pd.DataFrame | None) -> Array:
    """Share of each stretch in which the rank had a core, from the tracer's sums over stretches of the same places."""
    busy = np.ones(len(calls))
    if stretches is None or "cpu_seconds" not in stretches:
        return busy
    known = stretches[(stretches["thread"] == 0) & (stretches["seconds"] > 0) & stretches["cpu_seconds"].notna()]
    share = (known["cpu_seconds"] / known["seconds"]).clip(0.0, 1.0)
    share.index = pd.MultiIndex.from_arrays([known["rank"], known["before"].astype(str), known["after"].astype(str)])
    names = calls["kernel"].astype(str).to_numpy()
    before = np.concatenate([[""], names[:-1]])
    keys = pd.MultiIndex.from_arrays([calls["rank"].to_numpy(), np.where(starts, "", before), names])
    return np.where(starts, 1.0, np.nan_to_num(share.reindex(keys).to_numpy(dtype=float), nan=1.0))


def _same(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    return len(one) == len(other) and all(
        bool((one[name].to_numpy() == other[name].to_numpy()).all()) for name in ("rank", "kernel", "operation")
    )


def _with_counts(
    experiment: Experiment, table: pd.DataFrame, configuration: Mapping[str, float]
) -> tuple[pd.DataFrame, str]:
    """The calls with the counters of the same stretches, where a run has them and makes the same calls."""
    for run in experiment.runs:
        if dict(run.configuration) != dict(configuration):
            continue
        counts = experiment.table(run, INTERVALS)
        if counts is None:
            continue
        counts = counts.sort_values(["rank", "number"], kind="stable", ignore_index=True)
        if len(counts) != len(table) or not (
            (counts["rank"].to_numpy() == table["rank"].to_numpy()).all()
            and (counts["operation"].astype(str).to_numpy() == table["operation"].to_numpy()).all()
        ):
            return table, f"{run.id}: its calls are not those of the event trace, its instructions are not used"
        names = [name for name in COUNTED if name in counts]
        return table.assign(**{name: counts[name].to_numpy(dtype=float) for name in names}), ""
    return table, ""


def _tokens(table: pd.DataFrame) -> pd.DataFrame:
    """Number the tokens: a call, or a run of calls from one place that only start or complete transfers.

    The number of partners differs from rank to rank; having partners does not.
    """
    rank, kernel, operation = (table[name].to_numpy() for name in ("rank", "kernel", "operation"))
    new_rank, gathered = begins(rank), np.isin(operation, list(_GATHERED))
    number = np.cumsum(new_rank | begins(kernel) | begins(operation) | ~gathered) - 1
    base = np.maximum.accumulate(np.where(new_rank, number, 0))
    return table.assign(token=number - base)
