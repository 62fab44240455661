"""Sizes of caches as a simulator takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ranksight.errors import InputError


@dataclass(frozen=True, slots=True)
class Cache:
    """One cache: size in bytes, ways, bytes a line."""

    size: int
    ways: int = 8
    line: int = 64

    def __post_init__(self) -> None:
        if self.line < 16 or self.line & (self.line - 1) or self.ways < 1 or self.size < self.line * self.ways:
            raise InputError(
                f"no cache has {self.size} bytes in {self.ways} ways of {self.line} bytes",
                "a line is a power of two from 16 bytes, and the size at least one line a way",
            )

    def fitted(self) -> Cache:
        """The nearest cache whose number of sets is a power of two, as simulators need it: the ways are changed.

        54 MiB in 12 ways of 64 bytes (73,728 sets) becomes 54 MiB in 13.5 -> 14 ways of 65,536 sets.
        """
        sets = 1 << ((self.size // (self.line * self.ways)).bit_length() - 1)
        ways = max(1, round(self.size / (self.line * sets)))
        return Cache(ways * sets * self.line, ways, self.line)

    def __str__(self) -> str:
        return f"{self.size},{self.ways},{self.line}"


@dataclass(frozen=True, slots=True)
class Geometry:
    """Caches of a core: first level of data and instructions, second level, and the last level.

    The default is a common server core: 32 KiB, 1 MiB, 32 MiB.
    """

    d1: Cache = field(default_factory=lambda: Cache(32 << 10, 8))
    i1: Cache = field(default_factory=lambda: Cache(32 << 10, 8))
    l2: Cache = field(default_factory=lambda: Cache(1 << 20, 16))
    l3: Cache = field(default_factory=lambda: Cache(32 << 20, 16))

    @classmethod
    def of(cls, caches: Mapping[Any, Any] | Any) -> Geometry:
        """Take the caches of a platform.

        Parameters
        ----------
        caches : sequence or mapping
            One object a level with the attributes (or entries) ``size``, ``ways`` (or ``associativity``), ``line`` and,
            where it is not its place in the sequence or its key, ``level``; levels 1 and 2 at least.

        Raises
        ------
        InputError
            When level 1 or 2 is missing or has no size.
        """
        default = cls()
        items = list(caches.items()) if isinstance(caches, Mapping) else list(enumerate(caches, start=1))
        found: dict[int, Cache] = {}
        for key, item in items:

            def entry(*names: str, item: Any = item) -> int | None:
                for name in names:
                    value = item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)
                    if value is not None:
                        return int(value)
                return None

            digits = "".join(c for c in str(key) if c.isdigit())
            level = entry("level") or (int(digits) if digits else 0)
            size = entry("size", "size_bytes", "bytes")
            if level not in (1, 2, 3) or not size:
                continue
            standard = {1: default.d1, 2: default.l2, 3: default.l3}[level]
            ways = entry("ways", "associativity") or standard.ways
            found[level] = Cache(size, ways, entry("line", "line_size") or standard.line)
        if 1 not in found or 2 not in found:
            raise InputError(
                "the platform describes no cache of level 1 or of level 2",
                "add size, ways and line size to its file",
            )
        return cls(found[1], default.i1, found[2], found.get(3, found[2]))
