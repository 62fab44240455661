"""What all readers of profiles share: hostile text, ranks in names, checked tables, one reading from many files."""

from __future__ import annotations

import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from pandas.api.extensions import ExtensionArray

from ranksight.core import leftout, limits
from ranksight.core.arrays import Array, Ints
from ranksight.core.contract import check_values
from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS
from ranksight.core.files import leads_out, regular_file
from ranksight.core.reading import Reading
from ranksight.core.sampled import TABLE, effective, sampling
from ranksight.counters.forming import formed
from ranksight.counters.names import Translated, translate
from ranksight.counters.readers._delimited import decode

LARGEST = limits.VALUE
"""What a 64-bit counter shows from here on is a negative difference; at 5 GHz it would have counted for 58 years."""

_RANK = re.compile(r"(?:^|[^A-Za-z])(?:mpi)?(?:rank|proc|process)[._=-]?(\d{1,7})(?![\d])", re.IGNORECASE)
_NOT_RANK = re.compile(
    r"(?:^|[^a-z])(?:r|rep|repetition|run|iter|iteration|trial|try|exp|job|size|n|p|np|nprocs|ranks|threads|t|x)[._=-]?$",
    re.IGNORECASE,
)
_PROCESS = re.compile(r"(?P<stem>(?:callgrind|cachegrind|gmon)\.out)\.(?P<pid>\d+)")
_INTEGER = re.compile(r"\d+")


def read_text(path: Path) -> tuple[list[str], tuple[str, ...]]:
    """Lines of a text in any usual encoding, and notes on how it was read.

    Raises InputError when the file cannot be read, is empty, binary, no regular file, or larger than
    :data:`limits.TEXT`.
    """
    regular_file(path)
    if path.stat().st_size > limits.TEXT:
        raise InputError(f"{path} is larger than {limits.TEXT >> 20} MiB", "is it this tool's output?")
    text, notes = decode(path)
    return text.split("\n"), notes


def number(path: Path, line: int, text: str, wrong: str = "is not a time or count") -> float:
    """A value of a file of text, which a clock or counter can hold.

    Raises InputError, naming file and line, and what is `wrong` with it, when it is not a number, below zero, or too
    large.
    """
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < LARGEST:
        raise InputError(f"{path}:{line}: {text[:40]!r} {wrong}", "the file is damaged")
    return value


def head_text(head: bytes) -> str:
    """The first bytes of a file as text, whatever they are."""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return head[: len(head) // 2 * 2].decode("utf-16", errors="replace")
    return head.decode("utf-8", errors="replace").lstrip("\ufeff")


def rank_in(path: Path) -> int | None:
    """The rank that a file's name states: ``out.rank3.txt`` is 3, ``FritzRank72`` (a word's part) is none."""
    found = _RANK.search(path.name)
    return int(found[1]) if found else None


def checked_ranks(ranks: Iterable[int], where: str) -> list[int]:
    """The ranks, sorted. Raises InputError when one between 0 and the largest is missing."""
    present = sorted({rank for rank in ranks if rank != ALL_RANKS})
    if present and len(present) != present[-1] + 1:
        missing = sorted(set(range(min(present[-1] + 1, len(present) + 4))) - set(present))
        raise InputError(
            f"{where}: rank {missing[0] if missing else len(present)} of 0 to {present[-1]} is missing",
            "give the files of all ranks",
        )
    return present


def columns_of(rows: Iterable[Mapping[str, float]]) -> dict[str, Array]:
    """Columns from one mapping a row; NaN where a row lacks a name."""
    rows = list(rows)
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: np.array([row.get(name, np.nan) for row in rows], dtype=np.float64) for name in names}


def build_cells(
    path: Path, cells: Mapping[str, Mapping[str, float]], rank: int | None, notes: Sequence[str] = (), **settings: Any
) -> Reading:
    """One reading of a file of one rank, 0 where it is not known, from the values of each kernel.

    `**settings`: as in :func:`build`, with its errors.
    """
    own = 0 if rank is None else rank
    columns = columns_of(cells.values())
    return build(path, list(cells), [own] * len(cells), columns, configuration={}, notes=notes, **settings)


