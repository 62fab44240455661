"""HPCToolkit databases since 2022: ``meta.db`` (metrics, call tree) and ``profile.db`` (values of every thread).

Little-endian structures that point to one another by offsets; a thread's values are sparse: context, metric -> value.
The metric's scope ``function`` at a function is its exclusive value; since inlined functions may count in both places,
the sum over functions is compared with the inclusive value (scope ``execution``) of the entry, and the selection of
functions that gives it is taken; where none does the database is refused.

Source: the formats of version 4 as HPCToolkit's documentation and hatchet's reader describe them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.core import limits
from ranksight.core.arrays import Array, Ints, Mask
from ranksight.core.errors import InputError
from ranksight.core.files import read_bytes
from ranksight.core.records import dataclass
from ranksight.counters.readers._calltree import CallPaths
from ranksight.counters.readers._files import damaged

_FUNCTION = 0
_INLINED = 2
_PROFILE = "<QQLLQQL"
"""What describes a thread: values, contexts, identity."""
_INDEX = np.dtype([("context", "<u4"), ("start", "<u8")])
_VALUE = np.dtype([("metric", "<u2"), ("value", "<f8")])
_CLOSE = 1e-6


@dataclass(frozen=True, slots=True)
class Store:
    """What a database holds."""

    kernels: list[str]
    rows: list[tuple[int, str]]  # list of (rank, thread)
    columns: dict[str, Array]
    """dict of str to ndarray, shape (rows, kernels): metric as named in the database -> exclusive values."""


class _File:
    """A file whose structures are read by offset, never past its end."""

    def __init__(self, path: Path, kind: bytes) -> None:
        self.path = path
        self.data = read_bytes(path, limits.DATABASE)
        if self.data[:10] != b"HPCTOOLKIT" or self.data[10:14] != kind or self.data[14:15] != b"\x04":
            raise InputError(f"{path} is no {kind.decode()} file of version 4", "the file is damaged or newer")

    def get(self, layout: str, offset: int) -> tuple[Any, ...]:
        """Unpack the structure `layout` at `offset`."""
        if not 0 <= offset <= len(self.data) - struct.calcsize(layout):
            raise damaged(f"{self.path}: a structure at byte {offset} lies outside of the file")
        return struct.unpack_from(layout, self.data, offset)

    def text(self, offset: int) -> str:
        """The string at `offset`."""
        end = self.data.find(b"\0", offset) if 0 <= offset < len(self.data) else -1
        if end < 0:
            raise damaged(f"{self.path}: a string at byte {offset} lies outside of the file")
        return self.data[offset : min(end, offset + 65536)].decode("utf-8", "replace")

    def array(self, kind: np.dtype[Any], offset: int, count: int) -> NDArray[Any]:
        """`count` structures at `offset`."""
        if count and not 0 <= offset <= len(self.data) - count * kind.itemsize:
            raise damaged(f"{self.path}: {count} values at byte {offset} lie outside of the file")
        return np.frombuffer(self.data, kind, count, offset) if count else np.empty(0, kind)


@dataclass(frozen=True, slots=True)
class _Contexts:
    """Call tree: of every function's context its number, kernel and the kernel's place without inlined functions."""

    kernels: list[str]
    number: Ints
    kernel: Ints
    inlined: Mask
    entries: list[int]
    known: Ints
    """Numbers of all these contexts and of the entries, sorted."""


def read_store(folder: Path) -> Store:
    """Read the database in `folder`.

    Raises InputError, naming the file: it is damaged or of another version, or its exclusive values do not add up.
    """
    meta, profile = _File(folder / "meta.db", b"meta"), _File(folder / "profile.db", b"prof")
    metrics = _metrics(meta)
    tree = _contexts(meta)
    rows: list[tuple[int, str]] = []
    parts: dict[str, list[Array]] = {name: [] for name in metrics}
    kinds = _kinds(meta)
    for rank, thread, contexts, values in _threads(profile, kinds):
        rows.append((rank, thread))
        if len(rows) * len(tree.kernels) * len(metrics) * 8 > limits.PROFILE_VALUES:
            most = f"{limits.PROFILE_VALUES >> 30} GiB"
            raise InputError(f"{profile.path} holds more than {most} of values", "filter it with hpcprof")
        for name, (own, whole) in metrics.items():
            parts[name].append(_exclusive(profile, tree, contexts, values, own, whole))
    if not rows:
        raise InputError(f"{profile.path} holds no thread", "was hpcprof run to its end?")
    return Store(tree.kernels, rows, {name: np.array(part) for name, part in parts.items()})


def _kinds(meta: _File) -> list[str]:
    _, at = meta.get("<QQ", 32)
    names, count = meta.get("<QB", at)
    return [meta.text(meta.get("<Q", names + 8 * number)[0]) for number in range(count)]


def _metrics(meta: _File) -> dict[str, tuple[int, int]]:
    """Name -> numbers of the metric in the scopes ``function`` and ``execution``."""
    _, at = meta.get("<QQ", 48)
    first, count, size, scope_size, _ = meta.get("<QLBBB", at)
    found: dict[str, tuple[int, int]] = {}
    for number in range(min(count, 65536)):
        name, scopes, _, scope_count, _ = meta.get("<QQQHH", first + number * size)
        by_scope: dict[str, int] = {}
        for place in range(scope_count):
            scope, metric = meta.get("<QH", scopes + place * scope_size)
            by_scope[meta.text(meta.get("<Q", scope)[0])] = metric
        if {"function", "execution"} <= set(by_scope):
            found[meta.text(name)] = by_scope["function"], by_scope["execution"]
    if not found:
        raise InputError(f"{meta.path} describes no metric with exclusive values", "was hpcprof run to its end?")
    return found


def _contexts(meta: _File) -> _Contexts:
    (at,) = meta.get("<Q", 72)
    first, count, size = meta.get("<QHB", at)
    calls = CallPaths(str(meta.path))
    numbers: list[int] = []
    places: list[int] = []
    inlined: list[bool] = []
    entries: list[int] = []
    seen: set[int] = set()
    todo: list[tuple[int, int, int, int]] = []
    for number in range(count):
        children_size, children, context, _ = meta.get("<QQLH", first + number * size)
        entries.append(context)
        todo.append((children, children_size, CallPaths.ROOT, 0))
    while todo:
        offset, left, above, depth = todo.pop()
        end = offset + left
        while offset < end:
            children_size, children, context, _, kind, words, relation = meta.get("<QQLHBBB", offset)
            if offset in seen or depth > limits.DEPTH:
                raise damaged(f"{meta.path}: the call tree runs in a circle at byte {offset}")
            seen.add(offset)
            path = above
            if kind == _FUNCTION and words:
                (function,) = meta.get("<Q", offset + 32)
                (text,) = meta.get("<Q", function)
                own = (meta.text(text) if text else "") or "(unnamed)"
                path = calls.number(above, own)
                numbers.append(context)
                places.append(path)
                inlined.append(relation == _INLINED)
            if children_size:
                todo.append((children, children_size, path, depth + 1))
            offset += 32 + 8 * words
    if not numbers:
        raise InputError(f"{meta.path} holds no function", "was hpcprof run to its end?")
    known = np.unique(np.array([*numbers, *entries], dtype=np.int64))
    kernels, kernel = calls.kernels()
    return _Contexts(kernels, np.array(numbers), kernel[places], np.array(inlined, dtype=bool), entries, known)


def _threads(profile: _File, kinds: list[str]) -> Iterator[tuple[int, str, Ints, NDArray[Any]]]:
    """Rank, thread, and of every value its context and (metric, value)."""
    _, at = profile.get("<QQ", 16)
    first, count, size = profile.get("<QLB", at)
    # Each thread is described by itself: no more than fit into the file.
    if count and (size < struct.calcsize(_PROFILE) or first + count * size > len(profile.data)):
        raise damaged(f"{profile.path}: {count} threads lie outside of the file")
    for number in range(count):
        here = first + number * size
        values_count, values, contexts_count, _, contexts, identity, _ = profile.get(_PROFILE, here)
        if identity == 0:
            continue  # the summary over all threads
        (parts,) = profile.get("<H", identity)
        place: dict[str, int] = {}
        for part in range(parts):
            kind, _, _, logical, _ = profile.get("<BBHLQ", identity + 8 + 16 * part)
            if kind < len(kinds):
                place[kinds[kind].lower()] = logical
        index = profile.array(_INDEX, contexts, contexts_count)
        table = profile.array(_VALUE, values, values_count)
        starts = index["start"].astype(np.int64)
        bounds = np.append(starts, values_count)
        if (np.diff(bounds) < 0).any() or bounds[0] != 0:
            raise damaged(f"{profile.path}: values of thread {number} are out of order")
        thread = " ".join(f"{kind} {value}" for kind, value in place.items() if kind not in ("rank", "node"))
        yield place.get("rank", 0), thread, np.repeat(index["context"].astype(np.int64), np.diff(bounds)), table


def _exclusive(profile: _File, tree: _Contexts, contexts: Ints, table: NDArray[Any], own: int, whole: int) -> Array:
    """Values of one metric over kernels; see the module."""
    place = np.minimum(np.searchsorted(tree.known, contexts), len(tree.known) - 1)
    known = tree.known[place] == contexts  # others are loops, lines and instructions

    def sums(metric: int, numbers: Ints) -> Array:
        """Values of one metric at the contexts `numbers`."""
        chosen = known & (table["metric"] == metric)
        found = np.bincount(place[chosen], weights=table["value"][chosen], minlength=len(tree.known)).astype(np.float64)
        return found[np.searchsorted(tree.known, numbers)]

    exclusive = sums(own, tree.number)
    total = float(sums(whole, np.array(tree.entries, dtype=np.int64)).sum())
    for selection in (np.ones(len(tree.number), dtype=bool), ~tree.inlined):
        values = np.where(selection, exclusive, 0.0)
        if abs(float(values.sum()) - total) <= _CLOSE * abs(total):
            return np.bincount(tree.kernel, weights=values, minlength=len(tree.kernels)).astype(np.float64)
    raise InputError(
        f"{profile.path}: exclusive values add up to {exclusive.sum():g}, the whole is {total:g}",
        "this database is of a kind that is not understood; give one made with an earlier hpcprof",
    )
