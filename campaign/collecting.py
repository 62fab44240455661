"""The protocol of collectors, and their registry.

A collector measures one execution of the application, or several where a tool needs them. It says whether it can work
on this machine and how to run the command, and it reads the files that the run leaves behind. Collectors of counters
are in ``ranksight.counters.collectors``, those of messages in ``ranksight.comm.collectors``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Protocol

from ranksight.campaign.launching import Launch
from ranksight.core.reading import Reading
from ranksight.core.records import dataclass
from ranksight.core.registry import Registry


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a collector can work here; if not, why, and what would mend it."""

    ok: bool
    reason: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One execution of the application: the command, the variables added to its environment, and the folder it runs in,
    None for the current one.

    `enough`: files that end the execution, as well done, once all of them exist; none: it ends by itself.
    """

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    enough: tuple[Path, ...] = ()


class Collector(Protocol):
    """Measures by running the application. An instance is registered under its name."""

    text: str
    """What it measures, in a few words."""

    deterministic: bool
    """Whether its numbers repeat exactly, so that one repetition is enough."""

    default: bool
    """Whether it is used, when available, without being asked for."""

    def available(self) -> Availability:
        """Whether the machine lets it work; cheap enough to be asked every time."""
        ...

    def steps(self, launch: Launch, folder: Path) -> Iterable[Step]:
        """The executions it needs; files are left in `folder`, an empty directory on a file system all ranks see.

        Each is executed before the next is asked for, which may depend on what it left.
        """
        ...

    def collect(self, launch: Launch, folder: Path) -> Reading:
        """Read what the executions left in `folder`; InputError or ToolError where something is missing or false."""
        ...


COLLECTORS: Registry[Collector] = Registry(
    "collector", packages=("ranksight.counters.collectors", "ranksight.comm.collectors"), group="ranksight.collectors"
)
