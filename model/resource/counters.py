"""What counters of a kernel say of each other: stalls of top-down slots, and parts above their whole.

Stalls from top-down slots: the stall cycles follow from how many issue slots were bound by memory.

    stall cycles = cycles x memory-bound slots / slots

(Yasin, "A top-down method for performance analysis and counters architecture", ISPASS 2014: a slot is memory bound when
the back end takes no more operations because loads or stores are outstanding.) Where no loads by level were counted
with them, the lines that memory delivered replace the loads that it served, prefetched ones included: the
blocking factor then says how much of a line's latency is left to wait for.

Counters that contradict each other: more of a part than there is of the whole.

Counters of several runs, or of a multiplexed one, differ by a few per cent; what differs by more cannot both be true,
and no equation is put on it. Of values made of samples what differs by chance is no contradiction.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.metrics import CHANCE, FEW, PARTS, TOLERANCE
from ranksight.core.units import format_si
from ranksight.model.resource.equation import LEVELS
from ranksight.model.series.reducing import Series
from ranksight.model.series.reduction import reduce

LINE = 64.0
"""Bytes of a line where no platform gives them."""
SLOTS = "TOPDOWN_SLOTS"


@cache
def memory_slots(name: str) -> bool:
    """Whether a metric's name is that of memory-bound slots or their share, as tools write it."""
    return re.sub(r"[^a-z]", "", name.casefold()).endswith(("memorybound", "membound"))


def with_stalls(series: Series, line: float = LINE) -> Series:
    """The series with ``stall_cycles``, and ``loads_mem`` where no level was counted, of kernels with top-down slots.

    `line`: bytes of a line.
    """
    rows = series.rows
    kernels, metrics, values = list(series.kernels), list(series.metrics), [series.values]
    worth = [known := series.worth]
    provenance = dict(series.provenance)
    for (kernel, name), row in rows.items():
        if not memory_slots(name) or (kernel, "stall_cycles") in rows or (kernel, "cycles") not in rows:
            continue
        share = _share(series.values[row], series.values[rows[kernel, SLOTS]] if (kernel, SLOTS) in rows else None)
        if share is None:
            continue
        kernels.append(kernel)
        metrics.append("stall_cycles")
        values.append((share * series.values[rows[kernel, "cycles"]])[None])
        worth.append(np.where(share > 0, share * known[rows[kernel, "cycles"]], np.nan)[None])
        provenance["stall_cycles"] = f"derived from {name}"
        if (kernel, "bytes_mem_read") in rows and not any((kernel, level) in rows for level in LEVELS):
            kernels.append(kernel)
            metrics.append("loads_mem")
            values.append(series.values[rows[kernel, "bytes_mem_read"]][None] / line)
            worth.append(known[rows[kernel, "bytes_mem_read"]][None] / line)
            provenance["loads_mem"] = "derived from bytes_mem_read"
    if len(kernels) == len(series):
        return series
    return replace(
        series,
        values=np.concatenate(values),
        kernels=tuple(kernels),
        metrics=tuple(metrics),
        provenance=provenance,
        worth=np.concatenate(worth),
    )


def _share(slots_used: Array, slots: Array | None) -> Array | None:
    """Share of the slots: given as such, in per cent, or as a count with all slots; None where none of these."""
    top = float(np.nanmax(slots_used)) if np.isfinite(slots_used).any() else np.nan
    if slots is not None and top > 100:
        with np.errstate(invalid="ignore", divide="ignore"):
            slots_used = slots_used / slots
    elif top > 1:
        slots_used = slots_used / 100
    known = np.isfinite(slots_used)
    return slots_used if known.any() and (slots_used[known] >= 0).all() and (slots_used[known] <= 1).all() else None


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
