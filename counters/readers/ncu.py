"""Nsight Compute's CSV: time, instructions and memory traffic of every launch of a CUDA kernel, added over launches.

Two pages are read: ``--page details`` (the default), one row a launch and metric, and ``--page raw``, one row a launch
with a column a metric and a row of units below the head. Metrics read: the duration, instructions of warps
(``smsp__inst_executed.sum``) and bytes from and to the device's memory (``dram__bytes*.sum``). The program is measured
kernel by kernel, often several times each; durations are at the clock that ``--clock-control`` sets.

Source: Nsight Compute CLI documentation, "Console Output" and "Metrics Reference".
"""

from __future__ import annotations

import re
from pathlib import Path

from ranksight.core.errors import InputError
from ranksight.core.reading import READERS
from ranksight.counters.readers import _gpu

_METRICS = {
    "gpu__time_duration.sum": "time",
    "Duration": "time",
    "smsp__inst_executed.sum": "gpu_instructions",
    "sm__inst_executed.sum": "gpu_instructions",
    "Executed Instructions": "gpu_instructions",
    "dram__bytes.sum": "gpu_bytes",
    "dram__bytes_read.sum": "gpu_bytes_read",
    "dram__bytes_write.sum": "gpu_bytes_written",
}
"""Ours for each of theirs; two of one launch that mean the same are one."""
_BYTES = re.compile(r"^(?P<prefix>[KMGT]?)(?:i)?(?:B|byte)s?$", re.IGNORECASE)
_PREFIX = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


class Ncu(_gpu.GpuReader):
    """Reads Nsight Compute's CSV; see the module's text."""

    text = "Nsight Compute: --csv, details or raw page, GPU kernels with time, instructions, bytes"
    heads = (("Kernel Name", "Metric Name", "Metric Unit", "Metric Value"), ("Kernel Name", "gpu__time_duration.sum"))

    def sums(self, path: Path) -> _gpu.Sums:
        """The sums over launches in a file."""
        columns, rows = _gpu.table(path, self.heads, "table of GPU kernels")
        kernel = _gpu.column(path, columns, "Kernel Name")
        launches: dict[tuple[str, str], dict[str, float]] = {}
        lines: dict[tuple[str, str], int] = {}
        if "Metric Name" in columns:
            name, unit, value = (_gpu.column(path, columns, f"Metric {each}") for each in ("Name", "Unit", "Value"))
            place = columns.index("ID") if "ID" in columns else None
            for at, row in rows:
                key = (row[kernel], "" if place is None else row[place])
                lines.setdefault(key, at)
                cell = launches.setdefault(key, {})
                if row[name] in _METRICS:
                    cell[_METRICS[row[name]]] = _scaled(path, at, row[name], row[value], row[unit])
        else:
            wanted = [(at, head) for at, head in enumerate(columns) if head in _METRICS]
            if len(rows) < 2 or rows[0][1][kernel].strip():
                raise InputError(
                    f"{path}:{rows[0][0]}: no row of units below the head", "write it with --page raw --csv"
                )
            units = rows[0][1]
            for number, (at, row) in enumerate(rows[1:]):
                key = (row[kernel], str(number))
                lines[key] = at
                launches[key] = {
                    _METRICS[head]: _scaled(path, at, head, row[column], units[column]) for column, head in wanted
                }
        return _added(path, launches, lines)


def _added(
    path: Path, launches: dict[tuple[str, str], dict[str, float]], lines: dict[tuple[str, str], int]
) -> _gpu.Sums:
    """Sums over launches; a metric that some launches of a kernel lack would be too small."""
    found = _gpu.Sums()
    if not any(cell for cell in launches.values()):
        raise InputError(
            f"{path} holds none of the metrics that are read", f"measure {', '.join(sorted(_METRICS)[-2:])}"
        )
    for (kernel, launch), cell in launches.items():
        found.add(path, lines[kernel, launch], kernel, [*cell.items(), ("visits", 1.0)])
    return found


def _scaled(path: Path, at: int, name: str, text: str, unit: str) -> float:
    """A value in seconds, bytes or as a count."""
    ours, unit = _METRICS[name], unit.strip()
    value = _gpu.number(path, at, text)
    if ours == "time":
        if unit not in _gpu.SECONDS:
            raise InputError(f"{path}:{at}: {unit!r} is no unit of time", "the file is damaged")
        return value * _gpu.SECONDS[unit]
    if ours.startswith("gpu_bytes"):
        found = _BYTES.match(unit)
        if found is None:
            raise InputError(f"{path}:{at}: {unit!r} is no unit of {name}", "the file is damaged")
        return value * _PREFIX[found["prefix"].upper()]
    return value


READERS.register("ncu")(Ncu())
