"""How many instructions a cycle one kind of core does against another, as published, and how far programs scatter.

    ln IPC_b - ln IPC_a = sum of ln factor over the generations between,   sd^2 = sum of their squares of spread

The table ``cores.toml`` holds a factor a generation with its source, ``assumptions.toml`` the spreads. Factors are
vendors' means over many programs at one clock; a single program gains more or less. The table also says how many
instructions each core issues a cycle, a platform file (``topology.issue_width``) those of a core that is not in it.
Where no factor is published, these widths say how a kernel's cycles change:
:func:`ranksight.model.application.assumed.cycles_there`.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from math import exp, hypot, log, sqrt
from typing import Any

from ranksight.core.records import dataclass
from ranksight.core.toml import decode
from ranksight.core.units import counted
from ranksight.platforms.assumptions import spread
from ranksight.platforms.platform import Platform

SETS = {"x86_64": "x86-64", "amd64": "x86-64", "aarch64": "AArch64", "arm64": "AArch64"}
"""Instruction sets by the names that systems give them; each is an architecture of which no core is known."""


@dataclass(frozen=True)
class Factor:
    """A ratio: value and standard deviation of its logarithm, and where it comes from."""

    value: float
    spread: float
    source: str
    widths: tuple[int, int] | None = None  # instructions that a core issues a cycle, here and there
    published: bool = True  # false where nothing but the widths is known


def issue_width(platform: Platform) -> int | None:
    """Instructions that a core issues a cycle: as its file says, else by ``cores.toml``; None where neither does."""
    stated = platform.layout.issue_width
    found = stated or _table().get(platform.architecture, {}).get("width")
    return None if found is None else int(found)


def instructions_per_cycle(here: Platform, there: Platform) -> Factor:
    """Those of a core of `there` over those of a core of `here`, for the same program."""
    first, second = (each.architecture if is_stated(each) else "" for each in (here, there))
    named = first and first not in SETS.values()
    if named and first == second and here.caches[:2] == there.caches[:2]:
        return Factor(1.0, spread("same"), "the same core")
    table = _table()
    if first == second and first in table:
        return Factor(1.0, spread("same"), "the same core")
    one_width, other_width = issue_width(here), issue_width(there)
    widths = (one_width, other_width) if one_width and other_width else None
    if first not in table or second not in table:
        unknown = (first if first not in table else second) or "that a file does not name"
        return _by_width(widths, f"no published factor for the core {unknown}")
    one, other = _path(first), _path(second)
    shared = set(one) & set(other)
    steps = [(name, 1) for name in other if name not in shared] + [(name, -1) for name in one if name not in shared]
    value = sum(sign * log(table[name]["factor"]) for name, sign in steps)
    gains = [table[name] for name, _ in steps if table[name]["factor"] != 1.0]
    spreads = [spread("lines" if "against" in gain else "generation") for gain in gains]
    sources = list(dict.fromkeys(gain["source"] for gain in gains))
    said = "; ".join(sources[:2]) or "the same core"
    more = f"; {counted(len(sources) - 2, 'more generation')}" if len(sources) > 2 else ""
    return Factor(exp(value), max(hypot(*spreads), spread("same")), said + more, widths)


def _by_width(widths: tuple[int, int] | None, unknown: str) -> Factor:
    """By the widths of two cores alone: from none of a kernel's cycles to all of them issue instructions."""
    if widths is None:
        return Factor(1.0, spread("unknown"), unknown)
    change = log(widths[1] / widths[0])
    source = f"{unknown}: issue width {widths[1]} against {widths[0]}, half of it without a kernel's own CPI_exec"
    return Factor(exp(change / 2), hypot(spread("width"), change / sqrt(12)), source, widths, published=False)


def is_stated(platform: Platform) -> bool:
    """Whether a description is of a core, and not of whatever a machine may have."""
    source = platform.source("caches.L1.size")
    return source is None or not source.estimate


def instruction_set(platform: Platform) -> str:
    """``x86-64`` or ``AArch64``; empty where the architecture is neither, nor a core of the table."""
    if platform.architecture in SETS.values():
        return platform.architecture
    return str(_table().get(platform.architecture, {}).get("set", ""))


def _path(name: str) -> list[str]:
    """A core and all that it is compared with, down to the first."""
    table, found = _table(), [name]
    while (before := table[found[-1]].get("after") or table[found[-1]].get("against")) is not None:
        found.append(before)
    return found


@cache
def _table() -> dict[str, dict[str, Any]]:
    content = files("ranksight.platforms").joinpath("cores.toml").read_bytes()
    return dict(decode(content, "cores.toml", "")["cores"])
