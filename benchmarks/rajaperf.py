"""RAJAPerf kernels with top-down levels on Broadwell (LLNL/thicket-tutorial), medians over runs."""

from __future__ import annotations

import pandas as pd

from benchmarks.settings import Settings, Skipped


def kernels(settings: Settings) -> pd.DataFrame:
    """One row a kernel and flag set, indexed by both; the levels under their own names.

    Flags and kernels are medians over ten runs; groups of kernels are left out.
    """
    file = settings.data / "verdicts" / "rajaperf_topdown_gcc.csv"
    if not file.is_file():
        raise Skipped(f"{file.name} is absent")
    table = pd.read_csv(file)
    table = table[table["kernel"].astype(str).str.count("/") == 2]
    table["flags"] = table["run"].str.extract(r"_(O\d)_")
    table["kernel"] = table["kernel"].str.split("/").str[-1]
    found = table.groupby(["flags", "kernel"]).median(numeric_only=True)
    return found.rename(columns=lambda name: str(name).removeprefix("topdown."))
