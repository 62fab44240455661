"""Run a program over configurations and repetitions, and collect counters, messages and time."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ranksight.campaign.launching import Template
from ranksight.cli._options import declare
from ranksight.cli._parser import Parser
from ranksight.cli._values import WRITE, values
from ranksight.cli.options import options
from ranksight.core.errors import InputError, UsageError, meant

if TYPE_CHECKING:
    from ranksight.campaign.collecting import Collector
    from ranksight.campaign.measuring import Outcome, Plan
    from ranksight.core.experiment import Experiment


def _command(text: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a command: {error}") from None
    if not words:
        raise argparse.ArgumentTypeError("no command is given")
    return words


def _sample(text: str) -> str:
    if text not in ("auto", "off") and not (text.isascii() and text.isdecimal() and 0 < int(text[:9]) == int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is neither auto, off nor a whole number from 1")
    return text


TYPES = {"command": _command, "sample": _sample}


def _template(words: Sequence[str], chosen: argparse.Namespace) -> Template:
    """The commands of a campaign."""
    at: dict[int, tuple[str, ...]] = {}
    for ranks, text in chosen.at:
        try:
            at |= dict.fromkeys((int(value) for value in _values(ranks)), _command(text))
        except argparse.ArgumentTypeError as error:
            raise UsageError(f"ranksight measure: argument --at: {error}", "write --at 1 './program {size}'") from None
    elsewhere = bool(chosen.prepare or getattr(chosen, "workdir", None))
    return Template(tuple(words), at, tuple(chosen.prepare), elsewhere)


def parse(parser: Parser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the line; the parameters of the command after ``--`` are options with lists of values.

    Raises UsageError when no command is given, it lacks ``{ranks}``, or a parameter has no values.
    """
    given, command = parser.separated(arguments)
    # The commands name the parameters, which are options of the whole line.
    commands = type(parser)(prog=parser.prog, add_help=False)
    declare(commands, options("measure")[2], TYPES, ("--prepare", "--at"))
    template = _template(command, commands.parse_known_args(given)[0])
    for name in dict.fromkeys(("ranks", *template.parameters)):
        try:
            parser.add_argument(f"--{name}", dest=f"parameter_{name}", type=_values, metavar="LIST", action="append")
        except argparse.ArgumentError:
            raise UsageError(
                f"ranksight measure: {{{name}}} cannot be a parameter, --{name} is an option", "give it another name"
            ) from None
    chosen, rest = parser.parse_known_args(given)
    if rest:
        _unknown(parser, rest, command)
    chosen.template = _template(template.words, chosen)
    if chosen.list_collectors:
        return chosen
    if not template.words:
        raise UsageError(
            "ranksight measure: no command is given", "write it after '--': -- mpirun -n {ranks} ./program"
        )
    if "ranks" not in Template(template.words).parameters:
        near = [name for name in Template(template.words).parameters if meant(name, ["ranks"])]
        place = f"in place of {{{near[0]}}}" if near else "where the launcher takes the number of ranks"
        raise UsageError("ranksight measure: the command has no {ranks}", f"write it {place}")
    if chosen.timeout is not None and not chosen.timeout > 0:
        raise UsageError(f"ranksight measure: --timeout {chosen.timeout:g} ends every run", "give seconds above 0")
    if chosen.output is None:
        raise UsageError("ranksight measure: no folder is given", "name one with -o FOLDER")
    if chosen.reps < 1:
        raise UsageError(f"ranksight measure: --reps {chosen.reps}", "give 1 or more")
    if chosen.repetition is not None and not 0 <= chosen.repetition < chosen.reps:
        raise UsageError(
            f"ranksight measure: --repetition {chosen.repetition} of {chosen.reps}", "they count from 0 to --reps - 1"
        )
    chosen.grid = {}
    for name in template.parameters:
        listed = getattr(chosen, f"parameter_{name}")
        if listed is None:
            remedy = f"give --{name} LIST, such as --{name} 1,2,4"
            raise UsageError(f"ranksight measure: {{{name}}} has no values", remedy)
        if len(listed) > 1:
            raise UsageError(f"ranksight measure: --{name} is given twice", f"give several values as --{name} A,B")
        chosen.grid[name] = listed[0]
    return chosen


