"""A diagnosis as people read it: a screen of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ranksight.analysis.diagnosis.diagnosing import Diagnosis
from ranksight.analysis.diagnosis.scaling import grows_outside
from ranksight.analysis.diagnosis.verdicts import FILES, OUTSIDE, REST_UNKNOWN
from ranksight.core.names import short_names
from ranksight.core.units import counted, format_factor, format_program, format_si, in_full, in_words, some_of
from ranksight.model.application.exchanged import MEANINGS
from ranksight.model.notes import ended, one_domain
from ranksight.model.uncertainty.forecast import IMPUTED, REASONS
from ranksight.reports import equation_terms
from ranksight.reports.growth import NAME, SMALL, efficiencies, efficiency, heavy_rows, ranks_words, scaling
from ranksight.reports.palette import NAMES
from ranksight.reports.pasted import of_frame
from ranksight.reports.terminal import Block, Cell, Column, Table, Text, sparkline

OVERLAP = 1.2  # sum of the kernels over the program's time from which they are said to overlap
SHORT = {name: text for name, text in NAMES.items() if name != "others"}
HELPS = {"execution": "execution x2", "caches": "caches x2", "memory": "memory x2", "network": "messages x2",
         "balance": "balance"}  # fmt: skip


STYLES = {"memory-bound": "magenta", "cache-bound": "magenta", "latency-bound": "magenta", "compute-bound": "green",
          "communication-bound": "yellow", "imbalance-bound": "red", "undecided": "dim"}  # fmt: skip
WAITS = ("serialisation", "late arrival")
"""Problems found in measured times in MPI, and not in the model."""
NO_RANKS = (
    "note: what limits scaling, and efficiency, are shown over the number of ranks, which is no parameter of these "
    "runs: import a column that counts all ranks, of all nodes, with --parameter ranks=COLUMN"
)
POINTS = 6  # bars of a curve over ranks


def blocks(found: Diagnosis, most: int = 12) -> list[Block]:
    """The whole diagnosis.

    `most`: kernels and rows listed of each table.
    """
    said: list[Block] = []
    table = found.verdicts()
    parameters = list(found.model.parameters)
    curves = _shares(found) if "ranks" in parameters else {}
    for point, part in table.groupby(parameters, sort=False):
        at = int(np.flatnonzero((found.evidence.points == np.asarray(point)).all(axis=1))[0])
        said += [*_program(found, at), *_configuration(part, most, curves), ""]
    if "ranks" in parameters:
        said += [*scaling(found, most), "", *efficiencies(found), ""] if _varied(found) else [_unvaried(found), ""]
    else:
        said += [Text(NO_RANKS, 0), ""]
    said += _terms(found, most) + _pairs(found, most) + _exchanges(found, most) + _algorithms(found, most)
    if "ranks" in parameters:
        said += _advice(found, most)
    while said and said[-1] == "":
        said.pop()
    if machine := found.model.equation.machine:
        said += ["", *(Text(f"note: {each}", 0) for each in machine.assumed)]
    return said


def frame_of(found: Diagnosis, table: str) -> pd.DataFrame:
    """One table of the diagnosis by its name, with a column for each parameter in place of its configurations."""
    frame: pd.DataFrame = getattr(found, table)()
    if "configuration" not in frame:
        return frame
    names = list(found.model.parameters)
    points = [list(at.values()) if isinstance(at, Mapping) else list(at) for at in frame["configuration"]]
    places = pd.DataFrame(points, columns=names, index=frame.index)
    new = [name for name in names if name not in frame]
    return pd.concat([places[new], frame.drop(columns="configuration")], axis=1)


def blocks_of(found: Diagnosis, table: str, most: int = 12) -> list[Block]:
    """One table of the diagnosis by its name, as :func:`blocks` has it where it is there.

    `most`: rows listed.
    """
    if table == "efficiencies":
        return efficiencies(found)
    if table != "verdicts":
        frame = frame_of(found, table)
        return [of_frame(frame.head(most)) if len(frame) else f"{table}: none at this configuration"]
    parameters = list(found.model.parameters)
    said: list[Block] = []
    for point, part in found.verdicts().groupby(parameters, sort=False):
        at = int(np.flatnonzero((found.evidence.points == np.asarray(point)).all(axis=1))[0])
        said += [*_program(found, at), *_configuration(part, most, {})]
    return said


def _shares(found: Diagnosis) -> dict[str, str]:
    """Each kernel's share of the time over the ranks of the line, as a curve from nothing to the largest share."""
    table = found.rankings()
    wide = table.pivot(index="kernel", columns="ranks", values="share")
    take = np.unique(np.linspace(0, wide.shape[1] - 1, min(POINTS, wide.shape[1])).round().astype(int))
    values = wide.to_numpy(dtype=float)[:, take]
    most = float(np.nanmax(values, initial=0.0))
    return {str(kernel): sparkline(row, 0.0, most) for kernel, row in zip(wide.index, values, strict=True)}


