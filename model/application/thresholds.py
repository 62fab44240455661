"""What the MPI library switches between the runs and a target: the algorithm of a collective, eager and rendezvous.

Switch points are a library's defaults at a version; settings and sites move them. Where a target is beyond one that no
run has crossed, its message may still cost what it did before: the interval holds both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ranksight.comm.costs.collective import OPERATIONS, operation_name
from ranksight.comm.costs.cost import Choice, algorithm_of, cost
from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.costs.hierarchical import HIERARCHICAL
from ranksight.comm.costs.pointtopoint import SENDS
from ranksight.comm.costs.selection import algorithms_of
from ranksight.core.records import dataclass
from ranksight.model.application.comm_blocking import kind_of
from ranksight.model.application.network import Network
from ranksight.model.messages.table import MessageTable
from ranksight.model.messages.times import calls_of
from ranksight.model.structure.stated import BETWEEN
from ranksight.model.uncertainty.forecast import Forecast

Key = tuple[str, str]
TWO_RANKS = "two_proc"
"""Algorithm that exists for two ranks alone."""


@dataclass(frozen=True)
class Call:
    """One call of a kernel's operation at a configuration."""

    ranks: int  # of the communicator
    size: float  # bytes, as :mod:`ranksight.comm.costs.collective` defines them
    seconds: float  # on the network
    way: str  # algorithm, or ``eager`` or ``rendezvous``; empty where neither is known


@dataclass(frozen=True)
class Crossed:
    """A threshold between the runs and a target."""

    was: str  # the way of the runs, and that of the target
    now: str
    ratio: float  # what the call takes by the way of the runs, over what it takes

    def text(self, operation: str) -> str:
        """The threshold in words."""
        return f"{operation}: {self.now} (in the runs {self.was})"


def calls(tables: Sequence[MessageTable], fabric: Fabric, choice: Choice) -> list[dict[Key, Call]]:
    """A call of each kernel's operation that takes time, for each table."""
    result: list[dict[Key, Call]] = [{} for _ in tables]
    asked: dict[str, list[tuple[int, Key, int, float]]] = {}
    for at, table in enumerate(tables):
        for key, (ranks, size) in calls_of(table).items():
            asked.setdefault(operation_name(key[1]), []).append((at, key, ranks, size))
    for name, each in asked.items():
        if name not in OPERATIONS and name not in SENDS:
            continue
        seconds = cost(name, [ranks for *_, ranks, _ in each], [size for *_, size in each], fabric, choice)
        for (at, key, ranks, size), one in zip(each, seconds.tolist(), strict=True):
            result[at][key] = Call(ranks, size, one, _way(name, ranks, size, fabric, choice))
    return result


def others(operation: str, call: Call, fabric: Fabric, choice: Choice) -> dict[str, float]:
    """Seconds of the call by every other algorithm of a collective, the fastest first."""
    name = operation_name(operation)
    levels = fabric.ranks_per_node > 1 and call.ranks > fabric.ranks_per_node and name in HIERARCHICAL
    known = set(algorithms_of(name)) - {call.way} - (set() if levels else {"hierarchical"})
    known -= set() if call.ranks == 2 else {TWO_RANKS}
    times = {way: float(cost(name, call.ranks, call.size, fabric, {name: way})) for way in known}
    return dict(sorted(times.items(), key=lambda pair: (pair[1], pair[0])))


def crossed(runs: Sequence[dict[Key, Call]], target: dict[Key, Call], fabric: Fabric) -> dict[Key, Crossed]:
    """Thresholds between calls of the runs, those on most ranks last, and those of the target."""
    result = {}
    for key, call in target.items():
        before = [run[key] for run in runs if key in run and run[key].ranks > 1 and run[key].way]
        if not before or not call.way or call.way in {one.way for one in before}:
            continue
        was, name = before[-1].way, operation_name(key[1])
        other = _switched(call, fabric) if name in SENDS else _by(name, was, call, fabric)
        if other > 0 and call.seconds > 0:
            result[key] = Crossed(was, call.way, other / call.seconds)
    return result


def left_open(
    times: Forecast,
    keys: Sequence[Key],
    runs: Sequence[dict[Key, Call]],
    asked: Sequence[dict[Key, Call]],
    network: Network,
) -> tuple[Forecast, tuple[tuple[str, ...], ...]]:
    """Times on the network of the operations `keys` (o, k) with what the library's thresholds leave open in their
    intervals, and these in words for each of the k configurations `asked`.

    Where the algorithm of a collective is open, its hypotheses hold that already.
    """
    fabric, texts = network.fabric(), []
    lower, upper = times.lower.copy(), times.upper.copy()
    places = {key: at for at, key in enumerate(keys)}
    for k, target in enumerate(asked):
        crossings = crossed(runs, target, fabric)
        texts.append(tuple(one.text(BETWEEN.join(key)) for key, one in crossings.items()))
        for key, one in crossings.items():
            if len(network.ways(kind_of(key[1]))) == 1 and key in places:
                other = times.value[places[key], k] * one.ratio
                lower[places[key], k] = min(lower[places[key], k], other)
                upper[places[key], k] = max(upper[places[key], k], other)
    return replace(times, lower=lower, upper=upper), tuple(texts)


def _by(name: str, way: str, call: Call, fabric: Fabric) -> float:
    return float(cost(name, call.ranks, call.size, fabric, {name: way}))


def _switched(call: Call, fabric: Fabric) -> float:
    """Seconds of a message by the protocol that it does not take: by the jump at the eager limit."""
    link = fabric.far if call.ranks > fabric.ranks_per_node else fabric.near
    if link.eager_limit is None:
        return call.seconds
    before, after = link.transfer_time(np.array([link.eager_limit - 1.0, float(link.eager_limit)])).tolist()
    jump = after - before
    return float(max(call.seconds + (-jump if call.way == "rendezvous" else jump), 0.0))


def _way(name: str, ranks: int, size: float, fabric: Fabric, choice: Choice) -> str:
    if name in OPERATIONS:
        return algorithm_of(name, ranks, size, fabric, choice) if ranks > 1 else ""
    link = fabric.far if ranks > fabric.ranks_per_node else fabric.near
    if link.eager_limit is None or ranks < 2:
        return ""
    return "eager" if size < link.eager_limit else "rendezvous"
