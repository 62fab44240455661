"""Energy of the nodes of a run: RAPL's meters in the powercap files, read before and after the program.

The first rank of each node reads them, and once a minute in between: a package's meter wraps at about 262 kJ. Where the
files cannot be read, ``perf stat -a`` reads the same meters, which needs perf_event_paranoid of 0 or less. Packages
are metered whether a rank is on them or not, and with everything else that ran on the node.

Source: linux ``Documentation/power/powercap/powercap.rst``: ``name``, ``energy_uj``, ``max_energy_range_uj``.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from ranksight.campaign.collecting import COLLECTORS, Availability, Step
from ranksight.campaign.launching import Launch
from ranksight.core.errors import ToolError
from ranksight.core.experiment import ALL_RANKS, WHOLE
from ranksight.core.meaning import METERED, Meaning
from ranksight.core.reading import Reading
from ranksight.core.units import counted
from ranksight.counters.installing import how_to_install

POWERCAP = Path("/sys/class/powercap")
PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
PERF = Path("/sys/bus/event_source/devices/power/events")
_EVENTS = {"energy-pkg": "power/energy-pkg/", "energy-ram": "power/energy-ram/"}
_METRICS = {"package": "energy_package", "dram": "energy_dram"}
_ZONE = re.compile(r"(?P<name>package|dram)(?:-\d{1,3})?(?:-die-\d{1,3})?")
_SCRIPT = r"""
meters() {
  for zone in ZONES/*:*; do
    [ -r "$zone/energy_uj" ] || continue
    echo "$(date +%s.%N) ${zone##*/} $(cat "$zone/name") $(cat "$zone/energy_uj") $(cat "$zone/max_energy_range_uj")"
  done
}
node=$(uname -n)
mkdir "$0/energy.$node" 2>/dev/null || exec "$@"
out="$0/energy.$node/meters"
meters > "$out"
( while sleep 60; do meters >> "$out"; done ) & every=$!
"$@"; code=$?
kill $every; wait $every 2>/dev/null
meters >> "$out"
exit $code
"""
_PERF_SCRIPT = r"""
node=$(uname -n)
mkdir "$0/energy.$node" 2>/dev/null || exec "$@"
cat /sys/devices/system/cpu/cpu*/topology/physical_package_id | sort -u | wc -l > "$0/energy.$node/packages"
exec perf stat -a -x';' -e EVENTS,duration_time -o "$0/energy.$node/perf" -- "$@"
"""


def readable(zones: Path = POWERCAP) -> list[Path]:
    """Folders of the meters of packages and memory that this user can read."""
    return [zone for zone in meters(zones) if os.access(zone / "energy_uj", os.R_OK)]


def meters(zones: Path = POWERCAP) -> list[Path]:
    """Folders of the meters of packages and memory."""
    found = []
    for zone in sorted(zones.glob("*:*"))[:4096] if zones.is_dir() else ():
        try:
            if _ZONE.fullmatch((zone / "name").read_text("utf-8", "replace").strip()):
                found.append(zone)
        except OSError:
            continue
    return found


def perf_events(events: Path = PERF, paranoid: Path = PARANOID) -> list[str]:
    """Events of perf that meter energy and that this user may count on all of the node."""
    known = [name for name in _EVENTS if (events / name).exists()]
    try:
        level = int(paranoid.read_text().strip())
    except (OSError, ValueError):
        level = 2
    allowed = level <= 0 or os.geteuid() == 0
    return known if known and allowed and shutil.which("perf") is not None else []


@dataclass
class Energy:
    """Energy of packages and memory modules of all nodes; see the module."""

    zones: Path = POWERCAP
    text: str = "energy of processor packages and memory of whole nodes (RAPL)"
    deterministic: bool = False
    default: bool = False

    def available(self) -> Availability:
        """Whether the powercap files, or perf's events of the package, can be read."""
        if readable(self.zones) or perf_events():
            return Availability(True)
        if meters(self.zones):
            return Availability(
                False,
                "only root may read the meters of energy",
                f"sudo chmod -R a+r {self.zones}/*:*/energy_uj, or perf with kernel.perf_event_paranoid of 0",
            )
        if PERF.is_dir():
            return Availability(
                False,
                "perf may not read the meters of energy",
                "sudo sysctl -w kernel.perf_event_paranoid=0" if shutil.which("perf") else how_to_install("perf"),
            )
        return Availability(False, "the kernel shows no meters of energy", "sudo modprobe intel_rapl_msr, on the node")

    def steps(self, launch: Launch, folder: Path) -> Sequence[Step]:
        """One run; the first rank of each node reads its meters."""
        if readable(self.zones):
            script = _SCRIPT.replace("ZONES", str(self.zones))
        else:
            script = _PERF_SCRIPT.replace("EVENTS", ",".join(_EVENTS[name] for name in perf_events()))
        return [Step(launch.wrap(("/bin/sh", "-c", script.strip(), str(folder.resolve()))))]

    def collect(self, launch: Launch, folder: Path) -> Reading:
        """The meters of all nodes; ToolError where a node left none, or a meter ran backwards."""
        rows: list[tuple[str, str, float, float]] = []
        count = 0
        for place in sorted(folder.glob("energy.*")):
            node = place.name.partition(".")[2]
            meters, perf = place / "meters", place / "perf"
            each = _metered(meters) if meters.is_file() else _counted(perf)
            rows += [(node, *row) for row in each]
            count += _packages(place / "packages") or sum(name.startswith("package") for name, *_ in each)
        table = pd.DataFrame(rows, columns=["node", "meter", "seconds", "joules"])
        packages = table[table["meter"].str.startswith("package")]
        if packages.empty:
            raise ToolError("no node left its meters of energy", "ranksight doctor says what can be read here")
        nodes = table["node"].nunique()
        row: dict[str, object] = {"kernel": WHOLE, "rank": ALL_RANKS, "time": float(table["seconds"].max())}
        for kind, name in _METRICS.items():
            of_kind = table[table["meter"].str.startswith(kind)]
            if not of_kind.empty:
                row[name] = float(of_kind["joules"].sum())
        names = [name for name in _METRICS.values() if name in row]
        return Reading(
            configuration=dict(launch.configuration),
            counters=pd.DataFrame([row]),
            tables={"meters": table},
            provenance={
                "time": "measured (by the wrapper)",
                **dict.fromkeys(names, f"measured (RAPL, {counted(nodes, 'node')})"),
            },
            meanings=dict.fromkeys(names, Meaning("sum", "socket")),
            environment={METERED: str(count), "NNodes": str(nodes)},
            notes=("energy is that of whole nodes: idle packages and other programs on them are in it",),
            source=tuple(place.name for place in sorted(folder.glob("energy.*"))),
        )


