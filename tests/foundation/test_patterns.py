"""No regular expression of the package takes more steps than its text grows."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from backtracking import Matcher, grows

import ranksight

ROOT = Path(ranksight.__file__).parent
SKIPPED = ("tests", "benchmarks", "docs", "examples", "__main__", "noxfile")
ANYWHERE = frozenset({"search", "finditer", "findall", "sub", "subn", "split"})
"""Functions that try a pattern at every character."""
FUNCTIONS = ANYWHERE | {"match", "fullmatch", "compile"}


def modules() -> Iterator[tuple[ModuleType, ast.Module]]:
    for info in pkgutil.walk_packages([str(ROOT)], "ranksight."):
        if info.name.split(".")[1] not in SKIPPED:
            module = importlib.import_module(info.name)
            yield module, ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))


def held(value: Any, depth: int = 0) -> Iterator[re.Pattern[Any]]:
    """Compiled patterns in a value, and in what it holds."""
    if isinstance(value, re.Pattern):
        yield value
    elif depth < 4:
        inside: list[Any] = []
        if isinstance(value, dict):
            inside = [*value, *value.values()]
        elif isinstance(value, (list, tuple, set, frozenset)):
            inside = list(value)
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            inside = [getattr(value, field.name, None) for field in dataclasses.fields(value)]
        elif isinstance(value, type) and value.__module__.startswith("ranksight."):
            inside = list(vars(value).values())
        for each in inside:
            yield from held(each, depth + 1)


def value_of(node: ast.expr | None, module: ModuleType) -> Any:
    """The value of an expression of names and constants of a module; None where it has others."""
    try:
        return None if node is None else eval(compile(ast.Expression(node), "", "eval"), dict(vars(module)))
    except (NameError, AttributeError, TypeError, KeyError, ValueError):
        return None


def written(call: ast.Call, function: ast.Attribute, module: ModuleType) -> re.Pattern[Any] | None:
    """The pattern of a call of a function of ``re``."""
    first = value_of(call.args[0], module) if call.args else None
    flags = next((value_of(each.value, module) for each in call.keywords if each.arg == "flags"), None)
    places = {"compile": 1, "match": 2, "search": 2, "fullmatch": 2}
    if flags is None and len(call.args) > (place := places.get(function.attr, 99)):
        flags = value_of(call.args[place], module)
    return re.compile(first, flags or 0) if isinstance(first, (str, bytes)) else None


def collected() -> dict[tuple[Any, int], tuple[str, set[str]]]:
    """Patterns with flags, where each is, and by which functions it is used."""
    found: dict[tuple[Any, int], tuple[str, set[str]]] = {}
    unclear: list[tuple[tuple[Any, int], set[str]]] = []
    for module, tree in modules():
        used: set[str] = set()
        for node in ast.walk(tree):
            function = node.func if isinstance(node, ast.Call) else node
            if not isinstance(function, ast.Attribute) or function.attr not in FUNCTIONS:
                continue
            used.add(function.attr)
            table = function.value.value if isinstance(function.value, ast.Subscript) else function.value
            on = value_of(table, module)
            for pattern in held(written(node, function, module) if on is re and isinstance(node, ast.Call) else on):
                place = f"{module.__name__}:{function.lineno}"
                found.setdefault((pattern.pattern, pattern.flags), (place, set()))[1].add(function.attr)
        for name, value in list(vars(module).items()):
            if not name.startswith("__"):
                unclear += [((each.pattern, each.flags), used) for each in held(value)]
                for each in held(value):
                    found.setdefault((each.pattern, each.flags), (f"{module.__name__}.{name}", set()))
    for key, used in unclear:
        if not found[key][1] - {"compile"}:  # in a table, and used by whatever its module uses
            found[key][1].update(used)
    return found


def test_no_pattern_takes_more_steps_than_its_text_grows() -> None:
    every = collected()
    assert len(every) > 250
    slow = [
        f"{place}, {how}: {pattern!r:.100}: {what}"
        for (pattern, flags), (place, used) in sorted(every.items(), key=lambda item: item[1][0])
        for how in sorted({"finditer" if each in ANYWHERE else each for each in used - {"compile"}})
        if (what := grows(re.compile(pattern, flags), how))
    ]
    assert slow == []


@pytest.mark.parametrize(
    ("pattern", "how", "found"),
    [
        (r"\d+x", "match", False),
        (r"\d+x", "finditer", True),
        (r"(?<!\d)\d+x", "finditer", False),
        (r"\s+$", "finditer", True),
        (r"\s*\s*x", "match", True),
        (r"\s+\S+\s+x", "match", False),
        (r"(a+)+b", "match", True),
        (r"(?:a|ab)*c", "match", False),
        (r"(?:a|a)*c", "match", True),
        (r"(?:a|a)*+c", "match", False),
        (r".*?,.*?,.*;", "match", True),
        (r"[^,]*,[^,]*,[^;]*;", "match", False),
        (r"a{1,500}b", "finditer", False),
        (r"\s*\w*\s*", "match", False),
        (r"\w*\s*\w*", "fullmatch", True),
        (r"(?:\.a(?:\.\d+)*)+$", "match", False),
        (rb"(\w+\s?)*=", "match", True),
    ],
)
def test_growth_is_seen(pattern: str | bytes, how: str, found: bool) -> None:
    assert bool(grows(re.compile(pattern), how)) is found


@pytest.mark.parametrize("text", ["", "ab", "abab", "aab b", "a,b,c", "x=1;y", "1.5e3", "a" * 7])
@pytest.mark.parametrize(
    "pattern",
    [
        r"(a|ab)(?:b*)",
        r"\s*(\w+?)\s*=",
        r"(?P<q>a*)b(?P=q)",
        r"(?<!a)b",
        r"a{2,3}?b?",
        r"^.*,(?!b)",
        r"(?>a+)b|\d+\.\d*$",
    ],
)
def test_the_counting_matcher_matches_as_re_does(pattern: str, text: str) -> None:
    matcher = Matcher(re.compile(pattern))
    for at in range(len(text) + 1):
        matcher.text, matcher.groups = text, {}
        found = re.compile(pattern).match(text, at)
        assert matcher.match(at, lambda place: place) == (found.end() if found else -1)
