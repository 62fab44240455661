"""CUBE4 archives, looked through before pycubexr opens them: none leads out of itself or fills the memory."""

from __future__ import annotations

import struct
import tarfile
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ranksight.errors import InputError, ToolError

LARGEST_RATIO = 1032
"""Most bytes that one byte can grow to in deflate (RFC 1951)."""
MEMORY = 4 * 2**30
"""Bytes that one metric's values may take."""


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """pycubexr's parser of an archive, for as long as the block lasts; what it raises there is told in one line.

    Raises
    ------
    InputError
        When the archive is damaged, holds paths that lead out of it, or inflates beyond :data:`MEMORY`.
    ToolError
        When pycubexr is not installed.
    """
    try:
        import pycubexr
    except ImportError as error:
        raise ToolError("pycubexr, which reads CUBE4, is not installed", "pip install 'ranksight[cube]'") from error
    _check_members(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with pycubexr.CubexParser(str(path)) as cube:
                yield cube
        except InputError:
            raise
        except (
            Exception,
            RecursionError,
        ) as error:  # pycubexr asserts, and lets those of its parts through
            raise InputError(
                f"{path} is no CUBE4 archive that can be read: {type(error).__name__} {error}"[:400],
                "the file is damaged: copy it again",
            ) from error


def _check_members(path: Path) -> None:
    """Refuse archives that are damaged, that climb out, or whose anchor would fill the memory."""
    try:
        with tarfile.open(path, "r:") as archive:
            members = archive.getmembers()
    except tarfile.ReadError:
        return  # one version of CubeWriter wrote wrong checksums: pycubexr copes with them, or says what is wrong
    except (tarfile.TarError, OSError, ValueError, EOFError) as error:
        raise InputError(f"{path} is no complete archive: {error}", "the file is damaged: copy it again") from error
    size = path.stat().st_size
    if "anchor.xml" not in {member.name for member in members}:
        raise InputError(f"{path} has no anchor.xml", "is it a CUBE4 archive, and copied to its end?")
    for member in members:
        parts = Path(member.name).parts
        if member.name.startswith("/") or ".." in parts or member.issym() or member.islnk() or member.isdev():
            raise InputError(f"{path} holds {member.name!r}, which leads out of it", "a CUBE has no such member")
        if member.size > size:
            raise InputError(f"{path} is cut off in {member.name!r}", "the file is truncated: copy it again")
        if member.size * LARGEST_RATIO > MEMORY or member.name == "anchor.xml":
            _check_inflated(path, archive_member=member)


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
            while left > 0 and not inflate.eof and total <= MEMORY:
                piece = inflate.unconsumed_tail or stream.read(min(left, 1 << 20))
                if not piece:
                    break
                left -= 0 if inflate.unconsumed_tail else len(piece)
                try:
                    total += len(inflate.decompress(piece, 1 << 24))
                except zlib.error as error:
                    raise InputError(f"{path}: {archive_member.name}: {error}", "the file is damaged") from error
        if total > MEMORY:
            raise InputError(f"{path}: {archive_member.name} inflates beyond {MEMORY >> 30} GiB", "is it a CUBE?")


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
