"""Metrics of a reading that its source only gives the events of, by the formulas of the event tables.

Collectors and importers share the tables of :mod:`ranksight.platforms.events`. Every reader's readings come through
here, an import's once more when columns have the user's names. Where the platform is named, its table forms first. What
is left is formed as any other table forms it, if all tables that can agree on the values: the events at hand then leave
no doubt. Loads served by memory are, as the last resort, all loads that no cache served.

A formula's event is found under its own name, folded (:func:`ranksight.counters.names.fold`), under that of another
event of the same meaning, or as the metric that it was renamed to. At least one event of a formula must be there by
name: metrics alone do not say how a processor counts.

Stall cycles of which some events were counted are kept as a lower bound: the formula with none of the others, where
it grows with them. A note names the events that were not counted, and what a model lacks without them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.experiment import COUNTER_KEYS
from ranksight.core.formula import read_formula
from ranksight.core.metrics import METRICS
from ranksight.core.reading import Reading
from ranksight.core.records import dataclass
from ranksight.core.sampled import TABLE, sampling
from ranksight.counters.derive import derive
from ranksight.counters.names import fold, metric_name
from ranksight.platforms.events import EventTable, load, names
from ranksight.platforms.events.tables import Metric

if TYPE_CHECKING:
    import pandas as pd


ALL, CACHES = "loads", ("loads_l1", "loads_l2", "loads_l3")
"""Loads served by memory, where no event counts them, are all loads less those that caches served,"""
FURTHER = ("loads_fill_buffer", "loads_other_cache")
"""less these where they were counted."""
SHOWN = 3
"""Formulas that a note lists."""
STALLS = "stall_cycles"
COSTS = {
    STALLS: "T_comp and BF_mem T_mem are not separated",
    "loads": "E and the loads of each level are of no whole",
    "loads_mem": "they are what no cache served, or T_mem lacks the memory",
    "cycles": "neither CPI_exec nor the clock is known",
    "instructions": "CPI_exec is not known",
}
"""What a model lacks without a metric."""


@dataclass(frozen=True)
class _Found:
    """A metric as one table forms it; `table` is its title, empty where the formula is of every processor."""

    table: str
    formula: str
    values: Array
    provenance: str
    worth: Array | None


class _Columns:
    """The columns of a reading, found by the names of events."""

    def __init__(self, reading: Reading, counters: pd.DataFrame) -> None:
        self.counters = counters
        self.provenance = reading.provenance
        metrics = [str(name) for name in counters.columns if name not in COUNTER_KEYS]
        self.own = {fold(name): name for name in metrics}
        self.own.update({fold(source): name for name, source in reading.names.items() if name in counters.columns})
        self.synonyms = {metric_name(name): name for name in metrics if metric_name(name) != name}
        self.worth = worth_of(reading, counters)

    def find(self, event: str) -> str | None:
        """The column that holds an event; None where none does."""
        column = self.own.get(fold(event)) or self.synonyms.get(metric_name(event)) or metric_name(event)
        return column if column in self.counters.columns else None

    def by_name(self, event: str) -> bool:
        """Whether a column bears the name of an event, or another event's of the same meaning."""
        return fold(event) in self.own or metric_name(event) in self.synonyms

    def form(self, table: EventTable, bare: bool) -> dict[str, _Found]:
        """The metrics that `table` forms and the reading lacks; with `bare` those of no event by name too."""
        chosen: dict[str, Metric] = {}
        held: dict[str, str] = {}
        for name, metric in table.metrics.items():
            events = metric.formula.names
            found = {event: column for event in events if (column := self.find(event)) is not None}
            if name in self.counters.columns or len(found) < len(events):
                continue
            if bare or any(self.by_name(event) for event in events):
                chosen[name] = metric
                held.update(found)
        if not chosen:
            return {}
        values = {event: self.counters[column].to_numpy(np.float64) for event, column in held.items()}
        origin = {event: self.provenance.get(column, "measured") for event, column in held.items()}
        periods = {event: self.worth[column] for event, column in held.items() if column in self.worth}
        derived = derive(values, replace(table, metrics=chosen), origin, periods or None)
        shape = (len(self.counters),)
        return {
            name: _Found(
                table.title,
                chosen[name].formula.text,
                np.broadcast_to(column, shape).astype(np.float64),
                derived.provenance[name],
                derived.worth.get(name),
            )
            for name, column in derived.columns.items()
        }

    def partly(self, table: EventTable) -> dict[str, tuple[str, ...]]:
        """The metrics of which `table` forms nothing though some of their events are there by name, and the events
        that are not."""
        parts = {}
        for name, metric in table.metrics.items():
            events = metric.formula.names
            absent = tuple(event for event in events if self.find(event) is None)
            if name not in self.counters.columns and absent and any(self.by_name(event) for event in events):
                parts[name] = absent
        return parts

    def least(self, table: EventTable, name: str, absent: tuple[str, ...]) -> _Found | None:
        """A metric as `table` forms it with none of the events `absent`; None where it does not grow with each of them,
        or nothing is left."""
        metric = table.metrics[name]
        held = {event: column for event in metric.formula.names if (column := self.find(event)) is not None}
        counts = {event: self.counters[column].to_numpy(np.float64) for event, column in held.items()}
        none = np.zeros(len(self.counters))
        values = np.asarray(metric.formula({**counts, **dict.fromkeys(absent, none)}))
        many = metric.formula({**counts, **dict.fromkeys(absent, none + np.nanmax(list(counts.values())))})
        if not (np.nan_to_num(many - values) >= 0).all() or not np.nan_to_num(values).max(initial=0.0) > 0:
            return None
        origin = "; ".join(dict.fromkeys(self.provenance.get(column, "measured") for column in held.values()))
        said = f"lower bound from {', '.join(held)}, without {', '.join(absent)} ({origin})"
        periods = [self.worth[column] for column in held.values() if column in self.worth]
        return _Found(table.title, metric.formula.text, values, said, np.max(periods, axis=0) if periods else None)


