"""Steps that a backtracking matcher takes: growth of a regular expression's cost, without a clock.

A pattern is compiled to functions that match as Python's ``re`` does, greedy and from left to right, and count the
characters they look at. Bounds of repetitions above :data:`BOUND` count as :data:`BOUND`: what is bounded is linear,
and shows as such in short texts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any

BOUND = 6
MOST = 200_000
"""Steps after which a pattern is taken for exponential."""
DEEP = 20_000
"""Calls within each other that repetitions of groups need."""
ALPHABET = [*map(chr, range(32, 127)), "\t", "\n", "\0", "\u00e9", "\u2028"]
Go = Callable[[int], int]
"""What follows: from a place in the text, the end of the match; -1 where there is none."""
Match = Callable[[int, Go], int]
REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
SINGLE = ("LITERAL", "NOT_LITERAL", "ANY", "IN", "CATEGORY", "RANGE")


class TooMany(Exception):
    """More steps than :data:`MOST`."""


class Matcher:
    """Matches one pattern and counts."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        text = pattern.pattern
        self.tree = _parser.parse(text, pattern.flags)
        self.flags = self.tree.state.flags
        self.bytes = isinstance(text, bytes)
        self.steps = 0
        self.text = ""
        self.groups: dict[int, tuple[int, int]] = {}
        self.single: dict[str, Callable[[str], bool]] = {}
        self.match = self._sequence(list(self.tree))

    def count(self, text: str, how: str) -> int:
        """Steps of ``match``, of ``fullmatch``, or of all that ``finditer`` finds."""
        self.text, self.steps = text, 0
        at = 0
        while at <= len(text):
            self.groups = {}
            end = self.match(at, lambda place: place if how != "fullmatch" or place == len(text) else -1)
            if how != "finditer":
                break
            at = end if end > at else at + 1
        return self.steps

    def _step(self) -> None:
        self.steps += 1
        if self.steps > MOST:
            raise TooMany

    def accepts(self, node: Any) -> Callable[[str], bool]:
        """Whether a character is one that a node of a single character matches."""
        key = repr(node)
        if key not in self.single:
            part = _parser.SubPattern(self.tree.state, [node])
            compiled = _compiler.compile(part, self.flags & ~re.DEBUG)
            known: dict[str, bool] = {}

            def one(sign: str) -> bool:
                if sign not in known:
                    given: Any = sign.encode("latin-1", "replace") if self.bytes else sign
                    known[sign] = compiled.match(given) is not None
                return known[sign]

            self.single[key] = one
        return self.single[key]

    def _sequence(self, nodes: list[Any]) -> Match:
        parts = [self._node(node) for node in nodes]

        def run(at: int, go: Go, first: int = 0) -> int:
            if first == len(parts):
                return go(at)
            return parts[first](at, lambda place: run(place, go, first + 1))

        return run if len(parts) != 1 else parts[0]

    def _node(self, node: Any) -> Match:
        kind, value = str(node[0]), node[1]
        if kind in SINGLE:
            return self._character(node)
        if kind in REPEATS:
            least, most, inner = value
            return self._repeat(kind, min(least, BOUND), most, list(inner))
        if kind == "SUBPATTERN":
            return self._group(value[0], self._sequence(list(value[3])))
        if kind == "ATOMIC_GROUP":
            return self._atomic(self._sequence(list(value)))
        if kind == "BRANCH":
            ways = [self._sequence(list(way)) for way in value[1]]
            return lambda at, go: next((end for way in ways if (end := way(at, go)) >= 0), -1)
        if kind == "AT":
            return self._place(value)
        if kind in ("ASSERT", "ASSERT_NOT"):
            return self._ahead(kind == "ASSERT", value[0], list(value[1]))
        if kind == "GROUPREF":
            return self._again(value)
        raise NotImplementedError(kind)

    def _character(self, node: Any) -> Match:
        accepts = self.accepts(node)

        def run(at: int, go: Go) -> int:
            self._step()
            return go(at + 1) if at < len(self.text) and accepts(self.text[at]) else -1

        return run

    def _group(self, number: int | None, inner: Match) -> Match:
        if number is None:
            return inner

        def run(at: int, go: Go) -> int:
            def close(place: int) -> int:
                before = self.groups.get(number)
                self.groups[number] = (at, place)
                end = go(place)
                if end < 0:
                    self.groups.pop(number)
                    if before is not None:
                        self.groups[number] = before
                return end

            return inner(at, close)

        return run

    def _again(self, number: int) -> Match:
        def run(at: int, go: Go) -> int:
            first, last = self.groups.get(number, (0, -1))
            self.steps += max(0, last - first)
            self._step()
            held = self.text[first:last]
            return go(at + len(held)) if last >= 0 and self.text.startswith(held, at) else -1

        return run

    def _atomic(self, inner: Match) -> Match:
        def run(at: int, go: Go) -> int:
            end = inner(at, lambda place: place)
            return go(end) if end >= 0 else -1

        return run

    def _place(self, where: Any) -> Match:
        pattern = _compiler.compile(
            _parser.SubPattern(self.tree.state, [(_constants.AT, where)]), self.flags & ~re.DEBUG
        )

        def run(at: int, go: Go) -> int:
            self._step()
            given: Any = self.text.encode("latin-1", "replace") if self.bytes else self.text
            return go(at) if pattern.match(given, at) else -1

        return run

    def _ahead(self, wanted: bool, direction: int, nodes: list[Any]) -> Match:
        inner = self._sequence(nodes)
        width = sum(_parser.SubPattern(self.tree.state, [node]).getwidth()[0] for node in nodes)

        def run(at: int, go: Go) -> int:
            self._step()
            first = at if direction > 0 else at - width
            found = first >= 0 and inner(first, lambda place: place) >= 0
            return go(at) if found is wanted else -1

        return run

    def _repeat(self, kind: str, least: int, most: Any, nodes: list[Any]) -> Match:
        limit = None if most is _constants.MAXREPEAT else min(int(most), max(BOUND, least))
        lazy, possessive = kind == "MIN_REPEAT", kind == "POSSESSIVE_REPEAT"
        if len(nodes) == 1 and str(nodes[0][0]) in SINGLE:
            return self._run_of(self.accepts(nodes[0]), least, limit, kind)
        inner = self._sequence(nodes)

        def more(at: int, go: Go, done: int) -> int:
            def again(place: int) -> int:
                return more(place, go, done + 1) if place > at or done < least else -1

            if done < least:
                return inner(at, again)
            if lazy and (end := go(at)) >= 0:
                return end
            if (limit is None or done < limit) and (end := inner(at, again)) >= 0:
                return end
            return -1 if lazy else go(at)

        if possessive:
            return self._atomic(lambda at, go: more(at, go, 0))
        return lambda at, go: more(at, go, 0)

    def _run_of(self, accepts: Callable[[str], bool], least: int, limit: int | None, kind: str) -> Match:
        """A repetition of one character: as many as there are and then fewer, or as few as it takes."""

        def greedy(at: int, go: Go) -> int:
            end = at
            while end < len(self.text) and (limit is None or end - at < limit) and accepts(self.text[end]):
                self._step()
                end += 1
            self._step()
            for place in range(end, at + least - 1, -1):
                self._step()
                if (found := go(place)) >= 0 or kind == "POSSESSIVE_REPEAT":
                    return found
            return -1

        def lazy(at: int, go: Go) -> int:
            place = at
            while True:
                self._step()
                if place - at >= least and (found := go(place)) >= 0:
                    return found
                if place == len(self.text) or (limit is not None and place - at == limit):
                    return -1
                if not accepts(self.text[place]):
                    return -1
                place += 1

        return lazy if kind == "MIN_REPEAT" else greedy


