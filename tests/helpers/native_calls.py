"""What a native run leaves of its MPI calls, for tests of how parts of runs are planned."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ranksight.campaign.launching import Launch, Template
from ranksight.core.arrays import Array
from ranksight.counters.collectors import sampling


def of_one_call(folder: Path, seconds: Array) -> Launch:
    """A launch of one rank whose native run left one call again and again, as many `seconds` apart."""
    records = np.zeros(len(seconds), sampling._RECORD)
    records["call"], records["seconds"] = 1, seconds
    records["call"][-1] = 0xFFFF
    records.tofile(folder / "calls.0")
    return Template(("true",)).fill({"ranks": 1})
