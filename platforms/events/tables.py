"""Loading event tables (TOML), from the library that ships with the package or from a file.

A table holds ``[[processors]]`` (which processors it is for), ``peak`` (what a core does in a cycle at most),
``[events]`` (code, unit mask and whether the event is precise) and ``[metrics]`` (a formula over events for each
metric).
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from ranksight.core.errors import InputError
from ranksight.core.formula import Formula, read_formula
from ranksight.core.records import dataclass
from ranksight.core.toml import check_known, decode, find, is_line, shipped, table_of

SCHEMA = 1
_TABLES = "ranksight.platforms.events"
_NAME = re.compile(r"[a-z][a-z0-9-]{0,40}")
_EVENT = re.compile(r"[a-z_][a-z0-9_.]{0,80}")
_HEAD = ("name", "title", "vendor", "source")
_PEAK = ("instructions", "flops_dp")
_CODES = {"event": 1 << 60, "umask": 1 << 16, "cmask": 1 << 8}


@dataclass(frozen=True, slots=True)
class Event:
    """A hardware event."""

    name: str  # as the processor's maker writes it, in small letters
    event: int = -1  # its code; `event` is -1 where perf is given a name
    umask: int = 0
    cmask: int = 0
    precise: bool = False  # whether a sample can name the very instruction
    note: str = ""
    alias: str = ""  # the name that perf is given where there is no code and it is not `name`

    def perf(self, device: str, modifiers: str = "", period: int = 0) -> str:
        """The event as perf takes it, named so that perf writes this name back.

        Parameters
        ----------
        device : str
            The counter unit as the kernel lists it: ``cpu``, ``cpu_core``, ``armv8_pmuv3_0``.
        modifiers : str
            Such as ``"u"`` for user code.
        period : int
            Occurrences between samples, for ``perf record``; precision is asked for then, where the event has it.
        """
        sampled = f"period={period}" if period else ""
        if self.alias:
            return f"{self.alias}/{sampled}/{modifiers}" if sampled else f"{self.alias}:{modifiers}".rstrip(":")
        codes = (("event", self.event), ("umask", self.umask), ("cmask", self.cmask))
        terms = [f"{key}={value:#x}" for key, value in codes if value > 0] if self.event >= 0 else [self.name]
        named = [f"name={self.name}"] if self.event >= 0 else []
        precision = "pp" if self.precise and period else ""
        return f"{device}/{','.join([*terms, *filter(None, [sampled]), *named])}/{modifiers}{precision}"


@dataclass(frozen=True, slots=True)
class Metric:
    """How a metric is formed from events: the formula, where it is from, and what a reader of it must know."""

    formula: Formula
    source: str
    note: str = ""


@dataclass(frozen=True)
class EventTable:
    """The events of one processor."""

    name: str
    title: str
    vendor: str
    source: str
    note: str
    counters: int  # events that can be counted at once in addition to cycles and instructions
    processors: tuple[Mapping[str, Any], ...]
    """Conditions on :class:`ranksight.platforms.events.Processor`, any of which is enough."""
    events: Mapping[str, Event]
    metrics: Mapping[str, Metric]
    peak: Mapping[str, float] = field(default_factory=dict)
    """Instructions and flops in double precision that a core does in a cycle at most; empty where that is not known."""

    def needed(self, metrics: Iterable[str]) -> tuple[str, ...]:
        """Names of the events that `metrics` are formed from, each once, in order.

        Raises InputError when the table forms no such metric.
        """
        found: dict[str, None] = {}
        for name in metrics:
            if name not in self.metrics:
                near = difflib.get_close_matches(name, self.metrics, n=3)
                raise InputError(
                    f"{self.title} has no events for {name!r}", f"it has: {', '.join(near or sorted(self.metrics))}"
                )
            found.update(dict.fromkeys(self.metrics[name].formula.names))
        return tuple(found)


def names() -> tuple[str, ...]:
    """Names of the tables that ship with the package, sorted."""
    return shipped(_TABLES)


def load(name_or_path: str | os.PathLike[str]) -> EventTable:
    """An event table by name, or from a file (anything that ends in ``.toml`` or holds a path separator).

    Raises InputError, naming file and key, for an unknown name, an unreadable file, or an entry that makes no sense.
    """
    return parse(*find(name_or_path, _TABLES, "event table"))


def parse(content: bytes, origin: str) -> EventTable:
    """An event table from the bytes of a TOML file; `origin` names it in messages.

    Raises InputError with the key that makes no sense.
    """
    table = decode(content, origin, "see the tables that ship with the package")
    check_known(table, ("schema", *_HEAD, "note", "counters", "processors", "peak", "events", "metrics"), origin, "")
    if table.get("schema") != SCHEMA or isinstance(table["schema"], bool):
        raise InputError(f"{origin}: schema is {table.get('schema')!r}", f"this version reads 'schema = {SCHEMA}'")
    head = {key: _text(table, key, origin) for key in _HEAD}
    if not _NAME.fullmatch(head["name"]):
        raise InputError(f"{origin}: name: {head['name']!r}", "use small letters, digits and '-'")
    counters = table.get("counters")
    if not isinstance(counters, int) or isinstance(counters, bool) or not 1 <= counters <= 64:
        raise InputError(f"{origin}: counters: {counters!r}", "give the number that a core counts at once")
    events = {name: _event(name, entry, origin) for name, entry in table_of(table, "events", origin).items()}
    metrics = {
        name: _metric(name, entry, events, head["source"], origin)
        for name, entry in table_of(table, "metrics", origin).items()
    }
    processors = table.get("processors", [])
    if not isinstance(processors, list) or not all(isinstance(entry, dict) for entry in processors):
        raise InputError(f"{origin}: [[processors]] is not a list of tables")
    note = _text(table, "note", origin) if "note" in table else ""
    peak = _peak(table["peak"], origin) if "peak" in table else {}
    return EventTable(**head, note=note, counters=counters, processors=tuple(processors), events=events,
                      metrics=metrics, peak=peak)  # fmt: skip


def _peak(entry: object, origin: str) -> dict[str, float]:
    if not isinstance(entry, dict):
        raise InputError(f"{origin}: peak: {entry!r:.60}", "write { instructions = 4, flops_dp = 16, source = '...' }")
    check_known(entry, (*_PEAK, "source"), origin, "peak.")
    _text(entry, "source", f"{origin}: peak")
    for name in _PEAK:
        value = entry.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 1024:
            raise InputError(f"{origin}: peak.{name}: {value!r}", "give a whole number a cycle, from 1")
    return {name: float(entry[name]) for name in _PEAK}


def _event(name: str, entry: object, origin: str) -> Event:
    where = f"{origin}: events.{name}"
    if not _EVENT.fullmatch(name) or not isinstance(entry, dict):
        raise InputError(f"{where}: no event", 'write "name" = { event = 0xd1, umask = 0x01 }')
    check_known(entry, (*_CODES, "perf", "precise", "note"), origin, f"events.{name}.")
    for key, most in _CODES.items():
        value = entry.get(key, 0)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < most:
            raise InputError(f"{where}.{key}: {value!r}", f"codes are whole numbers below {most:#x}")
    if not isinstance(entry.get("precise", False), bool):
        raise InputError(f"{where}.precise: {entry['precise']!r}", "write true or false")
    note = _text(entry, "note", where) if "note" in entry else ""
    codes = {key: entry[key] for key in _CODES if key in entry}
    alias = _text(entry, "perf", where) if "perf" in entry else ""
    if not re.fullmatch(r"[A-Za-z0-9_-]*", alias):
        raise InputError(f"{where}.perf: {alias!r}", "write a name that 'perf list' shows")
    return Event(name, **codes, precise=entry.get("precise", False), note=note, alias=alias)


def _metric(name: str, entry: object, events: Mapping[str, Event], source: str, origin: str) -> Metric:
    where = f"{origin}: metrics.{name}"
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,60}", name) or not isinstance(entry, dict):
        raise InputError(f"{where}: no metric", "write loads = { formula = '...' }")
    check_known(entry, ("formula", "source", "note"), origin, f"metrics.{name}.")
    formula = read_formula(_text(entry, "formula", where), where)
    unknown = [event for event in formula.names if event not in events]
    if unknown:
        raise InputError(f"{where}: the event {unknown[0]} is not in [events]", "add it with its code")
    note = _text(entry, "note", where) if "note" in entry else ""
    return Metric(formula, _text(entry, "source", where) if "source" in entry else source, note)


def _text(table: Mapping[str, Any], key: str, where: str) -> str:
    value = table.get(key)
    if not value or not is_line(value):
        raise InputError(f"{where}: {key}: {value!r:.60}", "write a line of text")
    return str(value)
