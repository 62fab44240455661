"""The machine that the model speaks of: every value with its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ranksight.core.units import format_si
from ranksight.platforms.platform import Platform, measurable
from ranksight.reports.html.context import Context

LEVELS = ("L1", "L2", "L3", "memory")


def build(context: Context) -> dict[str, Any] | None:
    """What the template needs; None where the model holds no machine and none is given."""
    equation = context.model.equation
    if context.platform is not None:
        rows = [*_described(context.platform), *_network(context.platform.network, context.platform)]
        name = f"{context.platform.name}: {context.platform.model or context.platform.vendor}"
        return {"name": name, "rows": rows, "estimates": sum(bool(row["estimate"]) for row in rows), "described": True}
    rows = []
    name = ""
    if equation.resources:
        machine = equation.resources.machine
        name = machine.name
        rows.append(_row("clock under load", format_si(machine.frequency, "Hz")))
        rows += [
            _row(f"latency of {level}", f"{x:.3g} cycles") for level, x in zip(LEVELS, machine.latencies, strict=True)
        ]
    if equation.network:
        rows += list(_network(equation.network.table, None))
        rows.append(_row("network: ranks that share a node", f"{min(equation.network.ranks_per_node, 1 << 30):,}"))
    return {"name": name, "rows": rows, "estimates": 0, "described": False} if rows else None


def _row(key: str, text: str, source: str = "", estimate: bool = False) -> dict[str, Any]:
    return {"key": key, "text": text, "source": source, "estimate": estimate}


def _described(platform: Platform) -> Iterator[dict[str, Any]]:
    """Every value of a described machine."""
    sections = [("topology", platform.layout), ("clock", platform.clock)]
    sections += [(f"caches.{cache.name}", cache) for cache in platform.caches]
    sections.append(("memory", platform.memory))
    for prefix, section in sections:
        for name, meta in measurable(type(section)).items():
            number = getattr(section, name)
            if number is None:
                continue
            source = platform.source(f"{prefix}.{name}") or platform.source(prefix)
            text = _number(float(number), str(meta["unit"]))
            words = f"{prefix.rpartition('.')[2]}: {meta['text']}"
            yield _row(words, text, source.text if source else "", bool(source and source.estimate))


def _number(number: float, unit: str) -> str:
    if unit == "cycles":
        return f"{number:.4g} cycles"
    return format_si(number, unit, 4) if unit else f"{number:,.0f}"


def _network(table: Mapping[str, Any], platform: Platform | None, prefix: str = "network") -> Iterator[dict[str, Any]]:
    for name, item in table.items():
        key = f"{prefix}.{name}"
        if isinstance(item, Mapping):
            yield from _network(item, platform, key)
            continue
        source = platform.source(key) if platform is not None else None
        text = (
            ", ".join(f"{x:.4g}" if isinstance(x, float) else str(x) for x in item)
            if isinstance(item, list)
            else (f"{item:.4g}" if isinstance(item, float) else str(item))
        )
        yield _row(key.replace(".", ": ", 1), text, source.text if source else "", bool(source and source.estimate))
