"""What messages that share links get: max-min fairness, and the time that each takes.

Each message gets the same rate on its busiest link, what others leave goes to those that can take it, and rates rise as
messages end. Source: Bertsekas and Gallager, "Data Networks", 2nd ed. 1992, section 6.5.2 (progressive filling).
"""

from __future__ import annotations

import numpy as np

from ranksight.comm.topology.shape import Routes
from ranksight.core.arrays import Array, Ints

MOST_ENDS = 24
"""Times at which messages end that are followed one by one; later ones keep their rate."""
MOST_STARTS = 48
"""Different times at which messages begin."""
NEAR = 1e-9
"""Relative difference of times that are one."""


def fair_rates(routes: Routes, limit: Array) -> Array:
    """Bytes a second of each message, (e,), while all are under way.

    `limit` (e,): what each could have for itself alone.
    """
    rate, left = np.asarray(limit, dtype=float).copy(), routes.capacity.astype(float).copy()
    message, link = routes.message, routes.link
    while len(message):
        users = np.bincount(link, minlength=len(left))
        share = np.where(users > 0, left / np.maximum(users, 1), np.inf)
        of = np.full(len(rate), np.inf)
        np.minimum.at(of, message, share[link])
        narrow = float(share.min())
        alone = (rate <= narrow * (1 + NEAR)) & np.isfinite(of)
        done = alone if alone.any() else of <= narrow * (1 + NEAR)
        if not alone.any():
            rate[done] = narrow
        ends = done[message]
        left = np.maximum(left - np.bincount(link[ends], weights=rate[message[ends]], minlength=len(left)), 0.0)
        message, link = message[~ends], link[~ends]
    return rate


def shared_seconds(routes: Routes, volume: Array, limit: Array, begin: Array | None = None) -> Array:
    """Seconds that each of the messages takes, (e,).

    `volume` (e,): bytes. `limit` (e,): bytes a second of each alone. `begin` (e,): when each begins; all together where
    not given. Beginnings closer to each other than a part of them all count as one.
    """
    used, link = np.unique(routes.link, return_inverse=True)
    routes = Routes(routes.message, link.reshape(-1), routes.capacity[used])
    left, now, last = np.asarray(volume, dtype=float).copy(), 0.0, MOST_ENDS
    starts = np.zeros(len(left))
    if begin is not None and len(left) and np.ptp(begin) > 0:
        step = float(np.ptp(begin)) / MOST_STARTS
        starts, last = np.floor((begin - begin.min()) / step) * step, 3 * MOST_STARTS
    seconds, todo = np.zeros(len(left)), left > 0
    for turn in range(last):
        if not todo.any():
            break
        at = np.flatnonzero(todo & (starts <= now * (1 + NEAR)))
        later = starts[todo & (starts > now * (1 + NEAR))]
        if not len(at):
            now = float(later.min())
            continue
        number = np.full(len(left), -1)
        number[at] = np.arange(len(at))
        mine = number[routes.message] >= 0
        part = Routes(number[routes.message[mine]], routes.link[mine], routes.capacity)
        rate = fair_rates(part, limit[at])
        lasts = left[at] / rate
        step = float(lasts.min()) * (1 + NEAR) if turn < last - 1 else np.inf
        step = min(step, float(later.min()) - now) if len(later) else step
        ended = lasts <= step
        seconds[at[ended]] = now + lasts[ended] - starts[at[ended]]
        left[at[~ended]] -= rate[~ended] * min(step, float(lasts.max()))
        todo[at[ended]] = False
        now += step
    return np.where(todo, volume / limit, seconds)


def overlapping(begin: Array, seconds: Array) -> Ints:
    """Number of the group of messages that are under way at the same time, (e,): a group ends where all have ended."""
    order = np.argsort(begin, kind="stable")
    ends = np.maximum.accumulate((begin + seconds)[order])
    group = np.zeros(len(begin), dtype=np.int64)
    group[order[1:]] = np.cumsum(begin[order][1:] > ends[:-1])
    return group
