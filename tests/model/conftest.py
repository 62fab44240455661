"""What tests of models share."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def made_up() -> ModuleType:
    """The module that writes an experiment whose truth is known."""
    spec = importlib.util.spec_from_file_location("made_up", Path(__file__).with_name("made_up.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
