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
from ranksight.units import format_factor

COLUMNS = ["kind", "kernel", "saves", "text"]
HEAVY = 0.01
"""Part of the program's time that advice must save."""
FEWER, MORE = 0.95, 1.5
"""Part of the messages that another layout may keep, and of the volume that it may add, to be worth naming."""


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
        ``kind`` (``growth``, ``imbalance``, ``serial section``, ``serialisation``, ``late arrival``, ``decomposition``,
        ``kernel``, ``network``), ``kernel`` (empty where it is the program's), ``saves`` (part of the program's time at
        the last configuration; NaN where it is not told), ``text``.
    """
    rows: list[tuple[str, str, float, str]] = []
    total = float(evidence.whole[:, -1].sum())
    ranks = int(evidence.ranks[-1])
    for row in scaling[scaling["named"]].to_dict("records"):
        gain = row["share"] * (1 - 1 / row["growth"])
        text = f"grows with the ranks from {row['at']:.0f} on: {format_factor(row['growth'])} times as long at {ranks}"
        rows.append(("growth", str(row["kernel"]), gain, text))
    for row in balance[balance["named"]].to_dict("records"):
        if row["having"] == 1:
            text = f"rank {row['fullest']} alone runs it, and the others wait ({row['metric']}, {row['ranks']} ranks)"
            rows.append(("serial section", str(row["kernel"]), row["lost"], text))
            continue
        text = f"rank {row['fullest']} does {row['ratio']:.2f} times the mean ({row['metric']}, {row['ranks']} ranks)"
        if row["ahead"] == row["ahead"] and ranks != row["ranks"]:
            text += f", the fullest {row['ahead']:.2f} times at {ranks}"
        rows.append(("imbalance", str(row["kernel"]), row["lost"], text))
    rows += _waits(waits, set(balance.loc[balance["named"].astype(bool), "fullest"]))
    whole = evidence.whole[:, -1]
    saved = whatif.savings(causes, evidence.mean, evidence.whole)[:, :, -1]
    for at in np.argsort(-whole, kind="stable").tolist():
        if evidence.kernels[at] == WHOLE or total <= 0 or whole[at] / 2 < HEAVY * total:
            continue
        which = int(saved[:, at].argmax())
        verdict = VERDICTS[causes.verdict[at, -1]]
        text = f"{verdict}; halving its time saves {whole[at] / total / 2:.0%} of the program's"
        if saved[which, at] > 0:
            change, part = whatif.TEXT[whatif.CHANGES[which]], saved[which, at] * whole[at] / total
            text += f"; {change} {part:.0%} are saved"
        rows.append(("kernel", evidence.kernels[at], float(whole[at] / total / 2), text))
    messages = float(evidence.communication[:, -1].sum()) / total if total > 0 else 0.0
    if messages / 2 >= HEAVY:
        rows.append(("network", "", messages / 2, f"messages take {messages:.0%} of the time at {ranks} ranks"))
    if grid is not None:
        rows += _decomposition(grid, ranks, messages)
    found = pd.DataFrame(rows, columns=COLUMNS)
    return found.sort_values("saves", ascending=False, kind="stable").reset_index(drop=True)


def _waits(waits: pd.DataFrame, fullest: set[int]) -> list[tuple[str, str, float, str]]:
    """One row a kernel and state, where it waits most; not where a rank is late that is named as the fullest."""
    named = waits[waits["state"].isin(["serialisation", "late arrival"])].sort_values("part", ascending=False)
    named = named[(named["state"] == "serialisation") | ~named["late"].isin(fullest)]
    rows = []
    for worst in named.drop_duplicates(["kernel", "state"]).to_dict("records"):
        how = (
            "ranks wait for each other in turn, the last for all"
            if worst["state"] == "serialisation"
            else f"ranks wait for rank {worst['late']}, which is late"
        )
        text = f"{worst['operation']}: {how}; {worst['part']:.0%} of the time at {worst['ranks']} ranks"
        rows.append((str(worst["state"]), str(worst["kernel"]), float(worst["part"]), text))
    return rows


def layouts(grid: Cartesian, ranks: int) -> pd.DataFrame:
    """Ways to lay `ranks` out on `grid`, with what each sends (Ding et al. 2018: (3, 2, 2) to (4, 3, 1)).

    A pair of neighbours exchanges two messages, and a cut through the domain is one plane of it sent either way; the
    domain is taken to have equal sides.

    Returns
    -------
    DataFrame
        ``layout`` (tuple), ``default`` (whether ``MPI_Dims_create`` gives it), ``directions`` (with messages),
        ``messages`` (a rank sends, on average), ``volume`` (planes of the domain sent, both ways, over the ranks); the
        fewest messages first.
    """
    rows = []
    for extents in _factorisations(ranks, grid.dimensions):
        # A line of n ranks has n - 1 cuts, a ring as many as ranks.
        cuts = [n * (n > 1) if ring else n - 1 for n, ring in zip(extents, grid.periodic, strict=True)]
        pairs = sum(cut * ranks // n for cut, n in zip(cuts, extents, strict=True))
        default = extents == grid.extents(ranks)
        rows.append((extents, default, sum(n > 1 for n in extents), 2 * pairs / ranks, 2 * sum(cuts) / ranks))
    found = pd.DataFrame(rows, columns=["layout", "default", "directions", "messages", "volume"])
    return found.sort_values(["messages", "volume"], kind="stable").reset_index(drop=True)


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


def _decomposition(grid: Cartesian, ranks: int, weight: float) -> list[tuple[str, str, float, str]]:
    """Whether another layout sends less, where messages weigh."""
    if weight < HEAVY or ranks < 4:
        return []
    found = layouts(grid, ranks)
    mine = found[found["default"]]
    if mine.empty:
        return []
    now = mine.iloc[0]
    fewer = found[(found["messages"] <= FEWER * now["messages"]) & (found["volume"] <= MORE * now["volume"])]
    if fewer.empty:
        return []
    best = fewer.iloc[0]
    messages, volume = (best[name] / now[name] - 1 for name in ("messages", "volume"))
    text = (
        f"{_written(best['layout'])} instead of {_written(now['layout'])}: {messages:+.0%} messages, {volume:+.0%} "
        "volume; worth it where messages are small"
    )
    return [("decomposition", "", float("nan"), text)]


def _written(layout: tuple[int, ...]) -> str:
    return " x ".join(map(str, layout))


def observed(extras: Mapping[str, Any]) -> Mapping[str, Any]:
    """What was kept of the measurements, empty where nothing was."""
    given = extras.get("diagnosis")
    return given if isinstance(given, Mapping) else {}
