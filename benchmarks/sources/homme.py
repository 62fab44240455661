"""HOMME on Summit: trained on the smallest grid (ne32, 6 to 96 ranks), asked for up to ne1024 and 27,600 ranks.

The parameter is the work per rank, x = 6 ne^2 / ranks elements. Runs with a ``compose`` timer use the semi-Lagrangian
tracer scheme, the others the Eulerian one; the two are series of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from benchmarks.tasks import Task, make

SMALL = 32
MAIN_LOOP = ("prim_main_loop",)
COMMUNICATION = ("caar_bexchV", "hvf-bexch")
LEAST = 0.05
"""Seconds that a timer must have at every training point; shorter ones are at the timers' resolution of 1 ms."""


def load(data: Path) -> Iterator[Task]:
    """Main loop, communication timers, and all other timers, of both schemes."""
    table = pd.read_csv(data / "scaling" / "homme_summit_qsize10.csv")
    table = table[table["ranks"] > 0]
    run = ["ne", "nnode", "job", "block"]
    table["scheme"] = (
        table.groupby(run)["kernel"]
        .transform(lambda names: names.str.contains("compose", case=False).any())
        .map({True: "semi-Lagrangian", False: "Eulerian"})
    )
    table["x"] = 6 * table["ne"] ** 2 / table["ranks"]
    for (scheme, kernel), series in table.groupby(["scheme", "kernel"]):
        small = series[series["ne"] == SMALL]
        train = [((x,), list(group["wallmax"])) for x, group in small.groupby("x", sort=True)]
        if len(train) < 5 or small["wallmax"].min() < LEAST:
            continue
        for ne, larger in series[series["ne"] > SMALL].groupby("ne"):
            held = [((x,), list(group["wallmax"])) for x, group in larger.groupby("x")]
            held.sort(key=lambda pair: -pair[0][0])
            group = (
                "main loop" if kernel in MAIN_LOOP else "communication" if kernel in COMMUNICATION else "other timers"
            )
            name = f"{kernel}, {scheme}" + ("" if group == "main loop" else f", ne{ne}")
            split = f"homme {group} ne32 -> ne{ne}" if group == "main loop" else f"homme {group} ne32 -> larger"
            yield make(split, name, "homme", ("elements_per_rank",), train, held)
