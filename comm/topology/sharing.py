"""What messages that share links get: max-min fairness, and the time that each takes.

Each message gets the same rate on its busiest link, what others leave goes to those that can take it, and rates rise as
messages end. Under flow control by round trips (TCP) the rates on a link are in proportion to the inverse of the round
trip instead. Sources: Bertsekas and Gallager, "Data Networks", 2nd ed. 1992, section 6.5.2 (progressive filling, and
its weighted form); Lakshman and Madhow, IEEE/ACM Trans. Networking 5 (1997) 336 (round trips).
"""

from __future__ import annotations

import numpy as np

from ranksight.comm.topology.shape import Routes
from ranksight.core.arrays import Array, Ints, Mask

TOGETHER = 0.01
"""Part of the longest message's time in which rates stay as they are while messages begin and end."""
MOST_TURNS = 4
"""How often messages are grouped again by the times that they take."""
NEAR = 1e-9
"""Relative difference of times that are one."""


def fair_rates(routes: Routes, limit: Array, part: Array | None = None) -> Array:
    """Bytes a second of each message, (e,), while all are under way.

    `limit` (e,): what each could have for itself alone. `part` (e,): in proportion to which they share a link; equally
    where not given.
    """
    part = np.ones(len(limit)) if part is None else part
    rate, left = np.asarray(limit / part, dtype=float), routes.capacity.astype(float).copy()
    message, link = routes.message, routes.link
    load = np.ones(len(link)) if routes.load is None else routes.load
    while len(message):
        users = np.bincount(link, weights=part[message] * load, minlength=len(left))
        share = np.where(users > 0, left / np.where(users > 0, users, 1.0), np.inf)
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
        consumed = (rate * part)[message[ends]] * load[ends]
        left = np.maximum(left - np.bincount(link[ends], weights=consumed, minlength=len(left)), 0.0)
        message, link, load = message[~ends], link[~ends], load[~ends]
    return np.asarray(rate * part)


def shared_seconds(
    routes: Routes, volume: Array, limit: Array, begin: Array | None = None, part: Array | None = None
) -> Array:
    """Seconds that each of the messages takes, (e,); 0 where it has no bytes.

    `volume` (e,): bytes. `limit` (e,): bytes a second of each alone. `begin` (e,): when each begins; all together where
    not given. `part` (e,): as :func:`fair_rates` takes it. Messages that begin while rates stay as they are have theirs
    from when they begin.
    """
    if begin is None:
        return _flow(routes, volume, limit, np.zeros(len(volume)), part)
    sent = np.asarray(volume > 0)
    undisturbed = np.where(sent, volume / np.minimum(limit, _narrowest(routes, len(volume))), 0.0)
    seconds, known = undisturbed, 0
    for _ in range(MOST_TURNS):
        # Messages that never meet others on a link need not be looked at together with them.
        several, group = _meeting(routes, begin, seconds, sent)
        if several == known:
            break
        known, first = several, np.full(several, np.inf)
        np.minimum.at(first, group[sent], begin[sent])
        met = np.flatnonzero(sent & (np.bincount(group[sent], minlength=several) > 1)[group])
        those = routes.among(met)
        of, link = np.unique(group[met][those.message] * len(routes.capacity) + those.link, return_inverse=True)
        separate = Routes(those.message, link.reshape(-1), routes.capacity[of % len(routes.capacity)], those.load)
        seconds = undisturbed.copy()
        start, each = (begin - first[group])[met], None if part is None else part[met]
        seconds[met] = _flow(separate, volume[met], limit[met], start, each)
    return seconds


def _narrowest(routes: Routes, messages: int) -> Array:
    """Bytes a second of each message where no other is on its links, (e,), but for its own limit."""
    capacity = routes.capacity[routes.link]
    narrowest = np.full(messages, np.inf)
    np.minimum.at(narrowest, routes.message, capacity if routes.load is None else capacity / routes.load)
    return narrowest


def _meeting(routes: Routes, begin: Array, seconds: Array, sent: Mask) -> tuple[int, Ints]:
    """How many groups of messages have no link in common while they are under way, and the group of each, (e,)."""
    kept = sent[routes.message]
    message, link = routes.message[kept], routes.link[kept]
    order = np.lexsort((begin[message], link))
    message, link = message[order], link[order]
    # The latest end of those before it on a link: each link has a time of its own.
    origin = float(begin[sent].min(initial=np.inf)) if sent.any() else 0.0
    start, end = begin[message] - origin, (begin + seconds)[message] - origin
    day = 2.0 * (float(end.max(initial=0.0)) + 1e-300)
    latest = np.maximum.accumulate(end + day * link)
    # Those that begin as others end do not meet them.
    meets = (link[1:] == link[:-1]) & (start[1:] + day * (link[1:] + NEAR) < latest[:-1])
    pairs = message[:-1][meets], message[1:][meets]
    # Predictions without links to share do without scipy.
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(pairs[0])), pairs), shape=(len(begin),) * 2)
    several, group = connected_components(graph, directed=False)
    return int(several), np.asarray(group, dtype=np.int64)


def _flow(routes: Routes, volume: Array, limit: Array, begin: Array, part: Array | None) -> Array:
    """:func:`shared_seconds` of messages that are all looked at together."""
    used, link = np.unique(routes.link, return_inverse=True)
    routes = Routes(routes.message, link.reshape(-1), routes.capacity[used], routes.load)
    left = np.asarray(volume, dtype=float).copy()
    seconds, todo, longest = np.zeros(len(left)), left > 0, 0.0
    starts = np.where(todo, begin, np.inf)
    upcoming = np.sort(starts[todo])
    now, fresh = (float(upcoming[0]) if len(upcoming) else 0.0), todo.copy()
    while todo.any():
        at = np.flatnonzero(todo & (starts <= now))
        rate = fair_rates(routes.among(at), limit[at], None if part is None else part[at])
        # What has begun since rates were last set has had as much from then on.
        bounded = np.isfinite(rate)
        left[at] -= np.where(fresh[at] & bounded, np.where(bounded, rate, 0.0) * (now - starts[at]), 0.0)
        fresh[at] = False
        # A message without a limit takes no time.
        lasts = np.where(bounded, left[at] / rate, starts[at] - now)
        longest = max(longest, float((now + lasts - starts[at]).max()))
        step = max(float(lasts.min()) * (1 + NEAR), TOGETHER * longest)
        later = int(np.searchsorted(upcoming, now, side="right"))
        if later < len(upcoming):
            step = min(step, max(float(upcoming[later]) - now, TOGETHER * longest))
        ended = lasts <= step
        seconds[at[ended]] = np.maximum(now + lasts[ended] - starts[at[ended]], 0.0)
        left[at[~ended]] -= rate[~ended] * step
        todo[at[ended]] = False
        now += step
        if ended.all() and later < len(upcoming):
            now = max(now, float(upcoming[later]))
    return seconds
