"""Where kernels stand under the roofs of the memory levels."""

from __future__ import annotations

from typing import Any

from ranksight.core.units import format_si
from ranksight.reports.html.context import Context
from ranksight.reports.html.figures import draw
from ranksight.reports.html.writing import percent, whole
from ranksight.reports.plots import plot_roofline
from ranksight.reports.plots.plot_roofline import HEAVY


def build(context: Context) -> dict[str, Any] | None:
    """What the template needs; None where no bytes or no bandwidths are known."""
    sweep, found = context.sweep, context.sweep.diagnosis
    if found is None:
        return None
    table, verdicts = found.roofline(), found.verdicts()
    share = dict(zip(verdicts["kernel"], verdicts["share"], strict=True))
    table = table.assign(share=table["kernel"].map(share))
    table = table[(table["share"] >= HEAVY) & (table["intensity"] < 1e6)]
    if table.empty:
        return None
    marks = table[table["performance"] > 0].sort_values("intensity").to_dict("records")
    near = table[table["nearest"].astype(bool)].sort_values("fraction", ascending=False).to_dict("records")
    figure = draw(
        "roofline",
        lambda ax: plot_roofline(sweep, ax),
        f"Roofline at {sweep.places()[-1]}: {len(near)} kernels at their nearest roof; nearest to it is "
        f"{near[0]['kernel']} with {percent(near[0]['fraction'])} of what {near[0]['level']} allows."
        if near
        else f"Roofline at {sweep.places()[-1]}.",
        (10.5, 4.6),
        [row["intensity"] for row in marks],
        [
            ("level", [f"{row['level']}{', nearest roof' if row['nearest'] else ''}" for row in marks]),
            ("operations a byte", [f"{row['intensity']:.3g}" for row in marks]),
            ("operations a second", [format_si(row["performance"], "") + "/s" for row in marks]),
            ("of the roof", [percent(row["fraction"]) for row in marks]),
        ],
        [whole(row["kernel"]) for row in marks],
        narrow=True,
        heights=[row["performance"] for row in marks],
    )
    return {
        "figures": [figure],
        "target": sweep.places()[-1],
        "rows": [
            {
                "kernel": row["kernel"],
                "level": row["level"],
                "operations": row["operations"],
                "intensity": row["intensity"],
                "intensity_text": f"{row['intensity']:.3g}",
                "performance": row["performance"],
                "performance_text": format_si(row["performance"], "") + "/s",
                "fraction": row["fraction"],
                "fraction_text": percent(row["fraction"]),
                "peak": row["performance"] / row["peak"],
                "peak_text": percent(row["performance"] / row["peak"]),
                "nearest": bool(row["nearest"]),
            }
            for row in table.sort_values("share", ascending=False).to_dict("records")
        ],
        "known": bool((table["peak"] > 0).all()),
        "counted": set(table["operations"]) == {"flops"},
    }
