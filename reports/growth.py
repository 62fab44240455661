"""How kernels grow with the ranks, who overtakes whom, and efficiencies, as people read them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ranksight.analysis.diagnosis.advice import times_as_long
from ranksight.analysis.diagnosis.diagnosing import Diagnosis
from ranksight.analysis.diagnosis.kind import UNKNOWN
from ranksight.analysis.diagnosis.ranking import clear
from ranksight.analysis.diagnosis.scaling import NOTICED
from ranksight.core.arrays import Array, Index, Mask, ratio
from ranksight.core.names import short_names
from ranksight.core.units import format_factor, format_si, in_full
from ranksight.reports.terminal import Block, Column, Table, Text

SMALL = 0.01  # share of the time below which a kernel is counted, not listed
FEW = 5  # kernels that are listed where all are below it
NAME = 36  # columns of a kernel's name in running text


def heavy_rows(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of kernels that weigh something; the largest few where none does."""
    heavy = table[table["share"] >= SMALL]
    return heavy if len(heavy) else table.head(FEW)


def scaling(found: Diagnosis, most: int) -> list[Block]:
    """How kernels scale, and who overtakes whom."""
    table = found.scaling()
    ranks = found.line.ranks
    last, parts = in_full(ranks[-1]), float(ranks[-1] / ranks[0])
    text: list[Block] = [Text(f"from {in_full(ranks[0])} to {last} ranks, {WORK[found.kind]}", style="bold")]
    heavy = heavy_rows(table)
    crossings = clear(found.crossovers()).head(5).to_dict("records")
    crossed = (str(row[side]) for row in crossings for side in ("kernel", "over"))
    names = short_names([*table["kernel"], *crossed], NAME)
    for verdict in ("grows", "saturates", "scales", "undecided"):
        rows = heavy[heavy["verdict"] == verdict].head(most)
        if verdict in ("scales", "undecided"):
            listed = ", ".join(names[name] for name in rows["kernel"])
            growth = (FALLS if found.strong else AT_MOST) if verdict == "scales" else "growth undecided"
            text += [Text(f"{growth}: {listed}", 2)] if listed else []
            continue
        for row in rows.to_dict("records"):
            where = f"{names[row['kernel']]} {growth_words(row)} from {ranks_words(row['at'])} on"
            if verdict == "grows":
                proof = "" if row["named"] else ", by its times alone"
                text.append(Text(f"{where}: {times_as_long(row)}{proof}", 2))
            elif slowly(row):
                longer = f"{format_factor(row['growth'])} times its least"
                text.append(Text(f"{where}: {format_si(row['last'], 's')} at {last}, {longer}", 2))
            else:
                text.append(Text(f"{where}: {saturated(row['last'], row['efficiency'], last, parts)}", 2))
    if text_of := efficiency(found):
        text.append(Text(f"{text_of[0].upper()}{text_of[1:]}", 2))
    return text + [Text(line, 2) for line in dict.fromkeys(crossing(row, found.level, names) for row in crossings)]


WORK = {
    "strong": "work divided among the ranks (strong scaling)",
    "weak": "work the same on every rank (weak scaling)",
    "unknown": UNKNOWN,
}
"""Kinds of scaling in words."""
FALLS = "time still falls at the most ranks"
AT_MOST = "grows at most like log(ranks)"
"""Growth of kernels that scale, in strong and in weak scaling (:mod:`ranksight.analysis.diagnosis.scaling`)."""
SLOWLY = "grows like log(ranks)"
"""Growth of a kernel that more ranks do not shorten, and that grows, by no more than is allowed."""
ROUNDED = 1e-6
"""Part of a rank count by which a crossover at it is off, since both times are rounded."""
GROWN = 1.1
"""Time at the most ranks over that at the fewest from which a kernel has grown, rather than not been divided."""


def slowly(row: Mapping[Any, Any]) -> bool:
    """Whether a kernel that saturates, of a row of :func:`ranksight.analysis.diagnosis.scaling.table`, grows."""
    return bool(row["verdict"] == "saturates" and row["growth"] > NOTICED)


def growth_words(row: Mapping[Any, Any]) -> str:
    """How a kernel grows or saturates, of a row of the same table."""
    return SLOWLY if slowly(row) else str(row["verdict"])


def saturated(seconds: float, efficiency: float, last: str, parts: float = math.inf) -> str:
    """What a kernel takes at the most ranks: against its share of the first, unless that was next to nothing.

    `efficiency`: time at the fewest ranks over `parts` and over `seconds`. `last`: the most ranks. `parts`: into how
    many the work is divided: the most ranks over the fewest.
    """
    taken = f"{format_si(seconds, 's')} at {last}"
    if not efficiency * parts > 1 / GROWN:
        return taken
    return f"{taken}, {format_factor(1 / efficiency)} times its share of divided work"


def ranks_words(count: float) -> str:
    return f"{in_full(count)} rank{'' if count == 1 else 's'}"


def crossing(row: Mapping[object, object], level: float, names: Mapping[str, str]) -> str:
    """A crossover in words: ``search becomes the largest kernel above 123 ranks, 90 %: 80 to 190``."""
    what = "becomes the largest kernel" if row["largest"] else f"overtakes {names[str(row['over'])]}"
    ranks, ends = crossed_at(row)
    said = f"{names[str(row['kernel'])]} {what} above {ranks_words(ranks)}"
    return f"{said}, {level:.0%}: {ends}" if ends else said


