"""Figures in files."""

from __future__ import annotations

from typing import Any


def save_figure(figure: Any, path: Any) -> None:
    """Write a figure to PNG or SVG; text in an SVG stays text that can be searched."""
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "ranksight"}):
        figure.savefig(path, dpi=140)
