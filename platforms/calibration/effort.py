"""How much is measured: quickly for a look, or with care for numbers to keep."""

from __future__ import annotations

from ranksight.core.records import dataclass


@dataclass(frozen=True, slots=True)
class Effort:
    """Extent of a calibration."""

    seconds: float  # least time of a sample
    samples: int  # samples of a process, after its warm-up
    processes: int  # processes of a measurement; each has its own pages and its own order of accesses
    per_octave: int  # working sets of the latency curve in every doubling
    core_counts: int  # points, at most, of the bandwidth over the number of cores


CAREFUL = Effort(seconds=0.02, samples=5, processes=3, per_octave=4, core_counts=12)
QUICK = Effort(seconds=0.005, samples=3, processes=1, per_octave=3, core_counts=4)
