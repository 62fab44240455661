"""The file of a model: one JSON object, written whole or not at all, and read with suspicion."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ranksight._files import write_output
from ranksight.errors import InputError

SCHEMA_VERSION = 1
KIND = "ranksight model"
LARGEST_FILE = 1 << 30


def write(path: Path, content: Mapping[str, Any], force: bool = False) -> None:
    """Write `content` with kind and schema version.

    Raises
    ------
    InputError
        When there is a file already and `force` is not given, or it cannot be written.
    """
    if path.exists() and not force:
        raise InputError(f"{path} exists already", "name another file, or give --force to replace it")
    whole = {"schema_version": SCHEMA_VERSION, "kind": KIND, **content}
    write_output(path, json.dumps(whole, separators=(",", ":"), allow_nan=False) + "\n")


def read(path: Path) -> dict[str, Any]:
    """The object that a model's file holds, of a schema version that is known.

    Raises
    ------
    InputError
        When the file is no model, is damaged, or was written by a newer version.
    """
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder, not a model", "make a model of an experiment with 'ranksight fit'")
        if path.stat().st_size > LARGEST_FILE:
            raise InputError(f"{path} is larger than {LARGEST_FILE >> 30} GiB: no model of ours")
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror or error}", "make a model with 'ranksight fit'"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is no JSON: {error}", "the file is damaged or not ours") from error
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise InputError(f"{path} is no model", "make one with 'ranksight fit'")
    version = content.get("schema_version")
    if not isinstance(version, int) or version < 1:
        raise InputError(f"{path}: schema_version is {version!r}", "the file is damaged or not ours")
    if version > SCHEMA_VERSION:
        raise InputError(
            f"{path}: schema version {version} is newer than {SCHEMA_VERSION}, which this version reads",
            "install a newer ranksight",
        )
    return content
