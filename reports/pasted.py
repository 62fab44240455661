"""What verbs print, as Markdown and LaTeX to paste into issues, wikis and papers.

All that comes from outside, such as names of kernels, is escaped: it neither breaks a table nor becomes a link, a tag
or a command.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ranksight.core.names import printable
from ranksight.core.units import format_factor
from ranksight.reports.terminal import BARS, PLAINER, Block, Cell, Table, Text

if TYPE_CHECKING:
    import pandas as pd

MARKED = re.compile(r"([\\`*_{}\[\]<>|~#!&$]|:(?=//)|(?<=www)\.)")
"""What Markdown may read as more than itself within a line, addresses that become links by themselves among it."""
LISTED = re.compile(r"^(\d+)([.)])(?=\s|$)|^([+=-])(?=\s|$|[-=])")
"""Beginnings of a line that make it an item of a list, or its predecessor a heading."""
LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
         ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
         **{mark: f"\\{mark}" for mark in "_#%&${}"}}  # fmt: skip
LATIN = 0x250  # first sign behind those that LaTeX's fonts have
LINE = 64
"""Characters of a line of LaTeX's article; columns of longer texts are wrapped where a table is wider."""
WRAPPED = 20
"""Characters that a wrapped column of texts has at least."""


def markdown_text(text: str) -> str:
    """Text of one line that Markdown shows as it is."""
    line = MARKED.sub(r"\\\1", " ".join(printable(text).split()))
    return LISTED.sub(lambda found: f"{found[1] or ''}\\{found[2] or found[3]}", line)


def latex_text(text: str) -> str:
    """Text of one line that LaTeX shows as it is; needs the T1 encoding of fonts for quotation marks."""
    line = " ".join(printable(text).translate(PLAINER).split())
    plain = "".join(LATEX.get(sign, sign if ord(sign) < LATIN else "?") for sign in line)
    # Two hyphens would become a dash, one before a number may end a line.
    return re.sub(r"(?<!\S)-(?=\d)", "$-$", re.sub(r"-(?=-)", "-{}", plain))


def pasted(blocks: Iterable[Block], how: str) -> str:
    """Paragraphs and tables in the notation `how`: ``markdown`` or ``latex`` (packages booktabs and fontenc)."""
    written = []
    for block in blocks:
        if isinstance(block, Table):
            written.append(TABLES[how](*_cells(block)))
            continue
        given = Text(block) if isinstance(block, str) else block
        if given.text.strip():
            written.append(_paragraph(given, how))
    return "\n\n".join(filter(None, written)) + "\n"


def of_frame(frame: pd.DataFrame) -> Table:
    """A table of values with three digits; texts as they are."""
    numbers = {name for name in frame.columns if frame[name].dtype.kind in "iuf"}
    rows = [
        ["" if value != value or value is None else format_factor(float(value)) if name in numbers else str(value)
         for name, value in zip(frame.columns, row, strict=True)]
        for row in frame.itertuples(index=False)
    ]  # fmt: skip
    return Table([f"{name}{'' if name in numbers else ':text'}" for name in frame.columns], rows)


def _paragraph(given: Text, how: str) -> str:
    bold = given.style == "bold"
    if how == "markdown":
        text = markdown_text(given.text)
        return f"**{text}**" if bold else text
    text = latex_text(given.text)
    return f"\\textbf{{{text}}}\\par" if bold else f"{text}\\par"


def _cells(table: Table) -> tuple[list[str], list[bool], list[list[str]]]:
    """Heads, which columns are of numbers, and rows; without columns that are empty or hold curves."""
    texts = [[each.text if isinstance(each, Cell) else each for each in row] for row in table.rows]
    shown = [
        at
        for at in range(len(table.columns))
        if any(row[at].strip() for row in texts) and not any(sign in BARS for row in texts for sign in row[at])
    ]
    heads = [table.columns[at].head if table.head else "" for at in shown]
    numbers = [table.columns[at].kind == "number" for at in shown]
    return heads, numbers, [[row[at] for at in shown] for row in texts]


def _markdown(heads: Sequence[str], numbers: Sequence[bool], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---:" if number else "---" for number in numbers], *rows]
    plain = [[cell if at == 1 else markdown_text(cell) for cell in line] for at, line in enumerate(lines)]
    return "\n".join(f"| {' | '.join(line)} |" for line in plain) if heads else ""


def _latex(heads: Sequence[str], numbers: Sequence[bool], rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str]) -> str:
        # A rule or the end of a row would take what begins so for its option.
        guard = "{}" if cells[0].lstrip().startswith(("[", "*")) else ""
        return f"  {guard}{' & '.join(map(latex_text, cells))} \\\\"

    if not heads:
        return ""
    columns = "".join(_latex_columns(numbers, [heads, *rows]))
    head = [f"\\noindent\\begin{{tabular}}{{{columns}}}", "  \\toprule", line(heads), "  \\midrule"]
    return "\n".join([*head, *map(line, rows), "  \\bottomrule", "\\end{tabular}\\par"])


def _latex_columns(numbers: Sequence[bool], rows: Sequence[Sequence[str]]) -> list[str]:
    """What each column is for LaTeX: those of long texts share what the others leave of a line that is too long."""
    columns = list(zip(*rows, strict=True))
    widths = [2 + max(map(len, column)) for column in columns]  # two characters between columns
    words = [2 + max(len(word) for cell in column for word in (cell.split() or [""])) for column in columns]
    if sum(widths) <= LINE:
        words = widths
    long = [
        not number and max(word, WRAPPED) < width for number, width, word in zip(numbers, widths, words, strict=True)
    ]
    needed = sum(itertools.compress(widths, long))
    share = (LINE - sum(widths) + needed) / max(needed, 1)
    return [
        f"p{{{(max(width * share, word, WRAPPED) - 2) / LINE:.2f}\\linewidth}}" if wrapped else "r" if number else "l"
        for width, word, wrapped, number in zip(widths, words, long, numbers, strict=True)
    ]


TABLES: dict[str, Callable[[Sequence[str], Sequence[bool], Sequence[Sequence[str]]], str]] = {
    "markdown": _markdown,
    "latex": _latex,
}
"""What writes a table in each notation."""
