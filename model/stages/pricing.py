"""The time of messages and of what is outside of kernels and messages, from what the other parts predict."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ranksight.comm.waiting import shares_cores
from ranksight.core.arrays import Array
from ranksight.core.experiment import WHOLE
from ranksight.core.mpi import communicates
from ranksight.model.application import measured as timing
from ranksight.model.application.bulk_synchronous import Application
from ranksight.model.application.comm_blocking import STATED, Taken
from ranksight.model.application.communication import Communication
from ranksight.model.application.fit_blocking import fit_blocking
from ranksight.model.application.forms import fit_forms
from ranksight.model.application.network import Network
from ranksight.model.application.others import fit_others
from ranksight.model.application.replayed import weigh_replay
from ranksight.model.series.domains import Domains
from ranksight.model.stages.equating import draft
from ranksight.model.stages.growing import Growth
from ranksight.model.stages.measuring import Measured
from ranksight.model.stages.statement import Statement


@dataclass(frozen=True)
class Predicted:
    """What is predicted of n configurations whose messages were timed."""

    points: Array  # (n, m)
    computed: Array  # (n,): seconds of the kernels
    uneven: Array  # (n,): seconds that the slowest rank takes more

    def by_point(self, values: Array) -> dict[tuple[float, ...], float]:
        """Values (n,) by their configurations."""
        return {tuple(point): value for point, value in zip(self.points.tolist(), values.tolist(), strict=True)}


def price_messages(statement: Statement, measured: Measured, growth: Growth, application: Application) -> Application:
    """Learn BF_comm, where the time of messages was measured.

    Without a network calls are timed by fitted forms, where the program's wall time shows that its kernels do not hold
    the communication already.
    """
    sent = application.communication
    runs = [] if sent is None else list(timing.measured(measured.experiment))
    if sent is None or not runs:
        return application
    parts = draft(measured, growth, application).breakdown(points := timing.configurations(runs)).parts
    kernels = [np.nan_to_num(parts[name]) for name in parts if name not in ("communication", "others")]
    predicted = Predicted(points, np.sum(kernels, axis=0), np.nan_to_num(parts["imbalance"]))
    if application.network is None:
        learned = _by_forms(sent, measured, growth, runs, predicted)
    else:
        learned = _over_network(sent, application.network, statement.domains, runs, predicted)
    return replace(application, communication=learned)


def _by_forms(
    sent: Communication, measured: Measured, growth: Growth, runs: list[timing.Measured], predicted: Predicted
) -> Communication:
    """Messages whose calls are timed by fitted forms; as they were where kernels hold that time."""
    timed = [kernel for kernel, name in growth.functions.rows if name == "time"]
    formed = replace(sent, forms=fit_forms(timing.calls(measured.experiment)))
    if formed.forms is None or not timing.apart(runs, predicted.by_point(predicted.computed), timed):
        return sent
    cost = formed.by_kind(predicted.points, None)
    took = timing.taken(runs, predicted.by_point(predicted.uneven), cost)
    names = formed.functions.fitted.parameters
    return replace(formed, blocking=fit_blocking(names, took, cost, lambda _: {STATED: 1.0}, 0.0))


def _over_network(
    sent: Communication, network: Network, domains: Domains | None, runs: list[timing.Measured], predicted: Predicted
) -> Communication:
    """Messages whose calls are priced on the network, with BF_comm and how much replay of their order counts."""
    points, names, node = predicted.points, sent.functions.fitted.parameters, _boundary(network, domains)
    cost = sent.by_kind(points, network)
    each = [seconds for (_, way), seconds in cost.items() if way == STATED]
    computed, waiting = predicted.by_point(predicted.computed), predicted.by_point(predicted.uneven)
    remark = timing.contradiction(names, runs, computed, predicted.by_point(np.sum(each, axis=0)))
    took = timing.taken(runs, waiting, cost)

    def priced(part: Taken) -> Communication:
        """The law of prices by some of the runs."""
        prices = sent.by_kind(part.points, network)
        return replace(sent, blocking=fit_blocking(names, part, prices, network.ways, node))

    learned = replace(sent, blocking=fit_blocking(names, took, cost, network.ways, node), remark=remark)
    if learned.blocking is None:
        return learned
    uneven = np.array([waiting[tuple(point)] for point in took.points.tolist()])
    mean = np.array([computed[tuple(point)] for point in took.points.tolist()]) - uneven
    return replace(learned, replayed=weigh_replay(sent, network, took, priced, mean, uneven))


def _boundary(network: Network, domains: Domains | None) -> float:
    """Ranks that fill a node, where messages within one are described or the user says how many they are; else 0."""
    if "intra" not in network.table and (domains is None or domains.filled):
        return 0.0
    return network.node


def learn_others(statement: Statement, measured: Measured, growth: Growth, application: Application) -> Application:
    """Learn what the program takes outside of its kernels and messages, where its own time was measured."""
    series = measured.series
    keys = set(series.keys)
    wall = _program_time(measured)
    if wall is None or not any(name == "time" and kernel != WHOLE for kernel, name in keys):
        return application
    drafted = draft(measured, growth, application).breakdown(series.points)
    # A kernel that is MPI's has the time of messages itself.
    separate = not any(communicates(kernel) for kernel, name in keys if name == "time")
    messages = np.nan_to_num(drafted.parts["communication"]) if separate else np.zeros(len(series.points))
    others = fit_others(series, wall, np.nan_to_num(drafted.busiest, nan=1.0), messages, statement.domains)
    return application if others is None else replace(application, others=others)


def _program_time(measured: Measured) -> Array | None:
    """Seconds (n, r) of the whole program; None where they were not measured.

    What the clock says of a program whose ranks had to wait for cores is the scheduler's, and is left out.
    """
    series = measured.series
    rows = {name: at for at, (kernel, name) in enumerate(series.keys) if kernel == WHOLE}
    if "time" in rows:
        return np.asarray(series.values[rows["time"]])
    if "wall_time" not in rows:
        return None
    experiment, names = measured.experiment, measured.experiment.parameters
    crowded = {run.point(names) for run in experiment.runs if shares_cores(run, experiment.table(run, "counters"))}
    shared = np.array([tuple(point) in crowded for point in series.points.tolist()])
    return np.where(shared[:, None], np.nan, series.values[rows["wall_time"]])
