"""The registry of metrics: what a number means, its unit, its kind, and how it reduces over ranks.

A *requirement* is deterministic (instructions, loads, bytes, messages): it does not change when the same configuration
is run again. A *time* scatters. A *ratio* is formed from others and is never summed over kernels. A *state* is a
level, such as memory in use. *Sampled* is no metric's kind: it is how a requirement behaves that was sampled.
``metrics.toml`` lists them. Metrics of other tools that are not in it keep their own names; :func:`metric` describes
them by a neutral entry.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Literal

from ranksight.core.records import dataclass
from ranksight.core.registry import Registry
from ranksight.core.units import format_si

Kind = Literal["requirement", "time", "ratio", "state", "other", "sampled"]
Reduction = Literal["mean", "max", "sum", "min", "median", "q1", "gmean"]

Place = Literal["core", "rank", "socket", "node", "job"]
Per = Literal["run", "call"]

REDUCTIONS: tuple[Reduction, ...] = ("mean", "max", "sum", "min", "median", "q1", "gmean")


@dataclass(frozen=True, slots=True)
class Metric:
    """One measured or derived quantity."""

    name: str  # its one name in tables, files and on the command line
    unit: str = ""  # SI unit: ``"s"``, ``"B"``, ``"Hz"``, or ``""`` for counts
    kind: Kind = "other"
    over_ranks: Reduction = "mean"
    """How it reduces over ranks by default: wall time to that of the slowest rank, work to the mean."""
    text: str = ""  # what it is, in a few words
    additive: bool = True  # whether summing over kernels gives the program's total
    of: Place = "rank"
    """What its values are counted on. Of sockets, nodes and jobs they add up over the machine and are no rank's."""
    per: Per = "run"  # cumulative over the run, or an average of one call
    steady: bool = True
    """Whether a requirement follows from the program alone. What each cache level serves depends on what fits into it,
    too: such counts change in steps, and scatter."""

    @property
    def signed(self) -> bool:
        """Whether values may be below zero: nobody knows of what only its source knows. Energy and power are not."""
        return self.kind == "other" and not self.unit

    def format(self, value: float) -> str:
        """Write a value of this metric with its unit."""
        return format_si(value, self.unit)


METRICS: Registry[Metric] = Registry("metric", group="ranksight.metrics")
for _name, _entry in tomllib.loads(Path(__file__).with_name("metrics.toml").read_text(encoding="utf-8")).items():
    METRICS.register(_name)(Metric(_name, **_entry))

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


_PARTS_OF_NODES = "package|pkg|dram|ram|cores?|node|socket"
_ENERGY = re.compile(
    rf"^PWR_\w*ENERGY|^power/energy-|(?:^|_)(?:{_PARTS_OF_NODES})_energy$|^energy_(?:{_PARTS_OF_NODES})$", re.IGNORECASE
)
"""Names of LIKWID, perf and of tables for what packages, memory and nodes consume."""


def metric(name: str) -> Metric:
    """Describe `name`: the registered metric, or a neutral entry for one that only its source knows."""
    if name in METRICS:
        return METRICS[name]
    if _ENERGY.search(name):
        return Metric(name, "J", over_ranks="sum", text="energy, as named by its source", of="socket")
    return Metric(name, text="as named by its source")
