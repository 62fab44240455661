"""The block of calls that ranks repeat, a template, found in their events.

Where the first rank, the last one or every second one has another order (a ring that rank 0 begins), it has a template
of its own.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ranksight.core.arrays import Array, Ints, Mask
from ranksight.core.records import dataclass

LONGEST = 512
"""Calls of a step that are looked for."""
COVERED = 0.5
"""Part of a run's calls that steps must hold to stand for the program."""


@dataclass(frozen=True)
class CallsOfRank:
    """One rank's calls in a row: tokens, seconds computed before each, and the number of the event of each call."""

    tokens: Ints
    work: Array
    of_call: Ints  # (calls,): place in `tokens` of each call kept, -1 for others


@dataclass(frozen=True)
class Template:
    tokens: Ints  # of the rank that it was read from
    begin: int  # where steps begin in them
    length: int
    steps: int

    @property
    def block(self) -> Ints:
        """Tokens of a step."""
        return self.tokens[self.begin : self.begin + self.length]


def repeating_block(tokens: Ints) -> Template:
    """The block whose repetitions cover most of a sequence, the shortest of such; of no steps where none does."""
    best = none = Template(tokens, 0, 0, 0)
    for length in range(1, min(LONGEST, len(tokens) // 2) + 1):
        same = np.concatenate([[False], tokens[length:] == tokens[:-length], [False]])
        edges = np.flatnonzero(np.diff(same.astype(np.int8)))
        begins, ends = edges[::2], edges[1::2]
        if not len(begins):
            continue
        longest = int(np.argmax(ends - begins))
        steps = int(ends[longest] - begins[longest]) // length + 1
        if steps > 1 and steps * length > 1.02 * best.steps * best.length:
            best = Template(tokens, int(begins[longest]), length, steps)
    return best if best.steps * best.length >= COVERED * len(tokens) else none


def find_templates(each: Mapping[int, CallsOfRank], ranks: int) -> dict[str, Template]:
    """Templates by kind of ranks; none where ranks follow no few orders."""
    longest = max(each, key=lambda rank: len(each[rank].tokens))
    plain = repeating_block(each[longest].tokens)
    if not plain.steps:
        return {}
    odd = [rank for rank, one in each.items() if not _is_subsequence(each[longest].tokens, one.tokens)]
    if not odd:
        return {"all": plain}
    rules: tuple[tuple[tuple[str, ...], list[int]], ...] = (
        (("first",), [0]),
        (("last",), [ranks - 1]),
        (("first", "last"), [0, ranks - 1]),
        (("even",), list(range(0, ranks, 2))),
    )
    others = [rank for rank in each if rank not in odd]
    for kinds, who in rules:
        inner = [rank for rank in each if rank not in who]
        if not inner or not (set(odd) <= set(who) or set(others) <= set(who)):
            continue
        base = max(inner, key=lambda rank: len(each[rank].tokens))
        blocks = {"all": repeating_block(each[base].tokens)}
        for kind in kinds:
            ranks_of_kind = {"first": [0], "last": [ranks - 1], "even": who}[kind]
            blocks[kind] = repeating_block(each[max(ranks_of_kind, key=lambda rank: len(each[rank].tokens))].tokens)
        if all(one.steps for one in blocks.values()) and len({one.steps for one in blocks.values()}) == 1:
            return blocks
    return {}


def _is_subsequence(whole: Ints, part: Ints) -> bool:
    """Whether a sequence has another one in it, in order, with calls left out."""
    rest = iter(whole.tolist())
    return all(token in rest for token in part.tolist())


def kind_of_rank(rank: int, ranks: int, templates: Mapping[str, Template]) -> str:
    if rank == 0 and "first" in templates:
        return "first"
    if rank == ranks - 1 and "last" in templates:
        return "last"
    return "even" if rank % 2 == 0 and "even" in templates else "all"


def merged_places(
    templates: Mapping[str, Template], collective: Mask
) -> tuple[list[tuple[str, int]], dict[tuple[str, int], int]]:
    """All templates in one list of (kind, place in its block), with one place for each collective; empty where they
    have different collectives."""
    parts = {}
    for kind, one in templates.items():
        ends = np.flatnonzero(collective[one.block])
        parts[kind] = (one.block[ends].tolist(), np.split(np.arange(len(one.block)), ends + 1))
    first = parts["all"][0]
    places: list[tuple[str, int]] = []
    position: dict[tuple[str, int], int] = {}
    if any(tokens != first for tokens, _ in parts.values()):
        return places, position
    for n in range(len(first) + 1):
        shared = [(kind, int(segments[n][-1])) for kind, (_, segments) in parts.items() if n < len(first)]
        for kind, (_, segments) in parts.items():
            places_of_kind = segments[n][:-1] if n < len(first) else segments[n]
            for at in places_of_kind.tolist():
                position[kind, at] = len(places)
                places.append((kind, at))
        if shared:
            position |= dict.fromkeys(shared, len(places))
            places.append(next(place for place in shared if place[0] == "all"))
    return places, position


def places_within(one: CallsOfRank, template: Template) -> tuple[Ints, Ints]:
    """Of each token of a rank its step and its place in the block; -1 outside of the steps.

    Calls are taken in order; what the block has in addition is left out by the rank.
    """
    step, place = np.full((2, len(one.tokens)), -1)
    wanted, at = template.tokens.tolist(), 0
    for n, token in enumerate(one.tokens.tolist()):
        try:
            at = wanted.index(token, at)
        except ValueError:
            break
        inside = at - template.begin
        if 0 <= inside < template.steps * template.length:
            step[n], place[n] = divmod(inside, template.length)
        at += 1
    return step, place
