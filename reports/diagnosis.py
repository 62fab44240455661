"""A diagnosis as people read it: a screen of text, eighty columns wide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ranksight.model.diagnosis.diagnosis import Diagnosis
from ranksight.model.forecast import BORROWED, REASONS
from ranksight.units import format_factor, format_si

WIDE = 80
SMALL = 0.01
"""Share of the time below which a kernel is counted, not listed."""
SHORT = {"compute": "compute", "L2": "L2", "L3": "L3", "memory": "memory", "communication": "messages",
         "imbalance": "imbalance", "unknown": "unknown"}  # fmt: skip
HELPS = {"execution": "execution x2", "caches": "caches x2", "memory": "memory x2", "network": "messages x2",
         "balance": "balance"}  # fmt: skip


def lines(found: Diagnosis, most: int = 12) -> list[str]:
    """The whole diagnosis.

    Parameters
    ----------
    found : Diagnosis
    most : int
        Kernels and rows listed of each table.
    """
    text: list[str] = []
    table = found.verdicts()
    parameters = list(found.model.parameters)
    for point, part in table.groupby(parameters, sort=False):
        text += [*_configuration(dict(zip(parameters, point, strict=True)), part, most), ""]
    if "ranks" in parameters:
        text += [*_scaling(found, most), "", *_efficiencies(found), ""]
    text += _pairs(found, most)
    if "ranks" in parameters:
        text += _advice(found, most)
    while text and not text[-1]:
        text.pop()
    return text


def _configuration(values: Mapping[str, Any], part: pd.DataFrame, most: int) -> list[str]:
    """Head, where the time goes, and the kernels' verdicts at one configuration."""
    at = ", ".join(f"{name} {value:g}" for name, value in values.items())
    total = float(part["time"].sum())
    weight = part["time"].to_numpy() / total if total > 0 else np.zeros(len(part))
    goes = [(label, float((weight * part[name]).sum())) for name, label in SHORT.items()]
    spent = ", ".join(f"{label} {share:.0%}" for label, share in sorted(goes, key=lambda x: -x[1]) if share >= 0.005)
    head = [f"{at}: {format_si(total, 's')} a rank", *_wrapped(f"spent on {spent}", "  ")]
    width = min(22, max([len(name) for name in part["kernel"]], default=6))
    rows = [f"  {'kernel':<{width}} {'time':>8} {'share':>5}  {'verdict':<20}{'what helps most'}"]
    shown = part[part["share"] >= SMALL].head(most)
    for row in shown.to_dict("records"):
        level = f" ({row['level']})" if row["verdict"] in ("cache-bound", "latency-bound") and row["level"] else ""
        helps = f"{HELPS[row['change']]}: -{row['saves']:.0%}" if row["saves"] >= 0.005 else "-"
        says = helps if row["verdict"] != "undecided" else _short(row)
        first = f"  {row['kernel'][:width]:<{width}} {format_si(row['time'], 's'):>8} {row['share']:>5.0%}  "
        rows.append((first + f"{row['verdict'] + level:<20}" + " " * bool(level and len(level) > 6) + says)[:WIDE])
    silent = shown.loc[shown["reason"] == REASONS[BORROWED], "kernel"].tolist()
    if silent:
        rows += _wrapped(f"{', '.join(silent)}: {REASONS[BORROWED]}", "  ")
    left = part.iloc[len(shown) :]
    if len(left):
        rows.append(f"  {len(left)} more, {left['share'].sum():.0%} of the time; --format csv lists all")
    return head + rows


def _short(row: Mapping[Any, Any]) -> str:
    """Why a kernel is undecided, in a few words; the table of verdicts has them all."""
    if row["unknown"] > 0.5:
        return "nothing tells its parts"
    if " or " in row["reason"]:
        order = sorted(SHORT, key=lambda name: -row[name])[:2]
        return f"{SHORT[order[0]]} or {SHORT[order[1]]}"
    return "its time is not carried"