def build_threads(
    path: Path,
    kernels: Sequence[str] | NDArray[np.object_],
    ranks: ArrayLike,
    threads: Sequence[str] | NDArray[np.object_],
    columns: Mapping[str, Array],
    how: Mapping[str, str],
    *,
    notes: Sequence[str] = (),
    tables: Mapping[str, pd.DataFrame] | None = None,
    **settings: Any,
) -> Reading:
    """One reading from the threads of ranks, reduced to these; its table ``threads`` has them apart.

    Parameters
    ----------
    kernels, threads, columns : sequences, shape (m,)
        A thread stands once for a kernel on a rank.
    ranks : array_like, shape (m,) or ()
    how : mapping of str to {"max", "mean"}
        Columns that are not added: time passes for all threads at once, so a rank's is its slowest thread's.
    notes, tables, **settings
        As in :func:`build`, with its errors.
    """
    names = np.asarray(kernels, dtype=object)
    owners = np.broadcast_to(np.asarray(ranks, dtype=np.int64), names.shape)
    if len(set(zip(names.tolist(), owners.tolist(), strict=True))) == len(names):
        return build(path, list(names), owners, columns, notes=notes, tables=tables, **settings)
    apart = pd.DataFrame({"kernel": names, "rank": owners, "thread": np.asarray(threads, dtype=object), **columns})
    grouped = apart.groupby(["kernel", "rank"], sort=False, observed=True)
    single = {
        name: getattr(grouped[name], how[name])() if name in how else grouped[name].sum(min_count=1) for name in columns
    }
    index = grouped.size().index
    note = "ranks have several threads: counts are added over them, time is that of the slowest"
    return build(
        path,
        index.get_level_values("kernel").tolist(),
        index.get_level_values("rank").to_numpy(),
        {name: series.to_numpy(dtype=np.float64) for name, series in single.items()},
        notes=(*notes, note),
        tables={"threads": apart, **(tables or {})},
        **settings,
    )


def build(
    path: Path,
    kernels: Sequence[str] | ExtensionArray,
    ranks: Sequence[int] | Ints,
    columns: Mapping[str, Array],
    *,
    origin: str | Mapping[str, str] = "measured",
    aliases: Mapping[str, str] | None = None,
    configuration: Mapping[str, float] | None = None,
    notes: Sequence[str] = (),
    distinct: bool = False,
    worth: Mapping[str, Array | float] | None = None,
    tables: Mapping[str, pd.DataFrame] | None = None,
    **more: object,
) -> Reading:
    """One reading from columns under their source's names (SI units), one row a kernel x rank.

    Raises InputError when there is no row or no value, a kernel stands twice on a rank, or a number is absurd.

    Parameters
    ----------
    path : Path
        The file they came from.
    kernels, ranks : sequences, shape (n,)
    columns : mapping of str to ndarray, shape (n,)
    origin, aliases
        As in :func:`ranksight.counters.names.translate`.
    configuration : mapping, optional
        Defaults to the number of ranks, where the source has values per rank.
    distinct : bool
        Whether no kernel can stand twice on a rank, so that this need not be looked for.
    worth : mapping of str to ndarray, shape (n,), or float, optional
        What a sample is worth in the columns that are made of samples (:mod:`ranksight.core.sampled`).
    tables : mapping of str to DataFrame, optional
        Further tables of the reading.
    **more
        Further attributes of :class:`ranksight.core.reading.Reading`.
    """
    if len(kernels) == 0:
        raise InputError(f"{path} holds no measurement", "is the file complete?")
    least, most = (ranks.min(), ranks.max()) if isinstance(ranks, np.ndarray) else (min(ranks), max(ranks))
    if least < ALL_RANKS or most >= 2**31:
        raise InputError(f"{path} names rank {max(least, most, key=abs)}", "the file is damaged")
    ranks = np.asarray(ranks, dtype=np.int64)
    columns = {name: values for name, values in columns.items() if not np.isnan(values).all()}
    if not columns:
        raise InputError(f"{path} holds no number", "is the file complete?")
    translated = translate(columns, origin, aliases)
    check_values(translated.columns, kernels, ranks, str(path))
    names = kernels if isinstance(kernels, ExtensionArray) else list(kernels)
    table = pd.DataFrame({"kernel": names, "rank": ranks.astype(np.int32), **translated.columns})
    if not distinct and table.duplicated(["kernel", "rank"]).any():
        row = table[table.duplicated(["kernel", "rank"])].iloc[0]
        raise InputError(f"{path} gives kernel {row['kernel']!r} on rank {row['rank']} twice", "give one run a file")
    if configuration is None:
        present = checked_ranks(np.unique(ranks).tolist(), str(path))
        configuration = {"ranks": float(len(present))} if present else {}
    if worth:
        tables = {**(tables or {}), TABLE: sampling(table, _worth(translated, columns, worth))}
    given = Reading(
        configuration=configuration,
        counters=table,
        provenance=translated.provenance,
        names=translated.names,
        notes=(*notes, *translated.notes),
        source=(str(path),),
        tables=dict(tables or {}),
        **more,  # type: ignore[arg-type]
    )
    return formed(given, doubtful=False)


