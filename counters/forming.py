"""Metrics of a reading that its source only gives the events of, by the formulas of the event tables.

Collectors and importers share the tables of :mod:`ranksight.platforms.events`. Every reader's readings come through
here, an import's once more when columns have the user's names. Where the platform is named, its table forms first. What
is left is formed as any other table forms it, if all tables that can agree on the values: the events at hand then leave
no doubt. Loads served by memory are, as the last resort, all loads that no cache served.

A formula's event is found under its own name, folded (:func:`ranksight.counters.names.fold`), under that of another
event of the same meaning, or as the metric that it was renamed to. At least one event of a formula must be there by
name: metrics alone do not say how a processor counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.experiment import COUNTER_KEYS
from ranksight.core.formula import read_formula
from ranksight.core.reading import Reading
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
        self.worth = _worth(reading, counters)

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
    if columns.synonyms or columns.own.keys() & _events():
        others: dict[str, list[_Found]] = {}
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
    reading = _with(reading, made)
    return replace(_with(reading, _rest(reading)), notes=(*reading.notes, *notes))


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


def _worth(reading: Reading, counters: pd.DataFrame) -> dict[str, Array]:
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
