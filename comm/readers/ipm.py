"""Profiles of IPM (XML): calls by size and partner on every rank.

The ``<hash>`` of a full log holds a row for every call, size and partner; a terse log's ``<func>`` rows hold sums, of
which the mean size stands for all. Sizes are those that IPM sees at the call.

Source: IPM 2.0.6, src/report_xml.c and doc/ipm_xml.dtd (nerscadmin/IPM).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from ranksight.comm.costs.collective import OPERATIONS, operation_name
from ranksight.comm.costs.pointtopoint import SENDS
from ranksight.comm.readers import _messages
from ranksight.core import limits
from ranksight.core.errors import InputError
from ranksight.core.files import regular_file
from ranksight.core.reading import READERS, Reading
from ranksight.core.xml import parse


@dataclass(slots=True)
class _Profile:
    """State of the parser, and what it has found."""

    path: Path
    ranks: dict[int, dict[str, float]] = field(default_factory=dict)
    size: int = 0
    rank: int = -1
    regions: dict[str, str] = field(default_factory=dict)
    region: list[str] = field(default_factory=list)
    detailed: set[int] = field(default_factory=set)
    rows: list[tuple[bool, int, str, str, dict[str, str], str]] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    command: str = ""
    inside: tuple[str, dict[str, str]] | None = None

    def start(self, name: str, attributes: dict[str, str], where: str) -> None:
        """An element begins."""
        if name == "task":
            self.rank = _messages.whole(attributes.get("mpi_rank", ""), where, "mpi_rank")
            self.size = _messages.whole(attributes.get("mpi_size", ""), where, "mpi_size", 1)
            if self.rank in self.ranks:
                raise InputError(f"{where}: rank {self.rank} appears twice", "give one job's profile")
            self.ranks[self.rank] = {}
            self.regions.clear()
        elif name == "region":
            label = attributes.get("label", "?")
            self.region.append(label)
            self.regions[attributes.get("id", str(len(self.regions)))] = label
        elif name == "perf" and self.rank in self.ranks:
            for key, metric in (("wtime", "wall_time"), ("mtime", "mpi_time")):
                if key in attributes:
                    self.ranks[self.rank][metric] = _messages.number(attributes[key], where, key)
        if name in ("hent", "func", "cmdline"):
            self.inside = (where, dict(attributes))
            self.text.clear()

    def data(self, text: str) -> None:
        """Text of an element."""
        if self.inside is not None and len(self.text) < limits.XML_TEXT:
            self.text.append(text[: limits.XML_TEXT])

    def end(self, name: str) -> None:
        """An element ends."""
        if name == "region" and self.region:
            self.region.pop()
        elif name in ("hent", "func") and self.inside is not None:
            self.call(*self.inside, name == "hent")
        elif name == "cmdline" and not self.command:
            self.command = "".join(self.text).strip()[:4096]
        self.inside = None

    def call(self, where: str, attributes: dict[str, str], full: bool) -> None:
        """Keep a function, if it is MPI's; `full` logs hold more of it than terse ones."""
        called = attributes.get("call" if full else "name", "")
        if not called.lower().startswith(("mpi_", "pmpi_")):
            return
        if self.rank not in self.ranks:
            raise InputError(f"{where}: a call outside of a task", "the profile is damaged")
        if len(self.rows) >= limits.MESSAGE_ROWS:
            raise InputError(f"{where}: more than {limits.MESSAGE_ROWS} rows", "import a terse log")
        label = attributes.get("region", "0")
        region = self.regions.get(label, f"region {label}") if full else (self.region or ["?"])[-1]
        self.rows.append((full, self.rank, region, where, attributes, "".join(self.text)))
        if full:
            self.detailed.add(self.rank)


class Ipm:
    """Reads IPM's XML; see the module."""

    text = "IPM profiles (XML): calls, bytes, partners and time a region and rank"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the root element is IPM's."""
        return head.lstrip()[:1] == b"<" and b"<ipm" in head and (b"ipm_job_profile" in head or b"ipm_version" in head)

    def read(self, path: Path) -> Iterator[Reading]:
        """Read one profile.

        Raises InputError when it is not well-formed XML, declares a document type or entities, lacks ranks, or has
        senseless values.
        """
        regular_file(path)
        profile = _Profile(path)
        _parse(profile)
        ranks = _messages.complete(profile.ranks, str(path))
        if profile.size not in (0, ranks):
            raise InputError(f"{path} holds {ranks} of {profile.size} ranks", "the profile is cut off: copy it again")
        tally = _messages.Tally(str(path))
        for full, rank, region, where, attributes, text in profile.rows:
            if full == (rank in profile.detailed):
                _row(tally, full, rank, region, where, attributes, text, ranks)
        notes = ("collectives are taken on all ranks: IPM does not name communicators",)
        command = tuple(profile.command.split())
        yield _messages.reading(tally, profile.ranks, path, notes, profiled=True, command=command)


READERS.register("ipm")(Ipm())


def _parse(profile: _Profile) -> None:
    parser = expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise InputError(
            f"{profile.path}:{parser.CurrentLineNumber}: declares a document type or an entity",
            "IPM writes none; the file is not IPM's",
        )

    def start(name: str, attributes: dict[str, str]) -> None:
        profile.start(name, attributes, f"{profile.path}:{parser.CurrentLineNumber}")

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = start, profile.end
    parser.CharacterDataHandler = profile.data
    try:
        with profile.path.open("rb") as stream:
            parse(parser, stream.read, str(profile.path), limits.XML)
    except OSError as error:
        raise InputError(f"{profile.path} cannot be read: {error.strerror or error}") from error
    except LookupError as error:  # an encoding that Python does not know
        raise InputError(f"{profile.path}: {error}", "the profile is damaged: copy it again") from error
    except expat.ExpatError as error:
        raise InputError(
            f"{profile.path}:{error.lineno}: no well-formed XML: {expat.ErrorString(error.code)}",
            "the profile is cut off or damaged: copy it again",
        ) from error


def _row(
    tally: _messages.Tally,
    full: bool,
    rank: int,
    region: str,
    where: str,
    attributes: dict[str, str],
    text: str,
    ranks: int,
) -> None:
    name = _messages.plain(attributes["call" if full else "name"])
    count = _messages.whole(attributes.get("count", ""), where, "count", 1)
    size = _messages.number(attributes.get("bytes", "0"), where, "bytes")
    fields = text.split()
    if len(fields) < (3 if full else 1):
        raise InputError(f"{where}: a call without its times", "the profile is damaged")
    seconds = _messages.number(fields[0], where, "the time")
    kind = operation_name(name)
    peer = None
    if full and kind in SENDS:
        peer = _messages.whole(attributes.get("orank", "0"), where, "orank", -(2**31))
    tally.add(
        region, rank, name, ranks if kind in OPERATIONS else 0, size if full else size / count, seconds, count, peer
    )
