"""What the columns of a Caliper profile mean: aggregation operators before ``#``, the quantity after the last one.

``sum#time.duration`` is exclusive time of a process, ``inclusive#sum#time.duration`` with its callees;
``avg#inclusive#sum#time.duration`` is the mean of that over processes. ``min#``, ``max#`` and ``avg#`` right before the
quantity speak of single visits.

Reports name columns for people: ``Avg time/rank``, ``Time (I)``; some use one name for inclusive and exclusive times.

Source: Caliper documentation, "Aggregation" and "Query language" (attribute names of the aggregate and cross services),
"ConfigManager" (names of columns in reports).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ranksight.core.records import dataclass
from ranksight.counters.names import unit_scale

_SCALED = frozenset({"scale", "inclusive_scale", "iscale"})
_INCLUSIVE = frozenset({"inclusive", "inclusive_scale", "iscale"})
_TIMES = {"time.duration": "time", "time.inclusive.duration": "time", "time.duration.ns": "time"}
_TIMES_INCLUSIVE = frozenset({"time.inclusive.duration"})
_COUNTS = frozenset({"count", "aggregate.count"})
_OPERATORS = frozenset({"sum", "min", "max", "avg", "count"}) | _SCALED | _INCLUSIVE
_REPORT = re.compile(
    r"(?:(?P<across>Min|Max|Avg|Total) )?[Tt]ime(?P<rank>/rank)?(?: \(s\))?(?: \((?P<kind>E|I|exc|inc)(?:lusive)?\))?$"
)


@dataclass(frozen=True, slots=True)
class Column:
    """One column."""

    name: str  # as in the file
    quantity: str  # the metric, or the quantity under its own name
    inclusive: bool | None  # none where the name leaves it open
    across: str  # how it was reduced over processes (``sum``, ``avg``, ``min``, ``max``), empty where it was not
    adds: bool  # whether it is a total of its process, not the extreme or mean of single visits
    scale: float | None  # factor to SI; None where the unit has to be guessed from the values


def column(name: str, unit: str | None) -> Column:
    """Understand the name of a column and the unit that the file gives for it."""
    report = _REPORT.match(name)
    if report:
        kind, across = report["kind"], (report["across"] or "").lower().replace("total", "sum")
        known = None if kind is None and (across or report["rank"]) else (kind or "e")[0].lower() == "i"
        return Column(name, "time", known, across, True, unit_scale(unit) if unit else 1.0)
    *operators, quantity = name.split("#")
    plain = [operator for operator in operators if operator not in _SCALED | _INCLUSIVE]
    inclusive = quantity in _TIMES_INCLUSIVE or any(operator in _INCLUSIVE for operator in operators)
    local = plain[-1] if plain else "sum"
    across = plain[0] if len(plain) > 1 else ""
    metric = quantity
    scale: float | None = 1.0
    if quantity in _TIMES:
        metric = _TIMES[quantity]
        scale = unit_scale(unit) if unit else None
        if scale is None and quantity.endswith(".ns"):
            scale = 1.0 if any(operator in _SCALED for operator in operators) else 1e-9
    elif quantity in _COUNTS:
        metric, local = "visits", "sum" if quantity == "count" and local == "count" else local
    elif unit:
        scale = unit_scale(unit) or 1.0
    bare = metric.rsplit(".", 1)[-1] if metric.startswith(("papi.", "libpfm.counter.", "topdown.")) else metric
    return Column(name, bare, inclusive, across, local == "sum", scale)


def is_metric(name: str, units: Iterable[str] = ()) -> bool:
    """Whether a column of this name holds numbers to be kept, and not a place (``source.line#...``)."""
    *operators, quantity = name.split("#")
    if operators:
        return all(operator in _OPERATORS for operator in operators) and quantity != "aggregate.slot"
    return name in units or name in _TIMES or name in _COUNTS or _REPORT.match(name) is not None


def chosen(columns: Iterable[Column], reduced: bool) -> dict[str, Column]:
    """The column that gives each quantity: a total, exclusive before inclusive, of one process or, where the profile is
    `reduced` over processes, the sum before the mean over them."""

    def preference(item: Column) -> tuple[int, bool]:
        order = ("sum", "avg", "") if reduced else ("", "avg", "sum")
        return order.index(item.across), item.inclusive is not False

    best: dict[str, Column] = {}
    for item in columns:
        if not item.adds or item.across not in ("", "sum", "avg"):
            continue
        if item.quantity not in best or preference(item) < preference(best[item.quantity]):
            best[item.quantity] = item
    return best
