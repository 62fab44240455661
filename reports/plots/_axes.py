"""What all plots share: axes, labels that are taken literally, ticks that people read."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.units import format_si
from ranksight.model.uncertainty.forecast import OK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ranksight.reports.sweep import Sweep

NICE = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)  # leading digits of ticks
ROOM = 4.0  # times the supported values that an axis shows of what they do not support


WIDE = (9.0, 4.2)  # inches of a figure with its legend to the right


def new_axes(ax: Axes | None, size: tuple[float, float] = (6.0, 4.5)) -> Any:
    """The axes given, or those of a new figure: of pyplot in a notebook, which shows it; elsewhere no window does."""
    if ax is not None:
        return ax
    if "ipykernel" in sys.modules:
        from matplotlib import pyplot

        return pyplot.figure(figsize=size, layout="constrained").add_subplot()
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained").add_subplot()


def legend(ax: Any, handles: Sequence[Any], labels: Sequence[str], outside: bool = True, **settings: Any) -> None:
    """A legend, right of the axes if `outside`, whose labels are literal: dollars set no mathematics, underscores hide
    nothing."""
    if not handles:
        return
    if outside:
        settings = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), **settings}
    made = ax.legend(list(handles), ["x"] * len(handles), frameon=False, **settings)
    for text, label in zip(made.get_texts(), labels, strict=True):
        text.set_parse_math(False)
        text.set_text(label)


def value_axis(ax: Any, along: str, values: Array) -> None:
    """A logarithmic axis over a parameter, with its own values as ticks."""
    if (values > 0).all():
        ax.set_xscale("log", base=2)
        low, high = float(values.min()), float(values.max())
        ticks = np.array([digit * 10.0**power for power in range(-12, 16) for digit in NICE])
        ticks = ticks[(ticks >= low * (1 - 1e-9)) & (ticks <= high * (1 + 1e-9))]
        ticks = ticks[:: max(1, int(np.ceil(len(ticks) / 12)))]
        if along == "ranks":
            ticks = 2.0 ** np.arange(np.ceil(np.log2(low) - 1e-9), np.floor(np.log2(high) + 1e-9) + 1)
            ticks = ticks[:: max(1, int(np.ceil(len(ticks) / 12)))]
        if len(ticks) < 2:
            ticks = values
        ax.set_xticks(ticks, [number(x) for x in ticks])
        ax.minorticks_off()
    ax.set_xlabel(along)


def clamp_values(ax: Any, sweep: Sweep, shown: Any = ()) -> None:
    """End the value axis near what the data support: bounds that nobody can use must not flatten the rest.

    `shown`: further values that are to be seen, such as measured ones.
    """
    total = sweep.total
    fine = (total.status[0] == OK) & np.isfinite(total.value[0])
    if fine.all() or not (fine.any() or len(shown)):
        return
    known = np.concatenate([total.lower[0, fine], total.upper[0, fine], np.asarray(shown, dtype=np.float64)])
    known = known[np.isfinite(known) & (known > 0)]
    if not len(known):
        return
    low, high = ax.get_ylim()
    ax.set_ylim(max(low, float(known.min()) / ROOM if low > 0 else low), min(high, float(known.max()) * ROOM))


def number(value: float) -> str:
    """A parameter's value, in short."""
    if value >= 10_000:
        return format_si(value, "", 3).replace(" ", "")
    return f"{value:.4g}"


def micro(text: str) -> str:
    """The prefix for a millionth as it is printed where more than ASCII is at hand."""
    return text.replace(" us", " µs")


def si_ticks(axis: Any, unit: str = "") -> None:
    """Ticks of one axis with their unit, in SI prefixes."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: micro(format_si(float(value), unit, 3))))
    axis.set_minor_formatter(NullFormatter())


def second_axis(ax: Any, unit: str) -> None:
    """Ticks of the value axis with their unit, in SI prefixes."""
    si_ticks(ax.yaxis, unit)


def log_values(ax: Any) -> None:
    """A logarithmic value axis over half a decade at least, with ticks at 1, 2 and 5 where it spans few decades, and
    more within one, so that it is seen to be logarithmic.

    What changes little looks so.
    """
    from matplotlib.ticker import LogLocator

    ax.set_yscale("log")
    low, high = ax.get_ylim()
    if not low > 0:
        return
    wide = np.sqrt(max(1.0, 4.0 / (high / low)))
    ax.set_ylim(low / wide, high * wide)
    decades = np.log10(high / low * wide**2)
    if decades < 2.5:
        ax.yaxis.set_major_locator(LogLocator(10, subs=NICE if decades < 1 else (1.0, 2.0, 5.0)))
        ax.yaxis.set_minor_locator(LogLocator(10, subs=()))


def save_figure(figure: Any, *paths: Any) -> None:
    """Write a figure to PNG or SVG files; text in an SVG stays text that can be searched."""
    import matplotlib

    engine = figure.get_layout_engine()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "ranksight"}):
        for path in paths:
            figure.savefig(path, dpi=140)
            # Room is shared out once: that takes as long as drawing.
            figure.set_layout_engine("none")
    figure.set_layout_engine(engine)
