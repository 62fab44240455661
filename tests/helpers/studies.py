"""Expectations that a test writes."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ranksight.analysis.expectations.document import Study, read_study


def study_of(text: str) -> Study:
    """The expectations of a text."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        return read_study(Path(file.name))
