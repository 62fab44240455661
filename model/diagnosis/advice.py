"""What to do: what mending each trouble gives at the target, and how the ranks may be laid out better."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ranksight.comm.patterns.grid import Cartesian
from ranksight.experiment import WHOLE
from ranksight.model.diagnosis import whatif
from ranksight.model.diagnosis.causes import VERDICTS, Causes
from ranksight.model.diagnosis.evidence import Evidence

COLUMNS = ["kind", "kernel", "saves", "text"]
HEAVY = 0.01
"""Part of the program's time that advice must save."""


def table(
    evidence: Evidence,
    causes: Causes,
    scaling: pd.DataFrame,
    balance: pd.DataFrame,
    waits: pd.DataFrame,
    grid: Cartesian | None,
) -> pd.DataFrame:
    """Troubles that are named and what helps, those that save most first.

    Returns
    -------
    DataFrame
        ``kind`` (``growth``, ``imbalance``, ``serialisation``, ``late arrival``, ``decomposition``, ``kernel``,
        ``network``), ``kernel`` (empty where it is the program's), ``saves`` (part of the program's time at the last
        configuration; NaN where it is not told), ``text``.
    """
    rows: list[tuple[str, str, float, str]] = []
    total = float(evidence.whole[:, -1].sum())
    ranks = int(evidence.ranks[-1])
    for row in scaling[scaling["named"]].to_dict("records"):
        gain = row["share"] * (1 - 1 / row["growth"])
        text = f"grows with the ranks from {row['at']:.0f} on: {row['growth']:.3g} times as long at {ranks}"
        rows.append(("growth", str(row["kernel"]), gain, text))
    for row in balance[balance["named"]].to_dict("records"):
        text = f"rank {row['fullest']} does {row['ratio']:.2f} times the mean ({row['metric']}, {row['ranks']} ranks)"
        rows.append(("imbalance", str(row["kernel"]), row["lost"], text))
    rows += _waits(waits)
    whole = evidence.whole[:, -1]
    saved = whatif.savings(causes, evidence.computing, evidence.whole)[:, :, -1]
    for at in np.argsort(-whole, kind="stable").tolist():
        if evidence.kernels[at] == WHOLE or total <= 0 or whole[at] / 2 < HEAVY * total:
            continue
        which = int(saved[:, at].argmax())
        verdict = VERDICTS[causes.verdict[at, -1]] if evidence.ok[at, -1] else VERDICTS[-1]
        text = f"{verdict}; twice as fast saves {whole[at] / total / 2:.0%} of the program"
        if saved[which, at] > 0:
            text += f", {whatif.TEXT[whatif.CHANGES[which]]} {saved[which, at] * whole[at] / total:.0%}"
        rows.append(("kernel", evidence.kernels[at], float(whole[at] / total / 2), text))
    messages = float(evidence.communication[:, -1].sum()) / total if total > 0 else 0.0
    if messages / 2 >= HEAVY:
        rows.append(("network", "", messages / 2, f"messages take {messages:.0%} of the time at {ranks} ranks"))
    if grid is not None:
        rows += _decomposition(grid, ranks, messages)
    found = pd.DataFrame(rows, columns=COLUMNS)
    return found.sort_values("saves", ascending=False, kind="stable").reset_index(drop=True)


def _waits(waits: pd.DataFrame) -> list[tuple[str, str, float, str]]:
    """One row a kernel and state, at the measured configuration where it waits most."""
    named = waits[waits["state"].isin(["serialisation", "late arrival"])].sort_values("part", ascending=False)
    rows = []
    for worst in named.drop_duplicates(["kernel", "state"]).to_dict("records"):
        how = (
            "ranks wait for each other in turn, the last for all"
            if worst["state"] == "serialisation"
            else "ranks wait for one that is late"
        )
        text = f"{worst['operation']}: {how}; {worst['part']:.0%} of the time at {worst['ranks']} ranks"
        rows.append((str(worst["state"]), str(worst["kernel"]), float(worst["part"]), text))
    return rows


def layouts(grid: Cartesian, ranks: int) -> pd.DataFrame:
    """Ways to lay `ranks` out on `grid`, with what each sends (Ding et al. 2018: (3, 2, 2) to (4, 3, 1)).

    For a domain of equal sides cut into boxes, the fullest rank's faces to neighbours are its messages, and their
    area, relative to a side of the domain squared, its volume.

    Returns
    -------
    DataFrame
        ``layout`` (tuple), ``default`` (whether ``MPI_Dims_create`` gives it), ``directions`` (with messages),
        ``messages`` and ``area`` (of the fullest rank), fewest messages and least area first.
    """
    rows = []
    for extents in _factorisations(ranks, grid.dimensions):
        # A rank inside a line has two neighbours along it, at the end of a line of two it has one; a ring has no ends.
        faces = [2 * (n > 1) if ring else min(2, n - 1) for n, ring in zip(extents, grid.periodic, strict=True)]
        area = sum(count * math.prod(1 / m for j, m in enumerate(extents) if j != d) for d, count in enumerate(faces))
        rows.append((extents, extents == grid.extents(ranks), sum(n > 1 for n in extents), sum(faces), area))
    found = pd.DataFrame(rows, columns=["layout", "default", "directions", "messages", "area"])
    return found.sort_values(["area", "messages"], kind="stable").reset_index(drop=True)


def _factorisations(ranks: int, dimensions: int) -> list[tuple[int, ...]]:
    """Ordered factors of `ranks`, largest first, without repeats by permutation."""
    divisors = [d for d in range(1, math.isqrt(ranks) + 1) if ranks % d == 0]
    divisors = sorted({*divisors, *(ranks // d for d in divisors)})
    if dimensions == 1:
        return [(ranks,)]
    found = set()
    for some in itertools.combinations_with_replacement(divisors, dimensions - 1):
        product = math.prod(some)
        if ranks % product == 0:
            found.add(tuple(sorted((*some, ranks // product), reverse=True)))
    return sorted(found)


def _decomposition(grid: Cartesian, ranks: int, messages: float) -> list[tuple[str, str, float, str]]:
    """Whether another layout sends less, where messages weigh."""
    if messages < HEAVY or ranks < 4:
        return []
    found = layouts(grid, ranks)
    mine = found[found["default"]]
    if mine.empty:
        return []
    now = mine.iloc[0]
    fewer = found[(found["messages"] < now["messages"]) & (found["area"] <= 1.5 * now["area"])]
    if fewer.empty:
        return []
    best = fewer.iloc[0]
    text = (
        f"{_written(best['layout'])} instead of {_written(now['layout'])}: {best['messages']} messages an exchange "
        f"instead of {now['messages']}, volume {best['area'] / now['area'] - 1:+.0%}"
    )
    return [("decomposition", "", float("nan"), text)]


def _written(layout: tuple[int, ...]) -> str:
    return " x ".join(map(str, layout))


def observed(extras: Mapping[str, Any]) -> Mapping[str, Any]:
    """What was kept of the measurements, empty where nothing was."""
    given = extras.get("diagnosis")
    return given if isinstance(given, Mapping) else {}
