"""All examinations of a machine, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

from ranksight.counters.doctor import counting, mpi, system
from ranksight.counters.doctor.findings import Examination, Finding, Machine

EXAMINATIONS: tuple[Examination, ...] = (*counting.EXAMINATIONS, *mpi.EXAMINATIONS, *system.EXAMINATIONS)


def examine(machine: Machine | None = None) -> Sequence[Finding]:
    """Look at everything; an examination that finds no such thing on this system says nothing."""
    here = machine or Machine()
    return [finding for examination in EXAMINATIONS for finding in examination(here)]
