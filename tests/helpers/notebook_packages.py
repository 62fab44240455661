"""Packages of notebooks in tests that run in the repository's root, whose folder ``comm`` hides theirs of that name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("anywidget", "comm", "ipywidgets")


def import_anywidget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Import anywidget with what it needs, anew: somebody may have imported it with the repository's folder, as
    ``doctor`` does that tries every package. The test is skipped where it is not installed."""
    monkeypatch.setattr(sys, "path", [place for place in sys.path if Path(place or ".").resolve() != ROOT])
    for name in list(sys.modules):
        if name.partition(".")[0] in PACKAGES:
            monkeypatch.delitem(sys.modules, name)
    pytest.importorskip("anywidget")
    pytest.importorskip("comm")
