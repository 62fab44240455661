"""Answers as one JSON document, an entry a line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def print_document(content: Mapping[str, Any]) -> None:
    """Print a JSON object: a line each of its entries, and each item of those that are lists.

    Indented further, many answers take longer to write than to compute.
    """
    encode = json.JSONEncoder(allow_nan=False).encode
    entries = []
    for name, value in content.items():
        if isinstance(value, list | tuple) and value:
            text = "[\n  " + ",\n  ".join(map(encode, value)) + "\n ]"
        else:
            text = encode(value)
        entries.append(f" {encode(name)}: {text}")
    print("{\n" + ",\n".join(entries) + "\n}")
