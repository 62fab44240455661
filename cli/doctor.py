"""Show what can be measured here and what cannot, why, and how to enable it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ranksight.cli._document import print_document
from ranksight.reports.terminal import Block, Cell, Table, Text, next_step, show

if TYPE_CHECKING:
    from ranksight.campaign.collecting import Availability
    from ranksight.counters.doctor import Finding

_MARKS = {"ok": "ok", "note": "note", "warning": "!", "missing": "-"}
ITS_OWN = "table"  # the collector of what a program measures itself: it works anywhere
_STYLES = {"ok": "green", "note": "", "warning": "yellow", "missing": "red"}


def run(args: argparse.Namespace) -> int:
    """Examine the machine and print what was found."""
    from ranksight.campaign.collecting import COLLECTORS
    from ranksight.counters.doctor import examine

    findings = examine()
    collectors = {name: (COLLECTORS[name].text, COLLECTORS[name].available()) for name in COLLECTORS}
    if args.quiet:
        findings = [finding for finding in findings if finding.remedy]
    if args.format == "json":
        content = {
            "schema_version": 1,
            "findings": [finding.plain() for finding in findings],
            "collectors": [
                {"name": name, "text": text, "available": state.ok, "reason": state.reason, "remedy": state.remedy}
                for name, (text, state) in collectors.items()
            ],
        }
        print_document(content)
        return 0
    _print(findings, {} if args.quiet else collectors)
    return 0


def _print(findings: Sequence[Finding], collectors: dict[str, tuple[str, Availability]]) -> None:
    blocks: list[Block] = []
    if findings:
        rows: list[list[str | Cell]] = []
        for finding in findings:
            rows.append([Cell(_MARKS[finding.level], _STYLES[finding.level]), finding.topic, finding.found])
            rows += [["", "", Cell(finding.means, "dim")]] * bool(finding.means)
            rows += [["", "", Cell(f"-> {finding.remedy}", "cyan")]] * bool(finding.remedy)
        blocks.append(Table([":word", ":word", ":text"], rows, head=False))
    if collectors:
        rows = []
        for name, (text, state) in collectors.items():
            mark = Cell("ok", "green") if state.ok else Cell("-", "red")
            rows.append([mark, name, text if state.ok else state.reason])
            rows += [["", "", Cell(f"-> {state.remedy}", "cyan")]] * bool(not state.ok and state.remedy)
        listing = Table([":word", ":word", ":text"], rows, head=False)
        blocks += ["", Text("collectors of 'ranksight measure':", style="bold"), listing]
        if any(state.ok for name, (_, state) in collectors.items() if name != ITS_OWN):
            blocks += ["", next_step("ranksight measure --ranks 1,2,4 -o FOLDER -- mpirun -n {ranks} ./program")]
        else:
            blocks += ["", Text("nothing can be measured here yet: install what is marked '-' above", hanging=-1)]
    show(*blocks)
