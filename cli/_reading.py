"""How 'import' reads: names and columns as the user gives them, and files read ahead by several processes."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ranksight.core.errors import InputError, UsageError

if TYPE_CHECKING:
    from ranksight.campaign.naming import Naming
    from ranksight.core.meaning import Meaning
    from ranksight.core.reading import Reading
    from ranksight.counters.readers.csv_table import Columns
    from ranksight.counters.readers.log_pattern import Log


def _pairs(texts: list[str], option: str) -> list[tuple[str, str]]:
    pairs = []
    for text in texts:
        name, mark, value = text.partition("=")
        if not mark or not name.strip():
            raise UsageError(f"ranksight import: {option} {text!r}", f"write {option} NAME=VALUE")
        pairs.append((name.strip(), value.strip()))
    return pairs


def _molten(texts: list[str]) -> dict[str, tuple[str, ...]]:
    """The columns that become one, by the one name of that, however many options list them."""
    listed: dict[str, tuple[str, ...]] = {}
    for name, columns in _pairs(texts, "--melt"):
        listed[name] = (*listed.get(name, ()), *filter(None, columns.split(",")))
    if len(listed) > 1:
        raise UsageError(f"ranksight import: --melt makes one column, not {', '.join(listed)}", "give them one name")
    return listed


def _one(text: str | None) -> list[str]:
    return [] if text is None else [text]


def _constants(texts: list[str], option: str = "--set") -> dict[str, float]:
    constants: dict[str, float] = {}
    for name, value in _pairs(texts, option):
        try:
            number = float(value)
        except ValueError:
            number = float("nan")
        if not -1e300 < number < 1e300:
            raise UsageError(f"ranksight import: {option} {name}={value}: {value!r} is not a number")
        if name in constants:
            raise UsageError(f"ranksight import: {option} {name} is given twice")
        constants[name] = number
    return constants


def _stated(texts: list[str]) -> dict[str, Meaning]:
    """What ``--values`` says of values over ranks: of a metric, or under "" of all others."""
    from ranksight.core.meaning import MAXIMUM, MEAN, OF_CORE, OF_NODE, SUM

    words = {"sum": SUM, "mean": MEAN, "max": MAXIMUM, "node": OF_NODE, "core": OF_CORE}
    found: dict[str, Meaning] = {}
    for text in texts:
        name, mark, word = text.rpartition("=")
        name, word = name.strip(), word.strip()
        if word not in words or (mark and not name):
            how = "write --values sum, mean, max, node or core, or METRIC=sum for one metric"
            raise UsageError(f"ranksight import: --values {text!r}", how)
        if name in found:
            raise UsageError(f"ranksight import: --values {name or word} is given twice")
        found[name] = words[word]
    return found


Read = Callable[[Path, str], Iterable["Reading"]]


def readings(
    todo: list[tuple[Path, str]], read: Read, chosen: argparse.Namespace
) -> Iterator[tuple[Path, str, Callable[[], Iterable[Reading]]]]:
    """Each file, its reader, and what gives its readings or raises; read ahead where there are processes for it."""
    from ranksight.core.executing import executor, in_order

    if len(todo) < 2 or (chosen.jobs == 1 and chosen.dask is None):
        for path, reader in todo:
            yield path, reader, partial(read, path, reader)
        return
    with executor(chosen.jobs, chosen.dask) as (pool, width):
        results = in_order(pool, width, _read_whole, ((read, path, reader) for path, reader in todo))
        for (path, reader), result in zip(todo, results, strict=True):
            yield path, reader, partial(_given, result)


def _read_whole(task: tuple[Read, Path, str]) -> list[Reading] | InputError:
    """All readings of a file, in a process of its own; an error is brought back as what it is."""
    read, path, reader = task
    try:
        return list(read(path, reader))
    except InputError as error:
        return error


def _given(result: list[Reading] | InputError) -> list[Reading]:
    if isinstance(result, InputError):
        raise result
    return result


def _read_named(path: Path, reader: str, runs: Mapping[Path, Mapping[int, Path]]) -> Iterable[Reading]:
    from ranksight.core.reading import READERS, in_time
    from ranksight.counters.readers._files import Format

    how = READERS[reader]
    if path in runs and isinstance(how, Format):
        return in_time(path, how.read_ranks(runs[path], path.parent))
    return in_time(path, how.read(path))


def of_runs(todo: list[tuple[Path, str]]) -> tuple[list[tuple[Path, str]], Read]:
    """What is to be read, with one file for each run that has a file a rank next to those of other runs; and the
    reading of it."""
    from ranksight.core.reading import READERS
    from ranksight.counters.readers._files import Format, by_run

    runs: dict[Path, Mapping[int, Path]] = {}
    others: set[tuple[Path, str]] = set()
    for name in dict.fromkeys(name for _, name in todo):
        if isinstance(how := READERS[name], Format) and how.files is not None:
            for ranks in by_run(path for path, reader in todo if reader == name and path.is_file()):
                runs[ranks[0]] = ranks
                others.update((path, name) for rank, path in ranks.items() if rank)
    return [each for each in todo if each not in others], partial(_read_named, runs=runs)


def names_given(chosen: argparse.Namespace) -> Naming:
    """What the user says of names."""
    from ranksight.campaign.naming import Naming, names_of

    periods = _constants(chosen.period, "--period")
    named, fixed, metrics = names_of(chosen.parameter), _constants(chosen.set), names_of(chosen.metric)
    return Naming(named, fixed, metrics, periods, chosen.total or None, _stated(chosen.values))


def table_reader(chosen: argparse.Namespace) -> tuple[Naming, Read]:
    """What the user says of names, and the reading of a table by its columns; UsageError where they say nothing."""
    from ranksight.campaign.naming import Naming, is_pattern, names_of
    from ranksight.counters.readers._reshaping import Shape
    from ranksight.counters.readers.csv_table import Columns

    where: dict[str, tuple[str, ...]] = {}
    for column, value in _pairs(chosen.where, "--where"):
        where[column] = (*where.get(column, ()), value)
    given = names_of(chosen.parameter)
    if chosen.delimiter is not None:
        chosen.delimiter = {"tab": "\t", "\\t": "\t"}.get(chosen.delimiter, chosen.delimiter)
        if len(chosen.delimiter) != 1 or chosen.delimiter in '"\r\n':
            raise UsageError(
                f"ranksight import: --delimiter {chosen.delimiter!r} is not a character", "write tab for tabs"
            )
    columns = Columns(
        parameters={name: source for name, source in given.items() if not is_pattern(source)},
        metrics=names_of(chosen.metric),
        kernel=chosen.kernel,
        rank=chosen.rank,
        repetition=chosen.repetition,
        where=where,
        total=chosen.total or None,
        delimiter=chosen.delimiter,
        decimal=chosen.decimal,
        shape=Shape(
            _molten(chosen.melt),
            dict(_pairs(_one(chosen.pivot), "--pivot")),
        ),
    )
    if chosen.melt and chosen.pivot:
        raise UsageError("ranksight import: --melt and --pivot", "a table is wide or long: give one of them")
    found = {name: source for name, source in given.items() if is_pattern(source)}
    periods = _constants(chosen.period, "--period")
    naming = Naming(found, _constants(chosen.set), {}, periods, values=_stated(chosen.values))
    if chosen.rank is not None and chosen.values:
        raise UsageError("ranksight import: --values and --rank", "values of ranks are each rank's: leave --values out")
    outside = bool(naming.parameters or naming.constants)
    return naming, partial(_read_table, columns, chosen.strict, outside)


def log_reader(chosen: argparse.Namespace) -> tuple[Naming, Read]:
    """What the user says of names, and the reading of a log by patterns; UsageError where none says the time."""
    from ranksight.campaign.naming import Naming, is_pattern, names_of
    from ranksight.counters.readers.log_pattern import TIME, Log, Pattern

    if not chosen.time:
        raise UsageError("ranksight import log: no --time", "say where the time stands: --time 'Elapsed: {time}'")
    given = names_of(chosen.parameter)
    patterns = {
        name: Pattern(name, source) for name, source in given.items() if "{" in source and not is_pattern(source)
    }
    named = {name: source for name, source in given.items() if name not in patterns}
    naming = Naming(named, _constants(chosen.set), names_of(chosen.metric))
    return naming, partial(_read_log, Log(Pattern(TIME, chosen.time), patterns))


def _read_log(log: Log, path: Path, reader: str) -> Iterable[Reading]:
    from ranksight.core.reading import in_time
    from ranksight.counters.readers.log_pattern import read_log

    return in_time(path, read_log(path, log))


def _read_table(columns: Columns, strict: bool, outside: bool, path: Path, reader: str) -> Iterable[Reading]:
    from ranksight.core.reading import in_time
    from ranksight.counters.readers._column_names import by_names
    from ranksight.counters.readers._markdown import MarkdownTable
    from ranksight.counters.readers.csv_table import read_table

    shape, note = columns.shape, ""
    if reader == "markdown":
        if shape.melt or shape.pivot or columns.delimiter:
            raise UsageError("ranksight import: --melt, --pivot and --delimiter are for csv", "write one row a run")
        shape = MarkdownTable({}, {})
    named = columns.metrics and (columns.parameters or outside)
    if not named and not shape.melt and not shape.pivot:
        heads = [name for name in dict.fromkeys(shape.read(path, [], columns.delimiter).header) if name]
        cells = shape.read(path, heads, columns.delimiter).columns
        columns, note = by_names(path, columns, cells, outside, wide=reader != "markdown")
    if columns.total and not columns.kernel:
        raise UsageError("ranksight import: --total without --kernel", "say which column names the kernels")
    if reader == "markdown":
        single = [name for name in (columns.kernel, columns.rank) if name is not None]
        needed = [*columns.parameters.values(), *single]
        columns = replace(columns, shape=MarkdownTable({}, {}, needed))
    found = in_time(path, read_table(path, columns, strict, outside))
    return (replace(reading, notes=(note, *reading.notes)) for reading in found) if note else found
