"""A check as workflow commands of GitHub Actions, which show a violation at the line that expects otherwise.

The commands are ``::error file=F,line=L,col=C,title=T::message``; see "Workflow commands for GitHub Actions" in
GitHub's documentation. What lacks data is a warning.
"""

from __future__ import annotations

import re

from ranksight.analysis.expectations.checking import Result
from ranksight.reports.checks import rule_text, said

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
