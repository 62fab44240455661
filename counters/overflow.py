"""Counters that overflowed: their width, a power of two, is missing from a value or too much in it.

Values that have it too much are left out. Where it is missing nothing shows in a value alone; where ranks that do the
same agree with it added, a warning says so.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from ranksight.core.arrays import Array
from ranksight.core.experiment import ALL_RANKS, COUNTER_KEYS, WHOLE
from ranksight.core.metrics import metric
from ranksight.core.runtables import on_rank
from ranksight.core.units import counted, format_si

NO_PROCESSOR = 9.1e9
"""Cycles a second that no processor has reached, overclocked in liquid helium."""
WIDEST = 12.0
"""Instructions that no core retires in a cycle: the widest of 2024 retire ten."""
WIDTHS = tuple(2.0**bits for bits in (31, 32, 40, 47, 48, 52, 56, 62))
"""What counters of various widths are off by when they overflowed once."""
ALONE = 100.0
"""Times the largest value of most ranks that an overflow is at least: below, it is imbalance."""
ROOM = 2.0
"""Times the largest value of the other ranks that one which overflowed may have counted itself."""
LINE = 64.0
"""Bytes that an instruction moves at most: a vector register, or a line of a cache."""
WRAPS = tuple(2.0**bits for bits in (32, 40, 48))
"""Widths of counters that are missing where one overflowed once."""
ALIKE = 1.05
"""Ratio of the largest to the smallest of ranks that do the same."""
STEADY = 1.1
"""The same of a kernel's instructions for each cycle, or second, over runs."""
NARROW = 2.0**32
"""What a counter of 32 bits begins at zero again after."""


def without_overflows(counters: pd.DataFrame, seconds: float, cores: float) -> tuple[pd.DataFrame, list[str]]:
    """The counters of a run without values of counters that overflowed, and a sentence for each metric that has some.

    `seconds`: how long the run took at most, NaN where that is not known; `cores`: its ranks times their threads.
    """
    cleaned, wrapped = _unwrapped(counters)
    cleaned, fast = _too_fast(cleaned, seconds, cores)
    return cleaned, [*wrapped, *fast, *_below(cleaned)]


def _too_fast(counters: pd.DataFrame, seconds: float, cores: float) -> tuple[pd.DataFrame, list[str]]:
    """Without counts that the cores of a run cannot reach in its time: a difference that went below zero is a power of
    two too large, whatever the counter's width."""
    sentences: list[str] = []
    fresh: dict[str, Array] = {}
    for name in map(str, counters.columns):
        unit = metric(name).unit
        if name in COUNTER_KEYS or unit not in ("", "B") or not seconds > 0:
            continue
        values = counters[name].to_numpy(np.float64)
        most = WIDEST * NO_PROCESSOR * seconds * cores * (LINE if unit == "B" else 1.0)
        wrong = (values > most) & (values >= WIDTHS[0])
        if not wrong.any():
            continue
        row = int(np.argmax(wrong))
        fresh[name] = np.where(wrong, np.nan, values)
        sentences.append(
            f"{name} is {format_si(float(values[row]), unit)}{_place(counters, row)}, more than any processor does in "
            f"{format_si(seconds, 's')}: a counter overflowed; {counted(int(wrong.sum()), 'value')} left out"
        )
    return (counters.assign(**fresh), sentences) if fresh else (counters, sentences)


def _below(counters: pd.DataFrame) -> list[str]:
    """A warning of each metric that some ranks have less of by a counter's width: with it all ranks agree."""
    ranked = (counters["rank"] != ALL_RANKS).to_numpy()
    sentences: list[str] = []
    for name in (str(name) for name in counters.columns if name not in COUNTER_KEYS):
        values = counters[name].to_numpy(np.float64)
        if metric(name).unit == "s" or not np.nanmax(values, initial=0.0) > WRAPS[0] / ALIKE:
            continue
        for _, rows in counters[ranked & (values > 0)].groupby("kernel", sort=False, observed=True).indices.items():
            place = np.flatnonzero(ranked & (values > 0))[rows]
            if (row := _wrapped(values[place])) is not None:
                at = int(place[row[0]])
                sentences.append(
                    f"{name} contradicts that of the other ranks: {format_si(float(values[at]))}"
                    f"{_place(counters, at)}, and 2^{row[1]} more would agree: a counter overflowed; "
                    "measure this run again"
                )
                break
    return sentences


