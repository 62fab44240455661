"""Messages and their sums: series of operations, totals of kernels and of the program, counts in doubt.

Counts and bytes of every kernel's operations as series.

Totals that have functions of their own, held against the sums of their parts' functions.

A kernel's messages are those of its operations, a program's those of all operations, and what a program executes is
what its kernels do and a share outside of them. Where the runs showed such a sum, two answers are there at other
configurations: the function of the total, and the sum of the parts' functions. Where their intervals overlap, the
narrower one is the better known and is taken. Where they do not, one of the two is wrong and nothing says which: total
and parts then have intervals that hold both, and a note says so.

No count of messages where rules disagree that explain who was sent to as well as each other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.arrays import Array, Index, Mask, ratio
from ranksight.core.experiment import WHOLE, Experiment, Run
from ranksight.core.metrics import metric
from ranksight.core.names import short_names
from ranksight.core.records import dataclass
from ranksight.core.units import format_si, in_words
from ranksight.model.application import whole
from ranksight.model.application.comm_blocking import costs_time
from ranksight.model.application.communication import SENT, Communication
from ranksight.model.messages.message_model import Messages
from ranksight.model.plaindata import Stored
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce
from ranksight.model.structure.functions import Functions
from ranksight.model.structure.stated import BETWEEN
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import FEW_POINTS, OK, Forecast
from ranksight.model.uncertainty.rows import choose, join, rows_of

if TYPE_CHECKING:
    import pandas as pd


def message_tables(experiment: Experiment) -> Iterator[tuple[Run, pd.DataFrame]]:
    """Counts and bytes per rank of each run that has messages: ``kernel``, ``rank``, ``messages``, ``bytes_sent``.

    A row is of an operation, whose name is behind the kernel's. Operations that move nothing of their own (receives,
    completions, inquiries) are left out.
    """
    for run, every in experiment.tables("messages"):
        table = every[np.array([costs_time(str(name)) for name in every["operation"]], dtype=bool)]
        names = table["kernel"].astype(str) + BETWEEN + table["operation"].astype(str)
        counts, volumes = table["count"].astype(float), table["bytes"].astype(float)
        sent = table.assign(kernel=names, messages=counts, bytes_sent=volumes)
        yield run, sent.groupby(["kernel", "rank"], observed=True)[["messages", "bytes_sent"]].sum().reset_index()


def message_series(experiment: Experiment) -> Series | None:
    """``messages`` and ``bytes_sent`` of every kernel's operations, means over all ranks; None without traces.

    An operation that a traced run does not have moved nothing there.
    """
    configurations: dict[tuple[float, ...], int] = {}
    values_of: dict[tuple[str, str], dict[tuple[int, int], float]] = {}
    repeats: dict[int, int] = {}
    for run, table in message_tables(experiment):
        place = configurations.setdefault(run.point(experiment.parameters), len(configurations))
        at = (place, repeats.get(place, 0))
        repeats[place] = at[1] + 1
        sums = table.groupby("kernel", observed=True)[["messages", "bytes_sent"]].sum() / run.configuration["ranks"]
        for name in sums.columns:
            for kernel, value in sums[name].items():
                values_of.setdefault((str(kernel), str(name)), {})[at] = float(value)
    if not values_of:
        return None
    counts = np.array([repeats[place] for place in range(len(configurations))])
    traced = np.arange(counts.max()) < counts[:, None]
    values = np.where(traced, 0.0, np.full((len(values_of), *traced.shape), np.nan))
    for row, cells in enumerate(values_of.values()):
        for (place, repetition), value in cells.items():
            values[row, place, repetition] = value
    points = np.array(list(configurations), dtype=np.float64)
    kernels, names = tuple(kernel for kernel, _ in values_of), tuple(name for _, name in values_of)
    return Series(experiment.parameters, points, values, kernels, names)


SAME = 1e-6
"""Largest relative difference between a total and the sum of its parts where both are one number."""
NAME = 40
"""Characters of a kernel's name in a note."""
ONE_ANSWER = 1e-3
"""Relative difference of two answers up to which they are one."""
Key = tuple[str, str]


