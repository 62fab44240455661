"""CUBE4 archives, checked before pycubexr opens them: no path outside of the archive, no size beyond the limits."""

from __future__ import annotations

import gzip
import struct
import tarfile
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO
from xml.etree import ElementTree
from xml.parsers import expat

import numpy as np

from ranksight.core import limits
from ranksight.core.errors import InputError, ToolError
from ranksight.core.xml import parse

LARGEST_RATIO = 1032
"""Most bytes that one byte can grow to in deflate (RFC 1951)."""


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Context with pycubexr's parser of an archive; its exceptions become one-line errors.

    pycubexr itself would unpack an archive that is compressed as a whole, and parse an anchor of any size: here both
    are refused. Raises InputError when the archive is damaged, is compressed as a whole, holds paths that lead out of
    it, or members or an anchor that inflate beyond the limits of :mod:`ranksight.core.limits`; ToolError when pycubexr
    is not installed.
    """
    try:
        import pycubexr
        from pycubexr.utils.custom_tarinfo import TarInfoWithoutCheck
    except ImportError as error:
        raise ToolError("pycubexr, which reads CUBE4, is not installed", "pip install 'ranksight[cube]'") from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with _archive(path, TarInfoWithoutCheck) as archive:
                _check_members(path, archive)
                cube = pycubexr.CubexParser(str(path))
                cube._cubex_file = archive
                cube._tar_file_member_list = archive.getnames()
                cube._anchor_result = pycubexr.parsers.tar_parser.parse_anchor_xml(_anchor(path, archive))
                yield cube
        except InputError:
            raise
        except (Exception, RecursionError) as error:  # pycubexr asserts, and lets those of its parts through
            raise InputError(
                f"{path} is not a CUBE4 archive that can be read: {type(error).__name__} {error}"[:400],
                "the file is damaged: copy it again",
            ) from error


def locations(path: Path, cube: Any) -> list[tuple[str, int]]:
    """Name and rank of every location, in the order of the values; pycubexr keeps the tree of the system to itself.

    Raises InputError when there are none, or they are not numbered from 0.
    """
    found: dict[int, tuple[str, int]] = {}
    for root in cube._anchor_result.system_tree_nodes:
        for group in root.all_location_groups():
            for location in group.all_locations():
                found[int(location.id)] = (f"{location.name} {location.rank}", int(group.rank))
    if sorted(found) != list(range(len(found))) or not found:
        raise InputError(f"{path}: the locations are not numbered from 0", "the file is damaged")
    return [found[at] for at in range(len(found))]


def _archive(path: Path, unchecked: type[tarfile.TarInfo]) -> tarfile.TarFile:
    """The archive at `path`, never unpacked; one version of CubeWriter wrote wrong checksums, which are let pass."""
    try:
        return tarfile.open(path, "r:")
    except tarfile.ReadError:
        return tarfile.open(path, "r:", tarinfo=unchecked)


def _check_members(path: Path, archive: tarfile.TarFile) -> None:
    """Refuse archives that are cut off, that climb out, or whose data would fill the memory."""
    size = path.stat().st_size
    members = archive.getmembers()
    if "anchor.xml" not in {member.name for member in members}:
        raise InputError(f"{path} has no anchor.xml", "is it a CUBE4 archive, not compressed, and copied to its end?")
    for member in members:
        parts = Path(member.name).parts
        if member.name.startswith("/") or ".." in parts or member.issym() or member.islnk() or member.isdev():
            raise InputError(f"{path} holds {member.name!r}, which leads out of it", "a CUBE has no such member")
        if member.size > size:
            raise InputError(f"{path} is cut off in {member.name!r}", "the file is truncated: copy it again")
        if member.size * LARGEST_RATIO > limits.PROFILE_VALUES and member.name != "anchor.xml":
            _check_inflated(path, archive_member=member)


class _Anchor(ElementTree.TreeBuilder):
    """Builds the anchor's tree, and refuses what no anchor has: elements, depth or text beyond the limits."""

    elements = depth = text = 0

    def start(self, tag: str, attrs: dict[str, str], /) -> ElementTree.Element:
        """An element begins."""
        self.elements, self.depth, self.text = self.elements + 1, self.depth + 1, 0
        if self.elements > limits.CUBE_ELEMENTS:
            raise InputError(f"anchor.xml holds more than {limits.CUBE_ELEMENTS} elements", "reduce it with cube_cut")
        if self.depth > limits.DEPTH:
            raise InputError(f"anchor.xml is nested more than {limits.DEPTH} deep", "is it a CUBE?")
        return super().start(tag, attrs)

    def end(self, tag: str, /) -> ElementTree.Element:
        """An element ends."""
        self.depth, self.text = self.depth - 1, 0
        return super().end(tag)

    def data(self, data: str, /) -> None:
        """A piece of text."""
        self.text += len(data)
        if self.text > limits.LINE:
            raise InputError(f"anchor.xml holds a text of more than {limits.LINE} characters", "is it a CUBE?")
        super().data(data)


