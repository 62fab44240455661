"""Messages at other configurations, and the time they take on a network.

Counts and bytes of every operation of every kernel are requirements and modelled as such. Their time on a described
network is LogGP's, with the algorithm that the MPI library takes for a collective (:mod:`ranksight.comm.costs`):

    T_comm = sum over operations of  count x cost(operation, ranks of the communicator, bytes / count)

on the rank whose messages take longest, where the table of messages is known for every rank
(:mod:`ranksight.model.messages`), else on a rank with the mean of all. A message is counted where it is sent, and a
collective on every rank. What the program takes for them is BF_comm times as much
(:mod:`ranksight.model.application.comm_blocking`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ranksight.comm.costs.cost import cost
from ranksight.core import special
from ranksight.core.arrays import Array, Index, Mask, log, log_ratio, ratio
from ranksight.core.experiment import Experiment, Run
from ranksight.core.units import whole
from ranksight.model.application.comm_blocking import STATED, Blocking, costs_time, fit_blocking, kind_of
from ranksight.model.application.forms import Forms
from ranksight.model.application.network import Network
from ranksight.model.messages.message_model import Messages
from ranksight.model.messages.table import MessageTable
from ranksight.model.messages.times import MOST_RANKS, Choice, times_of_tables
from ranksight.model.plaindata import Stored
from ranksight.model.priors import COMMUNICATION_UNKNOWN, UNSEEN
from ranksight.model.series.computation import THREADS
from ranksight.model.series.reducing import Series
from ranksight.model.structure.functions import Functions, choose
from ranksight.model.structure.stated import BETWEEN
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.model.uncertainty.mixture import quantiles

if TYPE_CHECKING:
    import pandas as pd

    from ranksight.comm.costs.fabric import Fabric

Price = Callable[[str, Array, Array], Array]
"""Seconds of one call of an operation at ranks and bytes a call."""


EXCHANGED = ("configuration", "communication", "network", "factor", "lower", "upper", "method", "meaning")
"""Columns of BF_comm over configurations: seconds in the program, seconds on the network, BF_comm with its interval."""
MEANINGS = {
    "overlap": "below 1, part of the communication overlaps with computation",
    "waiting": "above 1, ranks wait for each other in MPI",
    "": "about 1, communication takes what its messages take on the network",
}
"""What is said of a BF_comm."""
NORMAL = 1e6
"""Degrees of freedom at which Student's law is the normal one."""


def message_table(experiment: Experiment, run: Run) -> pd.DataFrame | None:
    """Counts and bytes of a run per rank: ``kernel``, ``rank``, ``messages``, ``bytes_sent``; a row an operation.

    The kernel's name has the operation's behind it. Operations that move nothing of their own (receives, completions,
    inquiries) are left out.
    """
    table = experiment.table(run, "messages")
    if table is None:
        return None
    table = table[np.array([costs_time(str(name)) for name in table["operation"]], dtype=bool)]
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
        place = configurations.setdefault(run.point(experiment.parameters), len(configurations))
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


@dataclass(frozen=True)
class Sent:
    """What is sent at k configurations.

    `counts`: calls and bytes of each operation, means over ranks. `tables`: who sends what to whom, where it is known.
    """

    counts: Forecast
    tables: tuple[MessageTable | None, ...]


@dataclass(frozen=True)
class Exchanged:
    """Times of operations in a program."""

    times: Forecast  # seconds of each operation, (o, k)
    factor: Forecast  # BF_comm of all together, one row
    measured: Mask  # (k,): where BF_comm was measured
    assumed: bool = False  # whether no communication time was measured at all: BF_comm is 1 then, with a wide interval

    @property
    def methods(self) -> tuple[str, ...]:
        """Where BF_comm comes from at each configuration: ``measured``, ``fitted`` or ``assumed``."""
        return tuple("assumed" if self.assumed else "measured" if yes else "fitted" for yes in self.measured.tolist())

    @property
    def meanings(self) -> tuple[str, ...]:
        """What BF_comm means at each configuration.

        ``overlap`` where its interval is below 1: part of the communication is hidden behind computation or other
        messages; ``waiting`` where it is above 1: ranks wait for each other; else empty.
        """
        low, high = self.factor.lower[0].tolist(), self.factor.upper[0].tolist()
        return tuple("overlap" if b < 1 else "waiting" if a > 1 else "" for a, b in zip(low, high, strict=True))

    def table(self, parameters: Sequence[str], points: Array) -> list[dict[str, Any]]:
        """A row of :data:`EXCHANGED` for each of `points` (k, m) that has communication."""
        seconds, factor = self.times.value.sum(axis=0), self.factor
        columns = (seconds, ratio(seconds, factor.value[0], 0.0), factor.value[0], factor.lower[0], factor.upper[0])
        where = [dict(zip(parameters, map(whole, point), strict=True)) for point in points.tolist()]
        rows = zip(where, *(column.tolist() for column in columns), self.methods, self.meanings, strict=True)
        return [dict(zip(EXCHANGED, row, strict=True)) for row in rows if row[2] > 0]


