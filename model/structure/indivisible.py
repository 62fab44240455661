"""Whole units of work read off the ranks: of U units on P ranks some have a + 1 of them and all others a.

A kernel whose ranks execute two numbers of instructions, i and j > i and nothing between, has

    a = i / (j - i),    U = a P + (ranks with j)

where a is a whole number, and where all ranks execute the same, P divides U. Two uneven numbers of ranks and more that
agree on U, with no even one against it, show that the work comes in units that cannot be divided. Ding et al. 2018 know
this of HOMME's elements beforehand. :mod:`ranksight.model.structure.wholeunits` predicts the staircase once the units
are stated.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.experiment import WHOLE, Experiment

LEVEL = 0.1
"""Scatter around either number of instructions, over the distance of the two."""
WHOLE_NUMBER = 0.05
"""How far a may lie from a whole number."""
EVEN = 1e-3
"""Difference of the ranks' instructions, relative, up to which they are the same."""
LARGE = 0.2
"""Share of the program's instructions from which on a kernel is asked."""


def units_on(instructions: Array) -> float:
    """Units of work of one kernel whose ranks executed `instructions` (P,), 0 where all did as many; NaN where none can
    be inferred."""
    if not (instructions > 0).all():
        return np.nan
    if np.ptp(instructions) <= EVEN * instructions.min():
        return 0.0
    upper = instructions > (instructions.min() + instructions.max()) / 2
    groups = instructions[~upper], instructions[upper]
    gap = float(groups[1].mean() - groups[0].mean())
    each = float(groups[0].mean()) / gap
    if max(map(np.ptp, groups)) > LEVEL * gap or abs(each - round(each)) > WHOLE_NUMBER or round(each) < 1:
        return np.nan
    return float(round(each) * len(instructions) + int(upper.sum()))


def indivisible(experiment: Experiment) -> str:
    """The note on work that comes in whole units; empty where the counts of ranks show none.

    `experiment`: with instructions of every rank.
    """
    if "ranks" not in experiment.parameters:
        return ""
    units_by_kernel: dict[tuple[str, tuple[float, ...]], dict[float, float]] = defaultdict(dict)
    for run, table in experiment.counted(run for run in experiment.runs if run.configuration["ranks"] > 1):
        ranks = float(run.configuration["ranks"])
        if "instructions" not in table.values:
            continue
        rest = run.point(name for name in experiment.parameters if name != "ranks")
        of_kernels = np.array([name != WHOLE for name in table.kernels], dtype=bool)
        parts = table.select(of_kernels[table.code] & ~np.isnan(table.values["instructions"]))
        executed = parts.values["instructions"]
        rows, total = (np.bincount(parts.code, weights, len(of_kernels)) for weights in (None, executed))
        for at in np.flatnonzero((rows == ranks) & (total > LARGE * total.sum())):
            if np.isfinite(units := units_on(executed[parts.code == at])):
                units_by_kernel[parts.kernels[at], rest][ranks] = units
    others = [name for name in experiment.parameters if name != "ranks"]
    for (kernel, rest), seen in units_by_kernel.items():
        uneven = {units for units in seen.values() if units > 0}
        if len(uneven) != 1 or sum(units > 0 for units in seen.values()) < 2:
            continue
        (units,) = uneven
        if any(value == 0 and units % ranks for ranks, value in seen.items()):
            continue
        where = ", ".join(f"{name} = {value:g}" for name, value in zip(others, rest, strict=True))
        return (
            f"the work of {kernel} comes in {units:g} whole units{' at ' + where if where else ''}, as its ranks have "
            "one more or less than each other: ranks that do not divide them wait; state the units at fit with --units"
        )
    return ""
