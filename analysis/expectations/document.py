"""The file of expectations: what is expected of which function and metric, in TOML.

::

    [parameters]            # short names of the experiment's parameters; p is ranks where nothing else is p
    n = "size"

    [hold]                  # values at which parameters are held that no expectation speaks of
    size = 32

    [measurement]           # how values are reduced; as 'ranksight fit' does where it is left out
    ranks = "max"
    repetitions = "q1"

    [search]
    deviation = "O(p^0.5)"  # limit of all expectations that state none (default: each one's own, halved)
    depth = 2               # times that intervals of the generated search space are halved
    least_r2 = 0.5          # adjusted R2 below which a model gets no verdict
    least_settings = 5      # values of a parameter without which there is no verdict
    upper = true            # expectations are upper bounds: slower growth violates none
    [search.terms.p]        # terms of one's own, in place of the generated ones
    powers = ["0", "1/4", "1/3", "1/2"]
    logs = ["0", "1"]

    [expect.time]           # a metric
    Barrier = "O(log p)"
    Alltoall = { growth = "O(p log p)", deviation = "O(p^0.5)" }
    "solve_*" = "O(n^3 / p)"

    [rules]                 # by metric
    time = ["Allreduce <= Reduce + Bcast"]

    [litmus]                # reference implementation, by metric
    time = "Bcast_tree"
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from ranksight.analysis.expectations import grammar
from ranksight.analysis.expectations.inequality import Inequality, inequality
from ranksight.core.errors import InputError
from ranksight.core.formula import FormulaError
from ranksight.core.records import dataclass
from ranksight.core.toml import decode, read
from ranksight.model.search.growth import NONE, Growth
from ranksight.model.spaces.rulers import DEPTH, Ruler

T = TypeVar("T")
_HEADER = re.compile(r"^\s*\[{1,2}([^\[\]]+)\]{1,2}\s*(?:#.*)?$")
LEAST_R2 = 0.5
"""Adjusted R2 below which there is no verdict: the model leaves more of the variance unexplained than it explains."""
LEAST_SETTINGS = 5
"""Values of a parameter that a verdict needs (Shudler et al. 2015, section 2.3)."""
TABLES = ("parameters", "hold", "measurement", "search", "expect", "rules", "litmus")
WORDS = {"int": "a whole number", "float": "a number", "str": "text", "bool": "true or false"}
Name = Annotated[str, Meta(min_length=1)]
MEASUREMENT = {"ranks": Name, "repetitions": Name}
SEARCH = {
    "deviation": str,
    "depth": Annotated[int, Meta(ge=0, le=5)],
    "least_r2": Annotated[float, Meta(ge=0.0, le=1.0)],
    "least_settings": Annotated[int, Meta(ge=3, le=100)],
    "upper": bool,
    "terms": dict[str, dict[str, Any]],
}
"""Entries of [measurement] and [search], and what each has to be."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What one function is expected to do."""

    function: str
    metric: str
    """The function's name, or a pattern with ``*`` and ``?`` for all functions that have no expectation of their
    own."""
    growth: Growth  # in the experiment's parameters
    limit: Growth | None = None  # the deviation limit stated; None where the default stands
    place: str = ""  # file, line and column, for messages


@dataclass(frozen=True, slots=True)
class Rule:
    """An inequality between functions in one metric, and where it stands."""

    metric: str
    inequality: Inequality
    place: str = ""


@dataclass(frozen=True)
class Study:
    """All that a file of expectations says."""

    expectations: tuple[Expectation, ...]
    rules: tuple[Rule, ...] = ()
    litmus: Mapping[str, str] = field(default_factory=dict)
    """For a metric the function that is its reference implementation."""
    hold: Mapping[str, float] = field(default_factory=dict)
    over_ranks: str | None = None
    over_repetitions: str | None = None
    rulers: Mapping[str, Ruler] = field(default_factory=dict)
    depth: int = DEPTH
    least_r2: float = LEAST_R2
    least_settings: int = LEAST_SETTINGS
    upper: bool = False  # only growth beyond the deviation limit violates an expectation; slower growth is accepted
    symbols: Mapping[str, str] = field(default_factory=dict)  # short name to parameter
    source: str = ""  # the file

    @property
    def how(self) -> str:
        """How repetitions become one value."""
        return self.over_repetitions or "auto"

    @property
    def short(self) -> dict[str, str]:
        """Parameter to its short name."""
        return {parameter: symbol for symbol, parameter in self.symbols.items()}

    def with_symbol(self, symbol: str, parameter: str) -> Study:
        """The same with one more short name for a parameter."""
        names = {symbol: parameter}
        expectations = tuple(
            replace(
                each, growth=each.growth.renamed(names), limit=None if each.limit is None else each.limit.renamed(names)
            )
            for each in self.expectations
        )
        rulers = {names.get(name, name): each for name, each in self.rulers.items()}
        return replace(self, expectations=expectations, rulers=rulers, symbols={**self.symbols, **names})


