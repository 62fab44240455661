"""What each rank does in one occurrence of each phase, at each configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd

from ranksight.analysis.phases.calls import LOADS, Calls
from ranksight.analysis.phases.relate import UNRELATED, Related
from ranksight.core.errors import InsufficientError
from ranksight.model.resource.equation import Machine

Clock = Literal["measured", "simulated"]
COLUMNS = ("computation", "communication", "instructions", "flops", *LOADS)


def simulated_cycles(table: pd.DataFrame, machine: Machine) -> pd.Series:
    """Cycles of a processor that executes an instruction a cycle and waits for every load past the first level.

        c = i + sum over levels past the first of  n_level (l_level - l_1)

    with the latencies of `machine`. It overlaps nothing, so it is slower than a real one; what it says is exact for
    itself, repeats, and does not depend on how many ranks share the cores that simulate it.
    """
    first = machine.latencies[0]
    cycles = table["instructions"].astype(float)
    for name, latency in zip(LOADS[1:], machine.latencies[1:], strict=True):
        cycles = cycles + table[name] * (latency - first)
    return cycles


def phase_table(traces: Sequence[Calls], related: Related, clock: Clock, machine: Machine) -> pd.DataFrame:
    """One row for each configuration, phase and rank.

    Columns: ``point`` (index of the configuration), ``ranks``, ``phase`` (-1: unrelated calls), ``rank``, ``weight``
    (occurrences), and means of one occurrence: ``computation`` and ``communication`` (s), ``cycles``, and those of
    :data:`ranksight.analysis.phases.calls.COUNTED` that are known. `clock` ({"measured", "simulated"}): whether
    ``computation`` is time measured, or that of :func:`simulated_cycles` at the machine's clock; of a trace with
    floating-point operations only, one of them per cycle. Raises InsufficientError when simulated time is asked for
    where loads were not simulated.
    """
    parts = []
    for point, (calls, table) in enumerate(zip(traces, related.labelled, strict=True)):
        if clock == "simulated" and calls.has("flops") and not calls.has("instructions"):
            table = table.assign(computation=table["flops"] / machine.frequency)
        elif clock == "simulated":
            lacking = [name for name in ("instructions", *LOADS) if not calls.has(name)]
            if lacking:
                values = ", ".join(f"{name}={value:g}" for name, value in calls.configuration.items())
                raise InsufficientError(
                    f"no {lacking[0]} between calls are known at {values}",
                    "measure there with --collector callgrind-intervals",
                )
            table = table.assign(computation=simulated_cycles(table, machine) / machine.frequency)
        names = [name for name in COLUMNS if name in table.columns]
        grouped = table.groupby(["phase", "rank"], sort=True)
        sums = grouped[names].sum(min_count=1)
        weight = (grouped["occurrence"].max() + 1).astype(float)
        weight[weight.index.get_level_values("phase") == UNRELATED] = 1.0
        each = sums.div(weight, axis=0).assign(weight=weight).reset_index()
        parts.append(each.assign(point=point, ranks=float(calls.ranks)))
    rows = pd.concat(parts, ignore_index=True)
    for name in COLUMNS:
        if name not in rows:
            rows[name] = np.nan
    rows["cycles"] = rows["computation"] * machine.frequency
    return rows
