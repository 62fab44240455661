"""Write docs/verbs.md from the parsers: ``python docs/generate.py``. A test holds the file against them."""

from __future__ import annotations

import argparse
from pathlib import Path

from ranksight.cli.main import VERBS, verb_parser

HERE = Path(__file__).resolve().parent


def text() -> str:
    """All verbs with their options, as Markdown."""
    lines = [
        "# Verbs",
        "",
        "Written from the parsers by `python docs/generate.py`; `ranksight VERB --help` says the same.",
        "",
    ]
    lines += [f"- [{verb}](#ranksight-{verb}): {what}" for verb, what in VERBS.items()]
    for verb in VERBS:
        parser = verb_parser(verb)
        lines += ["", f"## ranksight {verb}", "", *_description(parser)]
        rows = [action for action in parser._actions if action.help != argparse.SUPPRESS and action.dest != "help"]
        if rows:
            lines += ["", "| | |", "|---|---|"]
            lines += [f"| `{_name(action).replace('|', chr(92) + '|')}` | {_cell(action, parser)} |" for action in rows]
    lines += [
        "",
        "## Exit codes",
        "",
        "0 done, 1 bad input or failed program, 2 usage, 3 an expectation is violated or a threshold passed, 4 the "
        "evidence is insufficient.",
    ]
    return "\n".join(lines) + "\n"


def _description(parser: argparse.ArgumentParser) -> list[str]:
    """The verb's own text; its examples become blocks of code."""
    lines: list[str] = []
    for line in (parser.description or "").splitlines():
        lines.append(f"    {line.strip()}" if line.startswith("  ") else line)
    return lines


def _name(action: argparse.Action) -> str:
    shown = action.metavar if isinstance(action.metavar, str) else None
    if not action.option_strings:
        return shown or action.dest
    value = (
        "" if action.nargs == 0 else " " + (shown or ("|".join(map(str, action.choices or ())) or action.dest.upper()))
    )
    return f"{', '.join(action.option_strings)}{value}"


def _cell(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    words = (
        (action.help or "") % {"default": action.default, "prog": parser.prog}
        if "%" in (action.help or "")
        else action.help or ""
    )
    return " ".join(words.replace("|", "\\|").split())


if __name__ == "__main__":
    (HERE / "verbs.md").write_text(text(), encoding="utf-8")
