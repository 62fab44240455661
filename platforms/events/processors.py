"""The event table of a processor, found by the names that the kernel reports."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ranksight.core.processor import read_entries
from ranksight.core.records import dataclass
from ranksight.platforms.events.tables import EventTable, load, names

_KEYS = ("vendor", "family", "models", "steppings", "implementer", "parts", "cpu")


@dataclass(frozen=True, slots=True)
class Processor:
    """A processor as ``/proc/cpuinfo`` names it; missing numbers are -1."""

    vendor: str = ""  # on x86
    family: int = -1
    model: int = -1
    stepping: int = -1
    implementer: int = -1  # on Arm
    part: int = -1
    cpu: str = ""  # on POWER, the first word: ``POWER9``


def this_processor(root: Path = Path("/")) -> Processor:
    """The first processor of the machine under `root`; all fields empty where it is not named."""
    entries = read_entries(root)

    def number(key: str) -> int:
        match = re.fullmatch(r"0x[0-9a-fA-F]{1,8}|\d{1,8}", entries.get(key, ""))
        return int(match[0], 0) if match else -1

    return Processor(
        entries.get("vendor_id", ""),
        number("cpu family"),
        number("model"),
        number("stepping"),
        number("cpu implementer"),
        number("cpu part"),
        (entries.get("cpu", "").split() or [""])[0].rstrip(","),
    )


def recognise(processor: Processor) -> EventTable | None:
    """The table for `processor`; None where none of those that ship is for it."""
    for name in names():
        table = load(name)
        if any(_fits(processor, condition) for condition in table.processors):
            return table
    return None


def _fits(processor: Processor, condition: Mapping[str, Any]) -> bool:
    """Whether every entry of `condition` holds; lists hold numbers and ``[first, last]`` pairs."""
    values = {
        "vendor": processor.vendor,
        "family": processor.family,
        "models": processor.model,
        "steppings": processor.stepping,
        "implementer": processor.implementer,
        "parts": processor.part,
        "cpu": processor.cpu,
    }
    return bool(condition) and all(key in _KEYS and _holds(values[key], wanted) for key, wanted in condition.items())


def _holds(value: object, wanted: object) -> bool:
    if not isinstance(wanted, list):
        return value == wanted
    for item in wanted:
        if isinstance(item, list):
            if len(item) == 2 and isinstance(value, int) and item[0] <= value <= item[1]:
                return True
        elif item == value:
            return True
    return False
