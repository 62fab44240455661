"""The tables that the demonstration prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from ranksight.analysis.diagnosis.diagnosis import diagnose
from ranksight.core.units import format_si
from ranksight.model.model import Model
from ranksight.reports.terminal import Block, Cell, Column, Table, Text
from ranksight.reports.validation import Validation

SHOWN = ("instructions", "loads", "stores", "messages", "bytes_sent")
SHORT = {"bytes_sent": "bytes"}


def tell_validation(validation: Validation, cores: int) -> list[Block]:
    """Predicted and measured for every kernel and configuration, and how far off in all.

    Parameters
    ----------
    cores : int
        Of the machine that the runs were made on: more ranks share them.
    """
    counts = validation.requirements()
    said: list[Block] = ["", "Predicted / measured per rank, at configurations that were not trained on", ""]
    held = [name for name in SHOWN if (counts["metric"] == name).any()]
    # Without simulated counts the messages take the two wide columns.
    names = held if len(held) > 2 and held[0] == SHOWN[0] else [*held, *("", "")][:2]
    columns = [
        Column("kernel", "name"),
        Column(names[0]),
        Column(names[1], spare=2),
        Column("others' error", "text", spare=1, least=13),
    ]
    for ranks, size in counts[["ranks", "size"]].drop_duplicates().itertuples(index=False):
        here = counts[(counts["ranks"] == ranks) & (counts["size"] == size)]
        lines = []
        for kernel in dict.fromkeys(here["kernel"]):
            rows = here[here["kernel"] == kernel].set_index("metric")
            rest = ", ".join(
                f"{SHORT.get(name, name)} {_error(rows, name)}" for name in names[2:] if name in rows.index
            )
            lines.append([kernel, _pair(rows, names[0]), _pair(rows, names[1]), rest])
        said += [Text(f"{ranks:g} ranks, size {size:g}", style="bold"), Table(columns, lines, 2), ""]
    said.append(Text(_summary("counts (visits, instructions, loads, stores, messages, bytes)", counts), 0, 2))
    levels = validation.cache_levels()
    if len(levels):
        said.append(Text(_summary("loads served by each level", levels[levels["measured"] > 0]), 0, 2))
    timed: list[list[str | Cell]] = []
    compared = validation.compute()
    for row in compared.to_dict("records"):
        predicted, lower, upper, measured = (
            format_si(float(row[name]), "s") for name in ("predicted", "lower", "upper", "measured")
        )
        mark = "insufficient" if row["status"] != "ok" else "" if row["inside"] else "outside"
        place = [f"{row['ranks']:g}", f"{row['size']:g}"]
        ends = f"{lower} .. {upper}"
        timed.append([*place, predicted, ends, measured, f"{row['error']:+.1%}", Cell(mark, "yellow")])
    if timed:
        heads = ("ranks", "size", "predicted", "90% interval", "measured", "error", "")
        kinds = [Column(head, "word" if head in ("90% interval", "") else "number") for head in heads]
        said += ["", Text("compute time per rank", style="bold"), Table(kinds, timed, 2)]
        missed = compared[(compared["status"] == "ok") & ~compared["inside"]]
        if len(missed):
            said.append(Text(_missed(missed, len(compared), cores), 2))
    return said


def _missed(rows: pd.DataFrame, count: int, cores: int) -> str:
    """What to say of measured times outside of their interval."""
    crowded = int((rows["ranks"] > cores).sum())
    why = (
        f"; in {crowded} of these, more ranks than the {cores} cores took turns on them and on their caches, which no "
        "prediction for a core a rank includes"
        if crowded
        else ""
    )
    return f"{len(rows)} of {count} measured times are outside of the interval, 1 in 10 is expected{why}"


def _pair(rows: pd.DataFrame, name: str) -> str:
    if name not in rows.index:
        return "-"
    predicted, measured, error = (float(rows[column][name]) for column in ("predicted", "measured", "error"))
    return f"{format_si(predicted)} / {format_si(measured)} {error:+.1%}"


def _error(rows: pd.DataFrame, name: str) -> str:
    return f"{float(rows['error'][name]):+.1%}" if rows["status"][name] == "ok" else "insufficient"


def _summary(what: str, rows: pd.DataFrame) -> str:
    if not len(rows):
        return f"{what}: none measured"
    carried = rows[rows["status"] == "ok"]
    errors = np.abs(carried["error"])
    refused = len(rows) - len(carried)
    more = f"; {refused} marked insufficient" if refused else ""
    if not len(carried):
        return f"{what}: all {len(rows)} marked insufficient"
    worst = carried.loc[errors.idxmax()]
    where = (
        f"{errors.max():.1%} at most ({worst['metric']} of {worst['kernel']} at {worst['ranks']:g} ranks, size "
        f"{worst['size']:g}: {_amount(worst['predicted'])} predicted, {_amount(worst['measured'])} measured)"
    )
    return (
        f"{what}: {len(carried)} values, error {errors.median():.2%} in the median, {where}, "
        f"{carried['inside'].mean():.0%} inside the 90 % interval{more}"
    )


def _amount(value: float) -> str:
    return format_si(float(value)) if value else "none"


def tell_wall_time(
    model: Model, ranks: Sequence[int], size: Mapping[str, float], platform: str, cores: int
) -> list[Block]:
    """The wall time that the model predicts, and why it is not compared with a run."""
    if not any(name == "time" for name in model.fitted.metrics):
        return ["", "No time per function was measured here (perf is missing), so no wall time is predicted."]
    points = np.array([[p if name == "ranks" else size[name] for name in model.parameters] for p in ranks], dtype=float)
    broken = model.breakdown(points)
    network = model.equation.network is not None
    sizes = "".join(f", {name} {value:g}" for name, value in size.items() if name in model.parameters)
    said: list[Block] = [
        "",
        f"The machine measured on has {cores} cores: more ranks share them, so their wall time is not compared.",
        f"Predicted for as many cores as ranks{sizes}, on the network of platform {platform}"
        if network
        else f"Predicted computation for as many cores as ranks{sizes} (platform {platform} describes no network)",
    ]
    rows, refused = [], []
    for at, p in enumerate(ranks):
        total = broken.total
        value, low, high = (format_si(float(end[0, at]), "s") for end in (total.value, total.lower, total.upper))
        messages = format_si(float(broken.parts["communication"][at]), "s") if network else ""
        refused += [Text(f"insufficient at {p} ranks: {total.reason[0, at]}", 2)] * bool(total.status[0, at])
        rows.append([f"{p}", value, f"{low} .. {high}", messages])
    columns = [Column("ranks"), Column("time"), Column("90% interval", "word"), Column("communication", spare=1)]
    return [*said, Table(columns, rows, 2), *refused]


def tell_growth(model: Model, ranks: int, size: Mapping[str, float]) -> list[Block]:
    """The largest kernels at a scale and what bounds them, and those that grow with the ranks."""
    if not any(name == "time" for name in model.fitted.metrics):
        return []
    found = diagnose(model, np.array([ranks if name == "ranks" else size[name] for name in model.parameters]))
    table = found.verdicts()
    carried = dict(zip(found.evidence.kernels, found.evidence.ok[:, -1].tolist(), strict=True))
    kept = table[[carried[kernel] for kernel in table["kernel"]]]
    head = f"Largest kernels at {ranks} ranks, size {', '.join(f'{value:g}' for value in size.values())}"
    rows = []
    for row in kept.head(5).to_dict("records"):
        why = row["verdict"] if row["verdict"] != "undecided" else f"undecided: {row['reason']}"
        rows.append([row["kernel"], format_si(row["time"], "s"), f"{row['share']:.0%}", why])
    columns = [Column("kernel", "name"), Column("time"), Column("share"), Column("verdict", "text")]
    said: list[Block] = ["", Text(head, style="bold"), Table(columns, rows, 2)]
    if left := sorted(set(table["kernel"]) - set(kept["kernel"])):
        said.append(f"Insufficient data for the time of: {', '.join(left)}")
    scaling = found.scaling()
    growing = scaling[scaling["named"]].to_dict("records")
    for row in growing:
        counted = model.functions.rows.get((row["kernel"], "instructions"))
        why = "" if counted is None else f"; instructions per rank {model.functions.formula(counted)}"
        said.append(
            f"Grows with the number of ranks: {row['kernel']}, from {row['at']:.0f} ranks on, {row['growth']:.0f} "
            f"times as long at {ranks}{why}"
        )
    if not growing:
        said.append("No kernel grows with the number of ranks faster than their logarithm.")
    return said
