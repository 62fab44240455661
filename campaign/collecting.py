"""What a collector does, and the registry of collectors.

A collector measures one execution (or, where a tool needs it, several) of the application: it says whether the machine
lets it work, how the command is to be run, and reads what was left behind. Collectors live beside what they measure:
counters' in ``ranksight.counters.collectors``, messages' in ``ranksight.comm.collectors``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ranksight.campaign.launching import Launch
from ranksight.core.reading import Reading
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
    None for the current one."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None


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

    def steps(self, launch: Launch, folder: Path) -> Sequence[Step]:
        """The executions it needs; files are left in `folder`, an empty directory on a file system all ranks see."""
        ...

    def collect(self, launch: Launch, folder: Path) -> Reading:
        """Read what the executions left in `folder`; InputError or ToolError where something is missing or false."""
        ...


COLLECTORS: Registry[Collector] = Registry(
    "collector", packages=("ranksight.counters.collectors", "ranksight.comm.collectors"), group="ranksight.collectors"
)
