"""What verbs say to people: paragraphs and tables that fit the terminal, with colour only where one shows it.

Rich lays tables out and colours them; it is loaded when something is printed. Elsewhere than on a terminal, and with
NO_COLOR, the same text comes without colour, 80 columns wide or as wide as COLUMNS says.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TextIO, cast

from ranksight.core.names import printable, short_names
from ranksight.core.records import dataclass

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 80  # columns where no terminal reports them
WIDEST = 160
NARROWEST = 30
LEAST = {"name": 8, "text": 24}
"""Columns that a cell keeps: names are shortened and texts wrapped to no less."""
NAME = 16  # columns that a name gets before a text gets more
GAP = 2
PLAINLY: dict[str, Any] = {"width": 4 * WIDEST, "highlight": False, "markup": False, "emoji": False}
"""Of a console that takes text as it is; blocks are laid out here, and what does not fit is left to the terminal."""
BARS = "▁▂▃▄▅▆▇█"
PLAINER = str.maketrans(dict(zip(BARS + "…·", "_.,-=+*#~*", strict=True)) | {"²": "^2", "³": "^3", "√": "sqrt "})
"""Replacements of signs that a stream cannot hold."""


Kind = Literal["name", "text", "number", "word"]


class Cell(NamedTuple):
    """Text in a style of Rich, such as ``bold`` or ``red``."""

    text: str
    style: str = ""


@dataclass(frozen=True)
class Column:
    """A column of a :class:`Table`; as text ``head:kind/spare``, where a number that is never left out is ``head``.

    Parameters
    ----------
    kind : str
        ``name`` is shortened in its middle where room is short, ``text`` wraps, ``number`` is never touched and stands
        on the right, ``word`` is never touched and stands on the left.
    spare : int
        Where the terminal is too narrow for all, the columns with the largest number are left out; 0 never is.
    silent : bool
        Whether it is left out without a word, as a drawing is that a table has next to its numbers.
    least : int
        Columns that a name or text keeps at least; by its kind (:data:`LEAST`) where it is 0.
    """

    head: str
    kind: Kind = "number"
    spare: int = 0
    least: int = 0
    silent: bool = False

    @classmethod
    def read(cls, text: str) -> Column:
        """The column that a text describes."""
        rest, _, spare = text.partition("/")
        head, _, kind = rest.partition(":")
        return cls(head, cast(Kind, kind or "number"), int(spare or 0))


@dataclass(frozen=True)
class Table:
    """Rows of text under heads; columns that are empty in all rows are not shown.

    `head`: whether heads are printed.
    """

    given: Sequence[Column | str]
    rows: Sequence[Sequence[str | Cell]]
    indent: int = 0
    head: bool = True

    @cached_property
    def columns(self) -> list[Column]:
        """What each column is called and how it is written."""
        return [Column.read(each) if isinstance(each, str) else each for each in self.given]


@dataclass(frozen=True)
class Text:
    """A paragraph: wrapped, its further lines indented.

    `indent`: of all lines. `hanging`: of the further lines, on top; below 0 the text stays one line, as a command has
    to.
    """

    text: str
    indent: int = 0
    hanging: int = 4
    style: str = ""


Block = Table | Text | str  # what is printed: a string is a paragraph, an empty one an empty line


def next_step(command: str) -> Text:
    """The command worth typing now; it is not wrapped, so that it can be copied."""
    return Text(f"next: {command}", style="cyan", hanging=-1)


def width() -> int:
    """Columns to fill: those of the terminal, else of COLUMNS, else 80."""
    return max(NARROWEST, min(WIDEST, shutil.get_terminal_size((WIDTH, 24)).columns))


def sparkline(values: Iterable[float], low: float | None = None, high: float | None = None) -> str:
    """One bar a value, from `low` (the least) to `high` (the most); a blank where a value is missing."""
    given = [float(value) for value in values]
    known = [value for value in given if value - value == 0]
    if not known:
        return ""
    least, most = min(known) if low is None else low, max(known) if high is None else high
    span = most - least

    def bar(value: float) -> str:
        if value - value != 0:
            return " "
        return BARS[min(len(BARS) - 1, int((value - least) / span * len(BARS)))] if span > 0 else BARS[0]

    return "".join(map(bar, given))


def show(*blocks: Block, file: TextIO | None = None) -> None:
    """Print `blocks`, on standard output where no `file` is given."""
    stream = sys.stdout if file is None else file
    if not blocks:
        return
    from rich.console import Console

    # A console of its own for each call: tests and notebooks put another stream in place of standard output.
    text = _rendered(Console(file=stream, **PLAINLY), blocks, width())
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(PLAINER).encode(encoding, "replace").decode(encoding)
    stream.write(text)
    stream.flush()


def lines(*blocks: Block, room: int = WIDTH) -> list[str]:
    """The lines that :func:`show` would print without colour, `room` columns wide."""
    import io

    from rich.console import Console

    console = Console(file=io.StringIO(), force_terminal=False, **PLAINLY)
    return _rendered(console, blocks, room).removesuffix("\n").split("\n")


def _rendered(console: Console, blocks: Iterable[Block], room: int) -> str:
    with console.capture() as held:
        for block in blocks:
            _print(console, block, room)
    # Rich fills cells with blanks: at the end of a line they are of no use.
    return "\n".join(line.rstrip() for line in held.get().split("\n"))


def _print(console: Console, block: Block, room: int) -> None:
    if isinstance(block, Table):
        _table(console, block, room)
        return
    given = Text(block, hanging=0) if isinstance(block, str) else block
    from rich.text import Text as Words

    text = printable(given.text)
    first = " " * given.indent
    if given.hanging < 0:
        text = first + text
    else:
        text = "\n".join(
            textwrap.wrap(
                text, room, initial_indent=first, subsequent_indent=first + " " * given.hanging, break_on_hyphens=False
            )
        )
    console.print(Words(text, style=given.style), soft_wrap=True)


def _table(console: Console, table: Table, room: int) -> None:
    from rich.padding import Padding
    from rich.table import Table as Grid
    from rich.text import Text as Words

    widths, left_out = _layout(table, room - table.indent)
    # Gaps are columns of their own: versions of Rich differ in what padding does to the last column's width.
    grid = Grid(box=None, padding=0, pad_edge=False, show_edge=False, show_header=table.head, header_style="bold")
    for at, size in widths.items():
        column = table.columns[at]
        if grid.columns:
            grid.add_column("", width=GAP)
        side: Any = "right" if column.kind == "number" else "left"
        grid.add_column(Words(column.head), justify=side, width=size, no_wrap=column.kind != "text", overflow="fold")
    names = {
        at: short_names([_cell(row[at])[0] for row in table.rows], size)
        for at, size in widths.items()
        if table.columns[at].kind == "name"
    }
    for row in table.rows:
        cells: list[Words] = []
        for at in widths:
            text, style = _cell(row[at])
            cells += [Words("")] if cells else []
            cells.append(Words(names[at][text] if at in names else text, style=style))
        grid.add_row(*cells)
    console.print(Padding(grid, (0, 0, 0, table.indent), expand=False), crop=False)
    if heads := ", ".join(table.columns[at].head for at in left_out if not table.columns[at].silent):
        _print(console, Text(f"not shown in {room} columns: {heads}", table.indent, 0, "dim"), room)


def _cell(given: str | Cell) -> tuple[str, str]:
    return (printable(given.text), given.style) if isinstance(given, Cell) else (printable(given), "")


def _layout(table: Table, room: int) -> tuple[dict[int, int], list[int]]:
    """The width of each column that is shown, and the columns that are left out for want of room."""
    from rich.cells import cell_len

    cells = [[cell_len(_cell(row[at])[0]) for row in table.rows] for at in range(len(table.columns))]
    wanted = {
        at: max(cell_len(column.head), *cells[at], 0) for at, column in enumerate(table.columns) if any(cells[at])
    }
    least = {
        at: max(cell_len(column.head), min(size, column.least or LEAST.get(column.kind, size)))
        for (at, size), column in zip(wanted.items(), (table.columns[at] for at in wanted), strict=True)
    }
    left_out: list[int] = []
    while sum(least.values()) + GAP * (len(least) - 1) > room:
        spare = max(least, key=lambda at: table.columns[at].spare)
        if not table.columns[spare].spare:
            break
        left_out.append(spare)
        del least[spare]
    rest = room - sum(least.values()) - GAP * (len(least) - 1)
    for at in least:
        # A name that is nearly whole says more than one line less of text.
        if table.columns[at].kind == "name":
            more = max(0, min(rest, min(wanted[at], NAME) - least[at]))
            least[at] += more
            rest -= more
    growing = [at for at in least if least[at] < wanted[at]]
    while rest > 0 and growing:
        for at in growing[:rest]:
            least[at] += 1
        rest -= min(rest, len(growing))
        growing = [at for at in growing if least[at] < wanted[at]]
    return least, sorted(left_out)