def _no_doctype(*_: object) -> None:
    """Refuse a document type, which could define entities."""
    raise InputError("anchor.xml declares a document type", "a CUBE has none")


def _anchor(path: Path, archive: tarfile.TarFile) -> Any:
    """The tree of the anchor, compressed or not."""
    stream = archive.extractfile("anchor.xml")
    assert stream is not None
    tree, parser = _Anchor(), expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = tree.start, tree.end, tree.data
    parser.StartDoctypeDeclHandler = _no_doctype
    parser.buffer_text = True
    try:
        with stream:
            packed = stream.read(2) == b"\x1f\x8b"
            stream.seek(0)
            parse(parser, (gzip.GzipFile(fileobj=stream) if packed else stream).read, "anchor.xml", limits.CUBE_ANCHOR)
    except InputError as error:
        raise InputError(f"{path}: {error.what}", error.remedy) from None
    return ElementTree.ElementTree(tree.close())


def _check_inflated(path: Path, archive_member: tarfile.TarInfo) -> None:
    """Refuse a compressed member that inflates beyond what may be held."""
    with path.open("rb") as stream:
        stream.seek(archive_member.offset_data)
        first = stream.read(min(19, archive_member.size))
        if first.startswith(b"\x1f\x8b"):
            blocks = [(archive_member.offset_data, archive_member.size, 31)]
        elif first.startswith(b"ZCUBEX.DATA") and len(first) == 19:
            blocks = _blocks(stream, archive_member, first[11:])
        else:
            return
        total = 0
        for offset, left, window in blocks:
            stream.seek(offset)
            inflate = zlib.decompressobj(window)
            while left > 0 and not inflate.eof and total <= limits.PROFILE_VALUES:
                piece = inflate.unconsumed_tail or stream.read(min(left, 1 << 20))
                if not piece:
                    break
                left -= 0 if inflate.unconsumed_tail else len(piece)
                try:
                    total += len(inflate.decompress(piece, 1 << 24))
                except zlib.error as error:
                    raise InputError(f"{path}: {archive_member.name}: {error}", "the file is damaged") from error
        if total > limits.PROFILE_VALUES:
            raise InputError(
                f"{path}: {archive_member.name} inflates beyond {limits.PROFILE_VALUES >> 30} GiB", "is it a CUBE?"
            )


def _blocks(stream: BinaryIO, member: tarfile.TarInfo, count: bytes) -> list[tuple[int, int, int]]:
    """Offset, size and zlib window of each compressed block of a data member; either byte order."""
    for order in ("<q", ">q"):
        (blocks,) = struct.unpack(order, count)
        if 0 < blocks <= member.size // 24:
            entries = struct.unpack(f"{order[0]}{3 * blocks}q", stream.read(24 * blocks))
            sizes = [min(max(size, 0), member.size) for size in entries[2::3]]
            starts = np.cumsum([0, *sizes[:-1]]) + member.offset_data + 19 + 24 * blocks
            return [(int(start), size, 15) for start, size in zip(starts, sizes, strict=True)]
    return []