def _metered(path: Path) -> list[tuple[str, float, float]]:
    """Meter, seconds and joules from the powercap files' values, with wraps undone."""
    values: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
    for line in path.read_text("utf-8", "replace").splitlines():
        words = line.split()
        if len(words) != 5 or (kind := _ZONE.fullmatch(words[2])) is None:
            continue
        try:
            now, energy, size = (float(words[at]) for at in (0, 3, 4))
        except ValueError:
            raise ToolError(f"{path.parent.name}: {line[:60]!r} is no meter", "measure this run again") from None
        values[words[1], kind[0]].append((now, energy, size))
    # A second driver, intel-rapl-mmio, shows the same packages again.
    driver = min((zone.partition(":")[0] for zone, _ in values), default="")
    found = []
    for (zone, name), readings in values.items():
        if zone.partition(":")[0] != driver:
            continue
        if len(readings) < 2:
            raise ToolError(f"{path.parent.name}: {name} was read once", "the run was killed: measure it again")
        joules = 0.0
        for (_, before, size), (_, after, _) in itertools.pairwise(readings):
            step = after - before
            joules += step if step >= 0 else step + size
            if step < 0 and (size <= 0 or step + size < 0):
                raise ToolError(f"{path.parent.name}: the meter of {name} ran backwards", "measure this run again")
        found.append((name, readings[-1][0] - readings[0][0], joules * 1e-6))
    return found


def _packages(path: Path) -> int:
    """Packages of a node that perf adds up; 0 where they were not counted."""
    text = path.read_text("utf-8", "replace").strip() if path.is_file() else ""
    return int(text) if text.isdecimal() and len(text) < 5 else 0


def _counted(path: Path) -> list[tuple[str, float, float]]:
    """Package and memory of a node, seconds and joules, as perf stat printed them."""
    rows: dict[str, float] = {}
    for line in path.read_text("utf-8", "replace").splitlines() if path.is_file() else ():
        words = line.split(";")
        if len(words) > 2:
            try:
                rows[words[2]] = float(words[0].replace(",", "."))
            except ValueError:
                continue
    seconds = rows.get("duration_time", 0.0) * 1e-9
    kinds = {"power/energy-pkg/": "package", "power/energy-ram/": "dram"}
    found = [(kind, seconds, rows[event]) for event, kind in kinds.items() if event in rows]
    if not found or seconds <= 0:
        raise ToolError(f"perf left no energy in {path.parent.name}", "ranksight doctor says what can be read here")
    return found


COLLECTORS.register("energy")(Energy())
