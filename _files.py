"""Files that are there whole or not at all."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ranksight.errors import InputError
from ranksight.telling import told


def regular_file(path: Path) -> None:
    """Refuse what is no regular file: a pipe would wait for ever, a device never end."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    if not stat.S_ISREG(mode):
        raise InputError(f"{path} is no regular file", "name a file that the tool wrote")


def read_json(file: Path) -> dict[str, Any]:
    """The object that a JSON file holds; InputError naming the file where it holds none."""
    try:
        if not file.is_file():  # a device or a pipe may never end
            raise InputError(f"{file} is no file" if file.exists() else f"{file} does not exist")
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is no JSON: {error}", "the file is damaged or not ours") from error
    if not isinstance(content, dict):
        raise InputError(f"{file} holds no JSON object", "the file is damaged or not ours")
    return content


def write_json(file: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file beside its place and move it there, so that it is there whole or not at all."""
    beside = file.with_name(f".{file.name}.new")
    beside.write_text(json.dumps(content, indent=1, default=str) + "\n", encoding="utf-8")
    os.replace(beside, file)


def check_output(path: Path, force: bool = False) -> None:
    """Refuse, before work is spent on it, a file that stands already or could not be written.

    Raises
    ------
    InputError
    """
    if path.is_dir():
        raise InputError(f"{path} is a folder", "name a file with -o")
    if path.exists() and not force:
        raise InputError(f"{path} exists already", "name another file with -o, or give --force to replace it")
    try:
        # What access rights tell is not the whole truth: the file system may be read-only, or full.
        tempfile.TemporaryFile(prefix=f".{path.name}.", dir=path.absolute().parent).close()
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(f"cannot write {path}: {error.strerror or error}", "name a file in a folder that can be written")


def write_output(path: Path, text: str) -> None:
    """Write what a user asked for: beside its place, synced, then moved there, readable by all.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    try:
        handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(beside, 0o644)
            os.replace(beside, path)
            told("wrote %s, %d characters", path, len(text))
        finally:
            Path(beside).unlink(missing_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from error


def sync(path: Path) -> None:
    """Wait until a file or folder is on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(folder: Path) -> None:
    """Wait until a folder and all in it is on disk."""
    for root, _, files in os.walk(folder):
        for name in files:
            sync(Path(root) / name)
        sync(Path(root))
