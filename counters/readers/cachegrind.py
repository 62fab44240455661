"""Cachegrind's output files: exclusive cost of every function, simulated; the format is a part of callgrind's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ranksight.core.files import regular_file
from ranksight.core.reading import READERS, Reading
from ranksight.counters import callgrind_profile
from ranksight.counters.readers import _assemble
from ranksight.counters.readers.callgrind_files import check_totals, reading_of

_HEAD = re.compile(r"(?:(?:desc|cmd):[^\n]*\n|#[^\n]*\n|\n)*(?:cmd:[^\n]*\n)events: ?[A-Z]\w*(?: \w+)* ?\n(?:f[lni]=)")


class Cachegrind:
    """Reads cachegrind.out files; see the module's text."""

    text = "cachegrind: cachegrind.out files; functions, simulated counts"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether `path` is output of cachegrind, or a folder with one such file a rank."""
        if path.is_dir():
            return _assemble.is_process_folder(path, self.recognises)
        return _HEAD.match(_assemble.head_text(head)) is not None

    def read(self, path: Path) -> Iterator[Reading]:
        """Read a file in blocks, or a folder with one file a rank.

        Raises InputError, naming file and line where it is damaged; the costs do not add up to its summary; a rank is
        missing.
        """
        yield _assemble.read_processes(path, _read)


READERS.register("cachegrind")(Cachegrind())


def _read(path: Path) -> Reading:
    regular_file(path)
    profile = callgrind_profile.read(path)
    check_totals(path, profile, "summary")
    return reading_of(path, profile, "cachegrind")
