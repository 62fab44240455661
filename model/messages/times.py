"""The time that a predicted message table takes on a network: of the rank that it takes longest.

Blocking messages follow each other, ``T(s)`` each. Nonblocking ones that are completed together are in flight together:
with `w` completions of all (``MPI_Waitall``) on a rank its `c` sends make `w` trains of ``c / w`` messages, each of
``sum of spacing(s) + T(s) of the last`` (LogGP, Alexandrov et al. 1995). Collectives cost what the algorithm that the
library chooses costs. A superstep ends with its slowest rank, so the times reported are those of the rank with most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ranksight.comm.costs.collective import OPERATIONS, block, operation_name
from ranksight.comm.costs.cost import cost
from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.costs.pointtopoint import NEIGHBOURS, SENDS
from ranksight.comm.costs.selection import Selector
from ranksight.core.arrays import Array, Index, Mask
from ranksight.model.messages.adapters import sharing_pairs
from ranksight.model.messages.table import MessageTable, Row

Choice = str | Selector | Mapping[str, str]
TOGETHER = ("waitall", "testall", "waitsome")
"""Completions that end several messages at once."""
NONBLOCKING = ("isend", "issend", "ibsend", "irsend")
MOST_RANKS = 1 << 16
"""Ranks beyond which not every one of them is looked at."""


def times_of_tables(
    tables: Sequence[MessageTable], fabric: Fabric, choice: Choice, volumes: Sequence[str]
) -> list[list[dict[tuple[str, str], float]]]:
    """Seconds of every kernel's operation on the rank whose messages take longest, for each table and volume.

    Operations whose time is not known, or is counted with another, are left out; an operation is priced once for all.
    `choice`: of collective algorithms; see :func:`ranksight.comm.costs.cost.cost`. `volumes` ("bytes", "low", "high"):
    which of a row's volumes.
    """
    collectives = iter(_collectives(tables, fabric, choice, volumes))
    return [[_times(table, fabric, volume, next(collectives)) for volume in volumes] for table in tables]


def _times(
    table: MessageTable, fabric: Fabric, volume: str, collectives: Mapping[int, Array]
) -> dict[tuple[str, str], float]:
    """:func:`times_of_tables` of a table, given the seconds (ranks,) of those of its rows that are collectives."""
    together: dict[str, Array] = {}
    for row in table.rows:
        if operation_name(row.operation) in TOGETHER:
            together[row.kernel] = together.get(row.kernel, np.zeros(table.ranks)) + row.count
    found: dict[tuple[str, str], Array] = {}
    trains: dict[tuple[str, str], list[tuple[Array, Array, Array]]] = {}
    for at, row in enumerate(table.rows):
        name, key = operation_name(row.operation), (row.kernel, row.operation)
        if at in collectives:
            found[key] = found.get(key, np.zeros(table.ranks)) + collectives[at]
        elif name in SENDS or name in NEIGHBOURS:
            parts = _messages(row, table.ranks, fabric, volume)
            if name in NEIGHBOURS or (name in NONBLOCKING and (together.get(row.kernel, np.zeros(1)) > 0).any()):
                trains.setdefault(key, []).extend(parts)
            else:
                found[key] = found.get(key, np.zeros(table.ranks)) + sum(transfer for _, _, transfer in parts)
    for key, parts in trains.items():
        name = operation_name(key[1])
        calls = sum(row.count for row in table.rows if (row.kernel, row.operation) == key)
        rounds = calls if name in NEIGHBOURS else together[key[0]]
        found[key] = _train(parts, np.asarray(rounds, dtype=float))
    if not found:
        return {}
    slowest = int(np.argmax(sum(found.values())))
    return {key: float(times[slowest]) for key, times in found.items()}


def _collectives(
    tables: Sequence[MessageTable], fabric: Fabric, choice: Choice, volumes: Sequence[str]
) -> list[dict[int, Array]]:
    """Of each table and volume in turn: by number of the row, seconds (ranks,) of the rows that are collectives."""
    found: list[dict[int, Array]] = []
    asked: dict[str, list[tuple[dict[int, Array], int, Row, int, Array, Index]]] = {}
    for table in tables:
        names = [(at, row, operation_name(row.operation)) for at, row in enumerate(table.rows)]
        rows = [(at, row, name) for at, row, name in names if name in OPERATIONS]
        for volume in volumes:
            found.append({})
            for at, row, name in rows:
                sizes, back = np.unique(_handed_over(row, name, table.ranks, volume), return_inverse=True)
                size = row.comm_size or table.ranks
                asked.setdefault(name, []).append((found[-1], at, row, size, sizes, back.reshape(-1)))
    for name, each in asked.items():
        lengths = [len(sizes) for *_, sizes, _ in each]
        ranks = np.repeat([size for _, _, _, size, _, _ in each], lengths)
        sizes = np.concatenate([sizes for *_, sizes, _ in each])
        seconds = np.split(cost(name, ranks, block(name, ranks, sizes), fabric, choice), np.cumsum(lengths)[:-1])
        for (target, at, row, _, _, back), one in zip(each, seconds, strict=True):
            target[at] = np.asarray(row.count * one[back])
    return found


def _handed_over(row: Row, name: str, ranks: int, volume: str) -> Array:
    """Bytes (ranks,) that a call of a rank hands over."""
    mean = np.divide(getattr(row, volume), row.count, out=np.zeros(ranks), where=row.count > 0)
    if name in ("scatter", "scatterv"):
        # The root's volume is all blocks; every other rank's is one.
        mean = np.full(ranks, float(np.median(mean[row.count > 0])) if (row.count > 0).any() else 0.0)
    return np.asarray(mean)


def _train(parts: list[tuple[Array, Array, Array]], rounds: Array) -> Array:
    """Messages of several sizes in `rounds` trains: all spacings, and for the largest of each train its whole way."""
    count = np.stack([part[0] for part in parts])
    each = [np.divide(part[1], part[0], out=np.zeros_like(part[1]), where=part[0] > 0) for part in parts]
    last = [np.divide(part[2], part[0], out=np.zeros_like(part[2]), where=part[0] > 0) for part in parts]
    extra = np.max(np.stack(last) - np.stack(each), axis=0)
    spacing = sum(part[1] for part in parts)
    # Without a completion of all on a rank its messages are waited for one by one.
    alone = sum(part[2] for part in parts)
    trains = np.minimum(rounds, count.sum(axis=0))
    return np.asarray(np.where(rounds > 0, spacing + trains * extra, alone))


def _messages(row: Row, ranks: int, fabric: Fabric, volume: str) -> list[tuple[Array, Array, Array]]:
    """Messages of every rank, and sums of their spacings and of their transfers; inside and between nodes apart."""
    if not len(row.links):
        size = np.divide(getattr(row, volume), row.count, out=np.zeros(ranks), where=row.count > 0)
        link = fabric.far if fabric.inter is not None and ranks > fabric.ranks_per_node else fabric.near
        return [(row.count, row.count * link.spacing(size), row.count * link.transfer_time(size))]
    source, target = row.links // ranks, row.links % ranks
    scale = np.divide(getattr(row, volume), row.bytes, out=np.ones(ranks), where=row.bytes > 0)
    size = (
        np.divide(row.link_bytes, row.link_count, out=np.zeros(len(source)), where=row.link_count > 0) * scale[source]
    )
    here, there = fabric.node_of(source, ranks), fabric.node_of(target, ranks)
    crossing = (here != there) if fabric.inter is not None else np.zeros(len(source), dtype=bool)
    pairs = np.ones(len(source))
    if crossing.any():
        moved = (size * row.link_count)[crossing]
        pairs[crossing] = sharing_pairs(source[crossing], here[crossing], there[crossing], moved)
    parts = []
    for way in (crossing, ~crossing):
        if not way.any():
            continue
        link = fabric.far if way is crossing or fabric.intra is None else fabric.near
        weights = row.link_count[way]

        def total(each: Array, way: Mask = way, weights: Array = weights) -> Array:
            return np.bincount(source[way], weights=weights * each, minlength=ranks).astype(np.float64)

        spacing, transfer = link.spacing(size[way], pairs[way]), link.transfer_time(size[way], pairs[way])
        parts.append((total(np.ones(len(weights))), total(spacing), total(transfer)))
    return parts
