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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from ranksight.comm.costs.cost import Choice
from ranksight.core.arrays import Array, Index, Mask, log, ratio
from ranksight.core.errors import InputError
from ranksight.core.records import dataclass
from ranksight.model.application.comm_blocking import STATED, Blocking, kind_of
from ranksight.model.application.exchanged import NO_REPLAY, Exchanged, Replay, exchanged_of, mixture_of
from ranksight.model.application.fit_blocking import fit_blocking
from ranksight.model.application.forms import NO_FORMS, Forms
from ranksight.model.application.hidden import Hidden
from ranksight.model.application.network import Network
from ranksight.model.application.thresholds import Call, Key, calls, left_open
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.messages.message_model import NO_MESSAGES, Messages
from ranksight.model.messages.table import MessageTable, typical_row
from ranksight.model.messages.times import MOST_RANKS, priced_on
from ranksight.model.plaindata import Part
from ranksight.model.priors import COMMUNICATION_UNKNOWN, UNSEEN
from ranksight.model.quantity import TAIL
from ranksight.model.series.computation import THREADS
from ranksight.model.structure.functions import Functions
from ranksight.model.structure.stated import BETWEEN
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.model.uncertainty.rows import choose

if TYPE_CHECKING:
    from ranksight.comm.costs.fabric import Fabric

Ends = tuple[MessageTable, ...]
"""Tables of a configuration's messages: as predicted, and for both ends of the interval."""
VOLUMES = ("bytes", "low", "high")
"""The volume of a row that each of them takes."""
SENT = ("messages", "bytes_sent")
"""Series of the functions: calls and bytes."""
Price = Callable[[Sequence[tuple[MessageTable, str]]], list[dict[tuple[str, str], float]]]
"""Seconds of message tables with one of their volumes: on a network (:func:`priced_on`), or by fitted forms."""


@dataclass(frozen=True)
class Sent:
    """What is sent at k configurations by the o operations."""

    counts: Forecast  # calls and bytes of each operation, means over ranks
    tables: tuple[Ends, ...]  # (k): who sends what to whom where that is known, otherwise of a typical rank
    by_rank: Mask  # (o, k): whether every rank's messages are known
    beyond: Mapping[int, tuple[Ends, Ends]]
    """By number of the configuration, where ranks are too many to look at each: the typical rank there, and at the
    number of ranks that the table is of."""


