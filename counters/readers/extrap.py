"""Files of Extra-P: its text format, JSON (both forms), JSON Lines and Talpas.

The formats are those of Extra-P's manual, "File formats": a text file lists ``PARAMETER``, ``POINTS`` and, for every
``METRIC`` and ``REGION``, one ``DATA`` line a point with the values of its repetitions; a JSON file holds them under
``measurements``, or (the older form) as tables that refer to each other by id; JSON Lines and Talpas files hold one
value a line. The n-th value of a point is its n-th repetition.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ranksight.core.errors import InputError
from ranksight.core.experiment import ALL_RANKS, COUNTER_KEYS, WHOLE
from ranksight.core.metrics import METRICS
from ranksight.core.reading import READERS, Reading
from ranksight.core.units import some_of
from ranksight.counters.readers._delimited import decode
from ranksight.counters.readers._files import Format, damaged

KEYWORDS = ("PARAMETER", "POINTS", "METRIC", "REGION", "DATA")
DEFAULT_METRIC = "value"
"""Name of a metric that the file leaves unnamed."""

Point = tuple[tuple[str, float], ...]


class Measurements:
    """Values as they are read: configuration, kernel, metric and the repetitions in the order of the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.points: dict[Point, dict[tuple[str, str], list[float]]] = {}
        self.notes: list[str] = []

    def add(self, point: Mapping[str, object], kernel: object, metric: object, values: object, where: object) -> None:
        """Add the values of one kernel and metric at one configuration; `where` names the place in messages."""
        place = f"{self.path}:{where}" if isinstance(where, int) else f"{self.path}: {where}"
        if not isinstance(kernel, str) or not isinstance(metric, str):
            raise InputError(f"{place}: the name of a kernel or metric is not text")
        listed = values if isinstance(values, list) else [values]
        self.at(point, place).setdefault(_key(kernel, metric), []).extend(_numbers(listed, place))

    def at(self, point: Mapping[str, object], place: str) -> dict[tuple[str, str], list[float]]:
        """What is held of a configuration, to add to by kernel and metric; `place` is for messages."""
        if not point:
            raise InputError(f"{place} has no parameter")
        key = tuple((str(name), _number(value, place, finite=True)) for name, value in point.items())
        if self.points:
            names = [name for name, _ in next(iter(self.points))]
            if sorted(names) != sorted(name for name, _ in key):
                raise InputError(f"{place} has the parameters {', '.join(point)}, those before {', '.join(names)}")
            given = dict(key)
            key = tuple((name, given[name]) for name in names)
        return self.points.setdefault(key, {})

    def readings(self) -> Iterator[Reading]:
        """One reading a configuration and repetition. Raises InputError when the file held no value."""
        if not any(math.isfinite(v) for data in self.points.values() for values in data.values() for v in values):
            raise InputError(f"{self.path} holds no measurement")
        self._leave_out()
        for point, data in self.points.items():
            kernels = {kernel: at for at, kernel in enumerate(dict.fromkeys(kernel for kernel, _ in data))}
            held = {metric: at for at, metric in enumerate(dict.fromkeys(metric for _, metric in data))}
            table = np.full((max(map(len, data.values())), len(held), len(kernels)), np.nan)
            for (kernel, metric), values in data.items():
                table[: len(values), held[metric], kernels[kernel]] = values
            # Categories, once for all repetitions: to look names up anew in every table takes most of an import.
            names = pd.CategoricalDtype(pd.Index(sorted(kernels), dtype="str"))
            place = {name: at for at, name in enumerate(names.categories)}
            codes = np.array([place[name] for name in kernels], dtype=np.int32)
            for repetition, numbers in enumerate(table):
                known = ~np.isnan(numbers)
                some = known.any(axis=0)
                if not some.any():
                    continue
                columns = {name: numbers[at][some] for name, at in held.items() if known[at].any()}
                held_by = pd.Categorical.from_codes(codes[some], dtype=names)
                if not some.all():
                    held_by = held_by.remove_unused_categories()
                yield Reading(
                    configuration=dict(point),
                    counters=pd.DataFrame({"kernel": held_by, "rank": np.int32(ALL_RANKS), **columns}),
                    repetition=repetition,
                    exclusive=False,
                    provenance=dict.fromkeys(columns, "measured"),
                    notes=tuple(self.notes),
                    source=(str(self.path),),
                )

    def _leave_out(self) -> None:
        """Take out values below zero, which mark runs that failed, and note them and those that are missing, by
        metric."""
        lost: dict[tuple[str, str], tuple[dict[str, None], dict[str, None]]] = {}
        for point, data in self.points.items():
            for (kernel, metric), values in data.items():
                below = metric in METRICS and min(values, default=0.0) < 0
                for what, some in (("below zero", below), ("nan", any(map(math.isnan, values)))):
                    if some:
                        where = ", ".join(f"{name} = {value:g}" for name, value in point)
                        kernels, places = lost.setdefault((metric, what), ({}, {}))
                        kernels[kernel] = places[where] = None
                if below:
                    values[:] = [math.nan if value < 0 else value for value in values]
        self.notes += [
            f"{self.path.name}: {metric} of {some_of(list(kernels))} is {what} at {some_of(list(places))}: left out"
            for (metric, what), (kernels, places) in lost.items()
        ]


