"""The application's time: the bulk-synchronous sum of its kernels, its communication and its imbalance.

    T_app = sum_k T_k + T_imbalance + BF_comm T_comm + T_others

(Ding et al. 2018, equation 1). T_k are means per rank; T_imbalance is what the fullest rank computes beyond the mean,
as the slowest rank ends a superstep; T_comm is the messages' time on the described network. BF_comm is 1 unless it was
measured. T_others, the start and end of MPI, lies outside the time from MPI_Init to MPI_Finalize and is not predicted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.comm.costs.fabric import Fabric
from ranksight.comm.network import NetworkParameters
from ranksight.errors import InputError
from ranksight.experiment import WHOLE
from ranksight.model import forecast, whole
from ranksight.model.communication import Communication
from ranksight.model.forecast import Forecast
from ranksight.model.functions import ARRAYS, Functions, choose
from ranksight.model.resource import LEVELS, Resources

Array = NDArray[np.float64]

PARTS = ("execution", *LEVELS, "direct", "imbalance", "communication")
"""What an application's time is made of; ``direct`` is the time of kernels that have no counters."""


@dataclass(frozen=True)
class Network:
    """The network that messages are put on, as plain data of a platform's ``[network]`` table."""

    table: Mapping[str, Any]
    ranks_per_node: int

    def fabric(self) -> Fabric:
        """Links inside and between nodes; InputError where the table describes none."""
        links = {
            name: NetworkParameters.from_dict(self.table[name], f"network.{name}")
            for name in ("intra", "inter")
            if isinstance(self.table.get(name), Mapping)
        }
        return Fabric(links.get("intra"), links.get("inter"), self.ranks_per_node)


@dataclass(frozen=True)
class Breakdown:
    """Time of the whole application at k configurations, and what it is made of.

    Attributes
    ----------
    total : Forecast
        One row.
    kernels : tuple of str
        All K kernels that have a time, then those that only send messages.
    each : mapping of str to (K, k)
        Seconds per rank of each of :data:`PARTS` in each kernel; a kernel that calls MPI holds its messages' time.
    """

    total: Forecast
    kernels: tuple[str, ...]
    each: Mapping[str, Array]

    @property
    def parts(self) -> dict[str, Array]:
        """Seconds of each of :data:`PARTS` over all kernels, each (k,)."""
        return {name: values.sum(axis=0) for name, values in self.each.items()}

    @property
    def by_kernel(self) -> Array:
        """Seconds of each kernel with all its parts, (K, k)."""
        return np.asarray(sum(self.each.values()), dtype=np.float64)


