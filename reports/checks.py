"""What a check found: the table people read, the rows and the object machines read."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from ranksight.analysis.expectations.checking import Result
from ranksight.analysis.expectations.deviation import Cost
from ranksight.analysis.expectations.judging import Finding
from ranksight.analysis.expectations.rules import Comparison, RuleFinding
from ranksight.core.metrics import metric
from ranksight.core.units import counted, finite, some_of
from ranksight.model.search.growth import Growth
from ranksight.reports.terminal import Block, Cell, Column, Table, Text

COLUMNS = (
    "function",
    "metric",
    "expected",
    "model",
    "formula",
    "adjusted_r2",
    "weight",
    "divergence",
    "limit",
    "match",
    "status",
    "reason",
    "litmus",
    "ranks",
)
"""Columns of the rows, and keys of each function in the object."""
SHOWN = 60  # functions that a table shows; those that matter come first


ORDER = {"none": 0, "insufficient": 1, "slower": 2, "approximate": 3, "total": 4}
"""Verdicts, those that matter most first."""
STYLES = {"none": "red", "insufficient": "yellow", "slower": "yellow", "approximate": "", "total": "green"}


def blocks(result: Result) -> list[Block]:
    """What was expected and found of each function, what that means where they part, the rules, and a summary."""
    short = result.short
    said: list[Block] = [_heading(result, short)]
    # Where nothing was compared a table has no more than what is said below, once for all metrics.
    for name in dict.fromkeys(each.metric for each in result.findings if each.match is not None):
        said += ["", *_functions(result, name, short)]
    said += _explained(result, short)
    for rule in result.rules:
        text = f"rule {rule.rule.inequality.text} ({rule.rule.metric}): {rule_text(rule, short)}"
        said += ["", Text(text, 0, 2, "red" if rule.state == "violated" else "")]
    return [*said, "", summary(result)]


def _heading(result: Result, short: Mapping[str, str]) -> Text:
    parts = []
    for at, name in enumerate(result.parameters):
        values = sorted(set(result.points[:, at].tolist()))
        listed = ", ".join(f"{value:g}" for value in values) if len(values) <= 6 else ""
        listed = listed or f"{values[0]:g} .. {values[-1]:g} ({len(values)} values)"
        symbol = f"{short[name]} = " if short.get(name, name) != name else ""
        parts.append(f"{symbol}{name} {listed}")
    return Text(f"{result.application} over {'; '.join(parts)}", 0, 2, "bold")


def _functions(result: Result, name: str, short: Mapping[str, str]) -> list[Block]:
    found = [each for each in result.findings if each.metric == name]
    shown = found if len(found) <= SHOWN else sorted(found, key=lambda each: ORDER[each.verdict])[:SHOWN]
    rows: list[list[str | Cell]] = []
    for each in shown:
        model = divergence = "-"
        if each.match is not None:
            model, divergence = (_written(one, short) for one in (each.match.found, each.match.divergence))
        rows.append(
            [
                each.function,
                "-" if each.match is None else _written(each.expectation.growth, short),
                model,
                f"{each.adjusted_r2:.2f}" if math.isfinite(each.adjusted_r2) else "-",
                divergence,
                Cell("violated" if each.verdict == "none" else each.verdict, STYLES[each.verdict]),
            ]
        )
    heads = ["expected:word", "model:word/1", "R2/3", "divergence:word/2", "match:word"]
    said: list[Block] = [Table([Column(name, "name"), *heads], rows)]
    if len(shown) < len(found):
        said.append(f"... and {len(found) - len(shown)} more that match; --format csv prints all")
    return said


def _written(growth: Growth, short: Mapping[str, str]) -> str:
    return str(growth.renamed(short))


def _explained(result: Result, short: Mapping[str, str]) -> list[Block]:
    """What findings say beyond their rows, those that say the same together."""
    texts: dict[str, list[Finding]] = {}
    for each in sorted(result.findings, key=lambda each: ORDER[each.verdict]):
        if text := said(each, short):
            texts.setdefault(text, []).append(each)
    blocks: list[Block] = []
    for text, found in list(texts.items())[:SHOWN]:
        functions = list(dict.fromkeys(each.function for each in found))
        metrics = list(dict.fromkeys(each.metric for each in found))
        blocks.append(Text(f"{some_of(functions, SHOWN)} ({some_of(metrics, SHOWN)}): {text}"))
    return ["", *blocks] if blocks else []


def said(each: Finding, short: Mapping[str, str]) -> str:
    """What a finding says beyond its row; empty for a total match."""
    if each.status != "ok" or each.match is None:
        return f"no verdict: {each.reason}"
    if each.match.rank == "total":
        return ""
    speed = "faster" if each.match.faster else "slower"
    within = "within" if each.match.rank == "approximate" else "outside"
    who = f"the {each.ranks} " if each.ranks else ""
    parts = [f"{who}grows {speed} than expected, {within} the limit {_written(each.match.limit, short)}"]
    if each.match.faster:
        parts += _prices(each)
    if each.litmus:
        parts.append(f"suspected: {each.litmus}")
    return "; ".join(parts)


def _prices(each: Finding) -> list[str]:
    unit = metric(each.metric)
    known = [cost for cost in each.costs if not cost.answer]
    parts = [
        f"at {_at(cost.configuration)} {unit.format(cost.value)} ({unit.format(cost.lower)} to "
        f"{unit.format(cost.upper)})"
        + (f", {cost.ratio:.3g} times the {unit.format(cost.expected)} expected" if cost.ratio > 0 else "")
        for cost in known
    ]
    if each.costs and not known:
        parts.append(f"at {_at(each.costs[0].configuration)} not predicted: {each.costs[0].answer}")
    if each.doubled is not None:
        parts.append(f"twice the expected from {_at(each.doubled.configuration)} on")
    return parts


def rule_text(finding: RuleFinding, short: Mapping[str, str]) -> str:
    """What came of a rule, in words."""
    if finding.at:
        worst = max(finding.at, key=lambda each: each.ratio)
        measured = (
            f"violated by measurements at {counted(len(finding.at), 'configuration')}, most at "
            f"{_at(worst.configuration)} ({worst.ratio:.3g} times)"
        )
    else:
        measured = "holds in all measurements" if finding.measured == "holds" else "never measured together"
    if finding.in_the_limit == "insufficient":
        return f"{measured}; in the limit undecided: {finding.reason}"
    sides = " + ".join(_written(one, short) for one in finding.smaller)
    other = " + ".join(_written(one, short) for one in finding.larger)
    if finding.in_the_limit == "holds":
        return f"{measured}; holds in the limit, {sides} against {other}" + _ahead(finding.ahead)
    begins = "" if finding.begins is None else f", from {finding.begins:g} on"
    return f"{measured}; violated by the models{begins}: {sides} outgrows {other}" + _ahead(finding.ahead)


def _ahead(found: tuple[Comparison, ...]) -> str:
    ratios = (f"{each.ratio:.3g} of the right at {_at(each.configuration)}" for each in found)
    text = ", ".join(ratios)
    return f"; by the models the left side is {text}" if text else ""


def _at(configuration: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {value:g}" for name, value in configuration.items())


def summary(result: Result) -> str:
    """One line: how many of each verdict."""
    counts = dict.fromkeys(("total", "approximate", "slower", "none", "insufficient"), 0)
    for finding in result.findings:
        counts[finding.verdict] += 1
    names = {
        "total": "met",
        "approximate": "met approximately",
        "slower": "growing slower",
        "none": "violated",
        "insufficient": "without verdict",
    }
    text = ", ".join(f"{counts[key]} {names[key]}" for key in counts if counts[key])
    states = [each.state for each in result.rules]
    words = {"holds": "held", "violated": "violated", "insufficient": "undecided"}
    each = ", ".join(f"{states.count(key)} {word}" for key, word in words.items() if key in states)
    rules = f"; {counted(len(states), 'rule')}: {each}" if states else ""
    stated = f"{counted(len(result.findings), 'expectation')}: {text}" if result.findings else ""
    return f"{stated}{rules}".removeprefix("; ")


def rows(result: Result) -> list[dict[str, Any]]:
    """One row a function and metric, with :data:`COLUMNS`."""
    return [_row(each) for each in result.findings]


def _row(each: Finding) -> dict[str, Any]:
    match = each.match
    return {
        "function": each.function,
        "metric": each.metric,
        "expected": each.expectation.growth.exact if match is not None else None,
        "model": None if match is None else match.found.exact,
        "formula": each.formula,
        "adjusted_r2": finite(each.adjusted_r2),
        "weight": each.weight,
        "divergence": None if match is None else match.divergence.exact,
        "limit": None if match is None else match.limit.exact,
        "match": None if match is None else match.rank,
        "status": "violated" if each.violated else "slower" if each.verdict == "slower" else each.status,
        "reason": each.reason,
        "litmus": each.litmus,
        "ranks": each.ranks,
    }


def to_dict(result: Result) -> dict[str, Any]:
    """Everything, as plain data for JSON."""
    return {
        "schema_version": 1,
        "application": result.application,
        "parameters": list(result.parameters),
        "exit_code": result.exit_code,
        "functions": [
            _row(each)
            | {
                "configurations": each.settings,
                "widened": each.widened,
                "place": each.expectation.place,
                "costs": [_cost(cost) for cost in each.costs],
                "doubled": None if each.doubled is None else _cost(each.doubled),
            }
            for each in result.findings
        ],
        "rules": [_rule_dict(each) for each in result.rules],
    }


def _cost(cost: Cost) -> dict[str, Any]:
    return {
        "configuration": dict(cost.configuration),
        "value": finite(cost.value),
        "interval": [finite(cost.lower), finite(cost.upper)],
        "expected": finite(cost.expected),
        "ratio": finite(cost.ratio),
        "reason": cost.answer,
    }


def _rule_dict(each: RuleFinding) -> dict[str, Any]:
    return {
        "rule": each.rule.inequality.text,
        "metric": each.rule.metric,
        "place": each.rule.place,
        "status": each.state,
        "in_the_limit": each.in_the_limit,
        "measured": each.measured,
        "smaller": [growth.exact for growth in each.smaller],
        "larger": [growth.exact for growth in each.larger],
        "violated_at": [_comparison(one) for one in each.at],
        "ahead": [_comparison(one) for one in each.ahead],
        "begins": each.begins,
        "reason": each.reason,
    }


def _comparison(one: Comparison) -> dict[str, Any]:
    sides = {"smaller": finite(one.smaller), "larger": finite(one.larger), "ratio": finite(one.ratio)}
    return {"configuration": dict(one.configuration), **sides, "violated": one.violated}


_PLACE = re.compile(r"(?P<file>.+?):(?P<line>\d+)(?::(?P<col>\d+))?")


def commands(result: Result) -> list[str]:
    """One command for each violated expectation or rule, and for each without a verdict."""
    lines = []
    for each in result.findings:
        title = f"{each.function}: {each.metric}"
        if each.violated:
            lines.append(command("error", title, said(each, result.short), each.expectation.place))
        elif each.status != "ok":
            lines.append(command("warning", title, said(each, result.short), each.expectation.place))
    for rule in result.rules:
        if rule.state in ("violated", "insufficient"):
            kind = "error" if rule.state == "violated" else "warning"
            lines.append(command(kind, rule.rule.inequality.text, rule_text(rule, result.short), rule.rule.place))
    return lines


def command(kind: str, title: str, message: str, place: str = "") -> str:
    """A workflow command; `place` is ``FILE:LINE`` or ``FILE:LINE:COLUMN``, or other text that names no line."""
    found = _PLACE.fullmatch(place)
    properties = {} if found is None else {name: text for name, text in found.groupdict().items() if text}
    properties["title"] = title
    written = ",".join(f"{name}={_escaped(text, ':,')}" for name, text in properties.items())
    return f"::{kind} {written}::{_escaped(message)}"


def _escaped(text: str, also: str = "") -> str:
    """Percent signs, ends of lines, and the signs in `also` as GitHub reads them."""
    for sign in ("%", "\r", "\n", *also):
        text = text.replace(sign, f"%{ord(sign):02X}")
    return text