def _scaling(found: Diagnosis, most: int) -> list[str]:
    """How kernels scale, and who overtakes whom."""
    table = found.scaling()
    ranks = found.line.ranks
    work = "divided among the ranks (strong scaling)" if found.strong else "the same on every rank (weak scaling)"
    text = [f"from {ranks[0]:g} to {ranks[-1]:g} ranks, work {work}"]
    heavy = table[table["share"] >= SMALL]
    for verdict in ("grows", "saturates", "scales", "undecided"):
        rows = heavy[heavy["verdict"] == verdict].head(most)
        if verdict in ("scales", "undecided"):
            names = ", ".join(rows["kernel"])
            text += _wrapped(f"{verdict}: {names}", "  ") if names else []
            continue
        for row in rows.to_dict("records"):
            proof = "" if row["named"] or verdict != "grows" else ", by its times alone"
            text.append(
                f"  {row['kernel'][:30]} {verdict} {'from' if verdict == 'grows' else 'at'} {row['at']:g} ranks: "
                f"{format_factor(row['growth'])} times its least{proof}"[: WIDE - 2]
            )
    crossings = found.crossovers()
    first = crossings[crossings["largest"]] if len(crossings) else crossings
    for row in pd.concat([first, crossings[~crossings["largest"].astype(bool)]]).head(5).to_dict("records"):
        text += _wrapped(crossing(row, found.level), "  ")
    return text


def crossing(row: Mapping[object, object], level: float) -> str:
    """A crossover in words: ``search becomes the largest above 123 ranks, 90 %: 80 to 190``."""
    lower, upper = float(str(row["lower"])), float(str(row["upper"]))
    if lower == lower and upper == upper:
        ends = f"{lower:.0f} to {upper:.0f}"
    elif lower == lower:
        ends = f"from {lower:.0f} on"
    else:
        ends = f"up to {upper:.0f}" if upper == upper else "anywhere"
    what = "becomes the largest" if row["largest"] else f"overtakes {row['over']}"
    return f"{row['kernel']} {what} above {float(str(row['ranks'])):.0f} ranks, {level:.0%}: {ends}"


def _efficiencies(found: Diagnosis) -> list[str]:
    """POP efficiencies at up to six rank counts."""
    table = found.efficiencies()
    take = np.unique(np.linspace(0, len(table) - 1, min(6, len(table))).round().astype(int))
    rows = table.iloc[take]
    text = ["efficiencies        " + "".join(f"{ranks:>9g}" for ranks in rows["ranks"])]
    names = {
        "global": "global",
        "parallel": "  parallel",
        "load_balance": "    load balance",
        "communication": "    communication",
        "computation_scaling": "  computation",
        "instruction_scaling": "    instructions",
        "ipc_scaling": "    IPC",
    }
    for name, label in names.items():
        values = rows[name].to_numpy(dtype=float)
        if np.isfinite(values).all():
            text.append(f"  {label:<18}" + "".join(f"{value:>9.0%}" for value in values))
    return text


def _pairs(found: Diagnosis, most: int) -> list[str]:
    """Kernels that only their blocking by memory tells apart."""
    rows = found.pairs().head(min(3, most)).to_dict("records")
    text = []
    for row in rows:
        text += _wrapped(
            f"{row['kernel']} and {row['other']} have the same CPI ({row['cpi']:.2f}, {row['other_cpi']:.2f}); memory "
            f"and caches hold up {row['held']:.0%} of the first and {row['other_held']:.0%} of the other",
            "  ",
        )
    return ["alike, and not", *text, ""] if text else []


def _advice(found: Diagnosis, most: int) -> list[str]:
    """Troubles, then what optimising gives at the target."""
    table = found.advice()
    named = table[~table["kind"].isin(["kernel", "network", "decomposition"])]
    text = ["troubles named"]
    for row in named.head(most).to_dict("records"):
        gain = (
            f", {row['saves']:.0%} of the time"
            if row["saves"] == row["saves"] and row["kind"] != "late arrival"
            else ""
        )
        who = f"{row['kernel']}: " if row["kernel"] else ""
        text += _wrapped(f"{row['kind']}: {who}{row['text']}{gain}", "  ")
    if len(text) == 1:
        text = ["no trouble is named: nothing grows, ranks are even, no one waits in turn"]
    for row in table[table["kind"] == "decomposition"].to_dict("records"):
        text += ["", "another layout of the ranks", *_wrapped(row["text"], "  ")]
    target = found.target[list(found.model.parameters).index("ranks")]
    gains = table[table["kind"].isin(["kernel", "network"])].head(min(5, most)).to_dict("records")
    if gains:
        text += ["", f"twice as fast, and what the program gains at {target:g} ranks"]
        text += [f"  {(row['kernel'] or 'all messages')[:40]:<40} {row['saves']:>5.1%}" for row in gains]
    return text


def _wrapped(text: str, indent: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, WIDE, initial_indent=indent, subsequent_indent=indent + "  ")
