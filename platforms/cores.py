"""How many instructions a cycle one kind of core does against another, as published, and how far programs scatter.

    ln IPC_b - ln IPC_a = sum of ln factor over the generations between,   sd^2 = sum of STEP^2, ACROSS^2 over them

The table ``cores.toml`` holds a factor a generation with its source. They are vendors' means over many programs at one
clock; a single program gains more or less.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import exp, hypot, log
from typing import Any

from ranksight.core.toml import decode
from ranksight.core.units import counted
from ranksight.platforms.platform import Platform

STEP = 0.12
"""Standard deviation, of the logarithm, by which a program's gain from one generation to the next differs from the
mean. The generations' own announcements show single programs from no gain to twice the mean one: a range of 0.35
that about two standard deviations to either side hold, with what vendors choose to show on the high side."""
ACROSS = 0.2
"""The same between lines of cores that are compared by few programs."""
UNKNOWN = 0.35
"""The same between cores of which one is not in the table: generations since 2014 differ by that much."""
SAME = 0.02
"""The same between two processors of one core: steppings, microcode."""
SETS = 0.2
"""Standard deviation of the logarithm of the instructions that another instruction set needs, where none is stated:
compilers' output for AArch64 and x86-64 differs by 10 to 20 % and more where vectors are of another width."""


@dataclass(frozen=True)
class Factor:
    """A ratio: value and standard deviation of its logarithm, and where it comes from."""

    value: float
    spread: float
    source: str


def instructions_per_cycle(here: Platform, there: Platform) -> Factor:
    """Those of a core of `there` over those of a core of `here`, for the same program."""
    first, second = (each.architecture if is_stated(each) else "" for each in (here, there))
    if first and first == second and here.caches[:2] == there.caches[:2]:
        return Factor(1.0, SAME, "the same core")
    table = _table()
    if first == second and first in table:
        return Factor(1.0, SAME, "the same core")
    if first not in table or second not in table:
        unknown = first if first not in table else second
        return Factor(1.0, UNKNOWN, f"no published factor for the core {unknown or 'that a file does not name'}")
    one, other = _path(first), _path(second)
    shared = set(one) & set(other)
    steps = [(name, 1) for name in other if name not in shared] + [(name, -1) for name in one if name not in shared]
    value = sum(sign * log(table[name]["factor"]) for name, sign in steps)
    spreads = [ACROSS if "against" in table[name] else STEP for name, _ in steps if table[name]["factor"] != 1.0]
    sources = list(dict.fromkeys(table[name]["source"] for name, _ in steps if table[name]["factor"] != 1.0))
    said = "; ".join(sources[:2]) or "the same core"
    more = f"; {counted(len(sources) - 2, 'more generation')}" if len(sources) > 2 else ""
    return Factor(exp(value), max(hypot(*spreads), SAME), said + more)


def is_stated(platform: Platform) -> bool:
    """Whether a description is of a core, and not of whatever a machine may have."""
    source = platform.source("caches.L1.size")
    return source is None or not source.estimate


def instruction_set(platform: Platform) -> str:
    """``x86-64`` or ``AArch64``; empty where the core is not in the table."""
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
