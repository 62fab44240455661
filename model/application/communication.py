"""Messages at other configurations, and the time they take on a network.

Counts and bytes of every operation of every kernel are requirements and modelled as such. Their time on a described
network is LogGP's, with the algorithm that the MPI library takes for a collective (:mod:`ranksight.comm.costs`):

    T_comm = sum over operations of  count x cost(operation, ranks of the communicator, bytes / count)

on the rank whose messages take longest, where the table of messages is known for every rank
(:mod:`ranksight.model.messages`), else on a rank with the mean of all. A message is counted where it is sent, and a
collective on every rank.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ranksight.comm.costs.collective import OPERATIONS, operation_name
from ranksight.comm.costs.pointtopoint import SENDS
from ranksight.experiment import Experiment, Run
from ranksight.model.messages.messages import Messages
from ranksight.model.messages.times import MOST_RANKS, operation_times
from ranksight.model.series.series import Series
from ranksight.model.structure.functions import Functions
from ranksight.model.structure.stated import BETWEEN
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast

if TYPE_CHECKING:
    import pandas as pd

    from ranksight.comm.costs.fabric import Fabric

Array = NDArray[np.float64]


def message_table(experiment: Experiment, run: Run) -> pd.DataFrame | None:
    """Counts and bytes of a run per rank: ``kernel``, ``rank``, ``messages``, ``bytes_sent``; a row an operation.

    The kernel's name has the operation's behind it. Operations that move nothing of their own (receives, completions,
    inquiries) are left out.
    """
    table = experiment.table(run, "messages")
    if table is None:
        return None
    table = table[[costs_time(str(name)) for name in table["operation"]]]
    names = table["kernel"].astype(str) + BETWEEN + table["operation"].astype(str)
    rows = table.assign(kernel=names, messages=table["count"].astype(float), bytes_sent=table["bytes"].astype(float))
    return rows.groupby(["kernel", "rank"], observed=True)[["messages", "bytes_sent"]].sum().reset_index()


def message_series(experiment: Experiment) -> Series | None:
    """``messages`` and ``bytes_sent`` of every kernel's operations, means over all ranks; None without traces."""
    configurations: dict[tuple[float, ...], int] = {}
    found: dict[tuple[str, str], dict[tuple[int, int], float]] = {}
    repeats: dict[int, int] = {}
    for run in experiment.runs:
        table = message_table(experiment, run)
        if table is None:
            continue
        place = configurations.setdefault(
            tuple(float(run.configuration[name]) for name in experiment.parameters), len(configurations)
        )
        at = (place, repeats.get(place, 0))
        repeats[place] = at[1] + 1
        sums = table.groupby("kernel", observed=True)[["messages", "bytes_sent"]].sum() / run.configuration["ranks"]
        for name in sums.columns:
            for kernel, value in sums[name].items():
                found.setdefault((str(kernel), str(name)), {})[at] = float(value)
    if not found:
        return None
    values = np.full((len(found), len(configurations), max(repeats.values())), np.nan)
    for row, cells in enumerate(found.values()):
        for (place, repetition), value in cells.items():
            values[row, place, repetition] = value
    points = np.array(list(configurations), dtype=np.float64)
    kernels, names = tuple(kernel for kernel, _ in found), tuple(name for _, name in found)
    return Series(experiment.parameters, points, values, kernels, names)


def costs_time(operation: str) -> bool:
    """Whether an operation is one whose time on a network is known."""
    name = operation_name(operation)
    return name in SENDS or name in OPERATIONS