@dataclass(frozen=True)
class Communication(Stored):
    """Messages of a program, and the network they go over."""

    functions: Functions  # ``messages`` and ``bytes_sent`` of each kernel's operations, means per rank
    messages: Messages | None = None  # who sends what to whom
    blocking: Blocking | None = None  # BF_comm; None where no communication time was measured
    forms: Forms | None = None  # fitted times of calls, where no network is described

    def times(self, points: Array, fabric: Fabric, level: float = 0.9, choice: Choice = "openmpi-5.0") -> Forecast:
        """Time of each kernel's operation at `points` (k, m), on `fabric`; one row an operation, see :attr:`names`.

        `points` (k, m). `level`: of the intervals. `choice`: of collective algorithms; see
        :func:`ranksight.comm.costs.cost.cost`.
        """
        points = np.atleast_2d(np.asarray(points, dtype=np.float64))
        return self._times(points, self._sent(points, level), fabric, choice)

    def _sent(self, points: Array, level: float) -> Sent:
        """What is sent at each configuration; without a table where not every rank is looked at."""
        counts = self.functions.predict(points, level)
        if self.messages is None:
            return Sent(counts, (None,) * len(points))
        ranks = points[:, self.functions.fitted.parameters.index("ranks")]
        few = (ranks >= 1) & (ranks <= MOST_RANKS) & (ranks == np.floor(ranks))
        tables = iter(self.messages.tables(points[few], level))
        return Sent(counts, tuple(next(tables) if yes else None for yes in few))

    def _times(self, points: Array, sent: Sent, fabric: Fabric, choice: Choice, kind: str = "") -> Forecast:
        """:meth:`times` of the operations of one kind, or of all; ranks of several threads are fewer on a node."""
        names = self.functions.fitted.parameters
        if THREADS not in names:
            return self._on(points, sent, fabric, choice, kind)
        teams = np.maximum(points[:, names.index(THREADS)], 1.0)
        found: Forecast | None = None
        for team in np.unique(teams):
            placed = replace(fabric, ranks_per_node=max(1, int(fabric.ranks_per_node // team)))
            said = self._on(points, sent, placed, choice, kind)
            mine = np.broadcast_to(teams == team, said.value.shape)
            found = said if found is None else choose(found, said, np.arange(len(mine)), mine)
        assert found is not None
        return found

    def _on(self, points: Array, sent: Sent, fabric: Fabric, choice: Choice, kind: str) -> Forecast:
        """:meth:`_times` with as many ranks on every node."""

        def price(operation: str, ranks: Array, size: Array) -> Array:
            return cost(operation, ranks, size, fabric, choice)

        mean = self._of_means(points, sent.counts, price, kind)
        arrays: dict[str, Any] = {
            name: np.array(getattr(mean, name)) for name in ("value", "lower", "upper", "status", "reason")
        }
        keys = [(name.rpartition(BETWEEN)[0], name.rpartition(BETWEEN)[2]) for name in self.names]
        held = {k: table for k, table in enumerate(sent.tables) if table is not None}
        asked = [
            replace(table, rows=tuple(row for row in table.rows if not kind or kind_of(row.operation) == kind))
            for table in held.values()
        ]
        times = times_of_tables(asked, fabric, choice, ("bytes", "low", "high"))
        for (k, table), ends in zip(held.items(), times, strict=True):
            doubted = {(row.kernel, row.operation) for row in table.rows if row.reason}
            for i, key in enumerate(keys):
                if key in doubted:
                    continue
                value, low, high = (found.get(key, 0.0) for found in ends)
                arrays["value"][i, k], arrays["lower"][i, k], arrays["upper"][i, k] = value, low, max(high, value)
                arrays["status"][i, k], arrays["reason"][i, k] = forecast.OK, ""
        return replace(mean, **arrays)

    def priced(self, network: Network | None) -> bool:
        """Whether messages have a time: on `network`, or by fitted forms without one."""
        return network is not None or self.forms is not None

    def by_kind(self, points: Array, network: Network | None) -> dict[tuple[str, str], Array]:
        """Seconds (k,) of each kind of operations under each hypothesis of its algorithm on `network`, or by the fitted
        forms without one."""
        kinds = dict.fromkeys(self.kinds.tolist())
        if network is None:
            said = self._of_means(points, self.functions.predict(points), self._form)
            return {(kind, STATED): np.nan_to_num(said.value[self.kinds == kind]).sum(axis=0) for kind in kinds}
        sent, fabric, found = self._sent(points, 0.9), network.fabric(), {}
        for kind in kinds:
            for way in network.ways(kind):
                said = self._times(points, sent, fabric, network.choice(kind, way), kind)
                found[kind, way] = np.nan_to_num(said.value[self.kinds == kind]).sum(axis=0)
        return found

    def on(self, network: Network) -> Communication:
        """The same messages with BF_comm learned again, on a network whose algorithms are stated otherwise."""
        held = self.blocking
        if held is None:
            return self
        cost = self.by_kind(held.taken.points, network)
        return replace(self, blocking=fit_blocking(held.parameters, held.taken, cost, network.ways))

    def _form(self, operation: str, ranks: Array, size: Array) -> Array:
        assert self.forms is not None
        return self.forms(operation, ranks, size)

    def exchanged(self, points: Array, network: Network | None, level: float = 0.9) -> Exchanged:
        """What the operations take in the program at `points` (k, m): BF_comm times their time on `network`, or by the
        fitted forms without one."""
        if network is None:
            alone = self._of_means(points, self.functions.predict(points, level), self._form)
        else:
            sent, fabric = self._sent(points, level), network.fabric()
            alone = self._times(points, sent, fabric, network.choice())
        own = log(alone.value)
        reach = float(special.ndtri((1 + level) / 2))
        middle, scaled, down, up = own.copy(), own.copy(), *np.full((2, *own.shape), reach * COMMUNICATION_UNKNOWN)
        exact = np.zeros(own.shape, dtype=bool)
        held = self.blocking
        if held is not None:
            factor, deviation, known = held.at(points)
            if network is None:
                deviation = np.hypot(deviation, UNSEEN * held.beyond(points))
            for kind, rows in held.rows.items():
                mine = np.flatnonzero(self.kinds == kind)
                logs = np.empty((len(rows), len(mine), len(points)))
                each = {STATED: alone.value[mine]}
                for at, row in enumerate(rows):
                    if (way := held.ways[row]) not in each and network is not None:
                        said = self._times(points, sent, fabric, network.choice(kind, way), kind)
                        each[way] = said.value[mine]
                    logs[at] = log(each[way]) + held.levels[row]
                weights = np.broadcast_to(held.weights[rows][:, None, None], logs.shape)
                scaled[mine] = (weights * logs).sum(axis=0)
                spread = np.broadcast_to(deviation[rows][:, None], logs.shape)
                every, exact[mine] = logs + factor[rows][:, None], known[rows].all(axis=0)
                middle[mine], down[mine], up[mine] = _mixed(weights, every, spread, exact[mine], reach)
        return replace(_exchanged(alone, middle, scaled, down, up, exact), assumed=held is None)

    def _of_means(self, points: Array, said: Forecast, price: Price, kind: str = "") -> Forecast:
        """Times of a rank with the mean of all ranks' messages; communicators are taken to hold all ranks.

        `points` (k, m). `said`: counts and bytes there, of :attr:`functions`. `kind`: the operations to be timed; all
        where empty.
        """
        rows = self.functions.rows
        ranks = points[:, self.functions.fitted.parameters.index("ranks")]
        shape = (len(self.names), len(points))
        value, lower, upper = (np.zeros(shape) for _ in range(3))
        status = np.full(shape, forecast.OK, dtype=np.intp)
        reason = np.full(shape, "", dtype=object)
        with np.errstate(invalid="ignore", divide="ignore"):
            width = np.where(said.value > 0, (said.upper - said.lower) / said.value, 0.0) ** 2
        form = np.zeros(shape)
        operations: dict[str, list[int]] = {}
        for at, name in enumerate(self.names):
            if not kind or self.kinds[at] == kind:
                operations.setdefault(name.rpartition(BETWEEN)[2], []).append(at)
        ends = np.stack([said.value, said.lower, said.upper])
        for operation, places in operations.items():  # priced once for all kernels that call it
            counted = [[rows[self.names[at], what] for at in places] for what in ("messages", "bytes_sent")]
            calls, size = (np.maximum(np.nan_to_num(ends[:, index]), 0.0) for index in counted)
            each = ratio(size, calls, 0.0)
            everywhere = np.broadcast_to(np.maximum(ranks, 1), each.shape)
            value[places], lower[places], upper[places] = calls * price(operation, everywhere, each)
            form[places] = forecast.form_of(*((width[index], said.form[index]) for index in counted))
            for index in counted:
                bad = (said.status[index] != forecast.OK) & (status[places] == forecast.OK)
                status[places] = np.where(bad, said.status[index], status[places])
                reason[places] = np.where(bad, said.reason[index], reason[places])
        return Forecast(value, np.minimum(lower, value), np.maximum(upper, value), status, reason, form, said.level)

    def judge(self, messages: Forecast, total: Array, status: Index, reason: NDArray[np.object_]) -> None:
        """Set `status` and `reason` (k,) of sums to those of messages not predicted that exceed 5 % of `total`.

        `messages`: from :meth:`times`. `total` (k,).
        """
        missing = np.where(messages.status != forecast.OK, messages.value, 0.0)
        for k in np.flatnonzero((missing.sum(axis=0) > 0.05 * total) & (status == forecast.OK)):
            worst = int(np.argmax(np.where(messages.status[:, k] != forecast.OK, messages.value[:, k], -1.0)))
            status[k] = messages.status[worst, k]
            reason[k] = f"{self.names[worst]}: {messages.reason[worst, k]}"

    @property
    def names(self) -> tuple[str, ...]:
        """Kernel and operation of each row of :meth:`times`."""
        return tuple(dict.fromkeys(self.functions.fitted.kernels))

    @cached_property
    def kinds(self) -> NDArray[np.str_]:
        """The kind of each row of :meth:`times`; see :func:`ranksight.model.application.comm_blocking.kind_of`."""
        return np.array([kind_of(name.rpartition(BETWEEN)[2]) for name in self.names])

    @property
    def callers(self) -> tuple[str, ...]:
        """The kernel that calls the operation of each row of :meth:`times`."""
        return tuple(name.rpartition(BETWEEN)[0] for name in self.names)


def _mixed(weights: Array, centres: Array, spread: Array, exact: Mask, reach: float) -> tuple[Array, Array, Array]:
    """Medians (r, k) of mixtures of c normal laws, and how far the ends of their intervals are below and above.

    `weights`, `centres`, `spread` (c, r, k). `exact` (r, k): where all centres are the same. `reach`: standard
    deviations to the ends.
    """
    none = ~np.isfinite(centres).all(axis=0)
    plain = np.where(none, 0.0, centres)
    middle = (weights * plain).sum(axis=0)
    down = up = reach * np.sqrt((weights * spread**2).sum(axis=0))
    if len(centres) > 1:
        tail = float(special.ndtr(-reach))
        low, half, high = quantiles((tail, 0.5, 1 - tail), weights, plain, spread, np.full(plain.shape, NORMAL))
        middle, down, up = (np.where(exact, *both) for both in ((middle, half), (down, half - low), (up, high - half)))
    return np.where(none, -np.inf, middle), down, up


def _exchanged(alone: Forecast, middle: Array, scaled: Array, down: Array, up: Array, exact: Mask) -> Exchanged:
    """Put together what :meth:`Communication.exchanged` gives, from (o, k) each.

    `alone`: times on the network; `scaled`: their logarithms. `middle`, `down`, `up`: logarithms of the times in the
    program, and how far the ends of the intervals of BF_comm are below and above. `exact`: where the time in the
    program was measured: nothing else is uncertain there.
    """
    value = np.exp(middle)
    fall, rise = log_ratio(alone.value, alone.lower), log_ratio(alone.upper, alone.value)
    fall, rise = (np.where(exact, 0.0, np.where(np.isnan(end), 0.0, end)) for end in (fall, rise))
    lower, upper = value * np.exp(-np.hypot(fall, down)), value * np.exp(np.hypot(rise, up))
    theirs = forecast.form_of(((fall + rise) ** 2, alone.form), ((down + up) ** 2, np.where(exact, 0.0, 1.0)))
    times = replace(alone, value=value, lower=lower, upper=upper, form=theirs)
    measured = np.asarray(np.where(value > 0, exact, True).all(axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        middle, low, high = (
            (end.sum(axis=0) / np.exp(scaled).sum(axis=0))[None]
            for end in (value, value * np.exp(-down), value * np.exp(up))
        )
    status = np.where(np.isfinite(middle), forecast.OK, forecast.NO_DATA).astype(np.intp)
    reason = np.full(status.shape, "", dtype=object)
    known = measured[None].astype(np.float64)
    factor = Forecast(middle, low, high, status, reason, 1 - known, alone.level)
    return Exchanged(times, factor, measured)