def _program(found: Diagnosis, at: int) -> list[Block]:
    """The program's time at one configuration, as a prediction gives it, and what it is spent on."""
    where, program = in_words(dict(zip(found.model.parameters, found.evidence.points[at], strict=True))), found.program
    machine = found.model.equation.machine
    where = f"{where} on {machine.name}" if machine else where
    spent = sorted(found.parts.items(), key=lambda item: -item[1][at])
    parts = ", ".join(f"{NAMES[name]} {share[at]:.0%}" for name, share in spent if share[at] >= 0.005)
    if program is None or not np.isfinite(program.value[0, at]):
        return [Text(f"{where}: insufficient data for the program's time", style="bold"), Text(f"spent on {parts}", 2)]
    time, low, high = (format_program(float(end[0, at])) for end in (program.value, program.lower, program.upper))
    head = f"{where}: {time}, {found.level:.0%} interval {low} to {high}"
    if reason := str(program.reason[0, at]) if program.status[0, at] else "":
        head = f"{where}: {time}, insufficient: {reason}"
    said: list[Block] = [Text(head, style="bold"), Text(f"spent on {parts}", 2)]
    sums = float(found.evidence.total[at] / program.value[0, at])
    if sums > OVERLAP:
        said.append(Text(f"the kernels add up to {sums:.2g} times the program's time; shares are of their sum", 2))
    for of_point in (one_domain, ended):
        if note := of_point(found.model, found.evidence.points[at : at + 1]):
            said.append(Text(f"note: {note}", 2))
    return said


def _configuration(part: pd.DataFrame, most: int, curves: Mapping[str, str]) -> list[Block]:
    """The kernels' verdicts at one configuration."""
    shown = heavy_rows(part).head(most)
    rows = []
    for row in shown.to_dict("records"):
        level = f" ({row['level']})" if row["verdict"] in ("cache-bound", "latency-bound") and row["level"] else ""
        helps = f"{HELPS[row['change']]}: -{row['saves']:.0%}" if row["saves"] >= 0.005 else "-"
        says = helps if row["verdict"] != "undecided" else _short(row)
        verdict = Cell(row["verdict"] + level, STYLES.get(row["verdict"], ""))
        share = f"{row['share']:.0%}"
        mark = "" if row["status"] == "ok" else " ?"
        trend = curves.get(row["kernel"], "")
        rows.append([row["kernel"], format_si(row["time"], "s") + mark, share, trend, verdict, says])
    drawn = Column("trend", "word", spare=3, silent=True)
    heads: list[Column | str] = [
        Column("kernel", "name", least=13),
        "wall time/1",
        "share",
        drawn,
        "verdict:word",
        "what helps most:text/2",
    ]
    said: list[Block] = [Table(heads, rows, 2)]
    silent = shown.loc[shown["reason"] == REASONS[IMPUTED], "kernel"].tolist()
    if silent:
        names = ", ".join(short_names(silent, NAME).values())
        said.append(Text(f"{names}: {REASONS[IMPUTED]}", 2))
    for row in shown[shown["reason"].str.startswith(OUTSIDE)].to_dict("records"):
        said.append(Text(f"{short_names([row['kernel']], NAME)[row['kernel']]}: {row['reason']}", 2))
    for reason, rows_of in shown[(shown["status"] != "ok") & (shown["reason"] != "")].groupby("reason", sort=False):
        names = ", ".join(short_names(rows_of["kernel"], NAME).values())
        said.append(Text(f"insufficient: {names}: {reason}", 2, style="yellow"))
    left = part.iloc[len(shown) :]
    if len(left):
        said.append(Text(f"{len(left)} more, {left['share'].sum():.0%} of the time; --format csv lists all", 2))
    return said


