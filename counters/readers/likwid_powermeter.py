"""Output of ``likwid-powermeter PROGRAM``: energy of every package of a node, while the program ran on it.

Packages are metered whether a rank is on them or not. The number of ranks is not in the output.

Source: likwid 5 ``src/applications/likwid-powermeter.lua``: ``Runtime: 1.00012 s``, ``Measure for socket 0 on CPU 0``,
``Domain PKG:``, ``Energy consumed: 38.06 Joules``, ``Power consumed: 38.05 Watt``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ranksight.core import limits
from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS, WHOLE
from ranksight.core.meaning import METERED, Meaning
from ranksight.core.reading import READERS, Reading
from ranksight.counters.readers._assemble import build, columns_of
from ranksight.counters.readers._files import Format, damaged, number, read_text

_SOCKET = re.compile(r"Measure for socket (?P<socket>\d{1,4}) on CPU \d{1,6}\s*$")
_MARK = re.compile(rb"^Measure for socket \d{1,4} on CPU \d", re.MULTILINE)
_RULE = re.compile(r"-{20,}\s*$")
_RUNTIME = re.compile(r"Runtime: (?P<value>\S{1,30}) s\s*$")
_DOMAIN = re.compile(r"Domain (?P<name>[A-Z0-9]{1,12}):\s*$")
_ENERGY = re.compile(r"Energy consumed: (?P<value>\S{1,30}) Joules\s*$")
_POWER = re.compile(r"Power consumed: (?P<value>\S{1,30}) Watt\s*$")
SAME = 0.05
"""Relative difference of the power that is printed from energy over runtime that rounding and reading explain."""
ROUNDED = 0.02
"""Watts by which the power that is printed is rounded at most."""
_METRICS = {"PKG": "energy_package", "DRAM": "energy_dram"}
"""Metrics of domains; PP0 and PP1 are parts of the package, and PLATFORM is seldom the whole node."""


def holds_meters(path: Path) -> bool:
    """Whether a file holds what likwid-powermeter prints, after whatever the program printed."""
    try:
        return path.is_file() and path.stat().st_size <= limits.TEXT and _MARK.search(path.read_bytes()) is not None
    except OSError:
        return False


def _is_one(path: Path, head: str) -> bool:
    return holds_meters(path)


def _read(path: Path, rank: int | None) -> Iterator[Reading]:
    lines, notes = read_text(path)
    seconds: float | None = None
    joules: dict[str, dict[int, float]] = {}
    socket: int | None = None
    domain, waiting = "", ""
    for at, line in enumerate(lines, 1):
        where = f"{path}:{at}"
        if (found := _RUNTIME.match(line)) is not None:
            seconds = number(where, found["value"], "the runtime")
        elif (found := _SOCKET.match(line)) is not None:
            socket, domain = int(found["socket"]), ""
        elif (found := _DOMAIN.match(line)) is not None:
            domain = waiting = found["name"]
        elif (found := _ENERGY.match(line)) is not None and socket is not None and domain:
            value = number(where, found["value"], f"the energy of {domain}")
            if socket in joules.setdefault(domain, {}):
                raise InputError(f"{where}: socket {socket} is metered a second time", "give every run its own file")
            joules[domain][socket] = value
            waiting = ""
        elif (found := _POWER.match(line)) is not None and socket in joules.get(domain, {}) and seconds:
            watts, energy = number(where, found["value"], f"the power of {domain}"), joules[domain][socket]
            if abs(watts * seconds - energy) > SAME * max(watts * seconds, energy) + ROUNDED * seconds:
                raise InputError(
                    f"{where}: {energy:g} J of {domain} in {seconds:g} s are not the {watts:g} W of socket {socket}",
                    "the counter wrapped or was not read: measure this run again",
                )
    if not seconds or not joules.get("PKG"):
        raise damaged(f"{path} holds no runtime, or no energy of a package")
    if 0 in joules["PKG"].values():
        idle = next(each for each, value in joules["PKG"].items() if not value)
        raise InputError(f"{path}: socket {idle} took 0 J", "no package does: its meter was not read; measure again")
    last = max((at for at, line in enumerate(lines) if line.strip()), default=0)
    if len({frozenset(found) for found in joules.values()}) > 1 or waiting or _RULE.match(lines[last]) is None:
        raise damaged(f"{path} breaks off: not all sockets have the same domains, or the last line is no rule")
    values = {"time": seconds, **{_METRICS[name]: sum(joules[name].values()) for name in _METRICS if name in joules}}
    more = ("packages are metered whether a rank is on them or not",)
    yield build(
        path,
        [WHOLE],
        [ALL_RANKS],
        columns_of([values]),
        origin={name: f"measured (RAPL, {len(joules['PKG'])} packages)" for name in values if name != "time"},
        configuration={},
        meanings=dict.fromkeys((name for name in values if name != "time"), Meaning("sum", "socket")),
        environment={METERED: str(len(joules["PKG"]))},
        notes=(*notes, *more),
        wall_time=seconds,
    )


READERS.register("likwid-powermeter")(
    Format("LIKWID: likwid-powermeter, energy of packages and memory", _is_one, _read, None)
)
