"""What can be measured on this machine, what not, why, and what would mend it."""

from ranksight.counters.doctor.findings import Finding, Level, examine

__all__ = ["Finding", "Level", "examine"]
