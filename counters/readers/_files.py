"""What readers of files share: text in any encoding, ranks in names, numbers that can be, one run from many files."""

from __future__ import annotations

import json
import math
import re
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ranksight.campaign.launchers import launcher_of
from ranksight.core import leftout, limits
from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS
from ranksight.core.files import leads_out, regular_file
from ranksight.core.meaning import EACH
from ranksight.core.numerals import parse_number
from ranksight.core.reading import Reading
from ranksight.core.sampled import TABLE
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

Ranked = tuple[Mapping[int, Path], tuple[str, ...]]
"""The files of a run by rank, and notes on how the ranks are known."""


def damaged(what: str) -> InputError:
    """The error of a file that its tool cannot have written; `what` names file and line."""
    return InputError(what, "the file is damaged or cut off: copy it again")


def number(where: str, given: object, name: str) -> float:
    """A value of the metric or column `name` that a clock or counter can hold.

    Raises InputError, beginning with `where` (file and line), when it is not a number, below zero, or too large.
    """
    try:
        value = float(given)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise damaged(f"{where}: {str(given)!r:.60} of {name} is not a number") from None
    if not 0 <= value < LARGEST:
        raise damaged(f"{where}: {name} is {value:g}, which no counter holds")
    return value


def grouped(where: str, text: str, name: str, decimal: str = ".") -> float:
    """As :func:`number`, with what people and tools put between thousands, and what separates the decimals there."""
    return number(where, _ungrouped(text, decimal), name)


def _ungrouped(given: object, decimal: str) -> object:
    """A number that people or tools wrote; what is none as it is."""
    try:
        return parse_number(given, decimal) if isinstance(given, str) else given
    except InputError:
        return given


def counter(where: str, given: object, name: str, decimal: str = ".") -> float:
    """As :func:`grouped`, of a hardware counter, which may have wrapped: too large a value passes, one that is no
    number (nan) is infinite, and one below zero -inf.

    :func:`~ranksight.counters.readers._assemble.build` leaves such a value out, also after sums, and says so: one bad
    counter does not cost the file.
    """
    try:
        value = float(_ungrouped(given, decimal))  # type: ignore[arg-type]
    except OverflowError:
        return math.inf
    except (TypeError, ValueError):
        return number(where, given, name)  # which says what is wrong
    return -math.inf if value < 0 else math.inf if math.isnan(value) else value


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


def read_json(path: Path) -> Any:
    """The content of a file of JSON. Raises InputError as :func:`read_text`, or when it is not valid."""
    lines, _ = read_text(path)
    try:
        return json.loads("\n".join(lines))
    except json.JSONDecodeError as error:
        raise damaged(f"{path}:{error.lineno} is not valid JSON: {error.msg}") from error
    except (RecursionError, ValueError) as error:
        raise damaged(f"{path} is not valid JSON that can be read: {error}") from error


def words(command: str) -> tuple[str, ...]:
    """The words of a command line, by quotes where they match."""
    try:
        return tuple(shlex.split(command))
    except ValueError:
        return tuple(command.split())


def of_launcher(command: Sequence[str]) -> bool:
    """Whether a tool that ran `command` followed all ranks: ``perf stat mpirun -n 4 ./a.out``."""
    return any(map(launcher_of, command))


