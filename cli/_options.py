"""Options of the verbs: each verb's are in the TOML file next to its module, in the order of its help.

A table is one option or argument, with the words of ``argparse.add_argument`` and these: ``short`` is its letter,
``group`` the group of the help that it stands in, ``type`` a name of :data:`TYPES` or one that the verb itself reads,
``repeat`` says that it may be repeated, each time with one of its ``values`` or with ``lists`` of them, and ``include``
names a file whose options stand in its place. A ``usage`` before the tables is the line that the help begins with.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from ranksight.cli._parser import Parser
from ranksight.core.errors import UsageError
from ranksight.core.units import parse_size

Type = Callable[[str], Any]
ACTIONS: Mapping[str, Mapping[str, Any]] = {
    "switch": {"action": argparse.BooleanOptionalAction, "default": False},
    "values": {"action": "append", "default": []},
    "lists": {"action": "extend", "default": [], "type": lambda given: [each for each in given.split(",") if each]},
}


def _probability(name: str, default: float | None) -> Type:
    def probability(text: str) -> float:
        level = float(text)
        if not 0 < level < 1:
            remedy = f"give a number between 0 and 1, such as {default or 0.9:g}"
            raise UsageError(f"{name} {level:g} is not a probability", remedy)
        return level

    return probability


def _percentage(name: str, _: object) -> Type:
    def percentage(text: str) -> float:
        value = float(text)
        if not 0 <= value < 1e6:
            raise UsageError(f"{name} {value:g} is not a percentage", "give a number from 0")
        return value

    return percentage


TYPES: Mapping[str, Type] = {"path": Path, "int": int, "float": float, "size": parse_size}
CHECKED: Mapping[str, Callable[[str, Any], Type]] = {"probability": _probability, "percentage": _percentage}
"""Types whose errors name the option, made from it and its default."""


def declare(parser: Parser, verb: str, own: Mapping[str, Type], only: Collection[str] = ()) -> None:
    """Declare the options of a verb, by the name of its module.

    `own`: what the verb reads itself, by the name of its type. `only`: these options, all when empty.
    """
    groups: dict[str, argparse._ActionsContainer] = {"": parser}
    for name, how in _tables(verb):
        if name == "usage":
            parser.usage = how
        elif not only or name in only:
            title = how.pop("group", "")
            if title not in groups:
                groups[title] = parser.add_argument_group(title)
            groups[title].add_argument(*filter(None, (how.pop("short", ""), name)), **_settings(name, how, own))


def _tables(file: str) -> Iterator[tuple[str, Any]]:
    """The entries of a file, with those of the files that it includes in their places."""
    text = Path(__file__).with_name(f"{file}.toml").read_text(encoding="utf-8")
    for name, how in tomllib.loads(text).items():
        if "include" in how:
            within = {"group": how.get("group", "")}
            yield from ((each, within | settings) for each, settings in _tables(how["include"]))
        else:
            yield name, how


def _settings(name: str, how: dict[str, Any], own: Mapping[str, Type]) -> dict[str, Any]:
    """What argparse is given for one option."""
    kind = how.pop("type", None)
    if kind in CHECKED:
        how["type"] = CHECKED[kind](name, how.get("default"))
    elif kind is not None:
        how["type"] = own[kind] if kind in own else TYPES[kind]
    if "repeat" in how:
        said, default, rest = how["help"].partition(" (default")
        how["help"] = f"{said}; may be repeated{default}{rest}"
    if isinstance(how.get("metavar"), list):
        how["metavar"] = tuple(how["metavar"])
    kind = how.pop("repeat", how.get("action"))
    return {**how, **ACTIONS.get(kind, {})}