def crossed_at(row: Mapping[Any, Any]) -> tuple[int, str]:
    """The most ranks before a crossover, and the ends of its interval in words; empty where they add nothing.

    They add nothing where both are the crossover itself, or where it may be at the fewest ranks already and ends at the
    crossover.
    """
    lower, upper = float(row["lower"]), float(row["upper"])
    ranks = math.floor(float(row["ranks"]) * (1 + ROUNDED))
    if not lower < min(upper, ranks + 0.5) and upper <= ranks + 0.5:
        return ranks, ""
    if lower == lower and upper == upper:
        return ranks, f"{lower:,.0f} to {upper:,.0f}"
    if lower == lower:
        return ranks, f"from {lower:,.0f} on"
    return ranks, f"up to {upper:,.0f}" if upper == upper else "anywhere"


def efficiency(found: Diagnosis) -> str:
    """The program's efficiency at the most ranks, in words; empty where it is not known."""
    value = float(found.efficiencies()["global"].iloc[-1])
    if not np.isfinite(value):
        return ""
    ranks = ranks_words(found.line.ranks[-1])
    if found.insufficient[-1]:
        return f"efficiency at {ranks}: insufficient data"
    share = f"{value:.0%}" if value >= 0.005 else "less than 1%"
    return f"efficiency {share} at {ranks} ({found.kind} scaling)"


EFFICIENCIES = {
    "global": ("global", 0),
    "parallel": ("parallel", 1),
    "load_balance": ("load balance", 2),
    "communication": ("communication", 2),
    "outside": ("outside kernels", 2),
    "computation_scaling": ("computation", 1),
    "instruction_scaling": ("instructions", 2),
    "ipc_scaling": ("IPC", 2),
}
"""Columns of the efficiencies that people read, with their names and depths: each is the product of those below it."""


def efficiency_rows(found: Diagnosis, most: int) -> tuple[Index, list[tuple[str, list[str], Array]], list[str]]:
    """Rows of the table of efficiencies at up to `most` rank counts, evenly spread.

    The rows of the table that are shown; of each column of :data:`EFFICIENCIES` that is known its name, texts and
    values: a text ends with a question mark, or is one, where the data are insufficient; and what is to be said of it.
    """
    table = found.efficiencies()
    take = np.unique(np.linspace(0, len(table) - 1, min(most, len(table))).round().astype(int))
    chosen, unseen = table.iloc[take], _unseen(found)
    marks = {"global": found.insufficient[take], **dict.fromkeys(SPLIT, unseen[take])}
    rows = []
    for name in EFFICIENCIES:
        values = chosen[name].to_numpy(dtype=float)
        if np.isfinite(values).any():
            signs = marks.get(name, np.zeros(len(take), dtype=bool))
            rows.append((name, list(map(_efficiency, values.tolist(), signs.tolist())), values))
    said = []
    if unseen.any():
        first = ranks_words(float(table["ranks"].to_numpy()[unseen][0]))
        said.append(f"IPC from {first} on exceeds that of the same kernels in all runs: {EXTRAPOLATED}")
    if (unknown := ~found.line.settled).any():
        first = ranks_words(float(table["ranks"].to_numpy()[unknown][0]))
        said.append(f"from {first} on the imbalance has insufficient data: computing is not separated from it")
    return take, rows, said


def _efficiency(value: float, doubtful: bool) -> str:
    if not np.isfinite(value):
        return "?"
    return f"{f'{value:.0%}' if value >= 0.005 else '<1%'}{' ?' if doubtful else ''}"


def efficiencies(found: Diagnosis) -> list[Block]:
    """POP efficiencies at up to six rank counts, with a question mark where data are insufficient."""
    take, rows, said = efficiency_rows(found, 6)
    # The least and the most ranks are shown wherever there is room for two columns.
    spare = [0, *range(1, len(take) - 1), 0][: len(take)]
    ranks = found.efficiencies()["ranks"].to_numpy()[take]
    columns = [Column(in_full(count), spare=at) for count, at in zip(ranks, spare, strict=True)]
    texts = [["  " * EFFICIENCIES[name][1] + EFFICIENCIES[name][0], *cells] for name, cells, _ in rows]
    return [Table(["efficiencies at ranks:word", *columns], texts), *(Text(text, 2) for text in said)]


SPLIT = ("load_balance", "computation_scaling", "instruction_scaling", "ipc_scaling")
"""Efficiencies that divide what the mean rank computes from the rest."""
EXTRAPOLATED = "time, instructions and imbalance are extrapolated one by one there"


def _unseen(diagnosis: Diagnosis) -> Mask:
    """Rank counts of the line beyond the runs at which kernels have noticeably more instructions a second than each had
    at any rank count of the runs: other shares of kernels are no reason for doubt."""
    line, ranks = diagnosis.line, diagnosis.line.ranks
    rows = line.separate & np.isfinite(line.instructions).all(axis=1) & (line.mean > 0).all(axis=1)
    beyond = ranks > diagnosis.model.training[:, diagnosis.model.parameters.index("ranks")].max()
    work, seconds = (line.instructions * line.having)[rows], line.mean[rows]
    fastest = np.max(work / seconds, axis=1, initial=0.0, where=~beyond)
    least = ratio(work, fastest[:, None], 0.0).sum(axis=0)
    return np.asarray(beyond & (least > NOTICED * seconds.sum(axis=0)))