# ---- texts that cost most -------------------------------------------------------------------------------------------


def _nodes(tree: Any, before: list[Any]) -> Iterator[tuple[list[Any], Any]]:
    """Every repetition without a bound of few, and the nodes before it."""
    seen = list(before)
    for node in tree:
        kind, value = str(node[0]), node[1]
        inner = {"SUBPATTERN": lambda v: [v[3]], "BRANCH": lambda v: v[1], "ATOMIC_GROUP": lambda v: [v]}.get(kind)
        if kind in REPEATS:
            if value[1] is _constants.MAXREPEAT or value[1] > BOUND:
                yield list(seen), node
            yield from _nodes(value[2], seen)
        elif inner is not None:
            for part in inner(value):
                yield from _nodes(part, seen)
        elif kind in ("ASSERT", "ASSERT_NOT"):
            yield from _nodes(value[1], seen)
        seen.append(node)


def _sample(matcher: Matcher, nodes: Any) -> str:
    """A short text that nodes match, as far as that is simple."""
    text = ""
    for node in nodes:
        kind, value = str(node[0]), node[1]
        if kind in SINGLE:
            text += next(filter(matcher.accepts(node), ALPHABET), "")
        elif kind in REPEATS:
            text += _sample(matcher, value[2]) * min(value[0], BOUND)
        elif kind == "SUBPATTERN":
            text += _sample(matcher, value[3])
        elif kind == "ATOMIC_GROUP":
            text += _sample(matcher, value)
        elif kind == "BRANCH":
            text += _sample(matcher, value[1][0])
    return text


