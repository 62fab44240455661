"""What a fit remarks of the runs, for the answers that rest on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ranksight.model.plaindata import Stored


@dataclass(frozen=True)
class Remarks(Stored):
    """Sentences on the runs of a model; empty where there is nothing to be said."""

    left_out: str = ""  # runs and values that were not used
    turnover: str = ""  # kernels that come and go with the ranks
    total: str = ""  # name of the timer that became the whole program
    notes: tuple[str, ...] = ()
    contradictions: Mapping[str, str] = field(default_factory=dict)  # how counters of a kernel contradict each other
