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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from ranksight.analysis.expectations import grammar
from ranksight.analysis.expectations.inequality import Inequality, inequality
from ranksight.core.errors import InputError
from ranksight.core.formula import FormulaError
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
    """A parsed file on its way into a study."""

    def __init__(self, text: str, source: str, content: Mapping[str, Any]) -> None:
        self.text, self.source, self.content = text, source, content
        self.known(content, TABLES, "table")
        for name in content:
            self.mapping(content, name)
        symbols = self.mapping(content, "parameters")
        self.symbols = {name: self.string(symbols, name, "parameters") for name in symbols}

    def study(self) -> Study:
        """Everything, checked as far as the file alone allows."""
        search, measurement = (self.mapping(self.content, name) for name in ("search", "measurement"))
        self.known(search, ("deviation", "depth", "least_r2", "least_settings", "upper", "terms"), "entry of [search]")
        self.known(measurement, ("ranks", "repetitions"), "entry of [measurement]")
        limit = self.growth(search, "deviation", "search") if "deviation" in search else None
        if limit is not None:
            self.rising(limit, self.place("search", "deviation", search["deviation"]))
        rules = self.mapping(self.content, "rules")
        litmus = self.mapping(self.content, "litmus")
        study = Study(
            tuple(self.expectations(limit)),
            tuple(rule for metric in rules for rule in self.rules(rules, metric)),
            {metric: self.string(litmus, metric, "litmus") for metric in litmus},
            {name: self.number(self.mapping(self.content, "hold"), name) for name in self.content.get("hold", ())},
            self.string(measurement, "ranks", "measurement") if "ranks" in measurement else None,
            self.string(measurement, "repetitions", "measurement") if "repetitions" in measurement else None,
            {
                self.symbols.get(name, name): found
                for name, found in self.rulers(self.mapping(search, "terms", "search."))
            },
            int(self.between(search, "depth", DEPTH, 0, 5)),
            self.between(search, "least_r2", LEAST_R2, 0.0, 1.0),
            int(self.between(search, "least_settings", LEAST_SETTINGS, 3, 100)),
            self.truth(search, "upper"),
            self.symbols,
            self.source,
        )
        if not study.expectations and not study.rules:
            raise InputError(
                f"{self.source} states no expectation and no rule", 'write [expect.time] and FUNCTION = "O(log p)"'
            )
        return study

    def expectations(self, limit: Growth | None) -> list[Expectation]:
        """The tables [expect.METRIC]."""
        found = []
        expect = self.mapping(self.content, "expect")
        for metric in expect:
            entries = self.mapping(expect, metric, "expect.")
            table = f"expect.{metric}"
            for function, value in entries.items():
                if isinstance(value, dict):
                    self.known(value, ("growth", "deviation"), f"entry of {function}")
                    if "growth" not in value:
                        raise InputError(f"{self.at(table, function)}: {function} states no growth")
                    growth, text = self.growth(value, "growth", table, function), str(value["growth"])
                    own = self.growth(value, "deviation", table, function) if "deviation" in value else limit
                    if "deviation" in value and own is not None:
                        self.rising(own, self.place(table, function, value["deviation"]))
                else:
                    growth, own, text = self.growth(entries, function, table), limit, str(value)
                found.append(Expectation(function, metric, growth, own, self.place(table, function, text)))
        return found

    def rules(self, entries: Mapping[str, Any], metric: str) -> list[Rule]:
        """The rules of one metric."""
        given = entries[metric]
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise InputError(f"{self.at('rules', metric)}: rules are a list of texts", 'write ["A <= B + C"]')
        return [
            Rule(metric, self.parsed(inequality, text, "rules", metric), self.place("rules", metric, text))
            for text in texts
        ]

    def rulers(self, terms: Mapping[str, Any]) -> list[tuple[str, Ruler]]:
        """The tables [search.terms.PARAMETER]."""
        found = []
        for name in terms:
            entries = self.mapping(terms, name, "search.terms.")
            table = f"search.terms.{name}"
            self.known(entries, ("powers", "logs", "rates"), f"entry of [{table}]")
            none = (Fraction(0),)
            powers, logs, rates = (
                self.fractions(entries[key], table, key) if key in entries else none
                for key in ("powers", "logs", "rates")
            )
            found.append((name, Ruler(powers, logs, rates)))
        return found

    def fractions(self, given: Any, table: str, key: str) -> tuple[Fraction, ...]:
        """A list of exponents, numbers or fractions as text."""
        try:
            values = tuple(Fraction(str(item)).limit_denominator(840) for item in given)
        except (TypeError, ValueError, ZeroDivisionError):
            values = ()
        if not values or len(values) > 200 or any(abs(value) > grammar.LARGEST for value in values):
            raise InputError(
                f"{self.at(table, key)}: {key} is not a list of exponents", 'write it like ["0", "1/4", "1/3", 0.5]'
            )
        return values

    # ---- values -----------------------------------------------------------------------------------------------------

    def growth(self, entries: Mapping[str, Any], key: str, table: str, owner: str | None = None) -> Growth:
        text = entries[key]
        if not isinstance(text, str):
            raise InputError(
                f"{self.at(table, owner or key)}: {text!r} is not an expectation", 'write it like "O(p^0.5 log p)"'
            )
        return self.parsed(grammar.growth, text, table, owner or key).renamed(self.symbols)

    def parsed(self, read: Callable[[str], T], text: str, table: str, key: str) -> T:
        try:
            return read(text)
        except FormulaError as error:
            line, column = locate(self.text, table, key, text, error.at)
            raise InputError(f"{self.source}:{line}:{column}: {error.plain}", error.remedy) from error

    def rising(self, limit: Growth, place: str) -> None:
        if any(order < NONE for _, order in limit.orders):
            raise InputError(f"{place}: the deviation limit {limit} falls", "a limit is O(1) or grows")

    def place(self, table: str, key: str, value: Any) -> str:
        line, column = locate(self.text, table, key, str(value))
        return f"{self.source}:{line}:{column}"

    def at(self, table: str, key: str) -> str:
        line, _ = locate(self.text, table, key, "\0")
        return f"{self.source}:{line}"

    def mapping(self, entries: Mapping[str, Any], name: str, inside: str = "") -> Mapping[str, Any]:
        found = entries.get(name, {})
        if not isinstance(found, dict):
            remedy = f"write [{inside}{name}] above its entries"
            raise InputError(f"{self.source}: {inside}{name} is not a table", remedy)
        return found

    def string(self, entries: Mapping[str, Any], key: str, table: str) -> str:
        if not isinstance(entries[key], str) or not entries[key]:
            raise InputError(f"{self.at(table, key)}: {key} is not text", f'write {key} = "..."')
        return str(entries[key])

    def number(self, entries: Mapping[str, Any], key: str) -> float:
        value = entries[key]
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value - value != 0:
            raise InputError(f"{self.at('hold', key)}: {key} is not a number", f"write {key} = 32")
        return float(value)

    def between(self, entries: Mapping[str, Any], key: str, default: float, low: float, high: float) -> float:
        value = entries.get(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            raise InputError(f"{self.at('search', key)}: {key} is {value!r}", f"give {low:g} to {high:g}")
        return float(value)

    def truth(self, entries: Mapping[str, Any], key: str) -> bool:
        value = entries.get(key, False)
        if not isinstance(value, bool):
            raise InputError(f"{self.at('search', key)}: {key} is {value!r}", "give true or false")
        return value

    def known(self, entries: Iterable[str], names: tuple[str, ...], what: str) -> None:
        for name in entries:
            if name not in names:
                near = difflib.get_close_matches(name, names, n=3) or names
                raise InputError(f"{self.source}: no {what} is named {name!r}", f"nearest: {', '.join(near)}")


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
    found, here = [], ""
    wanted = table.replace('"', "").replace("'", "")
    for at, line in enumerate(lines):
        if header := _HEADER.match(line):
            here = re.sub(r"\s*\.\s*", ".", header[1].strip()).replace('"', "").replace("'", "")
        elif here == wanted:
            found.append(at)
    return found
