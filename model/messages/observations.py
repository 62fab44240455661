"""What the traces of an experiment say of each kernel's operations: who, how often, how much, with whom.

A program whose phases all communicate through one function makes one kernel's operation of several patterns: a halo, a
transposition, a ring. An event trace records the tag of every message; messages of tags with the same partners are one
pattern of those that share a call site, and each has rules of its own (Panadero et al. 2015, section 2.2.1: the general
equations of a phase).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ranksight.comm.costs.fabric import ceil_log2
from ranksight.comm.patterns.communicators import CommunicatorSize, communicator_sizes
from ranksight.core.arrays import Array
from ranksight.core.experiment import Experiment, Run
from ranksight.core.records import dataclass

if TYPE_CHECKING:
    import pandas as pd

MOST_CLASSES = 32
"""Patterns of one operation beyond which tags number something else than patterns."""
CALLED = ["kernel", "rank", "operation", "comm_size", "size_class", "peer"]
TAGGED = frozenset({"kernel", "rank", "operation", "comm_size", "peer", "bytes", "tag"})
"""Columns of an event trace that records the tags of messages."""


def with_tags(peers: pd.DataFrame, events: pd.DataFrame | None) -> pd.DataFrame:
    """`peers` with a column ``tag``, a row for each; unchanged where the events do not hold every message.

    `peers`: :data:`CALLED`, ``count`` and ``bytes``. `events`: :data:`TAGGED`, a row a transfer; rows without a peer
    are calls.
    """
    if events is None:
        return peers
    moved = events[(events["peer"] >= 0).fillna(False).to_numpy(dtype=bool) & events["tag"].notna().to_numpy()]
    size = moved["bytes"].to_numpy(dtype=np.int64)
    sums = moved.assign(
        size_class=np.where(size > 0, np.int64(1) << ceil_log2(size), 0),
        peer=moved["peer"].astype(np.int64),
        tag=moved["tag"].astype(np.int64),
    ).astype({"kernel": str, "operation": str})
    sums = sums.groupby([*CALLED, "tag"])["bytes"].agg(count="size", bytes="sum").reset_index()
    # A trace that was cut off has the tags of its beginning only.
    wanted, listed = (table.groupby(CALLED)[["count", "bytes"]].sum().astype(np.int64) for table in (peers, sums))
    return sums if wanted.equals(listed) else peers


def tag_classes(peers: Mapping[int, pd.DataFrame], ranks: Mapping[int, int]) -> list[tuple[int, ...]]:
    """Tags of one operation by pattern: those of a class have the same partners in every run.

    `peers`: by configuration ``rank``, ``peer`` and, where it is known, ``tag``. `ranks`: of each configuration.

    One class, empty, where tags do not help: they are not known everywhere, all have the same partners, or they number
    something else (they are others at every number of ranks, or too many).
    """
    together: list[tuple[int, ...]] = [()]
    if not peers or any("tag" not in table.columns for table in peers.values()):
        return together
    links = {place: table[["tag", "rank", "peer"]].drop_duplicates() for place, table in peers.items()}
    tags = {place: frozenset(table["tag"].unique().tolist()) for place, table in links.items()}
    rising = sorted(links, key=lambda place: ranks[place])
    for fewer, more in itertools.pairwise(rising):
        if not tags[fewer] <= tags[more]:
            return together
    # What the largest run alone has may be the number of a rank or of a message.
    counts = sorted({ranks[place] for place in links})
    if len(counts) > 1 and len({tags[place] for place in links if ranks[place] in counts[-2:]}) > 1:
        return together
    partners: dict[int, list[bytes]] = {tag: [] for tag in sorted(tags[rising[-1]])}
    for place in rising:
        codes = (links[place]["rank"] * ranks[place] + links[place]["peer"]).groupby(links[place]["tag"])
        links_of = {int(tag): np.sort(part.to_numpy(dtype=np.int64)).tobytes() for tag, part in codes}
        for tag, seen in partners.items():
            seen.append(links_of.get(tag, b""))
    classes: dict[tuple[bytes, ...], list[int]] = {}
    for tag, seen in partners.items():
        classes.setdefault(tuple(seen), []).append(tag)
    if not 1 < len(classes) <= MOST_CLASSES:
        return together
    return [tuple(members) for members in classes.values()]


KEYS = ("kernel", "rank", "operation", "comm_size", "size_class")
OUTSIDE = frozenset({"Init", "Init_thread", "Finalize"})
"""Operations that belong to no communication."""
GRIDS = frozenset({"Dims_create", "Cart_create"})
"""Operations by which a program lays its ranks out on a grid."""


@dataclass(frozen=True)
class Traced:
    """One configuration's run."""

    place: int  # index of the configuration
    ranks: int
    rows: pd.DataFrame  # messages: :data:`KEYS`, ``count`` and ``bytes``, without calls that moved nothing
    peers: pd.DataFrame | None
    """:data:`KEYS`, ``peer``, ``count`` and ``bytes``, and ``tag`` where an event trace records it; None where the run
    does not record partners by kernel."""


@dataclass(frozen=True)
class Observed:
    """One operation of one kernel on one kind of communicator, in all configurations that have it."""

    kernel: str
    operation: str
    communicator: CommunicatorSize
    rows: dict[int, pd.DataFrame]
    peers: dict[int, pd.DataFrame]
    """By the configuration's index: ``rank``, ``size_class``, ``count``, ``bytes``, and ``peer``."""
    tags: tuple[int, ...] = ()  # of the messages, where they distinguish patterns; empty for all
    silent: frozenset[int] = frozenset()  # configurations that have the operation, but no message with these tags

    def tagged(self, tags: tuple[int, ...]) -> Observed:
        """The messages with some tags alone; every message of :attr:`rows` is in :attr:`peers` with its tag."""
        peers = {place: table[table["tag"].isin(tags)] for place, table in self.peers.items()}
        peers = {place: table for place, table in peers.items() if len(table)}
        rows = {
            place: table.groupby(["rank", "size_class"])[["count", "bytes"]].sum().reset_index()
            for place, table in peers.items()
        }
        return replace(self, rows=rows, peers=peers, tags=tags, silent=frozenset(self.rows) - frozenset(rows))


