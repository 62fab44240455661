"""Write docs/verbs.md and the manual page from the parsers, and the list in docs/platforms.md from the descriptions.

Run ``python docs/generate.py``; a test holds the files against what they are written from. ``python docs/generate.py
--demo`` writes what README.md, the tour and the page on reports show of ``ranksight demo``, printed and drawn.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ranksight.cli.main import GUIDE, VERBS, main, verb_parser
from ranksight.core.experiment import read
from ranksight.model.fitted_model import Model
from ranksight.platforms import load, names
from ranksight.reports import plots
from ranksight.reports.ideal import ideal
from ranksight.reports.measured import measured
from ranksight.reports.sweep import sweep
from ranksight.reports.validation import validate

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
        "0 done, 1 bad input or failed program, 2 usage, 3 an expectation is violated or a threshold passed, "
        "4 insufficient data, 130 cancelled. 3 and 4 mean what is named with each verb above. A parameter that a model "
        "lacks is bad input. An answer that is supported in part has `?` at what is not, and ends with 0.",
    ]
    return "\n".join(lines) + "\n"


def manual() -> str:
    """All verbs as one manual page, ``man ./docs/ranksight.1``."""
    lines = [
        '.TH RANKSIGHT 1 "" "ranksight" "User Commands"',
        ".SH NAME",
        r"ranksight \- predict the runtime of MPI programs at scale from a few small runs",
        ".SH SYNOPSIS",
        r".B ranksight",
        r"\fIVERB\fR [\fIOPTIONS\fR]",
        ".SH DESCRIPTION",
        *_troff(GUIDE.splitlines()),
    ]
    for verb in VERBS:
        parser = verb_parser(verb)
        lines += [f".SH {verb.upper()}", *_troff((parser.description or "").splitlines())]
        for action in parser._actions:
            if action.help != argparse.SUPPRESS and action.dest != "help":
                lines += [
                    ".TP",
                    f".B {_escaped(_name(action))}",
                    _escaped(_cell(action, parser).replace(chr(92) + "|", "|")),
                ]
    lines += [".SH EXIT STATUS"]
    for code, text in (
        ("0", "done"),
        ("1", "bad input or failed program"),
        ("2", "usage"),
        ("3", "an expectation is violated or a threshold passed"),
        ("4", "insufficient data"),
        ("130", "cancelled"),
    ):
        lines += [".TP", f".B {code}", text]
    return "\n".join(lines) + "\n"


SHOWN = {"README.md": 40, "docs/tour.md": 40, "docs/report.md": 8}
"""Documents that show what commands on the folder of the demo print, and how many lines of each output."""
COMMAND = r"^(?:    )?ranksight (demo|[^\n]* ranksight-demo/[^\n]*)\n"
PRINTED = re.compile(COMMAND + r"(?:```\n)?\n```\n(.*?)^```", re.MULTILINE | re.DOTALL)
"""A command in a document, and the output that follows it."""


def printed(document: str) -> str:
    """A document with what its commands print now, in a folder that holds the demo's; long outputs end with [...]."""

    def replaced(match: re.Match[str]) -> str:
        text = io.StringIO()
        words = shlex.split(match[1])
        with contextlib.redirect_stdout(text):
            main([*words, *(["--force"] if words[0] in ("demo", "report") else [])])
        lines = [line.rstrip() for line in text.getvalue().strip("\n").splitlines()]
        most = SHOWN[document]
        shown = [*lines[:most], "[...]"] if len(lines) > most else lines
        return match[0][: match.start(2) - match.start()] + "\n".join(shown) + "\n```"

    return PRINTED.sub(replaced, (HERE.parent / document).read_text(encoding="utf-8"))


def images(demo: Path, into: Path = HERE / "images") -> None:
    """Write the pictures of README.md and docs/gallery.md, of the folder that 'ranksight demo' made."""
    model = Model.load(demo / "heat.model.json")
    asked = sweep(model, to=256, at={"size": 16})
    drawn = {"breakdown": plots.plot_breakdown(asked), "ranking": plots.plot_ranking(asked)}
    drawn |= {
        "roofline": plots.plot_roofline(asked),
        "validation": plots.plot_validation(validate(model, read(demo / "check"))),
        "prediction": plots.plot_prediction(asked, measured(model, [read(demo / "experiment")]), ideal(asked)),
    }
    for name, ax in drawn.items():
        plots.save_figure(ax.figure, into / f"{name}.svg")


def screenshot(demo: Path) -> None:
    """Write the picture of the report's first page; needs Chromium."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with tempfile.TemporaryDirectory() as profile:
        words = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}"]
        picture = HERE / "images" / "report.png"
        words += ["--window-size=1000,780", f"--screenshot={picture}", (demo / "heat.html").resolve().as_uri()]
        subprocess.run([browser, *words], check=True, capture_output=True, timeout=120)


def demonstrated() -> None:
    """Run the demo, and write what documents show of it."""
    os.environ["COLUMNS"] = "80"
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        for document in SHOWN:
            (HERE.parent / document).write_text(printed(document), encoding="utf-8")
        images(Path("ranksight-demo"))
        screenshot(Path("ranksight-demo"))


def _troff(lines: list[str]) -> list[str]:
    """Paragraphs, with indented lines as examples."""
    found: list[str] = []
    example = False
    for line in lines:
        if line.startswith("  ") != example and line:
            example = not example
            found += [".nf", ".RS"] if example else [".RE", ".fi"]
        found.append(_escaped(line.strip()) if line else ".PP")
    return [*found, *([".RE", ".fi"] if example else [])]


def _escaped(text: str) -> str:
    """Text without what troff takes for commands."""
    plain = text.replace("\\", r"\e").replace("-", r"\-")
    return rf"\&{plain}" if plain.startswith((".", "'")) else plain


def platforms() -> str:
    """docs/platforms.md with its list of machines, which stands between two comments."""
    before, _, rest = (HERE / "platforms.md").read_text(encoding="utf-8").partition("<!-- machines -->\n")
    _, _, after = rest.partition("<!-- /machines -->\n")
    lines = ["| name | machine | domains | core, domain (GB/s) | estimates |", "|---|---|---|---|---|"]
    for machine in map(load, names()):
        memory = machine.memory
        cells = (
            f"`{machine.name}`",
            machine.title,
            f"{machine.domains} x {machine.layout.cores_per_domain}",
            f"{memory.bandwidth_core / 1e9:.3g}, {memory.bandwidth_domain / 1e9:.3g}",
            f"{len(machine.estimates())} of {len(machine.sources)}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([f"{before}<!-- machines -->", *lines, f"<!-- /machines -->\n{after}"])


def _description(parser: argparse.ArgumentParser) -> list[str]:
    """The verb's own text; its examples become blocks of code."""
    lines: list[str] = []
    for line in (parser.description or "").splitlines():
        lines.append(f"    {line.strip()}" if line.startswith("  ") else line)
    return lines


def _name(action: argparse.Action) -> str:
    shown = " ".join(action.metavar) if isinstance(action.metavar, tuple) else action.metavar
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
    if sys.argv[1:] == ["--demo"]:
        sys.exit(demonstrated())
    (HERE / "verbs.md").write_text(text(), encoding="utf-8")
    (HERE / "ranksight.1").write_text(manual(), encoding="utf-8")
    (HERE / "platforms.md").write_text(platforms(), encoding="utf-8")
