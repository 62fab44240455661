"""The working part of :mod:`ranksight.counters.callgrind_profile`: a block of lines at a time, as arrays.

Lines are distinguished by their first bytes, names found by their numbers, the current function, object and file are
carried forward over the lines, and all numbers of a block are parsed at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import numpy as np

from ranksight.core import limits
from ranksight.core.arrays import Array, Ints, Mask
from ranksight.core.errors import InputError
from ranksight.counters._callgrind_numbers import Bytes, Parsed, decimals, fields, positions
from ranksight.counters._growing import Names, Sums

_OF_THREE = (b"fn=", b"fl=", b"fi=", b"fe=", b"ob=")
_NAMED = {
    "fn": (b"fn=", b"cfn=", b"jfn="),
    "fl": (b"fl=", b"fi=", b"fe=", b"cfi=", b"cfl=", b"jfi=", b"jfl="),
    "ob": (b"ob=", b"cob=", b"job="),
}
OF_FOUR = (*(b"cfn=", b"cfi=", b"cfl=", b"cob=", b"calls="), *(b"jfn=", b"jfi=", b"jfl=", b"job=", b"jump=", b"jcnd="))
_HEADERS = frozenset(
    ("version", "creator", "pid", "cmd", "part", "desc", "event", "events", "positions", "thread", "summary", "totals")
)
_COMPRESSED_JUMPS = (b"rfn=", b"rob=", b"rfl=", b"frfn=")
_ZERO, _NEWLINE = 48, 10
_JUMP = re.compile(rb"j(?:ump|cnd)=(\d{1,15})(?:/\d{1,15})? (0x[0-9a-fA-F]{1,16}|[-+]?\d{1,15}|\*)(?: |$)")
_FIRST = np.zeros(256, bool)
_FIRST[[*b"0123456789+-*"]] = True


def _code(text: bytes) -> int:
    return int.from_bytes(text[:4], "little")


def _empty(events: int) -> tuple[Sums, Sums, Sums]:
    return Sums(1, events), Sums(2, events + 1), Sums(4, events)


class Parser:
    """What is kept between blocks: names; the object, file, function and line in force; sums."""

    def __init__(self, path: Path, lines_of: Callable[[str, str], bool] | None) -> None:
        self.path = path
        self.header: dict[str, str] = {}
        self.events: tuple[str, ...] = ()
        self.positions: tuple[bytes, ...] = (b"line",)
        self.names = {"ob": Names(), "fl": Names(), "fn": Names()}
        self.functions: list[tuple[int, int, int]] = []
        """Object, name and file of each function, as indices of names; -1 before its own lines state the file."""
        self.first: dict[int, int] = {}
        """By index of a function, the line of its first instruction, where its cost begins in its own file."""
        self.costs, self.arcs, self.places = _empty(1)
        """By function; by caller and callee, the calls first; by function, address, file and line."""
        self.jumps: dict[tuple[int, int, int], None] = {}
        """Function, address and target of each jump."""
        self._index: dict[int, int] = {}
        self._ob, self._fl, self._fn = 0, 0, -1
        self._before = 0
        self._totals = False
        self._last = {b"instr": 0, b"line": 0}
        self._lines_of = lines_of
        self._wanted: list[bool] = []

    def fail(self, line: int, what: str, remedy: str = "the file is damaged, or no callgrind profile") -> NoReturn:
        """Raise an error about a line of the present block."""
        raise InputError(f"{self.path}:{self._before + line + 1}: {what}", remedy)

    def feed(self, data: bytes) -> None:
        """Take a block of whole lines."""
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        while data:
            data = data[self._block(data) :]

    def finish(self) -> None:
        """Check that the file was whole.

        Raises InputError when it named no events, held no costs, or ended before callgrind's last line.
        """
        if not self.events:
            raise InputError(f"{self.path}: no line names events", "this is not a callgrind profile")
        if not self.functions:
            raise InputError(f"{self.path}: no costs of any function", "the program was cut off, or collected nothing")
        if self.header.get("creator", "").startswith("callgrind") and not self._totals:
            raise InputError(
                f"{self.path}:{self._before}: the file ends before its totals", "it was cut off: measure again"
            )

    # ---- lines ------------------------------------------------------------------------------------------------------

    def _block(self, data: bytes) -> int:
        """Take lines up to the first that changes how the others are read; return the bytes taken."""
        b = np.frombuffer(data + b"\n" * 32, np.uint8)
        ends = np.flatnonzero(b[: len(data)] == _NEWLINE)
        starts = np.concatenate(([0], ends[:-1] + 1))
        first = b[starts]
        code = first.astype(np.uint32)
        for k in (1, 2, 3):
            code |= b[starts + k].astype(np.uint32) << np.uint32(8 * k)
        three = code & np.uint32(0xFFFFFF)
        cost = _FIRST[first]
        kinds = {key: np.flatnonzero(three == _code(key)) for key in _OF_THREE}
        kinds |= {key: np.flatnonzero(code == _code(key)) for key in OF_FOUR}
        other = ~(cost | (first == _NEWLINE) | (first == ord("#")))
        for found in kinds.values():
            other[found] = False
        limit = len(starts)
        for line in np.flatnonzero(other).tolist():
            text = data[starts[line] : ends[line]]
            if line and text.startswith((b"events:", b"positions:")):
                limit = line
                break
            self._header(line, text)
        taken = self._lines(data, b, starts, ends, cost, kinds, limit)
        self._before += taken
        return int(ends[taken - 1]) + 1

    def _header(self, line: int, text: bytes) -> None:
        key, colon, rest = text.partition(b":")
        name = key.decode("ascii", "replace")
        if not colon or name not in _HEADERS:
            if text.startswith(_COMPRESSED_JUMPS):
                return
            shown = text[:40].decode("utf-8", "replace")
            self.fail(line, f"{shown!r} is not a line of a callgrind profile")
        value = rest.strip()[:4096].decode("utf-8", "replace")
        if name == "events":
            events = tuple(value.split())
            if not events or len(events) > limits.CALLGRIND_EVENTS or len(set(events)) != len(events):
                self.fail(line, "'events:' names none, one twice, or too many")
            if self.events and events != self.events:
                self.fail(line, "a later part has other events", "read its parts as files of their own")
            if not self.events:
                self.costs, self.arcs, self.places = _empty(len(events))
            self.events = events
        elif name == "positions":
            self.positions = tuple(rest.split())
            if self.positions not in ((b"line",), (b"instr",), (b"instr", b"line")):
                self.fail(line, "'positions:' is neither 'line', 'instr' nor 'instr line'")
        elif name in ("part", "totals"):
            self._totals = name == "totals"
        if name == "desc" and name in self.header:
            value = f"{self.header[name]}; {value}"[:4096]
        self.header[name] = value

    def _lines(
        self, data: bytes, b: Bytes, starts: Ints, ends: Ints, cost: Mask, kinds: Mapping[bytes, Ints], limit: int
    ) -> int:
        """Take the lines before `limit`, or before one that gives a number a new name; return how many."""
        name = np.full(len(starts), -1, np.int64)
        for space, keys in _NAMED.items():
            at = np.concatenate([kinds[key] for key in keys])
            skip = np.repeat([len(key) for key in keys], [len(kinds[key]) for key in keys])
            order = np.argsort(at)
            at = at[order]
            name[at], limit = self._named(data, b, starts[at] + skip[order], ends, at, space, limit)
        n = limit
        kinds = {key: at[at < n] for key, at in kinds.items()}
        cost = cost[:n]

        def last(*keys: bytes) -> Ints:
            """For each line the last line up to it of one of these kinds; -1 where this block has none."""
            mark = np.full(n, -1, np.int64)
            for key in keys:
                mark[kinds[key]] = kinds[key]
            return np.maximum.accumulate(mark)

        at_ob, at_fl = last(b"ob="), last(b"fl=", b"fi=", b"fe=")
        fn = kinds[b"fn="]
        ob_of_fn = np.where(at_ob[fn] >= 0, name[at_ob[fn]], self._ob)
        fl_of_fn = np.where(at_fl[fn] >= 0, name[at_fl[fn]], self._fl)
        # position 0 is the function of the block before, so that `local` counts fn= lines up to a line
        functions = np.concatenate(([self._fn], self._indices(ob_of_fn, name[fn], fl_of_fn)))
        local = np.searchsorted(fn, np.arange(n), side="right")

        calls, jumps = kinds[b"calls="], np.union1d(kinds[b"jump="], kinds[b"jcnd="])
        self._followed(calls, "calls=", cost)
        self._followed(jumps, "jump= or jcnd=", cost)
        rows = np.flatnonzero(cost)
        if len(rows):
            if not self.events:
                self.fail(int(rows[0]), "costs before any 'events:' line")
            if functions[0] < 0 and local[rows[0]] == 0:
                self.fail(int(rows[0]), "costs before any 'fn=' line")
            callee = self._callees(calls, last(b"cfn="), last(b"cob="), last(b"fn="), name, functions[local])
            target = local.copy()
            target[calls + 1] = len(functions) + np.arange(len(calls))
            target[jumps + 1] = -1
            parsed = self._parse(b, starts, ends, rows)
            sums = self._sums(parsed, target[rows], len(functions) + len(calls))
            line = self._positions(parsed, rows, b"line")
            self._begun(functions[1:], fn, rows, line)
            if self._lines_of is not None:
                exclusive = (target[rows] >= 0) & (target[rows] < len(functions))
                files = np.where(at_fl[rows] >= 0, name[at_fl[rows]], self._fl)
                jumping = jumps.tolist() if b"instr" in self.positions else []
                lines = [data[starts[line] : ends[line]] for line in jumping]
                before = np.searchsorted(rows, jumps + 1).astype(np.int64) - 1
                self._sites(parsed, rows, functions[local[rows]], files, line, exclusive, before, lines)
            own = np.flatnonzero(functions >= 0)
            self.costs.add([functions[own]], sums[own])
            count = self._counts(b, starts, ends, calls)
            self.arcs.add([functions[local[calls]], callee], np.column_stack((count, sums[len(functions) :])))
        self._ob = int(name[at_ob[-1]]) if at_ob[-1] >= 0 else self._ob
        self._fl = int(name[at_fl[-1]]) if at_fl[-1] >= 0 else self._fl
        self._fn = int(functions[-1])
        return n

    def _followed(self, lines: Ints, what: str, cost: Mask) -> None:
        """Fail where one of these lines has no line of costs behind it."""
        wrong = lines[(lines + 1 >= len(cost)) | ~cost[np.minimum(lines + 1, len(cost) - 1)]]
        if len(wrong):
            self.fail(int(wrong[0]), f"no line of costs follows '{what}'", "the file is cut off or damaged")

    # ---- names ------------------------------------------------------------------------------------------------------

    def _named(
        self, data: bytes, b: Bytes, at: Ints, ends: Ints, lines: Ints, space: str, limit: int
    ) -> tuple[Ints, int]:
        """Indices of the names at bytes `at` of `lines`; and the limit, lowered to a line that renames a number."""
        names = self.names[space]
        digit = b[at + 1] - np.uint8(_ZERO)
        active = compressed = (b[at] == ord("(")) & (digit <= 9)
        number = np.zeros(len(lines), np.int64)
        cursor = at + 1
        for _ in range(9):
            if not active.any():
                break
            number = np.where(active, number * 10 + digit, number)
            cursor = cursor + active
            digit = b[cursor] - np.uint8(_ZERO)
            active = active & (digit <= 9)
        compressed = compressed & (b[cursor] == ord(")"))
        short = compressed & (b[cursor + 1] == _NEWLINE)
        found = np.zeros(len(lines), np.int64)
        for k in np.flatnonzero(~short).tolist():
            line = int(lines[k])
            if line >= limit:
                break
            if not compressed[k]:
                found[k] = names.intern(data[at[k] : ends[line]].strip().decode("utf-8", "replace"))
                continue
            text = data[cursor[k] + 1 : ends[line]].strip().decode("utf-8", "replace")
            if names.full(int(number[k])):
                self.fail(line, f"name number {number[k]} is absurd")
            if not names.define(int(number[k]), text, replace=line == 0):
                limit = line
                break
            found[k] = names.intern(text)
        found[short] = names.lookup(number[short])
        lost = np.flatnonzero((found < 0) & (lines < limit))
        if len(lost):
            self.fail(int(lines[lost[0]]), f"({number[lost[0]]}) was never given a name")
        return found, limit

    def _indices(self, ob: Ints, fn: Ints, fl: Ints) -> Ints:
        """Indices of functions, by object and name; new ones are entered."""
        keys, first, inverse = np.unique((ob << np.int64(32)) | fn, return_index=True, return_inverse=True)
        indices = np.empty(len(keys), np.int64)
        for k, key in enumerate(keys.tolist()):
            index = self._index.setdefault(key, len(self.functions))
            if index == len(self.functions):
                one = (key >> 32, key & 0xFFFFFFFF, int(fl[first[k]]))
                self.functions.append(one)
                texts = (self.names["fn"].texts[one[1]], self.names["ob"].texts[one[0]])
                self._wanted.append(self._lines_of is not None and self._lines_of(*texts))
            elif self.functions[index][2] < 0:
                self.functions[index] = (*self.functions[index][:2], int(fl[first[k]]))
            indices[k] = index
        return indices[inverse]

    def _callees(self, calls: Ints, cfn: Ints, cob: Ints, fn: Ints, name: Ints, caller: Ints) -> Ints:
        """Index of the function that each ``calls=`` line calls; in the caller's object unless ``cob=`` names one."""
        since = np.maximum(np.concatenate(([-1], calls[:-1]))[: len(calls)], fn[calls])
        without = calls[cfn[calls] <= since]
        if len(without):
            self.fail(int(without[0]), "'calls=' without 'cfn='")
        objects = np.fromiter((ob for ob, _, _ in self.functions), np.int64, len(self.functions))
        own = objects[caller[calls]]
        ob = np.where(cob[calls] > since, name[cob[calls]], own)
        return self._indices(ob, name[cfn[calls]], np.full(len(calls), -1, np.int64))

    # ---- numbers ----------------------------------------------------------------------------------------------------

    def _counts(self, b: Bytes, starts: Ints, ends: Ints, calls: Ints) -> Array:
        """Number of calls on each ``calls=`` line."""
        start = starts[calls] + len(b"calls=")
        length = np.zeros(len(calls), np.int64)
        for _ in range(17):
            length += (b[start + length] != 32) & (start + length < ends[calls])
        value, bad = decimals(b, start, length)
        if len(bad):
            self.fail(int(calls[bad[0]]), "'calls=' without a number of calls that makes sense")
        return value.astype(np.float64)

    def _parse(self, b: Bytes, starts: Ints, ends: Ints, rows: Ints) -> Parsed:
        """Parse the numbers on `rows`."""
        lengths = ends - starts + 1
        is_row = np.zeros(len(starts), bool)
        is_row[rows] = True
        text = b[: int(lengths.sum())][np.repeat(is_row, lengths)]
        row, column, start, length = fields(text)
        column -= len(self.positions)
        wide = np.flatnonzero(column >= len(self.events))
        if len(wide):
            self.fail(int(rows[row[wide[0]]]), f"more numbers than the {len(self.events)} events")
        value = np.flatnonzero(column >= 0)
        number, bad = decimals(text, start[value], length[value])
        if len(bad):
            at = value[bad[0]]
            shown = text[start[at] : start[at] + min(length[at], 20)].tobytes().decode("ascii", "replace")
            self.fail(int(rows[row[at]]), f"{shown!r} is no cost that makes sense")
        return Parsed(text, row, column, start, length, row[value], column[value], number.astype(np.float64))

    def _sums(self, parsed: Parsed, target: Ints, targets: int) -> Array:
        """Sum the costs of each row at its target."""
        columns = len(self.events)
        slot = target[parsed.cost_row]
        kept = slot >= 0
        place = slot[kept] * columns + parsed.cost_column[kept]
        sums = np.bincount(place, parsed.cost[kept], targets * columns)
        return sums.astype(np.float64, copy=False).reshape(targets, columns)

    # ---- places -----------------------------------------------------------------------------------------------------

    def _positions(self, parsed: Parsed, rows: Ints, kind: bytes) -> Ints:
        """Positions of one kind of `rows`; 0 where the file has none, below 0 where one makes no sense."""
        if kind not in self.positions:
            return np.zeros(len(rows), np.int64)
        at = np.flatnonzero(parsed.column == self.positions.index(kind) - len(self.positions))
        if len(at) != len(rows):
            missing = np.setdiff1d(np.arange(len(rows)), parsed.row[at])
            self.fail(int(rows[missing[0]]), "a position is missing")
        found = positions(parsed.text, parsed.start[at], parsed.length[at], self._last[kind])
        self._last[kind] = int(found[-1])
        return found

    def _begun(self, functions: Ints, fn: Ints, rows: Ints, line: Ints) -> None:
        """Keep where functions begin: at a row right behind their ``fn=`` line, before any code inlined into them."""
        at = np.minimum(np.searchsorted(rows, fn + 1), len(rows) - 1)
        begins = (rows[at] == fn + 1) & (line[at] > 0)
        for function, number in zip(functions[begins].tolist(), line[at[begins]].tolist(), strict=True):
            self.first.setdefault(function, number)

    def _sites(
        self,
        parsed: Parsed,
        rows: Ints,
        functions: Ints,
        files: Ints,
        line: Ints,
        own: Mask,
        before: Ints,
        jumps: Sequence[bytes],
    ) -> None:
        """Keep cost by place of the functions that are wanted: of `rows` where they are `own`, and the jumps.

        `before` is the index of the row before each of the jumps, whose positions are relative to it; -1 for none.
        """
        before_all = self._last[b"instr"]
        address = self._positions(parsed, rows, b"instr")
        for kind, found in (("instr", address), ("line", line)):
            if len(wrong := np.flatnonzero(found < 0)):
                self.fail(int(rows[wrong[0]]), f"no {kind} that makes sense")
        wanted = np.array(self._wanted, bool)[np.maximum(functions, 0)] & (functions >= 0)
        cost = np.zeros((len(rows), len(self.events)))
        cost[parsed.cost_row, parsed.cost_column] = parsed.cost
        kept = own & wanted
        self.places.add([each[kept] for each in (functions, address, files, line)], cost[kept])
        if self.places.distinct > limits.CALLGRIND_SITES:
            self.fail(int(rows[-1]), "more places in the functions to refine than any program has")
        for index, text in zip(before.tolist(), jumps, strict=False):
            if wanted[index + 1]:
                match = _JUMP.match(text)
                if match is None:
                    continue  # without an address: to another function
                start = int(address[index + 1])
                last = int(address[index]) if index >= 0 else before_all
                word = match[2].decode()
                end = int(word, 16) if word.startswith("0x") else last + (0 if word == "*" else int(word))
                if len(self.jumps) < limits.CALLGRIND_SITES:
                    self.jumps[int(functions[index + 1]), start, end] = None