def _worth(
    translated: Translated, columns: Mapping[str, Array], worth: Mapping[str, Array | float]
) -> dict[str, Array]:
    """What a sample is worth in each metric, from what it is in the columns that it is the sum of."""
    found: dict[str, Array] = {}
    for name, value in translated.columns.items():
        parts = [(source, weight) for source, weight in translated.parts.get(name, ()) if source in worth]
        if not parts:
            continue
        variance, one = np.zeros(len(value)), np.zeros(len(value))
        for source, weight in parts:
            variance += weight**2 * worth[source] * np.nan_to_num(columns[source])
            one = np.maximum(one, abs(weight) * worth[source])
        found[name] = effective(np.nan_to_num(value), variance, one)
    return found


def ranked_files(files: Sequence[Path]) -> dict[int, Path] | None:
    """Files of one run by rank, the one number in which their names differ; None if they are not files of ranks.

    A number called rank is the rank; another number is one only where the numbers are 0 to n - 1 and no other word
    (run, repetition, size ...) stands before them.
    """
    named = {rank_in(file): file for file in files}
    if len(files) > 1 and None not in named and len(named) == len(files):
        templates = {_RANK.sub("", file.name) for file in files}
        if len(templates) == 1:
            return {rank: file for rank, file in named.items() if rank is not None}
    shapes = {_INTEGER.sub("#", file.name) for file in files}
    if len(files) < 2 or len(shapes) != 1:
        return None
    numbers = [[int(text) for text in _INTEGER.findall(file.name)] for file in files]
    differing = [place for place, column in enumerate(zip(*numbers, strict=True)) if len(set(column)) > 1]
    if len(differing) != 1:
        return None
    ranks = [row[differing[0]] for row in numbers]
    before = _INTEGER.split(files[0].name)[differing[0]]
    if _NOT_RANK.search(before):
        return None
    if sorted(ranks) != list(range(len(files))):
        return None
    return dict(zip(ranks, files, strict=True))


def inside(folder: Path) -> list[Path]:
    """Regular files of `folder`, sorted; links that lead out of it are refused.

    Raises InputError when a link leads out of the folder.
    """
    found = []
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("."):
            continue
        if entry.is_symlink() and leads_out(entry, folder):
            raise InputError(f"{entry} is a link out of its folder", "name the files it leads to instead")
        if entry.is_file():
            found.append(entry)
    return found


def run_folder(folder: Path) -> dict[int, Path]:
    """The files of a folder that holds one file a rank.

    Raises InputError when the names hold no rank, or a link leads out of the folder.
    """
    files = ranked_files(inside(folder))
    if files is None:
        raise InputError(f"{folder}: the names of its files hold no rank", "name them out.rank0, out.rank1, ...")
    return files


def is_run_folder(folder: Path, recognises: Callable[[Path, bytes], bool]) -> bool:
    """Whether a folder holds one file a rank and nothing else, all of one format."""
    try:
        return all(recognises(file, head_of(file)) for file in run_folder(folder).values())
    except (InputError, OSError):
        return False


