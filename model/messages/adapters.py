"""How many messages share a node's network adapter.

Ranks of a node that send to other nodes at the same time share what its adapter carries; so do all ranks that send to
one node share its adapter on the way in. Each sender gets the same rate until it is done, so a sender with ``b`` bytes
among senders with ``b_j`` is done when ``sum_j min(b_j, b)`` bytes have gone through (max-min fairness: Bertsekas and
Gallager, "Data Networks", 2nd ed. 1992, section 6.5.2): as if that over ``b`` pairs shared the link.
"""

from __future__ import annotations

import numpy as np

from ranksight.core.arrays import Array, Ints


def sharing_pairs(source: Ints, near: Ints, far: Ints, volume: Array) -> Array:
    """Pairs that share the adapters with each link between nodes, (e,), at least 1.

    `source` (e,): sending rank of each link. `near`, `far` (e,): its node, and that of the receiver. `volume` (e,):
    bytes that it carries.
    """
    ranks, sender = np.unique(source, return_inverse=True)
    sender = sender.reshape(-1)
    mine = np.bincount(sender, weights=volume, minlength=len(ranks))
    node = np.zeros(len(ranks), dtype=np.int64)
    node[sender] = near
    out = gone_through(node, mine.astype(np.float64))
    # On the way in: what each rank sends to one node, against what all others send there.
    nodes = int(far.max()) + 1
    ways, way = np.unique(source * nodes + far, return_inverse=True)
    way = way.reshape(-1)
    carried = np.bincount(way, weights=volume, minlength=len(ways)).astype(np.float64)
    into = gone_through(ways % nodes, carried)
    busiest = np.zeros(len(ranks))
    np.maximum.at(busiest, sender, into[way])
    through = np.maximum(out, busiest)
    return np.asarray(np.maximum(np.divide(through, mine, out=np.ones(len(ranks)), where=mine > 0), 1.0)[sender])


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
    found = np.empty(len(order))
    found[order] = smaller[np.arange(len(order))] - smaller[begin] + left * sizes
    return found
