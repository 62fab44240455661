"""Counters that contradict each other: more of a part than there is of the whole.

Counters of several runs, or of a multiplexed one, differ by a few per cent; what differs by more cannot both be true,
and no equation is put on it. Of values made of samples what differs by chance is no contradiction.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ranksight.core.metrics import CHANCE, FEW, PARTS, TOLERANCE
from ranksight.core.units import format_si
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce

CONTRADICT = "counters contradict each other"
"""How every such finding begins."""


def contradictions(series: Series) -> dict[str, str]:
    """For each kernel whose counters contradict each other, what and where.

    `series`: means over ranks.
    """
    present = set(series.metrics)
    related = [(parts, whole) for parts, whole in PARTS if whole in present and present.intersection(parts)]
    if not related:
        return {}
    rows = series.rows
    values = reduce(series.values, "median", axis=2)
    samples = series.samples
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.where(samples > 0, values / np.sqrt(samples), 0.0)
    texts: dict[str, str] = {}
    for kernel in dict.fromkeys(series.kernels):
        for parts, whole in related:
            counted = [rows[kernel, name] for name in parts if (kernel, name) in rows]
            if not counted or (kernel, whole) not in rows or kernel in texts:
                continue
            part, of = np.nansum(values[counted], axis=0), values[rows[kernel, whole]]
            chance = CHANCE * np.sqrt(np.nansum(error[counted] ** 2, axis=0) + error[rows[kernel, whole]] ** 2)
            excess = np.where(np.isfinite(of) & (part > FEW), part - (1 + TOLERANCE) * of - chance, -np.inf)
            at = int(np.argmax(excess))
            if excess[at] > 0:
                name = parts[0] if len(parts) == 1 else "loads by level"
                where = ", ".join(
                    f"{name} = {x:g}" for name, x in zip(series.parameters, series.points[at], strict=True)
                )
                texts[kernel] = f"{CONTRADICT}: {format_si(part[at])} {name} of {format_si(of[at])} {whole} at {where}"
    return texts


def notes_of(texts: Mapping[str, str]) -> tuple[str, ...]:
    """Notes for people, a few of them."""
    notes = [f"{kernel}: {text}; its times are not predicted" for kernel, text in texts.items()]
    return (*notes[:5], *((f"and {len(notes) - 5} kernels more whose counters do",) if len(notes) > 5 else ()))
