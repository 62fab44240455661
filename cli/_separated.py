r"""Answers as CSV on standard output: what a name holds neither steers a terminal nor becomes a formula.

Names come from files that others may have written. A text cell is written so that :func:`restored` gives it back:

- a control character, one that changes the direction of text, and one that the output's encoding lacks, is written as
  Python writes it (``\x1b``, ``\u202e``), and a backslash as ``\\``;
- a cell that begins with ``=``, ``+``, ``-``, ``@`` or ``'`` gets ``'`` in front, which spreadsheets take for the mark
  of a text. Numbers stay as they are.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def write(columns: Iterable[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a header and rows."""
    from ranksight.core.names import cell

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(map(cell, columns))
    writer.writerows(map(cell, row) for row in rows)


def write_frame(frame: pd.DataFrame) -> None:
    """Print a table, without its index."""
    from ranksight.core.names import cell

    texts = {name: frame[name].astype(object).map(cell) for name in frame.select_dtypes(exclude="number").columns}
    frame.assign(**texts).rename(columns=cell).to_csv(sys.stdout, index=False, lineterminator="\n")
