"""Kernel selection: kernels too small to matter become one, so that a program of many functions is fitted quickly.

A profile of a large program holds hundreds of functions, most of which take less than a thousandth of anything. They
are summed, rank by rank, into the kernel :data:`OTHERS`: every count of the program stays what it was. What they send
stays theirs, as messages are modelled by the kernel that sends them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.arrays import Array, Index, Mask
from ranksight.core.columns import Columns
from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS, COUNTER_KEYS, WHOLE, Experiment, Run
from ranksight.core.leftout import MPI, OTHER
from ranksight.core.metrics import metric
from ranksight.core.mpi import LABEL, communicates
from ranksight.core.records import dataclass
from ranksight.core.sampled import HANDFUL, sampled_runs
from ranksight.core.units import counted
from ranksight.core.view import Change, View
from ranksight.model.plaindata import Stored

if TYPE_CHECKING:
    import pandas as pd


OTHERS = "(others)"
OTHERS_OF_MPI = f"{OTHERS}{LABEL}"
"""Kernels of all that are too small to be one of their own, and of those whose time is communication."""
SMALL = 1e-3
"""Share of a metric's total from which, at any configuration, a kernel is fitted by itself."""
SMALL_OF_REST = 5e-3
"""The same of visits, which take no time by themselves, and of what does not follow from the program alone, as loads
that a cache serves: it scatters."""
MANY = 50
"""Kernels up to which none is folded: so few are fitted at once."""
GROWN = 1e-2
"""Share that a kernel must not reach there."""
FAR, FARTHER, STEEPEST = 8.0, 64.0, 3.0
"""How many times the largest value of a parameter, and of ranks, a kernel must stay small, as it grew so far; and the
largest exponent that it is taken to grow on with."""
NO_PART = (WHOLE, MPI, OTHER)
"""Kernels that stay: they are no part of the program's kernels."""
SENT = ("messages", "bytes_sent", "mpi_time", "peers")
"""Metrics of messages, which are not folded."""
OTHER_COLUMNS = (*COUNTER_KEYS, *SENT)


@dataclass(frozen=True)
class Selection(Stored):
    """Which kernels of an experiment are folded into :data:`OTHERS`.

    `shares` (mapping of metric to float): largest share of the metric's total, over configurations, that they have
    together.
    """

    kernels: frozenset[str] = frozenset()
    shares: Mapping[str, float] = field(default_factory=dict)

    def remark(self) -> str:
        """A sentence for people; empty where nothing is folded."""
        if not self.kernels:
            return ""
        named = [name for name in ("time", "instructions", "messages") if name in self.shares] or list(self.shares)[:1]
        parts = " and ".join(f"{self.shares[name]:.1%} of {name}" for name in named)
        each = f"{counted(len(self.kernels), 'kernel')} below {SMALL:.1%} of every metric"
        return f"{each} are summed into {OTHERS}: at most {parts} (--all-kernels keeps them)"

    def check(self, kernels: Iterable[str]) -> None:
        """InputError where one of `kernels` is folded."""
        for name in kernels:
            if name in self.kernels:
                raise InputError(f"kernel {name!r} is part of {OTHERS}", "fit again with --all-kernels to keep it")

    def view(self, experiment: Experiment) -> Experiment:
        """The experiment with the folded kernels as one; nothing on disk changes."""
        return View(experiment, Folded(self.kernels)) if self.kernels else experiment


def select(experiment: Experiment, metrics: Sequence[str] | None = None, keep: Collection[str] = ()) -> Selection:
    """The kernels that have less than :data:`SMALL` of every metric's total at every configuration.

    The limit is :data:`SMALL_OF_REST` for visits and metrics that are not steady; messages and the time in MPI do not
    matter, as they are not folded. A kernel also stays that grows so fast with a parameter, by itself and in its share,
    that it reaches :data:`GROWN` at :data:`FAR` (:data:`FARTHER` for ranks) times the largest value measured. Shares
    are those of the sum over ranks, or of the largest value of a rank where that is more. Where instructions were
    counted, what only samples show is start-up (:mod:`ranksight.model.resource.counters`) and is not folded.
    `metrics`: those that matter; all when not given. `keep`: kernels that are not folded, whatever their size.
    """
    return _select(Shares.of(experiment, metrics), keep)