def pumped(matcher: Matcher) -> list[tuple[str, str]]:
    """Beginnings and what to repeat behind them: characters that the pattern tells apart, and bodies of repetitions."""
    found: dict[tuple[str, str], None] = {}
    for before, node in _nodes(matcher.tree, []):
        start = _sample(matcher, before)
        body = _sample(matcher, node[1][2])
        bodies = [body or "x", f"{body} ", f" {body}"]
        for start_of in {start, ""}:
            found.update({(start_of, each): None for each in [*bodies, *_kinds(matcher)]})
    return list(found)


def _kinds(matcher: Matcher) -> list[str]:
    """One character of each set that all single characters of the pattern treat in the same way."""
    _collect(matcher, matcher.tree)
    kinds: dict[tuple[bool, ...], str] = {}
    for sign in ALPHABET:
        kinds.setdefault(tuple(accepts(sign) for accepts in list(matcher.single.values())), sign)
    return list(kinds.values())


def _collect(matcher: Matcher, tree: Any) -> None:
    for node in tree:
        kind, value = str(node[0]), node[1]
        if kind in SINGLE:
            matcher.accepts(node)
        elif kind in REPEATS:
            _collect(matcher, value[2])
        elif kind == "SUBPATTERN":
            _collect(matcher, value[3])
        elif kind == "ATOMIC_GROUP":
            _collect(matcher, value)
        elif kind == "BRANCH":
            for way in value[1]:
                _collect(matcher, way)
        elif kind in ("ASSERT", "ASSERT_NOT"):
            _collect(matcher, value[1])


def grows(pattern: re.Pattern[Any], how: str, length: int = 24) -> str:
    """What is repeated in a text whose steps grow faster than its length; empty where nothing is found.

    `how`: ``match``, ``fullmatch`` or ``finditer``.

    Steps of `length`, twice and three times as many repetitions have no second difference where growth is linear, and
    one of ``2 c n^2`` where it is ``c n^2``.
    """
    matcher = Matcher(pattern)
    sys.setrecursionlimit(max(sys.getrecursionlimit(), DEEP))
    for start, body in pumped(matcher):
        for last in ("", "\0", "x"):
            try:
                one, two, three = (matcher.count(f"{start}{body * (times * length)}{last}", how) for times in (1, 2, 3))
            except (TooMany, RecursionError):
                return f"{start!r} + {body!r} n + {last!r}, exponentially"
            if three - 2 * two + one > 0.1 * length**2:
                return f"{start!r} + {body!r} n + {last!r}: {one}, {two}, {three} steps"
    return ""
