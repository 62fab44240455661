"""What to do: what mending each trouble gives at the target, and how the ranks may be laid out better."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import numpy as np
import pandas as pd

from ranksight.analysis.diagnosis.causes import VERDICTS, Causes
from ranksight.analysis.diagnosis.evidence import Evidence
from ranksight.analysis.diagnosis.verdicts import CHANGED, CHANGES, savings
from ranksight.core.experiment import WHOLE
from ranksight.core.units import counted, format_factor, format_si, in_full
from ranksight.model.application.rankclasses import named_class, named_rank

COLUMNS = ["kind", "kernel", "saves", "text"]
DOUBLED = 2.0
"""Memory of a rank at the end of a line over that at the most ranks measured from which it is named."""
HEAVY = 0.01
"""Part of the program's time that advice must save."""
NOTHING = 0.005
"""Part of the program's time that is 0 % in words: growth that costs no more is no trouble yet."""
UNDIVIDED = 0.05
"""Part of the program's time from which work that more ranks do not shorten is named."""
Row = tuple[str, str, float, str]
"""The four columns of :data:`COLUMNS`."""


def table(
    evidence: Evidence,
    causes: Causes,
    scaling: pd.DataFrame,
    balance: pd.DataFrame,
    teams: pd.DataFrame,
    waits: pd.DataFrame,
    saturation: pd.DataFrame,
    busiest: Set[tuple[tuple[float, ...], int]] = frozenset(),
    layout: tuple[str, float] | None = None,
    memory: str = "",
) -> pd.DataFrame:
    """Troubles that are named and what helps, those that save most first.

    `busiest` are configurations and the ranks that have most of an uneven kernel there, whose late arrival is reported
    with it; `layout` is another one of the ranks in words and the seconds that it saves, `memory` of :func:`memory`.

    Columns: ``kind`` (``growth``, ``undivided work``, ``imbalance``, ``serial section``, ``team imbalance``,
    ``serialisation``, ``late arrival``, ``saturation``, ``memory``, ``decomposition``, ``kernel``, ``network``,
    ``outside``), ``kernel`` (empty where it is the program's), ``saves`` (part of the program's time at the last
    configuration; NaN where unknown), ``text``.
    """
    total, ranks = float(evidence.total[-1]), int(evidence.ranks[-1])
    rows = growing(scaling)
    rows += undivided(evidence, scaling[~scaling["kernel"].isin(balance.loc[balance["named"], "kernel"])])
    rows += uneven(balance, ranks, evidence.slowest[-1] if evidence.slowest else "")
    rows += uneven_teams(teams)
    rows += late_or_in_turn(waits, busiest)
    for row in saturation.to_dict("records"):
        text = f"the memory domain saturates at {row['ranks']} of {row['cores']} ranks"
        rows.append(("saturation", str(row["kernel"]), float("nan"), text))
    if memory:
        rows.append(("memory", "", float("nan"), memory))
    if total > 0:
        rows += halved(evidence, causes, total)
        if layout is not None and layout[1] >= HEAVY * total:
            rows.append(("decomposition", "", layout[1] / total, layout[0]))
    advice = pd.DataFrame(rows, columns=COLUMNS)
    return advice.sort_values("saves", ascending=False, kind="stable", ignore_index=True)


def growing(scaling: pd.DataFrame) -> list[Row]:
    """One row a kernel that is named for its growth with the ranks, of which it may keep what is allowed."""
    rows = []
    for row in scaling[scaling["named"]].to_dict("records"):
        gain = row["share"] * (1 - min(row["allowed"] / row["growth"], 1.0))
        if gain < NOTHING:
            continue
        text = f"grows with the ranks from {row['at']:.0f} on: {times_as_long(row)}"
        rows.append(("growth", str(row["kernel"]), gain, text))
    return rows


def times_as_long(row: Mapping[Any, Any]) -> str:
    """How many times as long a kernel takes at how many ranks, of a row of
    :func:`ranksight.analysis.diagnosis.scaling.table`."""
    return f"{'at least ' if row['bound'] else ''}{format_factor(row['growth'])} times as long at {in_full(row['to'])}"


def uneven(balance: pd.DataFrame, ranks: int, slowest: str = "") -> list[Row]:
    """One row a kernel that one rank alone runs, or some rank has more of than the mean.

    `slowest`: the class of ranks that the program waits for at `ranks`.
    """
    rows = []
    for row in balance[balance["named"]].to_dict("records"):
        busiest = named_rank(row["busiest"], row["ranks"])
        comma = "," * ("," in busiest)
        if row["having"] == 1:
            text = f"only {busiest}{comma} runs it, and the others wait ({row['metric']}, {row['ranks']} ranks)"
            rows.append(("serial section", str(row["kernel"]), row["lost"], text))
            continue
        text = f"{busiest}{comma} does {row['ratio']:.2f} times the mean ({row['metric']}, {row['ranks']} ranks)"
        if row["lost"] != row["lost"]:
            text += f"; insufficient data for its imbalance at {ranks}"
        elif row["ahead"] == row["ahead"] and ranks != row["ranks"]:
            text += f", the busiest rank {row['ahead']:.2f} times at {ranks}"
            if late := named_class(slowest, ranks):
                text += f", where all wait for {late}"
        rows.append(("imbalance", str(row["kernel"]), row["lost"], text))
    return rows