def _select(shares: Shares, keep: Collection[str] = ()) -> Selection:
    if len(shares.kernels) <= MANY or not shares.tables:
        return Selection()
    small = np.ones(len(shares.kernels), dtype=bool)
    for name, share in shares.tables.items():
        described = metric(name)
        steady = described.steady and described.kind != "other"
        least = SMALL if steady and name != "visits" else SMALL_OF_REST
        small &= ~((share >= least) & shares.trusted(name)[:, None]).any(axis=1)
        if steady and described.kind == "requirement" and name not in shares.samples:
            small &= far(shares.parameters, shares.places[name], shares.values[name], shares.sums[name]) < GROWN
    stays = {*keep, *NO_PART, *shares.whole}
    small &= np.array([kernel not in stays for kernel in shares.kernels])
    counts = shares.values.get("instructions")
    if counts is not None and "instructions" not in shares.samples:
        for number in shares.samples.values():
            small &= (number == 0) | (counts > 0).any(axis=1)
    if small.sum() < 2:
        return Selection()
    folded = frozenset(kernel for kernel, yes in zip(shares.kernels, small.tolist(), strict=True) if yes)
    return Selection(folded, {name: float(share[small].sum(axis=0).max()) for name, share in shares.sums.items()})


def significant(experiment: Experiment) -> set[str]:
    """Names of the kernels that :func:`select` does not fold."""
    shares = Shares.of(experiment, None)
    return set(shares.kernels) - _select(shares).kernels


class Folded(Change):
    """Counters that hold the `folded` kernels as one; messages keep the names of the kernels that send them."""

    def __init__(self, folded: Collection[str]) -> None:
        calls = frozenset(filter(communicates, folded))
        self._folded = {into: names for into, names in ((OTHERS, {*folded} - calls), (OTHERS_OF_MPI, calls)) if names}

    def counters(self, table: Columns) -> Columns:
        """See :meth:`~ranksight.core.experiment.Change.counters`."""
        for into, names in self._folded.items():
            table = _counters(table, names, into)
        return table

    def samples(self, table: pd.DataFrame) -> pd.DataFrame:
        """See :meth:`~ranksight.core.experiment.Change.samples`."""
        if "kernel" in table:
            for into, names in self._folded.items():
                table = _samples(table, names, into)
        return table


def _counters(table: Columns, folded: Collection[str], into: str) -> Columns:
    """Counters with one row a rank of a kernel `into` in place of those of `folded` kernels; what does not add up has
    no value there."""

    def measured(names: Iterable[str]) -> Mask:
        each = [~np.isnan(table.values[name]) for name in names]
        return np.any(each, axis=0) if each else np.zeros(len(table), dtype=bool)

    names = [name for name in table.values if name not in OTHER_COLUMNS]
    small = np.array([kernel in folded for kernel in table.kernels], dtype=bool)
    mask = small[table.code] & measured(names)
    if not mask.any():
        return table
    ranks, place = np.unique(table.rank[mask], return_inverse=True)

    def together(name: str) -> Array:
        if name not in names or not metric(name).additive:
            return np.full(len(ranks), np.nan)
        column = table.values[name][mask]
        known = ~np.isnan(column)
        total = np.zeros(len(ranks), dtype=np.longdouble)  # so that the order of many summands does not matter
        np.add.at(total, place[known], column[known])
        return np.where(np.bincount(place[known], minlength=len(ranks)) > 0, total.astype(np.float64), np.nan)

    rest = ~mask | measured(name for name in SENT if name in table.values)
    kernels = tuple(sorted({*(table.kernels[code] for code in np.unique(table.code[rest])), into}))
    number = {kernel: at for at, kernel in enumerate(kernels)}
    code = np.array([number.get(kernel, -1) for kernel in table.kernels], dtype=np.intp)[table.code[rest]]
    values = {
        name: np.append(np.where(mask & (name in names), np.nan, column)[rest], together(name))
        for name, column in table.values.items()
    }
    others = np.full(len(ranks), number[into])
    return Columns(kernels, np.append(code, others), np.append(table.rank[rest], ranks), values)


