"""Any tidy table of measurements (CSV, semicolons, tabs): one row a measurement, columns named by the user."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ranksight.core import limits
from ranksight.core.arrays import Array, Mask
from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS, COUNTER_KEYS, WHOLE
from ranksight.core.meaning import EACH, UNSTATED
from ranksight.core.metrics import metric
from ranksight.core.numerals import decimal_mark, parse_number, parse_numbers, settled_mark, stated_scale
from ranksight.core.reading import Reading
from ranksight.core.records import dataclass
from ranksight.core.run import TOTAL
from ranksight.core.units import some_of
from ranksight.counters.readers._delimited import Delimited, Texts
from ranksight.counters.readers._reshaping import Shape
from ranksight.counters.readers._valued_cells import are_numbers, bare_number, number_for, with_numbers

SHOWN = 5
"""Rows that a message names; the others are counted."""
FEW = 20
"""Largest number of distinct values of a column that may distinguish cases."""
FEWER = 4
"""Rows for each that has a word in place of a parameter, at least, where it is no measurement."""
COUNTS = ("ranks", "threads", "cores", "nodes")
"""Parameters of which every run has one at least."""
LARGE, MANY = 200_000, 1000
"""Rows, and columns, up to which columns that nobody named are looked at."""


@dataclass(frozen=True, slots=True)
class Columns:
    """What the columns of a table mean."""

    parameters: Mapping[str, str]  # name in the experiment to name of the column
    metrics: Mapping[str, str]
    kernel: str | None = None
    rank: str | None = None
    repetition: str | None = None
    """Columns that name the kernel, the rank and the repetition; without `kernel` a row speaks of the whole program,
    without `rank` of all ranks together, without `repetition` rows that agree in all else are repetitions."""
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Rows are kept whose column holds one of the values."""
    total: str | None = None  # the kernel that is the whole program
    delimiter: str | None = None  # where the table leaves them open
    decimal: str | None = None
    shape: Shape = field(default_factory=lambda: Shape({}, {}))
    """What makes the table tidy; the other columns are those that it has then."""

    def names(self) -> list[str]:
        """All columns that are read, each once."""
        single = [name for name in (self.kernel, self.rank, self.repetition) if name is not None]
        return list(dict.fromkeys([*self.parameters.values(), *self.metrics.values(), *single, *self.where]))


def read_table(path: Path, columns: Columns, strict: bool = False, outside: bool = False) -> Iterator[Reading]:
    """Read the table at `path`: one reading a configuration and repetition.

    Rows without a usable value are left out and named in the notes of the readings; with `strict` they are refused.
    With `outside` parameters come from elsewhere too, and the table may hold none. Raises InputError, naming file and
    line: a column that is not there, a text where a number should be, a ragged row, a name that the tables of an
    experiment use themselves, no row that is left.
    """
    taken = [name for name in columns.metrics if name in (*COUNTER_KEYS, "run")]
    if taken:
        raise InputError(f"a metric cannot be named {taken[0]!r}", f"write --metric {taken[0]}_value={taken[0]}")
    unnamed = "metrics" if not columns.metrics else "parameters" if not (columns.parameters or outside) else ""
    if unnamed:
        raise InputError(
            f"{path}: no column is named for the {unnamed}", "write --parameter ranks --metric time=COLUMN"
        )
    return _Table(path, columns, strict).readings()


