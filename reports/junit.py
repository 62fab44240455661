"""JUnit XML of a check, as build servers read it: one suite a metric, one of rules; a violation is a failure.

What the evidence cannot carry is skipped with the reason. The format is that of Ant's JUnit task, which Jenkins, GitLab
and others read: ``testsuites / testsuite / testcase / (failure | skipped)``.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping

from ranksight.analysis.expectations.checking import Result
from ranksight.analysis.expectations.judging import Finding
from ranksight.analysis.expectations.rules import RuleFinding
from ranksight.reports.checks import rule_text, said

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(result: Result) -> bytes:
    """The report, encoded in UTF-8 with its declaration."""
    names = result.short
    root = ET.Element("testsuites", name=_text(f"expectations of {result.application}"))
    for metric in dict.fromkeys(each.metric for each in result.findings):
        suite = ET.SubElement(root, "testsuite", name=_text(f"{result.application}.{metric}"))
        for each in result.findings:
            if each.metric == metric:
                _finding(suite, each, names)
    if result.rules:
        suite = ET.SubElement(root, "testsuite", name=_text(f"{result.application}.rules"))
        for rule in result.rules:
            _rule(suite, rule, names)
    for suite in [*root, root]:
        for attribute, tag in (("tests", "testcase"), ("failures", "failure"), ("skipped", "skipped")):
            suite.set(attribute, str(sum(1 for _ in suite.iter(tag))))
        suite.set("errors", "0")
        suite.set("time", "0")
    ET.indent(root)
    return bytes(ET.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _finding(suite: ET.Element, each: Finding, short: Mapping[str, str]) -> None:
    case = ET.SubElement(suite, "testcase", classname=_text(each.metric), name=_text(each.function), time="0")
    text = said(each, short)
    if each.violated and each.match is not None:
        found = f"{each.match.found.renamed(short)}, expected {each.match.expected.renamed(short)}"
        failure = ET.SubElement(case, "failure", type="expectation", message=_text(f"grows as {found}"))
        failure.text = _text(f"{text}\nmodel: {each.formula}\nstated at {each.expectation.place}")
    elif each.status != "ok":
        ET.SubElement(case, "skipped", message=_text(text))
    if each.formula:
        ET.SubElement(case, "system-out").text = _text(each.formula)


def _rule(suite: ET.Element, each: RuleFinding, short: Mapping[str, str]) -> None:
    name = each.rule.inequality.text
    case = ET.SubElement(suite, "testcase", classname=_text(each.rule.metric), name=_text(name), time="0")
    text = rule_text(each, short)
    if each.state == "violated":
        ET.SubElement(case, "failure", type="rule", message=_text(f"{name} is violated")).text = _text(text)
    elif each.state == "insufficient":
        ET.SubElement(case, "skipped", message=_text(text))


def _text(text: str) -> str:
    """Without characters that XML cannot hold; the rest is escaped by the writer."""
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
