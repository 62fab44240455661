"""The table of all kernels: what each takes at the target, how it grows, and what holds it up."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksight.experiment import WHOLE
from ranksight.model.forecast import OK
from ranksight.reports.html.context import Context
from ranksight.reports.html.writing import percent, value
from ranksight.reports.palette import NAMES

MIXED = 0.5
"""Share that one part must have of a kernel's time to be called its main part."""


def build(context: Context) -> dict[str, Any] | None:
    """What the template needs; None where no kernel has a time."""
    sweep = context.sweep
    broken = sweep.breakdown
    if not sweep.timed or not len(broken.kernels):
        return None
    times = broken.by_kernel
    total = float(np.nansum(times[:, -1]))
    resources = context.model.equation.resources
    factors = {} if resources is None else dict(zip(resources.kernels, _factors(context), strict=True))
    rows = []
    order = np.argsort(-np.nan_to_num(times[:, -1]), kind="stable")
    for place in order:
        kernel = broken.kernels[place]
        if kernel == WHOLE:
            continue
        now, then = float(times[place, -1]), float(times[place, sweep.nearest])
        row = context.model.functions.rows.get((kernel, "time"))
        status = OK if row is None else int(sweep.said.status[row, -1])
        growth = now / then if then > 0 else float("nan")
        rows.append(
            {
                "kernel": kernel,
                "time": now,
                "time_text": value(now, "time"),
                "share": now / total if total > 0 else float("nan"),
                "growth": growth,
                "growth_text": f"{growth:.3g} ×" if np.isfinite(growth) else "–",
                "main": _main(broken.each, int(place)),
                "factor": factors.get(kernel, float("nan")),
                "carried": status == OK,
                "reason": "" if row is None else str(sweep.said.reason[row, -1]),
            }
        )
    return {
        "rows": rows,
        "kinds": sorted({row["main"] for row in rows}),
        "blocked": bool(factors),
        "target": sweep.places()[-1],
        "near": sweep.places()[sweep.nearest],
        "percent": percent,
    }


def _factors(context: Context) -> list[float]:
    resources = context.model.equation.resources
    assert resources is not None
    return [float(x) for x in resources.blocking(context.sweep.points[-1:], context.sweep.level).value[:, 0]]


def _main(each: Any, place: int) -> str:
    """The part that holds most of a kernel's time, memory's levels taken together."""
    parts: dict[str, float] = {}
    for name, values in each.items():
        seconds = float(np.nan_to_num(values[place, -1]))
        label = "memory" if name.startswith("loads") else NAMES[name]
        parts[label] = parts.get(label, 0.0) + max(seconds, 0.0)
    total = sum(parts.values())
    if not total > 0:
        return "–"
    label = max(parts, key=lambda key: parts[key])
    if label == NAMES["direct"]:
        return "not counted"
    return label if parts[label] >= MIXED * total else "mixed"
