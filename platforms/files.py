"""Read platform files (TOML), from the library that ships with the package or from a path."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from ranksight.core.errors import InputError
from ranksight.core.log import log
from ranksight.core.toml import check_known, decode, find, is_line, shipped, table_of
from ranksight.core.units import parse_size
from ranksight.platforms.platform import Cache, Clock, Layout, Memory, Platform, Source, measurable

SCHEMA = 1
_DEPTH = 16
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HEAD = ("name", "vendor", "model", "architecture", "events")
_NAMED = "processors"
_TABLES = ("topology", "clock", "caches", "memory", "network")
_SOURCED = "write { value = ..., source = '...' }"
_CURVE = "give { cores = [...], bandwidth = [...], source = '...' }"
_MACHINES = "ranksight.platforms.machines"
_SEE = "'ranksight calibrate -o FILE' writes a whole one, 'ranksight platforms generic > FILE' one to edit"

S = TypeVar("S", bound=Layout | Clock | Cache | Memory)


def names() -> tuple[str, ...]:
    """Names of the described machines that ship with the package, sorted."""
    return shipped(_MACHINES)


def load(name_or_path: str | os.PathLike[str]) -> Platform:
    """A platform by name, or from a file.

    `name_or_path`: one of :func:`names`; anything that ends in ``.toml`` or holds a path separator is a file.

    Raises InputError, naming file and key, for an unknown name, an unreadable file, or a value that is missing, of the
    wrong kind, out of range or without a source.
    """
    content, origin = find(name_or_path, _MACHINES, "platform")
    log("%s is read", origin)
    return parse(content, origin)


def parse(content: bytes, origin: str) -> Platform:
    """A platform from the bytes of a TOML file; `origin` names the file in messages."""
    table = decode(content, origin, _SEE)
    schema = table.pop("schema", None)
    if schema != SCHEMA or isinstance(schema, bool):
        raise InputError(f"{origin}: schema is {schema!r}", f"this version reads 'schema = {SCHEMA}'")
    check_known(table, (*_HEAD, _NAMED, *_TABLES), origin, "")
    head = {key: _text(table.get(key, "" if key in ("architecture", "events") else None), origin, key) for key in _HEAD}
    if not _NAME.fullmatch(head["name"]):
        raise InputError(f"{origin}: name: {head['name']!r}", "use letters, digits, '.', '_' and '-'")
    sources: dict[str, Source] = {}
    caches = _table(table, "caches", origin)
    check_known(caches, [f"L{level}" for level in range(1, 6)], origin, "caches.")
    memory = dict(_table(table, "memory", origin))
    scaling = _scaling(memory.pop("scaling", {}), sources, origin)
    try:
        return Platform(
            **head,
            processors=_processors(table.get(_NAMED, []), origin),
            layout=_section(Layout, _table(table, "topology", origin), "topology", sources, origin),
            clock=_section(Clock, _table(table, "clock", origin), "clock", sources, origin),
            caches=tuple(_cache(caches, key, sources, origin) for key in sorted(caches)),
            memory=_section(Memory, memory, "memory", sources, origin, scaling=scaling),
            network=_plain(table.get("network", {}), origin, "network"),
            sources=sources,
        )
    except InputError as error:
        raise error if error.what.startswith(origin) else InputError(f"{origin}: {error.what}", error.remedy) from None


def _table(table: Mapping[str, Any], key: str, origin: str, where: str = "") -> Mapping[str, Any]:
    return table_of(table, key, origin, _SEE, where)


def _text(value: object, origin: str, key: str) -> str:
    if not is_line(value):
        found = "missing" if value is None else f"{value!r:.60}"
        raise InputError(f"{origin}: {key}: {found}", "give one line of text")
    return str(value)


def _processors(value: object, origin: str) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > 64:
        raise InputError(
            f"{origin}: {_NAMED}: {value!r:.60}", "give a list of names, as the system calls the processor"
        )
    return tuple(_text(name, origin, _NAMED) for name in value)


def _section(
    kind: type[S], table: Mapping[str, Any], where: str, sources: dict[str, Source], origin: str, **more: Any
) -> S:
    """Values of one table; each is bare, or ``{ value, source, estimate }``; bare ones take the table's `source`."""
    known = measurable(kind)
    check_known(table, (*known, "source"), origin, f"{where}.")
    shared = table.get("source")
    values: dict[str, Any] = {}
    whole = {name for name, annotation in kind.__annotations__.items() if annotation.startswith("int")}
    for key, about in known.items():
        full = f"{where}.{key}"
        if key not in table:
            if about["optional"]:
                continue
            raise InputError(f"{origin}: {full} is missing ({about['text']}{_unit(about)})", _SEE)
        values[key], sources[full] = _sourced(table[key], shared, origin, full)
        values[key] = _number(values[key], about, key in whole, origin, full)
    return kind(**values, **more)


