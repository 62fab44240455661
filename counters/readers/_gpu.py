"""What the readers of GPU profilers share: a table with a head somewhere in a text, and sums over launches of a kernel.

GPU kernels become kernels with ``time`` and ``visits``; counts of the device have names of their own (``gpu_...``), so
that the equation of processor cores and their memory does not take them for its own.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ranksight.core.errors import InputError
from ranksight.core.numerals import decimal_mark
from ranksight.core.reading import Reading
from ranksight.core.records import dataclass
from ranksight.counters.readers._assemble import Cells
from ranksight.counters.readers._files import Format, damaged, grouped, read_text

NOTE = "times of kernels are those on the GPU; where the host waits for it, they are in the host's times, too"

Launch = tuple[int, str, Mapping[str, float]]
"""Line, kernel and values of one launch, or of one row of sums over launches."""


@dataclass(frozen=True)
class Table:
    """A table of text, found by its head."""

    path: Path
    columns: list[str]
    rows: list[tuple[int, dict[str, str]]]
    """Line of the file and text by column, of each row."""
    decimal: str = "."  # what separates the decimals of its numbers

    def require(self, *names: str) -> None:
        """Raise InputError when there is no column of one of these names."""
        for name in names:
            if name not in self.columns:
                raise damaged(f"{self.path}: the head names no column {name}")

    def number(self, at: int, name: str, text: str) -> float:
        """A time or count; InputError when it is neither."""
        return grouped(f"{self.path}:{at}", text, name, self.decimal)


def gpu_format(
    text: str, what: str, heads: Sequence[Sequence[str]], launches: Callable[[Table], Iterable[Launch]]
) -> Format:
    """The reader of a format whose tables of `what` name all columns of one of `heads`."""

    def names_all(line: str) -> bool:
        return any(all(name in line for name in head) for head in heads)

    def read(path: Path, rank: int | None) -> Iterator[Reading]:
        cells = Cells()
        for at, kernel, values in launches(_table(path, names_all, what, heads)):
            if not kernel.strip():
                raise damaged(f"{path}:{at}: a kernel without a name")
            cells.add(kernel.strip(), values, rank)
        yield cells.reading(path, configuration={}, notes=(NOTE,))

    return Format(text, lambda path, head: any(map(names_all, head.splitlines())), read)


def _table(path: Path, is_head: Callable[[str], bool], what: str, heads: Sequence[Sequence[str]]) -> Table:
    """The first CSV table with such a head.

    Tools write lines of their own before a table, and an empty line or another table after it. Raises InputError,
    naming file and line: no such table, a row of another width, no rows.
    """
    lines, _ = read_text(path)
    begin = next((at for at, line in enumerate(lines) if is_head(line)), -1)
    if begin < 0:
        names = " or ".join(", ".join(each) for each in heads)
        raise InputError(f"{path} holds no {what}: no line names {names}", "is it this tool's output?")
    end = next((at for at in range(begin + 1, len(lines)) if not lines[at].strip()), len(lines))
    rows: list[tuple[int, dict[str, str]]] = []
    reader = csv.reader((f"{line}\n" for line in lines[begin:end]), strict=True)
    try:
        columns = [name.strip() for name in next(reader)]
        for row in reader:
            at = begin + reader.line_num
            if len(row) != len(columns):
                raise damaged(f"{path}:{at} has {len(row)} columns, the head {len(columns)}")
            rows.append((at, dict(zip(columns, row, strict=True))))
    except csv.Error as error:
        raise damaged(f"{path}:{begin + reader.line_num}: {error}") from error
    if not rows:
        raise InputError(f"{path}:{begin + 1}: a table without rows", "did the program launch a kernel?")
    # A bare comma separates fields: a quoted one groups thousands unless a number shows that it cannot.
    decimal = decimal_mark((text for _, row in rows for text in row.values()), str(path)) or "."
    return Table(path, columns, rows, decimal)
