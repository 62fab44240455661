"""Expectations of how functions scale, and what came of them."""

from __future__ import annotations

from typing import Any

from ranksight.reports.checks import rows, rule_text, said, summary
from ranksight.reports.html.context import Context

WORDS = {"total": "met", "approximate": "met approximately", "none": "violated", "insufficient": "insufficient"}
GRADES = {"total": "good", "approximate": "good", "none": "poor", "insufficient": "fair"}
RULES = {"holds": "good", "violated": "poor"}


def build(context: Context) -> dict[str, Any] | None:
    """What the template needs; None where nothing was expected."""
    result = context.expectations
    if result is None:
        return None
    found = []
    for each, row in zip(result.findings, rows(result), strict=True):
        found.append(
            {
                **row,
                "word": WORDS[each.verdict],
                "grade": GRADES[each.verdict],
                "said": said(each, result.short),
                "expected": str(each.expectation.growth.renamed(result.short)) if each.match is not None else "–",
                "found": "–" if each.match is None else str(each.match.found.renamed(result.short)),
            }
        )
    order = {"poor": 0, "fair": 1, "good": 2}
    found.sort(key=lambda row: order[row["grade"]])
    rules = [
        {
            "text": rule.rule.inequality.text,
            "metric": rule.rule.metric,
            "state": rule.state,
            "grade": RULES.get(rule.state, "fair"),
            "said": rule_text(rule, result.short),
        }
        for rule in result.rules
    ]
    return {"rows": found, "rules": rules, "summary": summary(result), "short": dict(result.short)}
