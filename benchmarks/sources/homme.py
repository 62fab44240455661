"""HOMME on Summit: trained on the smallest grid (ne32, 6 to 96 ranks), asked for up to ne1024 and 27,600 ranks.

The parameter is the work per rank, x = 6 ne^2 / ranks elements; ranks and ne accompany it as hidden parameters,
because x stays in the measured range while they leave it by up to 287 times. A second set of splits has both
parameters, ranks and ne, trained on ne32 to ne128 and asked for ne256 to ne1024. Runs with a ``compose`` timer use
the semi-Lagrangian tracer scheme, the others the Eulerian one; the two are series of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.tasks import Array, Task, make

SMALL = 32
MAIN_LOOP = ("prim_main_loop",)
COMMUNICATION = ("caar_bexchV", "hvf-bexch")
MIDDLE = 128
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
        if small["x"].nunique() < 5 or small["wallmax"].min() < LEAST:
            continue
        group = "main loop" if kernel in MAIN_LOOP else "communication" if kernel in COMMUNICATION else "other timers"
        train = _pairs(small, ["x"])
        for ne, larger in series[series["ne"] > SMALL].groupby("ne"):
            name = f"{kernel}, {scheme}" + ("" if group == "main loop" else f", ne{ne}")
            split = f"homme {group} ne32 -> ne{ne}" if group == "main loop" else f"homme {group} ne32 -> larger"
            task = make(split, name, "homme by x", ("elements_per_rank",), train, _pairs(larger, ["x"])[::-1])
            hidden, hidden_targets = _raw(task.points, SMALL), _raw(task.targets, float(str(ne)))
            yield replace(task, hidden=hidden, hidden_targets=hidden_targets)
        below, above = series[series["ne"] <= MIDDLE], series[series["ne"] > MIDDLE]
        split = f"homme {group} ranks and ne to ne128 -> ne1024"
        held = _pairs(above, ["ne", "ranks"])
        yield make(
            split,
            f"{kernel}, {scheme}",
            "homme",
            ("ranks", "ne"),
            [((ranks, ne), values) for (ne, ranks), values in _pairs(below, ["ne", "ranks"])],
            [((ranks, ne), values) for (ne, ranks), values in held],
        )


def _raw(points: Array, ne: float) -> Array:
    """Ranks and ne (n, 2) behind the work per rank (n, 1)."""
    return np.column_stack([6 * ne**2 / points[:, 0], np.full(len(points), ne)])


def _pairs(table: pd.DataFrame, columns: list[str]) -> list[tuple[tuple[float, ...], list[float]]]:
    """Points and the values measured there, in order of the points."""
    found = []
    for key, group in table.groupby(columns, sort=True):
        point = key if isinstance(key, tuple) else (key,)
        found.append((tuple(float(part) for part in point), list(group["wallmax"])))
    return found
