"""Times of which some are in seconds and others in milliseconds, over the configurations of an experiment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

Configuration = tuple[tuple[str, float], ...]

THOUSAND, LOOSE = 1000.0, 3.0
"""A time in milliseconds over one in seconds, and the factor by which laws and scatter may change it from one
configuration to the next."""


def thousandfold(times: Mapping[Configuration, float]) -> Configuration | None:
    """A configuration whose time is about a thousand times those of both its neighbours along a parameter, or a
    thousandth; None where there is none. No law rises and falls so much from one configuration to the next.

    `times`: seconds of each configuration, above zero.

    >>> thousandfold({(("ranks", 1.0),): 8.0, (("ranks", 2.0),): 4000.0, (("ranks", 4.0),): 2.0})
    (('ranks', 2.0),)
    """
    for line in _lines(times):
        logs = np.log([times[each] for each in line])
        bend = logs[1:-1] - (logs[:-2] + logs[2:]) / 2
        steps = np.diff(logs)
        turns = np.sign(steps[:-1]) != np.sign(steps[1:])
        odd = np.flatnonzero(turns & (np.abs(np.abs(bend) - np.log(THOUSAND)) < np.log(LOOSE)))
        if len(odd):
            return line[1 + int(odd[0])]
    return None


def _lines(times: Mapping[Configuration, float]) -> Iterator[list[Configuration]]:
    """Configurations that differ in one parameter alone, three or more in the order of its values."""
    groups: dict[tuple[str, Configuration], list[Configuration]] = {}
    for each in times:
        for name, value in each:
            rest = tuple(pair for pair in each if pair != (name, value))
            groups.setdefault((name, rest), []).append(each)
    for (name, _), members in groups.items():
        if len(members) >= 3:
            yield sorted(members, key=lambda each: dict(each)[name])
