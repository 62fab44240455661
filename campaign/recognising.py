"""Finding what can be imported: which reader takes which file."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ranksight.core.errors import InputError, readable
from ranksight.core.files import leads_out, regular_file
from ranksight.core.reading import READERS

HEAD = 4096
"""Bytes of a file that readers see to recognise it."""


def recognise(path: Path) -> str | None:
    """Name of the reader that recognises a file or folder, or None.

    Raises InputError when the file cannot be read, or several readers recognise it.
    """
    head = b""
    if not path.is_dir():
        regular_file(path)
        with readable(path), path.open("rb") as stream:
            head = stream.read(HEAD)
    with readable(path):
        names = [name for name in READERS if READERS[name].recognises(path, head)]
    if len(names) > 1:
        raise InputError(
            f"{path} may be of the formats {', '.join(names)}",
            f"say which: {shlex.join(('ranksight', 'import', names[0], str(path)))}",
        )
    return names[0] if names else None


@dataclass(slots=True)
class Found:
    """What there is to read."""

    todo: list[tuple[Path, str]] = field(default_factory=list)  # files and folders with the name of their reader
    unknown: list[Path] = field(default_factory=list)  # files that nothing recognises
    refused: list[InputError] = field(default_factory=list)
    """Of what lies in a folder: files that cannot be opened, files that several readers recognise, and links that lead
    out of the folder."""


def find(paths: Sequence[Path], reader: str | None) -> Found:
    """Files and folders to read with the name of their reader.

    A folder that no reader takes as a whole is searched, in order of names. With `reader` given, every file that is
    named is taken by it, and of a folder those that it recognises. Raises InputError when a path that is named does not
    exist, cannot be opened, or is of several formats.
    """
    found = Found()
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder")
        if path.is_file() and reader is not None:
            found.todo.append((path, reader))
            continue
        name = recognise(path)
        if name is not None and reader in (None, name):
            found.todo.append((path, name))
        elif path.is_dir():
            _search(path, path, reader, found)
        else:
            found.unknown.append(path)
    return found


def _search(folder: Path, root: Path, reader: str | None, found: Found) -> None:
    try:
        items = sorted(folder.iterdir())
    except OSError as error:
        found.refused.append(InputError(f"{folder} cannot be read: {error.strerror or error}"))
        return
    for item in items:
        if item.name.startswith("."):
            continue
        if item.is_symlink():
            # what lies inside the folder is found under its own name
            if leads_out(item, root):
                found.refused.append(InputError(f"{item} is a link out of {root.resolve()}", "name what it leads to"))
            continue
        if not item.is_dir() and not item.is_file():
            continue
        try:
            name = recognise(item)
        except InputError as error:
            found.refused.append(error)
            continue
        if name is not None and reader in (None, name):
            found.todo.append((item, name))
        elif item.is_dir():
            _search(item, root, reader, found)
        else:
            found.unknown.append(item)