@dataclass(frozen=True)
class Application:
    """The parts of an application's time that its evidence carries.

    Attributes
    ----------
    resources : Resources or None
        Kernels whose counters carry the equation.
    communication : Communication or None
        Messages, where they were traced.
    network : Network or None
        What they go over, where it is described.
    imbalance : float
        Largest over mean compute time of a rank, at the measured configuration with most ranks.
    """

    resources: Resources | None = None
    communication: Communication | None = None
    network: Network | None = None
    imbalance: float = 1.0

    def refine(self, said: Forecast, functions: Functions, points: Array, level: float) -> Forecast:
        """The forecast of all series with the kernels' times by the equation where their counters carry it."""
        if self.resources is None:
            return said
        rows = functions.rows
        timed = [
            (i, rows[kernel, "time"]) for i, kernel in enumerate(self.resources.kernels) if (kernel, "time") in rows
        ]
        if not timed:
            return said
        given = self.resources.parts(points, said, rows, level).forecast()
        mine = np.array([i for i, _ in timed])
        picked = replace(given, **{name: getattr(given, name)[mine] for name in ARRAYS})
        index = np.array([row for _, row in timed])
        # Where the equation lacks a part, what the times alone say is still an answer.
        better = (picked.status == forecast.OK) | (said.status[index] != forecast.OK)
        return choose(said, picked, index, better)

    def breakdown(self, said: Forecast, functions: Functions, points: Array, shares: Array, rho: float) -> Breakdown:
        """Sum everything up at `points` (k, m); `said` is the forecast after :meth:`refine`.

        Parameters
        ----------
        shares : (s,)
            Share of each series in the measured total of its metric.
        rho : float
            Common correlation of the kernels' errors.
        """
        rows = functions.rows
        timed = {kernel: row for (kernel, name), row in rows.items() if name == "time"}
        if len(timed) > 1:  # kernels beside the whole are its parts
            timed.pop(WHOLE, None)
        times = np.array(list(timed.values()), dtype=np.intp)
        total, low, high, status, reason = whole.add(said, times, shares[times], rho)
        messages = None
        if self.communication is not None and self.network is not None:
            messages = self.communication.times(points, self.network.fabric(), said.level)
        callers = () if messages is None or self.communication is None else self.communication.callers
        kernels = tuple(dict.fromkeys((*timed, *callers)))
        place = {kernel: at for at, kernel in enumerate(kernels)}
        each = {name: np.zeros((len(kernels), len(points))) for name in PARTS}
        own = np.nan_to_num(said.value[times])
        each["direct"][: len(timed)] = own
        each["imbalance"][: len(timed)] = own * (self.imbalance - 1.0)
        if self.resources is not None:
            given = self.resources.parts(points, said, rows, said.level)
            used = np.array([kernel in timed for kernel in self.resources.kernels])
            index = np.array([timed.get(kernel, -1) for kernel in self.resources.kernels])
            used = used[:, None] & np.isclose(given.value, said.value[index])
            where = np.array([place.get(kernel, 0) for kernel in self.resources.kernels])
            for name, part in zip(
                ("execution", *LEVELS), (given.execution, *np.moveaxis(given.memory, 2, 0)), strict=True
            ):
                np.add.at(each[name], where, np.where(used, part, 0.0))
            np.subtract.at(each["direct"], where, np.where(used, given.value, 0.0))
        low, high, total = low * self.imbalance, high * self.imbalance, total * self.imbalance
        if messages is not None and self.communication is not None:
            np.add.at(each["communication"], [place[name] for name in callers], messages.value)
            sent = messages.value.sum(axis=0)
            down = (messages.value - messages.lower).sum(axis=0)
            up = (messages.upper - messages.value).sum(axis=0)
            low, high = total + sent - np.hypot(total - low, down), total + sent + np.hypot(high - total, up)
            total = total + sent
            lost = np.where(messages.status != forecast.OK, messages.value, 0.0).sum(axis=0) > 0.05 * total
            for k in np.flatnonzero(lost & (status == forecast.OK)):
                worst = int(np.argmax(np.where(messages.status[:, k] != forecast.OK, messages.value[:, k], -1.0)))
                status[k] = messages.status[worst, k]
                reason[k] = f"{self.communication.names[worst]}: {messages.reason[worst, k]}"
        half = np.full((1, len(points)), 0.5)
        summed = Forecast(
            total[None], low[None], high[None], status[None], np.array([reason], dtype=object), half, half, said.level
        )
        return Breakdown(summed, kernels, each)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        content: dict[str, Any] = {"imbalance": self.imbalance}
        if self.resources is not None:
            content["resources"] = self.resources.to_dict()
        if self.communication is not None:
            content["communication"] = self.communication.to_dict()
        if self.network is not None:
            content["network"] = {"table": dict(self.network.table), "ranks_per_node": self.network.ranks_per_node}
        return content

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Application:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        try:
            resources = Resources.from_dict(content["resources"]) if "resources" in content else None
            communication = Communication.from_dict(content["communication"]) if "communication" in content else None
            network = None
            if "network" in content:
                network = Network(dict(content["network"]["table"]), int(content["network"]["ranks_per_node"]))
            imbalance = float(content["imbalance"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"'application' is damaged: {error}", "fit the model again") from error
        if not 1.0 <= imbalance < np.inf:
            raise InputError(f"'application' is damaged: imbalance {imbalance}", "fit the model again")
        return cls(resources, communication, network, imbalance)