def _cache(caches: Mapping[str, Any], key: str, sources: dict[str, Source], origin: str) -> Cache:
    table = _table(caches, key, origin, "caches.")
    return _section(Cache, table, f"caches.{key}", sources, origin, level=int(key[1]))


def _unit(about: Mapping[str, Any]) -> str:
    return f", in {about['unit']}" if about["unit"] else ""


def _sourced(found: Any, shared: object, origin: str, key: str) -> tuple[Any, Source]:
    estimate, text = False, shared
    if isinstance(found, dict):
        check_known(found, ("value", "source", "estimate"), origin, f"{key}.")
        estimate, text = found.get("estimate", False), found.get("source", shared)
        if "value" not in found or not isinstance(estimate, bool):
            raise InputError(f"{origin}: {key}: no value, or 'estimate' is not true or false", _SOURCED)
        found = found["value"]
    if text is None:
        raise InputError(f"{origin}: {key} has no source", f"{_SOURCED}, or 'source' once for the table")
    source = _text(text, origin, f"{key}.source")
    if not source.strip():
        raise InputError(f"{origin}: {key}: the source is empty", "say where the value comes from")
    return found, Source(source, estimate)


def _number(value: Any, about: Mapping[str, Any], whole: bool, origin: str, key: str) -> float:
    if whole and about["unit"] == "B" and isinstance(value, str):
        try:
            value = parse_size(value)
        except InputError as error:
            raise InputError(f"{origin}: {key}: {error.what}", error.remedy) from None
    kinds = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise InputError(f"{origin}: {key}: {value!r:.60}", f"give a {'whole ' if whole else ''}number{_unit(about)}")
    if not math.isfinite(value) or value <= 0 or value < about["least"] or value > 1e18:
        raise InputError(f"{origin}: {key}: {value!r:.60} is out of range", f"give {about['text']}{_unit(about)}")
    return value if whole else float(value)


def _scaling(found: Any, sources: dict[str, Source], origin: str) -> dict[str, tuple[tuple[int, float], ...]]:
    """Curves ``{ cores = [...], bandwidth = [...], source = '...', estimate = true }`` by kernel."""
    scaling: dict[str, tuple[tuple[int, float], ...]] = {}
    if not isinstance(found, dict):
        raise InputError(f"{origin}: memory.scaling is not a table", _SEE)
    for kernel, curve in found.items():
        key = f"memory.scaling.{kernel}"
        if not isinstance(curve, dict) or curve.keys() - {"cores", "bandwidth", "source", "estimate"}:
            raise InputError(f"{origin}: {key}: {curve!r:.60}", _CURVE)
        cores, rates = curve.get("cores"), curve.get("bandwidth")
        if not isinstance(cores, list) or not isinstance(rates, list) or len(cores) != len(rates) or len(cores) > 4096:
            raise InputError(f"{origin}: {key}: cores and bandwidth are not lists of one length", _SEE)
        about = {"unit": "", "least": 1, "text": "numbers of cores"}
        counts = [int(_number(value, about, True, origin, f"{key}.cores")) for value in cores]
        about = {"unit": "B/s", "least": 0, "text": "bandwidths"}
        curve_rates = [_number(value, about, False, origin, f"{key}.bandwidth") for value in rates]
        if sorted(set(counts)) != counts:
            raise InputError(f"{origin}: {key}.cores: {counts} do not rise", "list each number of cores once, rising")
        scaling[kernel] = tuple(zip(counts, curve_rates, strict=True))
        said = {name: curve[name] for name in ("source", "estimate") if name in curve}
        sources[key] = _sourced({"value": 1, **said}, None, origin, key)[1]
    return scaling


def _plain(value: Any, origin: str, key: str, depth: int = 0) -> Any:
    """Nested tables, lists, numbers and texts as they are; dates and endless nesting are refused."""
    if depth > _DEPTH:
        raise InputError(f"{origin}: {key} is nested too deeply", f"{_DEPTH} levels are read")
    if depth == 0 and not isinstance(value, dict):
        raise InputError(f"{origin}: {key} is not a table", _SEE)
    if isinstance(value, dict):
        return {name: _plain(item, origin, f"{key}.{name}", depth + 1) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item, origin, key, depth + 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{origin}: {key}: {value!r} is not a finite number")
    if isinstance(value, str | int | float):  # bool is an int
        return value
    raise InputError(f"{origin}: {key}: a {type(value).__name__} is not read", "use numbers, texts, lists and tables")
