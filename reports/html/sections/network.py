"""What the network costs: the predicted messages replayed, the critical path over ranks, and who waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ranksight.analysis.diagnosis.critical import PathShares, path_shares
from ranksight.comm.replay.replayed import CAUSES
from ranksight.core.arrays import Array
from ranksight.core.errors import RanksightError
from ranksight.core.names import short_names
from ranksight.core.units import in_full
from ranksight.reports.html.context import Context
from ranksight.reports.html.figures import Figure, draw
from ranksight.reports.html.writing import percent, value
from ranksight.reports.palette import LINES, PARTS
from ranksight.reports.plots import plot_shares
from ranksight.reports.plots._axes import micro
from ranksight.reports.sweep import RANKS, place

MOST = 5  # kernels that are drawn one by one
OTHERS = "other kernels"
OF_CAUSES = dict(zip(CAUSES, ("#CC79A7", "#009E73", "#E69F00"), strict=True))
COLOURS = [colour for colour in LINES if colour != PARTS["communication"]]


def build(context: Context) -> dict[str, Any] | None:
    """What the template needs; None where the messages cannot be replayed."""
    sweep = context.sweep
    if sweep.along != RANKS or not sweep.timed:
        return None
    shares = path_shares(context.model, sweep.points, sweep.breakdown.computing)
    if shares is None:
        return None
    kernels = _largest(shares.compute)
    path = [
        *((name, colour, part) for (name, part), colour in zip(kernels.items(), COLOURS, strict=False)),
        ("messages", PARTS["communication"], np.sum([np.zeros(len(shares.ranks)), *shares.messages.values()], axis=0)),
    ]
    waits = [(cause, OF_CAUSES[cause], part) for cause, part in shares.waits.items()]
    figures = [_figure("critical-path", path, shares, "of the critical path", "Critical path", whole=True)]
    if waits:
        figures.append(_figure("waiting", waits, shares, "of the time, mean over ranks", "Waiting by cause"))
    return {
        "figures": figures,
        "captions": {
            "critical-path": "Critical path over ranks: what the program's time is made of",
            "waiting": "Waiting over ranks by its cause, mean over ranks",
        },
        "at": place(RANKS, float(shares.ranks[-1])),
        "sentences": _sentences(shares),
        "heads": ["ranks", *(name for name, *_ in [*path, *waits])],
        "rows": [
            [in_full(count), *(percent(float(part[k])) for *_, part in [*path, *waits])]
            for k, count in enumerate(shares.ranks.tolist())
        ],
        "left_out": [f"{place(RANKS, count)}: {reason}" for count, reason in shares.left_out.items()],
    }


def _sentences(shares: PathShares) -> list[str]:
    """The diagnosis at the most ranks that were replayed."""
    try:
        return [micro(text) for text in shares.last.diagnosis().sentences()]
    except RanksightError:
        return []


def _largest(compute: Mapping[str, Array]) -> dict[str, Array]:
    """The kernels of most computation on the path, and the others together."""
    names = list(compute)[:MOST]
    shown = short_names(names, 30)
    largest = {shown[name]: compute[name] for name in names}
    rest = [part for name, part in compute.items() if name not in names]
    return {**largest, OTHERS: np.sum(rest, axis=0)} if rest else largest


def _figure(
    name: str,
    parts: Sequence[tuple[str, str, Array]],
    shares: PathShares,
    ylabel: str,
    what: str,
    whole: bool = False,
) -> Figure:
    most = ", ".join(f"{label} {percent(float(part[-1]))}" for label, _, part in parts)
    times = [("time", [value(float(x), "time") for x in shares.time])]
    return draw(
        name,
        lambda ax: plot_shares(shares.ranks, parts, ylabel, whole, ax),
        f"{what} over ranks, stacked; at {place(RANKS, float(shares.ranks[-1]))}: {most}.",
        (7.0, 4.2),
        list(range(len(shares.ranks))),
        [*times, *((label, [percent(float(x)) for x in part]) for label, _, part in parts)],
        [place(RANKS, float(x)) for x in shares.ranks],
        narrow=True,
    )
