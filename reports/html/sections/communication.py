"""Messages: how many, how large, how long they take, and who sends to whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ranksight.model.application.exchanged import MEANINGS
from ranksight.model.structure.stated import BETWEEN
from ranksight.reports.diagnosis import changed
from ranksight.reports.html.context import Context
from ranksight.reports.html.figures import Figure, draw
from ranksight.reports.html.writing import in_one_unit, value
from ranksight.reports.plots import plot_factor, plot_pairs, plot_traffic
from ranksight.reports.sweep import place
from ranksight.reports.traffic import Pairs, Traffic, pairs

MOST = 40
WAITED = 0.001  # part of a run from which waiting is reported


def build(context: Context) -> dict[str, Any] | None:
    """What the template needs; None where no messages were traced."""
    traffic, matrix = context.traffic, pairs(context.experiments)
    if traffic is None and matrix is None:
        return None
    figures: list[Figure] = []
    rows: list[dict[str, Any]] = []
    units: tuple[str, ...] = ()
    timed = False
    if traffic is not None:
        timed = bool(np.isfinite(traffic.seconds).any())
        figures += [_lines(context, traffic, "seconds")] if timed else []
        figures.append(_lines(context, traffic, "bytes"))
        figures += _factor(context)
        rows, units = _rows(traffic)
    diagnosis = context.sweep.diagnosis
    waiting, waits = ("", []) if diagnosis is None else _waits(diagnosis.waits(), context.model.parameters)
    call, algorithms = ("", []) if diagnosis is None else _algorithms(diagnosis.algorithms())
    picture = None if matrix is None else _picture(matrix)
    return {
        "figures": figures,
        "matrix": picture,
        "pairs": matrix,
        "rows": rows,
        "units": units,
        "timed": timed,
        "waits": waits,
        "waiting": waiting,
        "blocking": [] if diagnosis is None else _blocking(diagnosis.blocking()),
        "algorithms": algorithms,
        "call": call,
        "fitted": [] if diagnosis is None else _fitted(diagnosis.fitted_costs()),
        "target": context.sweep.places()[-1],
        "given": bool(context.experiments),
    }


def _lines(context: Context, traffic: Traffic, quantity: str) -> Figure:
    sweep = context.sweep
    values = traffic.bytes if quantity == "bytes" else traffic.seconds
    unit = "bytes_sent" if quantity == "bytes" else "time"
    order = np.argsort(-np.nan_to_num(values[:, -1]))[:8]
    labels = traffic.labels(30, order.tolist())
    word = "Bytes" if quantity == "bytes" else "Predicted time"
    return draw(
        f"traffic-{quantity}",
        lambda ax: plot_traffic(sweep, traffic, quantity, ax),
        f"{word} per rank of the operations that hold most, over {sweep.along}; most at {sweep.values[-1]:g}: "
        f"{labels[0]}.",
        (7.0, 4.2),
        sweep.values.tolist(),
        [(name, [value(float(x), unit) for x in values[row]]) for name, row in zip(labels, order, strict=True)],
        sweep.places(),
        narrow=True,
    )


def _rows(traffic: Traffic) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """Operations, the longest first, and the units of time, bytes and bytes each."""
    order = np.lexsort((-np.nan_to_num(traffic.bytes[:, -1]), -np.nan_to_num(traffic.seconds[:, -1])))
    count, volume, seconds = (part[order, -1] for part in (traffic.messages, traffic.bytes, traffic.seconds))
    with np.errstate(all="ignore"):
        each = np.where(count > 0, volume / count, np.nan)
    (time, seconds_texts), (size, volume_texts), (share, each_texts) = (
        in_one_unit(values.tolist(), name)
        for values, name in ((seconds, "time"), (volume, "bytes_sent"), (each, "bytes_sent"))
    )
    rows = []
    for at, row in enumerate(order):
        kernel, _, operation = traffic.names[row].rpartition(BETWEEN)
        rows.append(
            {
                "kernel": kernel,
                "operation": operation,
                "count": count[at],
                "count_text": value(float(count[at]), "messages"),
                "bytes": volume[at],
                "bytes_text": volume_texts[at],
                "each": each[at],
                "each_text": each_texts[at],
                "seconds": seconds[at],
                "seconds_text": seconds_texts[at],
                "formula": traffic.formulas[row][0],
                "bytes_formula": traffic.formulas[row][1],
            }
        )
    return rows, (time, size, share)


def _waits(table: Any, parameters: Sequence[str]) -> tuple[str, list[dict[str, Any]]]:
    """What ranks waited for, the most part of a run first, and the unit of the times."""
    rows = table[table["part"] >= WAITED].sort_values("part", ascending=False).head(MOST).to_dict("records")
    unit, texts = in_one_unit((row["waiting"] for row in rows), "time")
    return unit, [
        {
            "kernel": str(row["kernel"]),
            "operation": str(row["operation"]),
            "where": ", ".join(place(name, x) for name, x in zip(parameters, row["configuration"], strict=True)),
            "calls": row["calls"],
            "calls_text": f"{row['calls']:,.0f}",
            "waiting": row["waiting"],
            "waiting_text": text,
            "part": row["part"],
            "state": str(row["state"]) or "–",
        }
        for row, text in zip(rows, texts, strict=True)
    ]


def _blocking(table: Any) -> list[dict[str, Any]]:
    """Communication time and BF_comm over configurations."""
    return [
        {
            "where": ", ".join(f"{name} {number:g}" for name, number in row["configuration"].items()),
            "communication": value(row["communication"], "time"),
            "network": value(row["network"], "time"),
            "factor": f"{row['factor']:.3g}",
            "interval": f"{row['lower']:.3g} to {row['upper']:.3g}",
            "method": row["method"],
            "meaning": MEANINGS[row["meaning"]],
        }
        for row in table.head(MOST).to_dict("records")
    ]


def _algorithms(table: Any) -> tuple[str, list[dict[str, Any]]]:
    """The unit of the times of one call, and algorithms of collectives with what the fastest others take."""
    rows = table.head(MOST).to_dict("records")
    unit, texts = in_one_unit((row["seconds"] for row in rows), "time")
    return unit, [
        {
            **row,
            "bytes_text": value(row["bytes"], "bytes_sent"),
            "way": changed(row),
            "seconds_text": text,
        }
        for row, text in zip(rows, texts, strict=True)
    ]


def _factor(context: Context) -> list[Figure]:
    """BF_comm over the parameter, with its interval; nothing where it was not measured."""
    sweep, sent = context.sweep, context.sweep.breakdown.exchanged
    if not sent or sent.assumed or not context.model.equation.network:
        return []
    if not np.isfinite(sent.factor.value).any():
        return []
    ends = [f"{x:.3g}" for x in sent.factor.value[0][np.isfinite(sent.factor.value[0])][[0, -1]].tolist()]
    return [
        draw(
            "blocking-factor",
            lambda ax: plot_factor(sweep, sent, ax),
            f"BF_comm over {sweep.along} with its {sweep.level:.0%} interval, from {ends[0]} to {ends[1]}.",
            (5.4, 3.6),
            list(range(len(sweep.values))),
            [("BF_comm", [f"{x:.3g}" for x in sent.factor.value[0].tolist()])],
            sweep.places(),
            narrow=True,
        )
    ]


def _fitted(table: Any) -> list[dict[str, Any]]:
    """The fitted form of each operation that has one."""
    rows = table[table["formula"] != ""].head(MOST).to_dict("records")
    return [{**row, "scatter_text": value(row["scatter"], "time")} for row in rows]


def _picture(matrix: Pairs) -> Figure:
    sent = int((matrix.bytes > 0).sum())
    return draw(
        "pairs",
        lambda ax: (ax.grid(False), plot_pairs(matrix, ax)),
        f"Matrix of the bytes that each of {matrix.ranks} ranks sends to each other one: {sent} of {matrix.bytes.size} "
        f"cells are not empty.",
        (5.4, 4.4),
    )
