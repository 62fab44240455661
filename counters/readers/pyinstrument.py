"""Python's pyinstrument: files of ``pyinstrument -r json -o FILE``; one file a rank.

A file holds the calls as a tree, each with the seconds in it and in what it calls, from samples of the stack. Kernels
are functions with their own time, named ``solve (heat.py:24)``; ``[self]`` is the caller's own. Methods of mpi4py that
pass buffers are named as the functions of MPI that they call.

Source: ``pyinstrument/renderers/jsonrenderer.py``, versions 4 and 5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

from ranksight.core.errors import InputError
from ranksight.core.mpi import is_call
from ranksight.core.reading import READERS, Reading
from ranksight.counters.readers._assemble import Cells
from ranksight.counters.readers._files import Format, damaged, number, read_json

_START = re.compile(r'\s*\{\s*"start_time":\s*[\d.e+-]{1,40},\s*"duration":\s*[\d.e+-]{1,40},\s*"sample_count":\s*\d')
SELF = "[self]"
BUILT_IN = "<built-in>"
ROUNDED = 1e-6
"""Seconds that a printed time is off by at most: it has six decimals."""


def _read(path: Path, rank: int | None) -> Iterator[Reading]:
    content = read_json(path)
    root = content.get("root_frame") if isinstance(content, dict) else None
    if not isinstance(root, dict):
        raise InputError(f"{path} holds no samples of pyinstrument", "did the program run for some milliseconds?")
    duration, samples = (number(str(path), content.get(name), name) for name in ("duration", "sample_count"))
    cells = Cells()
    waiting: list[tuple[Any, str]] = [(root, "")]
    while waiting:
        frame, caller = waiting.pop()
        name, inside, children = _frame(path, frame, caller)
        own = inside - sum(number(str(path), child.get("time"), name) for child in children)
        if own < -ROUNDED * (1 + len(children)):
            raise damaged(f"{path}: what {name[:80]} calls takes {-own:g} s longer than it does")
        cells.add(name, {"time": max(0.0, own)}, rank)
        waiting += [(child, name) for child in children]
    yield cells.reading(
        path,
        configuration={},
        origin={"time": "sampled by pyinstrument"},
        wall_time=duration or None,
        worth={"time": duration / samples} if duration > 0 and samples > 0 else None,
    )


def _frame(path: Path, frame: Mapping[str, Any], caller: str) -> tuple[str, float, list[dict[str, Any]]]:
    """Name of the function of a frame, the seconds in it, and its callees; InputError where it is damaged."""
    function, file, line = (frame.get(name) for name in ("function", "file_path_short", "line_no"))
    children = frame.get("children")
    if (
        not isinstance(function, str)
        or not isinstance(children, list)
        or not all(isinstance(c, dict) for c in children)
    ):
        raise damaged(f"{path}: a frame has no function or no list of children")
    if function == SELF and caller:
        name = caller
    elif file == BUILT_IN or not isinstance(file, str):
        of_mpi = function[:1].isupper() and is_call(f"mpi_{function.lower()}")
        name = f"MPI_{function}" if of_mpi else function
    else:
        name = f"{function} ({PurePath(file).name}:{line})"
    return name, number(str(path), frame.get("time"), name), children


READERS.register("pyinstrument")(
    Format("Python's pyinstrument: files of -r json; functions", lambda path, head: bool(_START.match(head)), _read)
)