def _unknown(parser: Parser, rest: Sequence[str], command: Sequence[str]) -> NoReturn:
    """Refuse words that are no options; a list of values is one of a parameter that the command does not name."""
    name, _, text = " ".join(rest[:2]).replace("=", " ", 1).partition(" ")
    if command and name.startswith("--") and re.fullmatch(r"[\d.,:*^-]+", text):
        raise UsageError(
            f"ranksight measure: {name} is not an option, and the command has no {{{name[2:]}}}",
            meant(name, parser.options()) or f"write {{{name[2:]}}} after '--' where the program takes it",
        )
    parser.error(f"unrecognized arguments: {' '.join(rest)}")


def _values(text: str) -> tuple[float, ...]:
    try:
        return tuple(values(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}; {WRITE}") from None


def run(chosen: argparse.Namespace) -> int:
    """Carry the verb out; 1 when a run failed."""
    from ranksight.campaign.measuring import Plan, measure
    from ranksight.cli._adapting import adapt, check_alike, measure_parts, sampled
    from ranksight.cli._outcome import report
    from ranksight.cli._progress import Runs
    from ranksight.platforms import load

    if chosen.list_collectors:
        return _list_collectors()
    template: Template = chosen.template
    bad = [value for value in chosen.grid["ranks"] if value < 1 or not value.is_integer()]
    if bad:
        raise InputError(f"{bad[0]:g} is not a number of ranks", "ranks are whole numbers from 1")
    if chosen.distant and (chosen.emit or chosen.submit):
        raise UsageError("ranksight measure: --distant decides after each run, jobs cannot", "run it inside one job")
    if chosen.format == "json" and (chosen.distant or chosen.emit or chosen.submit):
        raise UsageError("ranksight measure: --format json reports runs that are made here", "leave it out")
    if chosen.emit or chosen.submit:
        from ranksight.cli import _batch

        return _batch.run(chosen)
    template.fill({name: values[0] for name, values in chosen.grid.items()})
    aside = None if chosen.quiet or chosen.format == "json" else _say
    kernels = tuple(dict.fromkeys(chosen.refine))
    platform = load(chosen.platform) if chosen.platform is not None else None
    if chosen.distant and not chosen.collector:
        chosen.collector = ["pmpi-events", "callgrind-intervals"]
    collectors = choose_collectors(chosen.collector, aside)
    collectors = adapt(collectors, platform, kernels, named=bool(chosen.collector), say=aside)
    collectors = sampled(collectors, chosen.sample, kernels, chosen.sample_ranks == "auto")
    plan = Plan(template, chosen.grid, chosen.reps, collectors, chosen.timeout, chosen.workdir, chosen.repetition)
    experiment = open_or_create(chosen.output, chosen.application or _name(plan), template, chosen.workdir)
    check_alike(experiment, collectors, kernels)
    if chosen.distant:
        from ranksight.cli._distant import measure_distant

        return measure_distant(experiment, plan, platform or load("generic"), chosen.quiet)
    with Runs([run for run, _, _ in plan.runs()], chosen.quiet) as progress:
        outcome = (measure_parts if kernels else measure)(experiment, plan, progress)
    if chosen.format == "json":
        from ranksight.cli._document import print_document

        print_document(_as_data(experiment, outcome))
    return report(experiment, outcome, chosen.quiet or chosen.format == "json")


def _as_data(experiment: Experiment, outcome: Outcome) -> dict[str, Any]:
    from ranksight.core.leftout import warning

    return {
        "schema_version": 1,
        "experiment": str(experiment.path),
        "runs": len(experiment),
        "measured": outcome.measured,
        "kept": outcome.kept,
        "failed": [
            {
                "run": failure.run.id,
                "what": failure.what,
                "remedy": failure.remedy,
                "output": str(failure.folder) if failure.folder.exists() else None,
            }
            for failure in outcome.failures
        ],
        "left_out": list(outcome.left_out),
        "warnings": [*outcome.warnings, *filter(None, [warning(experiment)])],
        "stopped": outcome.stopped,
    }


def open_or_create(folder: Path, application: str, template: Template, case: Path | None = None) -> Experiment:
    """The experiment at `folder`, continued if the same command made it, or corrected if none of its runs was good.

    Raises InputError when the folder holds something else, or runs of another command.
    """
    from ranksight.campaign.measuring import alone, surroundings
    from ranksight.core.experiment import Experiment

    if not (folder / "experiment.json").exists():
        return Experiment.create(folder, application, template.parameters)
    experiment = Experiment.read(folder)
    if not len(experiment):  # no run of the earlier command was good
        with alone(folder):
            experiment.correct(application, template.parameters)
        return experiment
    if experiment.parameters != template.parameters:
        raise InputError(
            f"{folder} was measured over {', '.join(experiment.parameters)}, "
            f"the command has {', '.join(template.parameters)}",
            "name another folder",
        )
    for run in experiment.runs[:1]:
        launch = template.fill(run.configuration)
        if run.command and run.command != launch.command:
            raise InputError(
                f"{folder} was measured with '{' '.join(run.command)}'", "give the same command, or name another folder"
            )
        for name in ("workdir", "prepare"):
            before, now = run.environment.get(name, ""), surroundings(launch, case).get(name, "")
            if run.command and before != now:
                how = f"with --{name} {before}" if before else f"without --{name}"
                raise InputError(f"{folder} was measured {how}", "give the same, or name another folder")
    return experiment


def choose_collectors(names: Sequence[str] | None, say: object = None) -> dict[str, Collector]:
    """The collectors to use: those named, or all defaults that work here; `say` gets the choice and the reasons.

    Raises ToolError when a named one does not work here, or none does.
    """
    from ranksight.campaign.collecting import COLLECTORS
    from ranksight.core.errors import ToolError

    chosen: dict[str, Collector] = {}
    reasons: list[str] = []
    for name in names or [name for name in COLLECTORS if COLLECTORS[name].default]:
        state = COLLECTORS[name].available()
        if state.ok:
            chosen[name] = COLLECTORS[name]
            if callable(say):
                say(f"collector {name}: {COLLECTORS[name].text}")
        elif names:
            raise ToolError(f"collector {name} does not work here: {state.reason}", state.remedy)
        else:
            reasons.append(f"without {name}: {state.reason}" + (f" ({state.remedy})" if state.remedy else ""))
            if callable(say):
                say(reasons[-1])
    if not chosen:
        raise ToolError("no collector works here: " + "; ".join(reasons), "install one of the tools named")
    return chosen


def _list_collectors() -> int:
    from ranksight.campaign.collecting import COLLECTORS
    from ranksight.reports.terminal import Cell, Table, next_step, show

    rows: list[list[str | Cell]] = []
    for name in COLLECTORS:
        state = COLLECTORS[name].available()
        mark = Cell("works", "green") if state.ok else Cell("-", "red")
        why = "" if state.ok else f": {state.reason}" + (f" ({state.remedy})" if state.remedy else "")
        rows.append([name, mark, COLLECTORS[name].text + why])
    show(Table(["collector:word", "here:word", ":text"], rows))
    show(next_step("ranksight doctor"))
    return 0


def _name(plan: Plan) -> str:
    return Path(plan.template.fill({name: values[0] for name, values in plan.grid.items()}).program).name


def _say(line: str) -> None:
    print(line, flush=True)
