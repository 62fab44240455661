"""Where a value of a TOML file stands: line and column, for messages about what the value says."""

from __future__ import annotations

import re

_HEADER = re.compile(r"^\s*\[{1,2}([^\[\]]+)\]{1,2}\s*(?:#.*)?$")


def locate(text: str, table: str, key: str, value: str, offset: int = 0) -> tuple[int, int]:
    """Line and column (from 1) of a character of a string value.

    The string is looked for below its table's header, first behind its key, then anywhere in the table, then anywhere;
    a string written with escapes is not found and gives the line of its key, or line 1.

    Parameters
    ----------
    text : str
        The file.
    table, key : str
        Table (``expect.time``) and key of the value.
    value : str
    offset : int
        Of the character within the value.
    """
    lines = text.split("\n")
    inside = _lines_of(lines, table)
    assignment = re.compile(rf"""^\s*(["']?){re.escape(key)}\1\s*=""")
    keyed = [at for at in inside if assignment.match(lines[at])]
    for rows in (keyed, inside, range(len(lines))):
        for at in rows:
            for quote in ('"', "'"):
                column = lines[at].find(f"{quote}{value}{quote}")
                if column >= 0:
                    return at + 1, column + 2 + offset
    return (keyed[0] + 1 if keyed else 1), 1


def _lines_of(lines: list[str], table: str) -> list[int]:
    found, here = [], ""
    wanted = table.replace('"', "").replace("'", "")
    for at, line in enumerate(lines):
        if header := _HEADER.match(line):
            here = re.sub(r"\s*\.\s*", ".", header[1].strip()).replace('"', "").replace("'", "")
        elif here == wanted:
            found.append(at)
    return found
