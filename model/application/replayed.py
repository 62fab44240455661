"""Replay as a law of the communication time: what ranks take for messages, and wait, in the order of their calls.

    ln T_comm = (1 - w) ln (BF_comm sum of prices) + w ln (r T_replay),    w = e_p^2 / (e_p^2 + e_r^2)

with r the measured time over that of replay on the most ranks that were run: what the network's description lacks goes
on as it was there. e_p and e_r are the errors (root mean square of logarithms) that each law has at all runs, and at
one more as usual (:data:`ranksight.model.priors.MESSAGES_AHEAD`): few runs do not decide which law holds further on.
Prices predict each run by the BF_comm of those with fewer ranks, replay by their r, and the first by 1.
The replay is of :mod:`ranksight.model.messages.schedule`; what the slowest
rank computes longer than the mean is T_imbalance in the program's time, and does not count as communication again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ranksight.comm.replay.laid import Laid
from ranksight.core.arrays import Array, Mask, log_ratio, ratio
from ranksight.core.errors import RanksightError
from ranksight.core.records import dataclass
from ranksight.model.application.comm_blocking import Taken
from ranksight.model.application.communication import Communication
from ranksight.model.application.exchanged import NO_REPLAY, Exchanged, Replay
from ranksight.model.application.hidden import RESOLUTION
from ranksight.model.application.network import Network
from ranksight.model.messages.message_model import Messages
from ranksight.model.messages.schedule import Schedule, dealt_out, drawn, schedule
from ranksight.model.messages.table import MessageTable
from ranksight.model.priors import MESSAGES_AHEAD, OTHERS_NEGLIGIBLE
from ranksight.model.quantity import TAIL, Quantity

DRAWS = 4
"""Ways in which ranks are dealt out more work that are replayed, where it goes by chance."""
MOST_MESSAGES = 1 << 26
"""Ranks times ranks times calls of a step up to which a program is replayed for a prediction."""


REMEMBERED = 128
"""Replays that a model's messages remember."""


@dataclass(frozen=True)
class Question:
    """A replay that is asked for: verbs and pages ask the same several times."""

    network: str
    configuration: tuple[tuple[str, float], ...]
    mean: str  # seconds that a rank computes, to nine digits: sums in another order are the same
    draw: int = 0

    @classmethod
    def of(cls, network: Network, table: MessageTable, mean: float, draw: int = 0) -> Question:
        """The question of a table's replay on a network."""
        return cls(repr(network), tuple(table.configuration.items()), f"{mean:.9g}", draw)


@dataclass(frozen=True)
class Answer:
    """What is remembered of a replay."""

    time: float  # seconds of the whole program
    communication: float  # seconds that a rank does not compute, mean over ranks
    wires: list[list[Array]]  # of :attr:`Laid.wires`


def settled(messages: Messages, network: Network, question: Question, made: Schedule) -> Laid:
    """The program on the network where messages share links, from what is remembered."""
    laid = Laid(made.program, network.fabric())
    known = messages.replays.get(question)
    return laid.settled(network.choice()) if known is None else laid.sharing(known.wires)


def _answer(messages: Messages, network: Network, table: MessageTable, mean: float, draw: int) -> Answer:
    """What replay gives where ranks compute `mean` seconds on average."""
    question = Question.of(network, table, mean, draw)
    if question not in messages.replays:
        made = schedule(messages, table, dealt_out(messages.order, table.ranks, mean, draw))
        laid = settled(messages, network, question, made)
        ran = laid.replay(network.choice(), tracked=False)
        while len(messages.replays) >= REMEMBERED:
            del messages.replays[next(iter(messages.replays))]
        each = ran.time * made.times, float(ran.communication.mean()) * made.times
        messages.replays[question] = Answer(*each, laid.wires)
    return messages.replays[question]  # type: ignore[no-any-return]


def replayed_seconds(messages: Messages, network: Network, points: Array, computing: Array) -> tuple[Array, Array]:
    """Seconds (2, k) at `points` (k, m), where ranks compute `computing` (k,) on average: what the program takes beyond
    its slowest rank's computation, and what a rank does not compute, mean over ranks; and the standard deviation of
    their logarithms (2, k) by which ranks are dealt out more work.

    NaN where no order of calls is known, or it cannot be replayed.
    """
    seconds, deviation = np.full((2, len(points)), np.nan), np.zeros((2, len(points)))
    if not messages.order:
        return seconds, deviation
    for k, (point, mean) in enumerate(zip(points, computing.tolist(), strict=True)):
        try:
            table = messages.predict(point)
            if table.ranks**2 * len(messages.order.places) > MOST_MESSAGES or not np.isfinite(mean):
                continue
            by_draw = np.empty((2, DRAWS if drawn(messages.order, table.ranks) else 1))
            for draw in range(by_draw.shape[1]):
                answer = _answer(messages, network, table, mean, draw)
                slowest = dealt_out(messages.order, table.ranks, mean, draw).max()
                by_draw[:, draw] = answer.time - slowest, answer.communication
        except RanksightError:
            continue  # a table that is not predicted there, or an order that does not hold
        by_draw = np.maximum(by_draw, 0.0)
        seconds[:, k] = by_draw.mean(axis=1)
        if by_draw.shape[1] > 1:
            scatter = by_draw.std(axis=1, ddof=1) * np.sqrt(1 + 1 / DRAWS)
            deviation[:, k] = ratio(scatter, seconds[:, k], 0.0)
    return seconds, deviation