class _Table:
    """One table on its way into readings; `kept` holds the rows that are still in."""

    def __init__(self, path: Path, columns: Columns, strict: bool) -> None:
        self.path, self.columns, self.strict = path, columns, strict
        self.text: Delimited = columns.shape.read(path, columns.names(), columns.delimiter)
        self.lines = np.asarray(self.text.lines)
        self.kept = np.ones(len(self.lines), dtype=bool)
        self.marked = np.zeros(len(self.lines), dtype=bool)  # rows with a word in place of a value
        self.decimal = columns.decimal or self._decimal()
        numbers = [*columns.parameters.values(), *columns.metrics.values()]
        self.text = with_numbers(path, self.text, numbers, self.decimal)
        self.notes = [f"{path.name} {note}" for note in self.text.notes]

    def _named(self, rows: Mask) -> str:
        lines = self.lines[rows]
        return f"{'line' if len(lines) == 1 else 'lines'} {some_of(lines.tolist(), SHOWN)}"

    def _note(self, rows: Mask, what: str) -> None:
        if rows.any():
            text = f"{self.path.name}: {what} in {int(rows.sum())} of {len(rows)} rows ({self._named(rows)})"
            if self.strict:
                raise InputError(text, "correct the table, or import it without --strict")
            self.notes.append(text)

    def _where(self) -> None:
        for name, wanted in self.columns.where.items():
            texts = self.text.columns[name]
            numbers = {_number_or_none(value) for value in wanted} - {None}
            hit = np.array([text in wanted or (bool(numbers) and _number_or_none(text) in numbers) for text in texts])
            if not hit.any():
                present = list(dict.fromkeys(texts))
                listed = ", ".join(present[:8]) + (", ..." if len(present) > 8 else "")
                raise InputError(f"{self.path}: no row has {name} = {' or '.join(wanted)}", f"it holds {listed}")
            self.kept &= hit
        if not self.kept.any():
            raise InputError(f"{self.path}: no row passes all of --where")

    def _decimal(self) -> str:
        """What separates the decimals of all columns of numbers."""
        wanted = [*self.columns.parameters.values(), *self.columns.metrics.values(), *filter(None, [self.columns.rank])]
        columns = [self.text.columns[name] for name in wanted]
        if all(map(are_numbers, columns)):
            return "."
        texts = [_as_number(text) for text in {text for column in columns for text in column}]
        remedy = "say --decimal , or --decimal ."
        # A bare comma separates fields there: a quoted one groups thousands unless it cannot.
        if self.text.delimiter == ",":
            return decimal_mark(texts, str(self.path), remedy=remedy) or "."
        return settled_mark(texts, str(self.path), remedy=remedy)

    def _numbers(self, name: str, role: str) -> Array:
        texts = self.text.columns[name]
        if self.decimal == "." and isinstance(texts, Texts) and (known := texts.numbers()) is not None:
            return np.where(self.kept, known, np.nan)
        chosen = texts if self.kept.all() else list(itertools.compress(texts, self.kept))
        values = np.full(len(texts), np.nan)
        parsed, wrong = parse_numbers(chosen, self.decimal)
        values[self.kept] = parsed
        few = FEWER * len(wrong) <= len(parsed) if role == "parameter" else role == "metric"
        if few and np.isfinite(parsed).any():
            wrong = self._without_marks(name, chosen, wrong)
        if wrong:
            line = self.lines[self.kept][wrong[0]]
            raise InputError(
                f"{self.path}:{line}: {chosen[wrong[0]]!r} in column {name!r} is not a number"
                + (f" ({len(wrong)} rows like it)" if len(wrong) > 1 else ""),
                "mend the row" if role != "parameter" else _remedy(chosen[wrong[0]]),
            )
        return values

    def _without_marks(self, name: str, texts: Sequence[str], wrong: list[int]) -> list[int]:
        """The places of `wrong` that are no words: those mark a run that failed, or a row of averages or such, which
        is left out."""
        words = [place for place in wrong if not any(map(str.isdigit, texts[place]))]
        numbers = [place for place in wrong if any(map(str.isdigit, texts[place]))]
        rows = np.zeros(len(self.lines), dtype=bool)
        rows[np.flatnonzero(self.kept)[words]] = True
        listed = ", ".join(dict.fromkeys(repr(texts[place][:40]) for place in words[:SHOWN]))
        self._note(rows, f"{listed} in place of {name}: left out")
        self.marked |= rows
        return numbers

    def _frame(self) -> pd.DataFrame:
        columns = self.columns
        self._where()
        data: dict[str, object] = {}
        for at, (name, source) in enumerate(columns.parameters.items()):
            values = self._numbers(source, "parameter")
            bad = ~np.isfinite(values) & self.kept
            self._note(bad & ~self.marked, f"no value of parameter {name}: left out")
            if name in COUNTS:
                none = (values < 1) & self.kept
                self._note(none, f"less than one {name.removesuffix('s')}: left out")
                bad |= none
            self.kept &= ~bad
            data[f"p{at}"] = values
        some, noted = np.zeros((2, len(self.lines)), dtype=bool)
        for at, (name, source) in enumerate(columns.metrics.items()):
            values = self._numbers(source, "metric") * self._scale(name, source)
            wrong = {"infinite": np.isinf(values), "negative": (values < 0) & (metric(name).kind != "other")}
            for what, rows in wrong.items():
                self._note(rows & self.kept, f"{what} {name}: left out")
                values[rows] = np.nan
                noted |= rows
            some |= np.isfinite(values)
            data[f"m{at}"] = values
        self._note(self.kept & ~some & ~noted & ~self.marked, f"no value of {' or '.join(columns.metrics)}: left out")
        empty = self.kept & ~some
        self.kept &= some
        if columns.rank is not None:
            ranks = self._numbers(columns.rank, "rank")
            bad = self.kept & ~_are_ranks(ranks)
            if bad.any():
                raise InputError(f"{self.path}: no rank number in column {columns.rank!r} ({self._named(bad)})")
            data["rank"] = ranks
        else:
            data["rank"] = np.full(len(self.lines), ALL_RANKS)
        if not self.kept.any():
            raise InputError(f"{self.path}: no row is left to import", "; ".join(self.notes))
        data["kernel"] = self._kernels()
        data["label"] = _categories(self.text.columns[columns.repetition]) if columns.repetition else ""
        return self._with_unmeasured(pd.DataFrame(data), empty)

    def _with_unmeasured(self, frame: pd.DataFrame, empty: Mask) -> pd.DataFrame:
        """The rows that are still in, and those of the `empty` ones that name a kernel which has no value in a run that
        has others: it ran there, and is no kernel without a row (:mod:`ranksight.model.series.absences`)."""
        columns = self.columns
        if columns.kernel is None or columns.shape.melt or columns.shape.pivot or not empty.any():
            return frame[self.kept]
        run = [*(f"p{at}" for at in range(len(columns.parameters))), "label"]
        of_run, of_kernel = (frame.groupby(k, sort=False, observed=True).ngroup() for k in (run, [*run, "kernel"]))
        listed = empty & np.isin(of_run, of_run[self.kept]) & ~np.isin(of_kernel, of_kernel[self.kept])
        listed &= np.isin(frame["kernel"], frame["kernel"][self.kept])
        if columns.rank is not None:
            ranks = pd.to_numeric(pd.Series(list(self.text.columns[columns.rank])), errors="coerce").to_numpy(
                np.float64
            )
            frame["rank"] = np.where(listed, ranks, frame["rank"])
            listed &= _are_ranks(ranks)
        return frame[self.kept | (listed & ~of_kernel.where(listed).duplicated())]

    def _scale(self, name: str, source: str) -> float:
        """What makes a column's values those of the metric's unit, where the column's name states another."""
        unit = metric(name).unit
        source = self.text.called.get(source, source)
        scale = stated_scale(source, unit)
        if scale != 1.0:
            self.notes.append(f"{self.path.name}: a 1 in {source!r} is {scale:g} {unit}, as its name says")
        return scale

    def _lumped(self, frame: pd.DataFrame, keys: list[str]) -> None:
        """Note columns of numbers that nobody named and in which rows differ that become repetitions.

        Raises InputError for a column of texts that come again from configuration to configuration: as names of kernels
        they would be added up wrongly, or not at all.
        """
        read = {*self.columns.names(), ""}
        others = [name for name in self.text.header if name not in read]
        reshaped = self.columns.shape.melt or self.columns.shape.pivot  # rows are no longer those of the file
        if not others or len(others) > MANY or len(self.lines) > LARGE or reshaped:
            return
        texts = self.columns.shape.read(self.path, others, self.columns.delimiter).columns
        group = frame.groupby(keys, sort=False, observed=True).ngroup().to_numpy()
        differ = []
        for name in others:
            cell = pd.Series(texts[name], dtype=object).iloc[frame.index].reset_index(drop=True)
            numbers = cell.map(_number_or_none)
            if cell.groupby(group).nunique().max() == 1:
                continue
            if numbers.isna().all() and cell.nunique() <= len(cell) // 2:
                quoted = shlex.quote(name)
                rows = f"choose rows with --where {shlex.quote(f'{name}={cell[0]}')}"
                uses = f"write --kernel {quoted} if it names kernels, --repetition {quoted} if they are repetitions"
                uses += f", numbers in place of its words and --parameter {quoted} if they are sizes"
                if number := number_for(str(cell[0])):
                    uses = f"{number} and --parameter {quoted}"
                raise InputError(f"{self.path}: rows of one configuration differ in {name!r}", f"{uses}, or {rows}")
            measured = numbers.notna().all() and (numbers % 1 != 0).any()
            most = min(FEW, len(cell) // 2 if measured else FEW)
            if cell.nunique() <= most:
                differ.append(name)
        if differ:
            self.notes.append(
                f"{self.path.name}: rows that differ in {', '.join(differ[:SHOWN])} became repetitions of one "
                "configuration: if they are, name the column with --repetition, and if not, with --parameter, "
                "--kernel, --rank, --where or, where it names metrics, --pivot"
            )

    def _kernels(self) -> object:
        if self.columns.kernel is None:
            return WHOLE
        names = self.text.columns[self.columns.kernel]
        if "" in names and (unnamed := np.array([not name for name in names]) & self.kept).any():
            raise InputError(f"{self.path}: no kernel is named ({self._named(unnamed)})", "choose rows with --where")
        total = self.columns.total
        if total is None:
            return _categories(names)
        if total not in names:
            raise InputError(
                f"{self.path}: no kernel is named {total!r}", "--total names the kernel that is the whole program"
            )
        return pd.Categorical([WHOLE if name == total else name for name in names])

    def readings(self) -> Iterator[Reading]:
        """One reading a configuration and repetition, in order of the configurations."""
        frame = self._frame()
        point = [f"p{at}" for at in range(len(self.columns.parameters))]
        if not point:
            # Parameters come from elsewhere: all rows are of one configuration.
            point, frame["p0"] = ["p0"], 0.0
        frame["copy"] = _copies(frame, [*point, "label"])
        if (frame["copy"] > 0).any():
            self._lumped(frame, [*point, "label", "kernel", "rank"])
        # Labels and copies of one configuration become 0, 1, 2, ... in the order of the file.
        runs = frame[[*point, "label", "copy"]].drop_duplicates()
        if len(runs) > limits.TABLE_RUNS:
            raise InputError(
                f"{self.path} holds {len(runs)} runs, more than {limits.TABLE_RUNS}",
                "give it in parts; rows of one run differ in the kernel or rank",
            )
        runs["repetition"] = runs.groupby(point, sort=False, observed=True).cumcount()
        frame = frame.merge(runs, on=[*point, "label", "copy"], how="left")
        if self.columns.repetition and (frame["copy"] > 0).any():
            self.notes.append(
                f"{self.path.name}: a kernel appears more than once in one {self.columns.repetition}: "
                "taken as further repetitions"
            )
        frame = frame.rename(columns={f"m{at}": name for at, name in enumerate(self.columns.metrics)})
        wanted = ["kernel", "rank", *self.columns.metrics]
        notes = tuple(self.notes)
        for key, group in frame.groupby([*point, "repetition"], sort=True):
            assert isinstance(key, tuple)
            *values, repetition = (float(str(part)) for part in key)
            values = values[: len(self.columns.parameters)]
            counters = group[wanted].dropna(axis=1, how="all").reset_index(drop=True)
            if isinstance(counters["kernel"].dtype, pd.CategoricalDtype):
                counters["kernel"] = counters["kernel"].cat.remove_unused_categories()
            yield Reading(
                configuration=dict(zip(self.columns.parameters, values, strict=True)),
                counters=counters,
                repetition=int(repetition),
                provenance={name: "measured" for name in counters.columns if name not in COUNTER_KEYS},
                names=self.columns.metrics,
                environment={TOTAL: self.columns.total} if self.columns.total else {},
                exclusive=False,
                meaning=UNSTATED if self.columns.rank is None else EACH,
                notes=notes,
                source=(str(self.path),),
            )


def _are_ranks(numbers: Array) -> Mask:
    """Which numbers may be those of ranks."""
    return np.asarray((numbers >= 0) & (numbers < 2**31) & (numbers == np.floor(numbers)))


def _categories(texts: Sequence[str]) -> pd.Categorical:
    """A column of texts of which many are the same."""
    held: Any = pd.Series(texts.held, dtype="str") if isinstance(texts, Texts) else texts
    return pd.Categorical(held)


def _copies(frame: pd.DataFrame, keys: list[str]) -> pd.Series[int]:
    """Which repetition each row belongs to, where rows of one configuration name a kernel and rank several times.

    Rows of one repetition stand together where that needs no more repetitions than a kernel has rows: a new one begins
    where a kernel comes again. Kernels that only some repetitions have then stay with those. In tables in the order of
    the kernels the n-th row of each is the n-th repetition.
    """
    places = [*keys, "kernel", "rank"]
    if not frame.duplicated(places).any():
        return pd.Series(0, index=frame.index)
    count = frame.groupby(places, sort=False, observed=True).cumcount()
    blocks = pd.Series(0, index=frame.index)
    for _, group in frame.groupby(keys, sort=False, observed=True):
        seen: set[tuple[object, object]] = set()
        number, numbers = 0, []
        for row in zip(group["kernel"], group["rank"], strict=True):
            if row in seen:
                number, seen = number + 1, set()
            seen.add(row)
            numbers.append(number)
        blocks[group.index] = np.array(numbers) if number == count[group.index].max() else count[group.index]
    return blocks


def _as_number(text: str) -> str:
    """A number as it is, of another cell what is its number."""
    try:
        float(text)
    except ValueError:
        return bare_number(text)
    return text


def _remedy(text: str) -> str:
    """What to do about a value of a parameter that is not a number."""
    number = number_for(text)
    return f"{number}, or choose rows with --where COLUMN=VALUE" if number else "choose rows with --where COLUMN=VALUE"


def _number_or_none(text: str) -> float | None:
    try:
        value = parse_number(text)
    except InputError:
        return None
    return value if np.isfinite(value) else None