def read_study(path: Path) -> Study:
    """Read a file of expectations.

    Raises InputError, naming file, line and column of what cannot be read or contradicts itself.
    """
    content = read(path)
    tables = decode(content, str(path), "correct it; docs/expectations.md has an example")
    return _Document(content.decode("utf-8"), str(path), tables).study()


class _Document:
    """A parsed file on its way into a study, checked as far as the file alone allows."""

    def __init__(self, text: str, source: str, content: Mapping[str, Any]) -> None:
        self.text, self.source, self.content = text, source, content
        self.known(content, TABLES, "table")
        self.symbols = self.table("parameters", Name)

    def study(self) -> Study:
        search, measurement = self.table("search", SEARCH), self.table("measurement", MEASUREMENT)
        limit = self.limit(search["deviation"], "search", "deviation") if "deviation" in search else None
        terms = search.get("terms", {})
        study = Study(
            expectations=tuple(self.expectations(limit)),
            rules=tuple(self.rules()),
            litmus=self.table("litmus", Name),
            hold=self.table("hold", float),
            over_ranks=measurement.get("ranks"),
            over_repetitions=measurement.get("repetitions"),
            rulers={self.symbols.get(name, name): self.ruler(name, terms[name]) for name in terms},
            symbols=self.symbols,
            source=self.source,
            **{name: value for name, value in search.items() if name not in ("deviation", "terms")},
        )
        if not study.expectations and not study.rules:
            raise InputError(
                f"{self.source} states no expectation and no rule", 'write [expect.time] and FUNCTION = "O(log p)"'
            )
        return study

    def expectations(self, limit: Growth | None) -> Iterator[Expectation]:
        """The tables [expect.METRIC]; `limit` where an entry states none."""
        for metric, entries in self.table("expect", dict[str, Any]).items():
            table = f"expect.{metric}"
            for function, value in entries.items():
                entry = value if isinstance(value, dict) else {"growth": value}
                self.known(entry, ("growth", "deviation"), f"entry of {function}")
                text = entry.get("growth")
                if not isinstance(text, str):
                    raise InputError(
                        f"{self.at(table, function)}: {value!r} is not an expectation", 'write it like "O(p^0.5 log p)"'
                    )
                growth = self.parsed(grammar.growth, text, table, function).renamed(self.symbols)
                deviation = self.limit(entry["deviation"], table, function) if "deviation" in entry else limit
                yield Expectation(function, metric, growth, deviation, self.place(table, function, text))

    def limit(self, stated: Any, table: str, key: str) -> Growth:
        """A deviation limit."""
        text = self.read(stated, str, table, key)
        limit = self.parsed(grammar.growth, text, table, key).renamed(self.symbols)
        if any(order < NONE for _, order in limit.orders):
            place = self.place(table, key, text)
            raise InputError(f"{place}: the deviation limit {limit} falls", "a limit is O(1) or grows")
        return limit

    def rules(self) -> Iterator[Rule]:
        """The rules of every metric."""
        for metric, texts in self.table("rules", str | list[str]).items():
            for text in [texts] if isinstance(texts, str) else texts:
                rule = self.parsed(inequality, text, "rules", metric)
                yield Rule(metric, rule, self.place("rules", metric, text))

    def ruler(self, name: str, entries: Mapping[str, Any]) -> Ruler:
        """The terms of [search.terms.PARAMETER]."""
        table, keys = f"search.terms.{name}", ("powers", "logs", "rates")
        self.known(entries, keys, f"entry of [{table}]")
        powers, logs, rates = (self.exponents(entries.get(key, [0]), table, key) for key in keys)
        return Ruler(powers, logs, rates)

    def exponents(self, stated: Any, table: str, key: str) -> tuple[Fraction, ...]:
        """A list of exponents, numbers or fractions as text."""
        try:
            values = tuple(Fraction(str(item)).limit_denominator(840) for item in stated)
        except (TypeError, ValueError, ZeroDivisionError):
            values = ()
        if not 0 < len(values) <= 200 or any(abs(value) > grammar.LARGEST for value in values):
            raise InputError(
                f"{self.at(table, key)}: {key} is not a list of exponents", 'write it like ["0", "1/4", "1/3", 0.5]'
            )
        return values

    def table(self, name: str, kinds: Any) -> dict[str, Any]:
        """The entries of a table: of one kind, or those known with the kind of each."""
        entries = self.content.get(name, {})
        if not isinstance(entries, dict):
            raise InputError(f"{self.source}: {name} is not a table", f"write [{name}] above its entries")
        if isinstance(kinds, dict):
            self.known(entries, tuple(kinds), f"entry of [{name}]")
        kind_of = kinds.get if isinstance(kinds, dict) else lambda key: kinds
        return {key: self.read(value, kind_of(key), name, key) for key, value in entries.items()}

    def read(self, value: Any, kind: Any, table: str, key: str) -> Any:
        """A value as what it has to be."""
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            wanted = str(error).replace("`", "").partition(" - at ")[0]
            raise InputError(
                f"{self.at(table, key)}: {key} is {value!r:.80}", wanted[:1].lower() + wanted[1:]
            ) from error

    def parsed(self, read: Callable[[str], T], text: str, table: str, key: str) -> T:
        try:
            return read(text)
        except FormulaError as error:
            line, column = locate(self.text, table, key, text, error.at)
            raise InputError(f"{self.source}:{line}:{column}: {error.plain}", error.remedy) from error

    def place(self, table: str, key: str, value: Any) -> str:
        line, column = locate(self.text, table, key, str(value))
        return f"{self.source}:{line}:{column}"

    def at(self, table: str, key: str) -> str:
        line, _ = locate(self.text, table, key, "\0")
        return f"{self.source}:{line}"

    def known(self, entries: Iterable[str], names: tuple[str, ...], what: str) -> None:
        for name in entries:
            if name not in names:
                raise InputError(f"{self.source}: no {what} is named {name!r}", nearest(name, names))


