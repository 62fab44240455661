"""Write a platform as a TOML file that people can read and edit."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ranksight.core.files import check_output, write_output
from ranksight.core.units import format_si
from ranksight.platforms.files import SCHEMA
from ranksight.platforms.platform import Platform, Source, measurable

_BARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


def save(platform: Platform, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """Write `platform` to `path` atomically.

    Raises InputError when the file exists and `overwrite` is false, or cannot be written.
    """
    target = Path(path)
    check_output(target, overwrite)
    write_output(target, dumps(platform))
    return target


def dumps(platform: Platform) -> str:
    """The text of a platform file; :func:`ranksight.platforms.files.parse` reads it back to an equal platform."""
    lines = [
        "# A machine as Ranksight sees it. Units: seconds, bytes, hertz; cache latencies in cycles.",
        "# Every value has a source: its own, or that of its table. 'estimate = true' marks what was inferred.",
        f"schema = {SCHEMA}",
    ]
    for key in ("name", "vendor", "model", "architecture", "events"):
        lines.append(f"{key} = {_text(getattr(platform, key))}")
    if platform.processors:
        lines.append(f"processors = {_plain(list(platform.processors))}  # as the system calls them")
    lines += _section("topology", platform.layout, platform.sources)
    lines += _section("clock", platform.clock, platform.sources)
    for cache in platform.caches:
        lines += _section(f"caches.{cache.name}", cache, platform.sources)
    lines += _section("memory", platform.memory, platform.sources)
    for kernel, curve in platform.memory.scaling.items():
        lines += ["", f"[memory.scaling.{_key(kernel)}]", f"cores = {_plain([cores for cores, _ in curve])}"]
        lines.append(f"bandwidth = {_plain([rate for _, rate in curve])}  # B/s")
        source = _source(platform.sources, f"memory.scaling.{kernel}")
        lines += [f"source = {_text(source.text)}", *(["estimate = true"] if source.estimate else [])]
    if platform.network:
        lines += _nested("network", platform.network)
    return "\n".join(lines) + "\n"


def _source(sources: Mapping[str, Source], key: str) -> Source:
    return sources.get(key) or Source("not stated", estimate=True)


def _section(where: str, section: Any, sources: Mapping[str, Source]) -> list[str]:
    present = {key: about for key, about in measurable(type(section)).items() if getattr(section, key) is not None}
    given = {key: _source(sources, f"{where}.{key}") for key in present}
    shared, times = Counter(source.text for source in given.values()).most_common(1)[0]
    lines = ["", f"[{where}]", *([f"source = {_text(shared)}"] if times > 1 else [])]
    for key, about in present.items():
        value, source = getattr(section, key), given[key]
        written = _plain(value)
        if source.estimate or source.text != shared or times == 1:
            parts = [f"value = {written}"]
            parts += [f"source = {_text(source.text)}"] if source.text != shared or times == 1 else []
            parts += ["estimate = true"] if source.estimate else []
            lines += [f"# {about['text']}{_readable(value, about['unit'])}", f"{key} = {{ {', '.join(parts)} }}"]
        else:
            lines.append(f"{key} = {written}  # {about['text']}{_readable(value, about['unit'])}")
    return lines


def _readable(value: float, unit: str) -> str:
    """The value as people say it, after a comma; sizes with binary prefixes."""
    if unit == "B":
        for scale, prefix in ((2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki")):
            if value >= scale:
                return f", {value / scale:.4g} {prefix}B"
        return ", B"
    if unit in ("s", "Hz", "B/s"):
        return f", {format_si(value, unit)}"
    return f", {unit}" if unit else ""


def _key(name: str) -> str:
    return name if name and set(name) <= _BARE else _text(name)


def _text(text: str) -> str:
    # JSON's escapes are a subset of those of TOML's basic strings, but for DEL, which TOML wants escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_plain, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(key)} = {_plain(item)}' for key, item in value.items())} }}"
    return _float(value) if isinstance(value, float) else repr(value)


def _float(value: float) -> str:
    """Shortest with an exponent of thousands where that reads back to the same number: ``2.4e9``, ``90e-9``."""
    for exponent in (12, 9, 6, -3, -6, -9, -12):
        text = f"{value / 10.0**exponent:.15g}e{exponent}"
        if 1 <= abs(value) / 10.0**exponent < 1000 and float(text) == value:
            return text
    return repr(value)


def _nested(where: str, table: Mapping[str, Any]) -> Iterable[str]:
    """A free table: plain values first, then its tables under headings of their own."""
    yield from ("", f"[{where}]")
    for key, value in table.items():
        if not isinstance(value, dict):
            yield f"{_key(key)} = {_plain(value)}"
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _nested(f"{where}.{_key(key)}", value)
