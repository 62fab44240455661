"""CSV of AMD's rocprof, rocprofv2 and rocprofv3: time and counters of HIP kernels, added over their dispatches.

Read are statistics (``Name, Calls, TotalDurationNs``), dispatches with begin and end in nanoseconds (``results.csv`` of
rocprof, ``kernel_trace.csv`` of rocprofv3), with basic counters as columns, and ``counter_collection.csv``, one row a
dispatch and counter. ``FETCH_SIZE`` and ``WRITE_SIZE`` are kilobytes from and to the device's memory. Other basic
counters, whose names are in capitals, keep their names; derived ones are means or percentages and are left out.

Source: ROCm documentation, "rocprof command reference" and "Using rocprofv3".
"""

from __future__ import annotations

import re
from pathlib import Path

from ranksight.core.errors import InputError
from ranksight.core.reading import READERS
from ranksight.counters.readers import _gpu

_KERNELS = ("KernelName", "Kernel_Name", "Name")
_SPANS = (("BeginNs", "EndNs"), ("Start_Timestamp", "End_Timestamp"))
_BASIC = re.compile(r"^(?:SQ|TCC|TCP|TA|TD|GRBM|SPI|CPC|CPF|GL2C)_[A-Z0-9_]+(?:_sum)?$")
_SIZES = {"FETCH_SIZE": "gpu_bytes_read", "WRITE_SIZE": "gpu_bytes_written", "FetchSize": "gpu_bytes_read",
          "WriteSize": "gpu_bytes_written"}  # fmt: skip


class Rocprof(_gpu.GpuReader):
    """Reads the CSV files of rocprof; see the module's text."""

    text = "rocprof, rocprofv3: CSV of kernels, GPU kernels with time, launches, counters"
    heads = (
        ("Name", "Calls", "TotalDurationNs"),
        ("KernelName", "BeginNs", "EndNs"),
        ("KernelName", "DurationNs"),
        ("Kernel_Name", "Start_Timestamp", "End_Timestamp"),
    )

    def sums(self, path: Path) -> _gpu.Sums:
        """The sums over dispatches in a file."""
        columns, rows = _gpu.table(path, self.heads, "table of GPU kernels")
        place = {name: at for at, name in enumerate(columns)}
        kernel = next((place[name] for name in _KERNELS if name in place), None)
        if kernel is None:
            raise InputError(f"{path}: the head names no kernel", "is it this tool's output?")
        span = next(((place[a], place[b]) for a, b in _SPANS if a in place and b in place), None)
        found = _gpu.Sums()
        seen: set[str] = set()
        for at, row in rows:
            if "Kind" in place and row[place["Kind"]] != "KERNEL_DISPATCH":
                continue
            values: list[tuple[str, float]] = []
            # One row a counter names its dispatch again and again.
            dispatch = row[place["Dispatch_Id"]] if "Counter_Name" in place and "Dispatch_Id" in place else str(at)
            if dispatch not in seen:
                seen.add(dispatch)
                values += [("time", _seconds(path, at, row, place, span))]
                values += [("visits", _gpu.number(path, at, row[place["Calls"]]) if "Calls" in place else 1.0)]
            if "Counter_Name" in place:
                value = row[_gpu.column(path, columns, "Counter_Value")]
                values += _counter(path, at, row[place["Counter_Name"]], value)
            else:
                values += [each for name in columns for each in _counter(path, at, name, row[place[name]])]
            found.add(path, at, row[kernel], values)
        if not found.cells:
            raise InputError(f"{path} holds no dispatch of a kernel", "trace kernels with --kernel-trace")
        return found


def _seconds(path: Path, at: int, row: list[str], place: dict[str, int], span: tuple[int, int] | None) -> float:
    for name in ("TotalDurationNs", "DurationNs"):
        if name in place:
            return 1e-9 * _gpu.number(path, at, row[place[name]])
    if span is None:
        raise InputError(f"{path}: the head names no time of kernels", "is it this tool's output?")
    try:
        begin, end = (int(row[column]) for column in span)  # beyond the digits of a float
    except ValueError:
        begin, end = 0, -1
    if end < begin:
        raise InputError(f"{path}:{at}: a kernel that ends before it begins", "the file is damaged")
    return 1e-9 * (end - begin)


def _counter(path: Path, at: int, name: str, text: str) -> list[tuple[str, float]]:
    """A counter under our name; none where it is no sum."""
    if name in _SIZES:
        return [(_SIZES[name], 1024.0 * _gpu.number(path, at, text))]
    return [(name, _gpu.number(path, at, text))] if _BASIC.match(name) else []


READERS.register("rocprof")(Rocprof())