def _short(row: Mapping[Any, Any]) -> str:
    """Why a kernel is undecided, in a few words; the table of verdicts has them all."""
    if row["reason"] == REASONS[IMPUTED]:
        return "0 samples: run longer"
    if row["reason"].startswith(OUTSIDE):
        return "waits: files" if row["reason"] == FILES else "waits: few cycles"
    if row["unknown"] > 0.5:
        return "parts not counted"
    if REST_UNKNOWN in row["reason"]:
        return f"{max(set(SHORT) - {'unknown'}, key=lambda name: row[name])} or not counted"
    if " or " in row["reason"]:
        order = sorted(SHORT, key=lambda name: -row[name])[:2]
        return f"{SHORT[order[0]]} or {SHORT[order[1]]}"
    return "insufficient data for its time"


def _varied(found: Diagnosis) -> bool:
    """Whether runs were of more than one number of ranks."""
    return len(np.unique(_measured_at(found))) > 1


def _measured_at(found: Diagnosis) -> np.ndarray[Any, np.dtype[np.float64]]:
    return found.model.training[:, found.model.parameters.index("ranks")]


def _unvaried(found: Diagnosis) -> Text:
    ranks = ranks_words(_measured_at(found)[0])
    return Text(f"all runs were of {ranks}: its growth with the ranks is not known", style="bold")


def _examined(found: Diagnosis) -> str:
    """Growth, efficiency, imbalance and waiting where no trouble was found, and what was not measured."""
    table, scaling = found.efficiencies(), found.scaling()
    known = table[["load_balance", "communication"]].notna().any()
    if _varied(found):
        grows, large = scaling["verdict"] == "grows", scaling["share"] >= SMALL
        heavy = "of 1% of the time or more " if (grows & ~large).any() else ""
        open_ = int(((scaling["verdict"] == "undecided") & large).sum())
        listed = list(short_names(scaling.loc[grows & large, "kernel"], NAME).values())
        growth = "is known to grow" if open_ else "grows"
        said = [f"no {'other ' if listed else ''}kernel {heavy}{growth} faster than log(ranks)", efficiency(found)]
        if listed:
            how = "at a cost below 1%" if scaling.loc[grows & large, "named"].any() else "by times alone"
            grown = f"{how}, {some_of(listed)} grow{'s' * (len(listed) == 1)} faster than log(ranks)"
            said[:1] = [grown, *(said[:1] if len(listed) < len(scaling) else [])]
        said[-1:-1] = [f"growth of {counted(open_, 'kernel')} is undecided"] if open_ else []
        said[-1:-1] = ["the time outside of kernels grows faster than log(ranks)"] * grows_outside(found.line)
    else:
        said = ["growth is not known: measure several numbers of ranks"]
    if known["load_balance"]:
        balance = float(table["load_balance"].iloc[-1])
        uneven = f"is {format_factor(1 / balance)}" if balance == balance else f"at {ranks_words(found.line.ranks[-1])}"
        said.append(f"imbalance {uneven}{'' if balance == balance else ': insufficient data'}")
    if known["communication"]:
        said.append("no serialised waiting was found")
    unknown = [text for name, text in (("load_balance", "ranks"), ("communication", "messages")) if not known[name]]
    said += [f"{' and '.join(unknown)} were not measured one by one"] if unknown else []
    text = "; ".join(filter(None, said))
    return f"{text[0].upper()}{text[1:]}."


def _terms(found: Diagnosis, most: int) -> list[Block]:
    """CPI_exec, BF_mem and clock of the largest kernels and T_others, from the fewest ranks to the target."""
    table = found.terms().astype(object).where(lambda held: held.notna(), None)
    rows: list[dict[str, Any]] = [{str(name): x for name, x in row.items()} for row in table.to_dict("records")]
    verdicts = found.verdicts()
    last = verdicts.loc[(verdicts[list(found.model.parameters)] == found.target).all(axis=1)]
    made = equation_terms.largest(rows, heavy_rows(last)["kernel"], found.level, most)
    return [Text("terms of the equation", style="bold"), *made, ""] if made else []


def _pairs(found: Diagnosis, most: int) -> list[Block]:
    """Kernels that differ in their memory blocking factor only."""
    rows = found.pairs().head(min(3, most)).to_dict("records")
    names = short_names((row[side] for row in rows for side in ("kernel", "other")), NAME)
    text: list[Block] = []
    for row in rows:
        who = f"{names[row['kernel']]} and {names[row['other']]}"
        same = f"{who} have the same CPI ({row['cpi']:.2f}, {row['other_cpi']:.2f})"
        held = f"stall {row['held']:.0%} of the first and {row['other_held']:.0%} of the other"
        text.append(Text(f"{same}; memory and caches {held}", 2))
    return [Text("similar and different kernels", style="bold"), *text, ""] if text else []


