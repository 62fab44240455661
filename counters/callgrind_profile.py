"""Reading callgrind's profile format: the cost of every function, exclusive, and of every call arc, inclusive.

A file of any size is read in blocks, in the memory that its functions and arcs need.

Source: Valgrind manual, "Callgrind Format Specification".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from ranksight.core import limits
from ranksight.core.arrays import Array, Ints
from ranksight.core.errors import InputError, readable
from ranksight.core.records import dataclass
from ranksight.counters._callgrind_blocks import OF_FOUR, Parser

BLOCK = 2 << 20
_WITH_NEXT = (b"fn=", *OF_FOUR)


@dataclass(frozen=True)
class Sites:
    """Exclusive cost within functions, by place; and the jumps between places.

    `function`, `address`, `file`, `line`: index of the function; address within its object (0 where the file has none);
    index of the source file; line. `jump_function`, `jump_from`, `jump_to`: addresses.
    """

    function: Ints
    address: Ints
    file: Ints
    line: Ints
    cost: Array
    jump_function: Ints
    jump_from: Ints
    jump_to: Ints


@dataclass(frozen=True)
class Profile:
    """What one callgrind file says."""

    path: Path
    header: Mapping[str, str]
    """``creator``, ``cmd``, ``pid`` ... the last of each; ``desc`` lines joined by ``"; "``."""
    events: tuple[str, ...]  # columns of the cost arrays, as the file names them: ``Ir``, ``Dr``, ..
    functions: tuple[str, ...]
    objects: tuple[str, ...]
    files: tuple[str, ...]
    """Name of each function as written, path of its object file, source file in which it begins (empty where the
    profile has no cost of its own of it)."""
    lines: tuple[int, ...]  # line of each function's first instruction in its file; 0 where it is not known
    self_cost: Array  # exclusive cost
    caller: Ints  # indices of functions
    callee: Ints
    calls: Array
    arc_cost: Array  # cost of the callee and all below it when called over this arc
    sites: Sites  # exclusive cost by place within the functions that were asked for
    site_files: tuple[str, ...]  # source files that :attr:`Sites.file` counts

    @property
    def visits(self) -> Array:
        """Calls of each function, recursive ones too."""
        return np.bincount(self.callee, self.calls, len(self.functions)).astype(np.float64, copy=False)


def read(path: Path, lines_of: Callable[[str, str], bool] | None = None, block: int = BLOCK) -> Profile:
    """Read the callgrind file at `path`.

    `lines_of`: called with a function's name and object file; returns whether its cost is wanted by source line.
    `block`: bytes read at a time. Raises InputError when it is not a callgrind file, is damaged or cut off; with the
    line.
    """
    parser = Parser(path, lines_of)
    with readable(path), path.open("rb") as file:
        for data in _blocks(path, iter(lambda: file.read(block), b"")):
            parser.feed(data)
    parser.finish()
    function, cost = parser.costs.merged()
    self_cost = np.zeros((len(parser.functions), cost.shape[1]))
    self_cost[function[:, 0]] = cost
    arcs, arc_cost = parser.arcs.merged()
    places, place_cost = parser.places.merged()
    jumps = np.array(list(parser.jumps), np.int64).reshape(-1, 3)
    objects, files, functions = (parser.names[space].texts for space in ("ob", "fl", "fn"))
    return Profile(
        path,
        parser.header,
        parser.events,
        tuple(functions[fn] for _, fn, _ in parser.functions),
        tuple(objects[ob] for ob, _, _ in parser.functions),
        tuple(files[fl] if fl >= 0 else "" for _, _, fl in parser.functions),
        tuple(parser.first.get(at, 0) for at in range(len(parser.functions))),
        self_cost,
        arcs[:, 0],
        arcs[:, 1],
        arc_cost[:, 0],
        arc_cost[:, 1:],
        Sites(
            *(places[:, 0], places[:, 1], places[:, 2], places[:, 3]),
            place_cost,
            *(jumps[:, 0], jumps[:, 1], jumps[:, 2]),
        ),
        tuple(files) if lines_of is not None else (),
    )


def _blocks(path: Path, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Cut a stream into blocks of whole lines that part no call from the lines that belong to it."""
    rest = b""
    for piece in pieces:
        data = rest + piece
        cut = data.rfind(b"\n") + 1
        if len(data) - cut > limits.CALLGRIND_LINE:
            raise InputError(
                f"{path}: a line of more than {limits.CALLGRIND_LINE} bytes", "this is not a callgrind profile"
            )
        while cut:
            before = data.rfind(b"\n", 0, cut - 1) + 1
            if not data.startswith(_WITH_NEXT, before, cut):
                break
            cut = before
        rest = data[cut:]
        if len(rest) > 16 * limits.CALLGRIND_LINE:
            raise InputError(f"{path}: calls without costs for {len(rest)} bytes", "this is not a callgrind profile")
        if cut:
            yield data[:cut]
    if rest:
        yield rest if rest.endswith(b"\n") else rest + b"\n"
