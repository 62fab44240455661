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

from ranksight.core.arrays import Array, Mask
from ranksight.core.columns import Columns
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment
from ranksight.core.metrics import metric
from ranksight.core.mpi import LABEL, communicates
from ranksight.core.records import dataclass
from ranksight.core.units import counted
from ranksight.core.view import Change, View
from ranksight.model.plaindata import Stored
from ranksight.model.series.kernel_shares import NO_PART, OTHER_COLUMNS, SENT, Shares, far

if TYPE_CHECKING:
    import pandas as pd


OTHERS = "(others)"
"""Kernel of all that are too small to be one of their own,"""
OTHERS_OF_MPI = f"{OTHERS}{LABEL}"
"""and of those whose time is communication."""
SMALL = 1e-3
"""Share of a metric's total from which, at any configuration, a kernel is fitted by itself."""
SMALL_OF_REST = 5e-3
"""The same of visits, which take no time by themselves, and of what does not follow from the program alone, as loads
that a cache serves: it scatters."""
MANY = 50
"""Kernels up to which none is folded: so few are fitted at once."""
GROWN = 1e-2
"""Share that a kernel must not reach there."""


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
    counted, what only samples show is start-up (:mod:`ranksight.model.resource.sampled_times`) and is not folded.
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