def traced(experiment: Experiment) -> tuple[list[Traced], Array]:
    """The first traced run of every configuration, and the configurations (n, m).

    A run whose messages have tags comes before others. Counts and bytes are decided by the program, so repetitions say
    the same; runs that were not traced whole, or whose numbers are not those of single ranks, are left out.
    """
    traces: list[Traced] = []
    points: dict[tuple[float, ...], int] = {}
    for run in sorted(experiment.runs, key=lambda run: not _tagged(experiment, run)):
        point = run.point(experiment.parameters)
        if point in points or (rows := experiment.table(run, "messages")) is None:
            continue
        ranks = int(run.configuration["ranks"])
        if len(rows) and (rows["rank"].min() < 0 or rows["rank"].max() >= ranks):
            continue
        rows = rows[(rows["count"] > 0) & ~rows["operation"].isin(list(OUTSIDE))]
        peers = experiment.table(run, "peers")
        if peers is not None:
            peers = peers[peers["peer"] >= 0] if set(KEYS) <= set(peers.columns) else None
        points[point] = len(points)
        if peers is not None:
            peers = _plain(peers)
            if _tagged(experiment, run):
                peers = with_tags(peers, experiment.table(run, "events", sorted(TAGGED)))
        traces.append(Traced(len(traces), ranks, _plain(rows), peers))
    return traces, np.array(list(points), dtype=np.float64).reshape(len(points), len(experiment.parameters))


def _tagged(experiment: Experiment, run: Run) -> bool:
    return TAGGED.issubset(experiment.columns(run, "events"))


def _plain(table: pd.DataFrame) -> pd.DataFrame:
    return table.astype({"kernel": str, "operation": str})


def observed(runs: list[Traced]) -> Iterator[Observed]:
    """Every kernel's operation, split by kinds of communicators where these can be distinguished in every run."""
    groups = _by_operation({run.place: run.rows for run in runs})
    partners = _by_operation({run.place: run.peers for run in runs if run.peers is not None})
    ranks = {run.place: run.ranks for run in runs}
    on_grid = any(operation.removeprefix("MPI_") in GRIDS for _, operation in groups)
    for key, rows in groups.items():
        # One rank has only communicators of one: what it says of their sizes fits every equation.
        telling = {place: part for place, part in rows.items() if ranks[place] > 1} or rows
        seen: dict[int, list[int]] = {}
        for place, part in telling.items():
            sizes = seen.setdefault(ranks[place], [])
            sizes += [int(size) for size in part["comm_size"].unique() if size not in sizes]
        kinds = communicator_sizes(seen, on_grid)
        calls = [_calls(kind, kinds, telling, ranks) for kind in kinds]
        for communicator in kinds:
            tables_of = [telling, partners.get(key, {})]
            if len(kinds) > 1:
                tables_of = [_of_kind(communicator, kinds, calls, each, ranks) for each in tables_of]
            rows_of, peers_of = tables_of
            yield Observed(*key, communicator, rows_of, peers_of)


def _coincide(kind: CommunicatorSize, kinds: list[CommunicatorSize], ranks: int) -> list[int]:
    """Which kinds have as many ranks as this one."""
    return [n for n, other in enumerate(kinds) if other.at(ranks) == kind.at(ranks)]


def _calls(
    kind: CommunicatorSize, kinds: list[CommunicatorSize], tables: Mapping[int, pd.DataFrame], ranks: Mapping[int, int]
) -> float:
    """Calls of a rank in communicators of a kind, where no other kind has as many ranks; 1 where none is such."""
    single = [place for place in tables if len(_coincide(kind, kinds, ranks[place])) == 1]
    each = [tables[place].loc[tables[place]["comm_size"] == kind.at(ranks[place]), "count"] for place in single]
    means = [float(count.sum()) / ranks[place] for place, count in zip(single, each, strict=True)]
    return float(np.mean(means)) if means and np.mean(means) > 0 else 1.0


def _of_kind(
    kind: CommunicatorSize,
    kinds: list[CommunicatorSize],
    calls: list[float],
    tables: Mapping[int, pd.DataFrame],
    ranks: Mapping[int, int],
) -> dict[int, pd.DataFrame]:
    """Rows of calls in communicators of one kind; where others have as many ranks, its part of all by its `calls`."""
    rows_of = {}
    for place, table in tables.items():
        rows = table[table["comm_size"] == kind.at(ranks[place])]
        same = _coincide(kind, kinds, ranks[place])
        if len(same) > 1:
            part = calls[kinds.index(kind)] / sum(calls[n] for n in same)
            rows = rows.assign(count=rows["count"] * part, bytes=rows["bytes"] * part)
        if len(rows):
            rows_of[place] = rows
    return rows_of


def _by_operation(tables: Mapping[int, pd.DataFrame]) -> dict[tuple[str, str], dict[int, pd.DataFrame]]:
    """The tables of configurations, split by kernel and operation."""
    by_operation: dict[tuple[str, str], dict[int, pd.DataFrame]] = {}
    for place, table in tables.items():
        for (kernel, operation), part in table.groupby(["kernel", "operation"], observed=True):
            by_operation.setdefault((str(kernel), str(operation)), {})[place] = part
    return by_operation
