"""Options of the verbs: each verb's are plain values in a module of its name, in the order of its help.

Its docstring is the description of the verb, ``USAGE`` the line that the help begins with, and ``OPTIONS`` has an entry
for each option or argument, with the words of ``argparse.add_argument`` and these: ``short`` is its letter, ``group``
the group of the help that it stands in, ``type`` a name of :data:`ranksight.cli._options.TYPES` or one that the verb
itself reads, and ``repeat`` says that it may be repeated, each time with one of its ``values`` or with ``lists`` of
them. Help is printed from these values alone (:mod:`ranksight.cli._help`): nothing that reads a line is loaded for it.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # typing itself takes a tenth of the time that Python needs to start
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Options = Mapping[str, Mapping[str, Any]]

SHORT = {"--quiet": "-q", "--verbose": "-v", "--force": "-f"}
"""Letters of the options that every verb has under the same name."""
ALL = {
    "--verbose": {"action": "store_true", "help": "log what is read, chosen and written, with times, to standard error"}
}
"""Options of every verb that reads or writes something."""


def grouped(title: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Options that stand in a group of the help."""
    return {name: {**how, "group": title} for name, how in table.items()}


def options(verb: str) -> tuple[str, str, Options]:
    """The description of a verb, its usage, and its options and arguments by name."""
    found = importlib.import_module(f"{__name__}.{verb}_options")
    common = {} if verb == "completion" else ALL
    return (found.__doc__ or "").strip(), found.USAGE, {**found.OPTIONS, **common}


def names(name: str, how: Mapping[str, Any]) -> tuple[str, ...]:
    """All names of an option, its letter first."""
    short = how.get("short", SHORT.get(name, ""))
    return (short, name) if short else (name,)


def help_of(how: Mapping[str, Any]) -> str:
    """What an option or argument is for, in a line."""
    if "repeat" not in how:
        return str(how["help"])
    said, default, rest = how["help"].partition(" (default")
    return f"{said}; may be repeated{default}{rest}"
