"""Write all results of a model into one HTML file that needs no network."""

from __future__ import annotations

import argparse
import datetime
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranksight.cli import _separated
from ranksight.cli._document import print_document
from ranksight.cli._lines import shell_line
from ranksight.cli._parser import Parser
from ranksight.cli._placing import on_machine, varied, where
from ranksight.cli._saying import warn
from ranksight.core.errors import InputError, UsageError
from ranksight.core.files import check_output, with_name

if TYPE_CHECKING:
    from ranksight.core.experiment import Experiment
    from ranksight.reports.html.context import Context


def parse(parser: Parser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the line; every other option ``--NAME VALUE`` sets a parameter of the target.

    Raises UsageError when an option lacks its value or the value is not a number.
    """
    from ranksight.cli._values import parse as with_parameters

    args = with_parameters(parser, arguments)
    for name, values in args.asked.items():
        if len(values) != 1:
            raise UsageError(f"{parser.prog}: --{name} has {len(values)} values", "a report is of one target")
    args.target = {name: value for name, (value,) in args.asked.items()}
    return args


def run(args: argparse.Namespace) -> int:
    """Write the report and print its path; 4 when the data are insufficient for the time at the target."""
    if not 0 < args.efficiency <= 1:
        raise UsageError(f"--efficiency {args.efficiency:g} is not part of 1", "give a number such as 0.7")
    place = with_name(args.model)
    output = args.output or place.with_name(place.name.removesuffix(".json").removesuffix(".model") + ".html")
    from ranksight.reports.html.page import render, write

    check_output(output, args.force)
    if args.pdf is not None:
        from ranksight.reports.html.pdf import browser

        browser()
        check_output(args.pdf, args.force)
    context = context_of(args)
    page = render(context, args.title)
    write(page, output, force=args.force)
    if args.pdf is not None:
        from ranksight.reports.html.pdf import write_pdf

        write_pdf(output, args.pdf, force=args.force)
    summary = _summary(context, output, len(page.encode("utf-8")))
    if not args.quiet:
        warn(context.model.remarks.left_out)
        _print(summary, args.format)
    return 0 if summary["sufficient"] or not context.sweep.timed else 4


def context_of(args: argparse.Namespace) -> Context:
    """What a report of the line's model and experiments shows."""
    from ranksight.analysis.expectations.document import read_study
    from ranksight.cli._continuing import experiment_of
    from ranksight.core.experiment import read
    from ranksight.model.energy.prices import Prices
    from ranksight.model.fitted_model import Model
    from ranksight.platforms import load
    from ranksight.reports.html.context import Context
    from ranksight.reports.sweep import axis_of, sweep

    if args.expectations is not None and not args.experiment:
        raise UsageError("--expectations needs an experiment to compare with", "give --experiment FOLDER")
    study = None if args.expectations is None else read_study(args.expectations)
    platform = load(args.platform) if args.platform is not None else None
    model = on_machine(Model.load(args.model), args)
    args.target.update({name: value for name, (value,) in varied(model, args).items()})
    model = model.placed(args.placement, args.ranks_per_node)
    if args.on is not None:
        if args.experiment:
            raise UsageError("--experiment is of the machine of the runs, and the report of another", "leave one out")
        platform = platform or load(args.on)
    experiments = tuple(model.view(read(path)) for path in args.experiment)
    for each in experiments:
        if each.parameters != model.parameters:
            raise InputError(
                f"{each.path} is over {', '.join(each.parameters)}, the model over {', '.join(model.parameters)}",
                "name the experiment that the model was fitted to, or one of the same program",
            )
        if each.application != model.application:
            warn(f"{each.path} is of {each.application!r}, the model of {model.application!r}")
    if not experiments and args.on is None and (own := experiment_of(model, with_name(args.model))) is not None:
        experiments = (own,)
    along, target = args.along or axis_of(model), args.target
    if model.coordinates and not set(target) <= set(model.parameters):
        target = dict(zip(model.parameters, model.combinations(target)[0].tolist(), strict=True))
    held = {name: value for name, value in target.items() if name != along}
    return Context(
        model,
        sweep(model, along=along, to=target.get(along), at=held, level=args.level),
        experiments,
        platform,
        args.model,
        study,
        commands(experiments),
        args.efficiency,
        origin(experiments, args.author),
        prices=Prices.read(args.price, "--price"),
        where=where(args),
    )


def origin(experiments: Sequence[Experiment], author: str = "") -> dict[str, str]:
    """Who wrote a report, when, and the command that was measured."""
    from ranksight.cli._continuing import template_of

    template = template_of(experiments[0]) if experiments else None
    written = f"{datetime.date.today().isoformat()}{f' by {author}' if author else ''}"
    return {"Command": " ".join(template or ()), "Written": written}


def commands(experiments: Sequence[Experiment]) -> Callable[[Sequence[Mapping[str, float]], int], list[str]]:
    """Writes the lines that measure more of the first experiment."""
    from ranksight.cli._continuing import measure_lines, template_of, work_options

    def lines(configurations: Sequence[Mapping[str, float]], repetitions: int) -> list[str]:
        first = experiments[0] if experiments else None
        if first is None:
            return measure_lines(configurations, repetitions, None, None)
        return measure_lines(configurations, repetitions, first.path, template_of(first), work_options(first))

    return lines


def _summary(context: Context, output: Path, size: int) -> dict[str, Any]:
    from ranksight.reports.sweep import sufficient

    return {
        "report": str(output),
        "bytes": size,
        "kernels": len(context.sweep.breakdown.program),
        "unpredicted": len(context.unpredicted),
        "functions": len(context.model.fitted),
        "target": context.sweep.target,
        "sufficient": context.sweep.timed and sufficient(context.sweep.total),
        "answer": context.answer,
        "warnings": [text for text in [context.model.remarks.left_out] if text],
    }


def _print(summary: dict[str, Any], how: str) -> None:
    if how == "json":
        print_document({"schema_version": 1, **summary})
        return
    if how == "csv":
        columns = ("report", "bytes", "kernels", "functions", "unpredicted", "sufficient", "answer")
        _separated.write(columns, [[summary[name] for name in columns]])
        return
    from ranksight.core.units import counted, format_si
    from ranksight.reports.terminal import Text, next_step, show

    size = format_si(float(summary["bytes"]), "B")
    show(
        Text(summary["answer"], hanging=0),
        "",
        Text(
            f"{counted(summary['kernels'], 'kernel')} in the program's time; {summary['unpredicted']} of "
            f"{counted(summary['functions'], 'function')} without an answer at the target"
        ),
        Text(f"{summary['report']}: {size}, nothing outside of it is needed", hanging=-1),
        next_step(f"{shell_line('xdg-open', summary['report'])}  # or hand it to a colleague"),
    )
