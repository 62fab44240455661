"""Trees of sysfs and procfs as known machines show them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

INTEL = "vendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) Platinum 8360Y CPU @ 2.40GHz\nflags\t\t: fpu vme\n\n"


def _write(path: Path, text: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def _machine(root: Path, sockets: int, nodes: int, cores: int, threads: int, cpuinfo: str = INTEL) -> Path:
    """A node of `sockets` with `nodes` domains of `cores` each; the second threads are numbered after all cores."""
    system = root / "sys/devices/system"
    total = sockets * nodes * cores
    _write(system / "cpu/online", f"0-{total * threads - 1}")
    _write(root / "proc/cpuinfo", cpuinfo)
    members: dict[int, list[int]] = {}
    for number in range(total * threads):
        core = number % total
        node = core // cores
        socket = node // nodes
        siblings = ",".join(str(core + thread * total) for thread in range(threads))
        first, last = socket * nodes * cores, (socket + 1) * nodes * cores - 1
        socket_cpus = ",".join(f"{first + thread * total}-{last + thread * total}" for thread in range(threads))
        folder = system / f"cpu/cpu{number}"
        _write(folder / "topology/core_cpus_list", siblings)
        _write(folder / "topology/physical_package_id", socket)
        members.setdefault(node, []).append(number)
        caches = [
            (1, "Data", "48K", 12, siblings),
            (1, "Instruction", "32K", 8, siblings),
            (2, "Unified", "1280K", 20, siblings),
            (3, "Unified", "55296K", 12, socket_cpus),
        ]
        for index, (level, kind, size, ways, shared) in enumerate(caches):
            cache = folder / f"cache/index{index}"
            for name, value in (
                ("level", level),
                ("type", kind),
                ("size", size),
                ("ways_of_associativity", ways),
                ("coherency_line_size", 64),
                ("shared_cpu_list", shared),
            ):
                _write(cache / name, value)
    for node, numbers in members.items():
        _write(system / f"node/node{node}/cpulist", ",".join(map(str, numbers)))
    return root


@pytest.fixture
def machine() -> Callable[..., Path]:
    """Writes the tree of a machine below a folder: ``machine(root, sockets, nodes, cores, threads, cpuinfo)``."""
    return _machine
