"""What a processor calls itself, read from procfs (Linux)."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ranksight.core.records import dataclass

_IMPLEMENTERS = {
    0x41: "Arm", 0x42: "Broadcom", 0x43: "Cavium", 0x46: "Fujitsu", 0x48: "HiSilicon", 0x4E: "NVIDIA", 0x51: "Qualcomm",
    0x61: "Apple", 0x6D: "Microsoft", 0xC0: "Ampere",
}  # fmt: skip
_PARTS = {
    (0x41, 0xD0C): "Neoverse N1", (0x41, 0xD40): "Neoverse V1", (0x41, 0xD49): "Neoverse N2",
    (0x41, 0xD4F): "Neoverse V2", (0x41, 0xD83): "Neoverse V3AE", (0x41, 0xD84): "Neoverse V3",
    (0x41, 0xD8E): "Neoverse N3", (0x46, 0x001): "A64FX",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ProcessorName:
    """A processor by name; :class:`ranksight.platforms.events.Processor` is the same by its numbers."""

    vendor: str
    model: str
    """Such as ``"AMD"`` and ``"AMD EPYC 7742 64-Core Processor"``, or ``"Arm"`` and ``"Neoverse V2"``; empty where the
    system does not say."""
    virtual: bool  # true when a hypervisor announces itself


def read_entries(root: str | os.PathLike[str] = "/") -> dict[str, str]:
    """What ``proc/cpuinfo`` under `root` says first under each name, in small letters; nothing where it is not read."""
    found: dict[str, str] = {}
    try:
        with (Path(root) / "proc/cpuinfo").open("r", encoding="utf-8", errors="replace") as stream:
            text = stream.read(1 << 22)
    except OSError:
        text = ""
    for line in text.splitlines():
        key, _, value = line.partition(":")
        found.setdefault(key.strip().lower(), value.strip())
    return found


def read_processor(root: str | os.PathLike[str] = "/") -> ProcessorName:
    """The first processor of ``proc/cpuinfo`` under `root` (x86, Arm, POWER); empty where the file has no name."""
    fields = read_entries(root)
    vendor = {"GenuineIntel": "Intel", "AuthenticAMD": "AMD", "HygonGenuine": "Hygon"}.get(
        fields.get("vendor_id", ""), fields.get("vendor_id", "")
    )
    model = fields.get("model name", "")
    if not vendor and "cpu implementer" in fields:
        implementer, part = (_hex(fields.get(key, "")) for key in ("cpu implementer", "cpu part"))
        vendor = _IMPLEMENTERS.get(implementer, f"implementer {implementer:#x}")
        model = model or _PARTS.get((implementer, part)) or f"part {part:#x}"
    if not vendor and fields.get("cpu", "").startswith("POWER"):
        vendor, model = "IBM", fields["cpu"].split(",")[0]
    return ProcessorName(_line(vendor), _line(model), "hypervisor" in fields.get("flags", "").split())


def _line(text: str) -> str:
    return " ".join(re.sub(r"[\x00-\x1f\x7f]", " ", text).split())[:200]


def _hex(text: str) -> int:
    return int(text, 16) if re.fullmatch(r"0x[0-9a-fA-F]{1,8}", text) else 0
