"""Described machines as people read them: a list, and two of them compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ranksight.core.units import counted, format_si
from ranksight.platforms import Platform
from ranksight.platforms.cores import instructions_per_cycle, issue_width
from ranksight.reports.terminal import Block, Table, Text

NEAR = 0.03
"""Relative difference up to which two values are called equal."""


def listed(platform: Platform) -> dict[str, Any]:
    """What a list says of a machine, as plain data in SI units."""
    return {
        "name": platform.name,
        "title": platform.title,
        "architecture": platform.architecture,
        "cores": platform.cores,
        "domains": platform.domains,
        "clock": platform.frequency,
        "bandwidth": platform.memory.bandwidth_domain * platform.domains,
        "latency": platform.memory.latency,
        "last_cache": platform.caches[-1].capacity * (platform.cores // platform.caches[-1].shared_by or 1),
        "network": bool(platform.network),
        "estimates": len(platform.estimates()),
    }


def listing(machines: Sequence[Platform]) -> list[Block]:
    """A machine a row."""
    rows = []
    for each in machines:
        held = listed(each)
        rows.append(
            [
                each.name,
                str(held["cores"]),
                f"{each.domains} x {each.layout.cores_per_domain}",
                format_si(each.frequency, "Hz"),
                format_si(held["bandwidth"], "B/s"),
                f"{held['estimates']} of {len(each.sources)}",
                each.title,
            ]
        )
    heads = ["name:name", "cores", "domains:word", "clock", "memory", "estimates:word/1", "machine:text/2"]
    return [Table(heads, rows), Text("cores, clock under load and memory bandwidth are those of a node", 0)]


def compared(one: Platform, other: Platform) -> dict[str, float]:
    """What the other machine has over the first, as ratios of a node."""
    first, second = listed(one), listed(other)
    ipc = instructions_per_cycle(one, other)
    found = {
        "memory bandwidth": second["bandwidth"] / first["bandwidth"],
        "memory bandwidth a core": second["bandwidth"] / first["bandwidth"] * one.cores / other.cores,
        "cores": other.cores / one.cores,
        "clock": other.frequency / one.frequency,
        "cores x clock": other.cores * other.frequency / (one.cores * one.frequency),
        "instructions per cycle": ipc.value,
        "memory latency": other.memory.latency / one.memory.latency,
        "last-level cache": second["last_cache"] / first["last_cache"],
    }
    if (width_here := issue_width(one)) and (width_there := issue_width(other)):
        found["issue width"] = width_there / width_here
    for here, there in zip(one.caches, other.caches, strict=False):
        found[f"{here.name} of a core"] = (there.capacity / there.shared_by) / (here.capacity / here.shared_by)
    return found


def comparison(one: Platform, other: Platform) -> list[Block]:
    """A sentence of what differs most to programs, and a table."""
    ratios = compared(one, other)
    ipc = instructions_per_cycle(one, other)
    most = ", ".join(f"{ratios[name]:.2g}x the {name}" for name in ("memory bandwidth", "cores x clock"))
    head = f"{other.name} against {one.name}, a node: {most}"
    rows = [[name, f"{value:.2f}x", _remark(name, value, ipc.spread, ipc.source)] for name, value in ratios.items()]
    more = []
    if one.layout.threads_per_core != other.layout.threads_per_core:
        more.append(
            f"hardware threads of a core: {one.layout.threads_per_core} and {other.layout.threads_per_core}; ranks are "
            "placed a core each"
        )
    if len(one.caches) != len(other.caches):
        more.append(f"cache levels: {len(one.caches)} and {len(other.caches)}")
    guesses = ((each.name, len(each.estimates())) for each in (one, other))
    more += [f"{name}: {counted(count, 'estimate')} among its values" for name, count in guesses if count]
    return [head, Table(["per node:word", "ratio", "source:text"], rows, 2), *(Text(text, 0) for text in more)]


def _remark(name: str, value: float, spread: float, source: str) -> str:
    if name == "instructions per cycle":
        return f"+- {value * spread:.2g}: {source}"
    if name == "issue width":
        return "instructions that a core issues a cycle, which none exceeds" if abs(value - 1) > NEAR else "equal"
    return "equal" if abs(value - 1) <= NEAR else ""
