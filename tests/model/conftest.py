"""What tests of models share."""

from __future__ import annotations

from types import ModuleType

import made_up as module
import pytest


@pytest.fixture(scope="session")
def made_up() -> ModuleType:
    """The module that writes an experiment whose truth is known."""
    return module
