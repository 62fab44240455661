"""Efficiencies over ranks, by the model of the POP centre: which factor of the whole falls."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksight.reports.equation_terms import spread_over
from ranksight.reports.html.context import Context
from ranksight.reports.sweep import RANKS

NAMES = {
    "global": ("global", 0),
    "parallel": ("parallel", 1),
    "load_balance": ("load balance", 2),
    "communication": ("communication", 2),
    "outside": ("outside kernels", 2),
    "computation_scaling": ("computation scaling", 1),
    "instruction_scaling": ("instructions", 2),
    "ipc_scaling": ("instructions a cycle", 2),
    "frequency_scaling": ("clock", 2),
}
"""Column, its name, and its depth: each is the product of those below it."""

MOST = 9  # rank counts that fit the page side by side


def build(context: Context) -> dict[str, Any] | None:
    """What the template needs; None along another parameter than ranks."""
    sweep, found = context.sweep, context.sweep.diagnosis
    if found is None or sweep.along != RANKS or len(sweep.values) < 2:
        return None
    table = found.efficiencies()
    take = spread_over(len(table), MOST)
    table, insufficient = table.iloc[take], found.insufficient[take]
    rows = []
    for column, (name, depth) in NAMES.items():
        values = table[column].to_numpy(dtype=float)
        if np.isfinite(values).all():
            marks = [" ?" if yes and column == "global" else "" for yes in insufficient]
            shares = (f"{x:.0%}" if x >= 0.005 else "<1%" for x in values)
            cells = [
                (f"{share}{mark}", _grade(x)) for share, mark, x in zip(shares, marks, values.tolist(), strict=True)
            ]
            rows.append({"name": name, "depth": depth, "cells": cells})
    if not rows:
        return None
    ranks, legend = [f"{x:,.0f}" for x in table["ranks"]], "; ?: insufficient data" if insufficient.any() else ""
    caption = f"Efficiency at each number of ranks{legend}"
    return {"ranks": ranks, "rows": rows, "kind": found.kind, "caption": caption}


def _grade(efficiency: float) -> str:
    """Shade of a cell: what POP reports call good, of concern, and poor."""
    return "good" if efficiency >= 0.8 else "fair" if efficiency >= 0.6 else "poor"