def head_text(head: bytes) -> str:
    """The first bytes of a file as text, whatever they are."""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return head[: len(head) // 2 * 2].decode("utf-16", errors="replace")
    return head.decode("utf-8", errors="replace").lstrip("\ufeff")


def head_of(path: Path, size: int = 4096) -> bytes:
    """The first bytes of a regular file; empty where it cannot be read."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return b""
        with path.open("rb") as stream:
            return stream.read(size)
    except OSError:
        return b""


def rank_in(path: Path) -> int | None:
    """The rank that a file's name states: ``out.rank3.txt`` is 3, ``FritzRank72`` (a word's part) is none."""
    found = _RANK.search(path.name)
    return int(found[1]) if found else None


def by_run(files: Iterable[Path]) -> list[dict[int, Path]]:
    """The files by rank of each run that has several of them in one folder, whose names differ in nothing but the rank
    that they state: ``n4.rank0.txt``, ``n4.rank1.txt``. One that is no rank 0 states a number of ranks, no rank."""
    runs: dict[tuple[Path, str], dict[int, Path]] = {}
    for file in files:
        if (rank := rank_in(file)) is not None:
            runs.setdefault((file.parent, _RANK.sub("", file.name)), {})[rank] = file
    return [ranks for ranks in runs.values() if 0 in ranks and len(ranks) > 1]


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


def inside(folder: Path) -> list[Path]:
    """Regular files of `folder`, sorted. Raises InputError when a link leads out of the folder."""
    found = []
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("."):
            continue
        if entry.is_symlink() and leads_out(entry, folder):
            raise InputError(f"{entry} is a link out of its folder", "name the files it leads to instead")
        if entry.is_file():
            found.append(entry)
    return found


def _by_name(files: Sequence[Path]) -> dict[int, Path] | None:
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
    if _NOT_RANK.search(before) or sorted(ranks) != list(range(len(files))):
        return None
    return dict(zip(ranks, files, strict=True))


def by_rank(folder: Path) -> Ranked:
    """The files of a folder that holds one file a rank, or one a process: those are in the order of process ids.

    Raises InputError when the names hold neither, or a link leads out of the folder.
    """
    files = inside(folder)
    if (ranked := _by_name(files)) is not None:
        return ranked, ()
    ids = [match for file in files if (match := _PROCESS.fullmatch(file.name))]
    if len(files) < 2 or len(ids) < len(files) or len({match["stem"] for match in ids}) > 1:
        raise InputError(f"{folder}: the names of its files hold no rank", "name them out.rank0, out.rank1, ...")
    files.sort(key=lambda file: int(file.name.rpartition(".")[2]))
    return dict(enumerate(files)), ("files are named by process ids: ranks are given in their order",)


@dataclass
class Format:
    """A reader of files of text, of one rank or all, or of a folder with one file a rank, which is one run."""

    text: str
    is_one: Callable[[Path, str], bool]  # whether a file, with the text of its first bytes, is of the format
    read_one: Callable[[Path, int | None], Iterable[Reading]]
    """The readings of a file, and of its rank where its name states one: one a run."""
    files: Callable[[Path], Ranked] | None = by_rank
    """The files of a folder; raises InputError where they are not of ranks. None where a folder is nothing to read."""

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether `path` is of the format, or a folder with one such file a rank and nothing else."""
        if path.is_dir():
            try:
                files = self.files(path)[0] if self.files else {}
                return bool(files) and all(self.recognises(file, head_of(file)) for file in files.values())
            except (InputError, OSError):
                return False
        text = head_text(head)
        return "\x00" not in text and self.is_one(path, text)

    def read(self, path: Path) -> Iterator[Reading]:
        """Read a file, or a folder with one file a rank.

        Raises InputError, naming file and line, where a file is damaged; the names in a folder hold no rank; a rank is
        missing.
        """
        if not path.is_dir() or self.files is None:
            yield from self.read_one(path, rank_in(path))
            return
        files, notes = self.files(path)
        for merged in self.read_ranks(files, path):
            yield replace(merged, notes=(*merged.notes, *notes))

    def read_ranks(self, files: Mapping[int, Path], source: Path) -> Iterator[Reading]:
        """The readings of the runs whose ranks have a file each, which messages name as `source`.

        Raises InputError as :meth:`read`.
        """
        held = {rank: list(self.read_one(file, rank)) for rank, file in files.items()}
        few, most = (of(held, key=lambda rank: len(held[rank])) for of in (min, max))
        if len(held[few]) < len(held[most]):
            raise InputError(
                f"{files[few]} holds {len(held[few])} runs, those of other ranks {len(held[most])}",
                "give the files of one run a folder",
            )
        for each in zip(*held.values(), strict=True):
            yield _merged(dict(zip(held, each, strict=True)), source)


def _merged(readings: Mapping[int, Reading], source: Path) -> Reading:
    """One reading of a run from one reading a rank, whatever rank each calls itself.

    Raises InputError when a rank is missing or a file holds several ranks.
    """
    ranks = checked_ranks(readings, str(source))
    tables = []
    further: dict[str, list[pd.DataFrame]] = {TABLE: [], leftout.TABLE: []}
    provenance: dict[str, str] = {}
    for rank in ranks:
        reading = readings[rank]
        table = reading.counters
        for name, found in further.items():
            if (kept := reading.tables.get(name)) is not None:
                found.append(kept.assign(rank=np.int32(rank)))
        if table is None or table["rank"].nunique() != 1:
            raise InputError(f"{reading.source[0]} holds several ranks, and there are files of other ranks")
        tables.append(table.assign(rank=np.int32(rank)))
        provenance = {**reading.provenance, **provenance}
    first = readings[ranks[0]]
    walls = [reading.wall_time for reading in readings.values() if reading.wall_time is not None]
    joined = {name: pd.concat(found, ignore_index=True) for name, found in further.items() if found}
    return replace(
        first,
        configuration={**first.configuration, "ranks": float(len(ranks))},
        counters=pd.concat(tables, ignore_index=True),
        tables={**first.tables, **joined},
        provenance=provenance,
        meaning=EACH,
        wall_time=max(walls, default=None),
        notes=(
            f"{len(ranks)} files are taken for the ranks of one run, by the numbers in their names",
            *dict.fromkeys(note for rank in ranks for note in readings[rank].notes),
        ),
        source=tuple(name for rank in ranks for name in readings[rank].source),
    )
