"""A predicted message table: per rank, or per class of ranks that do the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.comm.patterns.communicators import CommunicatorSize
from ranksight.comm.patterns.rule import limited
from ranksight.core.arrays import Array, Index, Ints
from ranksight.core.records import dataclass
from ranksight.model.messages.entry import Entry
from ranksight.model.messages.sharing import basis, grid_neighbours, incidence
from ranksight.model.uncertainty.forecast import Forecast

if TYPE_CHECKING:
    import pandas as pd

PLACES = ("interior", "face", "edge", "corner")
"""Ranks of a grid by the number of dimensions in which they lie at its border."""
BASES = {"even": 1.0, "doubling": 2.0, "halving": 0.5}
COLUMNS = (
    *("kernel", "class", "class_ranks", "operation", "tags", "comm_size", "size_class", "count", "bytes", "peers"),
    *("bytes_low", "bytes_high", "spread", "to", "status", "reason"),
)

PER_RANK = ("kernel", "rank", "operation", "tags", "comm_size", "size_class", "count", "bytes", "peers", "status")
PARTNERS = ("kernel", "rank", "operation", "tags", "peer", "count", "bytes")


@dataclass(frozen=True)
class Row:
    """An operation's messages of one size class, on every rank."""

    kernel: str
    operation: str
    comm_size: int
    size_class: int
    count: Array  # (ranks,): calls, bytes, and ends of the interval of bytes
    bytes: Array  # (ranks,)
    low: Array  # (ranks,)
    high: Array  # (ranks,)
    links: Ints
    """(e,) int64: ``source * ranks + target`` of every link, sorted; empty where partners are not known by rules."""
    link_count: Array  # (e,): messages and bytes of each
    link_bytes: Array  # (e,)
    spread: float  # how far single ranks or links were from their rule, relative to the mean
    to: str  # rules of the partners
    reason: str  # why it cannot be predicted; empty where it can
    tags: str = ""  # tags of the messages, where they distinguish patterns of the operation; otherwise empty
    communicator: CommunicatorSize | None = None  # which communicators of `comm_size` ranks; None where not known

    @property
    def key(self) -> tuple[str, str]:
        """Kernel and operation."""
        return self.kernel, self.operation

    def at(self, level: float) -> Row:
        """The same with central intervals of bytes of probability `level`."""
        volume = Forecast.settled(self.bytes, self.low, self.high).at(level)
        return replace(self, low=volume.lower, high=volume.upper)

    def of_ranks(self, ranks: int) -> Row:
        """A typical rank's messages (:func:`typical_row`) as those of each of `ranks`."""
        count, volume, low, high = (np.repeat(each, ranks) for each in (self.count, self.bytes, self.low, self.high))
        return replace(self, comm_size=ranks, count=count, bytes=volume, low=low, high=high)

    @property
    def peers(self) -> Ints:
        """Partners of every rank, (ranks,); 0 where they are not known by rules."""
        return np.bincount(self.links // len(self.count), minlength=len(self.count))


def typical_row(kernel: str, operation: str, ranks: int, count: float, volume: float) -> Row:
    """Messages of one rank among `ranks` that has the mean of all, `count` calls and `volume` bytes, whose partners are
    not known."""
    calls, size, none = np.array([count]), np.array([volume if count > 0 else 0.0]), np.zeros(0)
    links = none.astype(np.int64)
    return Row(kernel, operation, ranks, 0, calls, size, size, size, links, none, none, 0.0, "", "")


def rows_of(entry: Entry, ranks: int, volumes: Forecast, reason: str) -> list[Row]:
    """Rows of one entry, a size class each; rows without a message are left out."""
    limited(ranks, ranks)
    linked = entry.kind == "links"
    codes = np.zeros(0, dtype=np.int64)
    if linked:
        codes, columns, rounds = incidence(entry.explanations[0], ranks, entry.once)
    else:
        columns = basis(entry.kind, ranks, entry.grid, entry.explanations[0] if entry.explanations else None)
        rounds = [1] * columns.shape[1]
    starts = np.cumsum([0, *rounds])
    # Of each size class: count, bytes, and ends of their interval, (4, links or ranks).
    degrees: dict[int, Array] = {}
    for part in entry.parts:
        count, size = (float(np.nan_to_num(volumes.value[i, 0])) for i in (part.count, part.size))
        low, high = (
            float(np.nan_to_num(end[part.count, 0] * end[part.size, 0])) for end in (volumes.lower, volumes.upper)
        )
        if abs(count) < 1e-12 and high <= 0:
            continue
        for k in range(rounds[part.who]):
            times, larger = BASES[part.count_profile] ** k, BASES[part.size_profile] ** k
            each = times * np.array([count, count * size * larger, low * larger, high * larger])
            size_class = _size_class(size * larger)
            degrees[size_class] = degrees.get(size_class, 0.0) + np.outer(each, columns[:, starts[part.who] + k])
    rows = []
    for size_class, each in sorted(degrees.items()):
        sending = each[0] > 1e-9
        if not sending.any():
            continue
        of_ranks, of_links = each, each[:, :0]
        if linked:
            of_links, source = each[:, sending], codes[sending] // ranks
            of_ranks = np.array([np.bincount(source, weights=x, minlength=ranks) for x in of_links])
        count_of, volume, low_of, high_of = of_ranks.astype(np.float64)
        rows.append(
            Row(
                kernel=entry.kernel,
                operation=entry.operation,
                comm_size=entry.communicator.at(ranks),
                size_class=size_class,
                count=count_of,
                bytes=volume,
                low=low_of,
                high=high_of,
                links=codes[sending] if linked else codes,
                link_count=of_links[0],
                link_bytes=of_links[1],
                spread=entry.spread,
                to=entry.explanations[0].text if linked else "",
                reason=reason,
                tags=" ".join(map(str, entry.tags)),
                communicator=entry.communicator,
            )
        )
    return rows


def _size_class(size: float) -> int:
    """Upper bound in bytes of the power-of-two class, as tracers have it; 0 without bytes."""
    return 0 if size <= 1e-6 else 1 << (int(np.ceil(size * (1 - 1e-9) - 1e-9)) - 1).bit_length()


def _joined(parts: Sequence[Mapping[str, Any]], names: Sequence[str]) -> pd.DataFrame:
    """Columns by name, of each part a value for all of its lines or one for each, below each other."""
    import pandas as pd

    tables = [pd.DataFrame(part) for part in parts]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=list(names))


