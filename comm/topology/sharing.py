"""What messages that share links get: max-min fairness, and the time that each takes.

Each message gets the same rate on its busiest link, what others leave goes to those that can take it, and rates rise as
messages end. Source: Bertsekas and Gallager, "Data Networks", 2nd ed. 1992, section 6.5.2 (progressive filling).
"""

from __future__ import annotations

import numpy as np

from ranksight.comm.topology.shape import Routes
from ranksight.core.arrays import Array, Ints

TOGETHER = 0.01
"""Part of the longest message's time in which rates stay as they are while messages end."""
MOST_STARTS = 32
"""Different times at which messages that share links begin."""
MOST_TURNS = 8
"""How often messages are grouped again by the times that they take."""
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
        # What a link leaves for each of its messages never falls: those that can take no more than that are done.
        done = (rate <= of * (1 + NEAR)) & np.isfinite(of)
        if not done.any():
            # So are all messages of a link that is the busiest of each of them.
            least = np.full(len(left), np.inf)
            np.minimum.at(least, link, of[message])
            busiest = (least >= share * (1 - NEAR))[link]
            done[message[busiest]] = True
            rate[done] = of[done]
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
    left = np.asarray(volume, dtype=float).copy()
    starts = np.zeros(len(left)) if begin is None else _starts(begin)
    seconds, todo, longest = np.zeros(len(left)), left > 0, 0.0
    now = float(starts.min(initial=0.0))
    while todo.any():
        begun = starts <= now
        at, later = np.flatnonzero(todo & begun), starts[todo & ~begun]
        if not len(at):
            now = float(later.min())
            continue
        number = np.full(len(left), -1)
        number[at] = np.arange(len(at))
        under_way = number[routes.message] >= 0
        part = Routes(number[routes.message[under_way]], routes.link[under_way], routes.capacity)
        rate = fair_rates(part, limit[at])
        lasts = left[at] / rate
        longest = max(longest, float(lasts.max()))
        step = max(float(lasts.min()) * (1 + NEAR), TOGETHER * longest)
        now, before = (min(now + step, float(later.min())) if len(later) else now + step), now
        ended = lasts <= now - before
        seconds[at[ended]] = before + lasts[ended] - starts[at[ended]]
        left[at[~ended]] -= rate[~ended] * (now - before)
        todo[at[ended]] = False
    return seconds


def _starts(begin: Array) -> Array:
    """Times at which messages begin, no more than :data:`MOST_STARTS` different ones, from 0."""
    since = begin - begin.min(initial=np.inf)
    if len(np.unique(since)) <= MOST_STARTS:
        return np.asarray(since)
    step = float(since.max()) / MOST_STARTS
    return np.asarray(np.floor(since / step) * step)


def overlapping(begin: Array, seconds: Array) -> Ints:
    """Number of the group of messages that are under way at the same time, (e,): a group ends where all have ended."""
    order = np.argsort(begin, kind="stable")
    ends = np.maximum.accumulate((begin + seconds)[order])
    group = np.zeros(len(begin), dtype=np.int64)
    group[order[1:]] = np.cumsum(begin[order][1:] > ends[:-1])
    return group


def seconds_from(routes: Routes, volume: Array, limit: Array, begin: Array) -> Array:
    """:func:`shared_seconds` of messages of which not all are under way at the same time: those that are, together."""
    narrowest = np.asarray(limit, dtype=float).copy()
    np.minimum.at(narrowest, routes.message, routes.capacity[routes.link])
    seconds: Array = np.asarray(volume / narrowest)
    known = 0
    for _ in range(MOST_TURNS):
        groups = overlapping(begin, seconds)
        if (several := int(groups.max(initial=-1)) + 1) == known:
            break
        # Messages that share links take longer, and may come upon later ones.
        known, order = several, np.argsort(groups, kind="stable")
        for at in np.split(order, np.flatnonzero(np.diff(groups[order])) + 1):
            if len(at) > 1:
                number = np.full(len(volume), -1)
                number[at] = np.arange(len(at))
                inside = number[routes.message] >= 0
                part = Routes(number[routes.message[inside]], routes.link[inside], routes.capacity)
                seconds[at] = shared_seconds(part, volume[at], limit[at], begin[at])
    return seconds
