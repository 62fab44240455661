"""The verdicts: what each kernel takes at the target, what bounds it, what would help, how it scales."""

from __future__ import annotations

from typing import Any

import numpy as np

from ranksight.reports.growth import growth_words
from ranksight.reports.html.context import Context
from ranksight.reports.html.writing import in_one_unit, percent
from ranksight.reports.sweep import RANKS

HELPS = {
    "execution": "execution × 2",
    "caches": "L2 and L3 × 2",
    "memory": "memory × 2",
    "network": "messages × 2",
    "balance": "even ranks",
}
"""What is twice as fast, or perfect (:data:`ranksight.analysis.diagnosis.verdicts.CHANGES`)."""
HELD_UP = ("cache-bound", "latency-bound")  # verdicts that a memory level belongs to
SAVED = 0.005  # part of a kernel's time from which possible savings are reported


def build(context: Context) -> dict[str, Any] | None:
    """What the template needs; None without kernels' times."""
    sweep, found = context.sweep, context.sweep.diagnosis
    if found is None:
        return None
    table = found.verdicts()
    unit, texts = in_one_unit(table["time"], "time")
    scaling: dict[str, dict[Any, Any]] = {}
    if sweep.along == RANKS:
        scaling = {str(row["kernel"]): row for row in found.scaling().to_dict("records")}
    times, names = sweep.breakdown.by_kernel, sweep.breakdown.kernels
    # Growth up to a target that was measured is from the fewest ranks on.
    since = sweep.nearest if sweep.nearest + 1 < len(sweep.values) else 0
    rows = []
    for row, text in zip(table.to_dict("records"), texts, strict=True):
        kernel = str(row["kernel"])
        at = names.index(kernel)
        then = float(times[at, since])
        growth = float(times[at, -1]) / then if then > 0 else float("nan")
        rows.append(
            {
                "kernel": kernel,
                "time": row["time"],
                "time_text": text if row["status"] == "ok" else f"{text} ?",
                "share": row["share"],
                "growth": growth,
                "growth_text": f"{growth:.3g} ×" if np.isfinite(growth) else "–",
                "scales": _growth(scaling[kernel], found.strong) if kernel in scaling else "–",
                "verdict": row["verdict"],
                "level": row["level"] if row["verdict"] in HELD_UP else "",
                "chance": row["chance"],
                "factor": row["bf_mem"],
                "helps": f"{HELPS[row['change']]}: −{percent(row['saves'])}" if row["saves"] >= SAVED else "–",
                "saves": row["saves"] * row["share"],
                "reason": row["reason"],
            }
        )
    return {
        "unit": unit,
        "rows": rows,
        "kinds": sorted({row["verdict"] for row in rows}),
        "counts": _counts(rows),
        "blocked": any(np.isfinite(row["factor"]) for row in rows),
        "target": sweep.places()[-1],
        "near": sweep.places()[since],
        "scaling": bool(scaling),
        "machine": None if found.evidence.ceilings is None else found.evidence.ceilings.name,
    }


def _growth(row: dict[Any, Any], strong: bool) -> str:
    """How a kernel's time grows with the ranks."""
    if row["verdict"] == "scales":
        return "still falls" if strong else "at most log(ranks)"
    where = f" from {row['at']:,.0f}" if row["at"] == row["at"] and row["verdict"] in ("grows", "saturates") else ""
    return f"{growth_words(row)}{where}"


def _counts(rows: list[dict[str, Any]]) -> list[tuple[str, float]]:
    """Share of the time under each verdict, the largest first."""
    shares: dict[str, float] = {}
    for row in rows:
        shares[row["verdict"]] = shares.get(row["verdict"], 0.0) + float(row["share"])
    return sorted(shares.items(), key=lambda item: -item[1])