@dataclass(frozen=True)
class MessageTable:
    """The messages of a program at one configuration.

    `grid`: dimensions and order of extents of the process grid, empty without one. `periodic`: whether the grid has no
    borders.
    """

    configuration: Mapping[str, float]
    ranks: int
    rows: tuple[Row, ...]
    grid: tuple[int, ...] = ()
    periodic: bool = False

    def at(self, level: float) -> MessageTable:
        """The same with central intervals of probability `level`."""
        return replace(self, rows=tuple(row.at(level) for row in self.rows))

    def having(self, kind: str, kind_of: Callable[[str], str]) -> MessageTable:
        """The table with operations of one kind alone, or all where `kind` is empty."""
        return replace(self, rows=tuple(row for row in self.rows if not kind or kind_of(row.operation) == kind))

    @property
    def ok(self) -> bool:
        """Whether any row is predicted."""
        return any(not row.reason for row in self.rows)

    def per_rank(self) -> pd.DataFrame:
        """One line a rank and row: ``kernel``, ``rank``, ``operation``, ``tags``, ``comm_size``, ``size_class``,
        ``count``, ``bytes``, ``peers``, ``status``; the columns of a measured message table but for times, and the tags
        where they distinguish patterns.
        """
        parts = []
        for row in self.rows:
            at = np.flatnonzero(row.count > 1e-9)
            values = (
                *(row.kernel, at, row.operation, row.tags, row.comm_size, row.size_class),
                *(np.round(row.count[at], 6), np.round(row.bytes[at], 6), row.peers[at]),
                "insufficient" if row.reason else "ok",
            )
            parts.append(dict(zip(PER_RANK, values, strict=True)))
        return _joined(parts, PER_RANK)

    def partners(self) -> pd.DataFrame:
        """Links of the pattern: ``kernel``, ``rank``, ``operation``, ``tags``, ``peer``, ``count``, ``bytes``."""
        parts = []
        for row in self.rows:
            if len(row.links):
                source, target = row.links // self.ranks, row.links % self.ranks
                volumes = np.round(row.link_count, 6), np.round(row.link_bytes, 6)
                values = row.kernel, source, row.operation, row.tags, target, *volumes
                parts.append(dict(zip(PARTNERS, values, strict=True)))
        return _joined(parts, PARTNERS)

    def classes(self) -> tuple[Index, list[str]]:
        """Class of every rank, (ranks,), and the classes' names: ranks of a class have the same rows."""
        values = np.round(np.stack([x for row in self.rows for x in (row.count, row.bytes)]), 6)
        _, first, of = np.unique(values, axis=1, return_index=True, return_inverse=True)
        of = of.reshape(-1)
        members = [np.flatnonzero(of == i) for i in range(len(first))]
        return of, _names(members, self.ranks, () if self.periodic else self.grid)

    def by_class(self) -> pd.DataFrame:
        """One line a row and class of ranks, columns :data:`COLUMNS`."""
        import pandas as pd

        if not self.rows:
            return pd.DataFrame(columns=list(COLUMNS))
        of, names = self.classes()
        sizes = np.bincount(of)
        first = np.array([int(np.flatnonzero(of == i)[0]) for i in range(len(names))])
        lines: list[dict[str, Any]] = []
        for row in self.rows:
            peers = row.peers
            same = np.ptp(np.stack([row.count, row.bytes, peers]), axis=1).max() <= 1e-6
            for i in (0,) if same else np.argsort(first):
                at = first[i]
                if row.count[at] > 1e-9:
                    who = ("all", self.ranks) if same else (names[i], int(sizes[i]))
                    values = (
                        *(row.kernel, *who, row.operation, row.tags, row.comm_size, row.size_class),
                        *(round(float(row.count[at]), 6), round(float(row.bytes[at]), 6), int(peers[at])),
                        *(round(float(row.low[at]), 6), round(float(row.high[at]), 6)),
                        *(row.spread, row.to),
                        *("insufficient" if row.reason else "ok", row.reason),
                    )
                    lines.append(dict(zip(COLUMNS, values, strict=True)))
        return pd.DataFrame(lines, columns=list(COLUMNS))