def _key(kernel: str, metric: str) -> tuple[str, str]:
    """Kernel and metric under the names that an experiment has for them."""
    name = metric.strip() or DEFAULT_METRIC
    return kernel.strip() or WHOLE, f"{name}_value" if name in (*COUNTER_KEYS, "run") else name


def _numbers(values: list[object], place: str) -> list[float]:
    """Measured values, NaN where one is missing."""
    if all(type(value) is str for value in values):
        try:
            found = list(map(float, values))  # type: ignore[arg-type]
        except ValueError:
            pass
        else:
            if not any(map(math.isinf, found)):
                return found
    return [_number(value, place) for value in values]


def _number(value: object, place: str, finite: bool = False) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise InputError(f"{place}: {value!r} is not a number")
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise InputError(f"{place}: {value!r} is not a number") from None
    if math.isinf(number) or (finite and math.isnan(number)):
        raise InputError(f"{place}: {value!r} is not finite", "correct the value, or leave it out")
    return number


def read_text(path: Path, text: str) -> Measurements:
    """Read the text format."""
    found = Measurements(path)
    parameters: list[str] = []
    points: list[tuple[float, ...]] = []
    held: list[dict[tuple[str, str], list[float]]] = []
    kernel, metric, at = "", "", 0

    def ended(line: int) -> None:
        # Where one is missing in the middle, those behind it would move to other points.
        if 0 < at < len(points):
            what = " of ".join(filter(None, (metric, kernel))) or "the program"
            point = ", ".join(f"{name} = {value:g}" for name, value in zip(parameters, points[at], strict=True))
            raise InputError(
                f"{path}:{line}: {at} DATA lines of {what} for {len(points)} POINTS: point {at + 1} ({point}), or one "
                "before it, has none",
                "which is missing cannot be known: write 'DATA nan' where nothing was measured",
            )

    for line, content in enumerate(text.split("\n"), 1):
        word, rest = [*content.split(maxsplit=1), "", ""][:2]
        rest = rest.strip()
        if not word or word.startswith("#"):
            continue
        if word == "PARAMETER":
            parameters += rest.split()
            if len(set(parameters)) != len(parameters) or not rest or points:
                raise InputError(f"{path}:{line}: PARAMETER without a new name, or after POINTS")
        elif word == "POINTS":
            points += _points(path, line, rest, len(parameters))
        elif word in ("METRIC", "REGION"):
            ended(line)
            metric, kernel, at = (rest, kernel, 0) if word == "METRIC" else (metric, rest, 0)
        elif word == "DATA":
            if at >= len(points):
                raise InputError(f"{path}:{line}: a DATA line more than there are POINTS ({len(points)})")
            if at == len(held):
                held.append(found.at(dict(zip(parameters, points[at], strict=True)), f"{path}:{line}"))
            values = _numbers(rest.split(), f"{path}:{line}")  # type: ignore[arg-type]
            held[at].setdefault(_key(kernel, metric), []).extend(values)
            at += 1
        else:
            raise InputError(f"{path}:{line}: {word[:40]!r} is none of {', '.join(KEYWORDS)}")
    ended(line)
    return found


def _points(path: Path, line: int, rest: str, parameters: int) -> list[tuple[float, ...]]:
    if not parameters:
        raise InputError(f"{path}:{line}: POINTS before any PARAMETER")
    if "(" in rest:
        if not re.fullmatch(r"(\([^()]*\)\s*)+", rest):
            raise InputError(f"{path}:{line}: parentheses do not match in {rest[:60]!r}")
        groups = [group.replace(",", " ").split() for group in re.findall(r"\(([^()]*)\)", rest)]
    else:
        words = rest.split()
        groups = [words[at : at + parameters] for at in range(0, len(words), parameters)]
    wrong = [group for group in groups if len(group) != parameters]
    if wrong:
        point = " ".join(wrong[0])
        raise InputError(f"{path}:{line}: the point ({point}) has {len(wrong[0])} values for {parameters} parameters")
    return [tuple(_number(word, f"{path}:{line}", finite=True) for word in group) for group in groups]


