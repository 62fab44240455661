"""Tables of other shapes made tidy: several columns that are one (wide), and a column that names metrics (long).

Both are done on texts, before anything is read as a number, so that all that is known of columns and numbers holds for
them as for any table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pandas as pd

from ranksight.core.errors import InputError
from ranksight.core.records import dataclass
from ranksight.counters.readers._delimited import Delimited, columns_of, read_delimited

CELLS = "value"
"""Name of the column that the cells of molten columns become."""
_UNIT = re.compile(r"[\[(]\s*(?P<unit>[^\s\[\]()]{1,12})\s*[\])]\s*$")


@dataclass(frozen=True, slots=True)
class Shape:
    """How a table is to be made tidy."""

    melt: Mapping[str, tuple[str, ...]]
    """At most one name of a new column, and the columns that it stands for, which may be patterns (``t_*``): each row
    becomes one a column, which holds the column's name in the new one and its cell in :data:`CELLS`."""
    pivot: Mapping[str, str]
    """At most one column that names the content of another: rows that agree in all columns that are read become one row
    with a column for each of the names."""

    def read(self, path: Path, wanted: Sequence[str], delimiter: str | None) -> Delimited:
        """The columns `wanted` of the table at `path`, tidy.

        Raises InputError when columns are missing, or a new one would have the name of one that is there.
        """
        if self.melt:
            return self._molten(path, wanted, delimiter)
        return self._pivoted(path, wanted, delimiter) if self.pivot else read_delimited(path, wanted, delimiter)

    def _molten(self, path: Path, wanted: Sequence[str], delimiter: str | None) -> Delimited:
        ((new, patterns),) = self.melt.items()
        present = [name for name in columns_of(path, delimiter) if name]
        for name in (new, CELLS):
            if name in present:
                raise InputError(f"{path} has a column {name!r} already", "give the molten columns another name")
        others = [name for name in wanted if name not in (new, CELLS)]
        cells: dict[str, None] = {}
        for pattern in patterns:
            # a column's own name goes before what it would mean as a pattern
            found = [pattern] if pattern in present else [name for name in present if fnmatchcase(name, pattern)]
            if not found:
                raise InputError(f"{path} has no column {pattern!r}", f"its columns: {', '.join(present)}")
            cells.update(dict.fromkeys(name for name in found if name not in others))
        names = list(cells)
        if not names:
            raise InputError(f"{path}: no column is left to melt", "name columns that no other option reads")
        table = read_delimited(path, [*others, *names], delimiter)
        matches = [_UNIT.search(name) for name in names]
        units = {"" if match is None else match["unit"] for match in matches}
        if len(units) > 1:
            raise InputError(
                f"{path}: the columns to melt are in different units, by their names", "melt those of one unit"
            )
        rows, unit = len(table.lines), units.pop()
        columns = {name: [text for text in table.columns[name] for _ in names] for name in others}
        columns[new] = [_UNIT.sub("", name).rstrip() for name in names] * rows
        columns[CELLS] = [table.columns[name][row] for row in range(rows) for name in names]
        header = (*(name for name in table.header if name not in cells), new, CELLS)
        scale = {CELLS: f"{CELLS} [{unit}]"} if unit else {}
        lines = [line for line in table.lines for _ in names]
        return replace(table, columns=columns, lines=lines, header=header, called=scale)

    def _pivoted(self, path: Path, wanted: Sequence[str], delimiter: str | None) -> Delimited:
        ((names, cells),) = self.pivot.items()
        present = columns_of(path, delimiter)
        keys = [name for name in wanted if name in present and name not in (names, cells)]
        table = read_delimited(path, [*keys, names, cells], delimiter)
        named = list(dict.fromkeys(table.columns[names]))
        made = [name for name in wanted if name not in keys]
        for name in made:
            if name not in named:
                listed = ", ".join(named[:8]) + (", ..." if len(named) > 8 else "")
                raise InputError(f"{path} has no {name!r} in column {names!r}", f"it holds {listed}")
        # the n-th row of a name belongs to the n-th rows of the other names with the same keys
        frame = pd.DataFrame(
            {at: list(table.columns[key]) for at, key in enumerate(keys)}, index=range(len(table.lines))
        )
        frame = frame.assign(line=table.lines, name=list(table.columns[names]), cell=list(table.columns[cells]))
        frame = frame[frame["name"].isin(made)]
        places = list(range(len(keys)))
        frame["turn"] = frame.groupby([*places, "name"], sort=False).cumcount()
        row = frame.groupby([*places, "turn"], sort=False).ngroup()
        first = ~row.duplicated()
        wide = frame.assign(row=row).pivot(index="row", columns="name", values="cell").fillna("")
        columns = {key: frame.loc[first, at].tolist() for at, key in enumerate(keys)}
        columns |= {name: wide[name].tolist() for name in made}
        header = (*(name for name in table.header if name not in (names, cells)), *made)
        return replace(table, columns=columns, lines=frame.loc[first, "line"].tolist(), header=header)