def formed(reading: Reading, table: EventTable | None = None, doubtful: bool = True) -> Reading:
    """The reading with the metrics that can be formed from its events.

    Metrics that it holds already are left as they are. `table`: events of the platform that was measured. `doubtful`:
    whether notes say which metrics are left out because tables form them differently.
    """
    counters = reading.counters
    if counters is None:
        return reading
    columns = _Columns(reading, counters)
    made = {} if table is None else columns.form(table, bare=True)
    notes: list[str] = []
    others: dict[str, list[_Found]] = {}
    if columns.synonyms or columns.own.keys() & _events():
        for name in names():
            for metric, found in columns.form(load_once(name), bare=False).items():
                if metric not in made:
                    others.setdefault(metric, []).append(found)
        for metric, ways in others.items():
            distinct = _distinct(ways)
            if len(distinct) == 1:
                made[metric] = distinct[0]
            elif doubtful:
                listed = "; ".join(f"{way.table}: {way.formula}" for way in distinct[:SHOWN])
                notes.append(
                    f"{metric} is not formed: its events mean different counts on different processors ({listed}); "
                    "name the machine with --platform"
                )
    bounds, incomplete = _incomplete(columns, table, {*made, *others})
    reading = _with(reading, {**made, **bounds})
    return replace(_with(reading, _rest(reading)), notes=(*reading.notes, *notes, *(incomplete if doubtful else ())))


