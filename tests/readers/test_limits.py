"""Limits on what strangers' files make us read: paths, sizes, decompression, counts."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from ranksight import limits
from ranksight._files import read_bytes
from ranksight.errors import InputError
from ranksight.recognising import recognise
from ranksight.symbols import read_symbols


def within(code: str, *words: str, memory: int = 2 << 30, seconds: int = 20) -> str:
    """What Python code prints in a process of its own with bounded memory and time."""
    limit = f"import resource, sys; resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))\n"
    done = subprocess.run(
        [sys.executable, "-c", limit + code, *words], capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


SYMBOLS = "from pathlib import Path; from ranksight.symbols import read_symbols; print(read_symbols(Path(sys.argv[1])))"


def elf(sections: list[tuple[int, bytes, int]], names: bytes = b"\0") -> bytes:
    """An object file of sections (kind, content, place of the name); the first holds their names."""
    body, heads = b"", [bytes(64), struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 64, len(names), 0, 0, 1, 0)]
    body += names
    for kind, content, name in sections:
        heads.append(struct.pack("<IIQQQQIIQQ", name, kind, 0, 0, 64 + len(body), len(content), len(heads) + 1, 0, 1, 0))
        body += content
    head = b"\x7fELF\x02\x01".ljust(16, b"\0") + struct.pack("<HHIQQQ", 3, 62, 1, 0, 0, 64 + len(body))
    head += struct.pack("<IHHHHHH", 0, 64, 56, 0, 64, len(heads), 1)
    return head + body + b"".join(heads)


def symbols(count: int, step: int) -> bytes:
    """A symbol table of functions, the name of each `step` bytes behind the last one's."""
    return b"".join(struct.pack("<IBBHQQ", k * step, 2, 0, 1, 16 * k + 16, 16) for k in range(count))


def test_a_path_of_a_trace_that_is_no_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path, Path("a\0b")):
        assert read_symbols(path) is None
        with pytest.raises(InputError):
            read_bytes(path, 100)
    with pytest.raises(InputError, match="no regular file"):
        recognise(tmp_path / "pipe")


def test_an_object_file_beyond_the_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    path.write_bytes(elf([(2, symbols(2, 2), 0), (3, b"f\0g\0", 0)]))
    assert read_symbols(path).names == ["f", "g"]  # type: ignore[union-attr]
    os.truncate(path, limits.OBJECT_FILE + 1)  # sparse
    assert within(SYMBOLS, str(path), memory=1 << 30) == "None"


def test_a_debug_file_beyond_the_limit_is_not_read(tmp_path: Path) -> None:
    names = b"\0.gnu_debuglink\0"
    link = b"other.debug\0" + struct.pack("<I", zlib.crc32(b"")) + b"\0" * 4
    path = tmp_path / "program"
    path.write_bytes(elf([(1, link, 1)], names))
    for place in (tmp_path / "other.debug", tmp_path / ".debug" / "other.debug"):
        place.parent.mkdir(exist_ok=True)
        place.touch()
        os.truncate(place, 1 << 36)
    assert within(SYMBOLS, str(path), memory=1 << 30).startswith("SymbolTable")


def test_names_that_overlap_do_not_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "overlap"
    path.write_bytes(elf([(2, symbols(50_000, 1), 0), (3, b"f" * 200_000 + b"\0", 0)]))
    assert within(SYMBOLS, str(path)) == "None"
