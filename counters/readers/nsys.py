"""Nsight Systems' CSV reports of CUDA kernels: sums (``cuda_gpu_kern_sum``) or launches (``cuda_gpu_trace``).

``nsys stats --report cuda_gpu_kern_sum --format csv`` writes one row a kernel with its total time and instances, in
nanoseconds or another unit that the column names; a trace has one row a launch with its duration. Copies of memory are
rows of a trace and have no grid; they are left out.

Source: Nsight Systems User Guide, "Statistical Reports".
"""

from __future__ import annotations

import re
from pathlib import Path

from ranksight.core.errors import InputError
from ranksight.core.reading import READERS
from ranksight.counters.readers import _gpu

_TIME = re.compile(r"^(?:Total Time|Duration) \((?P<unit>ns|us|μs|ms|s|sec)\)$")


class Nsys(_gpu.GpuReader):
    """Reads Nsight Systems' reports of kernels; see the module's text."""

    text = "Nsight Systems: CSV of nsys stats, GPU kernels with time and launches"
    heads = (("Total Time (", "Instances", "Name"), ("Duration (", "GrdX", "Name"))

    def sums(self, path: Path) -> _gpu.Sums:
        """The sums over launches in a file."""
        columns, rows = _gpu.table(path, self.heads, "report of GPU kernels")
        times = [(at, found["unit"]) for at, name in enumerate(columns) if (found := _TIME.match(name))]
        if not times:
            raise InputError(f"{path}: the head names no time of kernels", "write it with --format csv")
        (time, unit), name = times[0], _gpu.column(path, columns, "Name")
        count = columns.index("Instances") if "Instances" in columns else None
        grid = columns.index("GrdX") if "GrdX" in columns else None
        found_sums = _gpu.Sums()
        for at, row in rows:
            if grid is not None and not row[grid].strip():
                continue
            seconds = _gpu.number(path, at, row[time]) * _gpu.SECONDS[unit]
            visits = 1.0 if count is None else _gpu.number(path, at, row[count])
            found_sums.add(path, at, row[name], (("time", seconds), ("visits", visits)))
        if not found_sums.cells:
            raise InputError(f"{path} holds no launch of a kernel", "copies of memory are not read")
        return found_sums


READERS.register("nsys")(Nsys())
