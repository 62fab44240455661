"""What the readers of GPU profilers share: a table with a head somewhere in a text, and sums over launches of a kernel.

GPU kernels become kernels with ``time`` and ``visits``; counts of the device have names of their own (``gpu_...``), so
that the equation of processor cores and their memory does not take them for its own.
"""

from __future__ import annotations

import csv
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path

from ranksight.core.errors import InputError
from ranksight.core.reading import Reading
from ranksight.counters.readers import _assemble

SECONDS = {
    "ns": 1e-9, "nsecond": 1e-9, "us": 1e-6, "usecond": 1e-6, "μs": 1e-6, "ms": 1e-3, "msecond": 1e-3, "s": 1.0,
    "second": 1.0, "sec": 1.0,
}  # fmt: skip
"""Units of time, as the tools write them."""
NOTE = "times of kernels are those on the GPU; where the host waits for it, they are in the host's times, too"


def table(path: Path, heads: Sequence[Sequence[str]], what: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """The first CSV table with the columns of one of `heads`: its columns, and its rows with their line numbers.

    Tools write lines of their own before a table, and an empty line or another table after it. Raises InputError,
    naming file and line: no such table, a row of another width, no rows.
    """
    lines, _ = _assemble.read_text(path)
    begin = next((at for at, line in enumerate(lines) if any(_is_head(line, each) for each in heads)), -1)
    if begin < 0:
        names = " or ".join(", ".join(each) for each in heads)
        raise InputError(f"{path} holds no {what}: no line names {names}", "is it this tool's output?")
    end = next((at for at in range(begin + 1, len(lines)) if not lines[at].strip()), len(lines))
    rows: list[tuple[int, list[str]]] = []
    reader = csv.reader((f"{line}\n" for line in lines[begin:end]), strict=True)
    try:
        columns = [name.strip() for name in next(reader)]
        for row in reader:
            at = begin + reader.line_num
            if len(row) != len(columns):
                raise InputError(f"{path}:{at} has {len(row)} columns, the head {len(columns)}", "the file is damaged")
            rows.append((at, row))
    except csv.Error as error:
        raise InputError(f"{path}:{begin + reader.line_num}: {error}", "the file is damaged") from error
    if not rows:
        raise InputError(f"{path}:{begin + 1}: a table without rows", "did the program launch a kernel?")
    return columns, rows


def _is_head(line: str, heads: Sequence[str]) -> bool:
    return all(head in line for head in heads)


def recognised(head: bytes, *heads: Sequence[str]) -> bool:
    """Whether a line of a file's first bytes names all columns of one of `heads`."""
    lines = _assemble.head_text(head).splitlines()
    return any(_is_head(line, each) for line in lines for each in heads)


def column(path: Path, columns: Sequence[str], name: str) -> int:
    """Position of a column. Raises InputError when there is none of that name."""
    if name not in columns:
        raise InputError(f"{path}: the head names no column {name}", "the file is damaged")
    return columns.index(name)


def number(path: Path, at: int, text: str) -> float:
    """A time or count, with the commas that tools put between thousands.

    Raises InputError, naming file and line, when it is neither.
    """
    return _assemble.number(path, at, text.replace(",", ""), "is no time or count")


class Sums:
    """Values added over the launches of each kernel."""

    def __init__(self) -> None:
        self.cells: dict[str, dict[str, float]] = {}

    def add(self, path: Path, at: int, kernel: str, values: Iterable[tuple[str, float]]) -> None:
        """Add values of one launch, or of one row of sums. Raises InputError when the kernel has no name."""
        if not kernel.strip():
            raise InputError(f"{path}:{at}: a kernel without a name", "the file is damaged")
        cell = self.cells.setdefault(kernel.strip(), {})
        for name, value in values:
            cell[name] = cell.get(name, 0.0) + value

    def reading(self, path: Path, rank: int | None) -> Reading:
        """The sums as a reading of one rank."""
        return _assemble.build_cells(path, self.cells, rank, (NOTE,))


class GpuReader(ABC, _assemble.FilePerRank):
    """A reader of one file a rank; a format says by which columns it is recognised and how a file is read."""

    text = ""
    heads: tuple[tuple[str, ...], ...] = ()

    def __init__(self) -> None:
        super().__init__(
            self.text,
            lambda path, head: recognised(head, *self.heads),
            lambda path, rank: self.sums(path).reading(path, rank),
        )

    @abstractmethod
    def sums(self, path: Path) -> Sums:
        """The sums over launches in a file."""
