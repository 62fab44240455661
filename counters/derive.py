"""Metrics from raw events, by the processor's event table.

Cycles, stall cycles, loads served by each level, traffic and floating-point operations are sums, differences and
quotients of events, as the table of the processor defines them. Each metric records what it was derived from, and its
sampling error where its events were sampled.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.formula import Formula
from ranksight.core.records import dataclass
from ranksight.core.sampled import effective
from ranksight.counters.names import fold
from ranksight.platforms.events import EventTable


@dataclass(frozen=True)
class Derived:
    """Metrics formed from events."""

    columns: Mapping[str, Array]  # by the registry's names; of the events' shape
    provenance: Mapping[str, str]
    """``measured (inst_retired.any_p)``, ``derived from a, b: a + b`` with what the table notes about it."""
    missing: Mapping[str, tuple[str, ...]]
    """Metrics of the table that could not be formed, and the events that were not counted."""
    worth: Mapping[str, Array]
    """What a sample is worth in the metrics whose events were sampled (:mod:`ranksight.core.sampled`)."""


def derive(
    events: Mapping[str, Array],
    table: EventTable,
    origin: Mapping[str, str] | str = "measured",
    periods: Mapping[str, Array] | None = None,
) -> Derived:
    """Form every metric of `table` whose events are all among `events`.

    A metric is NaN where one of its events is; counts below zero, which differences of sampled events can give, are set
    to zero.

    Parameters
    ----------
    events : mapping of str to array
        Counts by event name; case, separators and privilege modifiers do not matter. NaN where not counted.
    origin : str or mapping of str to str
        Where the counts come from, of all or of each event: ``measured``, ``sampled, n = 1200`` ...
    periods : mapping of str to array, optional
        How many occurrences a sample of each event stands for, where events were sampled. The error of a metric is
        then that of its events, each by the difference that one standard error either way makes.
    """
    given = {fold(name): name for name in events}
    columns: dict[str, Array] = {}
    provenance: dict[str, str] = {}
    missing: dict[str, tuple[str, ...]] = {}
    worth: dict[str, Array] = {}
    for name, metric in table.metrics.items():
        wanted = {event: given.get(fold(event)) for event in metric.formula.names}
        absent = tuple(event for event, source in wanted.items() if source is None)
        if absent:
            missing[name] = absent
            continue
        sources = {event: source for event, source in wanted.items() if source is not None}
        counts = {event: np.asarray(events[source], np.float64) for event, source in sources.items()}
        values = metric.formula(counts)
        columns[name] = np.where(values < 0, 0.0, values)
        if periods is not None and (mine := {e: periods[source] for e, source in sources.items() if source in periods}):
            worth[name] = _worth(metric.formula, counts, columns[name], mine)
        origins = dict.fromkeys(
            origin if isinstance(origin, str) else origin.get(source, "measured") for source in sources.values()
        )
        how = "; ".join(origins)
        if metric.formula.text in metric.formula.names:
            said = f"{how} ({metric.formula.text})"
        else:
            said = f"derived from {', '.join(metric.formula.names)}: {metric.formula.text} ({how})"
        provenance[name] = f"{said}; {metric.note}" if metric.note else said
    return Derived(columns, provenance, missing, worth)


def _worth(formula: Formula, counts: Mapping[str, Array], value: Array, periods: Mapping[str, Array]) -> Array:
    """What a sample is worth in a metric formed from sampled counts."""
    variance, one = np.zeros(value.shape), np.zeros(value.shape)
    for event, period in periods.items():
        error = np.sqrt(counts[event] * period)
        up, down, more = (
            np.broadcast_to(formula({**counts, event: counts[event] + step}), value.shape)
            for step in (error, -error, np.broadcast_to(period, value.shape))
        )
        variance += ((up - down) / 2) ** 2
        one = np.maximum(one, np.abs(more - formula(counts)))
    found = effective(value, variance, one)
    largest = np.max([np.broadcast_to(period, value.shape) for period in periods.values()], axis=0)
    return np.where(np.isfinite(found) & (found > 0), found, largest)
