"""Litmus tests: a reference implementation tells the architecture from the implementation.

The reference is an algorithm whose behaviour is known, written anew and measured beside the library's functions. Where
it deviates from its own expectation as well, the machine, the network or the way of measuring is suspected; where it
does as expected, the implementation is (Shudler et al. 2015, sections 2.2 and 3.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ranksight.analysis.expectations.document import Study
from ranksight.analysis.expectations.judging import Finding
from ranksight.analysis.expectations.measured import nearest
from ranksight.core.errors import InputError


def with_litmus(findings: Sequence[Finding], study: Study) -> tuple[Finding, ...]:
    """Findings with what the reference of their metric says of those that deviate.

    Raises
    ------
    InputError
        When a reference has no expectation of its own.
    """
    by_key = {(each.function, each.metric): each for each in findings}
    for metric, name in study.litmus.items():
        if (name, metric) not in by_key:
            have = [function for function, other in by_key if other == metric]
            raise InputError(
                f"{study.source}: the litmus test {name!r} has no expectation in {metric}",
                nearest(name, have, f"write it under [expect.{metric}]"),
            )
    return tuple(
        replace(each, litmus=_said(each, by_key[study.litmus[each.metric], each.metric], study.short))
        if each.metric in study.litmus and each.function != study.litmus[each.metric]
        else each
        for each in findings
    )


def _said(finding: Finding, reference: Finding, short: Mapping[str, str]) -> str:
    if finding.match is None or finding.verdict in ("total", "insufficient") or not finding.match.faster:
        return ""
    name = reference.function
    if reference.match is None or reference.status != "ok":
        return f"undecided, {name} has no verdict of its own"
    delta = reference.match.divergence
    if reference.match.rank == "total" or not reference.match.faster:
        return f"the implementation, as {name} grows as expected here"
    if finding.match.divergence.within(delta):
        return f"the architecture, as {name} diverges by {delta.renamed(short)} too"
    return f"architecture and implementation, as {name} diverges by {delta.renamed(short)}, which is less"
