"""The kit of platform files: sources, events, writing and reading back."""

from __future__ import annotations

import os
from dataclasses import fields

from ranksight.core.errors import InputError
from ranksight.platforms import events
from ranksight.platforms.files import load, parse
from ranksight.platforms.platform import Platform, measurable
from ranksight.platforms.simulation import simulated_caches
from ranksight.platforms.writing import dumps

LEAST = 10
"""Characters of a source that says where to look a value up."""


def check_platform(platform: Platform | str | os.PathLike[str]) -> None:
    """Check that the description of a machine is whole.

    Parameters
    ----------
    platform : Platform, name or path
        A platform, the name of one that ships, or a file.

    Raises
    ------
    AssertionError
        - it loads: no value is missing, out of range or contradicts another one;
        - every value has a source that says where to look it up;
        - written and read back it is the same;
        - its caches can be simulated, and its table of events is one of those in ``platforms/events``.
    """
    try:
        found = platform if isinstance(platform, Platform) else load(platform)
    except InputError as error:
        raise AssertionError(str(error)) from error
    sections = {"topology": found.layout, "clock": found.clock, "memory": found.memory}
    sections |= {f"caches.{cache.name}": cache for cache in found.caches}
    values = ((where, part, key) for where, part in sections.items() for key in measurable(type(part)))
    missing = sorted({f"{where}.{key}" for where, part, key in values if getattr(part, key)} - set(found.sources))
    assert not missing, f"no source is given for {', '.join(missing)}"
    short = sorted(key for key, source in found.sources.items() if len(source.text) < LEAST)
    assert not short, f"the source is too short to find the value for {', '.join(short)}"
    again = parse(dumps(found).encode(), "written and read back")
    for item in fields(Platform):
        assert getattr(again, item.name) == getattr(found, item.name), f"{item.name} is another one when read back"
    assert simulated_caches(found), "no cache can be simulated"
    assert not found.events or found.events in events.names(), f"no table of events is called {found.events!r}"
