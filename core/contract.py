"""What the numbers of a table may be: checked where a table is imported, and where a stored one is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ranksight.core import limits
from ranksight.core.arrays import Array, Ints
from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS
from ranksight.core.metrics import METRICS
from ranksight.core.runtables import on_rank

if TYPE_CHECKING:
    import pandas as pd
    from pandas.api.extensions import ExtensionArray

VOLUMES = ("comm_size", "size_class", "count", "bytes", "seconds", "peers")
"""Columns of a message table that hold numbers from 0 on; only seconds may be missing."""


def check_values(
    columns: Mapping[str, Array], kernels: Sequence[Any] | ExtensionArray, ranks: Sequence[int] | Ints, where: str
) -> None:
    """Refuse counters that nothing can have measured.

    Raises InputError, naming kernel, rank and metric: a value is infinite, beyond 64 bits, or negative where the metric
    is known.
    """
    for name, values in columns.items():
        if (at := beyond(values, 0.0 if name in METRICS else -limits.VALUE)) is not None:
            raise InputError(
                f"{where}: kernel {kernels[at]!r}{on_rank(ranks[at])} has {values[at]:g} of {name}",
                "no counter or clock holds this: the file is damaged, or a counter overflowed",
            )


def beyond(values: NDArray[Any], least: float) -> int | None:
    """Index of the first value that is infinite, beyond 64 bits or below `least`; None where there is none."""
    # NaN, a missing value, passes all comparisons; the extremes show whether to look closer.
    low, high = np.nanmin(values, initial=0.0), np.nanmax(values, initial=0.0)
    if low >= least and low > -limits.VALUE and high < limits.VALUE:
        return None
    return int(np.argmax((values < least) | (np.abs(values) >= limits.VALUE)))


def check_ranks(ranks: NDArray[Any], where: str) -> None:
    """Refuse rank numbers that are not whole, or below :data:`~ranksight.core.experiment.ALL_RANKS`; InputError."""
    wrong = ~((ranks >= ALL_RANKS) & (ranks < 2**31) & (ranks == np.floor(ranks)))
    if wrong.any():
        raise InputError(f"{where} name rank {ranks[int(np.argmax(wrong))]:g}", "the file is damaged")


def check_messages(table: pd.DataFrame, where: str, ranks: float) -> None:
    """Refuse messages that nobody can have sent; the table has the columns that it must have.

    `ranks`: how many ranks there were. Raises InputError naming kernel and rank: a rank that was not there, a volume
    that is negative, beyond 64 bits or missing.
    """
    if (beyond := numbers(table, "rank", where) >= ranks).any():
        row = table.iloc[int(np.argmax(beyond))]
        raise InputError(
            f"{where}: messages of kernel {row['kernel']!r} on rank {row['rank']:g}, of a run of {ranks:g} ranks",
            "the file is damaged, or the number of ranks another one",
        )
    for name in VOLUMES:
        values = numbers(table, name, where)
        wrong = (values < 0) | (values >= limits.VALUE) | (np.isnan(values) & (name != "seconds"))
        if wrong.any():
            row = table.iloc[int(np.argmax(wrong))]
            raise InputError(
                f"{where}: messages of kernel {row['kernel']!r}{on_rank(row['rank'])} have {row[name]:g} {name}",
                "the file is damaged, or the clocks of its ranks differ",
            )


def numbers(table: pd.DataFrame, name: str, where: str) -> Array:
    """A column as numbers, NaN where it has none; InputError where a value is something else."""
    column = table[name]
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "fiu":
        return column.to_numpy().astype(np.float64, copy=False)
    try:
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{where}: {name} holds a value that is not a number", "the file is damaged") from None
