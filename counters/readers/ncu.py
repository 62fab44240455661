"""Nsight Compute's CSV: time, instructions and memory traffic of every launch of a CUDA kernel, added over launches.

Two pages are read: ``--page details`` (the default), one row a launch and metric, and ``--page raw``, one row a launch
with a column a metric and a row of units below the head. Metrics read: the duration, instructions of warps
(``smsp__inst_executed.sum``) and bytes from and to the device's memory (``dram__bytes*.sum``). The program is measured
kernel by kernel, often several times each; durations are at the clock that ``--clock-control`` sets.

Source: Nsight Compute CLI documentation, "Console Output" and "Metrics Reference".
"""

from __future__ import annotations

from collections.abc import Iterator

from ranksight.core.errors import InputError
from ranksight.core.reading import READERS
from ranksight.counters.names import unit_scale
from ranksight.counters.readers._files import damaged
from ranksight.counters.readers._gpu import Launch, Table, gpu_format

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


def _launches(table: Table) -> Iterator[Launch]:
    path = table.path
    table.require("Kernel Name")
    launches: dict[tuple[str, str], tuple[int, dict[str, float]]] = {}
    if "Metric Name" in table.columns:
        table.require("Metric Unit", "Metric Value")
        for at, row in table.rows:
            _, cell = launches.setdefault((row["Kernel Name"], row.get("ID", "")), (at, {}))
            if (name := row["Metric Name"]) in _METRICS:
                cell[_METRICS[name]] = _scaled(table, at, name, row["Metric Value"], row["Metric Unit"])
    else:
        (first, units), *rows = table.rows
        if not rows or units["Kernel Name"].strip():
            raise InputError(f"{path}:{first}: no row of units below the head", "write it with --page raw --csv")
        wanted = [name for name in table.columns if name in _METRICS]
        for number, (at, row) in enumerate(rows):
            cell = {_METRICS[name]: _scaled(table, at, name, row[name], units[name]) for name in wanted}
            launches[row["Kernel Name"], str(number)] = (at, cell)
    if not any(cell for _, cell in launches.values()):
        raise InputError(
            f"{path} holds none of the metrics that are read", f"measure {', '.join(sorted(_METRICS)[-2:])}"
        )
    for (kernel, _), (at, cell) in launches.items():
        yield at, kernel, {**cell, "visits": 1.0}


def _scaled(table: Table, at: int, name: str, text: str, unit: str) -> float:
    """A value in seconds, bytes or as a count."""
    ours, value = _METRICS[name], table.number(at, name, text)
    if ours == "gpu_instructions":
        return value
    scale = unit_scale(unit)
    if scale is None or not unit.strip():
        raise damaged(f"{table.path}:{at}: {unit!r} is no unit of {'time' if ours == 'time' else name}")
    return value * scale


READERS.register("ncu")(
    gpu_format(
        "Nsight Compute: --csv, details or raw page, GPU kernels with time, instructions, bytes",
        "table of GPU kernels",
        [("Kernel Name", "Metric Name", "Metric Unit", "Metric Value"), ("Kernel Name", "gpu__time_duration.sum")],
        _launches,
    )
)
