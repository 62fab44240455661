"""Energy, energy-delay product and cost over rank counts, and the best count by each."""

from __future__ import annotations

from typing import Any

from ranksight.analysis.planning.spending import spending
from ranksight.model.energy.predicted import usable
from ranksight.reports.html.context import Context
from ranksight.reports.spending import NAMES, cells, choices, ties
from ranksight.reports.sweep import RANKS


def build(context: Context) -> dict[str, Any] | None:
    """What the template needs; None where neither energy nor prices are known, or along another parameter."""
    sweep = context.sweep
    if sweep.along not in (RANKS, "nodes"):
        return None
    found = spending(context.model, sweep.points[-1:], context.prices, sweep.level)
    if found is None:
        return None
    energy = usable(context.model)
    laws = () if energy is None else energy.laws
    (along, *heads), rows = cells(found)
    return {
        "along": along,
        "heads": heads,
        "rows": rows,
        "best": [NAMES[name] for name in found.best()],
        "choices": choices(found),
        "laws": [{"component": law.component, "formula": law.formula(), "windows": law.rows} for law in laws],
        "notes": (*ties(found), *found.notes),
    }
