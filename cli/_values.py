"""Values of parameters as command lines give them: ``1,2,4``, ``1-8``, ``16..64:16``, ``1..1024*2``, ``2^10``."""

from __future__ import annotations

import argparse
import itertools
import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ranksight.cli._lines import shell_line
from ranksight.core.errors import UsageError, meant

if TYPE_CHECKING:
    from ranksight.cli._parser import Parser

MOST = 10_000  # values that one list may hold
_END = r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?:\^\d+)?"
_RANGE = re.compile(rf"({_END})\.\.({_END})(?:([:*])({_END}))?")
_SPAN = re.compile(r"(\d+)-(\d+)")
WRITE = "write numbers and ranges: 1,2,4 or 1-8 or 16..64:16 (steps of 16) or 1..1024*2 (doubling)"


def values(text: str) -> list[float]:
    """The numbers that `text` lists, in its order, each once.

    Parts are separated by commas: a number, ``2^10``, ``1-8`` and ``1..8`` (whole numbers from the first to the last),
    ``16..64:16`` (in steps) and ``1..1024*2`` (each so many times the one before). Raises ValueError, naming the part
    that cannot be read, without a remedy; :data:`WRITE` is one.
    """
    found: dict[float, None] = {}
    for part in text.split(","):
        found.update(dict.fromkeys(_part(part.strip(), text)))
        if len(found) > MOST:
            raise ValueError(f"{text[:60]!r} lists more than {MOST} values")
    return list(found)


def _part(part: str, text: str) -> list[float]:
    inside = f"{part!r} in {text!r}" if part != text else repr(part)
    if (span := _SPAN.fullmatch(part)) is not None:
        first, last, how, step = float(span[1]), float(span[2]), ":", 1.0
    elif (given := _RANGE.fullmatch(part)) is not None:
        first, last = _number(given[1]), _number(given[2])
        how, step = given[3] or ":", _number(given[4]) if given[4] else 1.0
    elif re.fullmatch(r"0\d+", part):
        raise ValueError(f"{inside} begins with 0: a thousand is written 1000")
    elif re.fullmatch(_END, part) or part.lstrip("+-").lower() in ("nan", "inf", "infinity"):
        if not math.isfinite(number := _number(part)) or abs(number) >= 1e300:
            raise ValueError(f"{inside} is not finite")
        return [number]
    elif re.search(r"\^\(?[a-z]", part):
        raise ValueError(f"{inside} has no end: write 1..1024*2")
    else:
        raise ValueError(f"{inside} is not a number")
    if not first <= last or (step <= 0 if how == ":" else step <= 1 or first <= 0):
        raise ValueError(f"{inside} rises nowhere")
    # Half a step more than the end, as sums and products are rounded.
    count = (last - first) / step + 1e-9 if how == ":" else math.log(last / first) / math.log(step) + 1e-9
    if count > MOST:
        raise ValueError(f"{inside} lists more than {MOST} values")
    steps = range(int(count) + 1)
    made = [first + step * n for n in steps] if how == ":" else [first * step**n for n in steps]
    return [float(f"{value:.12g}") for value in made]


def _number(text: str) -> float:
    base, _, power = text.partition("^")
    try:
        return float(base) ** float(power) if power else float(base)
    except OverflowError:
        return math.inf


def parse(parser: Parser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the line; every other option ``--NAME VALUE[,VALUE]``, wherever it is, sets a parameter of the model.

    Raises UsageError when an option lacks its value or the value is not a list of numbers.
    """
    own, others = parser.parted(arguments)
    _listed(parser, arguments, others)
    asked: dict[str, list[float]] = {}
    for option, text in others:
        name = option[2:]
        if text is None:
            raise UsageError(
                f"{parser.prog}: {option} needs a value",
                meant(option, parser.options()) or f"such as {option} 1024 or {option} 1024,2048",
            )
        if name in asked:
            raise UsageError(f"{parser.prog}: {option} is given twice", f"give several values as {option} A,B")
        asked[name] = _numbers(parser.prog, name, text, parser.options())
    args = parser.parse_args(own)
    args.asked = asked
    return args


def _listed(parser: Parser, arguments: Sequence[str], others: Iterable[tuple[str, str | None]]) -> None:
    """Raise UsageError where numbers follow the value of a parameter as words of their own, as in ``--ranks 32 64``."""
    for option, text in others:
        starts = [
            at + (2 if word == option else 1) for at, word in enumerate(arguments) if word.split("=")[0] == option
        ]
        numbers = re.compile(rf"{_END},?|,")
        if words := list(itertools.takewhile(numbers.fullmatch, arguments[starts[0] :] if text else ())):
            line = ",".join(word.strip(",") for word in (text or "", *words) if word.strip(","))
            raise UsageError(f"{parser.prog}: {option} takes one list without blanks", f"write {option} {line}")


def _numbers(prog: str, name: str, text: str, known: Iterable[str]) -> list[float]:
    try:
        numbers = values(text)
    except ValueError as error:
        if name == "platform":  # the most natural place to look for it, and no parameter has a name for its value
            raise UsageError(
                f"{prog}: --platform is given to fit; the model then knows the machine",
                shell_line("ranksight", "fit", "EXPERIMENT", "--platform", text),
            ) from None
        if name in ("ranks", "size"):
            raise UsageError(f"{prog}: --{name} {text!r} is not a list of numbers: {error}", WRITE) from None
        raise UsageError(
            f"{prog}: --{name} is not an option, and for a parameter {text!r} is not a list of numbers",
            f"{meant(f'--{name}', known)} '{prog} --help' lists the options; {WRITE}",
        ) from None
    if not all(number - number == 0 for number in numbers):
        raise UsageError(f"{prog}: --{name} {text!r} is not finite", f"write --{name} 1024 or --{name} 1024,2048")
    return numbers
