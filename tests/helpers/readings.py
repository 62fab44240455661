"""What a reader makes of a file, and single values of it."""

from __future__ import annotations

from pathlib import Path

from ranksight.core.reading import READERS, Reading


def read(reader: str, path: Path) -> Reading:
    """The one reading that a file holds."""
    (reading,) = READERS[reader].read(path)
    return reading


def cell(reading: Reading, kernel: str, metric: str, rank: int = 0) -> float:
    """The value of a kernel on a rank, which has one row."""
    table = reading.counters
    row = table[(table["kernel"] == kernel) & (table["rank"] == rank)]
    assert len(row) == 1
    return float(row[metric].iloc[0])