def _names(members: list[Index], ranks: int, grid: tuple[int, ...]) -> list[str]:
    """Names of classes: by the place on the grid that identifies them, with the neighbours along each dimension where
    places alone do not; otherwise their ranks.
    """
    if len(members) == 1:
        return ["all"]
    if grid:
        neighbours = grid_neighbours(ranks, grid).astype(int)
        border = (neighbours < 2).sum(axis=1)
        names = []
        for who in members:
            places = np.unique(border[who])
            kinds = np.unique(neighbours[who], axis=0)
            name = PLACES[places[0]] if len(places) == 1 and grid[0] == 3 else _flat(places, grid[0])
            names.append((name, " ".join(map(str, kinds[0])) if len(kinds) == 1 else ""))
        plain = [name for name, _ in names]
        if all(plain) and len(set(plain)) == len(plain):
            return plain
        full = [f"{name} ({kind})" for name, kind in names]
        if all(name and kind for name, kind in names) and len(set(full)) == len(full):
            return full
    return [_some(who) for who in members]


def _flat(places: Index, dimensions: int) -> str:
    if len(places) != 1:
        return ""
    return ("interior", "edge", "corner")[places[0]] if dimensions == 2 else ("interior", "end")[min(places[0], 1)]


def _some(who: Index) -> str:
    """``rank 0``, ``ranks 1-7``, ``ranks 0, 2, 4, ...``."""
    if len(who) == 1:
        return f"rank {who[0]}"
    if who[-1] - who[0] == len(who) - 1:
        return f"ranks {who[0]}-{who[-1]}"
    return f"ranks {', '.join(map(str, who[:3].tolist()))}" + (", ..." if len(who) > 3 else "")
