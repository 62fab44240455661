"""The kit of readers: recognising, reading twice, damaged files, files of other tools."""

from __future__ import annotations

import os
import random
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ranksight.core import limits
from ranksight.core.errors import ContractError, InputError
from ranksight.core.experiment import COUNTER_KEYS
from ranksight.core.reading import Reader, Reading, in_time, validated

HEAD = 4096
"""Bytes of a file that :meth:`Reader.recognises` is given."""
OTHERS = (b"", b"\n\n", b"\0" * 5000, b"\x7fELF" + bytes(range(256)) * 16, b"hello world\n" * 500, b"a,b\n1,2\n", b"{}",
          b"[]", b"[1, 2]", b"<?xml version='1.0'?><a/>", "größe\n".encode("utf-16"), b"0 1 2 3\n" * 600,
          b"1 " * 2048 + b"\n", b"a 1 " * 1024 + b"\n")  # fmt: skip
"""Files of no tool."""
PIECES = (b"1e300", b"-5", b"nan", b"inf", b"9" * 23, b"\0", b"\xff\xfe", b'"', b",", b"\n", b"../../x")
"""What is put into a file to damage it."""
CUTS = 12
CHANGES = 24
"""Copies of a sample that are cut off, and that are changed."""
LOST = (b"nan", b"18446744073709551615", b"-1")
"""What a tool writes in place of a value that it does not have, or whose counter wrapped."""
PLACES = 16
"""Numbers of a sample that are put into their place."""
_NUMERIC = re.compile(rb"(?<![\w.'/<-])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\w'/-])")


def check_reader(reader: Reader, sample: str | os.PathLike[str], by_name: bool = False) -> None:
    """Check that a reader keeps the contract of :class:`ranksight.core.reading.Reader`.

    Parameters
    ----------
    sample : path
        A file or folder of its format, of some kilobytes: it is read some forty times.
    by_name : bool
        Whether the reader is only taken where it is named, as another one recognises its files.

    Raises
    ------
    AssertionError
        - ``text`` is a line;
        - ``recognises`` says True for the sample unless it is taken `by_name`, and False for files of no tool and for
          an empty folder;
        - ``read`` yields readings that :meth:`~ranksight.core.reading.Reading.validate` accepts, with counters or
          messages in them, every kernel once a rank, and a provenance for every metric;
        - reading twice gives the same;
        - where a number of the sample is ``nan``, wrapped or below zero, the file is refused, or each value that is
          not kept is named by a note;
        - a damaged or missing file, or one of another tool, raises InputError that names it, in one line, or is read
          as a valid reading; any other exception fails.
    """
    path = Path(sample)
    assert isinstance(reader.text, str), "text is a str: what the reader reads, for the listing"
    assert reader.text.strip(), "text says what the reader reads, for the listing"
    assert "\n" not in reader.text, "text is one line"
    assert reader.recognises(path, _head(path)) is not by_name, f"recognises({path.name}) is {by_name}"
    first, second = ([_sound(one, path) for one in in_time(path, reader.read(path))] for _ in range(2))
    assert first, f"read({path.name}) yields no reading"
    assert len(first) == len(second), "reading twice gives other numbers of readings"
    for one, other in zip(first, second, strict=True):
        assert _same(one, other), "reading twice gives other readings"
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        _check_others(reader, place)
        for copy in _damaged(path, place):
            reader.recognises(copy, _head(copy))
            read_or_error(reader, copy)
        for copy in _without_a_value(path, place):
            _check_losses(reader, copy, first)


def read_or_error(reader: Reader, path: str | os.PathLike[str]) -> str:
    """The message of the error that reading a file raises; empty where the readings are valid.

    Raises AssertionError when an exception is not an InputError, or a ContractError, or does not name the file, or has
    several lines.
    """
    path = Path(path)
    try:
        for reading in in_time(path, reader.read(path)):
            _sound(reading, path)
    except ContractError as error:
        raise AssertionError(str(error)) from error
    except InputError as error:
        text = str(error)
        assert path.name in text or path.parent.name in text, f"the error does not name {path.name}: {text}"
        assert "\n" not in text, f"the error has several lines: {text}"
        return text
    except AssertionError:
        raise
    except Exception as error:
        raise AssertionError(f"reading {path.name} raises {type(error).__name__}, not InputError: {error}") from error
    return ""


Cell = tuple[int, str, int, str]
"""The place of a reading among all of a file, a kernel, a rank and a metric."""


def _cells(readings: list[Reading]) -> dict[Cell, float]:
    """All values of counters that the readings hold."""
    found: dict[Cell, float] = {}
    for at, reading in enumerate(readings):
        if (table := reading.counters) is not None:
            kernels, ranks = table["kernel"].astype(str).tolist(), table["rank"].tolist()
            for name in map(str, table.columns.difference(list(COUNTER_KEYS))):
                values = table[name].to_numpy(dtype=np.float64)
                found |= {
                    (at, kernel, int(rank), name): float(value)
                    for kernel, rank, value in zip(kernels, ranks, values, strict=True)
                    if np.isfinite(value)
                }
    return found


