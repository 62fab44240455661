"""Sentences that differ in their numbers only, said once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_NUMBER = re.compile(r"(?<![\w.])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")


def merged(texts: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """One text for those that differ in numbers only, with the range of each number, and what belongs to them.

    >>> merged({"a factor of 12.5, more than 4": ["copy"], "a factor of 8, more than 4": ["add"]})
    {'a factor of 8 to 12.5, more than 4': ['copy', 'add']}
    """
    groups: dict[str, list[str]] = {}
    for text in texts:
        groups.setdefault(_NUMBER.sub("#", text), []).append(text)
    return {_ranged(group): [each for text in group for each in texts[text]] for group in groups.values()}


def _ranged(group: list[str]) -> str:
    """The first text, each number that differs replaced by the least and the largest."""
    columns = iter(list(zip(*(_NUMBER.findall(text) for text in group), strict=True)))

    def span(_: re.Match[str]) -> str:
        found = sorted(set(next(columns)), key=lambda text: float(text.replace(",", "")))
        return found[0] if len(found) == 1 else f"{found[0]} to {found[-1]}"

    return _NUMBER.sub(span, group[0])
