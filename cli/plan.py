"""List the next runs: those that narrow a prediction most for their core-hours."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranksight.cli import _separated
from ranksight.cli._document import print_document
from ranksight.cli._lines import options, shell_line
from ranksight.cli._values import parse as parse_parameters
from ranksight.core.errors import InputError, UsageError
from ranksight.core.units import in_full

if TYPE_CHECKING:
    from ranksight.analysis.planning.choice import Choice
    from ranksight.cli._parser import Parser
    from ranksight.core.experiment import Experiment
    from ranksight.model.fitted_model import Model

LEVEL = 0.9  # probability of the intervals where nothing is said
MANY = 3
"""Repetitions planned where it is not known how often runs were repeated, but that they were."""


def parse(parser: Parser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the line; ``--NAME``, ``--NAME-rule``, ``--min-NAME`` and ``--max-NAME`` belong to parameters of the model.

    Raises UsageError when an option lacks its value or a value is not a number.
    """
    rules: dict[str, str] = {}
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        option, equals, text = word.partition("=")
        if not (option.startswith("--") and option.endswith("-rule")):
            rest.append(word)
            continue
        value = text if equals else next(words, None)
        if value is None:
            raise UsageError(f"{parser.prog}: {option} needs a rule", f"such as {option} '6*n^2' or {option} 8,27,64")
        rules[option[2 : -len("-rule")]] = value
    args = parse_parameters(parser, rest)
    limits: dict[str, list[float | None]] = {}
    for option in [name for name in args.asked if name[:4] in ("min-", "max-")]:
        given = args.asked.pop(option)
        if len(given) != 1:
            raise UsageError(f"{parser.prog}: --{option} takes one number", f"write --{option} {given[0]:g}")
        limits.setdefault(option[4:], [None, None])[option.startswith("max-")] = given[0]
    args.rules, args.limits = rules, limits
    return args


def run(args: argparse.Namespace) -> int:
    """Plan and print; 4 when the answer is insufficient and no run within the budget would mend it."""
    for name, least in (("runs", 1), ("reps", 1)):
        if getattr(args, name) is not None and getattr(args, name) < least:
            raise UsageError(f"--{name} is {getattr(args, name)}", "give at least 1")
    if args.budget is not None and not 0 < args.budget < float("inf"):
        raise UsageError(f"--budget {args.budget:g} is not a number of core-hours", "give a positive number")

    from ranksight.analysis.planning.remedies import LONGER
    from ranksight.analysis.planning.spending import spending
    from ranksight.analysis.planning.values import Rule
    from ranksight.cli._continuing import measure_lines, template_of, work_options
    from ranksight.model.energy.prices import Prices

    prices = Prices.read(args.price, "--price")
    model, experiment = _open(args.model)
    if args.kernel == "":
        raise UsageError("--kernel names no kernel", "leave it out to plan for the whole program")
    targets = model.combinations({name: list(dict.fromkeys(values)) for name, values in args.asked.items()})
    args.spending = spending(model, targets, prices, args.level)
    rules = {name: Rule(text) for name, text in args.rules.items()}
    choice = _chosen(
        args,
        model,
        experiment,
        targets,
        metric=args.metric,
        kernel=args.kernel,
        level=args.level,
        rules=rules,
        limits={name: (a, b) for name, (a, b) in args.limits.items()},
        budget=args.budget,
        most=args.runs,
        repetitions=args.reps or _repetitions(model, experiment),
    )
    folder = None if experiment is None else experiment.path
    template = None if experiment is None else template_of(experiment)
    work = [] if experiment is None else work_options(experiment)
    args.crowded = experiment is not None and any(_crowded(experiment, ranks) for ranks in args.asked.get("ranks", ()))
    planned = {each.configuration["ranks"] for each in choice.runs if "ranks" in each.configuration}
    args.sharing = experiment is not None and any(_crowded(experiment, ranks) for ranks in planned)
    configurations = [each.configuration for each in choice.runs]
    repetitions = choice.runs[0].repetitions if choice.runs else 1
    commands = measure_lines(configurations, repetitions, folder, template, work)
    args.instead = []
    if (choice.costs_more or choice.candidates.none_left) and not choice.candidates.barred and not args.crowded:
        itself = [dict(zip(model.parameters, map(float, target), strict=True)) for target in targets]
        known = (targets[:, None] == model.training[None]).all(axis=2).any()
        times = args.reps or _repetitions(model, experiment) * (LONGER if known else 1)
        args.instead = measure_lines(itself, times, folder, template, work)
    if model.coordinates:
        # Which of the runs' own parameters make such a value is the user's to say.
        commands, args.instead = [], []
    args.coordinates = model.coordinates
    _print(choice, commands, args)
    return 4 if not choice.runs and choice.goal.now.status.any() else 0


