"""Write the project file ranksight.toml, so that the verbs need no arguments in this folder."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ranksight.campaign.launching import Template
from ranksight.cli._lines import shell_line
from ranksight.cli._parser import Parser
from ranksight.cli._project import FILE, JOBS, Project
from ranksight.cli._values import WRITE, values
from ranksight.core.errors import UsageError
from ranksight.core.files import check_output, write_output
from ranksight.core.units import in_full

EXPECTATIONS = "expectations.toml"
"""File of expectations, written where none is named and none is there."""
FARTHER = 16  # times the most ranks measured that are the target where none is named


def parse(parser: Parser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the line; the parameters of the command after ``--`` are options with lists of values.

    Raises UsageError when the command lacks ``{ranks}``, or an option is unknown.
    """
    given, words = parser.separated(arguments)
    for name in dict.fromkeys(("ranks", *Template(tuple(words)).parameters)):
        parser.add_argument(f"--{name}", dest=f"parameter_{name}", metavar="LIST")
    chosen = parser.parse_args(given)
    chosen.command = words
    chosen.given = {
        name.removeprefix("parameter_"): text
        for name, text in vars(chosen).items()
        if name.startswith("parameter_") and text is not None
    }
    chosen.jobs = {
        name: str(value) if isinstance(value, int) and not isinstance(value, bool) else value
        for name in JOBS
        if (value := getattr(chosen, dest := f"job_{name.replace('-', '_')}")) != parser.get_default(dest)
    }
    return chosen


def run(chosen: argparse.Namespace) -> int:
    """Ask what is missing, write the file, and name the next command."""
    from ranksight.reports.terminal import Text, next_step, show

    check_output(Path(FILE), chosen.force)
    ask = _asked if sys.stdin is not None and sys.stdin.isatty() else _missing
    command = (
        shlex.join(chosen.command) if chosen.command else ask("command, such as mpirun -n {ranks} ./app {size}", "")
    )
    # Braces are the template's, and quoted words stay as they were typed.
    command = command.replace("'{", "{").replace("}'", "}")
    try:
        template = Template(tuple(shlex.split(command)))
    except ValueError as error:
        raise UsageError(f"ranksight init: {command!r} is not a command: {error}", "write it as in a shell") from None
    if "ranks" not in template.parameters:
        raise UsageError(
            "ranksight init: the command has no {ranks}", "write it where the launcher takes the number of ranks"
        )
    measured = {}
    for name in template.parameters:
        usual = "1,2,4,8" if name == "ranks" else ""
        measured[name] = _list(name, chosen.given.get(name) or ask(f"values of {name}", usual))
    targets = dict(_pair(text) for text in chosen.target)
    for name, text in measured.items():
        most = max(values(text))
        if name == "ranks":
            from ranksight.core.valuerules import next_value

            farther = next_value(values(text), FARTHER * most)
            most = farther if farther > most else FARTHER * most
        targets.setdefault(name, f"{most:g}" if most >= 1e6 else f"{most:.12g}")
    if unknown := sorted(set(targets) - set(measured)):
        raise UsageError(
            f"ranksight init: the command has no {{{unknown[0]}}}", f"its parameters are {', '.join(measured)}"
        )
    if chosen.reps is not None:
        measured["reps"] = str(chosen.reps)
    project = Project(
        command,
        chosen.experiment or f"{_program(template.words)}.exp",
        measured,
        targets,
        chosen.jobs,
        chosen.collector,
        chosen.kernel,
        chosen.history or ("*.exp",),
        chosen.platform,
        chosen.expectations or EXPECTATIONS,
        chosen.baseline,
    )
    write_output(Path(FILE), project.text())
    started = chosen.expectations is None and not Path(EXPECTATIONS).exists()
    if started:
        write_output(Path(EXPECTATIONS), _expectations({name: values(measured[name]) for name in template.parameters}))
    if not chosen.quiet:
        files = f"{FILE} and {EXPECTATIONS}" if started else FILE
        show(Text(f"written: {files}; 'measure', 'fit', 'predict' and others use it in this folder", hanging=0))
        show(next_step(shell_line("ranksight", "measure")))
    return 0


def _expectations(grid: Mapping[str, Sequence[float]]) -> str:
    """A first file of expectations, which asks that no function's work grows with the ranks at a fixed workload."""
    from ranksight.analysis.expectations.document import LEAST_SETTINGS

    # What sends messages is not run by one rank alone.
    several = sum(ranks > 1 for ranks in grid["ranks"])
    most = [f"{name} = {in_full(max(values))}" for name, values in grid.items() if name != "ranks"]
    lines = [
        "# What 'ranksight check' expects of how functions scale; docs/expectations.md explains the file.",
        "# At a fixed workload the instructions of a rank grow no faster than the logarithm of the ranks,",
        "# neither those of the mean rank nor those of the busiest one.",
        "# Add [expect.time] where the nodes are idle, and lines for functions that may grow otherwise.",
        "[expect.instructions]",
        '"*" = "O(log p)"',
        *(["", "[hold]", *most] if most else []),
        "",
        "[search]",
        "upper = true",
        f"least_settings = {min(LEAST_SETTINGS, max(3, several))}"
        f"  # numbers of ranks that a verdict needs; {LEAST_SETTINGS} are advised",
    ]
    return "\n".join(lines) + "\n"


def _program(words: Sequence[str]) -> str:
    """The program's name, which need not be built yet: of the first word after the launcher's that is a path."""
    paths = [word for word in words[1:] if "/" in word and "{" not in word and not word.startswith("-")]
    return Path(paths[0] if paths else words[0]).name


def _list(name: str, text: str) -> str:
    try:
        values(text)
    except ValueError as error:
        raise UsageError(f"ranksight init: --{name}: {error}", WRITE) from None
    return text


def _pair(text: str) -> tuple[str, str]:
    name, equals, listed = text.partition("=")
    if not equals:
        raise UsageError(f"ranksight init: --target {text!r} names no values", "write --target ranks=256,1024")
    return name, _list("target", listed)


def _asked(what: str, usual: str) -> str:
    """The answer typed; the usual one where there is none."""
    try:
        said = input(f"{what}{f' [{usual}]' if usual else ''}: ").strip() or usual
    except EOFError:
        said = usual
    return said or _missing(what, usual)


def _missing(what: str, usual: str) -> str:
    name = what.partition(",")[0].removeprefix("values of ")
    write = (
        "write it after '--': -- mpirun -n {ranks} ./app"
        if name == "command"
        else f"give --{name} LIST, such as --{name} 1,2,4"
    )
    raise UsageError(
        f"ranksight init: {'no command is given' if name == 'command' else f'{{{name}}} has no values'}", write
    )