def _exchanges(found: Diagnosis, most: int) -> list[Block]:
    """Communication where it was measured on cores of its own: BF_comm, and what one call took."""
    text: list[Block] = []
    blocking = found.blocking()
    if len(blocking):
        factors = blocking.to_dict("records")
        shown: list[list[str | Cell]] = [
            [
                in_words(row["configuration"]),
                format_si(row["communication"], "s"),
                format_factor(row["factor"]),
                f"{format_factor(row['lower'])} .. {format_factor(row['upper'])}",
                row["method"],
            ]
            for row in factors
        ]
        columns = ["at:name", "communication", "BF_comm",
                   f"{found.level:.0%} interval:word/1", ":word"]  # fmt: skip
        text += [
            Table(columns, shown[:most] + shown[most:][-1:], 2),
            Text(f"BF_comm {MEANINGS[factors[-1]['meaning']]}", 2),
        ]
    fitted = found.fitted_costs()
    rows = [[row["operation"], row["formula"]] for row in fitted[fitted["formula"] != ""].head(most).to_dict("records")]
    if rows:
        text.append(Table(["operation:name", "seconds of a call, P ranks, n bytes:text"], rows, 2))
    return [Text("communication as measured", style="bold"), *text, ""] if text else []


def _algorithms(found: Diagnosis, most: int) -> list[Block]:
    """The algorithm of each collective at the target, and the fastest other one."""
    table = found.algorithms()
    rows = table[table["share"] >= SMALL].head(most).to_dict("records")
    names = short_names((row["kernel"] for row in rows), NAME)
    text: list[Block] = [
        Text(
            f"{names[row['kernel']]}, {row['operation']}: {changed(row)}, {format_si(row['seconds'], 's')} a call; "
            f"{row['other']} takes {format_si(row['other_seconds'], 's')}",
            2,
        )
        for row in rows
    ]
    return [Text("algorithms of collectives", style="bold"), *text, ""] if text else []


def changed(row: Mapping[Any, Any]) -> str:
    """The algorithm of a row of :data:`ranksight.analysis.diagnosis.exchanges.ALGORITHMS`, and that of the runs where
    another was taken there."""
    other = row["runs"] not in ("", row["algorithm"])
    return f"{row['algorithm']} ({row['runs']} in the runs)" if other else str(row["algorithm"])


def _advice(found: Diagnosis, most: int) -> list[Block]:
    """Troubles, then what optimising gives at the target."""
    table = found.advice()
    named = table[~table["kind"].isin(["kernel", "network", "outside", "decomposition"])]
    names = short_names(filter(None, named["kernel"].head(most)), NAME)
    text: list[Block] = []
    for row in named.head(most).to_dict("records"):
        gain = f", {row['saves']:.0%} of the time" if row["saves"] == row["saves"] and row["kind"] not in WAITS else ""
        who = f"{names[row['kernel']]}: " if row["kernel"] else ""
        text.append(Text(f"{row['kind']}: {who}{row['text']}{gain}", 2))
    head = Text("troubles named", style="bold")
    if named["kind"].isin(WAITS).any():
        text.append(Text("Waiting of ranks for each other is part of no predicted time and of no efficiency above.", 2))
    text = [head, *text] if text else [_examined(found)]
    for row in table[table["kind"] == "decomposition"].to_dict("records"):
        saves = f"{row['text']}; {row['saves']:.0%} of the time"
        text += ["", Text("another layout of the ranks", style="bold"), Text(saves, 2)]
    target = found.target[list(found.model.parameters).index("ranks")]
    gains = table[table["kind"].isin(["kernel", "network", "outside"])].head(min(5, most)).to_dict("records")
    if gains:
        program = {"network": "all messages", "outside": "outside kernels"}
        rows = [[row["kernel"] or program[row["kind"]], f"{row['saves']:.1%}"] for row in gains]
        head = Text(f"what the program gains at {in_full(target)} ranks", style="bold")
        text += ["", head, Table(["twice as fast:name", "gain"], rows, 2)]
    return text