@dataclass(frozen=True)
class Agreement(Stored):
    """Which totals the runs showed to be sums of parts that have functions of their own."""

    kernels: tuple[Key, ...] = ()  # (kernel, metric): sums over the kernel's operations
    programs: tuple[str, ...] = ()  # metrics of the program: sums over all operations
    covered: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Of metrics of the program with a function of their own, the least and the largest ratio of the program's value
    to the sum of its kernels'."""

    def agreed(
        self,
        answer: Forecast,
        rows: Mapping[Key, int],
        shares: Array,
        sums: Mapping[Key, Forecast],
        stated: Collection[str] = (),
    ) -> tuple[Forecast, list[tuple[Key, Mask, Array, Array]]]:
        """The forecast of all series (s, k) with totals that agree with their parts, and where they did not: key,
        configurations (k,), and both values (k,).

        `shares` (s,): of each series in the measured total. `sums`: of the operations of each kernel and metric, one
        row each. `stated`: kernels of whose operations the user states how they go on.
        """
        disagreeing = []
        for key in (key for key in self.kernels if key in sums):
            index = np.array([rows[key]])
            merged, disjoint = merge(rows_of(answer, index), sums[key])
            if key[0] in stated:
                merged, disjoint = sums[key], np.zeros_like(disjoint)
            if disjoint.any():
                disagreeing.append((key, disjoint, answer.value[rows[key]], sums[key].value[0]))
            answer = choose(answer, merged, index, np.ones(merged.value.shape, dtype=bool))
        for name, (low, high) in self.covered.items():
            index = np.array([rows[WHOLE, name]])
            parts = np.array([row for (kernel, each), row in rows.items() if each == name and kernel != WHOLE])
            summed = whole.add(answer, parts, shares[parts], whole.NOISE)
            middle = (low + high) / 2
            scaled = replace(summed, value=middle * summed.value, lower=low * summed.lower, upper=high * summed.upper)
            direct = rows_of(answer, index)
            merged, disjoint = merge(direct, scaled)
            if disjoint.any():
                disagreeing.append(((WHOLE, name), disjoint, direct.value[0], scaled.value[0]))
                answer = _stretched(answer, parts, disjoint, ratio(direct.value[0], scaled.value[0], 1.0))
            answer = choose(answer, merged, index, np.ones(merged.value.shape, dtype=bool))
        return answer, disagreeing

    def with_programs(
        self, answer: Forecast, rows: Mapping[Key, int], shares: Array, sums: Mapping[Key, Forecast]
    ) -> Forecast:
        """The forecast of all series with the program's values of :attr:`programs`."""
        for name in (name for name in self.programs if (WHOLE, name) in rows):
            total = self.total(name, answer, rows, shares, sums)
            answer = choose(answer, total, np.array([rows[WHOLE, name]]), np.ones(total.value.shape, dtype=bool))
        return answer

    def total(
        self, name: str, answer: Forecast, rows: Mapping[Key, int], shares: Array, sums: Mapping[Key, Forecast]
    ) -> Forecast:
        """The program's value of a metric of :attr:`programs`, one row: the sum of all kernels', each a mean over all
        ranks."""
        keys = [key for key in sums if key[1] == name]
        each = [rows_of(answer, np.array([rows[key]])) if key in self.kernels else sums[key] for key in keys]
        weights = np.array([shares[rows[key]] if key in rows else 1.0 for key in keys])
        return whole.add(join(each), np.arange(len(each)), weights, whole.NOISE).judged()

    def _fits(self) -> bool:
        return all(0 < low <= high for low, high in self.covered.values()) and set(self.programs) <= set(SENT)


