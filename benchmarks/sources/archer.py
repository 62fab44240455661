"""CP2K, GROMACS and OpenSBLI on many machines: subroutine timers over nodes, trained on half and a quarter of them.

Strong scaling over 1 to 2,048 nodes under 21 labels of machines and builds. Subroutines of one percent of the largest
and more at the last count that is trained on are asked for the largest count.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from benchmarks.tasks import Task, make

SPLITS = {"half": 2.0, "a quarter": 4.0}
LEAST = 0.05
"""Seconds that a timer must have everywhere: it was printed with few digits."""
SHARE = 0.01
"""Of the largest timer, at the last count that is trained on."""
FEWEST = 3
"""Node counts to train on."""


def load(data: Path) -> Iterator[Task]:
    """Timers of every campaign, by program and split."""
    for path in sorted((data / "scaling" / "archer").glob("*.csv")):
        table = pd.read_csv(path)
        table = table[table["time"] > 0]
        counts = sorted(table["nodes"].unique())
        program = path.name.split("_")[0]
        for split, factor in SPLITS.items():
            few = [nodes for nodes in counts if nodes <= counts[-1] / factor]
            if len(few) < FEWEST:
                continue
            last = table[table["nodes"] == few[-1]].groupby("kernel")["time"].mean()
            for kernel, series in table.groupby("kernel"):
                values = {nodes: list(group["time"]) for nodes, group in series.groupby("nodes")}
                mean = {nodes: sum(each) / len(each) for nodes, each in values.items()}
                known = [nodes for nodes in few if nodes in values]
                if counts[-1] not in values or len(known) < FEWEST or min(mean.values()) < LEAST:
                    continue
                if few[-1] not in mean or mean[few[-1]] < SHARE * last.max():
                    continue
                train = [((float(nodes),), values[nodes]) for nodes in known]
                held = [((float(counts[-1]),), values[counts[-1]])]
                name = f"{path.stem} {kernel}"
                yield make(f"{program} {split} of the nodes", name, f"archer {program}", ("nodes",), train, held)