@dataclass(frozen=True)
class Communication(Part):
    """Messages of a program, and the network they go over."""

    functions: Functions  # ``messages`` and ``bytes_sent`` of each kernel's operations, means per rank
    messages: Messages = NO_MESSAGES  # who sends what to whom
    blocking: Blocking | None = None  # BF_comm; None where no communication time was measured
    forms: Forms = NO_FORMS  # fitted times of calls, where no network is described
    points: Array = field(default_factory=lambda: np.zeros((0, 0)))  # (n, m): configurations traced
    hidden: Hidden | None = None  # what of them computation hid in all runs
    replayed: Replay = NO_REPLAY  # how much replay of the calls' order counts
    remark: str = ""  # what contradicts what in the times of the runs

    def __bool__(self) -> bool:
        return bool(self.functions.fitted.kernels)

    @property
    def replay(self) -> tuple[Replay, Messages] | None:
        """The replay that counts in the time, and the messages it is of; None where none does."""
        if not self.replayed.weight > 0:
            return None
        return self.replayed, self.messages

    def times(self, points: Array, fabric: Fabric, choice: Choice = "openmpi-5.0") -> Forecast:
        """Time of each kernel's operation at `points` (k, m), on `fabric`; one row an operation, see :attr:`names`.

        `points` (k, m). `choice`: of collective algorithms; see
        :func:`ranksight.comm.costs.cost.cost`.
        """
        points = np.atleast_2d(np.asarray(points, dtype=np.float64))
        return self._times(points, self._sent(points), fabric, choice)

    def _sent(self, points: Array, each: bool = True) -> Sent:
        """What is sent at each configuration.

        Of every rank where that is known and `each` is to be looked at; beyond :data:`MOST_RANKS` ranks as the typical
        rank there has it, in proportion to that many ranks. Elsewhere of a rank with the mean of all ranks.
        """
        counts = self.functions.predict(points)
        by_rank = np.zeros((len(self.names), len(points)), dtype=bool)
        typical = self._typical(points, counts)
        if not self.messages or not each:
            return Sent(counts, typical, by_rank, {})
        at = self.functions.fitted.parameters.index("ranks")
        near, far = points.copy(), np.flatnonzero(points[:, at] > MOST_RANKS)
        near[far, at] = MOST_RANKS
        largest = self._typical(near[far], self.functions.predict(near[far])) if len(far) else ()
        standing = {**dict(enumerate(typical)), **dict(zip(far.tolist(), largest, strict=True))}
        beyond: dict[int, tuple[Ends, Ends]] = {}
        ends = list(typical)
        for k, table in enumerate(self._of_ranks(near)):
            if table is None:
                continue
            doubted = {row.key for row in table.rows if row.reason}
            by_rank[:, k] = [key not in doubted for key in self._keys]
            known = tuple(row for row in table.rows if row.key not in doubted)
            ends[k] = tuple(
                replace(table, rows=known + tuple(row.of_ranks(table.ranks) for row in one.rows if row.key in doubted))
                for one in standing[k]
            )
            if standing[k] is not typical[k]:
                beyond[k] = typical[k], standing[k]
        return Sent(counts, tuple(ends), by_rank, beyond)

    def _of_ranks(self, points: Array) -> list[MessageTable | None]:
        """Table of every rank at `points` (k, m); None where no such number of ranks is, or its links are too many."""
        ranks = points[:, self.functions.fitted.parameters.index("ranks")]
        tables: list[MessageTable | None] = []
        for point, countable in zip(points, (ranks >= 1) & (ranks == np.floor(ranks)), strict=True):
            try:
                tables.append(self.messages.predict(point) if countable else None)
            except InputError:
                tables.append(None)
        return tables

    def _typical(self, points: Array, counts: Forecast) -> tuple[Ends, ...]:
        """Tables of one rank with the mean of all ranks' messages, whose communicators hold all ranks.

        `points` (k, m). `counts`: calls and bytes there, of :attr:`functions`.
        """
        rows, parameters = self.functions.rows, self.functions.fitted.parameters
        ranks = np.maximum(np.round(points[:, parameters.index("ranks")]), 1).astype(np.int64).tolist()
        ends = np.maximum(np.nan_to_num(np.stack([counts.value, counts.lower, counts.upper])), 0.0)
        calls, volumes = (ends[:, [rows[name, metric] for name in self.names]] for metric in SENT)

        def table(point: Array, p: int, count: Array, volume: Array) -> MessageTable:
            each = zip(self._keys, count.tolist(), volume.tolist(), strict=True)
            of_rank = tuple(typical_row(*key, p, number, size) for key, number, size in each)
            return MessageTable(dict(zip(parameters, point.tolist(), strict=True)), p, of_rank)

        return tuple(
            tuple(
                table(point, p, *count_and_volume)
                for count_and_volume in zip(calls[..., k], volumes[..., k], strict=True)
            )
            for k, (point, p) in enumerate(zip(points, ranks, strict=True))
        )

    def _times(self, points: Array, sent: Sent, fabric: Fabric, choice: Choice, kind: str = "") -> Forecast:
        """:meth:`times` of the operations of one kind, or of all; ranks of several threads are fewer on a node."""
        names = self.functions.fitted.parameters
        teams = np.maximum(points[:, names.index(THREADS)], 1.0) if THREADS in names else np.ones(len(points))
        each = {}
        for team in np.unique(teams).tolist():
            placed = replace(fabric, ranks_per_node=max(1, int(fabric.ranks_per_node // team)))
            each[team] = self._priced(sent, partial(priced_on, fabric=placed, choice=choice), kind)
        times = each.pop(float(teams.min()))
        for team, of_team in each.items():
            times = choose(
                times, of_team, np.arange(len(times.value)), np.broadcast_to(teams == team, times.value.shape)
            )
        return times

    def _priced(self, sent: Sent, price: Price, kind: str = "") -> Forecast:
        """Times of the operations of one kind, or of all, as `price` has them."""
        rows, shape = self.functions.rows, sent.by_rank.shape
        typical, nearest = zip(*sent.beyond.values(), strict=True) if sent.beyond else ((), ())
        each = (*sent.tables, *typical, *nearest)
        tables = [[table.having(kind, kind_of) for table in ends] for ends in each]
        priced = price([pair for ends in tables for pair in zip(ends, VOLUMES, strict=True)])
        # Values and ends of the interval, (3, o, tables).
        ends = np.array([[of.get(key, 0.0) for of in priced] for key in self._keys])
        ends = ends.reshape(len(self._keys), -1, len(VOLUMES)).transpose(2, 0, 1)
        k, beyond = len(sent.tables), len(sent.beyond)
        ends, typical_seconds, nearest_seconds = np.split(ends, [k, k + beyond], axis=2)
        ends[..., list(sent.beyond)] *= ratio(typical_seconds, nearest_seconds, 1.0)
        value, lower, upper = ends
        counts = sent.counts
        status, reason = np.full(shape, forecast.OK, dtype=np.intp), np.full(shape, "", dtype=object)
        indices = [[rows[name, metric] for name in self.names] for metric in SENT]
        width = ratio(counts.upper - counts.lower, counts.value, 0.0) ** 2
        form = forecast.form_of(*((width[index], counts.form[index]) for index in indices))
        for index in indices:
            bad = (counts.status[index] != forecast.OK) & (status == forecast.OK) & ~sent.by_rank
            status, reason = np.where(bad, counts.status[index], status), np.where(bad, counts.reason[index], reason)
        return Forecast(value, np.minimum(lower, value), np.maximum(upper, value), status, reason, form)

    def priced(self, network: Network) -> bool:
        """Whether messages have a time: on `network`, or by fitted forms without one."""
        return bool(self) and bool(network or self.forms)

    def by_kind(self, points: Array, network: Network) -> dict[tuple[str, str], Array]:
        """Seconds (k,) of each kind of operations under each hypothesis of its algorithm on `network`, or by the fitted
        forms without one."""
        kinds = dict.fromkeys(self.kinds.tolist())
        if not network:
            times = self._priced(self._sent(points, each=False), self.forms.times_of_volumes)
            return {(kind, STATED): np.nan_to_num(times.value[self.kinds == kind]).sum(axis=0) for kind in kinds}
        sent, fabric, seconds = self._sent(points), network.fabric(), {}
        for kind in kinds:
            for way in network.ways(kind):
                times = self._times(points, sent, fabric, network.choice(kind, way), kind)
                seconds[kind, way] = np.nan_to_num(times.value[self.kinds == kind]).sum(axis=0)
        return seconds

    def on(self, network: Network) -> Communication:
        """The same messages with BF_comm learned again, on a network whose algorithms are stated otherwise."""
        blocking = self.blocking
        if blocking is None:
            return self
        cost = self.by_kind(blocking.taken.points, network)
        return replace(
            self, blocking=fit_blocking(blocking.parameters, blocking.taken, cost, network.ways, network.node)
        )

    def exchanged(self, points: Array, network: Network) -> Exchanged:
        """What the operations take in the program at `points` (k, m): BF_comm times their time on `network`, or by the
        fitted forms without one."""
        sent = self._sent(points, each=bool(network))
        crossings: tuple[tuple[str, ...], ...] = ()
        if not network:
            network_times = self._priced(sent, self.forms.times_of_volumes)
        else:
            fabric = network.fabric()
            network_times = self._times(points, sent, fabric, network.choice())
            if len(self.points):
                asked = calls([value for value, *_ in sent.tables], fabric, network.choice())
                runs = self._calls_of_runs(network)
                network_times, crossings = left_open(network_times, self._keys, runs, asked, network)
        middle, scaled = log(network_times.value), log(network_times.value)
        down, up = np.full((2, *middle.shape), TAIL * COMMUNICATION_UNKNOWN)
        exact = np.zeros(middle.shape, dtype=bool)
        blocking = self.blocking
        if blocking is not None:
            factor, deviation, known = blocking.at(points)
            if not network:
                deviation = np.hypot(deviation, UNSEEN * blocking.beyond(points))
            for kind, rows in blocking.rows.items():
                rows_of_kind = np.flatnonzero(self.kinds == kind)
                logs = np.empty((len(rows), len(rows_of_kind), len(points)))
                each = {STATED: network_times.value[rows_of_kind]}
                for at, row in enumerate(rows):
                    if (way := blocking.ways[row]) not in each and network:
                        by_way = self._times(points, sent, fabric, network.choice(kind, way), kind)
                        each[way] = by_way.value[rows_of_kind]
                    logs[at] = log(each[way]) + blocking.levels[row]
                weights = np.broadcast_to(blocking.weights[rows][:, None, None], logs.shape)
                scaled[rows_of_kind] = (weights * logs).sum(axis=0)
                spread = np.broadcast_to(deviation[rows][:, None], logs.shape)
                every, exact[rows_of_kind] = logs + factor[rows][:, None], known[rows].all(axis=0)
                middle[rows_of_kind], down[rows_of_kind], up[rows_of_kind] = mixture_of(
                    weights, every, spread, exact[rows_of_kind]
                )
        result = exchanged_of(network_times, middle, scaled, down, up, exact)
        return replace(result, crossings=crossings, assumed=blocking is None)

    def calls(self, points: Array, network: Network) -> list[dict[Key, Call]]:
        """A call of each operation at `points` (k, m), with the way that it goes."""
        return calls([value for value, *_ in self._sent(points).tables], network.fabric(), network.choice())

    def _calls_of_runs(self, network: Network) -> list[dict[Key, Call]]:
        """:meth:`calls` of the configurations traced, on the fewest ranks first; of the network asked for last it is
        remembered."""
        if self._last.get("network") is not network:
            ranks = self.points[:, self.functions.fitted.parameters.index("ranks")]
            runs = self.calls(self.points[np.argsort(ranks, kind="stable")], network)
            self._last.update(network=network, runs=runs)
        return cast(list[dict[Key, Call]], self._last["runs"])

    @cached_property
    def _last(self) -> dict[str, object]:
        return {}

    def remarks(self, points: Array) -> tuple[str, ...]:
        """What contradicts what in the times of the runs."""
        return (self.remark,)

    def judge(self, messages: Forecast, total: Array, status: Index, reason: NDArray[np.object_]) -> None:
        """Set `status` and `reason` (k,) of sums to those of messages not predicted that exceed 5 % of `total`; what an
        interval is too wide of, the interval of the sum holds.

        `messages`: from :meth:`times`. `total` (k,).
        """
        unknown = ~np.isin(messages.status, (forecast.OK, forecast.WIDE))
        missing = np.where(unknown, messages.value, 0.0)
        for k in np.flatnonzero((missing.sum(axis=0) > 0.05 * total) & (status == forecast.OK)):
            worst = int(np.argmax(np.where(unknown[:, k], messages.value[:, k], -1.0)))
            status[k] = messages.status[worst, k]
            reason[k] = f"{self.names[worst]}: {messages.reason[worst, k]}"

    @property
    def names(self) -> tuple[str, ...]:
        """Kernel and operation of each row of :meth:`times`."""
        return tuple(dict.fromkeys(self.functions.fitted.kernels))

    @cached_property
    def _keys(self) -> list[tuple[str, str]]:
        """Kernel and operation of each row of :meth:`times`, apart."""
        return [(name.rpartition(BETWEEN)[0], name.rpartition(BETWEEN)[2]) for name in self.names]

    @cached_property
    def kinds(self) -> NDArray[np.str_]:
        """The kind of each row of :meth:`times`; see :func:`ranksight.model.application.comm_blocking.kind_of`."""
        return np.array([kind_of(operation) for operation in self.operations])

    @property
    def operations(self) -> tuple[str, ...]:
        """The operation of each row of :meth:`times`."""
        return tuple(operation for _, operation in self._keys)

    @property
    def callers(self) -> tuple[str, ...]:
        """The kernel that calls the operation of each row of :meth:`times`."""
        return tuple(kernel for kernel, _ in self._keys)


_ROWS, _TABLE, _CUBE = np.zeros(0), np.zeros((0, 0)), np.zeros((0, 0, 0))
_NUMBERS, _MASK = _ROWS.astype(np.intp), _ROWS.astype(bool)
_NOTHING = Fitted(
    (), (), (), "", np.zeros((0, 0, 3)), _CUBE.astype(np.intp), _TABLE, _CUBE, np.zeros((0, 0, 0, 0)), _TABLE, _TABLE,
    _ROWS, _ROWS, _NUMBERS, _NUMBERS, _MASK, np.zeros((0, 0, 2)), np.zeros((0, 0, 2)), _ROWS, _ROWS, _ROWS, _MASK,
    _ROWS, np.zeros((0, 2)), np.zeros((0, 1)), _TABLE.astype(bool),
)  # fmt: skip
NO_COMMUNICATION = Communication(Functions(_NOTHING))
"""Where no messages were traced."""
