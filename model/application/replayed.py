"""Replay as a law of the communication time: what ranks take for messages, and wait, in the order of their calls.

    ln T_comm = (1 - w) ln (BF_comm sum of prices) + w ln T_replay,    w = e_p^2 / (e_p^2 + e_r^2)

with e_p and e_r the errors (root mean square of logarithms) that each law has at runs that are predicted from those
with fewer ranks, and at one more by chance. The replay is of :mod:`ranksight.model.messages.schedule`; what the slowest
rank computes longer than the mean is T_imbalance in the program's time, and does not count as communication again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ranksight.comm.replay.machine import replay
from ranksight.core.arrays import Array, log_ratio
from ranksight.core.errors import RanksightError
from ranksight.model.application.comm_blocking import Taken
from ranksight.model.application.communication import Communication, Replay
from ranksight.model.application.exchanged import Exchanged
from ranksight.model.application.network import Network
from ranksight.model.messages.message_model import Messages
from ranksight.model.messages.schedule import dealt_out, schedule
from ranksight.model.quantity import Quantity

FEWEST = 2
"""Numbers of ranks that a run is predicted from."""
CHANCE = 0.1
"""Error of one more run, the same for both laws: few runs do not decide which law holds further on."""
MOST_MESSAGES = 1 << 26
"""Ranks times ranks times calls of a step up to which a program is replayed for a prediction."""


def replayed_seconds(messages: Messages, network: Network, points: Array, computing: Array) -> Array:
    """Seconds (2, k) at `points` (k, m), where ranks compute `computing` (k,) on average: what the program takes beyond
    its slowest rank's computation, and what a rank does not compute, mean over ranks.

    NaN where no order of calls is known, or it cannot be replayed.
    """
    seconds = np.full((2, len(points)), np.nan)
    if messages.order is None:
        return seconds
    fabric, choice = network.fabric(), network.choice()
    for k, (point, mean) in enumerate(zip(points, computing.tolist(), strict=True)):
        try:
            table = messages.predict(point)
            if table.ranks**2 * len(messages.order.places) > MOST_MESSAGES or not np.isfinite(mean):
                continue
            each = dealt_out(messages.order, table.ranks, mean)
            made = schedule(messages, table, each)
            ran = replay(made.program, fabric, choice)
            seconds[:, k] = ran.time * made.times - each.max(), ran.communication.mean() * made.times
        except RanksightError:
            continue  # a table that is not predicted there, or an order that does not hold
    return np.asarray(np.maximum(seconds, 0.0))


def weigh_replay(
    communication: Communication,
    network: Network,
    took: Taken,
    fit: Callable[[Taken], Communication],
    computing: Array,
    uneven: Array,
) -> Replay | None:
    """Weigh replay against BF_comm times prices; None where either cannot predict a run from those with fewer ranks.

    `took`: what communication took at n configurations. `fit`: the law of prices from some of them. `computing` and
    `uneven` (n,): mean seconds that ranks compute there, and those that the slowest computes longer.
    """
    if communication.messages is None or communication.messages.order is None:
        return None
    column = communication.functions.fitted.parameters.index("ranks")
    ranks, measured = took.points[:, column], np.nansum(np.exp(took.logs), axis=0) + uneven
    _, predicted = replayed_seconds(communication.messages, network, took.points, computing)
    errors: list[tuple[float, float]] = []
    for at in np.flatnonzero((measured > 0) & (predicted > 0)):
        fewer = ranks < ranks[at]
        if len(np.unique(ranks[fewer])) < FEWEST:
            continue
        part = replace(took, points=took.points[fewer], logs=took.logs[:, fewer], errors=took.errors[:, fewer])
        prices = float(fit(part).exchanged(took.points[at][None], network).times.value.sum() + uneven[at])
        if prices > 0:
            errors.append((float(np.log(prices / measured[at])), float(np.log(predicted[at] / measured[at]))))
    if not errors:
        return None
    by_prices, by_replay = np.mean(np.square([*errors, (CHANCE, CHANCE)]), axis=0).tolist()
    return Replay(by_prices / (by_prices + by_replay), float(np.sqrt(by_replay)))


def mixed(law: Replay, exchanged: Exchanged, seconds: Array) -> Exchanged:
    """Times of operations with replay counted in: all of a configuration in the same proportion.

    `seconds` (k,): seconds by replay; NaN where it does not answer.
    """
    times = exchanged.times
    total = times.value.sum(axis=0)
    known = np.isfinite(seconds) & (seconds > 0) & (total > 0)
    weight = np.where(known & ~exchanged.measured, law.weight, 0.0)
    gap = np.where(known, log_ratio(np.where(known, seconds, 1.0), np.where(known, total, 1.0)), 0.0)
    # Where the laws differ, either may hold.
    spread = np.sqrt((weight * law.error) ** 2 + weight * (1 - weight) * gap**2)
    prices = Quantity.of_ends(times.value, times.lower, times.upper)
    prices = replace(prices, down=(1 - weight) * prices.down, up=(1 - weight) * prices.up)
    return replace(exchanged, times=times.having(prices.moved(weight * gap).wider(spread)))
