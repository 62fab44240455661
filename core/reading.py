"""The protocol of readers, and their registry.

A reader turns files of another tool into :class:`Reading` s: tables in SI units, with the metric names of the registry.
Readers of counters are in ``ranksight.counters.readers``, those of messages in ``ranksight.comm.readers``.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ranksight.core import limits
from ranksight.core.contract import check_messages, check_ranks, check_values, numbers
from ranksight.core.errors import ContractError, InputError, readable
from ranksight.core.experiment import ALL_RANKS, COUNTER_KEYS, MESSAGE_COLUMNS
from ranksight.core.leftout import TABLE as LEFT_OUT
from ranksight.core.meaning import UNSTATED, Meaning, per_rank
from ranksight.core.metrics import metric
from ranksight.core.records import dataclass
from ranksight.core.registry import Registry
from ranksight.core.sampled import TABLE as SAMPLING
from ranksight.core.units import counted

if TYPE_CHECKING:
    import pandas as pd


_FAULT = "it breaks the contract of ranksight.core.reading.Reading: report it to the author of the reader or collector"


@dataclass(frozen=True, slots=True)
class Reading:
    """The measurements of one run or one file.

    What the source has and the reading does not (a value, a run, a rank, an event) is named by a note. Kernels have
    names that two runs share (function, operation, place), never numbers of one run.
    """

    configuration: Mapping[str, float] = field(default_factory=dict)
    """Parameters that the source itself states (often only ``ranks``); the importer adds those the user states."""
    counters: pd.DataFrame | None = None
    """``kernel``, ``rank`` and one float64 column a metric; one row a kernel x rank."""
    messages: pd.DataFrame | None = None  # the columns of :data:`ranksight.core.experiment.MESSAGE_COLUMNS`
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)  # further tables, stored as they are
    repetition: int | None = None  # number of the repetition where the source has it; otherwise the importer counts
    provenance: Mapping[str, str] = field(default_factory=dict)
    """For each metric where it comes from: ``measured``, ``simulated``, ``sampled, n = 1200``, ``derived from ...``."""
    meaning: Meaning = UNSTATED
    """What the values of the counters are over ranks, where the format says it."""
    meanings: Mapping[str, Meaning] = field(default_factory=dict)  # of metrics whose values mean something else
    exclusive: bool = True
    """Whether times are those of a kernel without its callees; False where the source has timers of any kind."""
    names: Mapping[str, str] = field(default_factory=dict)
    """For each metric that the source calls otherwise, its name there: events are found by it."""
    wall_time: float | None = None  # as in :class:`ranksight.core.experiment.Run`
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    raw: Sequence[Path] = ()  # files to keep with the tables
    warnings: tuple[str, ...] = ()  # what of the program is missing from the numbers; printed at once
    assumed: frozenset[str] = frozenset()
    """Parameters of the configuration that the source does not state, which the user may state otherwise."""

    def meaning_of(self, name: str) -> Meaning:
        """What the values of a metric are over ranks, and of what part of the machine."""
        meaning = self.meanings.get(name, self.meaning)
        place = metric(name).of
        return replace(meaning, of=place) if meaning.of == "rank" != place else meaning

    def per_rank(self, where: str) -> Reading:
        """The reading with values of a rank: sums over ranks divided by their number, as the configuration has it.

        Raises InputError, beginning with `where`, when values of several ranks are said to be of all together.
        """
        if self.counters is None:
            return self
        known = {str(name): self.meaning_of(str(name)) for name in self.counters.columns if name not in COUNTER_KEYS}
        stated = {name: meaning for name, meaning in known.items() if meaning != UNSTATED}
        if (count := self.counters["rank"].nunique()) > 1:
            stated = {name: replace(each, over=each.over or "each") for name, each in stated.items()}
        if not any(meaning.reduced for meaning in stated.values()):
            return replace(self, meanings=stated, meaning=UNSTATED) if stated else self
        if count > 1:
            raise InputError(
                f"{where} has values of {count} ranks, and they are stated as of all ranks together",
                "leave --values out, or the column of ranks",
            )
        counters, after = per_rank(self.counters.assign(rank=np.int32(ALL_RANKS)), stated, self.configuration)
        tables = {
            name: per_rank(table.assign(rank=np.int32(ALL_RANKS)), stated, self.configuration)[0]
            if name in (SAMPLING, LEFT_OUT)
            else table
            for name, table in self.tables.items()
        }
        over = {name for name, meaning in stated.items() if after[name] != meaning}
        provenance = {
            name: f"{text}; {stated[name]}, divided" if name in over else text for name, text in self.provenance.items()
        }
        return replace(self, counters=counters, tables=tables, provenance=provenance, meaning=UNSTATED, meanings=after)

    @property
    def threads(self) -> float:
        """Threads of a rank, each of which may have a row of its own."""
        return max(1.0, float(self.configuration.get("threads", 1.0)))

    def validate(self, where: str) -> None:
        """Raise an error unless the tables are what this class says, whichever reader or collector made them.

        `where`: the file, or what was measured, for messages. Raises ContractError when a table is of another kind or
        lacks a column: a fault of the reader; InputError when a kernel has no name, a rank or a value cannot be, or the
        number of ranks is not a whole number from 1 on: a fault of the file.
        """
        _kinds(self, where)
        count = float(self.configuration.get("ranks", 1.0))
        if not (1 <= count < limits.VALUE and count.is_integer()):
            raise InputError(f"{where}: {count:g} is not a number of ranks", "ranks are whole numbers from 1 on")
        if self.wall_time is not None and not 0 <= self.wall_time < limits.VALUE:
            raise InputError(f"{where}: the run takes {self.wall_time:g} s", "no clock says this: the file is damaged")
        if (table := self.counters) is not None:
            _columns(table, COUNTER_KEYS, f"{where}: the counters")
            values = {str(name): numbers(table, name, where) for name in table.columns if name not in COUNTER_KEYS}
            check_values(values, table["kernel"].array, table["rank"].array, where)
            largest = table["rank"].max()
            if "ranks" in self.configuration and "ranks" not in self.assumed and largest >= count * self.threads:
                raise InputError(
                    f"{where} holds rank {largest:g}, of a run of {counted(int(count), 'rank')}",
                    "ranks count from 0: correct them, or their number",
                )
        if (table := self.messages) is not None:
            _columns(table, MESSAGE_COLUMNS, f"{where}: the messages")
            check_messages(table, where, float(self.configuration.get("ranks", math.inf)))


def validated(reading: object, where: str) -> Reading:
    """The reading, after :meth:`Reading.validate`; ContractError where it is not even a :class:`Reading`."""
    if not isinstance(reading, Reading):
        raise ContractError(f"{where}: what was read is a {type(reading).__name__}, not a Reading", _FAULT)
    reading.validate(where)
    return reading


class Reader(Protocol):
    """Reads one format. An instance is registered under the format's name."""

    text: str
    """What it reads, in a few words, for the listing."""

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether `path` (a file with its first 4,096 bytes, or a folder with none) is of this format."""
        ...

    def read(self, path: Path) -> Iterator[Reading]:
        """Read one file or folder, one reading a run; raise InputError naming file and line where it is damaged."""
        ...


READERS: Registry[Reader] = Registry(
    "reader", packages=("ranksight.counters.readers", "ranksight.comm.readers"), group="ranksight.readers"
)


def in_time(path: Path, readings: Iterable[Reading]) -> Iterator[Reading]:
    """The `readings` of a file or folder, as long as reading it takes no longer than its size explains.

    The seconds are the processor's, and those between two readings do not count. Only the main thread of a process has
    the limit, for no other can be interrupted. Raises InputError when a file cannot be opened, or it takes longer than
    :data:`ranksight.core.limits.READING` and :data:`~ranksight.core.limits.READING_PER_MIB` allow.
    """
    timed = threading.current_thread() is threading.main_thread()
    with readable(path):
        size = sum(file.lstat().st_size for file in (path.rglob("*") if path.is_dir() else [path]))
    allowed = limits.READING + limits.READING_PER_MIB * size / (1 << 20)
    each = iter(readings)
    spent, since = 0.0, math.inf  # not reading

    def end(number: int, frame: FrameType | None) -> None:
        left = allowed - spent - max(time.process_time() - since, 0.0)
        if left > 0:
            signal.setitimer(signal.ITIMER_PROF, left)
        elif since < math.inf:
            raise InputError(
                f"{path} takes more than {allowed:.3g} s to read, for {size / 1e6:.2g} MB",
                "the file is damaged, or a trap",
            )

    before = signal.signal(signal.SIGPROF, end) if timed else None
    try:
        if timed:
            signal.setitimer(signal.ITIMER_PROF, allowed)
        while True:
            since = time.process_time()
            try:
                found = next(each, None)
                _encode(found)
            except OSError as error:  # links that lead in a circle, files that others may not read
                raise InputError(f"{error.filename or path} cannot be read: {error.strerror or error}") from error
            except UnicodeEncodeError as error:  # half of a pair of surrogates, which JSON can write
                raise InputError(
                    f"{path} holds the name {error.object[:60]!a}, which is not Unicode text", "the file is damaged"
                ) from error
            spent, since = spent + time.process_time() - since, math.inf
            if found is None:
                return
            yield found
    finally:
        if timed:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)


def _encode(reading: Reading | None) -> None:
    """Raise UnicodeEncodeError where a kernel's name cannot be written; pandas before 3.0 does not look."""
    for table in (reading.counters, reading.messages) if isinstance(reading, Reading) else ():
        if table is not None and "kernel" in table:
            for name in table["kernel"].unique():
                str(name).encode()