def _incomplete(
    columns: _Columns, table: EventTable | None, made: Collection[str]
) -> tuple[dict[str, _Found], list[str]]:
    """Lower bounds of what lacks events, and notes on the events: by the table of the platform, else by all that
    agree."""
    notes, bounds = list[str](), dict[str, _Found]()
    if table is None and not columns.own.keys() & _events():
        return bounds, notes
    tables = [load_once(name) for name in names()] if table is None else [table]
    ways: list[tuple[_Found, tuple[str, ...]]] = []
    for each in tables:
        for name, absent in columns.partly(each).items():
            least = columns.least(each, name, absent) if name == STALLS and name not in made else None
            if least is not None:
                ways.append((least, absent))
            elif table is not None and name in COSTS and name not in made:
                notes.append(f"{name} is not formed: {', '.join(absent)} was not counted; without it {COSTS[name]}")
    if len(_distinct(way for way, _ in ways)) == 1:
        bounds[STALLS], absent = ways[0]
        notes.append(
            f"{STALLS} is a lower bound: {' or '.join(dict.fromkeys(', '.join(lacking) for _, lacking in ways))} was "
            "not counted; the stalls that it counts are taken for execution, T_comp"
        )
    return bounds, notes


def _rest(reading: Reading) -> dict[str, _Found]:
    """Loads served by memory, as what no cache served (Ding et al. 2018, table 1)."""
    counters = reading.counters
    assert counters is not None
    if not {ALL, *CACHES} <= set(counters.columns):
        return {}
    served = [*CACHES, *(name for name in FURTHER if name in counters.columns)]
    formula = read_formula(f"max(0, {' - '.join([ALL, *served])})", "loads_mem")
    note = "" if FURTHER[0] in served else "loads that met a line already on its way are among them"
    only = replace(load_once("generic"), title="", metrics={"loads_mem": Metric(formula, "", note)})
    return _Columns(reading, counters).form(only, bare=True)


def _with(reading: Reading, made: Mapping[str, _Found]) -> Reading:
    """The reading with metrics added."""
    counters = reading.counters
    if not made or counters is None:
        return reading
    counters = counters.assign(**{name: found.values for name, found in made.items()})
    tables = dict(reading.tables)
    worth = {name: found.worth for name, found in made.items() if found.worth is not None}
    if worth:
        import pandas as pd

        before = [tables[TABLE]] if TABLE in tables else []
        tables[TABLE] = pd.concat([*before, sampling(counters, worth)], ignore_index=True)
    said = {
        name: f"{found.provenance}; as on {found.table}" if found.table else found.provenance
        for name, found in made.items()
    }
    return replace(reading, counters=counters, tables=tables, provenance={**reading.provenance, **said})


def worth_of(reading: Reading, counters: pd.DataFrame) -> dict[str, Array]:
    """What a sample is worth in each row of the columns that are made of samples; NaN where that is unknown."""
    table = reading.tables.get(TABLE)
    if table is None or not {"metric", "worth"} <= set(table.columns):
        return {}
    places = counters[["kernel", "rank"]].astype({"kernel": str})
    return {
        str(metric): places.merge(rows.astype({"kernel": str}), on=["kernel", "rank"], how="left")["worth"].to_numpy()
        for metric, rows in table[["kernel", "rank", "metric", "worth"]].groupby("metric", observed=True)
        if metric in counters.columns
    }


def _distinct(ways: Iterable[_Found]) -> list[_Found]:
    """Those whose values differ."""
    kept: list[_Found] = []
    for way in ways:
        if not any(np.allclose(way.values, one.values, rtol=1e-9, atol=0.0, equal_nan=True) for one in kept):
            kept.append(way)
    return kept


@lru_cache(maxsize=64)
def load_once(name: str) -> EventTable:
    """An event table that ships, parsed once."""
    return load(name)


@lru_cache(maxsize=1)
def _events() -> frozenset[str]:
    """Folded names of all events of all tables that ship."""
    return frozenset(fold(event) for name in names() for event in load_once(name).events)


def is_event(name: str) -> bool:
    """Whether a name is that of an event, of a table or of another tool: of several words, as few parameters are, and a
    count, which needs no unit."""
    folded, known = fold(name), metric_name(name)
    counted = known != name and known in METRICS and not METRICS[known].unit
    return "_" in folded and (counted or folded in _events())
