"""What can be measured on this machine, what not, why, and what would mend it."""

from collections.abc import Sequence

from ranksight.counters.doctor import counting, mpi, packages, system
from ranksight.counters.doctor.findings import Examination, Finding, Level, Machine

__all__ = ["Finding", "Level", "examine"]

EXAMINATIONS: tuple[Examination, ...] = (
    *counting.EXAMINATIONS,
    *mpi.EXAMINATIONS,
    *system.EXAMINATIONS,
    *packages.EXAMINATIONS,
)


def examine(machine: Machine | None = None) -> Sequence[Finding]:
    """Findings of all examinations, in order; one that does not apply to this system returns none."""
    here = machine or Machine()
    return [finding for examination in EXAMINATIONS for finding in examination(here)]