def nearest(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """What to offer in place of an unknown name."""
    listed = tuple(dict.fromkeys(known))
    folded = {other.casefold(): other for other in listed}
    near = [folded[key] for key in difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.5)]
    if near:
        return f"nearest: {', '.join(near)}"
    return f"known: {', '.join(listed[:12])}{', ...' if len(listed) > 12 else ''}" if listed else otherwise


def locate(text: str, table: str, key: str, value: str, offset: int = 0) -> tuple[int, int]:
    """Line and column (from 1) of a character of a string value.

    The string is looked for below its table's header, first behind its key, then anywhere in the table, then anywhere;
    a string written with escapes is not found and gives the line of its key, or line 1.

    `text`: the file. `table`, `key`: table (``expect.time``) and key of the value. `offset`: of the character within
    the value.
    """
    lines = text.split("\n")
    inside = _lines_of(lines, table)
    assignment = re.compile(rf"""^\s*(["']?){re.escape(key)}\1\s*=""")
    keyed = [at for at in inside if assignment.match(lines[at])]
    for rows in (keyed, inside, range(len(lines))):
        for at in rows:
            for quote in ('"', "'"):
                column = lines[at].find(f"{quote}{value}{quote}")
                if column >= 0:
                    return at + 1, column + 2 + offset
    return (keyed[0] + 1 if keyed else 1), 1


def _lines_of(lines: list[str], table: str) -> list[int]:
    numbers, heading = [], ""
    wanted = table.replace('"', "").replace("'", "")
    for at, line in enumerate(lines):
        if header := _HEADER.match(line):
            heading = re.sub(r"(?<!\s)\s*+\.\s*", ".", header[1].strip()).replace('"', "").replace("'", "")
        elif heading == wanted:
            numbers.append(at)
    return numbers
