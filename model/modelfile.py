"""The file of a model: one JSON object, written whole or not at all, and read with suspicion."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ranksight._files import check_output, write_output
from ranksight.errors import InputError
from ranksight.model.fitted import Fitted

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
    check_output(path, force)
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


def parts(content: Mapping[str, Any]) -> dict[str, Any]:
    """What :class:`ranksight.model.model.Model` is made of, by the names of its attributes.

    Raises
    ------
    InputError
        When an entry is missing, damaged or does not fit the others.
    """
    given = content.get("fitted")
    if not isinstance(given, dict):
        raise InputError("'fitted' is missing", "the file is damaged or not ours")
    fitted = Fitted.from_dict(given)
    if content.get("parameters") != list(fitted.parameters):
        raise InputError("'parameters' do not match the functions", "the file is damaged or not ours")
    try:
        training = np.array(content.get("training"), dtype=np.float64).reshape(-1, len(fitted.parameters))
        shares = np.array(content.get("shares"), dtype=np.float64).reshape(len(fitted))
        correlation = {str(k): float(v) for k, v in dict(content.get("correlation", {})).items()}
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"training points, shares or correlations are damaged: {error}", "fit the model again"
        ) from error
    if not (
        np.isfinite(training).all() and np.isfinite(shares).all() and all(0 <= v <= 1 for v in correlation.values())
    ):
        raise InputError("training points, shares or correlations hold a number out of range", "fit the model again")
    provenance, extras = content.get("provenance", {}), content.get("extras", {})
    if not isinstance(provenance, dict) or not isinstance(extras, dict):
        raise InputError("'provenance' or 'extras' is no object", "the file is damaged or not ours")
    return {
        "application": str(content.get("application", "")),
        "parameters": fitted.parameters,
        "fitted": fitted,
        "training": training,
        "shares": shares,
        "correlation": correlation,
        "provenance": {str(k): str(v) for k, v in provenance.items()},
        "extras": extras,
    }
