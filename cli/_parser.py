"""The parser of every verb: its own help, usage errors of one line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

from ranksight.cli._help import page
from ranksight.cli._lines import shell_line
from ranksight.core.errors import UsageError, meant

TYPE_CHECKING = False  # typing itself takes a tenth of the time that Python needs to start
if TYPE_CHECKING:
    from typing import Any, NoReturn

PROJECT_FILE = "ranksight.toml"
"""What completes lines in its folder (:mod:`ranksight.cli._project`)."""
UNKNOWN = "unrecognized arguments: "  # how argparse begins to name what it does not know


class Parser(argparse.ArgumentParser):
    """An argument parser whose usage errors are one line with the way to help; it guesses no option from a part."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{"allow_abbrev": False, **settings})

    def format_help(self) -> str:
        """The help of the verb, which is the last word of ``prog``."""
        return page(self.prog.split()[-1])

    def options(self) -> list[str]:
        """All options by their long names."""
        return [name for action in self._actions for name in action.option_strings if name.startswith("--")]

    def names_of(self, option: str) -> set[str]:
        """All names of an option; its own where the parser does not know it."""
        return next((set(each.option_strings) for each in self._actions if option in each.option_strings), {option})

    def first(self, words: Sequence[str]) -> int:
        """Position of the first word that is neither an option nor the value of one; their number where all are.

        What no option is named after is a parameter, which takes a list.
        """
        takes = {option: action for action in self._actions for option in action.option_strings}
        at = 0
        while at < len(words) and words[at].startswith("-"):
            word, equals, _ = words[at].partition("=")
            action = takes.get(word)
            count = 1 if action is None or action.nargs is None else action.nargs
            at += 1 + (count if isinstance(count, int) and not equals else 0)
        return min(at, len(words))

    def separated(self, words: Sequence[str]) -> tuple[list[str], list[str]]:
        """The words before ``--``, and the command behind it.

        Raises UsageError where there is a command and no ``--`` before it.
        """
        if "--" in words:
            at = words.index("--")
            return list(words[:at]), list(words[at + 1 :])
        if (at := self.first(words)) < len(words):
            line = shell_line(*self.prog.split(), *words[:at], "--", *words[at:])
            raise UsageError(f"{self.prog}: '--' is missing before the command", f"write: {line}")
        return list(words), []

    def parted(self, words: Sequence[str]) -> tuple[list[str], list[tuple[str, str | None]]]:
        """The words of a line without the options that are not declared, and these with their values, in any order.

        The value of such an option is the word behind it; None where that is an option, or the end.
        """
        known, own, others = set(self.options()), list[str](), list[tuple[str, str | None]]()
        rest = iter(enumerate(words, start=1))
        for after, word in rest:
            name, equals, text = word.partition("=")
            if not name.startswith("--") or len(name) < 3 or name in known:
                own.append(word)
            elif equals:
                others.append((name, text))
            elif after < len(words) and not words[after].startswith("--"):
                others.append((name, next(rest)[1]))
            else:
                others.append((name, None))
        return own, others

    def error(self, message: str) -> NoReturn:
        remedy = f"'{self.prog} --help' lists what it takes"
        if message.startswith(UNKNOWN):
            word = message.removeprefix(UNKNOWN).split()[0].partition("=")[0]
            near = f"write -{word};" if re.match("-[a-z]{2}", word) else meant(word, self.options())
            remedy = f"{near} {remedy}".strip()
        elif found := re.fullmatch(r"argument (?:-\w/)?(--\w[\w-]*+): invalid (int|float) value: (.*)", message):
            kind = "a whole number" if found[2] == "int" else "a number"
            message = f"{found[1]} {found[3]} is not {kind}"
            takes = next(each for each in self._actions if found[1] in each.option_strings)
            remedy = f"it takes {takes.metavar}: {takes.help}"
        raise UsageError(f"{self.prog}: {message}", remedy)
