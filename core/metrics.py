"""The registry of metrics: what a number means, its unit, its kind, and how it reduces over ranks.

A *requirement* is deterministic (instructions, loads, bytes, messages): it does not change when the same configuration
is run again. A *time* scatters. A *ratio* is formed from others and is never summed over kernels. A *state* is a
level, such as memory in use. *Sampled* is no metric's kind: it is how a requirement behaves that was sampled.
Metrics of other tools that are not listed here keep their own names; :func:`metric` describes them by a neutral entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ranksight.core.registry import Registry
from ranksight.core.units import format_si

Kind = Literal["requirement", "time", "ratio", "state", "other", "sampled"]
Reduction = Literal["mean", "max", "sum", "min", "median", "q1", "gmean"]

REDUCTIONS: tuple[Reduction, ...] = ("mean", "max", "sum", "min", "median", "q1", "gmean")


@dataclass(frozen=True, slots=True)
class Metric:
    """One measured or derived quantity."""

    name: str  # its one name in tables, files and on the command line
    unit: str  # SI unit: ``"s"``, ``"B"``, ``"Hz"``, or ``""`` for counts
    kind: Kind  # {"requirement", "time", "ratio", "state", "other"}
    over_ranks: Reduction
    """How it reduces over ranks by default: wall time to that of the slowest rank, work to the mean."""
    text: str  # what it is, in a few words
    additive: bool = True  # whether summing over kernels gives the program's total
    steady: bool = True
    """Whether a requirement follows from the program alone. What each cache level serves depends on what fits into it,
    too: such counts change in steps, and scatter."""

    def format(self, value: float) -> str:
        """Write a value of this metric with its unit."""
        return format_si(value, self.unit)


METRICS: Registry[Metric] = Registry("metric", group="ranksight.metrics")


def _add(
    name: str, unit: str, kind: Kind, over_ranks: Reduction, text: str, additive: bool = True, steady: bool = True
) -> None:
    METRICS.register(name)(Metric(name, unit, kind, over_ranks, text, additive, steady))


_add("time", "s", "time", "max", "time in the kernel, exclusive of its callees")
_add("time_inclusive", "s", "time", "max", "time in the kernel and its callees", additive=False)
_add("wall_time", "s", "time", "max", "wall-clock time of the whole run", additive=False)
_add("compute_time", "s", "time", "mean", "time between MPI calls")
_add("mpi_time", "s", "time", "mean", "time inside MPI calls")
_add("cpu_time", "s", "time", "mean", "processor time")
_add("compute_cpu_time", "s", "time", "mean", "processor time between MPI calls")
_add("runtime_unhalted", "s", "time", "mean", "unhalted cycles over the nominal clock, as LIKWID prints them")
_add("time_halted", "s", "time", "mean", "time in which the core was halted: asleep, or waiting in the system")
_add("visits", "", "requirement", "mean", "calls of the kernel")
_add("cycles", "", "time", "mean", "processor cycles, unhalted")
_add("reference_cycles", "", "time", "mean", "cycles of the reference clock")
_add("instructions", "", "requirement", "mean", "instructions retired")
_add("stall_cycles", "", "time", "mean", "cycles stalled on memory")
_add("loads", "", "requirement", "mean", "loads retired")
_add("stores", "", "requirement", "mean", "stores retired")
_add("loads_l1", "", "requirement", "mean", "loads served by the first-level cache", steady=False)
_add("loads_l2", "", "requirement", "mean", "loads served by the second-level cache", steady=False)
_add("loads_l3", "", "requirement", "mean", "loads served by the last-level cache", steady=False)
_add("loads_mem", "", "requirement", "mean", "loads served by memory", steady=False)
_add("store_misses_l1", "", "requirement", "mean", "stores that miss the first-level cache", steady=False)
_add("bytes_mem_read", "B", "requirement", "mean", "bytes read from memory", steady=False)
_add("bytes_mem_written", "B", "requirement", "mean", "bytes written to memory", steady=False)
_add("bytes_mem", "B", "requirement", "mean", "bytes moved to and from memory", steady=False)
_add("gpu_instructions", "", "requirement", "mean", "instructions of warps on a GPU")
_add("gpu_bytes", "B", "requirement", "mean", "bytes moved to and from the memory of a GPU", steady=False)
_add("gpu_bytes_read", "B", "requirement", "mean", "bytes read from the memory of a GPU", steady=False)
_add("gpu_bytes_written", "B", "requirement", "mean", "bytes written to the memory of a GPU", steady=False)
_add("bytes_l2", "B", "requirement", "mean", "bytes moved between first- and second-level cache", steady=False)
_add("bytes_l3", "B", "requirement", "mean", "bytes moved between second- and last-level cache", steady=False)
_add("flops", "", "requirement", "mean", "floating-point operations")
_add("flops_dp", "", "requirement", "mean", "floating-point operations, double precision")
_add("flops_sp", "", "requirement", "mean", "floating-point operations, single precision")
_add("branches", "", "requirement", "mean", "branch instructions")
_add("branch_misses", "", "requirement", "mean", "mispredicted branches", steady=False)
_add("messages", "", "requirement", "mean", "messages sent, or collective operations entered")
_add("bytes_sent", "B", "requirement", "mean", "bytes sent, or contributed to collective operations")
_add("peers", "", "requirement", "max", "ranks that messages are sent to", additive=False)
_add("memory_peak", "B", "state", "max", "largest resident memory", additive=False)
_add("memory_pss", "B", "state", "mean", "proportional resident memory", additive=False)
_add("memory_pss_before", "B", "state", "mean", "proportional resident memory before MPI_Init", additive=False)
_add("memory_allocated", "B", "state", "max", "memory that the kernel took from the heap and kept", additive=False)
for _whole, _part in (("flops", "visit"), ("instructions", "visit"), ("loads", "visit"), ("bytes", "message")):
    _unit = "B" if _whole == "bytes" else ""
    _add(f"{_whole}_per_{_part}", _unit, "requirement", "mean", f"{_whole} per {_part}", additive=False)
_add("frequency", "Hz", "ratio", "mean", "cycles per second", additive=False)
_add("cpi", "", "ratio", "mean", "cycles per instruction", additive=False)


LEVELS = ("loads_l1", "loads_l2", "loads_l3", "loads_mem")
"""Metrics of the loads that each level serves, nearest first."""
PARTS: tuple[tuple[tuple[str, ...], str], ...] = (
    *((((level,), "loads")) for level in LEVELS),
    (LEVELS, "loads"),
    (("stall_cycles",), "cycles"),
    (("branch_misses",), "branches"),
)
"""Metrics that are together no more than another."""
TOLERANCE = 0.05
"""How far parts may exceed their whole: counts of several runs, or of multiplexed counters, differ."""
FEW = 1000.0
"""Counts below which a part is a few events that another run need not have."""
CHANCE = 4.0
"""Standard errors of samples by which a part may exceed its whole."""


def metric(name: str) -> Metric:
    """Describe `name`: the registered metric, or a neutral entry for one that only its source knows."""
    if name in METRICS:
        return METRICS[name]
    return Metric(name, "", "other", "mean", "as named by its source")
