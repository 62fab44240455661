"""CSV of AMD's rocprof, rocprofv2 and rocprofv3: time and counters of HIP kernels, added over their dispatches.

Read are statistics (``Name, Calls, TotalDurationNs``), dispatches with begin and end in nanoseconds (``results.csv`` of
rocprof, ``kernel_trace.csv`` of rocprofv3), with basic counters as columns, and ``counter_collection.csv``, one row a
dispatch and counter. ``FETCH_SIZE`` and ``WRITE_SIZE`` are kilobytes from and to the device's memory. Other basic
counters, whose names are in capitals, keep their names; derived ones are means or percentages and are left out.

Source: ROCm documentation, "rocprof command reference" and "Using rocprofv3".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ranksight.core.errors import InputError
from ranksight.core.reading import READERS
from ranksight.counters.readers._files import damaged
from ranksight.counters.readers._gpu import Launch, Table, gpu_format

_KERNELS = ("KernelName", "Kernel_Name", "Name")
_TIMES = ("TotalDurationNs", "DurationNs")
_SPANS = (("BeginNs", "EndNs"), ("Start_Timestamp", "End_Timestamp"))
_BASIC = re.compile(r"^(?:SQ|TCC|TCP|TA|TD|GRBM|SPI|CPC|CPF|GL2C)_[A-Z0-9_]+(?:_sum)?$")
_SIZES = {"FETCH_SIZE": "gpu_bytes_read", "WRITE_SIZE": "gpu_bytes_written", "FetchSize": "gpu_bytes_read",
          "WriteSize": "gpu_bytes_written"}  # fmt: skip


def _launches(table: Table) -> Iterator[Launch]:
    kernel = next((name for name in _KERNELS if name in table.columns), None)
    if kernel is None:
        raise InputError(f"{table.path}: the head names no kernel", "is it this tool's output?")
    listed = "Counter_Name" in table.columns
    if listed:
        table.require("Counter_Value")
    rows = [(at, row) for at, row in table.rows if row.get("Kind", "KERNEL_DISPATCH") == "KERNEL_DISPATCH"]
    if not rows:
        raise InputError(f"{table.path} holds no dispatch of a kernel", "trace kernels with --kernel-trace")
    seen: set[str] = set()
    for at, row in rows:
        # One row a counter names its dispatch again and again.
        dispatch = row.get("Dispatch_Id", str(at)) if listed else str(at)
        if dispatch not in seen:
            seen.add(dispatch)
            visits = table.number(at, "Calls", row.get("Calls", "1"))
            yield at, row[kernel], {"time": _seconds(table, at, row), "visits": visits}
        for name, text in [(row["Counter_Name"], row["Counter_Value"])] if listed else row.items():
            yield at, row[kernel], _counter(table, at, name, text)


def _seconds(table: Table, at: int, row: dict[str, str]) -> float:
    time = next((name for name in _TIMES if name in row), None)
    if time is not None:
        return 1e-9 * table.number(at, time, row[time])
    span = next((names for names in _SPANS if set(names) <= set(row)), None)
    if span is None:
        raise InputError(f"{table.path}: the head names no time of kernels", "is it this tool's output?")
    try:
        begin, end = (int(row[column]) for column in span)  # beyond the digits of a float
    except ValueError:
        begin, end = 0, -1
    if end < begin:
        raise damaged(f"{table.path}:{at}: a kernel that ends before it begins")
    return 1e-9 * (end - begin)


def _counter(table: Table, at: int, name: str, text: str) -> dict[str, float]:
    """A counter under our name; nothing where it is no sum."""
    if name in _SIZES:
        return {_SIZES[name]: 1024.0 * table.number(at, name, text)}
    return {name: table.number(at, name, text)} if _BASIC.match(name) else {}


READERS.register("rocprof")(
    gpu_format(
        "rocprof, rocprofv3: CSV of kernels, GPU kernels with time, launches, counters",
        "table of GPU kernels",
        [
            ("Name", "Calls", "TotalDurationNs"),
            ("KernelName", "BeginNs", "EndNs"),
            ("KernelName", "DurationNs"),
            ("Kernel_Name", "Start_Timestamp", "End_Timestamp"),
        ],
        _launches,
    )
)