def _wrapped(values: Array) -> tuple[int, int] | None:
    """The place of a value of a few that agree with all others once 2^n is added, and n; None where there is none."""
    for width in WRAPS:
        low = values < width / 2
        risen = np.where(low, values + width, values)
        if 0 < low.sum() <= len(values) / 2 and values.max() < width and risen.max() <= ALIKE * risen.min():
            return int(np.argmax(low)), int(np.log2(width))
    return None


def _place(counters: pd.DataFrame, row: int) -> str:
    rank, kernel = int(counters["rank"].iloc[row]), str(counters["kernel"].iloc[row])
    return f"{on_rank(rank)}{f' of {kernel}' if kernel != WHOLE else ''}"


def _unwrapped(counters: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Without values that a power of two was added to.

    They lie a counter's width above those of half of the ranks or more, which are small against it.
    """
    sentences: list[str] = []
    fresh: dict[str, Array] = {}
    ranked = counters["rank"].to_numpy() != ALL_RANKS
    if not ranked.any():
        return counters, sentences
    kernel, listed = pd.factorize(counters["kernel"])
    count = len(listed)
    for name in map(str, counters.columns):
        if name in COUNTER_KEYS or metric(name).unit == "s":
            continue
        values = np.where(ranked, counters[name].to_numpy(np.float64), np.nan)
        if not np.nanmax(values, initial=0.0) >= WIDTHS[0]:
            continue
        every = np.bincount(kernel[np.isfinite(values)], minlength=count)
        for width in WIDTHS:
            small = values < width / ALONE
            most = np.ones(count)
            np.maximum.at(most, kernel[small], values[small])
            usual = np.bincount(kernel[small], minlength=count)
            above = values - width
            wrapped = (above >= 0) & (above <= ROOM * most[kernel]) & ((usual >= 1) & (2 * usual >= every))[kernel]
            if not wrapped.any():
                continue
            row = int(np.flatnonzero(wrapped)[0])
            fresh[name] = np.where(wrapped, np.nan, fresh.get(name, counters[name].to_numpy(np.float64)))
            place = f"rank {int(counters['rank'].iloc[row])} of {counters['kernel'].iloc[row]}"
            most_here = format_si(float(most[kernel[row]]))
            sentences.append(
                f"{name} contradicts that of the other ranks: {format_si(float(values[row]))} on {place}, "
                f"2^{np.log2(width):.0f} above their {most_here}: a counter overflowed; "
                f"{counted(int(wrapped.sum()), 'value')} left out, measure this run again if they matter"
            )
    return (counters.assign(**fresh), sentences) if fresh else (counters, sentences)


class Narrow:
    """Instructions of all runs, to find those of a counter of 32 bits that began at zero again in some.

    A counter of 32 bits shows nothing above them in any run. Where 2^32, or twice that, more in some runs makes a
    kernel's instructions for each cycle, or each second, the same in all, those runs lack it.
    """

    def __init__(self) -> None:
        self._seen: list[pd.DataFrame] | None = []

    def add(self, counters: pd.DataFrame, where: str) -> None:
        """Take up a run; `where` names it."""
        per = next((name for name in ("cycles", "time") if name in counters.columns), None)
        if self._seen is None or per is None or "instructions" not in counters.columns:
            return
        if np.nanmax(counters["instructions"].to_numpy(np.float64), initial=0.0) >= NARROW:
            self._seen = None  # this counter is wider
            return
        rows = counters[["kernel", "instructions"]].assign(per=counters[per].to_numpy(np.float64), where=where)
        self._seen.append(rows.astype({"kernel": object}))

    def warnings(self) -> list[str]:
        """A sentence on the first run that lacks some; empty where none does."""
        table = (
            pd.concat(self._seen) if self._seen else pd.DataFrame(columns=["kernel", "instructions", "per", "where"])
        )
        table = table[(table["per"] > 0) & (table["instructions"] >= 0)]
        for kernel, rows in table.groupby("kernel", sort=False):
            values, per = rows["instructions"].to_numpy(np.float64), rows["per"].to_numpy(np.float64)
            expected = per * (values / per).max()
            lacking = np.round((expected - values) / NARROW)
            if not 1 <= lacking.max() <= 2 or (lacking == 0).sum() < 2:
                continue
            rates = (values + lacking * NARROW) / per
            if rates.max() <= STEADY * rates.min():
                row = int(np.argmax(lacking))
                more = "2^32" if lacking[row] == 1 else "2 x 2^32"
                return [
                    f"instructions of {kernel} are {format_si(float(values[row]))} ({rows['where'].iloc[row]}), and "
                    f"{more} more would agree with the other runs: a counter of 32 bits "
                    f"overflowed in {counted(int((lacking > 0).sum()), 'value')}; count with 64 bits, or leave "
                    "instructions out with --metric"
                ]
        return []
