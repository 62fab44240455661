"""The time that a predicted message table takes on a network: of the rank that it takes longest.

Blocking messages follow each other, ``T(s)`` each. Nonblocking ones that are completed together are in flight together:
with `w` completions of all (``MPI_Waitall``) on a rank its `c` sends make `w` trains of ``c / w`` messages, each of
``sum of spacing(s) + T(s) of the last`` (LogGP, Alexandrov et al. 1995). Collectives cost what the algorithm that the
library chooses costs. A superstep ends with its slowest rank, so the times reported are those of the rank with most.

Ranks of a node that send to other nodes at the same time share what its adapter carries; so do all ranks that send to
one node share its adapter on the way in. Each sender gets the same rate until it is done, so a sender with ``b`` bytes
among senders with ``b_j`` is done when ``sum_j min(b_j, b)`` bytes have gone through (max-min fairness: Bertsekas and
Gallager, "Data Networks", 2nd ed. 1992, section 6.5.2): as if that over ``b`` pairs shared the link.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.comm.costs.collective import OPERATIONS, block, operation_name
from ranksight.comm.costs.cost import Choice, cost
from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.costs.pointtopoint import NEIGHBOURS, SENDS
from ranksight.comm.topology.sharing import shared_seconds
from ranksight.core.arrays import Array, Index, Ints, Mask, ratio
from ranksight.model.messages.table import MessageTable, Row

if TYPE_CHECKING:
    from ranksight.comm.topology.shape import End

TOGETHER = ("waitall", "testall", "waitsome")
"""Completions that end several messages at once."""
NONBLOCKING = ("isend", "issend", "ibsend", "irsend")
MOST_RANKS = 1 << 16
"""Ranks beyond which not every one of them is looked at."""


def times_of_volumes(
    asked: Sequence[tuple[MessageTable, str]], fabric: Fabric, choice: Choice
) -> list[dict[tuple[str, str], float]]:
    """Seconds of every kernel's operation on the rank whose messages take longest, for each table with its volume.

    Operations whose time is not known, or is counted with another, are left out; an operation is priced once for all.
    Raises InputError where the network's shape cannot hold the ranks of a table.

    `asked`: volumes ("bytes", "low", "high") of a row. `choice`: of collective algorithms; see
    :func:`ranksight.comm.costs.cost.cost`.
    """
    shape = fabric.topology
    if shape is not None:
        for ranks in {table.ranks for table, _ in asked}:
            shape.holds(int(fabric.nodes(ranks)), f"a job of {ranks:,} ranks")
    joined = {id(table): _scatters_joined(table) for table, _ in asked}
    each = [(joined[id(table)], volume) for table, volume in asked]
    collectives = _collectives(each, fabric, choice)
    return [_times(table, fabric, volume, of) for (table, volume), of in zip(each, collectives, strict=True)]


def priced_on(
    asked: Sequence[tuple[MessageTable, str]], fabric: Fabric, choice: Choice
) -> list[dict[tuple[str, str], float]]:
    """:func:`times_of_volumes`; at the ends of the volumes' intervals those of the network's shape hold too."""
    if not (fabric.topology and fabric.topology.uncertain):
        return times_of_volumes(asked, fabric, choice)
    ends: dict[str, End] = {"bytes": "middle", "low": "fast", "high": "slow"}
    priced = {
        volume: iter(times_of_volumes([one for one in asked if one[1] == volume], fabric.at(end), choice))
        for volume, end in ends.items()
    }
    return [next(priced[volume]) for _, volume in asked]


def _times(
    table: MessageTable, fabric: Fabric, volume: str, collectives: Mapping[int, Array]
) -> dict[tuple[str, str], float]:
    """:func:`times_of_volumes` of a table, given the seconds (ranks,) of those of its rows that are collectives."""
    members = len(table.rows[0].count) if table.rows else 0
    together, seconds = (defaultdict[Any, Array](lambda: np.zeros(members)) for _ in range(2))
    trains = defaultdict[tuple[str, str], list[tuple[Array, Array, Array]]](list)
    for row in table.rows:
        if operation_name(row.operation) in TOGETHER:
            together[row.kernel] = together[row.kernel] + row.count
    for at, row in enumerate(table.rows):
        name, key = operation_name(row.operation), (row.kernel, row.operation)
        if at in collectives:
            seconds[key] = seconds[key] + collectives[at]
        elif name in SENDS or name in NEIGHBOURS:
            parts = _messages(row, table.ranks, fabric, volume)
            if name in NEIGHBOURS or (name in NONBLOCKING and (together[row.kernel] > 0).any()):
                trains[key] += parts
            else:
                seconds[key] = seconds[key] + sum(transfer for _, _, transfer in parts)
    for key, parts in trains.items():
        name = operation_name(key[1])
        calls = sum(row.count for row in table.rows if (row.kernel, row.operation) == key)
        rounds = calls if name in NEIGHBOURS else together[key[0]]
        seconds[key] = _train(parts, np.asarray(rounds, dtype=float))
    if not seconds:
        return {}
    slowest = int(np.argmax(sum(seconds.values())))
    return {key: float(times[slowest]) for key, times in seconds.items()}


def _collectives(each: Sequence[tuple[MessageTable, str]], fabric: Fabric, choice: Choice) -> list[dict[int, Array]]:
    """Of each table and volume: by number of the row, seconds (ranks,) of the rows that are collectives."""
    by_table: list[dict[int, Array]] = [{} for _ in each]
    asked: dict[str, list[tuple[dict[int, Array], int, Row, int, Array, Index]]] = {}
    for (table, volume), target in zip(each, by_table, strict=True):
        for at, row in enumerate(table.rows):
            if (name := operation_name(row.operation)) in OPERATIONS:
                sizes, back = ratio(getattr(row, volume), row.count, 0.0), np.zeros(1, dtype=np.intp)
                if len(sizes) > 1:
                    sizes, back = np.unique(sizes, return_inverse=True)
                size = row.comm_size or table.ranks
                asked.setdefault(name, []).append((target, at, row, size, sizes, back.reshape(-1)))
    for name, rows in asked.items():
        lengths = [len(sizes) for *_, sizes, _ in rows]
        ranks = np.repeat([size for _, _, _, size, _, _ in rows], lengths)
        sizes = np.concatenate([sizes for *_, sizes, _ in rows])
        # Ends of an interval are often one value, and a call costs as much however often it is asked for.
        different, where = np.unique(np.stack([ranks, block(name, ranks, sizes)]), axis=1, return_inverse=True)
        every = cost(name, different[0], different[1], fabric, choice)[where.reshape(-1)]
        for (target, at, row, _, _, back), one in zip(rows, np.split(every, np.cumsum(lengths)[:-1]), strict=True):
            target[at] = np.asarray(row.count * one[back])
    return by_table


def calls_of(table: MessageTable) -> dict[tuple[str, str], tuple[int, float]]:
    """Ranks of the communicator and bytes of a call of each kernel's operation, as costs take them; where calls differ,
    of those that move most."""
    calls: dict[tuple[str, str], tuple[float, int, float]] = {}
    for row in _scatters_joined(table).rows:
        count, volume, ranks = float(row.count.sum()), float(row.bytes.sum()), row.comm_size or table.ranks
        if count > 0 and volume >= calls.get(row.key, (-1.0,))[0]:
            calls[row.key] = volume, ranks, float(block(row.operation, ranks, volume / count))
    return {key: (ranks, size) for key, (_, ranks, size) in calls.items()}


def _scatters_joined(table: MessageTable) -> MessageTable:
    """The table with all sizes of a scatter in one row, in which every rank hands over a block a call.

    The root hands over the blocks of all `p`, and every other rank is counted with its own: (2 p - 1) / p blocks in the
    mean over ranks.
    """
    each = defaultdict[tuple[tuple[str, str], int], list[Row]](list)
    others: list[Row] = []
    for row in table.rows:
        scatter = operation_name(row.operation) in ("scatter", "scatterv")
        (each[row.key, row.comm_size] if scatter else others).append(row)
    for (_, size), rows in each.items():
        p, count = size or table.ranks, np.sum([row.count for row in rows], axis=0)
        share = p / (2 * p - 1) * ratio(count, count.sum(), 0.0)
        volume, low, high = (
            share * sum(float(getattr(row, name).sum()) for row in rows) for name in ("bytes", "low", "high")
        )
        others.append(replace(rows[0], count=count, bytes=volume, low=low, high=high))
    return replace(table, rows=tuple(others)) if each else table


def _train(parts: list[tuple[Array, Array, Array]], rounds: Array) -> Array:
    """Messages of several sizes in `rounds` trains: all spacings, and for the largest of each train its whole way."""
    count = np.stack([part[0] for part in parts])
    each = [ratio(part[1], part[0], 0.0) for part in parts]
    last = [ratio(part[2], part[0], 0.0) for part in parts]
    extra = np.max(np.stack(last) - np.stack(each), axis=0)
    spacing = sum(part[1] for part in parts)
    # Without a completion of all on a rank its messages are waited for one by one.
    undisturbed = sum(part[2] for part in parts)
    trains = np.minimum(rounds, count.sum(axis=0))
    return np.asarray(np.where(rounds > 0, spacing + trains * extra, undisturbed))


def _messages(row: Row, ranks: int, fabric: Fabric, volume: str) -> list[tuple[Array, Array, Array]]:
    """Messages of every rank, and sums of their spacings and of their transfers; inside and between nodes apart."""
    if ranks < 2:  # what a rank sends to itself goes over no network
        return [(row.count, 0.0 * row.count, 0.0 * row.count)]
    if not len(row.links):
        size = ratio(getattr(row, volume), row.count, 0.0)
        link = fabric.far if ranks > fabric.ranks_per_node else fabric.near
        return [(row.count, row.count * link.spacing(size), row.count * link.transfer_time(size))]
    source, target = row.links // ranks, row.links % ranks
    scale = ratio(getattr(row, volume), row.bytes, 1.0)
    size = ratio(row.link_bytes, row.link_count, 0.0) * scale[source]
    sender_node, receiver_node = fabric.node_of(source, ranks), fabric.node_of(target, ranks)
    crossing = sender_node != receiver_node
    pairs = np.where(crossing, 1.0, min(fabric.inside, ranks))
    shared, hops = np.zeros((2, len(source)))
    if crossing.any() and fabric.topology is not None:
        sent = (
            source[crossing],
            sender_node[crossing],
            receiver_node[crossing],
            size[crossing],
            row.link_count[crossing],
        )
        shared[crossing], hops[crossing] = _over_links(fabric, *sent)
    elif crossing.any():
        moved = (size * row.link_count)[crossing]
        pairs[crossing] = sharing_pairs(source[crossing], sender_node[crossing], receiver_node[crossing], moved)
    parts = []
    for way in (crossing, ~crossing):
        if not way.any():
            continue
        link = fabric.far if way is crossing else fabric.near
        weights = row.link_count[way]

        def total(each: Array, way: Mask = way, weights: Array = weights) -> Array:
            return np.bincount(source[way], weights=weights * each, minlength=ranks).astype(np.float64)

        spacing, transfer = link.spacing(size[way], pairs[way]), link.transfer_time(size[way], pairs[way])
        slower = np.maximum(shared[way] - link.transfer.slope(size[way]) * size[way], 0.0)
        spacing, transfer = np.maximum(spacing, shared[way]), transfer + slower + hops[way]
        parts.append((total(np.ones(len(weights))), total(spacing), total(transfer)))
    return parts


def _over_links(
    fabric: Fabric, source: Ints, sender_node: Ints, receiver_node: Ints, size: Array, count: Array
) -> tuple[Array, Array]:
    """Of messages between nodes, (e,): seconds of each on the links that it shares, and of the switches on its way.

    A rank is done when the last of its bytes has come through, and its messages take that time in turn.
    """
    assert fabric.topology is not None
    shape, volume = fabric.topology, size * count * fabric.weight(size)
    undisturbed = ratio(fabric.weight(size), fabric.far.transfer.slope(size), np.inf)
    seconds = shared_seconds(shape.routes(sender_node, receiver_node), volume, undisturbed)
    last = np.zeros(int(source.max()) + 1)
    np.maximum.at(last, source, seconds)
    part = ratio(volume, np.bincount(source, weights=volume)[source], 0.0)
    return ratio(last[source] * part, count, 0.0), fabric.switching(size, shape.hops(sender_node, receiver_node))


def sharing_pairs(source: Ints, near: Ints, far: Ints, volume: Array) -> Array:
    """Pairs that share the adapters with each link between nodes, (e,), at least 1.

    `source` (e,): sending rank of each link. `near`, `far` (e,): its node, and that of the receiver. `volume` (e,):
    bytes that it carries.
    """
    ranks, sender = np.unique(source, return_inverse=True)
    sender = sender.reshape(-1)
    sent = np.bincount(sender, weights=volume, minlength=len(ranks))
    node = np.zeros(len(ranks), dtype=np.int64)
    node[sender] = near
    out = gone_through(node, sent.astype(np.float64))
    # On the way in: what each rank sends to one node, against what all others send there.
    nodes = int(far.max()) + 1
    ways, way = np.unique(source * nodes + far, return_inverse=True)
    way = way.reshape(-1)
    carried = np.bincount(way, weights=volume, minlength=len(ways)).astype(np.float64)
    into = gone_through(ways % nodes, carried)
    busiest = np.zeros(len(ranks))
    np.maximum.at(busiest, sender, into[way])
    through = np.maximum(out, busiest)
    return np.asarray(np.maximum(ratio(through, sent, 1.0), 1.0)[sender])


def gone_through(group: Ints, volume: Array) -> Array:
    """``sum_j min(b_j, b_i)`` over the members j of the group of each i, (n,)."""
    order = np.lexsort((volume, group))
    groups, sizes = group[order], volume[order]
    first = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]])) if len(order) else np.zeros(0, np.intp)
    members = np.diff(np.append(first, len(order)))
    begin = np.repeat(first, members)
    smaller = np.concatenate([[0.0], np.cumsum(sizes)])
    # Those before it in its group are smaller and done; it and those behind have had as much as itself.
    left = np.repeat(first + members, members) - np.arange(len(order))
    total = np.empty(len(order))
    total[order] = smaller[np.arange(len(order))] - smaller[begin] + left * sizes
    return total
