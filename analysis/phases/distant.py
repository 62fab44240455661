"""The distant point: a smaller workload on few ranks stands for the original one on many.

A smaller workload is run at growing rank counts until its cycles per instruction stop falling: from there on caches
hold it, as they hold the original workload's share at many ranks. Its instructions per rank and occurrence, looked up
in the instruction prediction table, say at how many ranks the original workload is as small.

Source: Panadero et al. 2015, section 3, steps 4 to 6, tables 1 and 2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ranksight.analysis.phases.instructions import InstructionTable
from ranksight.analysis.phases.weights import PLAIN, RULES
from ranksight.core.errors import InsufficientError
from ranksight.core.records import dataclass

SAME = 0.01
"""Relative change of cycles per instruction below which they are taken as the same."""
_MOST_RANKS = 1 << 24


def settled(cpi: ArrayLike, tolerance: float = SAME) -> bool:
    """Whether the cycles per instruction of runs at growing rank counts have fallen, and stopped.

    A plateau at the start does not count: there every access still misses the caches. `cpi` (m,): in the order of
    growing rank counts.
    """
    values = np.asarray(cpi, dtype=np.float64)
    if len(values) < 2:
        return False
    fallen = values[-1] < (1 - tolerance) * values.max()
    return bool(fallen and values[-1] >= (1 - tolerance) * values[-2])


def least(cpi: ArrayLike, tolerance: float = SAME) -> int:
    """The last of the runs whose cycles per instruction are those of the least, within `tolerance`.

    The last stands farthest out. Where cycles per instruction rise again (overheads gain on the work) runs past the
    least are passed over.
    """
    values = np.asarray(cpi, dtype=np.float64)
    if not np.isfinite(values).any():
        raise InsufficientError("no cycles per instruction are known", "measure instructions and time of the phase")
    return int(np.flatnonzero(values <= np.nanmin(values) * (1 + tolerance))[-1])


@dataclass(frozen=True, slots=True)
class DistantPoint:
    """What a run of the smaller workload stands for."""

    measured_ranks: int  # ranks of the run
    instructions: float  # of one rank in one occurrence of the phase, in the run
    time: float  # computation of that, in seconds
    cpi: float  # cycles per instruction
    ranks: float  # rank count at which the original workload executes as many
    difference: float  # how far the table's instructions are off the run's, relative to these


def stands_for(instructions: float, table: InstructionTable) -> tuple[float, float]:
    """The admissible rank count whose instructions per rank are nearest, and the relative difference.

    Raises InsufficientError when the table has no instructions, or the run stands for no more ranks than were measured.
    """
    if not (instructions > 0 and table.total > 0):
        raise InsufficientError("the phase executes no instructions that were counted")
    most = float(table.ranks.max())
    # Instructions per rank fall at least as 1/p does when the weight does not fall.
    largest = min(most * float(table.at(most)) / instructions * 4 + 4, _MOST_RANKS)
    forth, back = RULES[table.weight.rule]
    first = 1.0 if table.weight.rule == PLAIN else 0.0
    low, high = first, max(float(np.floor(forth(np.array(largest)))), first)
    while high - low > 1:
        middle = np.floor((low + high) / 2)
        low, high = (middle, high) if table.at(back(middle)) > instructions else (low, middle)
    candidates = np.round(back(np.array([low, high])))
    off = np.abs(table.at(candidates) - instructions)
    at = int(np.argmin(off))
    ranks = float(candidates[at])
    if ranks <= most:
        raise InsufficientError(
            f"the smaller workload stands for {ranks:g} ranks, no more than the {most:g} measured",
            "take a smaller workload, or more ranks for it",
        )
    return ranks, float(off[at] / instructions)


def distant_point(
    ranks: ArrayLike, instructions: ArrayLike, times: ArrayLike, cpi: ArrayLike, table: InstructionTable
) -> DistantPoint:
    """Choose among runs of the smaller workload, and look up what it stands for.

    `ranks`, `instructions`, `times`, `cpi` (m,): of each run, in the order of growing rank counts; instructions and
    seconds of one rank in one occurrence. `table`: of the original workload. Raises InsufficientError as :func:`least`
    and :func:`stands_for` do.
    """
    p, i, t, c = (np.asarray(column, dtype=np.float64) for column in (ranks, instructions, times, cpi))
    at = least(c)
    mapped, difference = stands_for(float(i[at]), table)
    return DistantPoint(int(p[at]), float(i[at]), float(t[at]), float(c[at]), mapped, difference)
