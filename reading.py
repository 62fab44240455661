"""What a reader of measurements gives, and the registry of readers.

A reader turns files that another tool wrote into :class:`Reading` s: plain tables in SI units and the registry's
metric names. Readers live beside what they read: counters' in ``ranksight.counters.readers``, messages' in
``ranksight.comm.readers``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ranksight.registry import Registry

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Reading:
    """What one run, or one file, says.

    Attributes
    ----------
    configuration : mapping of str to float
        Parameters that the source itself states (often only ``ranks``); the importer adds those the user states.
    counters : DataFrame or None
        ``kernel``, ``rank`` and one float64 column a metric; one row a kernel x rank.
    messages : DataFrame or None
        The columns of :data:`ranksight.experiment.MESSAGE_COLUMNS`.
    tables : mapping of str to DataFrame
        Further tables, stored as they are.
    repetition : int or None
        Where the source tells repetitions apart; otherwise the importer counts.
    provenance : mapping of str to str
        For each metric where it comes from: ``measured``, ``simulated``, ``sampled, n = 1200``, ``derived from ...``.
    names : mapping of str to str
        For each metric that the source calls otherwise, its name there: events are found by it.
    wall_time, command, environment, notes, source
        As in :class:`ranksight.experiment.Run`.
    raw : sequence of Path
        Files worth keeping beside the tables.
    warnings : tuple of str
        Further notes: what of the program is not in the numbers, to be said at once.
    """

    configuration: Mapping[str, float] = field(default_factory=dict)
    counters: pd.DataFrame | None = None
    messages: pd.DataFrame | None = None
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    repetition: int | None = None
    provenance: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    wall_time: float | None = None
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    raw: Sequence[Path] = ()
    warnings: tuple[str, ...] = ()


class Reader(Protocol):
    """Reads one format. An instance is registered under the format's name."""

    text: str
    """What it reads, in a few words, for the listing."""

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether `path` (a file with its first 4,096 bytes, or a folder with none) is of this format."""
        ...

    def read(self, path: Path) -> Iterator[Reading]:
        """Read one file or folder, one reading a run; raise InputError naming file and line where it is damaged."""
        ...


READERS: Registry[Reader] = Registry(
    "reader", packages=("ranksight.counters.readers", "ranksight.comm.readers"), group="ranksight.readers"
)
