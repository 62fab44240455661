"""The time of messages, learned where it was measured: BF_comm, fitted forms of calls, and the weight of a replay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.arrays import Array, Index
from ranksight.core.records import dataclass
from ranksight.model.application import measured as timing
from ranksight.model.application.comm_blocking import STATED, Taken
from ranksight.model.application.communication import Communication
from ranksight.model.application.fit_blocking import fit_blocking
from ranksight.model.application.forms import fit_forms
from ranksight.model.application.hidden import RESOLUTION, find_hidden
from ranksight.model.application.network import NO_NETWORK, Network
from ranksight.model.application.replayed import weigh_replay

if TYPE_CHECKING:
    from ranksight.model.application.bulk_synchronous import Application
    from ranksight.model.predicting import Learned
    from ranksight.model.series.domains import Domains
    from ranksight.model.stages.measuring import Measured
    from ranksight.model.structure.functions import Functions


@dataclass(frozen=True)
class Predicted:
    """What is predicted of n configurations whose messages were timed."""

    points: Array  # (n, m)
    computed: Array  # (n,): seconds of the kernels
    uneven: Array  # (n,): seconds that the slowest rank takes more

    def by_point(self, values: Array) -> dict[tuple[float, ...], float]:
        """Values (n,) by their configurations."""
        return {tuple(point): value for point, value in zip(self.points.tolist(), values.tolist(), strict=True)}


def priced(
    measured: Measured, functions: Functions, application: Application, domains: Domains, draft: Learned
) -> Application:
    """The equation with BF_comm, where the time of messages was measured.

    Without a network calls are timed by fitted forms, where the program's wall time shows that its kernels do not hold
    the communication already. `application`: has messages. `draft`: what predicts with it as it is.
    """
    sent, runs = application.communication, list(timing.measured(measured.experiment))
    if not runs:
        return application
    parts = draft.breakdown(points := timing.configurations(runs)).parts
    kernels = [np.nan_to_num(parts[name]) for name in parts if name not in ("communication", "others")]
    predicted = Predicted(points, np.sum(kernels, axis=0), np.nan_to_num(parts["imbalance"]))
    if not application.network:
        learned = _by_forms(sent, measured, functions, runs, predicted)
    else:
        learned = _over_network(sent, application.network, domains, runs, predicted)
    return replace(application, communication=learned)


def _by_forms(
    sent: Communication, measured: Measured, functions: Functions, runs: list[timing.Measured], predicted: Predicted
) -> Communication:
    """Messages whose calls are timed by fitted forms; as they were where kernels hold that time."""
    timed = [kernel for kernel, name in functions.rows if name == "time"]
    formed = replace(sent, forms=fit_forms(timing.calls(measured.experiment)))
    if not formed.forms or not timing.apart(runs, predicted.by_point(predicted.computed), timed):
        return sent
    cost = formed.by_kind(predicted.points, NO_NETWORK)
    seconds = timing.seconds_of(runs, predicted.by_point(predicted.uneven), _stated(cost, timing.placed(runs)))
    took = timing.averaged(runs, seconds)
    names = formed.functions.fitted.parameters
    return replace(formed, blocking=fit_blocking(names, took, cost, lambda _: {STATED: 1.0}, 0.0))


def _over_network(
    sent: Communication, network: Network, domains: Domains, runs: list[timing.Measured], predicted: Predicted
) -> Communication:
    """Messages whose calls are priced on the network, with BF_comm and how much replay of their order counts."""
    points, names, node = predicted.points, sent.functions.fitted.parameters, _boundary(network, domains)
    cost = sent.by_kind(points, network)
    each = [seconds for (_, way), seconds in cost.items() if way == STATED]
    computed, waiting = predicted.by_point(predicted.computed), predicted.by_point(predicted.uneven)
    remark = timing.contradiction(names, runs, computed, predicted.by_point(np.sum(each, axis=0)))
    at = timing.placed(runs)
    prices = _stated(cost, at)
    seconds = timing.seconds_of(runs, waiting, prices)
    mean = predicted.computed - predicted.uneven
    hidden = find_hidden(seconds, prices, mean[at], sent.operations)
    if hidden is not None:
        seconds |= {kind: np.maximum(seconds[kind], RESOLUTION * mean[at]) for kind in hidden.kinds}
    took = timing.averaged(runs, seconds)

    def priced(part: Taken) -> Communication:
        """The law of prices by some of the runs."""
        return replace(sent, blocking=fit_blocking(names, part, sent.by_kind(part.points, network), network.ways, node))

    blocking = fit_blocking(names, took, cost, network.ways, node)
    learned = replace(sent, blocking=blocking, hidden=hidden, remark=remark)
    if blocking is None:
        return learned
    return replace(learned, replayed=weigh_replay(sent, network, took, priced, mean, predicted.uneven))


def _stated(cost: Mapping[tuple[str, str], Array], places: Index) -> dict[str, Array]:
    """Modelled seconds of each kind in runs at these `places` of the configurations, by the stated algorithms."""
    return {kind: seconds[places] for (kind, way), seconds in cost.items() if way == STATED}


def _boundary(network: Network, domains: Domains) -> float:
    """Ranks that fill a node, where messages within one are described or the user says how many they are; else 0."""
    if "intra" not in network.table and domains.filled:
        return 0.0
    return network.node
