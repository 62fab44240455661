"""Which columns of numbers are parameters of the runs: what people chose for a run, not what came out of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from ranksight.core.arrays import Array, Ints
from ranksight.core.numerals import parse_numbers, states

SCATTER = 1.1
"""Largest over smallest count of repetitions; sizes that people choose for the same ranks differ by more."""
BRACKET = re.compile(r"[\[(][^\[\]()]*[\])]$")
"""End of the name of a column in brackets: its unit."""


def of_runs(
    cells: Mapping[str, Sequence[str]], keys: Sequence[Sequence[str]], sure: Collection[str]
) -> dict[str, Sequence[str]]:
    """The columns that have one value in a run.

    A run has a row a kernel and rank, which `keys` name. Columns that are not needed to distinguish rows are
    left out, from the one with the most values on, the last one first; what then differs within a run is a value. Where
    no column is left, or two rows do not differ, nothing can be concluded, and all are returned.
    """

    def runs(names: Iterable[str]) -> list[tuple[str, ...]]:
        return list(zip(*(cells[name] for name in names), strict=True))

    def distinct(names: Sequence[str]) -> bool:
        rows = list(zip(*(cells[name] for name in names), *keys, strict=True))
        return len(set(rows)) == len(rows)

    needed = list(cells)
    if not keys or not needed or not distinct(needed):
        return dict(cells)
    for name in sorted(needed, key=lambda name: (len(set(cells[name])), list(cells).index(name)), reverse=True):
        others = [other for other in needed if other != name]
        if name not in sure and others and distinct(others):
            needed = others
    found = set(runs(needed))
    return {name: cells[name] for name in cells if name in needed or len(set(runs([*needed, name]))) == len(found)}


def chosen(
    cells: Mapping[str, Sequence[str]],
    sure: Collection[str],
    time: Sequence[str] | None,
    decimal: str,
    tied: bool = True,
) -> list[str]:
    """The columns that people chose, in the order of the table; others are results.

    Those that are `sure` by their names are, or else the first of whole numbers, or the first. A further one is a
    parameter where it varies on its own: its values come again with several values of the others, so that its effect
    and theirs can be separated (a connected design), or, of whole numbers, it differs by more than repetitions do
    (:data:`SCATTER`). One that follows from the others is one where it is of whole numbers, as the size is in weak
    scaling, and no measured quantity: it has no unit of one, is no speedup (the inverse of the `time`), and does not
    fall while they rise, except as a share of a fixed whole (threads of each rank on the same cores). Without `tied`,
    none that follows from the others is one.
    """
    values = {name: parse_numbers(list(cells[name]), decimal)[0] for name in cells}
    whole = [name for name in cells if bool((values[name] % 1 == 0).all())]
    first = [name for name in cells if name in sure] or whole[:1] or list(cells)[:1]
    seconds = None if time is None else parse_numbers(list(time), decimal)[0]
    accepted = list(first)
    for name in cells:
        if name in accepted:
            continue
        place = _places(*(values[each] for each in accepted))
        value = values[name]
        if len(np.unique(_places(place, value))) > len(np.unique(place)):
            found = (name in whole and _ratio(place, value) > SCATTER) or _connected(place, value)
        else:
            uneven = len(accepted) == 1 and _falls(values[accepted[0]], value)
            found = tied and name in whole and not (_measured(name) or uneven or _speedup(value, seconds))
        accepted += [name] if found else []
    return [name for name in cells if name in accepted]


def _places(*columns: Array | Ints) -> Ints:
    """Numbers (n,) of the distinct rows."""
    rows = np.column_stack(columns)
    return np.asarray(np.unique(rows, axis=0, return_inverse=True)[1]).reshape(-1)


def _connected(place: Ints, value: Array) -> bool:
    """Whether places and values, joined where a row has both, are all reached from one."""
    from scipy.sparse import coo_array  # takes longer than to read a table
    from scipy.sparse.csgraph import connected_components

    level = _places(value)
    size = place.max() + level.max() + 2
    edges = coo_array((np.ones(len(place)), (place, place.max() + 1 + level)), shape=(size, size))
    count, _ = connected_components(edges, directed=False)
    return bool(count == 1)


def _ratio(place: Ints, value: Array) -> float:
    """Median over the places with several values of the largest over the smallest value."""
    low, high = np.full(place.max() + 1, np.inf), np.full(place.max() + 1, -np.inf)
    np.minimum.at(low, place, value)
    np.maximum.at(high, place, value)
    several = high > low
    return float(np.median(high[several] / np.maximum(low[several], 1.0)))


def _falls(parameter: Array, value: Array) -> bool:
    """Whether a count falls as the parameter rises, and their product is not constant within half a count."""
    order = np.argsort(parameter)
    low, high = parameter * (value - 0.5), parameter * (value + 0.5)
    return bool((np.diff(value[order]) <= 0).all() and low.max() > high.min())


def _speedup(value: Array, seconds: Array | None) -> bool:
    """Whether counts are the longest time over each time, within half a count."""
    if seconds is None or not (seconds > 0).all():
        return False
    return bool((np.abs(seconds.max() / seconds - value) <= 0.5).all())


def _measured(name: str) -> bool:
    """Whether a column's name ends in the unit of a measured quantity, in brackets."""
    bracket = BRACKET.search(name)
    return bracket is not None and (bracket[0][:-1].endswith("/s") or any(states(name, unit) for unit in "BJW"))