def _kinds(reading: Reading, where: str) -> None:
    """Raise ContractError where an attribute is of another type, or a table names a column twice."""
    import pandas as pd

    for name, value in reading.configuration.items():
        if not isinstance(value, (int, float, np.number)):
            raise ContractError(f"{where}: the configuration's {name} is {value!r:.60}, not a number", _FAULT)
    for meaning in (reading.meaning, *reading.meanings.values()):
        if not isinstance(meaning, Meaning):
            raise ContractError(f"{where}: a meaning of values is {meaning!r:.60}, not a Meaning", _FAULT)
    tables = {"counters": reading.counters, "messages": reading.messages, **reading.tables}
    for name, table in tables.items():
        if table is None and name in ("counters", "messages"):
            continue
        if not isinstance(table, pd.DataFrame):
            raise ContractError(f"{where}: {name} is a {type(table).__name__}, not a DataFrame", _FAULT)
        if not table.columns.is_unique:
            twice = table.columns[table.columns.duplicated()][0]
            raise ContractError(f"{where}: {name} has the column {twice!r} twice", _FAULT)


def _columns(table: pd.DataFrame, names: Sequence[str], where: str) -> None:
    """Refuse a table without the columns `names`, with nameless kernels, or with ranks that cannot be."""
    import pandas as pd

    if missing := [name for name in names if name not in table.columns]:
        raise ContractError(f"{where} lack the column {missing[0]}", _FAULT)
    kernels = table["kernel"].array
    if (kernels.codes < 0 if isinstance(kernels, pd.Categorical) else kernels.isna()).any():
        raise InputError(f"{where} hold a kernel without a name", "the file is damaged")
    check_ranks(numbers(table, "rank", where), where)