def weigh_replay(
    communication: Communication,
    network: Network,
    took: Taken,
    fit: Callable[[Taken], Communication],
    computing: Array,
    uneven: Array,
) -> Replay:
    """Weigh replay against BF_comm times prices, where an order of calls is known.

    `took`: what communication took at n configurations. `fit`: the law of prices from some of them. `computing` and
    `uneven` (n,): mean seconds that ranks compute there, and those that the slowest computes longer.
    """
    if not communication.messages.order:
        return NO_REPLAY
    column = communication.functions.fitted.parameters.index("ranks")
    ranks, measured = took.points[:, column], np.nansum(np.exp(took.logs), axis=0) + uneven
    predicted = replayed_seconds(communication.messages, network, took.points, computing)[0][1]
    # Nothing that is hidden has a logarithm: differences up to what is negligible do not count.
    least = OTHERS_NEGLIGIBLE * computing
    known = np.flatnonzero((measured > 0) & (predicted + least > 0))
    ratios = np.log((measured + least)[known] / (predicted + least)[known])
    errors = [(MESSAGES_AHEAD["prices"], MESSAGES_AHEAD["replay"])]
    for at, ratio_there in zip(known.tolist(), ratios.tolist(), strict=True):
        fewer = ranks < ranks[at]
        part = replace(took, points=took.points[fewer], logs=took.logs[:, fewer], errors=took.errors[:, fewer])
        law = fit(part) if fewer.any() else replace(communication, blocking=None)
        prices = float(law.exchanged(took.points[at][None], network).times.value.sum() + uneven[at])
        by_prices = log_ratio(prices + least[at], measured[at] + least[at])
        if np.isfinite(by_prices):
            errors.append((float(by_prices), _last(ratios, ranks[known], fewer[known]) - ratio_there))
    by_prices, by_replay = np.mean(np.square(errors), axis=0)
    error, last = float(np.sqrt(by_replay)), _last(ratios, ranks[known], np.ones(len(known), dtype=bool))
    return Replay(float(by_prices / (by_prices + by_replay)), error, float(np.exp(last)))


def _last(logs: Array, ranks: Array, chosen: Mask) -> float:
    """Mean of the `logs` (n,) on the most of the `chosen` ranks (n,); 0 where there are none."""
    return float(logs[chosen & (ranks == ranks[chosen].max())].mean()) if chosen.any() else 0.0


def mixed(law: Replay, exchanged: Exchanged, seconds: Array, deviation: Array, behind: Array) -> Exchanged:
    """Times of operations with replay counted in: all of a configuration in the same proportion.

    `seconds` (k,): seconds by replay; NaN where it does not answer. `deviation` (k,): standard deviation of their
    logarithm by chance. `behind` (k,): seconds of messages that computation hid in all runs: what is left of them is as
    doubtful as they are.
    """
    times = exchanged.times
    total = times.value.sum(axis=0)
    seconds = np.maximum(law.ratio * seconds, RESOLUTION * behind)
    known = np.isfinite(seconds) & (seconds > 0) & (total > 0)
    weight = np.where(known & ~exchanged.measured, law.weight, 0.0)
    gap = np.where(known, log_ratio(np.where(known, seconds, 1.0), np.where(known, total, 1.0)), 0.0)
    share = np.maximum(ratio(behind, seconds, 1.0, known), 1.0)
    low, high = (1 + share * np.expm1(way * TAIL * law.error) for way in (-1, 1))
    # Where the laws differ, either may hold.
    down, up = (
        np.sqrt((weight * np.hypot(np.abs(np.log(end)) / TAIL, deviation)) ** 2 + weight * (1 - weight) * gap**2)
        for end in (np.maximum(low, RESOLUTION), high)
    )
    prices = Quantity.of_ends(times.value, times.lower, times.upper)
    prices = replace(prices, down=(1 - weight) * prices.down, up=(1 - weight) * prices.up)
    return exchanged.taking(times.having(prices.moved(weight * gap).wider(down, up)))
