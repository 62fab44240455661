"""Where kernels are defined, as far as the source of the measurements knows.

A run keeps it in its table ``places``: ``kernel``, ``file`` and ``line``, which is 0 where only the file is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from ranksight.core.experiment import Experiment

TABLE = "places"
"""Name of the table."""
COLUMNS = ("kernel", "file", "line")
_UNKNOWN = frozenset({"", "???", "unknown", "<unknown>", "[unknown]", "N/A", "<unknown file>"})
"""What tools write where they know no file."""


def tables_of(rows: Iterable[tuple[str, str, int]]) -> dict[str, pd.DataFrame]:
    """The table of a run by its name, from kernels, files and lines; nothing where no file is known."""
    import pandas as pd

    known = [row for row in rows if row[1].strip() not in _UNKNOWN]
    if not known:
        return {}
    found = pd.DataFrame(known, columns=list(COLUMNS)).drop_duplicates("kernel", ignore_index=True)
    return {TABLE: found.astype({"line": "int64"})}


def places(experiments: Sequence[Experiment]) -> dict[str, str]:
    """``heat.c:120`` or ``heat.c`` for each kernel that is known; the first run that knows it speaks."""
    found: dict[str, str] = {}
    for experiment in experiments:
        for run in experiment.runs:
            table = experiment.table(run, TABLE)
            if table is None or not set(COLUMNS) <= set(table.columns) or table["line"].dtype.kind not in "iu":
                continue
            for kernel, file, line in table[list(COLUMNS)].itertuples(index=False):
                found.setdefault(str(kernel), f"{file}:{line}" if line > 0 else str(file))
    return found