def _samples(table: pd.DataFrame, folded: Collection[str], into: str) -> pd.DataFrame:
    """Samples with those of `folded` kernels as one, `into`: so many, worth so much, as scatter as their sum does."""
    mask = _among(table["kernel"], folded)
    if not mask.any():
        return table
    small = table[mask]
    keys = [name for name in ("rank", "metric") if name in table]
    if "worth" in table:
        value = small["samples"] * small["worth"]
        small = small.assign(_value=value, _square=value * small["worth"])
        one = small.groupby(keys, sort=True).agg(
            _value=("_value", "sum"), _square=("_square", "sum"), worth=("worth", "max")
        )
        one["worth"] = (one["_square"] / one["_value"]).where(one["_value"] > 0, one["worth"])
        one["samples"] = one["_value"] / one["worth"]
        one = one.reset_index()
    else:
        one = small.groupby(keys, sort=True)["samples"].sum().reset_index()
    one = one.assign(kernel=into).reindex(columns=table.columns)
    return _joined(table[~mask], one)


def _joined(rest: pd.DataFrame, one: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    joined: pd.DataFrame = pd.concat([each.astype({"kernel": object}) for each in (rest, one)], ignore_index=True)
    return joined.astype({"kernel": "category", **{key: rest[key].dtype for key in rest if key != "kernel"}})


def _among(kernels: pd.Series, names: Collection[str]) -> Mask:
    """Which rows are of one of `names`, found by the categories rather than by each row."""
    categories = kernels.astype("category").cat
    yes = np.array([str(name) in names for name in categories.categories], dtype=bool)
    return yes[categories.codes.to_numpy()]


@dataclass
class Shares:
    """Shares of kernels in the totals of metrics."""

    parameters: tuple[str, ...]
    kernels: list[str]
    values: dict[str, Array]  # mapping of metric to (K, n)
    sums: dict[str, Array]  # mapping of metric to (K, n)
    tables: dict[str, Array]  # mapping of metric to (K, n)
    """Sum over ranks, its share of all kernels', and the larger of it and that of the largest values of a rank; 0 where
    absent."""
    places: dict[str, Array]  # mapping of metric to (n, m): configurations at which the metric was measured
    samples: dict[str, Array]  # mapping of metric to (K,): samples over all runs, of metrics that were sampled
    whole: set[str]  # kernels whose source had reduced their values over ranks, where it had not those of others

    def trusted(self, name: str) -> Mask:
        """Kernels (K,) whose values of a metric are more than chance."""
        return np.broadcast_to(self.samples.get(name, np.inf) >= HANDFUL, len(self.kernels))

    @classmethod
    def of(cls, experiment: Experiment, metrics: Sequence[str] | None) -> Shares:
        """Read them, a run at a time."""
        rows: dict[str, int] = {}
        shares: dict[tuple[str, tuple[float, ...]], list[tuple[Index, Array, Array]]] = {}
        samples: dict[str, list[tuple[Index, Array]]] = {}
        reduced: set[str] = set()
        by_rank: set[str] = set()
        for run, table in experiment.counted(run for run in experiment.runs if run.state == "complete"):
            if not len(table):
                continue
            names, codes, rank = table.kernels, table.code, table.rank
            index = np.array([rows.setdefault(name, len(rows)) for name in names], dtype=np.intp)
            at = run.point(experiment.parameters)
            whole = rank == ALL_RANKS
            reduced |= {names[code] for code in np.unique(codes[whole])}
            by_rank |= {names[code] for code in np.unique(codes[~whole])} - set(NO_PART)
            summed = np.array([name not in NO_PART for name in names], dtype=bool)
            for name, column in table.values.items():
                if name in OTHER_COLUMNS or not metric(name).additive or (metrics is not None and name not in metrics):
                    continue
                values = np.nan_to_num(column, posinf=0.0, neginf=0.0)
                values = np.where(summed[codes], np.maximum(values, 0.0), 0.0)
                total: Array = np.bincount(codes, values, len(names)).astype(np.float64)
                largest: Array = np.zeros(len(names))
                np.maximum.at(largest, codes, values)
                if total.sum() > 0:
                    most: Array = largest / float(np.bincount(rank - rank.min(), values).max())
                    shares.setdefault((name, at), []).append((index, total, most))
            _count(samples, experiment, run, rows)
        return cls(
            experiment.parameters,
            list(rows),
            *_stacked(shares, len(rows)),
            {name: _summed(parts, len(rows)) for name, parts in samples.items()},
            reduced if by_rank - reduced else set(),
        )


def _count(
    samples: dict[str, list[tuple[Index, Array]]], experiment: Experiment, run: Run, rows: Mapping[str, int]
) -> None:
    """Add the samples of a run."""
    for _, table in sampled_runs(experiment, [run]):
        for name, part in table.groupby("metric", observed=True):
            each = part.groupby(part["kernel"].astype(str))["samples"].sum()
            each = each[[kernel in rows for kernel in each.index]]
            index = np.array([rows[kernel] for kernel in each.index], dtype=np.intp)
            samples.setdefault(str(name), []).append((index, each.to_numpy(dtype=np.float64)))


def _stacked(
    shares: Mapping[tuple[str, tuple[float, ...]], Iterable[tuple[Index, Array, Array]]], count: int
) -> tuple[dict[str, Array], dict[str, Array], dict[str, Array], dict[str, Array]]:
    """Values, shares and configurations of each metric; runs of one configuration are added."""
    values: dict[str, list[Array]] = {}
    most: dict[str, list[Array]] = {}
    places: dict[str, list[tuple[float, ...]]] = {}
    for (name, at), parts in shares.items():
        largest = np.zeros(count)
        for index, _, each in parts:
            largest[index] = np.maximum(largest[index], each)
        values.setdefault(name, []).append(_summed([(index, each) for index, each, _ in parts], count))
        most.setdefault(name, []).append(largest)
        places.setdefault(name, []).append(at)
    total = {name: np.stack(each, axis=1) for name, each in values.items()}
    share = {name: each / each.sum(axis=0) for name, each in total.items()}
    return (
        total,
        share,
        {name: np.maximum(share[name], np.stack(each, axis=1)) for name, each in most.items()},
        {name: np.array(each, dtype=np.float64).reshape(len(each), -1) for name, each in places.items()},
    )


def _summed(parts: Iterable[tuple[Index, Array]], count: int) -> Array:
    """Values of `count` kernels, from some of them at a time."""
    total = np.zeros(count)
    for index, each in parts:
        np.add.at(total, index, each)
    return total


def far(parameters: tuple[str, ...], points: Array, values: Array, share: Array) -> Array:
    """The share (K,) that each kernel reaches beyond the runs, where it grows on as it did.

    It grows as a power of each parameter, the smaller of those of its value on a rank and of its share: what stays as
    it is where all else shrinks is no growth of its own.
    """
    largest: Array = share.max(axis=1)
    varied = np.flatnonzero((points > 0).all(axis=0) & (np.ptp(points, axis=0) > 0))
    enough = (share > 0).sum(axis=1) > len(varied) + 1
    if not len(varied) or not enough.any():
        return largest
    terms = np.column_stack([np.ones(len(points)), np.log(points[:, varied])])
    ranks = points[:, parameters.index("ranks")] if "ranks" in parameters else 1.0
    steep = np.minimum(_powers(terms, values[enough] / ranks), _powers(terms, share[enough]))
    length = np.log([FARTHER if parameters[at] == "ranks" else FAR for at in varied.tolist()])
    largest[enough] *= np.exp((np.clip(steep, 0.0, STEEPEST) * length).max(axis=1))
    return largest


def _powers(terms: Array, values: Array) -> Array:
    """Exponents (K, m) of values (K, n) by least squares of logarithms over `terms` (n, 1 + m), less two errors."""
    weight = (values > 0).astype(np.float64)
    logs = np.log(np.where(values > 0, values, 1.0))
    inverse = np.linalg.pinv(np.einsum("kn,ni,nj->kij", weight, terms, terms), hermitian=True)
    power = np.einsum("kij,nj,kn->ki", inverse, terms, weight * logs)
    variance = (weight * (logs - power @ terms.T) ** 2).sum(axis=1) / (weight.sum(axis=1) - terms.shape[1])
    error = np.sqrt(variance[:, None] * np.maximum(np.einsum("kii->ki", inverse), 0.0))
    return np.asarray((power - 2 * error)[:, 1:])
