"""Messages: their time by operation over ranks, and the communication pattern."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.reports.palette import LINES
from ranksight.reports.plots._axes import legend, log_values, new_axes, second_axis, value_axis
from ranksight.reports.sweep import Sweep
from ranksight.reports.traffic import Pairs, Traffic

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ranksight.model.application.exchanged import Exchanged

MOST_LINES = 8


def plot_traffic(sweep: Sweep, traffic: Traffic, quantity: str = "bytes", ax: Axes | None = None) -> Any:
    """Bytes, messages or seconds per rank of the operations that hold most, over ranks; returns the axes.

    `quantity` ({"bytes", "messages", "seconds"}).
    """
    ax = new_axes(ax)
    values = {"bytes": traffic.bytes, "messages": traffic.messages, "seconds": traffic.seconds}[quantity]
    order = np.argsort(-np.nan_to_num(values[:, -1]))[:MOST_LINES]
    handles, labels = [], []
    for at, (row, name) in enumerate(zip(order, traffic.labels(30, order.tolist()), strict=True)):
        y = np.where(values[row] > 0, values[row], np.nan)
        if not np.isfinite(y).any():
            continue
        (line,) = ax.plot(sweep.values, y, color=LINES[at % len(LINES)], lw=1.8)
        handles.append(line)
        labels.append(name)
    value_axis(ax, sweep.along, sweep.values)
    if handles:
        log_values(ax)
    second_axis(ax, {"bytes": "B", "messages": "", "seconds": "s"}[quantity])
    ax.set_ylabel(f"{'time' if quantity == 'seconds' else quantity} per rank")
    legend(ax, handles, labels, fontsize="medium")
    return ax


def plot_factor(sweep: Sweep, sent: Exchanged, ax: Axes | None = None) -> Any:
    """BF_comm with its interval over ranks, filled where it was measured; returns the axes."""
    ax = new_axes(ax)
    value, low, high = (getattr(sent.factor, end)[0] for end in ("value", "lower", "upper"))
    ax.fill_between(sweep.values, low, high, color=LINES[0], alpha=0.2, lw=0)
    ax.plot(sweep.values, value, color=LINES[0], lw=1.8)
    ax.plot(sweep.values[sent.measured], value[sent.measured], "o", color=LINES[0])
    ax.axhline(1.0, color="0.5", lw=0.8, ls="--")
    value_axis(ax, sweep.along, sweep.values)
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel("BF_comm")
    return ax


def plot_pairs(pairs: Pairs, ax: Axes | None = None) -> Any:
    """Bytes that each rank sends to each other one, as a matrix; ranks beyond a hundred are put together.

    The ends of the colour map are left out, so that all of it is seen on a light and on a dark ground.
    """
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap, LogNorm, Normalize

    ax = new_axes(ax, (4.6, 4.0))
    matrix = np.ma.masked_less_equal(pairs.bytes, 0)
    if matrix.count():
        low, high = float(matrix.min()), float(matrix.max())
        image = ax.pcolormesh(
            np.arange(matrix.shape[1] + 1) * pairs.step,
            np.arange(matrix.shape[0] + 1) * pairs.step,
            matrix,
            cmap=ListedColormap(colormaps["viridis"](np.linspace(0.25, 0.85, 128))),
            norm=LogNorm(low, high) if high > 4 * low else Normalize(0, 1.4 * high),
            rasterized=matrix.size > 1600,
        )
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.85)
        second_axis(bar.ax, "B")
        bar.set_label("bytes sent")
    ax.invert_yaxis()
    ax.set_aspect("equal")
    ax.set(xlabel="to rank", ylabel="from rank")
    return ax
