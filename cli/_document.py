"""Answers as one JSON document, an entry a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ranksight.core.units import finite

_ENCODE = json.JSONEncoder(allow_nan=False).encode


def print_document(content: Mapping[str, Any]) -> None:
    """Print a JSON object: a line each of its entries, and each item of those that are lists; null where a number is
    missing.

    Indented further, many answers take longer to write than to compute.
    """
    entries = []
    for name, value in content.items():
        if isinstance(value, list | tuple) and value:
            text = "[\n  " + ",\n  ".join(map(_encoded, value)) + "\n ]"
        else:
            text = _encoded(value)
        entries.append(f" {_encoded(name)}: {text}")
    print("{\n" + ",\n".join(entries) + "\n}")


def _encoded(value: Any) -> str:
    try:
        return _ENCODE(value)
    except ValueError:  # JSON knows no NaN
        return _ENCODE(_with_nulls(value))


def _with_nulls(value: Any) -> Any:
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, Mapping):
        return {key: _with_nulls(item) for key, item in value.items()}
    return [_with_nulls(item) for item in value] if isinstance(value, list | tuple) else value
