"""Kernels under the roofs of the memory levels and of the core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.core.names import short_names
from ranksight.core.units import format_si
from ranksight.reports.palette import PARTS
from ranksight.reports.plots._axes import legend, log_values, new_axes, number, second_axis
from ranksight.reports.sweep import Sweep

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

COLOURS = {name: PARTS[name] for name in ("L2", "L3", "memory")}
MARKERS = {"L2": "o", "L3": "s", "memory": "D"}
HEAVY = 0.01
LETTER, LINE = 0.0115, 0.055  # width of a letter and height of a line, as parts of the axes
NAMED = 8
DIGITS = (1.0, 2.0, 5.0)  # leading ones of ticks where a decade or less is drawn


def plot_roofline(sweep: Sweep, ax: Axes | None = None) -> Any:
    """Operations a second over operations a byte at the target, with the roof of each level; returns the axes.

    The level line is what the rank's cores can do at most; where the processor is not known, what the fastest kernel
    does, named as such. A kernel stands at each level whose bytes are known; the one whose roof is nearest is filled.
    Kernels with less than a hundredth of the time are left out.
    """
    ax = new_axes(ax)
    found = sweep.diagnosis
    if found is None:
        return ax
    table, verdicts = found.roofline(), found.verdicts()
    heavy = set(verdicts.loc[verdicts["share"] >= HEAVY, "kernel"])
    table = table[table["kernel"].isin(heavy) & (table["intensity"] < 1e6) & (table["performance"] > 0)]
    if table.empty:
        return ax
    low, high = float(table["intensity"].min()) / 3, float(table["intensity"].max()) * 3
    handles, labels, tops = [], [], []
    for (operations, part), dashes in zip(table.groupby("operations", sort=False), ("-", "--"), strict=False):
        peak, fastest = float(part["peak"].iloc[0]), float(part["performance"].max())
        known = peak > 0
        tops.append(peak if known else fastest)
        handles.append(ax.axhline(tops[-1], color="0.35", lw=1.6, ls=dashes if known else ":"))
        labels.append(f"{'peak' if known else 'fastest kernel'}, {format_si(tops[-1], str(operations))}/s")
    # The roofs are in the figure where all kernels are far to their right, too.
    low = min(low, max(tops) / float(table["bandwidth"].max()) / 3)
    for level, part in table.groupby("level", sort=False):
        colour, bandwidth = COLOURS[str(level)], float(part["bandwidth"].iloc[0])
        end = min(high, max(tops) / bandwidth) if max(tops) > low * bandwidth else high
        (line,) = ax.plot([low, end], [low * bandwidth, end * bandwidth], color=colour, lw=1.6)
        handles.append(line)
        labels.append(f"{level}, {bandwidth / 1e9:.3g} GB/s a rank")
        for near, face in ((True, colour), (False, "none")):
            rows = part[part["nearest"].astype(bool) == near]
            ax.plot(
                rows["intensity"], rows["performance"], MARKERS[str(level)], color=colour, mfc=face, mec=colour, ms=6
            )
    ax.set_xscale("log")
    ax.set_xlim(low, high)
    speed = table["performance"].to_numpy(dtype=float)
    ax.set_ylim(speed.min() / 3, max(speed.max() * 6, 2 * max(tops)))
    log_values(ax)
    share = dict(zip(verdicts["kernel"], verdicts["share"], strict=True))
    named = table[table["nearest"].astype(bool)].assign(share=lambda rows: rows["kernel"].map(share))
    _name(ax, named.nlargest(NAMED, "share"))
    what = " and ".join(dict.fromkeys(table["operations"]))
    second_axis(ax, "/s")
    ax.set(xlabel=f"{what} per byte", ylabel=f"{what} per second and rank")
    ticks = [x for x in ax.get_xticks() if low <= x <= high]
    if len(ticks) < 3:  # within about a decade
        decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)))
        ticks = [x for x in np.outer(decades, DIGITS).ravel().tolist() if low <= x <= high]
    ax.set_xticks(ticks, [number(float(x)) for x in ticks])
    ax.minorticks_off()
    legend(ax, handles, labels, fontsize="medium")
    return ax


def _name(ax: Any, rows: pd.DataFrame) -> None:
    """Names next to marks, on any side of them; one that would cover another is left to the table."""
    taken: list[tuple[float, float, float, float]] = []
    names = short_names(rows["kernel"], 22)
    for row in rows.to_dict("records"):
        text, at = names[row["kernel"]], (float(row["intensity"]), float(row["performance"]))
        x, y = ax.transAxes.inverted().transform(ax.transData.transform(at))
        wide = LETTER * len(text)
        for right, above in ((True, True), (True, False), (False, True), (False, False)):
            left, low = (x if right else x - wide), (y if above else y - LINE)
            box = (left, left + wide, low, low + LINE)
            if any(box[0] < b and a < box[1] and box[2] < d and c < box[3] for a, b, c, d in taken):
                continue
            taken.append(box)
            offset, side = (5 if right else -5, 4 if above else -11), ("left" if right else "right")
            ax.annotate(text, at, offset, textcoords="offset points", ha=side, fontsize="small", parse_math=False)
            break
