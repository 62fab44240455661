"""The file of a model: one JSON object, written whole or not at all, and read with suspicion.

It names the version that wrote it and carries the digest of its content. So a file that cannot be read is told apart:
one that is as it was written comes from another version, and is to be fitted again; any other is damaged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight import __version__
from ranksight.core import limits
from ranksight.core.errors import InputError
from ranksight.core.files import check_output, read_bytes, write_output
from ranksight.model.application.whole import Correlation
from ranksight.model.fitting.fitted import Fitted

SCHEMA_VERSION = 2
KIND = "ranksight model"
_HEAD = ("schema_version", "kind", "made_by", "digest")
_AGAIN = "fit it again: ranksight fit EXPERIMENT -o MODEL"


def ours(path: Path) -> bool:
    """Whether a model's file is at `path`, whatever its version and state."""
    try:
        with path.open("rb") as file:
            return KIND.encode() in file.read(512)
    except OSError:
        return False


def write(path: Path, content: Mapping[str, Any], force: bool = False) -> None:
    """Write `content` with kind and schema version.

    Raises
    ------
    InputError
        When there is a file already and `force` is not given, or it cannot be written.
    """
    check_output(path, force)
    head = {"schema_version": SCHEMA_VERSION, "kind": KIND, "made_by": __version__, "digest": _digest(content)}
    write_output(path, _text({**head, **content}) + "\n")


def _text(content: Mapping[str, Any]) -> str:
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


def _digest(content: Mapping[str, Any]) -> str:
    """SHA-256 of all but the file's head."""
    return hashlib.sha256(_text({k: v for k, v in content.items() if k not in _HEAD}).encode()).hexdigest()


def read(path: Path) -> dict[str, Any]:
    """The object that a model's file holds, of a schema version that is known.

    Raises
    ------
    InputError
        When the file is no model, is damaged, or was written by an older or a newer version.
    """
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder, not a model")
        content = json.loads(read_bytes(path, limits.MODEL).decode("utf-8"))
    except InputError as error:
        raise InputError(error.what, "make a model with 'ranksight fit'") from error
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is no JSON: {error}",
            "the file is damaged or not ours; 'ranksight import' reads tables, 'ranksight fit' makes models",
        ) from error
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
    if version < SCHEMA_VERSION:
        raise InputError(f"{path} was made by an older version of ranksight", _AGAIN)
    return content


def misread(path: Path, content: Mapping[str, Any], error: InputError) -> InputError:
    """What to tell where the content of a model's file raised `error`."""
    try:
        intact = content.get("digest") == _digest(content)
    except ValueError:  # a number that JSON cannot hold
        intact = False
    if not intact:
        return InputError(f"{path}: {error.what}", error.remedy)
    maker = f"another version of ranksight, {content.get('made_by')}"
    return InputError(f"{path} was made by {maker}: {error.what}", _AGAIN)


def _possible(values: NDArray[np.float64]) -> bool:
    """Whether parameters have values that sums, products and ratios of them do not overflow."""
    size = np.abs(values)
    return bool(((size == 0) | ((size <= limits.PARAMETER) & (size >= 1 / limits.PARAMETER))).all())


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
        given = dict(content.get("correlation", {})).items()
        correlation = {str(k): Correlation(float(noise), float(form)) for k, (noise, form) in given}
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"training points, shares or correlations are damaged: {error}", "fit the model again"
        ) from error
    if not (
        _possible(training)
        and np.isfinite(shares).all()
        and all(0 <= v <= 1 for rho in correlation.values() for v in (rho.noise, rho.form))
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