def read_json(path: Path, content: Mapping[str, Any]) -> Measurements:
    """Read both forms of JSON."""
    found = Measurements(path)
    try:
        if "callpaths" in content:
            _add_tables(found, content)
        else:
            _add_nested(found, content)
    except KeyError as error:
        raise damaged(f"{path}: {error} is missing, or refers to nothing") from error
    except (TypeError, AttributeError) as error:
        raise damaged(f"{path} is not built as Extra-P's JSON: {error}") from error
    return found


def _add_tables(found: Measurements, content: Mapping[str, Any]) -> None:
    """The older form: tables that refer to each other by id."""
    names = {
        key: {entry["id"]: entry["name"] for entry in content[key]} for key in ("parameters", "callpaths", "metrics")
    }
    points = {
        entry["id"]: {
            names["parameters"][pair["parameter_id"]]: pair["parameter_value"]
            for pair in entry["parameter_value_pairs"]
        }
        for entry in content["coordinates"]
    }
    for at, entry in enumerate(content["measurements"], 1):
        kernel, metric = names["callpaths"][entry["callpath_id"]], names["metrics"][entry["metric_id"]]
        found.add(points[entry["coordinate_id"]], kernel, metric, entry["value"], f"measurement {at}")


def _add_nested(found: Measurements, content: Mapping[str, Any]) -> None:
    parameters = [entry["name"] if isinstance(entry, dict) else entry for entry in content["parameters"]]
    for kernel, metrics in content["measurements"].items():
        for metric, entries in metrics.items():
            for at, entry in enumerate(entries, 1):
                place = f"{metric} of {kernel}, entry {at}"
                point = entry["point"] if isinstance(entry["point"], list) else [entry["point"]]
                if len(point) != len(parameters):
                    raise InputError(f"{found.path}: {place}: {len(point)} values for {len(parameters)} parameters")
                found.add(dict(zip(parameters, point, strict=True)), kernel, metric, entry["values"], place)


def read_lines(path: Path, text: str) -> Measurements:
    """Read JSON Lines (``params``) and Talpas (``parameters``, semicolons between the entries)."""
    found = Measurements(path)
    for line, content in enumerate(text.split("\n"), 1):
        if not content.strip() or content.lstrip().startswith("#"):
            continue
        try:
            entry = json.loads(_commas(content))
        except (ValueError, RecursionError) as error:
            raise damaged(f"{path}:{line} is not valid JSON: {error}") from error
        point = entry.get("params", entry.get("parameters")) if isinstance(entry, dict) else None
        if not isinstance(point, dict) or "value" not in entry:
            raise InputError(f"{path}:{line} lacks {'value' if isinstance(point, dict) else 'params or parameters'}")
        found.add(point, entry.get("callpath", ""), entry.get("metric", ""), entry["value"], line)
    return found


def _commas(line: str) -> str:
    """Semicolons between entries, but not those inside a text, become commas."""
    return re.sub(r'("(?:[^"\\]|\\.)*")|;', lambda found: found[1] or ",", line)


def _is_one(path: Path, head: str) -> bool:
    """By the first keyword, or by the names of the entries."""
    start = head.lstrip()
    while start.startswith("#") and "\n" in start:
        start = start.partition("\n")[2].lstrip()
    if start.startswith("PARAMETER") and start[9:10].isspace():
        return True
    if not start.startswith("{"):
        return False
    line = start.partition("\n")[0]
    lines = '"value"' in line and ('"params"' in line or '"parameters"' in line)
    old = '"callpaths"' in head and ('"coordinates"' in head or '"parameter_value_pairs"' in head)
    new = '"parameters"' in head and '"measurements"' in head and '"point"' in head
    return lines or old or new


def _read(path: Path, rank: int | None) -> Iterator[Reading]:
    text, _ = decode(path)
    yield from _measurements(path, text.replace("\r\n", "\n").replace("\r", "\n")).readings()


def _measurements(path: Path, text: str) -> Measurements:
    if not text.lstrip().startswith("{"):
        return read_text(path, text)
    try:
        content = json.loads(text)
    except RecursionError as error:
        raise damaged(f"{path} is nested too deeply") from error
    except ValueError as error:
        # An entry that is whole on the first line has others below it.
        first = text.lstrip().partition("\n")[0]
        if first.rstrip().endswith("}") and '"value"' in first:
            return read_lines(path, text)
        raise damaged(f"{path} is not valid JSON: {error}") from error
    single = "value" in content and "measurements" not in content
    return read_lines(path, text) if single else read_json(path, content)


READERS.register("extrap")(Format("Extra-P text, JSON, JSON Lines and Talpas files", _is_one, _read, None))
