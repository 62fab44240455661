"""Finding what can be imported: which reader takes which file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ranksight.errors import InputError
from ranksight.reading import READERS

HEAD = 4096
"""Bytes of a file that readers see to recognise it."""


def recognise(path: Path) -> str | None:
    """Name of the reader that recognises a file or folder, or None.

    Raises
    ------
    InputError
        When the file cannot be read, or several readers recognise it.
    """
    head = b""
    if not path.is_dir():
        try:
            with path.open("rb") as stream:
                head = stream.read(HEAD)
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    names = [name for name in READERS if READERS[name].recognises(path, head)]
    if len(names) > 1:
        raise InputError(
            f"{path} may be of the formats {', '.join(names)}", f"say which: ranksight import {names[0]} {path}"
        )
    return names[0] if names else None


def find(paths: Sequence[Path], reader: str | None) -> tuple[list[tuple[Path, str]], list[Path]]:
    """Files and folders to read with the name of their reader, and files that nothing recognises.

    A folder that no reader takes as a whole is searched, in order of names; links are not followed. With `reader`
    given, every file that is named is taken by it, and of a folder those that it recognises.

    Raises
    ------
    InputError
        When a path does not exist.
    """
    todo: list[tuple[Path, str]] = []
    unknown: list[Path] = []
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder")
        if path.is_file() and reader is not None:
            todo.append((path, reader))
            continue
        name = recognise(path)
        if name is not None and reader in (None, name):
            todo.append((path, name))
        elif path.is_dir():
            for item in _walk(path):
                name = recognise(item)
                if name is not None and reader in (None, name):
                    todo.append((item, name))
                elif item.is_file():
                    unknown.append(item)
        else:
            unknown.append(path)
    return todo, unknown


def _walk(folder: Path) -> Iterator[Path]:
    for item in sorted(folder.iterdir()):
        if item.name.startswith(".") or item.is_symlink():
            continue
        if item.is_dir():
            if recognise(item) is not None:
                yield item
            else:
                yield from _walk(item)
        elif item.is_file():
            yield item
