"""Packages of notebooks in tests that run in the repository's root, whose folder ``comm`` hides theirs of that name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def import_anywidget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Import anywidget with what it needs; the test is skipped where it is not installed."""
    monkeypatch.setattr(sys, "path", [place for place in sys.path if Path(place or ".").resolve() != ROOT])
    if not hasattr(sys.modules.get("comm"), "create_comm"):
        monkeypatch.delitem(sys.modules, "comm", raising=False)
    pytest.importorskip("anywidget")
    pytest.importorskip("comm")