def uneven_teams(teams: pd.DataFrame) -> list[Row]:
    """One row a kernel of which one thread does more than the mean of its team."""
    rows = []
    for row in teams[teams["named"].astype(bool)].to_dict("records"):
        where = f"{row['metric']}, {row['ranks']} ranks of {row['threads']} threads"
        text = f"thread {row['thread']} does {row['ratio']:.2f} times the mean of its team ({where})"
        rows.append(("team imbalance", str(row["kernel"]), row["lost"], text))
    return rows


def halved(evidence: Evidence, causes: Causes, total: float) -> list[Row]:
    """What half the time of each kernel, of messages and of what is outside of kernels saves of the program's `total`
    at the last configuration; no row where it is less than :data:`HEAVY`."""
    rows = []
    whole, ranks = evidence.whole[:, -1], int(evidence.ranks[-1])
    saved = savings(causes, evidence.mean, evidence.whole)[:, :, -1]
    for at in np.argsort(-whole, kind="stable").tolist():
        if evidence.kernels[at] == WHOLE or whole[at] / 2 < HEAVY * total:
            continue
        which = int(saved[:, at].argmax())
        verdict = VERDICTS[causes.verdict[at, -1]]
        text = f"{verdict}; halving its time saves {whole[at] / total / 2:.0%} of the program's"
        if saved[which, at] > 0:
            change, part = CHANGED[CHANGES[which]], saved[which, at] * whole[at] / total
            text += f"; {change} {part:.0%} are saved"
        rows.append(("kernel", evidence.kernels[at], float(whole[at] / total / 2), text))
    messages = float(evidence.communication[~evidence.files[:, 0], -1].sum()) / total
    if messages / 2 >= HEAVY:
        rows.append(("network", "", messages / 2, f"messages take {messages:.0%} of the time at {ranks} ranks"))
    outside = float(evidence.others[-1]) / total
    if outside / 2 >= HEAVY:
        text = f"start, end, files and halted cycles outside of kernels take {outside:.0%} of the time at {ranks} ranks"
        rows.append(("outside", "", outside / 2, text))
    return rows


def undivided(evidence: Evidence, scaling: pd.DataFrame) -> list[Row]:
    """One row a kernel that computes and saturates in strong scaling, where dividing it would save much (Amdahl 1967,
    *AFIPS Spring Joint Computer Conference*, 483)."""
    computes = evidence.computing[:, -1] > evidence.communication[:, -1] + evidence.imbalance[:, -1]
    computing_kernels = scaling["kernel"].isin(np.array(evidence.kernels)[computes])
    lost = scaling["share"] * (1 - scaling["efficiency"])
    stuck = scaling.assign(lost=lost)[(scaling["verdict"] == "saturates") & computing_kernels & (lost >= UNDIVIDED)]
    return [
        (
            "undivided work",
            str(row["kernel"]),
            float(row["lost"]),
            f"hardly divided beyond {counted(int(row['at']), 'rank')}: {format_factor(1 / row['efficiency'])} times "
            f"its share of divided work at {evidence.ranks[-1]:.0f}",
        )
        for row in stuck.to_dict("records")
    ]


def late_or_in_turn(waits: pd.DataFrame, busiest: Set[tuple[tuple[float, ...], int]]) -> list[Row]:
    """One row a kernel and state, where it waits most; not where a rank is late that is the busiest there."""
    named = waits[waits["state"].isin(["serialisation", "late arrival"])].sort_values("part", ascending=False)
    places = zip(named["configuration"], named["late"], strict=True)
    known = np.array([(tuple(point), int(late)) in busiest for point, late in places], dtype=bool)
    named = named[(named["state"] == "serialisation") | ~known]
    rows = []
    for worst in named.drop_duplicates(["kernel", "state"]).to_dict("records"):
        how = (
            "ranks wait for each other in turn, the last for all"
            if worst["state"] == "serialisation"
            else f"ranks wait for {named_rank(int(worst['late']), int(worst['ranks']))}, which is late"
        )
        text = f"{worst['operation']}: {how}; {worst['part']:.0%} of the time at {worst['ranks']} ranks"
        rows.append((str(worst["state"]), str(worst["kernel"]), float(worst["part"]), text))
    return rows


def memory(line: Evidence, measured: float) -> str:
    """How the memory of a rank grows with the ranks from the most that were `measured`; empty where it does not.

    It grows where even the lower end of its interval has :data:`DOUBLED` at the end of the line: data that every rank
    holds of all ranks outgrow a node's memory long before they cost time.
    """
    if line.memory is None or not line.ranks[0] <= measured < line.ranks[-1]:
        return ""
    value, low, _ = line.memory
    now = float(np.interp(measured, line.ranks, value))
    if not low[-1] > DOUBLED * now:
        return ""
    growth = f"{format_si(now, 'B')} at {measured:g}, at least {format_si(float(low[-1]), 'B')} at {line.ranks[-1]:g}"
    return f"the memory of a rank grows with the ranks: {growth}"