def find_agreement(series: Series, communication: Communication, messages: Series | None) -> Agreement:
    """Which totals of `series` were sums of their parts at every configuration.

    `messages`: the series of the operations of `communication`.
    """
    values = dict(zip(series.keys, reduce(series.values, "median", axis=2), strict=True))
    kernels, programs = [], []
    if communication and messages is not None:
        at = {tuple(point): row for row, point in enumerate(messages.points.tolist())}
        place = [at.get(tuple(point), -1) for point in series.points.tolist()]
        sent = np.nan_to_num(reduce(messages.values, "median", axis=2))
        traced = np.array(place) >= 0
        of_kernel: dict[Key, Array] = {}
        for (name, what), row in zip(messages.keys, sent, strict=True):
            key = (name.rpartition(BETWEEN)[0], what)
            of_kernel[key] = of_kernel.get(key, 0.0) + row[place]
        kernels = [key for key, summed in of_kernel.items() if key in values and _same(values[key], summed, traced)]
        for what in SENT:
            parts = [summed for (_, name), summed in of_kernel.items() if name == what]
            every = [row for (kernel, name), row in values.items() if name == what and kernel != WHOLE]
            if parts and every:
                measured = values.get((WHOLE, what), np.nansum(every, axis=0))
                if _same(measured, np.sum(parts, axis=0), traced):
                    programs.append(what)
    covered = {}
    for name in dict.fromkeys(series.metrics):
        if (WHOLE, name) not in values or name in programs or not _adds(name):
            continue
        parts = [row for (kernel, each), row in values.items() if each == name and kernel != WHOLE]
        if len(parts) > 1:
            share = ratio(values[WHOLE, name], np.nansum(parts, axis=0), np.nan)
            share = share[np.isfinite(share) & (share > 0)]
            if len(share):
                covered[name] = (float(share.min()), float(share.max()))
    return Agreement(tuple(kernels), tuple(programs), covered)


def operations_summed(communication: Communication, points: Array) -> dict[Key, Forecast]:
    """The sum of the operations' functions of each kernel and metric at `points` (k, m), one row each; no value where
    an operation has none."""
    if not communication:
        return {}
    answer, rows = communication.functions.predict(points), communication.functions.rows
    members: dict[Key, list[int]] = {}
    for (name, what), row in rows.items():
        members.setdefault((name.rpartition(BETWEEN)[0], what), []).append(row)
    sums = {}
    for key, index in members.items():
        each = np.array(index)
        sums[key] = rows_of(answer, each)
        if len(each) > 1:
            sums[key] = whole.add(answer, each, np.ones(len(each)), whole.NOISE)
    return sums


def merge(direct: Forecast, summed: Forecast) -> tuple[Forecast, Mask]:
    """One answer (1, k) of two for the same, and where (k,) their intervals do not overlap."""
    usable = [~np.isin(each.status, forecast.INSUFFICIENT) & np.isfinite(each.value) for each in (direct, summed)]
    comparable = usable[0] & usable[1]
    with np.errstate(invalid="ignore"):
        one_number = np.abs(direct.value - summed.value) <= ONE_ANSWER * np.abs(direct.value)
        disjoint = comparable & ~one_number & ((direct.lower > summed.upper) | (summed.lower > direct.upper))
        narrower = ~(direct.upper - direct.lower <= summed.upper - summed.lower)
    better = (comparable & narrower & ~disjoint) | (usable[1] & ~usable[0])
    merged = choose(direct, summed, np.arange(len(direct.value)), better)
    lower = np.where(disjoint, np.fmin(direct.lower, summed.lower), merged.lower)
    upper = np.where(disjoint, np.fmax(direct.upper, summed.upper), merged.upper)
    return replace(merged, lower=lower, upper=upper).judged(), disjoint[0]


