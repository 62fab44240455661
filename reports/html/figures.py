"""Figures of the report: drawn by matplotlib, put into the page as SVG that follows light and dark.

The SVG keeps its text as text. Its styles become presentation attributes, which a stylesheet can override and a strict
content security policy allows; each colour of the palette becomes a class.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any
from xml.etree import ElementTree

import numpy as np

from ranksight.core.records import dataclass
from ranksight.reports.palette import DARK

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "ranksight",
    "font.family": "DejaVu Sans",
    "font.size": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#7f7f7f",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#7f7f7f",
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "xtick.color": "#7f7f7f",
    "ytick.color": "#7f7f7f",
    "xtick.labelcolor": "#000000",
    "ytick.labelcolor": "#000000",
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}
NARROW = (5.2, 5.6)
"""Inches of a figure for a narrow screen, where they are shown at about their size."""
TICKS, BELOW = 7, -0.15
"""Ticks of a narrow figure's horizontal axis, and where its legend begins, in heights of the axes."""
_NUMBER = re.compile(r"(?<!\d)-?\d+\.\d{3,}")
_FONT = re.compile(r"^(?:(?:normal|italic|bold|[0-9]{3})\s+)*([0-9.]+)px\s")


@dataclass(frozen=True)
class Figure:
    """One figure of the page."""

    id: str
    svg: str
    alternative: str  # what it shows, for who cannot see it
    hover: dict[str, Any] = field(default_factory=dict)
    """What the script shows at a value of the horizontal axis: ``x`` (positions in the SVG), ``heads`` and ``rows``
    (label and a text for each position), ``narrow`` with the positions in the narrow one; empty where there is nothing
    to show."""
    narrow: str = ""  # the same for a narrow screen, with its legend below; empty where the one figure is for all


def draw(
    name: str,
    plot: Callable[[Any], Any],
    alternative: str,
    size: tuple[float, float] = (10.0, 4.4),
    values: Sequence[float] | None = None,
    rows: Sequence[tuple[str, Sequence[str]]] = (),
    heads: Sequence[str] = (),
    narrow: bool = False,
    heights: Sequence[float] | None = None,
) -> Figure:
    """Draw a figure for the page.

    Parameters
    ----------
    name : str
        Its id; unique in the page.
    plot : callable
        Draws into the axes that it is given.
    values : sequence of float, optional
        Where on the horizontal axis (data coordinates) `rows` have a text.
    rows : sequence of (label, texts)
    heads : sequence of str
        What each value is called.
    narrow : bool
        Whether it is drawn for narrow screens, too.
    heights : sequence of float, optional
        Where on the vertical axis the `values` are, for marks; without it they are lines from top to bottom.
    """
    text, places = _drawn(plot, size, values, heights)
    hover = {**places, "heads": list(heads), "rows": [[label, list(texts)] for label, texts in rows]} if places else {}
    svg, small = clean(text, name, alternative), ""
    if narrow:
        text, places = _drawn(plot, NARROW, values, heights, below=True)
        small = clean(text, f"{name}-narrow", alternative)
        hover |= {"narrow": places} if hover else {}
    return Figure(name, svg, alternative, hover, small)


def _drawn(
    plot: Callable[[Any], Any],
    size: tuple[float, float],
    values: Sequence[float] | None,
    heights: Sequence[float] | None = None,
    below: bool = False,
) -> tuple[str, dict[str, Any]]:
    """The SVG of a plot, and where `values` are in it; with the legend `below` and fewer ticks for a narrow screen."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    # Text stays text in SVG: glyphs that matplotlib's font lacks are the reader's to draw.
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        figure = Canvas(figsize=size, dpi=72, layout="constrained")
        ax = figure.add_subplot()
        plot(ax)
        if below:
            ticks, labels = ax.get_xticks(), [label.get_text() for label in ax.get_xticklabels()]
            step = -(-len(ticks) // TICKS)
            ax.set_xticks(ticks[::step], labels[::step])
            if (legend := ax.get_legend()) is not None:
                legend.set_loc("upper center")
                legend.set_bbox_to_anchor((0.5, BELOW))
        target = io.StringIO()
        figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
        if values is None or not len(values):
            return target.getvalue(), {}
        height = size[1] * 72
        bottom = np.full(len(values), ax.get_ylim()[0]) if heights is None else heights
        points = ax.transData.transform(np.column_stack([values, bottom]))
        box = ax.get_window_extent()
        return target.getvalue(), {
            "x": [round(float(x), 1) for x in points[:, 0]],
            **({} if heights is None else {"y": [round(height - float(y), 1) for y in points[:, 1]]}),
            "top": round(height - float(box.y1), 1),
            "bottom": round(height - float(box.y0), 1),
        }


def clean(text: str, name: str, alternative: str) -> str:
    """An SVG file as part of a page: no styles, no ids of its own, palette colours as classes."""
    root = ElementTree.fromstring(text)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{SVG}metadata", f"{SVG}style") or not isinstance(child.tag, str):
                parent.remove(child)
    used = {match for element in root.iter() for key, value in element.items() for match in _references(key, value)}
    for element in root.iter():
        _restyle(element)
        identity = element.attrib.pop("id", None)
        if identity in used:
            element.set("id", f"{name}-{identity}")
        for key, value in list(element.attrib.items()):
            for reference in _references(key, value):
                value = value.replace(f"#{reference}", f"#{name}-{reference}")
            if key == HREF:
                del element.attrib[key]
                key = "href"
            if key in ("d", "x", "y", "transform", "points", "width", "height"):
                value = _NUMBER.sub(lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."), value)
            element.set(key, " ".join(value.split()))
        element.tag = element.tag.removeprefix(SVG)
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    root.set("fill", "currentColor")
    root.set("role", "img")
    root.set("aria-label", alternative)
    return ElementTree.tostring(root, encoding="unicode")


def _references(key: str, value: str) -> list[str]:
    """Ids that an attribute points to."""
    return [value[1:]] if key == HREF and value.startswith("#") else re.findall(r"url\(#([^)]+)\)", value)


def _restyle(element: ElementTree.Element) -> None:
    """Turn a style attribute into presentation attributes and classes."""
    style = element.attrib.pop("style", "")
    for part in style.split(";"):
        key, _, value = (piece.strip() for piece in part.partition(":"))
        if key == "font":
            match = _FONT.match(value)
            if match:
                element.set("font-size", match[1])
            if "bold" in value.split():
                element.set("font-weight", "bold")
        elif key and value:
            element.set(key, value)
    classes = []
    for key in ("fill", "stroke"):
        value = element.get(key, "").upper()
        if value in DARK:
            classes.append(f"{key[0]}{value[1:].lower()}")
    if classes:
        element.set("class", " ".join(classes))


def dark_rules(scope: str) -> str:
    """Style rules that give the palette's classes their colours on a dark ground."""
    return "".join(
        f"{scope} .{key[0]}{light[1:].lower()}{{{key}:{dark}}}"
        for light, dark in DARK.items()
        for key in ("fill", "stroke")
    )