@dataclass(frozen=True)
class Communication:
    """Messages of a program, and the network they go over.

    Attributes
    ----------
    functions : Functions
        ``messages`` and ``bytes_sent`` of each kernel's operations, means per rank.
    messages : Messages or None
        Who sends what to whom.
    """

    functions: Functions
    messages: Messages | None = None

    def times(self, points: Array, fabric: Fabric, level: float = 0.9, choice: str = "openmpi-5.0") -> Forecast:
        """Time of each kernel's operation at `points` (k, m), on `fabric`; one row an operation, see :attr:`names`.

        Parameters
        ----------
        points : (k, m)
        fabric : Fabric
        level : float
            Of the intervals.
        choice : str
            The MPI library whose collective algorithms are taken (:mod:`ranksight.comm.costs.selection`).
        """
        points = np.atleast_2d(np.asarray(points, dtype=np.float64))
        mean = self._of_means(points, fabric, level, choice)
        if self.messages is None:
            return mean
        arrays: dict[str, Any] = {
            name: np.array(getattr(mean, name)) for name in ("value", "lower", "upper", "status", "reason")
        }
        at = self.functions.fitted.parameters.index("ranks")
        keys = [(name.rpartition(BETWEEN)[0], name.rpartition(BETWEEN)[2]) for name in self.names]
        for k, point in enumerate(points):
            if not (1 <= point[at] <= MOST_RANKS and float(point[at]).is_integer()):
                continue
            table = self.messages.predict(point, level)
            doubted = {(row.kernel, row.operation) for row in table.rows if row.reason}
            ends = [operation_times(table, fabric, choice, volume) for volume in ("bytes", "low", "high")]
            for i, key in enumerate(keys):
                if key in doubted:
                    continue
                value, low, high = (found.get(key, 0.0) for found in ends)
                arrays["value"][i, k], arrays["lower"][i, k], arrays["upper"][i, k] = value, low, max(high, value)
                arrays["status"][i, k], arrays["reason"][i, k] = forecast.OK, ""
        return replace(mean, **arrays)

    def _of_means(self, points: Array, fabric: Fabric, level: float, choice: str) -> Forecast:
        """Times of a rank with the mean of all ranks' messages; communicators are taken to hold all ranks."""
        from ranksight.comm.costs.cost import cost

        said = self.functions.predict(points, level)
        rows = self.functions.rows
        ranks = points[:, self.functions.fitted.parameters.index("ranks")]
        shape = (len(self.names), len(points))
        value, lower, upper = (np.zeros(shape) for _ in range(3))
        status = np.full(shape, forecast.OK, dtype=np.intp)
        reason = np.full(shape, "", dtype=object)
        with np.errstate(invalid="ignore", divide="ignore"):
            width = np.where(said.value > 0, (said.upper - said.lower) / said.value, 0.0) ** 2
        form = np.zeros(shape)
        for at, name in enumerate(self.names):
            operation = name.rpartition(BETWEEN)[2]
            count, volume = rows[name, "messages"], rows[name, "bytes_sent"]
            for target, which in ((value, "value"), (lower, "lower"), (upper, "upper")):
                calls, size = (np.maximum(np.nan_to_num(getattr(said, which)[row]), 0.0) for row in (count, volume))
                each = np.divide(size, calls, out=np.zeros_like(size), where=calls > 0)
                target[at] = calls * cost(operation, np.maximum(ranks, 1), each, fabric, choice)
            form[at] = forecast.form_of(*((width[row], said.form[row]) for row in (count, volume)))
            for row in (count, volume):
                bad = (said.status[row] != forecast.OK) & (status[at] == forecast.OK)
                status[at] = np.where(bad, said.status[row], status[at])
                reason[at] = np.where(bad, said.reason[row], reason[at])
        return Forecast(
            value, np.minimum(lower, value), np.maximum(upper, value), status, reason, form, 1 - form, level
        )

    def judge(self, messages: Forecast, total: Array, status: NDArray[np.intp], reason: NDArray[np.object_]) -> None:
        """Put into `status` and `reason` (k,) of sums what keeps messages untold that are over a twentieth of `total`.

        Parameters
        ----------
        messages : Forecast
            From :meth:`times`.
        total : (k,)
        """
        untold = np.where(messages.status != forecast.OK, messages.value, 0.0)
        for k in np.flatnonzero((untold.sum(axis=0) > 0.05 * total) & (status == forecast.OK)):
            worst = int(np.argmax(np.where(messages.status[:, k] != forecast.OK, messages.value[:, k], -1.0)))
            status[k] = messages.status[worst, k]
            reason[k] = f"{self.names[worst]}: {messages.reason[worst, k]}"

    @property
    def names(self) -> tuple[str, ...]:
        """Kernel and operation of each row of :meth:`times`."""
        return tuple(dict.fromkeys(self.functions.fitted.kernels))

    @property
    def callers(self) -> tuple[str, ...]:
        """The kernel that calls the operation of each row of :meth:`times`."""
        return tuple(name.rpartition(BETWEEN)[0] for name in self.names)

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        content = {"fitted": self.functions.fitted.to_dict(), **self.functions.structures()}
        return content if self.messages is None else content | {"messages": self.messages.to_dict()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Communication:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        from ranksight.errors import InputError
        from ranksight.model.fitting.fitted import Fitted

        given = content.get("fitted")
        if not isinstance(given, dict):
            raise InputError("'communication' is damaged", "fit the model again")
        messages = Messages.from_dict(content["messages"]) if "messages" in content else None
        return cls(Functions.with_structures(Fitted.from_dict(given), content), messages)
