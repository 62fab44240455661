"""Names of other tools' metrics and events, mapped to the registry's names and SI units.

Names are compared folded: case, separators, PMU prefixes (``cpu/.../``, ``perf::``) and privilege modifiers (``:u``) do
not matter, so ``INST_RETIRED.ANY`` of VTune, ``INSTR_RETIRED_ANY`` of LIKWID and ``PAPI_TOT_INS`` are all
``instructions``. Quantities that no single event holds (memory traffic, flops of all widths, loads served by memory)
are weighted sums; where two events claim one metric the more precise one gets it and the other keeps its own name.

The names are listed in ``names.toml``, with their sources.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from importlib import resources

import numpy as np

from ranksight.core.arrays import Array
from ranksight.core.metrics import METRICS
from ranksight.core.records import dataclass


@dataclass(frozen=True, slots=True)
class Sum:
    """A metric that is a weighted sum of events: sum of weight x event, `optional` ones counted where present."""

    metric: str
    weights: Mapping[str, float]
    optional: Mapping[str, float] = field(default_factory=dict)
    keep: bool = True
    """Whether the events stay in the table under their own names."""


_TABLES = tomllib.loads(resources.files("ranksight.counters").joinpath("names.toml").read_text(encoding="utf-8"))
SYNONYMS: Mapping[str, Sequence[str]] = _TABLES["synonyms"]
"""Events that are one metric, the most precise first."""
SUMS = tuple(Sum(**each) for each in _TABLES["sums"])
"""Sums in the order in which they are tried; the first that can be formed gives the metric."""
UNITS: Mapping[str, float] = _TABLES["units"]
"""Factors that bring a unit, folded, to SI."""
_MODIFIERS = re.compile(r":(?:[ukhHGpPSDWI]+)$")
_PRECISE = re.compile(r"(?<=[A-Z0-9])_PS$")
"""Which VTune adds to the name of an event that it sampled precisely."""
_PMU = re.compile(r"^(?:cpu(?:_core|_atom)?|uncore_[a-z0-9_]+|armv\w+|[a-z0-9_]*imc[a-z0-9_]*)/(.*)/[a-zA-Z]*$")
_SEPARATORS = re.compile(r"[^a-z0-9]+")


@lru_cache(maxsize=8192)
def fold(name: str) -> str:
    """Fold an event's name: ``cpu/INST_RETIRED.ANY/u`` and ``inst_retired_any:u`` become ``inst_retired_any``."""
    bare = name.strip()
    pmu = _PMU.match(bare)
    if pmu:
        bare = pmu[1].removeprefix("event=").split(",")[0]
    bare = _PRECISE.sub("", _MODIFIERS.sub("", bare)).lower()
    bare = bare.split("::", 1)[1] if "::" in bare and bare.split("::", 1)[0] in {"perf", "perf_raw"} else bare
    return _SEPARATORS.sub("_", bare).strip("_")


_METRIC_OF: dict[str, tuple[str, int]] = {
    event: (metric, place) for metric, events in SYNONYMS.items() for place, event in enumerate(events, start=1)
}


def metric_name(name: str) -> str:
    """The registry's name of another tool's metric or event; `name` itself where the registry has none."""
    folded = fold(name)
    if folded in METRICS:
        return folded
    return _METRIC_OF[folded][0] if folded in _METRIC_OF else name


def unit_scale(unit: str) -> float | None:
    """Factor that brings values in `unit` to SI; None where the unit is unknown."""
    return UNITS.get(unit.strip().casefold())


@dataclass(frozen=True, slots=True)
class Translated:
    """Columns under the registry's names."""

    columns: dict[str, Array]
    """dict of str to ndarray, shape (n,): metrics in SI units; what the registry does not know keeps its own name."""
    provenance: dict[str, str]  # for each metric where it comes from
    notes: tuple[str, ...]  # what was decided on the way
    parts: dict[str, tuple[tuple[str, float], ...]]  # the columns that each metric is the sum of, with their factors

    @property
    def names(self) -> dict[str, str]:
        """For each metric that is one column under another name, that name."""
        single = {metric: parts[0] for metric, parts in self.parts.items() if len(parts) == 1}
        return {metric: name for metric, (name, weight) in single.items() if weight == 1 and name != metric}


def translate(
    columns: Mapping[str, Array], origin: str | Mapping[str, str] = "measured", aliases: Mapping[str, str] | None = None
) -> Translated:
    """Bring columns under their source's names to the registry's names.

    Parameters
    ----------
    columns : mapping of str to ndarray, shape (n,)
        Values under the source's names, in SI units already.
    origin : str or mapping of str to str
        Provenance of all columns, or of each (``"measured"`` where it is not listed).
    aliases : mapping of str to str, optional
        Names that only this source uses, and the metric each of them is.
    """
    given = {name: origin if isinstance(origin, str) else origin.get(name, "measured") for name in columns}
    claims: dict[str, list[tuple[int, str]]] = {}
    for name in columns:
        folded = fold(name)
        if aliases and name in aliases:
            claims.setdefault(aliases[name], []).append((-1, name))
        elif folded in METRICS:
            claims.setdefault(folded, []).append((0, name))
        elif folded in _METRIC_OF:
            metric, place = _METRIC_OF[folded]
            claims.setdefault(metric, []).append((place, name))
    chosen = {metric: min(names, key=lambda claim: claim[0])[1] for metric, names in claims.items()}
    winner = {name: metric for metric, name in chosen.items()}
    notes = [
        f"{name} is {metric} too, which {chosen[metric]} gives: kept under its own name"
        for metric, names in claims.items()
        for _, name in names
        if name not in winner
    ]
    result: dict[str, Array] = {}
    provenance: dict[str, str] = {}
    made: dict[str, tuple[tuple[str, float], ...]] = {}
    for name, values in columns.items():
        metric = winner.get(name, name)
        made[metric] = ((name, 1.0),)
        result[metric] = np.asarray(values, dtype=np.float64)
        said = given[name]
        provenance[metric] = said if metric == name or said != "measured" else f"measured ({name})"
    # metrics that are sums of others
    called = {fold(name): name for name in columns}
    for rule in SUMS:
        if rule.metric in result:
            continue
        # what the source counts by that name, or else the metric that is called so
        held = {name: columns.get(called.get(name, name), result.get(name)) for name in (*rule.weights, *rule.optional)}
        if any(held[name] is None for name in rule.weights):
            continue
        parts = {
            called.get(name, name): (weight, np.asarray(have if name in rule.weights else np.nan_to_num(have)))
            for name, weight in {**rule.weights, **rule.optional}.items()
            if (have := held[name]) is not None
        }
        total = sum((weight * values for weight, values in parts.values()), np.zeros(()))
        if (total < 0).any():
            notes.append(f"{rule.metric} came out negative in {int((total < 0).sum())} places and is set to 0 there")
        result[rule.metric] = np.where(total < 0, 0.0, total)
        made[rule.metric] = tuple(
            (source, weight * own)
            for name, (weight, _) in parts.items()
            for source, own in made.get(name, ((name, 1.0),))
        )
        terms = [name if weight == 1 else f"{name} x {weight:g}" for name, (weight, _) in parts.items()]
        provenance[rule.metric] = f"derived from {', '.join(terms)}"
        for name in () if rule.keep else parts:
            result.pop(name, None)
            provenance.pop(name, None)
    return Translated(result, provenance, tuple(notes), made)
