"""Kernels under the roofs of the memory levels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ranksight._names import short
from ranksight.reports.palette import PARTS
from ranksight.reports.plots._axes import legend, log_values, new_axes, number, second_axis
from ranksight.reports.sweep import Sweep

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"L2": PARTS["loads_l2"], "L3": PARTS["loads_l3"], "memory": PARTS["loads_mem"]}
MARKERS = {"L2": "o", "L3": "s", "memory": "D"}
HEAVY = 0.01
NAMED = 8


def plot_roofline(sweep: Sweep, ax: Axes | None = None) -> Any:
    """Operations a second over operations a byte at the target, with the roof of each level; returns the axes.

    A kernel stands at each level whose bytes are known; the one whose roof is nearest is filled. Kernels with less than
    a hundredth of the time are left out.
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
    handles, labels = [], []
    for level, part in table.groupby("level", sort=False):
        colour, bandwidth = COLOURS[str(level)], float(part["bandwidth"].iloc[0])
        (line,) = ax.plot([low, high], [low * bandwidth, high * bandwidth], color=colour, lw=1.6)
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
    ax.set_ylim(speed.min() / 3, speed.max() * 6)
    log_values(ax)
    share = dict(zip(verdicts["kernel"], verdicts["share"], strict=True))
    named = table[table["nearest"].astype(bool)].assign(share=lambda rows: rows["kernel"].map(share))
    for row in named.nlargest(NAMED, "share").to_dict("records"):
        ax.annotate(
            short(row["kernel"], 22),
            (row["intensity"], row["performance"]),
            (5, 4),
            textcoords="offset points",
            fontsize="small",
            parse_math=False,
        )
    what = " and ".join(dict.fromkeys(table["operations"]))
    second_axis(ax, "")
    ax.set(xlabel=f"{what} a byte", ylabel=f"{what} a second and rank")
    ticks = [x for x in ax.get_xticks() if low <= x <= high]
    ax.set_xticks(ticks, [number(float(x)) for x in ticks])
    ax.minorticks_off()
    legend(ax, handles, labels, fontsize="medium", loc="lower right")
    return ax
