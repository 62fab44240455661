"""Writers of small files of binary formats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from archives import CubeWriter, Database


@pytest.fixture
def write_cube() -> Callable[..., Path]:
    """Writer of CUBE4 archives."""
    return CubeWriter()


@pytest.fixture
def write_database() -> Callable[..., Path]:
    """Writer of HPCToolkit databases of version 4."""
    return lambda *given: Database().write(*given)