def _chosen(args: argparse.Namespace, *given: Any, **settings: Any) -> Choice:
    """The plan; where no run can be planned, the table of energy and cost is printed before the error."""
    from ranksight.analysis.planning.choice import plan
    from ranksight.reports.spending import blocks
    from ranksight.reports.terminal import show

    try:
        return plan(*given, **settings)
    except InputError:
        if args.spending is not None and args.format == "table":
            show(*blocks(args.spending))
        raise


def _open(path: Path) -> tuple[Model, Experiment | None]:
    """The model, and the experiment it was made of where it is the one given or is in the folder of the model."""
    from ranksight.cli._continuing import experiment_of
    from ranksight.core.experiment import read
    from ranksight.model.fitted_model import Model

    if path.is_dir():
        from ranksight.model.fit import assemble
        from ranksight.model.stages.measuring import assumed_platform

        experiment = read(path)
        return assemble(experiment, platform=assumed_platform(experiment))[0], experiment
    model = Model.load(path)
    return model, experiment_of(model, path)


def _crowded(experiment: Experiment, ranks: float) -> bool:
    """Whether so many ranks are more than the cores of the machine that the runs were made on, as far as known."""
    return any(replace(run, configuration={**run.configuration, "ranks": ranks}).crowded for run in experiment.runs)


def _repetitions(model: Model, experiment: Experiment | None) -> int:
    """As often as runs were repeated before."""
    if experiment is not None:
        return max((run.repetition for run in experiment.runs), default=0) + 1
    within = model.fitted.within
    return MANY if (within == within).any() else 1


def _print(choice: Choice, commands: list[str], args: argparse.Namespace) -> None:
    from ranksight.reports import spending
    from ranksight.reports.plans import COLUMNS, blocks, rows, to_dict
    from ranksight.reports.terminal import Text, next_step, show

    if args.format == "json":
        spent = {} if args.spending is None else {"spending": spending.to_dict(args.spending)}
        print_document({**to_dict(choice, commands), **spent})
        return
    if args.format == "csv":
        columns = [*choice.candidates.rules, *COLUMNS]
        _separated.write(columns, ([row.get(name) for name in columns] for row in rows(choice)))
        return
    show(*blocks(choice, args.crowded, args.sharing))
    if args.spending is not None:
        show("", *spending.blocks(args.spending))
    if args.quiet:
        return
    if args.coordinates and choice.runs:
        show(
            "", Text(f"next: measure runs of these values, where {args.coordinates.remark()}", hanging=2, style="cyan")
        )
        return
    if args.instead:
        show("", *map(next_step, args.instead))
        return
    if not commands:
        if args.model.is_file():
            again = shell_line("ranksight", "predict", args.model, *options(args.asked))
        else:
            again = _again(args) if choice.runs else shell_line("ranksight", "fit", args.model)
        show("", next_step(again))
        return
    said = "this plan assumed outcomes that only runs can show; plan again when they were made:"
    show("", said, Text(_again(args), 2, -1), *map(next_step, commands))


def _again(args: argparse.Namespace) -> str:
    """The same question, with its rules and limits; a budget is for what is left of it, which is the user's to say."""
    words = ["ranksight", "plan", str(args.model), *options(args.asked)]
    words += [word for name, rule in args.rules.items() for word in (f"--{name}-rule", rule)]
    for name, ends in args.limits.items():
        words += [
            word
            for what, end in zip(("min", "max"), ends, strict=True)
            if end is not None
            for word in (f"--{what}-{name}", in_full(end))
        ]
    for name in ("kernel", "metric", "reps"):
        words += [] if getattr(args, name) is None else [f"--{name}", str(getattr(args, name))]
    words += [word for text in args.price for word in ("--price", text)]
    words += [] if args.level == LEVEL else ["--level", f"{args.level:g}"]
    return shell_line(*words)
