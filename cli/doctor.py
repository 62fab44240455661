"""Say what can be measured here and what not, why, and what would mend it.

  ranksight doctor
  ranksight doctor --format json

Nothing is changed. The exit code is 0 whatever is found: a machine without counters is no error.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ranksight.collecting import Availability
    from ranksight.counters.doctor import Finding

_MARKS = {"ok": "ok", "note": "note", "warning": "!", "missing": "-"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--format", choices=("table", "json"), default="table", help="how to print (default: table)")
    parser.add_argument("--quiet", action="store_true", help="only what needs mending")


def run(args: argparse.Namespace) -> int:
    """Examine the machine and print what was found."""
    from ranksight.collecting import COLLECTORS
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
        print(json.dumps(content, indent=2))
        return 0
    _print(findings, {} if args.quiet else collectors)
    return 0


def _print(findings: Sequence[Finding], collectors: dict[str, tuple[str, Availability]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    width = None if sys.stdout.isatty() else 120
    console = Console(highlight=False, width=width, record=True, file=io.StringIO() if width else sys.stdout)
    styles = {"ok": "green", "note": "", "warning": "yellow", "missing": "red"}
    table = Table.grid(padding=(0, 1))
    for finding in findings:
        words = Text(finding.found)
        if finding.means:
            words.append(f"\n{finding.means}", style="dim")
        if finding.remedy:
            words.append(f"\n-> {finding.remedy}", style="cyan")
        table.add_row(Text(_MARKS[finding.level], style=styles[finding.level]), finding.topic, words)
    console.print(table)
    if collectors:
        console.print("\ncollectors of 'ranksight measure':")
        listing = Table.grid(padding=(0, 1))
        for name, (text, state) in collectors.items():
            words = Text(text if state.ok else f"{state.reason}\n-> {state.remedy}")
            listing.add_row(Text("ok" if state.ok else "-", style="green" if state.ok else "red"), name, words)
        console.print(listing)
        working = [name for name, (_, state) in collectors.items() if state.ok]
        if working:
            console.print("\nnext: ranksight measure --ranks 1,2,4 -o FOLDER -- mpirun -n {ranks} ./program")
    if width:
        # tables are padded to their width: blanks at line ends are of no use in a file
        print("\n".join(line.rstrip() for line in console.export_text().splitlines()))