def remark(
    disagreeing: Sequence[tuple[Key, Mask, Array, Array]], points: Array, parameters: Sequence[str]
) -> tuple[str, ...]:
    """What is to be said of totals that differ from the sums of their parts: the largest of each metric."""
    texts: dict[str, tuple[float, str]] = {}
    for (kernel, name), where, direct, summed in disagreeing:
        k = int(np.flatnonzero(where)[np.argmax(np.maximum(direct, summed)[where])])
        unit, at = metric(name).unit, in_words(dict(zip(parameters, points[k].tolist(), strict=True)))
        what, of = (
            ("the whole program", "its kernels")
            if kernel == WHOLE
            else (f"kernel {short_names([kernel], NAME)[kernel]}", "its operations")
        )
        text = (
            f"{name} of {what} at {at}: {format_si(float(direct[k]), unit)} by their own function, "
            f"{format_si(float(summed[k]), unit)} as the sum of {of}; the intervals hold both: measure more ranks"
        )
        size = float(max(direct[k], summed[k]))
        texts[name] = max(texts.get(name, (0.0, "")), (size, text))
    return tuple(text for _, text in texts.values())


def _stretched(answer: Forecast, parts: Index, where: Mask, factor: Array) -> Forecast:
    """The answer with the intervals of parts that are not exact wide enough for their sum to be `factor` (k,) times as
    large."""
    each = rows_of(answer, parts)
    open_parts = where[None, :] & (each.upper - each.lower > SAME * np.abs(each.value))
    wider = replace(
        each, lower=each.lower * np.fmin(factor, 1.0)[None, :], upper=each.upper * np.fmax(factor, 1.0)[None, :]
    )
    return choose(answer, wider.judged(), parts, open_parts)


def _same(total: Array, parts: Array, known: Mask) -> bool:
    """Whether totals (n,) are the sums of their parts wherever both were measured, and anything was."""
    known = known & np.isfinite(total)
    return bool(known.any() and np.allclose(total[known], parts[known], rtol=SAME, atol=0.0))


def _adds(name: str) -> bool:
    """Whether kernels' values of a metric add up to the program's, whoever executes them."""
    return metric(name).kind == "requirement" and metric(name).additive and metric(name).over_ranks == "mean"


BY_PARTNERS = ("messages", "bytes_sent")
STEADY = 1e-3
"""Relative difference up to which a series is the same at all numbers of ranks."""


def with_doubts(
    predicted: Forecast, points: Array, functions: Functions, messages: Messages, training: Array
) -> Forecast:
    """The forecast of all series without what depends on partners in doubt (:meth:`Messages.open_partners`).

    `predicted` (s, k): of `functions` at `points` (k, m), with the number of ranks among the parameters. `messages`:
    what is known of who sends to whom. `training` (n, m): configurations measured.
    """
    at = functions.fitted.parameters.index("ranks")
    # Their intervals hold what each rule would send.
    lawful = {key for law in (functions.neighbours, functions.laws) for key in law.keys}
    rows = {key: row for key, row in functions.rows.items() if key[1] in BY_PARTNERS and key not in lawful}
    status, reason = predicted.status.copy(), predicted.reason.astype(object)

    @cache
    def steady() -> Mask:
        return _steady(functions, training[training[:, at] > 1])

    asked = points[:, at]
    for ranks in set(asked[np.isfinite(asked)].tolist()) - set(messages.measured):
        doubts = messages.open_partners(int(ranks)) if ranks > 1 else {}
        for (kernel, _), row in rows.items():
            doubtful = (asked == ranks) & (status[row] == OK)
            if kernel in doubts and doubtful.any() and not steady()[row]:
                status[row, doubtful], reason[row, doubtful] = FEW_POINTS, doubts[kernel]
    return replace(predicted, status=status, reason=reason)


def _steady(functions: Functions, several: Array) -> Mask:
    """Which series (s,) were the same at every number of ranks from two on, whoever they sent to."""
    values = functions.predict(several).value
    known = np.isfinite(values)
    low = np.where(known, values, np.inf).min(axis=1, initial=np.inf)
    high = np.where(known, values, -np.inf).max(axis=1, initial=-np.inf)
    size = np.where(known, np.abs(values), 0.0).max(axis=1, initial=0.0)
    return np.asarray(known.any(axis=1) & (high - low <= STEADY * size))
