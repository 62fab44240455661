"""Efficiencies over ranks, by the model of the POP centre: which factor of the whole falls."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksight.reports.growth import EFFICIENCIES, efficiency_rows
from ranksight.reports.html.context import Context
from ranksight.reports.sweep import RANKS

MOST = 9  # rank counts that fit the page side by side


def build(context: Context) -> dict[str, Any] | None:
    """What the template needs; None along another parameter than ranks."""
    sweep, found = context.sweep, context.sweep.diagnosis
    if found is None or sweep.along != RANKS or len(sweep.values) < 2:
        return None
    take, known, said = efficiency_rows(found, MOST)
    rows = [
        {"name": name, "depth": depth, "cells": list(zip(texts, map(_grade, values.tolist()), strict=True))}
        for (name, depth), texts, values in ((EFFICIENCIES[column], texts, values) for column, texts, values in known)
    ]
    if not rows:
        return None
    ranks = [f"{x:,.0f}" for x in found.efficiencies()["ranks"].to_numpy()[take]]
    legend = "; ?: insufficient data" if any(text.endswith("?") for _, texts, _ in known for text in texts) else ""
    caption = f"Efficiency at each number of ranks{legend}"
    sentences = [f"{text[0].upper()}{text[1:]}." for text in said]
    return {"ranks": ranks, "rows": rows, "kind": found.kind, "caption": caption, "said": sentences}


def _grade(efficiency: float) -> str:
    """Shade of a cell: what POP reports call good, of concern, and poor; none where it is not known."""
    if not np.isfinite(efficiency):
        return ""
    return "good" if efficiency >= 0.8 else "fair" if efficiency >= 0.6 else "poor"
