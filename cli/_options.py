"""What argparse is given for the options of a verb (:mod:`ranksight.cli.options`): their types and actions."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranksight.cli.options import help_of, names
from ranksight.core.errors import UsageError
from ranksight.core.units import parse_size

if TYPE_CHECKING:
    from ranksight.cli._parser import Parser
    from ranksight.cli.options import Options

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


def declare(parser: Parser, table: Options, own: Mapping[str, Type], only: Collection[str] = ()) -> None:
    """Declare the options of a verb.

    `own`: what the verb reads itself, by the name of its type. `only`: these options, all when empty.
    """
    groups: dict[str, argparse._ActionsContainer] = {"": parser}
    for name, how in table.items():
        if not only or name in only:
            title = how.get("group", "")
            if title not in groups:
                groups[title] = parser.add_argument_group(title)
            groups[title].add_argument(*names(name, how), **_settings(name, how, own))


def _settings(name: str, how: Mapping[str, Any], own: Mapping[str, Type]) -> dict[str, Any]:
    """What argparse is given for one option."""
    given = {key: value for key, value in how.items() if key not in ("group", "short", "repeat", "type")}
    given["help"] = help_of(how).replace("%", "%%")
    kind = how.get("type", "")
    if kind in CHECKED:
        given["type"] = CHECKED[kind](name, how.get("default"))
    elif kind:
        given["type"] = own[kind] if kind in own else TYPES[kind]
    return {**given, **ACTIONS.get(how.get("repeat", how.get("action", "")), {})}