def _check_losses(reader: Reader, copy: Path, whole: list[Reading]) -> None:
    """Raise AssertionError where a file with one number damaged is read, has fewer values, and no note says which.

    A kernel, rank or metric whose name was damaged has its values under another one: only fewer values are a loss.
    """
    try:
        found = [_sound(one, copy) for one in in_time(copy, reader.read(copy))]
    except InputError:
        return
    before, after = _cells(whole), _cells(found)
    sent = [sum(len(one.messages) for one in each if one.messages is not None) for each in (whole, found)]
    if len(after) >= len(before) and len(found) >= len(whole) and sent[1] >= sent[0]:
        return
    said = {note for reading in whole for note in (*reading.notes, *reading.warnings)}
    new = " ".join(note for one in found for note in (*one.notes, *one.warnings) if note not in said)
    lost = sorted(before.keys() - after.keys())
    assert new, f"{_named(lost, whole)} is dropped without a note"
    names = {name for at, kernel, _, metric in lost for name in (kernel, metric, *_sources(whole[at], metric))}
    named = not lost or "left out" in new or any(name in new for name in names)
    assert named, f"no note names {_named(lost, whole)}: {new}"


def _sources(reading: Reading, metric: str) -> list[str]:
    """What the source calls a metric, and the parts that its provenance names."""
    parts = re.findall(r"[\w.:#/-]{4,}", reading.provenance.get(metric, ""))
    return [reading.names.get(metric, metric), *(part for part in parts if part not in ("measured", "derived", "from"))]


def _named(lost: list[Cell], whole: list[Reading]) -> str:
    if not lost:
        return "a run, or a row of messages,"
    at, kernel, rank, metric = lost[0]
    return f"{whole[at].names.get(metric, metric)} of {kernel} on rank {rank}"


def _without_a_value(sample: Path, place: Path) -> Iterator[Path]:
    """Copies of the sample in which one number is another, as a tool writes a value that it does not have."""
    dice = random.Random(f"{sample.name} values")
    copy = place / "lost" / sample.name
    copy.parent.mkdir()
    if sample.is_dir():
        shutil.copytree(sample, copy)
    else:
        shutil.copy(sample, copy)
    files = sorted(file for file in copy.rglob("*") if file.is_file()) if copy.is_dir() else [copy]
    for file in files[:2]:
        content = file.read_bytes()
        places = [found.span() for found in _NUMERIC.finditer(content)]
        for first, last in dice.sample(places, min(PLACES, len(places))):
            for piece in LOST:
                # Columns keep their width where there is room.
                fitted = piece.rjust(last - first)
                file.write_bytes(content[:first] + fitted + content[last:])
                yield copy
        file.write_bytes(content)


def _head(path: Path) -> bytes:
    if path.is_dir():
        return b""
    with path.open("rb") as file:
        return file.read(HEAD)


def _sound(reading: object, path: Path) -> Reading:
    """The reading, if an experiment can store it."""
    found = validated(reading, str(path))
    assert found.counters is not None or found.messages is not None or found.tables, "a reading without any table"
    if (table := found.counters) is not None:
        metrics = [str(name) for name in table.columns if name not in COUNTER_KEYS]
        assert len(table), "counters without a row"
        assert metrics, "counters without a metric"
        assert all(isinstance(name, str) and name for name in table["kernel"]), "a kernel's name is not text"
        assert not table.duplicated(["kernel", "rank"]).any(), "a kernel comes twice on a rank"
        missing = [name for name in metrics if name not in found.provenance]
        assert not missing, f"no provenance is given for {', '.join(missing)}"
        values = table[metrics].to_numpy(dtype=np.float64)
        assert (np.abs(values[~np.isnan(values)]) < limits.VALUE).all(), "a value is beyond 64 bits"
        unknown = sorted(set(found.provenance) - {*metrics, *found.tables, "messages"})
        assert not unknown, f"provenance of metrics that are not there: {', '.join(unknown)}"
    return found


def _same(one: Reading, other: Reading) -> bool:
    tables = [{"": each.counters, "messages": each.messages, **each.tables} for each in (one, other)]
    if tables[0].keys() != tables[1].keys():
        return False
    for name, table in tables[0].items():
        twin = tables[1][name]
        if (table is None) != (twin is None) or (table is not None and twin is not None and not table.equals(twin)):
            return False
    return all(
        getattr(one, name) == getattr(other, name)
        for name in ("configuration", "repetition", "provenance", "names", "wall_time", "notes", "warnings")
    )


def _check_others(reader: Reader, place: Path) -> None:
    """Files of no tool, an empty folder, a file that is not there."""
    path = place / "other.txt"
    for content in OTHERS:
        path.write_bytes(content)
        assert reader.recognises(path, content[:HEAD]) is False, f"recognises is not False for {content[:20]!r}"
        assert read_or_error(reader, path), f"a file of no tool is read: {content[:20]!r}"
    empty = place / "empty"
    empty.mkdir()
    assert reader.recognises(empty, b"") is False, "recognises is not False for an empty folder"
    assert read_or_error(reader, place / "missing"), "a file that is missing is read"


def _damaged(sample: Path, place: Path) -> Iterator[Path]:
    """Copies of the sample, cut off and changed at places that are the same every time."""
    dice = random.Random(sample.name)
    copy = place / sample.name
    if sample.is_dir():
        shutil.copytree(sample, copy)
        files = sorted(file for file in copy.rglob("*") if file.is_file())
    else:
        shutil.copy(sample, copy)
        files = [copy]
    for number in range(CUTS + CHANGES):
        file = files[number % len(files)]
        content = file.read_bytes()
        if not content:
            continue
        if number < CUTS:
            file.write_bytes(content[: len(content) * number // CUTS])
        else:
            at = dice.randrange(len(content))
            left = at + dice.choice((0, 1, 40))
            file.write_bytes(content[:at] + dice.choice(PIECES) + content[left:])
        yield copy
        file.write_bytes(content)
