"""What single numbers of ranks show of a program: kernels that come and go, whole units of work.

Kernels that work at some numbers of ranks and not at others: the sign of a program that changes its algorithms.

A program that does the same at every number of ranks has the same functions in every run, whatever they take. One that
cuts its domain along a second side, takes another transform or another tree from some ranks on, has functions that come
and go, and may well have others where nobody has looked. One rank is left out, as nothing is exchanged there.

Whole units of work read off the ranks: of U units on P ranks some have a + 1 of them and all others a.

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
from ranksight.core.columns import Columns
from ranksight.core.experiment import ALL_RANKS, WHOLE, Experiment
from ranksight.core.leftout import MPI, OTHER
from ranksight.model import priors

DECIDED = {"instructions": "instructions", "bytes_sent": "bytes sent"}
"""Metrics that follow from the program alone, and what they are called."""


def turnover(experiment: Experiment) -> str:
    """What kernels that come and go with the ranks say of predictions on more ranks; empty where there are few.

    Their share is the largest over the numbers of ranks above one, at each combination of the other parameters.
    """
    if "ranks" not in experiment.parameters:
        return ""
    for name, words in DECIDED.items():
        most, which = 0.0, ""
        for kernels, ranks, shares in _by_ranks(experiment, name):
            changing = np.where((shares == 0).any(axis=1)[:, None], shares, 0.0)
            if (share := float(changing.sum(axis=0).max())) > most:
                kernel = int(changing.max(axis=1).argmax())
                on, off = (", ".join(f"{p:g}" for p in ranks[yes]) for yes in (shares[kernel] > 0, shares[kernel] == 0))
                most, which = share, f"{kernels[kernel]}: on {on}, not on {off}"
        if most >= priors.TURNOVER:
            return (
                f"kernels with {most:.1%} of the {words} work on some numbers of ranks and not on others (the most in "
                f"{which}): the program changes its algorithms with the ranks, and predictions beyond the ranks "
                "measured hold only if it does not change them again"
            )
    return ""


def _by_ranks(experiment: Experiment, name: str) -> list[tuple[list[str], Array, Array]]:
    """At each combination of the other parameters K kernels, n numbers of ranks above one, and shares (K, n)."""
    by_place: dict[tuple[float, ...], dict[float, dict[str, float]]] = {}
    for run in experiment.runs:
        ranks = float(run.configuration["ranks"])
        place = tuple(float(run.configuration[other]) for other in experiment.parameters if other != "ranks")
        at_place = by_place.setdefault(place, {})
        if ranks < 2 or ranks in at_place or run.state != "complete" or run.sampled(name) or run.inclusive(name):
            continue
        for _, table in experiment.counted([run] if name in experiment.columns(run, "counters") else ()):
            if by_name := _totals(table, name):
                at_place[ranks] = by_name
    several = []
    for each in by_place.values():
        if len(each) < 2:
            continue
        kernels = list(dict.fromkeys(kernel for by_name in each.values() for kernel in by_name))
        seen = sorted(each)
        totals = np.array([[each[p].get(kernel, 0.0) for p in seen] for kernel in kernels])
        several.append((kernels, np.array(seen), totals / totals.sum(axis=0)))
    return several


def _totals(table: Columns, name: str) -> dict[str, float]:
    """A metric of the program's kernels over all ranks, of those above zero; none where ranks are not distinguished."""
    if (table.rank == ALL_RANKS).any():
        return {}
    total = np.bincount(table.code, np.nan_to_num(table.values[name]), len(table.kernels))
    return {
        kernel: float(value)
        for kernel, value in zip(table.kernels, total, strict=True)
        if value > 0 and kernel not in (WHOLE, MPI, OTHER)
    }


CLOSE_TO_LEVEL = 0.1
"""Scatter around either number of instructions, over the distance of the two."""
WHOLE_NUMBER = 0.05
"""How far a may lie from a whole number."""
EQUAL = 1e-3
"""Difference of the ranks' instructions, relative, up to which they are the same."""
LARGE = 0.2
"""Share of the program's instructions from which on a kernel is asked."""


def units_on(instructions: Array) -> float:
    """Units of work of one kernel whose ranks executed `instructions` (P,), 0 where all did as many; NaN where none can
    be inferred."""
    if not (instructions > 0).all():
        return np.nan
    if np.ptp(instructions) <= EQUAL * instructions.min():
        return 0.0
    upper = instructions > (instructions.min() + instructions.max()) / 2
    groups = instructions[~upper], instructions[upper]
    gap = float(groups[1].mean() - groups[0].mean())
    each = float(groups[0].mean()) / gap
    if max(map(np.ptp, groups)) > CLOSE_TO_LEVEL * gap or abs(each - round(each)) > WHOLE_NUMBER or round(each) < 1:
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