def process_folder(folder: Path) -> tuple[dict[int, Path], tuple[str, ...]]:
    """Files of a folder that holds one file a process: by rank, or else in the order of process ids, which is noted.

    Raises InputError when the names hold neither.
    """
    files = inside(folder)
    ranked = ranked_files(files)
    if ranked is not None:
        return ranked, ()
    ids = [_PROCESS.fullmatch(file.name) for file in files]
    if len(files) > 1 and all(ids) and len({match["stem"] for match in ids if match}) == 1:
        ordered = sorted(zip([int(match["pid"]) for match in ids if match], files, strict=True))
        note = "files are named by process ids: ranks are given in their order"
        return {rank: file for rank, (_, file) in enumerate(ordered)}, (note,)
    return run_folder(folder), ()


def is_process_folder(folder: Path, recognises: Callable[[Path, bytes], bool]) -> bool:
    """Whether a folder holds one file a process and nothing else, all of one format."""
    try:
        return all(recognises(file, head_of(file)) for file in process_folder(folder)[0].values())
    except (InputError, OSError):
        return False


def read_processes(path: Path, read: Callable[[Path], Reading]) -> Reading:
    """What `read` makes of a file, or of the files of a folder that holds one a process (:func:`process_folder`)."""
    if not path.is_dir():
        return read(path)
    files, notes = process_folder(path)
    merged = merge_ranks({rank: read(file) for rank, file in files.items()}, path)
    return replace(merged, notes=(*merged.notes, *notes))


def head_of(path: Path, size: int = 4096) -> bytes:
    """The first bytes of a regular file; empty where it cannot be read."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return b""
        with path.open("rb") as stream:
            return stream.read(size)
    except OSError:
        return b""


def merge_ranks(readings: Mapping[int, Reading], source: Path) -> Reading:
    """One reading of a run from one reading a rank.

    `readings` (mapping of int to Reading): each with the counters of a single rank, whatever rank it calls itself.
    `source`: where they came from. Raises InputError when a rank is missing or a file holds several ranks.
    """
    ranks = checked_ranks(readings, str(source))
    tables = []
    further: dict[str, list[pd.DataFrame]] = {TABLE: [], leftout.TABLE: []}
    for rank in ranks:
        table = readings[rank].counters
        for name, found in further.items():
            if (kept := readings[rank].tables.get(name)) is not None:
                found.append(kept.assign(rank=np.int32(rank)))
        if table is None or table["rank"].nunique() != 1:
            raise InputError(f"{readings[rank].source[0]} holds several ranks, and there are files of other ranks")
        tables.append(table.assign(rank=np.int32(rank)))
    table = pd.concat(tables, ignore_index=True)
    provenance: dict[str, str] = {}
    for reading in readings.values():
        provenance = {**reading.provenance, **provenance}
    walls = [reading.wall_time for reading in readings.values() if reading.wall_time is not None]
    return replace(
        readings[ranks[0]],
        configuration={**readings[ranks[0]].configuration, "ranks": float(len(ranks))},
        counters=table,
        tables={
            **readings[ranks[0]].tables,
            **{name: pd.concat(found, ignore_index=True) for name, found in further.items() if found},
        },
        provenance=provenance,
        wall_time=max(walls) if walls else None,
        notes=(
            f"{len(ranks)} files are taken for the ranks of one run, by the numbers in their names",
            *dict.fromkeys(note for rank in ranks for note in readings[rank].notes),
        ),
        source=tuple(name for rank in ranks for name in readings[rank].source),
    )


@dataclass
class FilePerRank:
    """A reader of files that are of one rank each: of one, or of a folder with one a rank, which is one run.

    `is_one`: whether a file, with its first bytes, is of the format. `read_one`: the reading of a file, and of its rank
    where its name holds one.
    """

    text: str
    is_one: Callable[[Path, bytes], bool]
    read_one: Callable[[Path, int | None], Reading]

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether `path` is of the format, or a folder with one such file a rank."""
        return is_run_folder(path, self.is_one) if path.is_dir() else self.is_one(path, head)

    def read(self, path: Path) -> Iterator[Reading]:
        """Read a file, or a folder with one file a rank.

        Raises InputError where a file is damaged, the names in a folder hold no rank, or a rank is missing.
        """
        if path.is_dir():
            yield merge_ranks({rank: self.read_one(file, rank) for rank, file in run_folder(path).items()}, path)
        else:
            yield self.read_one(path, rank_in(path))
