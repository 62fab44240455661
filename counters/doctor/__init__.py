"""What can be measured on this machine, what not, why, and what would mend it."""

from ranksight.counters.doctor.examining import examine
from ranksight.counters.doctor.findings import Finding, Level

__all__ = ["Finding", "Level", "examine"]
