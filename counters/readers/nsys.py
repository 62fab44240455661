"""Nsight Systems' CSV reports of CUDA kernels: sums (``cuda_gpu_kern_sum``) or launches (``cuda_gpu_trace``).

``nsys stats --report cuda_gpu_kern_sum --format csv`` writes one row a kernel with its total time and instances, in
nanoseconds or another unit that the column names; a trace has one row a launch with its duration. Copies of memory are
rows of a trace and have no grid; they are left out.

Source: Nsight Systems User Guide, "Statistical Reports".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ranksight.core.errors import InputError
from ranksight.core.reading import READERS
from ranksight.counters.names import UNITS
from ranksight.counters.readers._gpu import Launch, Table, gpu_format

_TIME = re.compile(r"^(?:Total Time|Duration) \((?P<unit>ns|us|μs|ms|s|sec)\)$")


def _launches(table: Table) -> Iterator[Launch]:
    times = [found for name in table.columns if (found := _TIME.match(name))]
    if not times:
        raise InputError(f"{table.path}: the head names no time of kernels", "write it with --format csv")
    time, scale = times[0][0], UNITS[times[0]["unit"]]
    table.require("Name")
    rows = [(at, row) for at, row in table.rows if row.get("GrdX", "1").strip()]
    if not rows:
        raise InputError(f"{table.path} holds no launch of a kernel", "copies of memory are not read")
    for at, row in rows:
        visits = table.number(at, "Instances", row.get("Instances", "1"))
        yield at, row["Name"], {"time": table.number(at, time, row[time]) * scale, "visits": visits}


READERS.register("nsys")(
    gpu_format(
        "Nsight Systems: CSV of nsys stats, GPU kernels with time and launches",
        "report of GPU kernels",
        [("Total Time (", "Instances", "Name"), ("Duration (", "GrdX", "Name")],
        _launches,
    )
)
