"""Figures in files."""

from __future__ import annotations

from typing import Any


def save_figure(figure: Any, *paths: Any) -> None:
    """Write a figure to PNG or SVG files; text in an SVG stays text that can be searched."""
    import matplotlib

    engine = figure.get_layout_engine()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "ranksight"}):
        for path in paths:
            figure.savefig(path, dpi=140)
            # Room is shared out once: that takes as long as drawing.
            figure.set_layout_engine("none")
    figure.set_layout_engine(engine)
